// Undo and redo: the steps, the requests they lead to, their inverses, and whether they can still be undone.
//
// A step is {kind, id} with more: edit {changes}, move {below, above, priority}, drop {reason}, reopen, block {reason}.
/** @import { Call, Changes, EditStep, Entry, Left, Step, StepParts, Task } from "types/page.js" */

const MOST = 100;
const LOST = "Not wanted any more.";

/**
 * Return what some steps ask of the daemon, in order: [{method, path, body, ids}]; equal steps in a row are one
 * question.
 * @param {Step[]} steps
 * @returns {Call[]}
 */
export function calls(steps) {
  /** @type {(Call | null)[]} */
  const made = [];
  for (let from = 0; from < steps.length; ) {
    let to = from + 1;
    while (to < steps.length && goTogether(steps[from], steps[to])) to++;
    const part = steps.slice(from, to);
    for (let next = 0; next < part.length; next += 1000) made.push(callOf(part.slice(next, next + 1000)));
    from = to;
  }
  return made.filter((call) => call !== null);
}

const BULK = ["edit", "drop", "reopen"];
/**
 * @param {StepParts} one
 * @param {StepParts} other
 */
const goTogether = (one, other) =>
  BULK.includes(one.kind) &&
  one.kind === other.kind &&
  one.reason === other.reason &&
  JSON.stringify(one.changes) === JSON.stringify(other.changes);

/** @param {StepParts[]} steps */
function callOf(steps) {
  const [{ kind, id, changes, reason, below = null, above = null, priority }] = steps;
  const ids = steps.map((step) => step.id);
  /**
   * @param {string} method
   * @param {string} path
   * @param {unknown} body
   */
  const own = (method, path, body) => ({ method, path, body, ids });
  if (kind === "move")
    return below === null && above === null
      ? null
      : own("POST", `/api/board/${id}/move`, priority === undefined ? { below, above } : { below, above, priority });
  if (kind === "block") return own("POST", `/api/board/${id}/block`, { reason });
  if (steps.length > 1)
    return own(
      "POST",
      "/api/board/bulk",
      kind === "edit" ? { ids, changes } : kind === "drop" ? { ids, drop: reason } : { ids, reopen: true },
    );
  if (kind === "edit") return own("PATCH", `/api/board/${id}`, changes);
  return own("POST", `/api/board/${id}/${kind}`, kind === "drop" ? { reason } : {});
}

/**
 * Return a task as it will be after a step, as far as one can say; null if one cannot.
 * @param {Task} task
 * @param {Step} step
 * @returns {Task | null}
 */
export function guess(task, step) {
  if (step.kind === "edit")
    return { ...task, ...(step.changes.status && task.status === "blocked" ? { reason: null } : {}), ...step.changes };
  if (step.kind === "drop") return { ...task, status: "dropped", session: null, reason: step.reason };
  if (step.kind === "reopen") return { ...task, status: "todo", reason: null };
  return null;
}

/**
 * Return what takes a step back from a task as it was before; `around` are its neighbours then, for a move.
 * @param {Step} step
 * @param {Task} before
 * @param {{ below?: string | null, above?: string | null }} [around]
 * @returns {Step[]}
 */
export function inverse(step, before, around = {}) {
  const { id } = step;
  if (step.kind === "edit") return inverseOfEdit(step, before);
  if (step.kind === "move")
    return [{ kind: "move", id, below: around.below ?? null, above: around.above ?? null, priority: before.priority }];
  const reason = before.reason ?? LOST;
  if (step.kind === "reopen") return [{ kind: before.status === "dropped" ? "drop" : "block", id, reason }];
  if (step.kind === "drop" && before.status === "blocked")
    return [
      { kind: "reopen", id },
      { kind: "block", id, reason },
    ];
  return [{ kind: "reopen", id }, ...backTo(id, before)];
}

/**
 * @param {string} id
 * @param {Task} before
 * @returns {Step[]}
 */
const backTo = (id, before) =>
  before.status === "backlog" ? [{ kind: "edit", id, changes: { status: "backlog" } }] : [];

/**
 * @param {EditStep} props
 * @param {Task} before
 * @returns {Step[]}
 */
