// The board's rules, pure: which column a task stands in, in which order, and what a filter lets through.

export const COLUMNS = [
  { id: "backlog", title: "Backlog" },
  { id: "todo", title: "To do" },
  { id: "doing", title: "Doing" },
  { id: "needs", title: "Needs you" },
  { id: "review", title: "Review" },
  { id: "merging", title: "Merging" },
  { id: "done", title: "Done" },
];

/** Return the column of a task; `asks` says whether a session needs a person. Dropped tasks stand in none. */
export function columnOf(task, asks) {
  if (task.status === "dropped") return null;
  if (task.status === "blocked") return "needs";
  if (task.status === "doing" && task.session !== null && asks(task.session)) return "needs";
  return task.status;
}

const number = (id) => Number(id.slice(id.lastIndexOf("-") + 1));
const byId = (one, other) => number(one.id) - number(other.id) || (one.id < other.id ? -1 : one.id > other.id ? 1 : 0);

/** Compare two tasks that wait, as the board and the daemon order them. */
export function byOrder(one, other) {
  return other.priority - one.priority || (one.rank ?? number(one.id)) - (other.rank ?? number(other.id)) || byId(one, other);
}

const byEnd = (one, other) => (other.ended ?? other.updated) - (one.ended ?? one.updated) || byId(one, other);
const byAge = (one, other) => one.updated - other.updated || byId(one, other);
const ORDERS = { backlog: byOrder, todo: byOrder, done: byEnd };

/** Return how a column is ordered: by what a person wants first, by age, or the last one first. */
export const orderOf = (column) => ORDERS[column] ?? byAge;

/** Return where in an ordered list a task stands, or would. */
export function placeOf(list, task, compare) {
  let low = 0;
  let high = list.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (compare(list[middle], task) < 0) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** All tasks in their columns; each change moves one task, however many there are. */
export class Columns {
  constructor(asks = () => false) {
    this.asks = asks;
    this.lists = new Map(COLUMNS.map(({ id }) => [id, []]));
    this.where = new Map();
  }

  /** Put a task where it belongs now, and return the columns that changed. */
  put(task) {
    const changed = this.remove(task.id);
    const column = columnOf(task, this.asks);
    if (column !== null) {
      const list = this.lists.get(column);
      list.splice(placeOf(list, task, orderOf(column)), 0, task);
      this.where.set(task.id, { column, task });
      changed.add(column);
    }
    return changed;
  }

  /** Take a task out, and return the columns that changed. */
  remove(id) {
    const known = this.where.get(id);
    if (known === undefined) return new Set();
    const list = this.lists.get(known.column);
    let place = placeOf(list, known.task, orderOf(known.column));
    if (list[place] !== known.task) place = list.indexOf(known.task);
    list.splice(place, 1);
    this.where.delete(id);
    return new Set([known.column]);
  }

  /** Put many tasks at once, each list sorted only once. */
  fill(tasks) {
    for (const list of this.lists.values()) list.length = 0;
    this.where.clear();
    for (const task of tasks) {
      const column = columnOf(task, this.asks);
      if (column === null) continue;
      this.lists.get(column).push(task);
      this.where.set(task.id, { column, task });
    }
    for (const [column, list] of this.lists) list.sort(orderOf(column));
  }
}

/** Return what a search text asks for: words, and fields such as `role:docs`, `@name`, `#batch`, `p>3`. */
export function readFilter(text) {
  const wanted = { words: [], fields: [] };
  for (const word of text.toLowerCase().split(/\s+/).filter(Boolean)) {
    const field = /^(session|role|batch|status|needs|parent):(.+)$/.exec(word);
    const priority = /^p([<>=])(-?\d+)$/.exec(word);
    if (field) wanted.fields.push([field[1], field[2]]);
    else if (priority) wanted.fields.push(["priority", priority[1], Number(priority[2])]);
    else if (/^@./.test(word)) wanted.fields.push(["session", word.slice(1)]);
    else if (/^#./.test(word)) wanted.fields.push(["batch", word.slice(1)]);
    else wanted.words.push(word);
  }
  return wanted;
}

/** Filters that one press sets; `lets` sees a task, its column, and what is live of its session, if anything. */
export const QUICK = {
  needs: { title: "need you", lets: (task, column) => column === "needs" },
  working: { title: "working", lets: (task, column) => column === "doing" },
  review: { title: "review", lets: (task, column) => column === "review" },
  merging: { title: "merging", lets: (task, column) => column === "merging" },
  failed: { title: "failed", lets: (task, column, live) => column !== "done" && (task.failed_tries > 0 || live?.gate?.state === "failed" || live?.state === "dead") },
};

const holds = (value, part) => value !== null && value !== undefined && String(value).toLowerCase().includes(part);

/** Say whether a task is what a filter asks for. */
export function matches(task, wanted) {
  return wanted.fields.every((field) => matchesField(task, field)) && wanted.words.every((word) => matchesWord(task, word));
}

function matchesField(task, [name, what, than]) {
  if (name === "priority") return what === ">" ? task.priority > than : what === "<" ? task.priority < than : task.priority === than;
  if (name === "session") return holds(task.session, what) || holds(task.assignee, what);
  if (name === "needs") return task.needs.concat(task.needs_any).some((id) => holds(id, what));
  return holds(task[name], what);
}

function matchesWord(task, word) {
  return holds(task.id, word) || holds(task.title, word) || holds(task.session, word) || holds(task.role, word)
    || holds(task.reason, word) || task.scope.some((glob) => holds(glob, word));
}
