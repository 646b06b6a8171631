// The board as a list, pure: in which order, in which groups, and where each task stands in it.
import { byOrder } from "./columns.js";

const text = (value) => String(value ?? "").toLowerCase();
const number = (id) => Number(id.slice(id.lastIndexOf("-") + 1));
const prefix = (id) => id.slice(0, id.lastIndexOf("-"));
const compare = (one, other) => (one < other ? -1 : one > other ? 1 : 0);

/** What stands first where all columns stand together: what a person is asked for, then what goes on, then what waits. */
const STATES = ["needs", "review", "merging", "doing", "todo", "backlog", "done", "dropped"];
const TITLES = { needs: "Needs you", review: "Review", merging: "Merging", doing: "Doing", todo: "To do", backlog: "Backlog", done: "Done", dropped: "Dropped" };

/**
 * What a list can be sorted by. `key(task, facts)` is what is compared, nothing (null) always last; `down` says that the
 * largest is the usual first. `facts` has `column(task)`, `since(task)`, `cost(task)` and `title(id)`.
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

/** What a list can be grouped by: the key of a task's group, null for none, its words, and how groups are ordered. */
export const GROUPS = [
  { id: "none", title: "Nothing" },
  { id: "state", title: "State", key: (task, facts) => facts.column(task), words: (key) => TITLES[key], order: (key) => STATES.indexOf(key) },
  { id: "session", title: "Session", key: (task) => task.session ?? task.assignee, words: (key) => key, none: "No session" },
  { id: "role", title: "Role", key: (task) => task.role, words: (key) => key, none: "No role" },
  { id: "parent", title: "Parent", key: (task) => task.parent, words: (key, facts) => [key, facts.title(key)].filter(Boolean).join("  "), none: "No parent" },
  { id: "batch", title: "Run", key: (task) => task.batch, words: (key) => `#${key}`, none: "No run" },
];

const by = (list, id) => list.find((each) => each.id === id) ?? list[0];

/** Return how something is sorted after a press on a sort: the same one turns round, another begins as it usually does. */
export function pressed(look, id) {
  return look.sort === id ? { sort: id, down: !look.down } : { sort: id, down: by(SORTS, id).down };
}

function compareKeys(one, other) {
  if (!Array.isArray(one)) return compare(one, other);
  return compare(one[0], other[0]) || compare(one[1], other[1]);
}

/** Return tasks in order; what has nothing to compare stands last whichever way, and equals stand as the board has them. */
export function sorted(tasks, { sort, down }, facts) {
  const { key } = by(SORTS, sort);
  const keyed = tasks.map((task) => [key(task, facts), task]);
  const turn = down ? -1 : 1;
  return keyed.sort(([a, one], [b, other]) => {
    if (a === null || b === null) return (a === null) - (b === null) || byOrder(one, other);
    return turn * compareKeys(a, b) || byOrder(one, other);
  }).map(([, task]) => task);
}

/** Return ordered tasks by their groups, [name, tasks], what has no group last. */
function inGroups(tasks, { key, words, order }, facts) {
  const found = new Map();
  for (const task of tasks) {
    const name = key(task, facts) ?? null;
    if (!found.has(name)) found.set(name, []);
    found.get(name).push(task);
  }
  const rank = order ?? ((name) => text(words(name, facts)));
  const ranked = [...found].map(([name, own]) => [name, own, name === null ? null : rank(name)]);
  return ranked.sort(([one, , a], [other, , b]) => (one === null) - (other === null) || compare(a, b));
}

/**
 * Return the list of some tasks: `rows`, heads of groups ({group, title, count, folded}) and tasks as they stand below
 * each other; `tasks` alone, in the same order; and `places`, the row of each task that is shown, by id.
 */
export function listed(tasks, look, facts) {
  const { id, key, words, order, none } = by(GROUPS, look.group);
  const ordered = sorted(tasks, look, facts);
  const rows = id === "none" ? ordered : inGroups(ordered, { key, words, order }, facts).flatMap(([group, own]) => {
    const folded = look.folded?.includes(`${id} ${group}`) ?? false;
    const head = { group: `${id} ${group}`, title: group === null ? none : words(group, facts), count: own.length, folded };
    return folded ? [head] : [head, ...own];
  });
  const places = new Map();
  rows.forEach((row, index) => row.group === undefined && places.set(row.id, index));
  return { rows, tasks: id === "none" ? ordered : rows.filter((row) => row.group === undefined), places };
}
