// Everything the page knows, and who listens to which topic. Listeners are called once per frame.
import { useEffect, useLayoutEffect, useState } from "../lib.js";
import { get, Problem, query } from "./api.js";
import { Columns, isSame, QUICK } from "../rules/columns.js";
/** @import { ConnectionState, Ending, Known, LiveNews, Session, Task } from "types/page.js" */

/** @type {Known} */
export const state = {
  tasks: new Map(),
  sessions: new Map(),
  live: new Map(),
  costs: new Map(),
  columns: new Columns((/** @type {string} */ name) => state.sessions.get(name)?.state === "needs-you"),
  counts: {},
  inbox: [],
  machine: null,
  limits: [],
  today: null,
  paused: false,
  waits: { lanes: {}, tasks: {} },
  connection: { state: "connecting", since: Date.now() / 1000, end: null },
  loaded: { whole: false, total: 0 },
  filter: { text: "", quick: null },
};

/** @type {Map<string, Set<(topics: Set<string>) => unknown>>} */
const listeners = new Map();
/** @type {Set<string>} */
let changed = new Set();
let timer = 0;

/**
 * Say that a topic changed; all who listen hear of it within one frame.
 * @param {...string} topics
 */
export function touch(...topics) {
  for (const topic of topics) changed.add(topic);
  if (timer) return;
  timer = 1;
  if (document.hidden) setTimeout(tell, 16);
  else requestAnimationFrame(tell);
}

function tell() {
  timer = 0;
  const topics = changed;
  changed = new Set();
  /** @type {Set<(topics: Set<string>) => unknown>} */
  const heard = new Set();
  for (const topic of topics) for (const listen of listeners.get(topic) ?? []) heard.add(listen);
  for (const listen of heard) listen(topics);
}

/**
 * Call a function after each change of some topics; returns what ends that.
 * @param {string[]} topics
 * @param {(topics: Set<string>) => unknown} heard
 */
export function listen(topics, heard) {
  for (const topic of topics) {
    const known = listeners.get(topic) ?? new Set();
    listeners.set(topic, known.add(heard));
  }
  return () =>
    topics.forEach((topic) => {
      const left = listeners.get(topic);
      left?.delete(heard);
      if (left?.size === 0) listeners.delete(topic); // there is a topic for each task that was ever drawn
    });
}

/**
 * Draw a component again when one of some topics changes. Topics: `tasks`, `task:ID`, `column:ID`, `sessions`,
 * `session:NAME`, `live`, `live:NAME`, `counts`, `inbox`, `alerts`, `machine`, `connection`, `fleet`, `filter`, `waits`, and whatever the
 * daemon invalidates: `leases`, `mail`, `merges`, `runs`, `questions`, `permits`, `overlaps`, `log`, `comments`.
 * @param {...string} topics
 */
export function useTopics(...topics) {
  const [, again] = useState(0);
  // Before the next frame: a change that is told between drawing and listening would be missed for good.
  useLayoutEffect(() => listen(topics, () => again((count) => count + 1)), [topics.join(" ")]);
}

/**
 * Return what a function reads from the daemon, read again after a change of the topics: [value, error, read].
 * @template T
 * @param {() => T | Promise<T>} read
 * @param {string[]} topics
 * @param {unknown[]} [inputs]
 * @returns {[T | null, Problem | null, () => void]}
 */
export function useRead(read, topics, inputs = []) {
  const [found, setFound] = useState(/** @type {[T | null, Problem | null]} */ ([null, null]));
  const [again, setAgain] = useState(0);
  useEffect(() => {
    let current = true;
    let busy = false;
    let stale = false;
    let failed = false;
    const load = async () => {
      if (busy) {
        stale = true;
        return;
      }
      busy = true;
      do {
        stale = false;
        try {
          const value = await read();
          failed = false;
          if (current) setFound([value, null]);
        } catch (error) {
          failed = true;
          if (current) setFound((before) => [before[0], /** @type {Problem} */ (error)]);
        }
      } while (stale && current);
      busy = false;
    };
    load();
    const leave = listen(topics, load);
    const leaveBack = listen(["connection"], () => failed && state.connection.state === "live" && load());
    return () => {
      current = false;
      leave();
      leaveBack();
    };
  }, [...inputs, again]);
  return [...found, () => setAgain((count) => count + 1)];
}

