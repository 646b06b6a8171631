// Dialogs and commands to add, start, stop and remove sessions.
import { html, useLayoutEffect, useState } from "../lib.js";
import { get, post, query } from "../data/api.js";
import { commandOf, listed, readCrew } from "../rules/session_request.js";
import { inGroup, useCommands } from "../widgets/keys.js";
import { go, whereabouts } from "../data/routes.js";
import { listen, state, touch, useRead, useTopics } from "../data/store.js";
import { some, visible } from "../rules/text.js";
import { attempt, Button, CommandWords, confirm, Dialog, Empty, note, Words } from "../widgets/ui.js";
/** @import { AgentRow, Offer, PermissionLevel } from "types/rest.js" */
/** @import { Session, SessionDialogShown, SessionWish, Trouble } from "types/page.js" */
/** @import { PageEvent } from "types/vendor/htm.js" */

const on = inGroup("Fleet");
const onSession = inGroup("Sessions");

const OFFER = "/api/sessions/offer";
/** @type {Record<string, string>} */
const LEVELS = {
  ask: "Read; ask for the rest",
  edits: "Edit, use git, run the gate",
  full: "Anything, without asking",
};
const PATIENCE = 60000;
/** @type {SessionDialogShown | null} */
let shown = null;

/** @param {SessionDialogShown | null} next */
function show(next) {
  shown = next;
  touch("session-dialog");
}

/**
 * Return the path of something that is asked of a session.
 * @param {string} name
 * @param {string} verb
 */
export const at = (name, verb) => `/api/sessions/${encodeURIComponent(name)}/${verb}`;
const ours = () => [...state.sessions.values()].filter(({ kind }) => kind === "run");
/** @param {...string} goals */
const withGoal = (...goals) =>
  ours()
    .filter(({ goal }) => goals.includes(goal))
    .map(({ name }) => name);

const isAnyStopped = () => withGoal("stopped").length > 0;

/** Say whether covey runs no session here. */
export const hasNoSession = () => ours().length === 0;

// What can be done from everywhere

/**
 * Tell a session something, and say what it does then.
 * @param {string} name
 * @param {string} verb
 * @param {string} done
 */
export const tell = (name, verb, done) => attempt(() => post(at(name, verb)), `${visible(name, 60)} ${done}.`);

/**
 * Ask for new sessions, in a dialog that begins with some values: {agent, count, role}.
 * @param {SessionWish} [values]
 */
export async function addSessions(values = {}) {
  const offer = await attempt(() => get(OFFER));
  if (offer) show({ add: offer, values });
}

/**
 * Ask whether a session shall be removed, saying what becomes of its work.
 * @param {string} name
 */
export function removeSession(name) {
  show({ remove: name });
}

/**
 * @param {{ name: string }[]} rows
 * @param {string} done
 * @param {string} none
 */
const say = (rows, done, none) => note(rows.length ? `${listed(rows.map(({ name }) => name))} ${done}.` : none);

/**
 * Start every session that is stopped; `all: false` those that were stopped together last, as they were.
 * @param {{ all: boolean }} props
 */
async function startSessions({ all }) {
  const rows = await attempt(() => post("/api/start", { all }));
  if (rows) say(rows, rows.length === 1 ? "is back" : "are back", "No session was stopped.");
}

/** Stop every session, if a person is sure; they can be brought back together. */
async function stopSessions() {
  const names = withGoal("working", "paused");
  const body = `Their runs are ended and their tasks go back to the board. What they have not committed is kept. You can bring ${names.length === 1 ? "it" : "all of them"} back.`;
  if (!(await confirm({ title: `Stop ${some(names.length, "session")}?`, body, action: "Stop all", danger: true })))
    return;
  const rows = await attempt(() => post("/api/stop"));
  if (rows) note(`${listed(rows.map(({ name }) => name))} stopped.`, { undo: () => startSessions({ all: false }) });
}

/**
 * Return the commands that the palette finds for some words: what each session can be told, and new ones.
 * @param {string} typed
 */
export function sessionCommands(typed) {
  const wish = readCrew(typed);
  /** @param {Pick<Session, "name" | "goal">} props */
  const one = ({ name, goal }) =>
    [
      goal === "stopped" && onSession(`Start ${name}`, undefined, () => tell(name, "start", "works the board")),
      ["working", "paused"].includes(goal) &&
        onSession(`Stop ${name}`, undefined, () => tell(name, "stop", "is stopped")),
      onSession(`Remove ${name}`, undefined, () => removeSession(name)),
    ].filter((command) => command !== false);
  const asked =
    wish &&
    `Add ${wish.count} ${wish.agent ? `${wish.agent} ` : ""}${wish.count === 1 ? "session" : "sessions"}${wish.role ? ` as ${wish.role}` : ""}`;
  const wished = asked && onSession(asked, undefined, () => addSessions(wish), { also: typed });
  return [...(wished ? [wished] : []), ...ours().flatMap(one)];
}

