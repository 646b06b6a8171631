// Sorting and grouping of the board's list.
import { byOrder, NAMES, number } from "./columns.js";
/** @import { GroupHead, Grouping, ListFacts, ListLook, Sort, SortKey, Task, TaskList } from "types/page.js" */

/** @param {unknown} value */
const text = (value) => String(value ?? "").toLowerCase();
/** @param {string} id */
const prefix = (id) => id.slice(0, id.lastIndexOf("-"));
/**
 * @param {string | number} one
 * @param {string | number} other
 */
const compare = (one, other) => (one < other ? -1 : one > other ? 1 : 0);

/** What stands first where all columns stand together: what a person is asked for, then what goes on, then what waits. */
const STATES = ["needs", "review", "merging", "doing", "todo", "backlog", "done", "dropped"];

/**
 * What a list can be sorted by. `key(task, facts)` is what is compared, nothing (null) always last; `down` says that the
 * largest is the usual first. `facts` has `column(task)`, `since(task)`, `cost(task)` and `title(id)`.
 * @type {Sort[]}
 */
export const SORTS = [
  { id: "priority", title: "Priority", down: true, key: (task) => task.priority },
  { id: "age", title: "Age", down: true, key: (task, facts) => -facts.since(task) },
  { id: "title", title: "Title", down: false, key: (task) => text(task.title) },
  { id: "id", title: "Id", down: false, key: (task) => [text(prefix(task.id)), number(task.id)] },
  { id: "state", title: "State", down: false, key: (task, facts) => STATES.indexOf(facts.column(task)) },
  { id: "session", title: "Session", down: false, key: (task) => text(task.session ?? task.assignee) || null },
  { id: "cost", title: "Cost", down: true, key: (task, facts) => facts.cost(task) || null },
  { id: "tries", title: "Failed tries", down: true, key: (task) => task.failed_tries || null },
];

/**
 * What a list can be grouped by: the key of a task's group, null for none, its words, and how groups are ordered.
 * @type {Grouping[]}
 */
export const GROUPS = [
  { id: "none", title: "Nothing" },
  {
    id: "state",
    title: "State",
    key: (task, facts) => facts.column(task),
    words: (key) => NAMES[key],
    order: (key) => STATES.indexOf(key),
  },
  {
    id: "session",
    title: "Session",
    key: (task) => task.session ?? task.assignee,
    words: (key) => key,
    none: "No session",
  },
  { id: "role", title: "Role", key: (task) => task.role, words: (key) => key, none: "No role" },
  {
    id: "parent",
    title: "Parent",
    key: (task) => task.parent,
    words: (key, facts) => [key, facts.title(key)].filter(Boolean).join("  "),
    none: "No parent",
  },
  { id: "batch", title: "Run", key: (task) => task.batch, words: (key) => `#${key}`, none: "No run" },
];

/**
 * @template {{ id: string }} T
 * @param {T[]} list
 * @param {string} id
 */
const by = (list, id) => list.find((each) => each.id === id) ?? list[0];

/**
 * Return how something is sorted after a press on a sort: the same one turns round, another begins as it usually does.
 * @param {Partial<ListLook>} look
 * @param {string} id
 */
export function pressed(look, id) {
  return look.sort === id ? { sort: id, down: !look.down } : { sort: id, down: by(SORTS, id).down };
}

/**
 * @param {SortKey} one
 * @param {SortKey} other
 */
function compareKeys(one, other) {
  if (Array.isArray(one) && Array.isArray(other)) return compare(one[0], other[0]) || compare(one[1], other[1]);
  return compare(/** @type {string | number} */ (one), /** @type {string | number} */ (other));
}

/**
 * Return tasks in order; what has nothing to compare stands last whichever way, and equals stand as the board has them.
 * @param {Task[]} tasks
 * @param {Pick<ListLook, "sort" | "down">} props
 * @param {ListFacts} facts
 */
export function sorted(tasks, { sort, down }, facts) {
  const { key } = by(SORTS, sort);
  const keyed = tasks.map((task) => /** @type {[SortKey | null, Task]} */ ([key(task, facts), task]));
  const turn = down ? -1 : 1;
  return keyed
    .sort(([a, one], [b, other]) => {
      if (a === null || b === null) return Number(a === null) - Number(b === null) || byOrder(one, other);
      return turn * compareKeys(a, b) || byOrder(one, other);
    })
    .map(([, task]) => task);
}

/**
 * Return ordered tasks by their groups, {name, own, rank}, what has no group last.
 * @param {Task[]} tasks
 * @param {Pick<Required<Grouping>, "key" | "words"> & Pick<Grouping, "order">} props
 * @param {ListFacts} facts
 */
function inGroups(tasks, { key, words, order }, facts) {
  /** @type {Map<string | null, Task[]>} */
  const found = new Map();
  for (const task of tasks) {
    const name = key(task, facts) ?? null;
    const own = found.get(name);
    if (own) own.push(task);
    else found.set(name, [task]);
  }
  const rank = order ?? ((/** @type {string} */ name) => text(words(name, facts)));
  const ranked = [...found].map(([name, own]) => ({ name, own, rank: name === null ? "" : rank(name) }));
  return ranked.sort(
    (one, other) => Number(one.name === null) - Number(other.name === null) || compare(one.rank, other.rank),
  );
}

/**
 * Say whether a row of a list is a task, and not the head of a group.
 * @param {GroupHead | Task} row
 * @returns {row is Task}
 */
export const isTask = (row) => !("group" in row);

/**
 * Return the list of some tasks: `rows`, heads of groups ({group, title, count, folded}) and tasks as they stand below
 * each other; `tasks` alone, in the same order; and `places`, the row of each task that is shown, by id.
 * @param {Task[]} tasks
 * @param {ListLook} look
 * @param {ListFacts} facts
 * @returns {TaskList}
 */
export function listed(tasks, look, facts) {
  const { id, key, words, order, none = "" } = by(GROUPS, look.group);
  const ordered = sorted(tasks, look, facts);
  /** @type {(GroupHead | Task)[]} */
  const rows =
    key === undefined || words === undefined
      ? ordered
      : inGroups(ordered, { key, words, order }, facts).flatMap(({ name: group, own }) => {
          const folded = look.folded?.includes(`${id} ${group}`) ?? false;
          const head = {
            group: `${id} ${group}`,
            title: group === null ? none : words(group, facts),
            count: own.length,
            folded,
          };
          return folded ? [head] : [head, ...own];
        });
  /** @type {Map<string, number>} */
  const places = new Map();
  rows.forEach((row, index) => isTask(row) && places.set(row.id, index));
  return { rows, tasks: id === "none" ? ordered : rows.filter(isTask), places };
}
