// The sidebar with the inbox. It folds away to a count.
import { html } from "../lib.js";
import { Asks, useInboxKeys, waiting } from "./inbox_list.js";
import { useCommands } from "../widgets/keys.js";
import { choose, settings } from "../data/settings.js";
import { useTopics } from "../data/store.js";
/** @import { Whereabouts } from "types/page.js" */

const fold = () => choose({ rail: !settings.rail });

/**
 * The rail; where the whole view is the inbox, there is none.
 * @param {{ where: Whereabouts }} props
 */
export function Rail({ where }) {
  useTopics("inbox", "settings");
  useInboxKeys();
  useCommands([{ label: "Fold or unfold the inbox", group: "Inbox", keys: "I", run: fold }], []);
  if (where.place === "inbox") return null;
  const count = waiting().length;
  if (!settings.rail) {
    return html`<aside class="rail folded" aria-label="Inbox">
      <button type="button" class="rail-open bare" onClick=${fold} aria-expanded="false" title="Unfold the inbox (I)">
        <span class=${`badge ${count ? "some" : ""}`}>${count}</span><span class="rail-word">Inbox</span>
      </button>
    </aside>`;
  }
  return html`<aside class="rail" aria-label="Inbox">
    <header class="rail-head row"><h2>Inbox</h2><span class=${`badge ${count ? "some" : ""}`}>${count}</span>
      <button type="button" class="button quiet" onClick=${fold} aria-expanded="true" aria-label="Fold the inbox" title="Fold the inbox (I)"><svg viewBox="0 0 16 16" class="glyph" aria-hidden="true"><path d="M10 3.5 5.5 8 10 12.5" /></svg></button>
    </header>
    <${Asks} />
  </aside>`;
}