// Tasks

/**
 * Take rows of tasks as they are now; an older row never replaces a newer one.
 * @param {Iterable<Task>} rows
 */
export function putTasks(rows) {
  for (const row of rows) {
    told?.add(row.id);
    const known = state.tasks.get(row.id);
    if (!known || known.updated <= row.updated) putTask(row, known);
  }
}

/**
 * @param {Task} row
 * @param {Task | undefined} known
 */
function putTask(row, known) {
  if (known && isSame(known, row)) return;
  state.tasks.set(row.id, row);
  for (const column of state.columns.put(row)) touch(`column:${column}`);
  touch("tasks", `task:${row.id}`);
}

const PAGE = 1000;
/**
 * The tasks that were told of while the board is read: what is told is newer than what is read. Null while it is not.
 * @type {Set<string> | null}
 */
let told = null;

/** Read the whole board, page by page, beside what is told live; tasks that are gone vanish, whatever was known of them. */
export async function loadBoard() {
  /** @type {Set<string>} */
  const own = new Set();
  told = own;
  /** @type {Set<string>} */
  const seen = new Set();
  /** @type {string | null} */
  let after = null;
  for (;;) {
    /** @type {Task[] & { total?: number }} */
    const rows = await get(query("/api/board", { limit: PAGE, after }));
    if (own !== told) return;
    for (const row of rows) {
      seen.add(row.id);
      const known = state.tasks.get(row.id);
      if (!known || !own.has(row.id) || known.updated <= row.updated) putTask(row, known);
    }
    state.loaded = { whole: rows.length < PAGE, total: rows.total ?? seen.size };
    touch("loaded");
    if (rows.length < PAGE) break;
    after = rows.at(-1).id;
    await new Promise((go) => setTimeout(go));
  }
  told = null;
  for (const id of [...state.tasks.keys()]) if (!seen.has(id) && !own.has(id)) dropTask(id);
}

/** @param {string} id */
function dropTask(id) {
  state.tasks.delete(id);
  for (const column of state.columns.remove(id)) touch(`column:${column}`);
  touch("tasks", `task:${id}`);
}

/** Return how many tasks each quick filter lets through. */
export function tally() {
  const found = Object.fromEntries(Object.keys(QUICK).map((name) => [name, 0]));
  const named = { needs: "needs", working: "doing", review: "review", merging: "merging" };
  for (const [name, column] of Object.entries(named)) found[name] = state.columns.lists.get(column).length;
  for (const [column, list] of state.columns.lists) {
    if (column === "done") continue;
    for (const task of list)
      if (QUICK.failed.lets(task, column, task.session === null ? undefined : state.live.get(task.session)))
        found.failed++;
  }
  return found;
}

// Sessions

/**
 * Take rows of sessions; a session that begins or ceases to ask moves its tasks.
 * @param {Session[]} rows
 */
export function putSessions(rows) {
  for (const row of rows) {
    const before = state.sessions.get(row.name);
    if (row.removed) state.sessions.delete(row.name);
    else state.sessions.set(row.name, row);
    touch(`session:${row.name}`);
    if ((before?.state === "needs-you") !== (state.sessions.get(row.name)?.state === "needs-you"))
      moveTasksOf(row.name);
  }
  if (rows.length) touch("sessions");
}

/**
 * Take all sessions at once; those that are not among them are gone.
 * @param {Session[]} rows
 */
export function setSessions(rows) {
  const names = new Set(rows.map((row) => row.name));
  putSessions([
    ...[...state.sessions.values()].filter(({ name }) => !names.has(name)).map((row) => ({ ...row, removed: true })),
    ...rows,
  ]);
}

