// The tasks that the board shows in each column under the current filter.
import { asksForDropped, byOrder, COLUMNS, isOpen, matches, prepare, QUICK, readFilter } from "../rules/columns.js";
import { listen, state } from "../data/store.js";
/** @import { ColumnId, Task } from "types/page.js" */

/** @type {{ id: ColumnId, title: string }} */
const DROPPED = { id: "dropped", title: "Dropped" };
/** @type {Map<string, Task[]>} */
const kept = new Map();
let wanted = readFilter("");
let text = "";

function filter() {
  if (state.filter.text !== text) {
    text = state.filter.text;
    wanted = readFilter(text);
    kept.clear();
  }
  return wanted;
}

/** Return the columns that are there: the seven, and the dropped tasks if the filter asks for them. */
export function columns() {
  return asksForDropped(filter()) ? [...COLUMNS, DROPPED] : COLUMNS;
}

/**
 * Return the tasks that a column shows, in order; do not change the list.
 * @param {string} column
 */
export function rowsOf(column) {
  const now = filter();
  const { quick } = state.filter;
  const all = column === "dropped" ? null : state.columns.lists.get(column);
  if (all && isOpen(now, quick)) return all;
  let rows = kept.get(column);
  if (rows === undefined) {
    const from = all ?? [...state.tasks.values()].filter((task) => task.status === "dropped").sort(byOrder);
    const lets = quick ? QUICK[quick]?.lets : null;
    rows = from.filter(
      (task) =>
        matches(task, now) &&
        (!lets || lets(task, column, task.session === null ? undefined : state.live.get(task.session))),
    );
    kept.set(column, rows);
  }
  return rows;
}

/**
 * Return in which column a task is shown, and where in it; null if it is not.
 * @param {string} id
 */
export function find(id) {
  const column =
    state.columns.where.get(id)?.column ??
    (state.tasks.get(id)?.status === "dropped" && asksForDropped(filter()) ? "dropped" : null);
  if (column === null) return null;
  const index = rowsOf(column).findIndex((task) => task.id === id);
  return index < 0 ? null : { column, index };
}

// Told before any card is drawn again, because nobody listens earlier.
/** @param {Set<string>} topics */
const forget = (topics) => {
  if (topics.has("filter") || topics.has("sessions") || topics.has("live")) kept.clear();
  else for (const { id } of COLUMNS) if (topics.has(`column:${id}`)) kept.delete(id);
  if (topics.has("tasks")) kept.delete("dropped");
};
listen([...COLUMNS.map(({ id }) => `column:${id}`), "filter", "tasks", "sessions"], forget);
listen(["live"], (topics) => state.filter.quick === "failed" && forget(topics));

// The words of tasks are put together while nothing else is to be done, so that the first letter of a search is not slow.
let warming = 0;
/** @param {Task[]} rest */
const warm = (rest) => {
  const begun = performance.now();
  for (const task of rest) {
    prepare(task);
    if (performance.now() - begun > 5) {
      warming = setTimeout(warm, 30, rest);
      return;
    }
  }
  warming = 0;
};
listen(["loaded"], () => {
  if (state.loaded.whole && !warming) warming = setTimeout(warm, 500, state.tasks.values());
});
