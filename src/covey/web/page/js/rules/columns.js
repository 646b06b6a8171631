// Rules of the board: which column a task is in, the order, filters, what a card says, what dropping it means.
import { ageless } from "./text.js";
/** @import { Told } from "types/rest.js" */
/** @import { ColumnId, Filter, FilterField, FullMap, InboxItem, Live, Merge, Task } from "types/page.js" */

/** @type {{ id: ColumnId, title: string }[]} */
export const COLUMNS = [
  { id: "backlog", title: "Backlog" },
  { id: "todo", title: "To do" },
  { id: "doing", title: "Doing" },
  { id: "needs", title: "Needs you" },
  { id: "review", title: "Review" },
  { id: "merging", title: "Merging" },
  { id: "done", title: "Done" },
];

/**
 * Return the column of a task; `asks` says whether a session needs a person. Dropped tasks stand in none.
 * @param {Task} task
 * @param {(session: string) => boolean} asks
 */
export function columnOf(task, asks) {
  if (task.status === "dropped") return null;
  if (task.status === "blocked") return "needs";
  if (task.status === "doing" && task.session !== null && asks(task.session)) return "needs";
  return task.status;
}

/** Which columns are open where not all have room: what goes on now before what was and what may be. */
const OPEN_FIRST = ["dropped", "todo", "doing", "needs", "review", "done", "merging", "backlog"];

/**
 * Return the columns that stand open in some pixels of width, by how many tasks each has: those with tasks come first.
 * @param {Map<string, number>} counts
 * @param {number} width
 */
export function openColumns(counts, width, { least = 204, rail = 42 } = {}) {
  const known = OPEN_FIRST.filter((id) => counts.has(id));
  const wanted = [...known.filter((id) => (counts.get(id) ?? 0) > 0), ...known.filter((id) => counts.get(id) === 0)];
  const room = Math.floor((width - known.length * rail) / (least - rail));
  return new Set(wanted.slice(0, Math.max(1, room)));
}

/** What a person wants to see first where one column has the whole screen. */
const SEEN_FIRST = ["needs", "review", "doing", "todo", "merging", "done", "backlog"];

/**
 * Return the column that a phone begins with, by how many tasks each has: the first that has any.
 * @param {Map<string, number>} counts
 */
export const firstColumn = (counts) => SEEN_FIRST.find((id) => (counts.get(id) ?? 0) > 0) ?? "doing";

/**
 * Return the number in the id of a task.
 * @param {string} id
 */
export const number = (id) => Number(id.slice(id.lastIndexOf("-") + 1));
/**
 * @param {Task} one
 * @param {Task} other
 */
const byId = (one, other) => number(one.id) - number(other.id) || (one.id < other.id ? -1 : one.id > other.id ? 1 : 0);

/**
 * Compare two tasks that wait, as the board and the daemon order them: `key` of core/board/ranking.py, and the ORDER BY
 * of store/queries/board.py.
 * @param {Task} one
 * @param {Task} other
 */
export function byOrder(one, other) {
  return (
    other.priority - one.priority || (one.rank ?? number(one.id)) - (other.rank ?? number(other.id)) || byId(one, other)
  );
}

/**
 * @param {Task} one
 * @param {Task} other
 */
const byEnd = (one, other) => (other.ended ?? other.updated) - (one.ended ?? one.updated) || byId(one, other);
/**
 * @param {Task} one
 * @param {Task} other
 */
const byAge = (one, other) => one.updated - other.updated || byId(one, other);
/** @type {Record<string, (one: Task, other: Task) => number>} */
const ORDERS = { backlog: byOrder, todo: byOrder, done: byEnd };

/**
 * Return how a column is ordered: by what a person wants first, by age, or the last one first.
 * @param {string} column
 */
export const orderOf = (column) => ORDERS[column] ?? byAge;

