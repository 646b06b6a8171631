// Adding, bringing back and removing sessions: the dialogs, and the commands that every view offers.
import { html, useEffect, useState } from "./lib.js";
import { get, post, query } from "./api.js";
import { commandOf, listed, readCrew } from "./crew.js";
import { useCommands } from "./keys.js";
import { go, whereabouts } from "./places.js";
import { listen, state, touch, useRead, useTopics } from "./store.js";
import { some, visible } from "./text.js";
import { attempt, Button, confirm, Dialog, Empty, note, Words } from "./ui.js";

const OFFER = "/api/sessions/offer";
const LEVELS = { ask: "Read; ask for the rest", edits: "Edit, use git, run the gate", full: "Anything, without asking" };
const PATIENCE = 60000;
let shown = null;

function show(next) {
  shown = next;
  touch("session-dialog");
}

const at = (name, verb) => `/api/sessions/${encodeURIComponent(name)}/${verb}`;
const ours = () => [...state.sessions.values()].filter(({ kind }) => kind === "run");
const withGoal = (...goals) => ours().filter(({ goal }) => goals.includes(goal)).map(({ name }) => name);

/** Say whether covey runs no session here. */
export const hasNoSession = () => ours().length === 0;

// What can be done from everywhere

/** Ask for new sessions, in a dialog that begins with some values: {agent, count, role}. */
export async function addSessions(values = {}) {
  const offer = await attempt(() => get(OFFER));
  if (offer) show({ add: offer, values });
}

/** Ask whether a session shall be removed, saying what becomes of its work. */
export function removeSession(name) {
  show({ remove: name });
}

const say = (rows, done, none) => note(rows.length ? `${listed(rows.map(({ name }) => name))} ${done}.` : none);

/** Start every session that is stopped; `all: false` those that were stopped together last, as they were. */
export async function startSessions({ all }) {
  const rows = await attempt(() => post("/api/start", { all }));
  if (rows) say(rows, rows.length === 1 ? "is back" : "are back", "No session was stopped.");
}

/** Stop every session, if a person is sure; they can be brought back together. */
export async function stopSessions() {
  const names = withGoal("working", "paused");
  const body = `Their runs are ended and their tasks go back to the board. What they have not committed is kept. You can bring ${names.length === 1 ? "it" : "all of them"} back.`;
  if (!(await confirm({ title: `Stop ${some(names.length, "session")}?`, body, action: "Stop all", danger: true }))) return;
  const rows = await attempt(() => post("/api/stop"));
  if (rows) note(`${listed(rows.map(({ name }) => name))} stopped.`, { undo: () => startSessions({ all: false }) });
}

/** Return the commands that the palette finds for some words: what each session can be told, and new ones. */
export function sessionCommands(typed) {
  const wish = readCrew(typed);
  const one = ({ name, goal }) => [
    goal === "stopped" && { label: `Start ${name}`, group: "Sessions", run: () => attempt(() => post(at(name, "start")), `${visible(name, 60)} works the board.`) },
    ["working", "paused"].includes(goal) && { label: `Stop ${name}`, group: "Sessions", run: () => attempt(() => post(at(name, "stop")), `${visible(name, 60)} is stopped.`) },
    { label: `Remove ${name}`, group: "Sessions", run: () => removeSession(name) },
  ].filter(Boolean);
  const wished = wish && { label: `Add ${wish.count} ${wish.agent ? `${wish.agent} ` : ""}${wish.count === 1 ? "session" : "sessions"}${wish.role ? ` as ${wish.role}` : ""}`, group: "Sessions", also: typed, run: () => addSessions(wish) };
  return [...(wished ? [wished] : []), ...ours().flatMap(one)];
}

// Adding

function Agents({ offer, value, onChange }) {
  const there = offer.agents.filter(({ absent }) => absent === null);
  const absent = offer.agents.filter((agent) => agent.absent !== null);
  const option = ({ name, absent: why }) => html`<option key=${name} value=${name}>${visible(name, 60)}${why === null ? "" : " (not installed)"}</option>`;
  return html`<select data-first value=${value} onChange=${onChange}>${there.map(option)}${absent.length > 0 && html`<optgroup label="Not installed here">${absent.map(option)}</optgroup>`}</select>`;
}

function Problem({ problem }) {
  return html`<div class="session-problem" role="alert">${problem && html`<p><${Words} text=${problem.message} /></p>${problem.hint && html`<p class="soft"><${Words} text=${problem.hint} /></p>`}`}</div>`;
}

/** Return what the dialog begins with: what was asked for, as far as it is there. */
function begin(offer, { agent = null, count = 1, role = null }) {
  const known = offer.agents.some(({ name }) => name === agent);
  return { agent: known ? agent : offer.agent, count: String(count), name: "", role: role ?? "", permissions: "", start: true };
}