/**
 * Let a form do what it asks for, once at a time, and keep what went wrong; it stays busy when that went well.
 * @param {Trouble | null} [first]
 */
function useSending(first = null) {
  const [problem, setProblem] = useState(first);
  const [busy, setBusy] = useState(false);
  /** @param {() => Promise<void>} work */
  const sends =
    (work, can = true) =>
    async (/** @type {PageEvent} */ event) => {
      event.preventDefault();
      if (busy || !can) return;
      setBusy(true);
      await work().catch((/** @type {Trouble} */ error) => {
        setProblem(error);
        setBusy(false);
      });
    };
  return { problem, setProblem, busy, sends };
}

// Adding

/** @param {{ offer: Offer, value: string | null, onChange: (event: PageEvent) => void }} props */
function Agents({ offer, value, onChange }) {
  const there = offer.agents.filter(({ absent }) => absent === null);
  const absent = offer.agents.filter((agent) => agent.absent !== null);
  /** @param {AgentRow} props */
  const option = ({ name, absent: why }) =>
    html`<option key=${name} value=${name}>${visible(name, 60)}${why === null ? "" : " (not installed)"}</option>`;
  return html`<select data-first value=${value} onChange=${onChange}>${there.map(option)}${absent.length > 0 && html`<optgroup label="Not installed here">${absent.map(option)}</optgroup>`}</select>`;
}

/** @param {{ problem: Trouble | null }} props */
function Problem({ problem }) {
  return html`<div class="session-problem" role="alert">${problem && html`<p><${Words} text=${problem.message} /></p>${problem.hint && html`<p class="soft"><${Words} text=${problem.hint} /></p>`}`}</div>`;
}

/**
 * Return what the dialog begins with: what was asked for, as far as it is there.
 * @param {Offer} offer
 * @param {SessionWish} props
 */
function begin(offer, { agent = null, count = 1, role = null }) {
  const known = offer.agents.some(({ name }) => name === agent);
  return {
    agent: known ? agent : offer.agent,
    count: String(count),
    name: "",
    role: role ?? "",
    permissions: "",
    start: true,
  };
}

/** @param {{ offer: Offer, values?: SessionWish, onClose: () => void }} props */
function AddDialog({ offer, values = {}, onClose }) {
  const [form, setForm] = useState(() => begin(offer, values));
  const strange =
    values.agent && form.agent !== values.agent
      ? { message: `There is no agent ${visible(values.agent, 60)} here.`, hint: "Choose one of these." }
      : null;
  const { problem, setProblem, busy, sends } = useSending(strange);
  /** @param {string} name */
  const set = (name) => (/** @type {PageEvent} */ event) => {
    const value = event.target.type === "checkbox" ? event.target.checked : event.target.value;
    setForm((now) => ({ ...now, [name]: value }));
    setProblem(null);
  };
  const count = Number.parseInt(form.count, 10) || 0;
  const absent = offer.agents.find(({ name }) => name === form.agent)?.absent ?? null;
  const names = offer.names.slice(0, Math.max(1, count));
  const asked = { ...form, count, name: count === 1 ? form.name.trim() : "", role: form.role.trim() };
  const send = async () => {
    const rows = await post("/api/sessions/add", {
      agent: asked.agent,
      role: asked.role || null,
      permissions: /** @type {PermissionLevel | null} */ (asked.permissions || null),
      start: asked.start,
      ...(asked.name ? { names: [asked.name] } : { count }),
    });
    const [works, is] = rows.length === 1 ? ["works the board", "is there"] : ["work the board", "are there"];
    say(rows, asked.start ? works : is, "");
    onClose();
  };
  const button = `${asked.start ? "Start" : "Add"} ${count > 1 ? `${count} sessions` : "session"}`;
  return html`<${Dialog} title="Add sessions" name="add-sessions" onClose=${onClose}>
    <form onSubmit=${sends(send, count >= 1)}>
      <div class="form-grid session-fields">
        <label class="field form-half"><span>Agent</span><${Agents} offer=${offer} value=${form.agent} onChange=${set("agent")} /></label>
        <label class="field form-half"><span>How many <small class="faint">room for ${offer.room} more</small></span><input type="number" inputmode="numeric" min="1" max="1000" required value=${form.count} onInput=${set("count")} /></label>
        <label class="field form-half"><span>Name</span><input value=${count === 1 ? form.name : listed(names)} onInput=${set("name")} readonly=${count !== 1} placeholder=${names[0] ?? ""} maxlength="64" autocomplete="off" spellcheck=${false} /></label>
        <label class="field form-half"><span>Role <small class="faint">gets tasks of this role</small></span><input value=${form.role} onInput=${set("role")} list="session-roles" placeholder="none" maxlength="64" autocomplete="off" spellcheck=${false} /></label>
        <label class="field wide"><span>May do without asking</span><select value=${form.permissions} onChange=${set("permissions")}>
          <option value="">${`As the settings say: ${LEVELS[offer.permissions].toLowerCase()}`}</option>
          ${Object.entries(LEVELS).map(([level, words]) => html`<option key=${level} value=${level}>${`${level}: ${words.toLowerCase()}`}</option>`)}</select></label>
        <label class="session-check row wide"><input type="checkbox" checked=${form.start} onChange=${set("start")} /> Start at once</label>
      </div>
      <datalist id="session-roles">${[...new Set([...state.tasks.values()].map(({ role }) => role).filter(Boolean))].slice(0, 200).map((role) => html`<option value=${role} />`)}</datalist>
      <${Problem} problem=${problem ?? (absent !== null && asked.start ? { message: `${form.agent} cannot be started: ${absent}.`, hint: "Install it, or choose another agent." } : null)} />
      <div class="session-command"><span class="soft">The same in a terminal</span><code><${CommandWords} text=${commandOf(asked)} most=${300} /></code></div>
      <footer class="dialog-foot"><${Button} onClick=${onClose}>Cancel<//><button class="button primary" type="submit" disabled=${busy || count < 1}>${button}</button></footer>
    </form>
  <//>`;
}

