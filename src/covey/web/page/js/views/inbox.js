// The inbox as a full view: the start page on a phone, and room for long questions on a desktop.
import { html } from "../lib.js";
import { Asks, waiting } from "../inbox/inbox_list.js";
import { useTopics } from "../data/store.js";
import { some } from "../rules/text.js";

export function View() {
  useTopics("inbox");
  const count = waiting().length;
  return html`<div class="inbox-view" tabindex="-1">
    <header class="inbox-head"><h2>Inbox</h2><span class="soft">${count ? `${some(count, "thing")} ${count === 1 ? "waits" : "wait"} for you, oldest first` : ""}</span></header>
    <${Asks} label="What waits for you" />
  </div>`;
}