function AddDialog({ offer, values, onClose }) {
  const [form, setForm] = useState(() => begin(offer, values));
  const strange = values.agent && form.agent !== values.agent ? { message: `There is no agent ${visible(values.agent, 60)} here.`, hint: "Choose one of these." } : null;
  const [problem, setProblem] = useState(strange);
  const [busy, setBusy] = useState(false);
  const set = (name) => (event) => {
    const value = event.target.type === "checkbox" ? event.target.checked : event.target.value;
    setForm((now) => ({ ...now, [name]: value }));
    setProblem(null);
  };
  const count = Number.parseInt(form.count, 10) || 0;
  const absent = offer.agents.find(({ name }) => name === form.agent)?.absent ?? null;
  const names = offer.names.slice(0, Math.max(1, count));
  const asked = { ...form, count, name: count === 1 ? form.name.trim() : "", role: form.role.trim() };
  const send = async (event) => {
    event.preventDefault();
    if (busy || count < 1) return;
    setBusy(true);
    const body = { agent: asked.agent, role: asked.role || null, permissions: asked.permissions || null, start: asked.start, ...(asked.name ? { names: [asked.name] } : { count }) };
    try {
      const rows = await post("/api/sessions/add", body);
      say(rows, asked.start ? (rows.length === 1 ? "works the board" : "work the board") : rows.length === 1 ? "is there" : "are there", "");
      onClose();
    } catch (error) {
      setProblem(error);
      setBusy(false);
    }
  };
  const button = `${asked.start ? "Start" : "Add"} ${count > 1 ? `${count} sessions` : "session"}`;
  return html`<${Dialog} title="Add sessions" name="add-sessions" onClose=${onClose}>
    <form onSubmit=${send}>
      <div class="session-fields">
        <label class="field"><span>Agent</span><${Agents} offer=${offer} value=${form.agent} onChange=${set("agent")} /></label>
        <label class="field"><span>How many <small class="faint">room for ${offer.room} more</small></span><input type="number" inputmode="numeric" min="1" max="1000" required value=${form.count} onInput=${set("count")} /></label>
        <label class="field"><span>Name</span><input value=${count === 1 ? form.name : listed(names)} onInput=${set("name")} readonly=${count !== 1} placeholder=${names[0] ?? ""} maxlength="64" autocomplete="off" spellcheck=${false} /></label>
        <label class="field"><span>Role <small class="faint">gets tasks of this role</small></span><input value=${form.role} onInput=${set("role")} list="session-roles" placeholder="none" maxlength="64" autocomplete="off" spellcheck=${false} /></label>
        <label class="field wide"><span>May do without asking</span><select value=${form.permissions} onChange=${set("permissions")}>
          <option value="">${`As the settings say: ${LEVELS[offer.permissions].toLowerCase()}`}</option>
          ${Object.entries(LEVELS).map(([level, words]) => html`<option key=${level} value=${level}>${`${level}: ${words.toLowerCase()}`}</option>`)}</select></label>
        <label class="session-check wide"><input type="checkbox" checked=${form.start} onChange=${set("start")} /> Start at once</label>
      </div>
      <datalist id="session-roles">${[...new Set([...state.tasks.values()].map(({ role }) => role).filter(Boolean))].slice(0, 200).map((role) => html`<option value=${role} />`)}</datalist>
      <${Problem} problem=${problem ?? (absent !== null && asked.start ? { message: `${form.agent} cannot be started: ${absent}.`, hint: "Install it, or choose another agent." } : null)} />
      <div class="session-command"><span class="soft">The same in a terminal</span><code>${visible(commandOf(asked), 300)}</code></div>
      <footer class="dialog-foot"><${Button} onClick=${onClose}>Cancel<//><button class="button primary" type="submit" disabled=${busy || count < 1}>${button}</button></footer>
    </form>
  <//>`;
}

// Removing

/** Return what a session holds now: tasks that it works on, its run, and what it has changed. */
function holding(name) {
  const live = state.live.get(name);
  const tasks = [...state.tasks.values()].filter((task) => task.session === name && task.status === "doing");
  return { tasks, run: live?.run ?? null, changed: live && (live.plus || live.minus) ? live : null };
}

