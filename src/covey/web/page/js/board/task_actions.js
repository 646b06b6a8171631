// What a person can do to tasks. Shown at once, sent to the daemon in order, and undoable.
import { ask, get, post } from "../data/api.js";
import { between, dropOn, neighbours, splitNeeds, whyNotAssign } from "../rules/columns.js";
import { find, rowsOf } from "./filtered.js";
import { putTasks, state } from "../data/store.js";
import { isInRows, rowOf } from "../rules/task_fields.js";
import { some } from "../rules/text.js";
import { attempt, confirm, note } from "../widgets/ui.js";
import { calls, differences, guess, History, inverse, leaves, refusal } from "../rules/undo.js";
/** @import { AddTask, Status } from "types/rest.js" */
/** @import { Changes, Entry, Left, Step, Task } from "types/page.js" */

const history = new History();
/** @type {Promise<unknown>} */
let queue = Promise.resolve();

/**
 * Do one thing after the other, however fast they are asked for.
 * @template T
 * @param {() => Promise<T>} work
 * @returns {Promise<T>}
 */
function inTurn(work) {
  const mine = queue.then(work, work);
  queue = mine.catch(() => {});
  return mine;
}

/**
 * Take what the daemon answers about a task, without what only its own page shows.
 * @param {Task | Task[] | null} answer
 */
export function take(answer) {
  const rows = (Array.isArray(answer) ? answer : [answer]).filter((row) => row !== null);
  putTasks(rows.map(rowOf));
}

/**
 * Show what steps will probably lead to; returns what puts it back.
 * @param {Step[]} steps
 */
function foresee(steps) {
  /** @type {Map<string, Task>} */
  const guessed = new Map();
  /** @type {Map<string, Task>} */
  const before = new Map();
  for (const step of steps) {
    const now = guessed.get(step.id) ?? state.tasks.get(step.id);
    if (!now) continue;
    /** @param {string | null | undefined} id */
    const at = (id) => (id ? (guessed.get(id) ?? state.tasks.get(id)) : null);
    const next = step.kind === "move" ? between(now, at(step.below), at(step.above)) : guess(now, step);
    if (!next) continue;
    if (!before.has(step.id)) before.set(step.id, state.tasks.get(step.id) ?? now);
    guessed.set(step.id, next);
  }
  putTasks(guessed.values());
  return () =>
    putTasks([...guessed].filter(([id, row]) => state.tasks.get(id) === row).map(([id, row]) => before.get(id) ?? row));
}

/** @param {Step[]} steps */
async function perform(steps) {
  const back = foresee(steps);
  try {
    await inTurn(async () => {
      for (const { method, path, body } of calls(steps)) take(await ask(method, path, body));
    });
  } catch (error) {
    back();
    throw error;
  }
}

/** @type {Promise<unknown>} */
let doing = Promise.resolve();

/**
 * Do some steps and remember how to take them back; returns whether it was done.
 * @param {string} label
 * @param {Step[]} steps
 * @param {Step[]} undo
 */
function does(label, steps, undo) {
  const mine = carryOut(label, steps, undo);
  doing = Promise.all([doing, mine]);
  return mine;
}

/**
 * @param {string} label
 * @param {Step[]} steps
 * @param {Step[]} undo
 */
async function carryOut(label, steps, undo) {
  if (!steps.length) return false;
  const done = await attempt(() => perform(steps));
  if (done === undefined) return false;
  remember({ label, redo: steps, undo, left: leaves(steps) });
  return true;
}

/** @param {Entry} entry */
function remember(entry) {
  history.push(entry);
  note(entry.label, { undo: () => turn("undo", entry) });
}

/**
 * Take back what was done last, or do again what was taken back last; with an entry, that one, whatever was done since.
 * @param {"undo" | "redo"} direction
 * @param {Entry | null} [entry]
 */
export function turn(direction, entry = null) {
  const mine = doing.then(() => turnNow(direction, entry)); // what was done last may still be on its way
  doing = mine.catch(() => {});
  return mine;
}

/**
 * @param {"undo" | "redo"} direction
 * @param {Entry | null} wanted
 */
async function turnNow(direction, wanted) {
  const entry = wanted ?? history.next(direction);
  const what = direction === "undo" ? "taken back" : "done again";
  if (!entry) return note(direction === "undo" ? "There is nothing to take back." : "There is nothing to do again.");
  if (!history.has(direction, entry))
    return note(`That was ${what} already, or cannot be any more.`, { hint: entry.label });
  const left = direction === "undo" ? entry.left : (entry.leftBack ?? {});
  const now = await attempt(() => known(left));
  if (!now) return undefined;
  const found = differences(left, now);
  if (found.length) {
    history.forget(direction, entry);
    return note(refusal(what, found), { hint: entry.label, bad: true });
  }
  const steps = entry[direction];
  const done = await attempt(() => perform(steps));
  if (done === undefined) return state.connection.state === "live" ? history.forget(direction, entry) : undefined; // a lost one may be tried again
  if (direction === "undo") entry.leftBack = leaves(steps);
  history.turn(direction, entry);
  note(`${direction === "undo" ? "Taken back" : "Done again"}: ${entry.label}`);
}

