// The cursor and the selection on the board, and the cards related to the one under the cursor.
import { state, touch } from "../data/store.js";

/**
 * @type {{
 *   cursor: string | null, column: string | null, index: number, owned: boolean, selected: Set<string>,
 *   anchor: string | null, related: Map<string, "needs" | "needed">,
 * }}
 */
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

/**
 * Put the cursor on a card; the keyboard's focus goes with it unless `owned` is false.
 * @param {string | null} id
 * @param {string | null} column
 * @param {number} index
 */
export function point(id, column, index, owned = true) {
  const before = marks.cursor;
  Object.assign(marks, { cursor: id, column, index, owned });
  if (before !== null && before !== id) touch(`mark:${before}`);
  if (id !== null) touch(`mark:${id}`);
  touch("cursor");
}

/**
 * Select exactly these cards.
 * @param {Iterable<string>} ids
 */
export function select(ids) {
  const next = new Set(ids);
  for (const id of marks.selected) if (!next.has(id)) touch(`mark:${id}`);
  for (const id of next) if (!marks.selected.has(id)) touch(`mark:${id}`);
  marks.selected = next;
  touch("selection");
}

/**
 * Select a card, or no longer.
 * @param {string} id
 */
export function toggle(id) {
  const next = new Set(marks.selected);
  if (!next.delete(id)) next.add(id);
  marks.anchor = id;
  select(next);
}

/**
 * Mark the cards that hang on the one pointed at.
 * @param {Map<string, "needs" | "needed">} related
 */
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