function RemoveDialog({ name, onClose }) {
  useTopics(`session:${name}`, `live:${name}`, "tasks");
  const [force, setForce] = useState(false);
  const [problem, setProblem] = useState(null);
  const [busy, setBusy] = useState(false);
  const { tasks, run, changed } = holding(name);
  const atWork = tasks.length > 0 || run !== null || problem?.status === 409;
  const send = async (event) => {
    event.preventDefault();
    if (busy) return;
    setBusy(true);
    try {
      const since = Date.now() / 1000;
      await post(at(name, "remove"), { force: atWork && force });
      if (whereabouts().place === "sessions" && whereabouts().what === name) go("sessions");
      onClose();
      tellGone(name, since);
    } catch (error) {
      setProblem(error);
      setBusy(false);
    }
  };
  return html`<${Dialog} title=${`Remove ${visible(name, 60)}?`} name="remove-session" onClose=${onClose}>
    <form onSubmit=${send}>
      ${tasks.map((task) => html`<p key=${task.id}>It works on <b class="mono">${task.id}</b> <${Words} text=${task.title} most=${160} />. Its program is ended, and ${task.id} goes back to the board.</p>`)}
      ${tasks.length === 0 && atWork && html`<p>Its program is ended.</p>`}
      <ul class="session-kept">
        ${tasks.map((task) => html`<li key=${task.id}>What it has committed stays on <code>covey/${task.id}</code>; whoever takes ${task.id} next goes on from there.</li>`)}
        <li>What it has not committed is kept first: <code>covey rescue list</code> shows it.${changed ? html` So far it has changed <span class="plus">+${changed.plus}</span> <span class="minus">−${changed.minus}</span> in ${some(changed.files ?? 0, "file")}.` : ""}</li>
        <li>Its worktree is removed. Its transcripts and costs stay.</li>
      </ul>
      <${Problem} problem=${problem} />
      ${atWork && html`<label class="session-check"><input type="checkbox" data-first checked=${force} onChange=${(event) => setForce(event.target.checked)} /> Remove it although it is at work</label>`}
      <footer class="dialog-foot"><${Button} onClick=${onClose}>Cancel<//><button class="button danger" type="submit" disabled=${busy || (atWork && !force)}>${atWork ? "End it and remove" : "Remove"}</button></footer>
    </form>
  <//>`;
}

/** Say when a session is gone, and where its last unsaved work is. */
async function tellGone(name, since) {
  const until = Date.now() + PATIENCE;
  while (state.sessions.has(name) && Date.now() < until) await new Promise((next) => setTimeout(next, 200));
  if (state.sessions.has(name)) return note(`${visible(name, 60)} goes as soon as its work is safe.`);
  const kept = await get(query("/api/log", { kind: "session.rescued", subject: name, newest: true, limit: 1 })).catch(() => []);
  const last = kept.find(({ time }) => time >= since - 1);
  return note(`${visible(name, 60)} is removed.`, { hint: last ? `Its unsaved work is kept in ${last.data.ref}.` : "" });
}

// Where they are offered

/** Return who could be started, and who was stopped together last; read again only when others are stopped. */
export function useStopped() {
  const names = () => withGoal("stopped").join(" ");
  const [stopped, setStopped] = useState(names);
  useEffect(() => listen(["sessions"], () => setStopped(names())), []);
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
    ${agent && html`<div class="session-command"><span>Or in a terminal</span><code>${commandOf({ count: Math.min(4, offer.room || 1), agent: agent.name, start: true })}</code></div>`}
    ${offer && !agent && html`<p class="soft">No agent is installed here yet. covey knows ${listed(others, 8)}; <code>[agents.NAME]</code> in covey.toml names one of your own.</p>`}
  <//>`;
}

const mayTake = ({ kind, goal }) => kind === "outside" || (kind === "run" && goal !== "stopped");

/** A line over the board while tasks wait and no session would take them: none is there, or all are stopped. */
export function Crewless() {
  useTopics("sessions", "tasks", "connection");
  const { stopped, together } = useStopped();
  const waiting = state.columns.lists.get("todo").length;
  if (state.connection.state !== "live" || !waiting || [...state.sessions.values()].some(mayTake)) return null;
  const them = waiting === 1 ? "it" : "them";
  return html`<p class="crewless" role="status"><span>${some(waiting, "task")} to do, and ${stopped.length ? "every session is stopped" : `no session to take ${them}`}.</span>
    ${together.length > 0 ? html`<${Button} kind="primary" onClick=${() => startSessions({ all: false })}>Bring back ${together.length}<//>` : stopped.length > 0 && html`<${Button} kind="primary" onClick=${() => startSessions({ all: true })}>Start all<//>`}
    <${Button} kind=${stopped.length ? "" : "primary"} keys="A" onClick=${() => addSessions()}>Add sessions<//></p>`;
}

/** Where the dialogs open; offers the commands of all sessions. */
export function SessionDialogs() {
  const [, again] = useState(0);
  useEffect(() => listen(["session-dialog"], () => again((count) => count + 1)), []);
  useCommands([
    { label: "Add sessions", group: "Fleet", keys: "A", usual: true, also: "new start session agent worker", run: () => addSessions() },
    { label: "Start all sessions that are stopped", group: "Fleet", when: () => withGoal("stopped").length > 0, run: () => startSessions({ all: true }) },
    { label: "Bring back the sessions that were stopped together", group: "Fleet", also: "start all again", when: () => withGoal("stopped").length > 0, run: () => startSessions({ all: false }) },
    { label: "Stop all sessions", group: "Fleet", also: "end agents", when: () => withGoal("working", "paused").length > 0, run: stopSessions },
  ], []);
  const close = () => show(null);
  if (shown?.add) return html`<${AddDialog} offer=${shown.add} values=${shown.values} onClose=${close} />`;
  if (shown?.remove) return html`<${RemoveDialog} key=${shown.remove} name=${shown.remove} onClose=${close} />`;
  return null;
}
