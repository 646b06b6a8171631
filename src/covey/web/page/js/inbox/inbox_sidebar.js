// The rail at the side: what needs a person, oldest first. It folds away to its count.
import { html } from "./lib.js";
import { Asks, useInboxKeys, waiting } from "./inbox.js";
import { useCommands } from "./keys.js";
import { choose, settings } from "./settings.js";
import { useTopics } from "./store.js";

const fold = () => choose({ rail: !settings.rail });

/** The rail; where the whole view is the inbox, there is none. */
export function Rail({ where }) {
  useTopics("inbox", "settings");
  useInboxKeys();
  useCommands([{ label: "Fold or unfold the inbox", group: "Inbox", keys: "I", run: fold }], []);
  if (where.place === "inbox") return null;
  const count = waiting().length;
  if (!settings.rail) {
    return html`<aside class="rail folded" aria-label="Inbox">
      <button type="button" class="rail-open" onClick=${fold} aria-expanded="false" title="Unfold the inbox (I)">
        <span class=${`rail-count ${count ? "some" : ""}`}>${count}</span><span class="rail-word">Inbox</span>
      </button>
    </aside>`;
  }
  return html`<aside class="rail" aria-label="Inbox">
    <header class="rail-head"><h2>Inbox</h2><span class=${`rail-count ${count ? "some" : ""}`}>${count}</span>
      <button type="button" class="button quiet" onClick=${fold} aria-expanded="true" aria-label="Fold the inbox" title="Fold the inbox (I)"><svg viewBox="0 0 16 16" class="glyph" aria-hidden="true"><path d="M10 3.5 5.5 8 10 12.5" /></svg></button>
    </header>
    <${Asks} />
  </aside>`;
}