/**
 * Return the tasks as they are now, whole where a step changed what rows do not show.
 * @param {Left} left
 */
async function known(left) {
  /** @type {Map<string, Task>} */
  const tasks = new Map();
  for (const [id, fields] of Object.entries(left)) {
    const task = Object.keys(fields).some((name) => !isInRows(name))
      ? await get(`/api/board/${id}`)
      : state.tasks.get(id);
    if (task) tasks.set(id, "needs" in fields ? splitNeeds(task) : task);
  }
  return tasks;
}

/** @param {string} id */
const taskOf = (id) => /** @type {Task} */ (state.tasks.get(id));
/** @param {string[]} ids */
const named = (ids) => (ids.length === 1 ? ids[0] : some(ids.length, "task"));

/**
 * Do some steps that are taken back one by one; `before` are the whole tasks where rows do not show what changes.
 * @param {string} label
 * @param {Step[]} steps
 * @param {Map<string, Task>} [before]
 */
function doesEach(label, steps, before = new Map()) {
  const undo = steps.flatMap((step) => inverse(step, before.get(step.id) ?? taskOf(step.id)));
  return does(label, steps, undo);
}

/**
 * Change some tasks in the same way; `before` are the whole tasks where rows do not show what changes.
 * @param {string[]} ids
 * @param {Changes} changes
 * @param {string} label
 * @param {Map<string, Task>} [before]
 */
export function edit(ids, changes, label, before = new Map()) {
  const steps = ids.map((id) => /** @type {Step} */ ({ kind: "edit", id, changes }));
  return doesEach(label, steps, before);
}

/**
 * Raise or lower the priority of some tasks.
 * @param {string[]} ids
 * @param {number} by
 */
export function raise(ids, by) {
  const steps = ids.map(
    (id) => /** @type {Step} */ ({ kind: "edit", id, changes: { priority: taskOf(id).priority + by } }),
  );
  const label =
    ids.length === 1
      ? `${ids[0]} has priority ${taskOf(ids[0]).priority + by}`
      : `${named(ids)} ${by > 0 ? "raised" : "lowered"}`;
  return doesEach(label, steps);
}

/**
 * Give tasks that wait to a session, or with null to whoever comes.
 * @param {string[]} ids
 * @param {string | null} name
 */
export function assign(ids, name) {
  const fit = ids.filter((id) => whyNotAssign(taskOf(id)) === null);
  if (!fit.length) return note(whyNotAssign(taskOf(ids[0])) ?? "", { bad: true });
  return edit(fit, { assignee: name }, name === null ? `${named(fit)} for whoever comes` : `${named(fit)} for ${name}`);
}

/**
 * Put tasks into the backlog or onto the board; those that cannot go there stay.
 * @param {string[]} ids
 * @param {"backlog" | "todo"} status
 */
export function setStatus(ids, status) {
  const fit = ids.filter(
    (id) => ["backlog", "todo", "blocked", "dropped"].includes(taskOf(id).status) && taskOf(id).status !== status,
  );
  if (!fit.length)
    return note(`${named(ids)} cannot go to ${status === "todo" ? "To do" : "the backlog"}.`, { bad: true });
  return edit(fit, { status }, `${named(fit)} ${status === "todo" ? "to do" : "in the backlog"}`);
}

/**
 * Drop some tasks, after a person has said why.
 * @param {string[]} ids
 */
export async function drop(ids) {
  const fit = ids.filter((id) => !["done", "dropped"].includes(taskOf(id)?.status));
  if (!fit.length) return note(`${named(ids)} ${ids.length === 1 ? "has" : "have"} ended.`, { bad: true });
  const body = fit.length === 1 ? taskOf(fit[0]).title : fit.slice(0, 12).join(", ") + (fit.length > 12 ? " …" : "");
  const reason = await confirm({
    title: `Drop ${named(fit)}?`,
    body,
    action: "Drop",
    text: "Why",
    value: "Not wanted any more.",
    danger: true,
    required: true,
  });
  if (!reason) return false;
  const steps = fit.map((id) => /** @type {Step} */ ({ kind: "drop", id, reason: reason.replace(/\s+/g, " ") }));
  return doesEach(`${named(fit)} dropped`, steps);
}

/**
 * Let tasks that are blocked or were dropped wait on the board again.
 * @param {string[]} ids
 */
export function reopen(ids) {
  const fit = ids.filter((id) => ["blocked", "dropped"].includes(taskOf(id)?.status));
  if (!fit.length) return note("Only blocked and dropped tasks can be reopened.", { bad: true });
  const steps = fit.map((id) => /** @type {Step} */ ({ kind: "reopen", id }));
  return doesEach(`${named(fit)} reopened`, steps);
}

/**
 * Take tasks out of play until a person decides, after one has said what.
 * @param {string[]} ids
 */
