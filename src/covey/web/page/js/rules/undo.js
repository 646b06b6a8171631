// Taking back what was done, pure: steps, what they ask the daemon, what takes them back, and whether that still may be.
//
// A step is {kind, id} with more: edit {changes}, move {below, above, priority}, drop {reason}, reopen, block {reason}.

const MOST = 100;
const LOST = "Not wanted any more.";

/** Return what some steps ask of the daemon, in order: [{method, path, body, ids}]; equal steps in a row are one question. */
export function calls(steps) {
  const made = [];
  for (let from = 0; from < steps.length;) {
    let to = from + 1;
    while (to < steps.length && goTogether(steps[from], steps[to])) to++;
    const part = steps.slice(from, to);
    for (let next = 0; next < part.length; next += 1000) made.push(callOf(part.slice(next, next + 1000)));
    from = to;
  }
  return made.filter(Boolean);
}

const BULK = ["edit", "drop", "reopen"];
const goTogether = (one, other) => BULK.includes(one.kind) && one.kind === other.kind && one.reason === other.reason
  && JSON.stringify(one.changes) === JSON.stringify(other.changes);

function callOf(steps) {
  const [{ kind, id, changes, reason, below = null, above = null, priority }] = steps;
  const ids = steps.map((step) => step.id);
  const own = (method, path, body) => ({ method, path, body, ids });
  if (kind === "move") return below === null && above === null ? null : own("POST", `/api/board/${id}/move`, priority === undefined ? { below, above } : { below, above, priority });
  if (kind === "block") return own("POST", `/api/board/${id}/block`, { reason });
  if (steps.length > 1) return own("POST", "/api/board/bulk", kind === "edit" ? { ids, changes } : kind === "drop" ? { ids, drop: reason } : { ids, reopen: true });
  if (kind === "edit") return own("PATCH", `/api/board/${id}`, changes);
  return own("POST", `/api/board/${id}/${kind}`, kind === "drop" ? { reason } : {});
}

/** Return a task as it will be after a step, as far as one can say; null if one cannot. */
export function guess(task, step) {
  if (step.kind === "edit") return { ...task, ...(step.changes.status && task.status === "blocked" ? { reason: null } : {}), ...step.changes };
  if (step.kind === "drop") return { ...task, status: "dropped", session: null, reason: step.reason };
  if (step.kind === "reopen") return { ...task, status: "todo", reason: null };
  return null;
}

/** Return what takes a step back from a task as it was before; `around` are its neighbours then, for a move. */
export function inverse(step, before, around = {}) {
  const { id } = step;
  if (step.kind === "edit") return inverseOfEdit(step, before);
  if (step.kind === "move") return [{ kind: "move", id, below: around.below ?? null, above: around.above ?? null, priority: before.priority }];
  if (step.kind === "drop") return before.status === "blocked" ? [{ kind: "reopen", id }, { kind: "block", id, reason: before.reason ?? LOST }] : [{ kind: "reopen", id }, ...backTo(id, before)];
  if (step.kind === "reopen") return [before.status === "dropped" ? { kind: "drop", id, reason: before.reason ?? LOST } : { kind: "block", id, reason: before.reason ?? LOST }];
  return [{ kind: "reopen", id }, ...backTo(id, before)];
}

const backTo = (id, before) => (before.status === "backlog" ? [{ kind: "edit", id, changes: { status: "backlog" } }] : []);

function inverseOfEdit({ id, changes }, before) {
  const { status, ...back } = Object.fromEntries(Object.keys(changes).filter((name) => name !== "note").map((name) => [name, before[name] ?? null]));
  const steps = Object.keys(back).length ? [{ kind: "edit", id, changes: back }] : [];
  if (status === undefined || status === changes.status) return steps;
  if (status === "blocked") return [...steps, { kind: "block", id, reason: before.reason ?? LOST }];
  if (status === "dropped") return [...steps, { kind: "drop", id, reason: before.reason ?? LOST }];
  return ["backlog", "todo"].includes(status) ? [{ kind: "edit", id, changes: { ...back, status } }] : steps;
}

/** Return what some steps leave behind: for each id the fields that they set. */
export function leaves(steps) {
  const left = {};
  for (const step of steps) left[step.id] = { ...left[step.id], ...fieldsOf(step) };
  return left;
}

function fieldsOf({ kind, changes, priority }) {
  if (kind === "edit") return Object.fromEntries(Object.entries(changes).filter(([name]) => name !== "note"));
  if (kind === "move") return priority === undefined ? {} : { priority };
  return { status: { drop: "dropped", reopen: "todo", block: "blocked" }[kind] };
}

/** Return where tasks are no longer as they were left: [{id, field}]; a field that is not known counts as unchanged. */
export function differences(left, tasks) {
  const found = [];
  for (const [id, fields] of Object.entries(left)) {
    const now = tasks.get(id);
    if (!now) found.push({ id, field: "task" });
    else for (const [field, value] of Object.entries(fields)) if (now[field] !== undefined && !isSame(now[field], value)) found.push({ id, field });
  }
  return found;
}

const isSame = (one, other) => JSON.stringify(one ?? null) === JSON.stringify(other ?? null);

/** Say in one sentence why something cannot be taken back. */
export function refusal(what, found) {
  const { id, field } = found[0];
  const more = found.length > 1 ? ` (and ${found.length - 1} more)` : "";
  if (field === "task") return `${id} is not on the board any more${more}, so nothing was ${what}.`;
  return `Somebody changed the ${field} of ${id} meanwhile${more}, so nothing was ${what}.`;
}

/** What was done, the last one last: each entry is {label, redo, undo, left}, where `left` is what it left behind. */
export class History {
  constructor() {
    this.done = [];
    this.undone = [];
  }

  /** Note something that was done; what was taken back before can then not be done again. */
  push(entry) {
    this.done.push(entry);
    if (this.done.length > MOST) this.done.shift();
    this.undone.length = 0;
  }

  /** Return what would be taken back next, or done again, or undefined. */
  next(direction) {
    return (direction === "undo" ? this.done : this.undone).at(-1);
  }

  /** Say whether something can still be taken back, or done again. */
  has(direction, entry) {
    return (direction === "undo" ? this.done : this.undone).includes(entry);
  }

  /** Note that something was taken back, or done again. */
  turn(direction, entry = this.next(direction)) {
    this.forget(direction, entry);
    (direction === "undo" ? this.undone : this.done).push(entry);
  }

  /** Forget something: it can be taken back, or done again, no more. */
  forget(direction, entry = this.next(direction)) {
    const from = direction === "undo" ? this.done : this.undone;
    if (from.includes(entry)) from.splice(from.indexOf(entry), 1);
  }
}