// Removing

/**
 * Return what a session holds now: tasks that it works on, its run, and what it has changed.
 * @param {string} name
 */
function holding(name) {
  const live = state.live.get(name);
  const tasks = [...state.tasks.values()].filter((task) => task.session === name && task.status === "doing");
  return { tasks, run: live?.run ?? null, changed: live && (live.plus || live.minus) ? live : null };
}

/** @param {{ name: string, onClose: () => void }} props */
function RemoveDialog({ name, onClose }) {
  useTopics(`session:${name}`, `live:${name}`, "tasks");
  const [force, setForce] = useState(false);
  const { problem, busy, sends } = useSending();
  const { tasks, run, changed } = holding(name);
  const atWork = tasks.length > 0 || run !== null || problem?.status === 409;
  const send = async () => {
    const since = Date.now() / 1000;
    await post(at(name, "remove"), { force: atWork && force });
    if (whereabouts().place === "sessions" && whereabouts().what === name) go("sessions");
    onClose();
    tellGone(name, since);
  };
  return html`<${Dialog} title=${`Remove ${visible(name, 60)}?`} name="remove-session" onClose=${onClose}>
    <form onSubmit=${sends(send)}>
      ${tasks.map((task) => html`<p key=${task.id}>It works on <b class="mono">${task.id}</b> <${Words} text=${task.title} most=${160} />. Its program is ended, and ${task.id} goes back to the board.</p>`)}
      ${tasks.length === 0 && atWork && html`<p>Its program is ended.</p>`}
      <ul class="session-kept">
        ${tasks.map((task) => html`<li key=${task.id}>What it has committed stays on <code>covey/${task.id}</code>; whoever takes ${task.id} next goes on from there.</li>`)}
        <li>What it has not committed is kept first: <code>covey rescue list</code> shows it.${changed ? html` So far it has changed <span class="plus">+${changed.plus}</span> <span class="minus">−${changed.minus}</span> in ${some(changed.files ?? 0, "file")}.` : ""}</li>
        <li>Its worktree is removed. Its transcripts and costs stay.</li>
      </ul>
      <${Problem} problem=${problem} />
      ${atWork && html`<label class="session-check row"><input type="checkbox" data-first checked=${force} onChange=${(event) => setForce(event.target.checked)} /> Remove it although it is at work</label>`}
      <footer class="dialog-foot"><${Button} onClick=${onClose}>Cancel<//><button class="button danger" type="submit" disabled=${busy || (atWork && !force)}>${atWork ? "End it and remove" : "Remove"}</button></footer>
    </form>
  <//>`;
}

/**
 * Say when a session is gone, and where its last unsaved work is.
 * @param {string} name
 * @param {number} since
 */
async function tellGone(name, since) {
  const until = Date.now() + PATIENCE;
  while (state.sessions.has(name) && Date.now() < until) await new Promise((next) => setTimeout(next, 200));
  if (state.sessions.has(name)) return note(`${visible(name, 60)} goes as soon as its work is safe.`);
  const kept = await get(query("/api/log", { kind: "session.rescued", subject: name, newest: true, limit: 1 })).catch(
    () => [],
  );
  const last = kept.find(({ time }) => time >= since - 1);
  return note(`${visible(name, 60)} is removed.`, {
    hint: last ? `Its unsaved work is kept in ${last.data.ref}.` : "",
  });
}