export async function block(ids) {
  const reason = await confirm({
    title: `Block ${named(ids)}?`,
    action: "Block",
    text: "What has to be decided",
    required: true,
  });
  if (!reason) return false;
  const steps = ids.map((id) => /** @type {Step} */ ({ kind: "block", id, reason: reason.replace(/\s+/g, " ") }));
  return doesEach(`${named(ids)} blocked`, steps);
}

/**
 * Take tasks from the sessions that hold them, if a person is sure.
 * @param {string[]} ids
 */
export async function release(ids) {
  const held = ids.filter((id) => taskOf(id)?.status === "doing");
  const body = held.map((id) => `${id} from ${taskOf(id).session}`).join(", ");
  if (
    !held.length ||
    !(await confirm({ title: "Take it back from its session?", body, action: "Take back", danger: true }))
  )
    return false;
  for (const id of held) {
    const done = await attempt(async () =>
      take(await post(`/api/board/${id}/release`, { reason: "A person took it back." })),
    );
    if (done === undefined) return false;
  }
  note(`${named(held)} back on the board`);
  return true;
}

/**
 * Add a task; returns it, or undefined.
 * @param {Partial<Task>} task
 */
export function add(task) {
  const mine = addNow(task);
  doing = Promise.all([doing, mine]);
  return mine;
}

/** @param {Partial<Task>} task */
async function addNow(task) {
  const added = await attempt(() => inTurn(() => post("/api/board", /** @type {AddTask} */ (task))));
  if (!added) return undefined;
  take(added);
  /** @type {Step[]} */
  const steps = [{ kind: "reopen", id: added.id }];
  remember({
    label: `${added.id} added`,
    redo: steps,
    undo: [{ kind: "drop", id: added.id, reason: "Taken back right after it was added." }],
    left: { [added.id]: { status: added.status, title: added.title } },
  });
  return added;
}

/**
 * Put tasks at a place of a column that a person orders; `index` counts as the column shows them now.
 * @param {string[]} ids
 * @param {string} column
 * @param {number} index
 */
export async function place(ids, column, index) {
  const rows = rowsOf(column);
  const { below, above } = neighbours(rows, index, ids);
  const ordered = ids.map((id) => state.tasks.get(id)).filter((task) => task !== undefined);
  /** @type {Step[]} */
  const steps = [];
  const undo = undoOfPlace(ordered, column);
  let last = below;
  for (const task of ordered) {
    if (task.status !== column)
      steps.push({ kind: "edit", id: task.id, changes: { status: /** @type {Status} */ (column) } });
    if (last !== null || above !== null) steps.push({ kind: "move", id: task.id, below: last, above });
    last = task.id;
  }
  return does(`${named(ids)} moved`, steps, undo);
}

/**
 * Return what puts tasks back where they stand now, in the order in which they stand.
 * @param {Task[]} tasks
 * @param {string} column
 */
function undoOfPlace(tasks, column) {
  const ids = tasks.map(({ id }) => id);
  /** @type {Step[]} */
  const steps = [];
  for (const { task, index, rows } of tasks.map(standing).sort((one, other) => one.index - other.index)) {
    if (task.status !== column)
      steps.push(...inverse({ kind: "edit", id: task.id, changes: { status: /** @type {Status} */ (column) } }, task));
    const around = { below: rows[index - 1]?.id ?? null, above: neighbours(rows, index + 1, ids).above };
    if (["backlog", "todo"].includes(task.status)) steps.push(...inverse({ kind: "move", id: task.id }, task, around));
  }
  return steps;
}

/**
 * Return where a task stands in its column, whatever the filter shows.
 * @param {Task} task
 */
function standing(task) {
  const rows = state.columns.lists.get(state.columns.where.get(task.id)?.column ?? "") ?? [];
  return { task, rows, index: rows.findIndex(({ id }) => id === task.id) };
}

/**
 * Move tasks one place up or down in their column.
 * @param {string[]} ids
 * @param {number} by
 */
export function shift(ids, by) {
  const places = ids
    .flatMap((id) => {
      const at = find(id);
      return at && ["backlog", "todo"].includes(at.column) ? [{ id, ...at }] : [];
    })
    .sort((one, other) => one.index - other.index);
  if (!places.length) return note("Only Backlog and To do are ordered by hand.", { bad: true });
  const { column } = places[0];
  const own = places.filter((each) => each.column === column);
  const index = by < 0 ? own[0].index - 1 : own.at(-1).index + 2;
  if (index < 0 || index > rowsOf(column).length) return false;
  const moved = own.map(({ id }) => id);
  return place(moved, column, index);
}

/**
 * Do what it means that tasks are dropped on a column at a place in it.
 * @param {string[]} ids
 * @param {string} column
 * @param {number} index
 */
export async function dropAt(ids, column, index) {
  const found = ids.map((id) => ({ id, ...dropOn(taskOf(id), find(id)?.column, column) }));
  const refused = found.find(({ why }) => why);
  if (refused) return note(`${refused.id} stays: ${refused.why}`, { bad: true });
  const kinds = new Set(found.map(({ does: kind }) => kind));
  if (kinds.has("block")) return block(ids);
  if (kinds.has("release")) return release(ids);
  return place(ids, column, index);
}
