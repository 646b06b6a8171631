// What a person points at on the board: one card under the cursor, any number of selected ones, and what they hang on.
import { state, touch } from "./store.js";

export const marks = {
  /** The id of the card under the cursor. */
  cursor: null,
  /** The column in which the cursor is, also when its card has gone. */
  column: null,
  /** Where in that column it was last. */
  index: 0,
  /** Whether the keyboard's focus belongs to the cursor's card, wherever that is drawn. */
  owned: false,
  selected: new Set(),
  anchor: null,
  /** Cards that hang on the one pointed at: id to "needs" or "needed". */
  related: new Map(),
};

/** Put the cursor on a card; the keyboard's focus goes with it unless `owned` is false. */
export function point(id, column, index, owned = true) {
  const before = marks.cursor;
  Object.assign(marks, { cursor: id, column, index, owned });
  if (before !== null && before !== id) touch(`mark:${before}`);
  if (id !== null) touch(`mark:${id}`);
  touch("cursor");
}

/** Select exactly these cards. */
export function select(ids) {
  const next = new Set(ids);
  for (const id of marks.selected) if (!next.has(id)) touch(`mark:${id}`);
  for (const id of next) if (!marks.selected.has(id)) touch(`mark:${id}`);
  marks.selected = next;
  touch("selection");
}

/** Select a card, or no longer. */
export function toggle(id) {
  const next = new Set(marks.selected);
  if (!next.delete(id)) next.add(id);
  marks.anchor = id;
  select(next);
}

/** Mark the cards that hang on the one pointed at. */
export function relate(related) {
  for (const id of marks.related.keys()) if (!related.has(id)) touch(`mark:${id}`);
  for (const [id, how] of related) if (marks.related.get(id) !== how) touch(`mark:${id}`);
  marks.related = related;
}

/** Return the ids that something is done to: the selected ones, else the one under the cursor. */
export function chosen() {
  const known = [...marks.selected].filter((id) => state.tasks.has(id));
  if (known.length) return known;
  return marks.cursor !== null && state.tasks.has(marks.cursor) ? [marks.cursor] : [];
}