function inverseOfEdit({ id, changes }, before) {
  const { status, ...back } = /** @type {Changes} */ (
    Object.fromEntries(
      Object.keys(changes)
        .filter((name) => name !== "note")
        .map((name) => [name, before[/** @type {keyof Task} */ (name)] ?? null]),
    )
  );
  /** @type {Step[]} */
  const steps = Object.keys(back).length ? [{ kind: "edit", id, changes: back }] : [];
  if (status === undefined || status === changes.status) return steps;
  if (status === "blocked") return [...steps, { kind: "block", id, reason: before.reason ?? LOST }];
  if (status === "dropped") return [...steps, { kind: "drop", id, reason: before.reason ?? LOST }];
  return ["backlog", "todo"].includes(status) ? [{ kind: "edit", id, changes: { ...back, status } }] : steps;
}

/**
 * Return what some steps leave behind: for each id the fields that they set.
 * @param {Step[]} steps
 */
export function leaves(steps) {
  /** @type {Left} */
  const left = {};
  for (const step of steps) left[step.id] = { ...left[step.id], ...fieldsOf(step) };
  return left;
}

/** @param {StepParts} props */
function fieldsOf({ kind, changes = {}, priority }) {
  if (kind === "edit") return Object.fromEntries(Object.entries(changes).filter(([name]) => name !== "note"));
  if (kind === "move") return priority === undefined ? {} : { priority };
  return { status: { drop: "dropped", reopen: "todo", block: "blocked" }[kind] };
}

/**
 * @param {unknown} now
 * @param {unknown} left
 */
const isUnchanged = (now, left) => now === undefined || isSame(now, left);

/**
 * Return where tasks are no longer as they were left: [{id, field}]; a field that is not known counts as unchanged.
 * @param {Left} left
 * @param {Map<string, Task>} tasks
 */
export function differences(left, tasks) {
  /** @type {{ id: string, field: string }[]} */
  const found = [];
  for (const [id, fields] of Object.entries(left)) {
    const now = tasks.get(id);
    if (!now) found.push({ id, field: "task" });
    else
      for (const [field, value] of Object.entries(fields))
        if (!isUnchanged(now[/** @type {keyof Task} */ (field)], value)) found.push({ id, field });
  }
  return found;
}

/**
 * @param {unknown} one
 * @param {unknown} other
 */
const isSame = (one, other) => JSON.stringify(one ?? null) === JSON.stringify(other ?? null);

/**
 * Say in one sentence why something cannot be taken back.
 * @param {string} what
 * @param {{ id: string, field: string }[]} found
 */
export function refusal(what, found) {
  const { id, field } = found[0];
  const more = found.length > 1 ? ` (and ${found.length - 1} more)` : "";
  if (field === "task") return `${id} is not on the board any more${more}, so nothing was ${what}.`;
  return `Somebody changed the ${field} of ${id} meanwhile${more}, so nothing was ${what}.`;
}

/** What was done, the last one last: each entry is {label, redo, undo, left}, where `left` is what it left behind. */
export class History {
  constructor() {
    /**
     * What can be taken back, and what can be done again.
     * @type {{ undo: Entry[], redo: Entry[] }}
     */
    this.entries = { undo: [], redo: [] };
  }

  /**
   * Note something that was done; what was taken back before can then not be done again.
   * @param {Entry} entry
   */
  push(entry) {
    this.entries.undo.push(entry);
    if (this.entries.undo.length > MOST) this.entries.undo.shift();
    this.entries.redo.length = 0;
  }

  /**
   * Return what would be taken back next, or done again, or undefined.
   * @param {"undo" | "redo"} direction
   */
  next(direction) {
    return this.entries[direction].at(-1);
  }

  /**
   * Say whether something can still be taken back, or done again.
   * @param {"undo" | "redo"} direction
   * @param {Entry} entry
   */
  has(direction, entry) {
    return this.entries[direction].includes(entry);
  }

  /**
   * Note that something was taken back, or done again.
   * @param {"undo" | "redo"} direction
   */
  turn(direction, entry = this.next(direction)) {
    this.forget(direction, entry);
    this.entries[direction === "undo" ? "redo" : "undo"].push(entry);
  }

  /**
   * Forget something: it can be taken back, or done again, no more.
   * @param {"undo" | "redo"} direction
   */
  forget(direction, entry = this.next(direction)) {
    const from = this.entries[direction];
    if (from.includes(entry)) from.splice(from.indexOf(entry), 1);
  }
}
