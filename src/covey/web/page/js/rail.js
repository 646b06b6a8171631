// The rail at the side: what needs a person, oldest first.
import { html } from "./lib.js";
import { state, useTopics } from "./store.js";

export function Rail() {
  useTopics("inbox");
  return html`<aside class="rail" aria-label="Inbox">${state.inbox.length}</aside>`;
}