/**
 * Return where in an ordered list something stands, or would; `compare` says that an entry comes before it by less than 0.
 * @template Entry, Sought
 * @param {ArrayLike<Entry>} list
 * @param {Sought} sought
 * @param {(entry: Entry, sought: Sought) => number} compare
 */
export function placeOf(list, sought, compare) {
  let low = 0;
  let high = list.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (compare(list[middle], sought) < 0) low = middle + 1;
    else high = middle;
  }
  return low;
}

/**
 * Say whether two rows of a task say the same.
 * @param {Task} one
 * @param {Task} other
 */
export function isSame(one, other) {
  const names = /** @type {(keyof Task)[]} */ (Object.keys(other));
  if (names.length !== Object.keys(one).length) return false;
  return names.every(
    (name) =>
      one[name] === other[name] ||
      (typeof other[name] === "object" && JSON.stringify(one[name]) === JSON.stringify(other[name])),
  );
}

/** All tasks in their columns; each change moves one task, however many there are. */
export class Columns {
  /** @param {(session: string) => boolean} [asks] */
  constructor(asks = () => false) {
    this.asks = asks;
    /** @type {FullMap<string, Task[]>} */
    this.lists = /** @type {FullMap<string, Task[]>} */ (new Map(COLUMNS.map(({ id }) => [id, []])));
    /** @type {Map<string, { column: ColumnId, task: Task }>} */
    this.where = new Map();
  }

  /**
   * Put a task where it belongs now, and return the columns that changed.
   * @param {Task} task
   */
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

  /**
   * Take a task out, and return the columns that changed.
   * @param {string} id
   */
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
}

/** What may stand in the search box, and what it means. */
export const HINTS = [
  { form: "login", means: "in id, title, session, role, reason or scope" },
  { form: "@ada", means: "held by or meant for a session" },
  { form: "#night", means: "of a batch" },
  { form: "role:docs", means: "of a role" },
  { form: "p>3", means: "priority, also p<0 and p=5" },
  { form: "needs:AF-3", means: "that need a task" },
  { form: "is:ready", means: "also is:waiting, is:mine, is:failed, is:overlap" },
  { form: "status:dropped", means: "by status; dropped tasks are shown only so" },
  { form: "-word", means: "without, before any of these" },
];

const FIELD = /^(session|role|batch|status|needs|parent|is):(.+)$/;
const PRIORITY = /^p([<>=])(-?\d+)$/;

const OF_RUN = /^batch-[0-9a-f]{6}$/;

/**
 * Say whether a batch has the name that a run gave it, which nobody chose; core/batches.py has the same rule.
 * @param {string} batch
 */
export const isOfRun = (batch) => OF_RUN.test(batch);

/**
 * Return what a search text asks for: words, and fields such as `role:docs`, `@name`, `#batch`, `p>3`; `-` before one
 * negates it.
 * @param {string} text
 */
export function readFilter(text) {
  /** @type {Filter} */
  const wanted = { words: [], fields: [], not: null };
  for (const word of text.toLowerCase().split(/\s+/).filter(Boolean)) {
    if (/^-[^\d]/.test(word)) {
      wanted.not ??= { words: [], fields: [] };
      readWord(wanted.not, word.slice(1));
    } else readWord(wanted, word);
  }
  return wanted;
}

/**
 * @param {Pick<Filter, "words" | "fields">} wanted
 * @param {string} word
 */