// Where they are offered

/** Return who could be started, and who was stopped together last; read again only when others are stopped. */
function useStopped() {
  const names = () => withGoal("stopped").join(" ");
  const [stopped, setStopped] = useState(names);
  useLayoutEffect(() => listen(["sessions"], () => setStopped(names())), []); // before anything can be told
  const [offer] = useRead(async () => (stopped ? get(OFFER) : null), [], [stopped]);
  return { stopped: stopped ? stopped.split(" ") : [], together: stopped ? (offer?.stopped_together ?? []) : [] };
}

/** Buttons for all sessions: add some, start or bring back those that are stopped, stop those that work. */
export function FleetButtons() {
  useTopics("sessions");
  const { stopped, together } = useStopped();
  return html`<span class="fleet-buttons" role="group" aria-label="All sessions">
    ${together.length > 0 ? html`<${Button} onClick=${() => startSessions({ all: false })} title=${visible(listed(together), 300)}>Bring back ${together.length}<//>` : stopped.length > 0 && html`<${Button} onClick=${() => startSessions({ all: true })} title=${visible(listed(stopped), 300)}>Start all<//>`}
    ${withGoal("working", "paused").length > 1 && html`<${Button} onClick=${stopSessions}>Stop all<//>`}
    <${Button} kind="primary" keys="A" onClick=${() => addSessions()}>Add sessions<//>
  </span>`;
}

/** What is shown while there is no session: what one is, a button that adds some, and the command that does the same. */
export function NoSession() {
  const [offer] = useRead(() => get(OFFER), [], []);
  const agent = offer?.agents.find(({ name, absent }) => name === offer.agent && absent === null);
  const others = offer?.agents.filter(({ absent }) => absent !== null).map(({ name }) => name) ?? [];
  return html`<${Empty} title="There is no session yet.">
    <p>A session takes one task after the other from the board, with an agent in a worktree of its own.</p>
    <${Button} kind="primary" keys="A" onClick=${() => addSessions()}>Add sessions<//>
    ${offer && agent && html`<div class="session-command"><span>Or in a terminal</span><code><${CommandWords} text=${commandOf({ count: Math.min(4, offer.room || 1), agent: agent.name, start: true })} /></code></div>`}
    ${offer && !agent && html`<p class="soft">No agent is installed here yet. covey knows ${listed(others, 8)}; <code>[agents.NAME]</code> in covey.toml names one of your own.</p>`}
  <//>`;
}

/** @param {Pick<Session, "kind" | "goal">} props */
const mayTake = ({ kind, goal }) => kind === "outside" || (kind === "run" && goal !== "stopped");

/** A line over the board while tasks wait and no session would take them: none is there, or all are stopped. */
export function Crewless() {
  useTopics("sessions", "tasks", "connection");
  const { stopped, together } = useStopped();
  const waiting = state.columns.lists.get("todo").length;
  if (state.connection.state !== "live" || !waiting || [...state.sessions.values()].some(mayTake)) return null;
  const them = waiting === 1 ? "it" : "them";
  return html`<p class="crewless row" role="status"><span>${some(waiting, "task")} to do, and ${stopped.length ? "every session is stopped" : `no session to take ${them}`}.</span>
    ${together.length > 0 ? html`<${Button} kind="primary" onClick=${() => startSessions({ all: false })}>Bring back ${together.length}<//>` : stopped.length > 0 && html`<${Button} kind="primary" onClick=${() => startSessions({ all: true })}>Start all<//>`}
    <${Button} kind=${stopped.length ? "" : "primary"} keys="A" onClick=${() => addSessions()}>Add sessions<//></p>`;
}

/** Where the dialogs open; offers the commands of all sessions. */
export function SessionDialogs() {
  useTopics("session-dialog");
  useCommands(
    [
      on("Add sessions", "A", () => addSessions(), { usual: true, also: "new start session agent worker" }),
      on("Start all sessions that are stopped", undefined, () => startSessions({ all: true }), { when: isAnyStopped }),
      on("Bring back the sessions that were stopped together", undefined, () => startSessions({ all: false }), {
        also: "start all again",
        when: isAnyStopped,
      }),
      on("Stop all sessions", undefined, stopSessions, {
        also: "end agents",
        when: () => withGoal("working", "paused").length > 0,
      }),
    ],
    [],
  );
  const close = () => show(null);
  if (shown?.add) return html`<${AddDialog} offer=${shown.add} values=${shown.values} onClose=${close} />`;
  if (shown?.remove) return html`<${RemoveDialog} key=${shown.remove} name=${shown.remove} onClose=${close} />`;
  return null;
}