/** @param {string} name */
function moveTasksOf(name) {
  for (const column of ["doing", "needs"]) {
    for (const task of state.columns.lists.get(column).filter((each) => each.session === name)) {
      for (const changed of state.columns.put(task)) touch(`column:${changed}`);
    }
  }
}

// What is told beside the log

/**
 * Take what the daemon says of this moment: the machine, limits, spending, and what each session does.
 * @param {LiveNews} said
 */
export function putLive(said) {
  for (const name of AROUND) {
    if (said[name] === undefined || said[name] === null) continue;
    Object.assign(state, { [name]: said[name] });
    heard?.add(name);
  }
  for (const row of said.sessions ?? []) {
    heard?.add(`live:${row.session}`);
    state.live.set(row.session, row);
    touch(`live:${row.session}`);
  }
  for (const name of said.gone ?? []) {
    heard?.add(`live:${name}`);
    state.live.delete(name);
    touch(`live:${name}`);
  }
  touch("live", "machine", "fleet", ...(said.waits ? ["waits"] : []));
}

/**
 * Return why a task waits that is ready, or null.
 * @param {Task} task
 */
export function waitOf(task) {
  return state.waits.tasks[task.id] ?? state.waits.lanes[task.lane] ?? null;
}

/** @type {("machine" | "limits" | "today" | "paused" | "waits")[]} */
const AROUND = ["machine", "limits", "today", "paused", "waits"];
/**
 * What was told of this moment while it is read whole. Null while it is not.
 * @type {Set<string> | null}
 */
let heard = null;

/** Read this moment whole: what is gone since it was last told vanishes, and what is told meanwhile stays. */
export async function loadLive() {
  /** @type {Set<string>} */
  const own = new Set();
  heard = own;
  const whole = await get("/api/live");
  if (own !== heard) return;
  heard = null;
  const sessions = whole.sessions.filter(({ session }) => !own.has(`live:${session}`));
  const there = new Set(whole.sessions.map(({ session }) => session));
  const gone = [...state.live.keys()].filter((name) => !there.has(name) && !own.has(`live:${name}`));
  putLive({
    ...Object.fromEntries(AROUND.filter((name) => !own.has(name)).map((name) => [name, whole[name]])),
    sessions,
    gone,
  });
}

let reading = false;
let stale = false;
const LATER = 3000;

/** Read the inbox again; what many changes ask for at once is read once, and soon however many more there are. */
export async function loadInbox() {
  stale = true;
  if (reading) return;
  reading = true;
  try {
    while (stale) {
      await new Promise((go) => setTimeout(go, 30));
      stale = false;
      state.inbox = await get("/api/inbox");
      touch("inbox");
      await new Promise((go) => setTimeout(go, 100));
    }
  } catch (error) {
    if (!(error instanceof Problem)) throw error; // not the daemon's word, but a bug
    if (error.status !== 401) setTimeout(loadInbox, LATER);
  } finally {
    reading = false;
  }
}

/**
 * Note how the connection stands; of a lost one also how the daemon ended, {why, agents}, once that is known.
 * @param {ConnectionState} next
 * @param {Ending | null} [end]
 */
export function setConnection(next, end = null) {
  const { state: before, since, end: known } = state.connection;
  if (before === next && (end === null || end === known)) return;
  state.connection = { state: next, since: before === next ? since : Date.now() / 1000, end };
  touch("connection");
}

const AT_WORK = new Set(["starting", "working", "needs-you", "limited", "compacting", "stalled"]);

/** Return how many agents of covey's were at work when we last heard. */
export function atWork() {
  return [...state.sessions.values()].filter((row) => row.kind === "run" && AT_WORK.has(row.state)).length;
}

/**
 * Show only some tasks: {text} or {quick} replaces that part of the filter, what is left out stays.
 * @param {Partial<Known["filter"]>} change
 */
export function setFilter(change) {
  state.filter = { ...state.filter, ...change };
  touch("filter");
}