function readWord(wanted, word) {
  const field = FIELD.exec(word);
  const priority = PRIORITY.exec(word);
  if (field) wanted.fields.push([field[1], field[2]]);
  else if (priority) wanted.fields.push(["priority", priority[1], Number(priority[2])]);
  else if (/^@./.test(word)) wanted.fields.push(["session", word.slice(1)]);
  else if (/^#./.test(word)) wanted.fields.push(["batch", word.slice(1)]);
  else wanted.words.push(word);
}

/**
 * Say whether a filter lets everything through.
 * @param {Filter} wanted
 * @param {string | null} quick
 */
export function isOpen(wanted, quick) {
  return !quick && wanted.words.length === 0 && wanted.fields.length === 0 && wanted.not === null;
}

/**
 * Say whether a filter asks for dropped tasks, which stand in no column otherwise.
 * @param {Pick<Filter, "fields">} wanted
 */
export const asksForDropped = (wanted) =>
  wanted.fields.some(([name, what]) => name === "status" && "dropped".startsWith(what));

/**
 * Filters that one press sets; `lets` sees a task, its column, and what is live of its session, if anything.
 * @type {Record<string, { title: string, lets(task: Task, column: string, live?: Live | null): boolean }>}
 */
export const QUICK = {
  needs: { title: "need you", lets: (_task, column) => column === "needs" },
  working: { title: "working", lets: (_task, column) => column === "doing" },
  review: { title: "review", lets: (_task, column) => column === "review" },
  merging: { title: "merging", lets: (_task, column) => column === "merging" },
  failed: {
    title: "failed",
    lets: (task, column, live) =>
      column !== "done" && (task.failed_tries > 0 || live?.gate?.state === "failed" || live?.state === "dead"),
  },
};

/**
 * @param {unknown} value
 * @param {string} part
 */
const holds = (value, part) => value !== null && value !== undefined && String(value).toLowerCase().includes(part);
/** @type {WeakMap<Task, string>} */
const texts = new WeakMap();

/**
 * Put together what a search looks at, ahead of the first search.
 * @param {Task} task
 */
export const prepare = (task) => void textOf(task);

/**
 * Return all words of a task that a search looks at, made once for each row.
 * @param {Task} task
 */
function textOf(task) {
  let text = texts.get(task);
  if (text === undefined) {
    text = [task.id, task.title, task.session, task.assignee, task.role, task.reason, ...task.scope]
      .filter(Boolean)
      .join("\n")
      .toLowerCase();
    texts.set(task, text);
  }
  return text;
}

/**
 * Say whether a task is what a filter asks for.
 * @param {Task} task
 * @param {Filter} wanted
 */
export function matches(task, wanted) {
  for (const field of wanted.fields) if (!matchesField(task, field)) return false;
  for (const word of wanted.words) if (!textOf(task).includes(word)) return false;
  if (!wanted.not) return true;
  return (
    !wanted.not.fields.some((field) => matchesField(task, field)) &&
    !wanted.not.words.some((word) => textOf(task).includes(word))
  );
}

/** @type {Set<string | undefined>} */
const WAITS = new Set(["backlog", "todo"]);
/** @type {Record<string, (task: Task) => boolean>} */
const IS = {
  ready: (task) => WAITS.has(task.status) && task.ready,
  waiting: (task) => WAITS.has(task.status) && !task.ready,
  mine: (task) => task.session === "owner" || task.assignee === "owner",
  failed: (task) => task.failed_tries > 0,
  overlap: (task) => task.overlap,
};

/**
 * @param {Task} task
 * @param {FilterField} pair
 */
function matchesField(task, [name, what, than = 0]) {
  if (name === "priority")
    return what === ">" ? task.priority > than : what === "<" ? task.priority < than : task.priority === than;
  if (name === "session") return holds(task.session, what) || holds(task.assignee, what);
  if (name === "needs") return task.needs.some((id) => holds(id, what));
  if (name === "status") return task.status.startsWith(what);
  if (name === "is") return Object.hasOwn(IS, what) && IS[what](task);
  return holds(task[/** @type {keyof Task} */ (name)], what);
}

const STATUSES = ["backlog", "todo", "doing", "review", "merging", "blocked", "done", "dropped"];

/**
 * Return the words of a filter that mean nothing, such as `is:bogus`.
 * @param {Pick<Filter, "fields" | "not">} props
 */
export function strangers({ fields, not }) {
  /** @param {FilterField} pair */
  const isStrange = ([name, what]) =>
    (name === "is" && !Object.hasOwn(IS, what)) ||
    (name === "status" && !STATUSES.some((status) => status.startsWith(what)));
  return [...fields, ...(not?.fields ?? [])].filter(isStrange).map(([name, what]) => `${name}:${what}`);
}

// What a card says

/**
 * Return since when a task stands where it stands.
 * @param {Task} task
 * @param {ColumnId} column
 * @param {Live | null | undefined} live
 */
export function sinceOf(task, column, live) {
  if (column === "needs" && task.status === "doing" && live?.since) return live.since;
  if (column === "doing") return task.claimed ?? task.updated;
  if (column === "done") return task.ended ?? task.updated;
  return task.updated;
}

/**
 * Return the needs of a task that have not ended, as ids, each once; `tasks` is a map of all.
 * @param {Task} task
 * @param {Map<string, Task>} tasks
 */
export function waitsFor(task, tasks) {
  return [...new Set([...task.needs, ...task.needs_any])].filter(
    (id) => !["done", "dropped"].includes(tasks.get(id)?.status ?? "done"),
  );
}

/**
 * Return a task of which each need stands in one list only, as a change of it says them.
 * @param {Task} task
 */
export function splitNeeds(task) {
  return { ...task, needs: task.needs.filter((id) => !task.needs_any.includes(id)) };
}

/**
 * Return the tasks that need a task, as ids.
 * @param {string} id
 * @param {Map<string, Task>} tasks
 */
export function neededBy(id, tasks) {
  /** @type {string[]} */
  const found = [];
  for (const task of tasks.values()) if (task.needs.includes(id) || task.needs_any.includes(id)) found.push(task.id);
  return found;
}

/**
 * Return the state that a card shows: of its session while one is at work, else of the task.
 * @param {Task} task
 * @param {ColumnId} column
 * @param {Live | null | undefined} live
 */
export function faceOf(task, column, live) {
  if (column === "needs") return task.status === "blocked" ? "blocked" : "needs-you";
  if (column === "doing") return live?.state && live.state !== "idle" ? live.state : "doing";
  if (task.status === "todo" && !task.ready) return "waiting";
  return task.status;
}

/** @param {string[]} ids */
const list = (ids) => (ids.length > 3 ? `${ids.slice(0, 3).join(", ")} and ${ids.length - 3} more` : ids.join(", "));

/**
 * Return the second line of a card: what happens, or what it waits for. `merge`, `item` (of the inbox) and `wait` are
 * the task's, if any.
 * @param {Task} task
 * @param {ColumnId} column
 * @param {{ live?: Live | null, merge?: Merge | null, item?: InboxItem | null, wait?: Told | null, tasks?: Map<string, Task> }} [props]
 */
export function lineOf(task, column, { live = null, merge = null, item = null, wait = null, tasks = new Map() } = {}) {
  if (column === "needs")
    return task.status === "blocked"
      ? (task.reason ?? "blocked")
      : (item?.kind === "session" ? ageless(item.text) : item?.text) ||
          item?.title ||
          live?.action ||
          ageless(live?.evidence) ||
          "asks you";
  if (column === "doing")
    return live?.action || ageless(live?.evidence) || (task.session === "owner" ? "in your hands" : "at work");
  if (column === "review") return task.reason ?? (merge?.waits ? saidOfWait(merge) : "waits for your review");
  if (column === "merging")
    return merge?.waits ?? (merge?.state === "testing" ? "its gate runs" : (merge?.reason ?? "in the merge queue"));
  if (task.reverted) return `done, and taken out of main again by ${task.reverted}`;
  if (column === "done")
    return task.commit ? `landed as ${task.commit.slice(0, 8)}` : task.kind === "report" ? "reported" : "done";
  if (task.status === "dropped") return task.reason ?? "dropped";
  const open = waitsFor(task, tasks);
  if (open.length) return `needs ${list(open)}`;
  if (!task.ready) return "waits for its children";
  if (wait && task.status === "todo") return saidOf(wait);
  if (task.failed_tries || task.sent_back) return readyAgain(task);
  if (task.assignee) return `ready for ${task.assignee}`;
  return task.status === "backlog" ? "not planned yet" : "ready";
}

/**
 * Say what came before a task that is ready again; work that a person sent back has not failed.
 * @param {Pick<Task, "failed_tries" | "sent_back">} props
 */
function readyAgain({ failed_tries: failed, sent_back: back = 0 }) {
  const tries = failed ? [failed === 1 ? "a failed try" : `${failed} failed tries`] : [];
  const wishes = back ? [back === 1 ? "you sent it back" : `you sent it back ${back} times`] : [];
  return `ready again after ${[...tries, ...wishes].join(", and after ")}`;
}

/**
 * Return why something waits, and until when if that is known.
 * @param {Told} props
 */
export function saidOf({ text, until }) {
  return until
    ? `${text} Until ${new Date(until * 1000).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" })}.`
    : text;
}

/**
 * Return what a merge waits for as one phrase.
 * @param {Pick<Merge, "state" | "reason" | "waits" | "waits_for">} merge
 */
export function saidOfWait({ state, reason, waits, waits_for }) {
  if (state === "review" && !reason) return "waits for your review";
  return waits_for ? `waits ${waits}` : waits;
}

// Moving

/**
 * What the columns are called, that of dropped tasks too.
 * @type {Record<string, string>}
 */
export const NAMES = { ...Object.fromEntries(COLUMNS.map(({ id, title }) => [id, title])), dropped: "Dropped" };
/** @type {Record<string, string>} */
const LEAVES = {
  done: "It has ended: add another task, or revert it in the merge queue.",
  merging: "The merge queue has it: hold or drop it there.",
  review: "It waits for a review: approve it or send it back there.",
};
/** @type {Record<string, string>} */
const ENTERS = {
  doing: "Sessions take tasks themselves: drop it on a session to say which one.",
  review: "Work comes here when a session hands it in.",
  merging: "Work comes here when it is handed in and approved.",
  done: "Work is done when it has landed on main.",
};

/**
 * Return what it means to drop a task on a column: {does: "order"}, {does: "status", status}, {does: "release"},
 * {does: "block"}, or {why} it cannot be.
 * @param {Task} task
 * @param {string | undefined} from
 * @param {string} to
 * @returns {{ does?: string, status?: string, why?: string }}
 */
export function dropOn(task, from, to) {
  if (from === to) return WAITS.has(to) ? { does: "order" } : { why: `${NAMES[to]} is ordered by time.` };
  if (WAITS.has(to) && (WAITS.has(from) || task.status === "blocked" || task.status === "dropped"))
    return { does: "status", status: to };
  if (to === "todo" && task.status === "doing") return { does: "release" };
  if (to === "backlog" && task.status === "doing") return { why: "It is being worked on: put it back to To do first." };
  if (to === "needs" && (WAITS.has(from) || from === "doing" || from === "review")) return { does: "block" };
  if (from === "review" && to === "merging") return { why: "Look at it first: the review is where it is approved." };
  return { why: LEAVES[from ?? ""] ?? ENTERS[to] ?? "A task cannot be put there." };
}

/**
 * Return why a task cannot be given to a session, or null.
 * @param {Task} task
 */
export function whyNotAssign(task) {
  if (task.status === "doing") return `${task.id} is being worked on by ${task.session}.`;
  return ["done", "dropped", "merging", "review"].includes(task.status) ? `${task.id} is ${task.status}.` : null;
}

/**
 * Return where tasks that are put at `index` of an ordered list come to stand: `below` one and `above` another, as ids or
 * null. The moved ones do not count as neighbours.
 * @param {Task[]} rows
 * @param {number} index
 * @param {string[]} moved
 */
export function neighbours(rows, index, moved) {
  const gone = new Set(moved);
  let up = index - 1;
  while (up >= 0 && gone.has(rows[up].id)) up--;
  let down = index;
  while (down < rows.length && gone.has(rows[down].id)) down++;
  return { below: rows[up]?.id ?? null, above: rows[down]?.id ?? null };
}

/**
 * Return a task as it will probably stand between two others, to be shown until the daemon has said so.
 * @param {Task} task
 * @param {Task | null | undefined} upper
 * @param {Task | null | undefined} lower
 */
export function between(task, upper, lower) {
  const priority = Math.min(Math.max(task.priority, lower?.priority ?? -Infinity), upper?.priority ?? Infinity);
  const top = upper?.priority === priority ? upper.rank : null;
  const bottom = lower?.priority === priority ? lower.rank : null;
  const rank =
    top !== null && bottom !== null
      ? (top + bottom) / 2
      : top !== null
        ? top + 0.5
        : bottom !== null
          ? bottom - 0.5
          : task.rank;
  return { ...task, priority, rank };
}

// What hangs together

/**
 * Return the tasks around one by their needs: `nodes` [{id, level, place}] (negative levels are what it needs), `edges`
 * [{from, to}] from need to needing, and how many were `left` out beyond `most`.
 * @param {string} id
 * @param {Map<string, Task>} tasks
 */
export function neighbourhood(id, tasks, { depth = 4, most = 60 } = {}) {
  /** @type {Map<string, string[]>} */
  const needing = new Map();
  for (const task of tasks.values())
    for (const need of task.needs) {
      const known = needing.get(need);
      if (known) known.push(task.id);
      else needing.set(need, [task.id]);
    }
  const levels = new Map([[id, 0]]);
  let left = 0;
  /**
   * @param {number} step
   * @param {(id: string) => string[]} next
   */
  const walk = (step, next) => {
    let edge = [id];
    for (let level = 1; level <= depth && edge.length; level++) {
      const found = [...new Set(edge.flatMap(next))].filter((each) => tasks.has(each) && !levels.has(each));
      const room = Math.max(0, most - levels.size);
      left += Math.max(0, found.length - room);
      edge = found.slice(0, room);
      for (const each of edge) levels.set(each, level * step);
    }
  };
  walk(-1, (each) => tasks.get(each)?.needs ?? []);
  walk(1, (each) => needing.get(each) ?? []);
  /** @type {Map<number, number>} */
  const places = new Map();
  const nodes = [...levels]
    .sort(([one, a], [other, b]) => a - b || number(one) - number(other))
    .map(([each, level]) => {
      const place = places.get(level) ?? 0;
      places.set(level, place + 1);
      return { id: each, level, place };
    });
  const edges = nodes.flatMap(({ id: to }) =>
    (tasks.get(to)?.needs ?? []).filter((from) => levels.has(from)).map((from) => ({ from, to })),
  );
  return { nodes, edges, left };
}

// Writing a task in one line

/**
 * Return the task that one line describes: a title, with `p5`, `@name`, `role:docs`, `needs:AF-3` or `!backlog`
 * anywhere in it.
 * @param {string} text
 */
export function readTask(text) {
  /** @type {Partial<Task>} */
  const task = {};
  /** @type {string[]} */
  const words = [];
  /** @type {string[]} */
  const needs = [];
  for (const word of text.trim().split(/\s+/)) {
    const priority = /^p(-?\d{1,6})$/.exec(word);
    const field = /^(role|needs):(\S+)$/.exec(word);
    if (priority) task.priority = Number(priority[1]);
    else if (/^@[A-Za-z0-9][\w-]*$/.test(word)) task.assignee = word.slice(1);
    else if (word === "!backlog" || word === "!todo") task.status = word === "!todo" ? "todo" : "backlog";
    else if (field && field[1] === "needs") needs.push(...field[2].toUpperCase().split(",").filter(Boolean));
    else if (field) task.role = field[2];
    else words.push(word);
  }
  if (needs.length) task.needs = needs;
  return { title: words.join(" "), ...task };
}
