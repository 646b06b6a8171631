// The sessions: tiles with what each agent does now, and one of them at a time with all that is known of it.
import { html, useEffect, useRef, useState } from "../lib.js";
import { get, post, query } from "../api.js";
import { saidOf } from "../columns.js";
import { useCommands } from "../keys.js";
import { go, to } from "../places.js";
import { FleetButtons, NoSession, removeSession } from "../session_dialog.js";
import { state, useRead, useTopics } from "../store.js";
import { Live, useShown } from "../terminal.js";
import { Transcript } from "../transcript.js";
import { Age, attempt, Button, confirm, Empty, note, State, Words } from "../ui.js";
import { ageless, bytes, clock, money, some, span, tokens, visible } from "../text.js";

const SIZES = [1, 2, 3, 4];
const WHOLE = [[1, "1", 1], [2, "pair", 2], [4, "2", 2], [9, "3", 3]];
const RESTING = new Set(["idle", "stopped"]);
const WIDE = 130;
const URGENT = new Set(["needs-you", "stalled", "dead"]);
const at = (name, verb) => `/api/sessions/${encodeURIComponent(name)}/${verb}`;
const phone = () => matchMedia("(max-width: 760px)").matches;

/** Read something of a session, null once it is removed. */
const ofSession = async (name, verb) => (state.sessions.has(name) ? get(at(name, verb)) : null);

function useKept(key, usual) {
  const [value, setValue] = useState(() => JSON.parse(localStorage.getItem(key) ?? "null") ?? usual);
  const keep = (next) => {
    localStorage.setItem(key, JSON.stringify(next));
    setValue(next);
  };
  return [value, keep];
}

/** Return what is known of a session at this moment: its row, what it does, and the task it is at. */
function known(name, rows) {
  const session = state.sessions.get(name);
  const full = rows?.find((row) => row.name === name);
  const live = state.live.get(name);
  const id = live?.task ?? full?.tasks[0] ?? null;
  const run = live?.run ?? full?.run ?? null;
  const rests = (session ?? full)?.goal === "stopped" && run === null;
  const now = rests ? "stopped" : live?.state ?? session?.state ?? full?.state;
  return { name, session: session ?? full, full, live, run, task: id, title: state.tasks.get(id)?.title ?? "", state: now, since: live?.since ?? session?.updated };
}

const isAtWork = (one) => one.run !== null || !RESTING.has(one.state);

// What can be done to a session

const DEEDS = [
  { verb: "pause", label: "Pause", keys: "p", can: (one) => one.session?.goal === "working", done: "stands still" },
  { verb: "resume", label: "Go on", keys: "p", can: (one) => one.session?.goal === "paused", done: "goes on" },
  { verb: "start", label: "Start", keys: "p", can: (one) => one.session?.goal === "stopped", done: "works the board" },
  { verb: "restart", label: "Restart", keys: "R", can: (one) => one.run !== null, ask: "It is ended and begins its task again; what it has written stays.", done: "is started again" },
  { verb: "stop", label: "Stop", button: "Stop the run", keys: "x", can: (one) => one.session?.goal !== "stopped", danger: true, ask: "Its run is ended, its work is kept, and its task goes back to the board.", done: "is stopped" },
  { verb: "remove", label: "Remove", keys: "delete", sign: "Del", can: (one) => one.session?.goal !== "removed", open: removeSession },
];

async function act(deed, name) {
  if (deed.open) return deed.open(name);
  if (deed.ask && !(await confirm({ title: `${deed.label} ${visible(name, 60)}?`, body: deed.ask, action: deed.label, danger: deed.danger }))) return;
  await attempt(() => post(at(name, deed.verb)), `${visible(name, 60)} ${deed.done}.`);
}

async function copyAttach(name) {
  const command = `covey session attach ${name}`;
  try {
    await navigator.clipboard.writeText(command);
    note(`Copied: ${command}`);
  } catch {
    note(command, { hint: "Type this in the project's folder." });
  }
}

const takeOver = (name) => attempt(() => post(at(name, "attach")), `${visible(name, 60)} is yours: its conversation opens in a terminal.`);
const giveBack = (name) => attempt(() => post(at(name, "giveback")), `${visible(name, 60)} goes on by itself.`);

// Tiles

function Facts({ one }) {
  const { live, full } = one;
  const parts = [];
  if (live?.plus || live?.minus) parts.push(html`<span key="diff" title="lines changed"><span class="plus">+${live.plus}</span> <span class="minus">−${live.minus}</span></span>`);
  if (live?.context !== null && live?.context !== undefined) parts.push(html`<span key="context" title="of its context used">ctx ${Math.round(live.context * 100)} %</span>`);
  const cost = live?.cost ?? full?.cost;
  if (cost) parts.push(html`<span key="cost" title="spent, an estimate">≈ ${money(cost)}</span>`);
  if (live?.overlaps) parts.push(html`<span key="overlaps" class="tile-warn" title="files that others change too">⚠ ${live.overlaps}</span>`);
  return parts.length ? html`<span class="tile-facts">${parts}</span>` : null;
}

/** What a session does now, or why it is in its state, in one line. */
function Doing({ one }) {
  const text = one.live?.action ?? (one.live?.waits ? saidOf(one.live.waits) : ageless(one.session?.evidence));
  return html`<span class="tile-action" title=${visible(text, 300)}><${Words} text=${text || "nothing yet"} most=${160} /></span>`;
}

function Body({ one, shown, control }) {
  const [headless, setHeadless] = useState(false);
  const [words, setWords] = useState(null);
  useEffect(() => (setHeadless(false), setWords(null)), [one.run]);
  if (!shown) return null;
  if (one.run === null) return html`<${Transcript} session=${one.name} small />`;
  const heard = (said) => said.error && (said.error.includes("no terminal") ? setHeadless(true) : setWords(said.error));
  if (one.live ? !one.live.terminal : headless) return html`<${Transcript} session=${one.name} small key=${one.run} />`;
  return html`<${Live} key=${`${one.name} ${one.run}`} session=${one.name} onHeard=${heard} control=${control} />${words && html`<p class="unseen">${visible(words)}</p>`}`;
}

function Tile({ one, chosen, onChoose, controls }) {
  useTopics(`live:${one.name}`, `session:${one.name}`);
  const place = useRef(null);
  const control = useRef(null);
  const shown = useShown(place) && !phone();
  useEffect(() => {
    controls.set(one.name, control);
    return () => controls.delete(one.name);
  }, [one.name]);
  const now = known(one.name, one.full ? [one.full] : []);
  const open = () => go("sessions", one.name);
  return html`<article ref=${place} class=${`tile ${URGENT.has(now.state) ? `tile-${now.state}` : ""} ${chosen ? "chosen" : ""}`} data-session=${one.name} aria-label=${`${one.name}, ${now.state}`}
      tabindex=${chosen ? 0 : -1} onFocusIn=${() => onChoose(one.name)} onDblClick=${open} onClick=${() => phone() && open()}>
    <header class="tile-head">
      <${State} name=${now.state} word />
      <a class="tile-name" href=${to("sessions", one.name)} tabindex="-1"><${Words} text=${one.name} most=${60} /></a>
      ${now.task && html`<span class="tile-task" title=${visible(now.title, 300)}><span class="mono">${now.task}</span> <${Words} text=${now.title} most=${120} /></span>`}
      <${Age} since=${now.since} />
    </header>
    <div class="tile-line"><${Doing} one=${now} /><${Facts} one=${now} /></div>
    <div class="tile-body"><${Body} one=${now} shown=${shown} control=${control} /></div>
  </article>`;
}

/** Return how tiles are laid out, [name, how many beside each other]: as somebody chose, else so that few are large enough to be read. */
function layoutOf(chosen, count) {
  if (chosen !== null) return [String(chosen), chosen];
  const [, name, beside] = WHOLE.find(([most]) => count <= most) ?? WHOLE.at(-1);
  return [name, beside];
}

function Grid({ all, rows }) {
  const [wanted, setSize] = useKept("covey.tiles", null);
  const [every, setEvery] = useKept("covey.tiles.every", false);
  const [chosen, choose] = useState(null);
  const latest = useRef(null); // keys can come faster than what they change is drawn
  const controls = useRef(new Map()).current;
  const place = useRef(null);
  const busy = all.filter(isAtWork);
  const shown = every || !busy.length ? all : busy; // where all are at rest, they are what there is to see
  const [layout, size] = layoutOf(wanted, shown.length);
  const current = shown.some((one) => one.name === chosen) ? chosen : shown[0]?.name;
  latest.current = current;
  const setChosen = (name) => {
    latest.current = name;
    choose(name);
  };
  const pick = (name) => {
    setChosen(name);
    place.current?.querySelector(`[data-session="${CSS.escape(name)}"]`)?.focus();
  };
  const step = (by) => {
    const index = shown.findIndex((one) => one.name === latest.current);
    const next = shown[Math.max(0, Math.min(shown.length - 1, index + by))];
    if (next) pick(next.name);
  };
  const grow = (by) => setSize(Math.max(1, Math.min(4, size + by)));
  const has = () => current !== undefined;
  const screen = () => controls.get(latest.current)?.current;
  useCommands([
    { label: "Next session", group: "Sessions", keys: ["j", "arrowright"], unlisted: true, run: () => step(1) },
    { label: "Previous session", group: "Sessions", keys: ["k", "arrowleft"], unlisted: true, run: () => step(-1) },
    { label: "Session below", group: "Sessions", keys: "arrowdown", unlisted: true, run: () => step(size) },
    { label: "Session above", group: "Sessions", keys: "arrowup", unlisted: true, run: () => step(-size) },
    { label: "Open this session", group: "Sessions", keys: ["enter", "o"], when: has, run: () => go("sessions", latest.current) },
    { label: "Type into this terminal", group: "Sessions", keys: "i", when: () => Boolean(screen()), run: () => screen().write() },
    { label: "Larger tiles", group: "Sessions", keys: "+", run: () => grow(-1) },
    { label: "Smaller tiles", group: "Sessions", keys: "-", run: () => grow(1) },
    { label: "Show all sessions, or those at work", group: "Sessions", keys: "e", run: () => setEvery(!every) },
    ...deedCommands(() => known(latest.current, rows), has),
  ], [shown.map((one) => one.name).join(" "), current, size, every, rows]);
  const hidden = all.length - shown.length;
  return html`<div class="sessions">
    <header class="sessions-bar">
      <h1>Sessions</h1><span class="count">${some(shown.length, "session")}${hidden ? `, ${hidden} at rest` : ""}</span>
      <span class="sessions-spring"></span>
      ${(hidden > 0 || (every && busy.length < all.length)) && html`<${Button} aria-pressed=${String(every)} onClick=${() => setEvery(!every)} keys="e">All<//>`}
      ${all.length > 0 && html`<span class="tile-sizes" role="group" aria-label="Tiles">${SIZES.map((each) => html`<${Button} key=${each} kind="quiet" aria-pressed=${String(layout === String(each))} onClick=${() => setSize(each)}>${each}×${each}<//>`)}</span>`}
      ${all.length > 0 && html`<${FleetButtons} />`}
    </header>
    ${shown.length
      ? html`<div class=${`tiles tiles-${layout}`} ref=${place} role="group" aria-label="Sessions as tiles">${shown.map((one) => html`<${Tile} key=${one.name} one=${one} chosen=${one.name === current} onChoose=${setChosen} controls=${controls} />`)}</div>`
      : html`<${NoSession} />`}
  </div>`;
}

function deedCommands(one, has, canAttach = has) {
  return [
    ...DEEDS.map((deed) => ({ label: `${deed.label} this session`, group: "Sessions", keys: deed.keys, when: () => has() && deed.can(one()), run: () => act(deed, one().name) })),
    { label: "Copy the command that attaches", group: "Sessions", keys: "y", when: canAttach, run: () => copyAttach(one().name) },
  ];
}

// One session

function Why({ name, one }) {
  const [told, problem] = useRead(() => ofSession(name, "why"), [`session:${name}`, `live:${name}`, "runs"], [name]);
  if (!told) return html`<p class="faint">${problem ? visible(problem.message) : "…"}</p>`;
  return html`<section class="session-why" aria-label="Why this state?">
    <h2>Why this state?</h2>
    <p class="session-why-state"><${State} name=${told.state} word /> <span class="faint">for</span> <${Age} since=${told.since} />${told.until && html`<span class="faint">until ${clock(told.until)}</span>`}</p>
    ${told.waits && html`<p class="session-why-waits"><${Words} text=${saidOf(told.waits)} most=${600} />${told.waits.command && html` <span class="faint mono"><${Words} text=${told.waits.command} most=${300} /></span>`}</p>`}
    ${told.evidence && html`<p class="session-why-evidence"><${Words} text=${ageless(told.evidence)} most=${600} /></p>`}
    ${told.rule && html`<p class="faint">Rule: <${Words} text=${told.rule} />${told.action && told.action !== "none" ? html`, so it will <${Words} text=${told.action} />` : ""}</p>`}
    ${told.clues.length > 0 && html`<table class="session-clues"><caption class="unseen">Evidence</caption><thead class="unseen"><tr><th>source</th><th>says</th><th>age</th></tr></thead><tbody>
      ${told.clues.map((clue, i) => html`<tr key=${i}><th scope="row"><${Words} text=${clue.source} most=${40} /></th><td><${Words} text=${clue.text} most=${300} /></td><td class="age">${span(clue.age)}</td></tr>`)}
    </tbody></table>`}
    ${told.history.length > 0 && html`<details><summary>Before (${told.history.length})</summary><ol class="session-moments">
      ${told.history.map((moment) => html`<li key=${moment.at}><time class="age">${clock(moment.at)}</time><${State} name=${moment.state} word /><${Words} text=${ageless(moment.evidence)} most=${160} class="faint" /></li>`)}
    </ol></details>`}
  </section>`;
}

function SendBox({ one }) {
  const [text, setText] = useState("");
  const [busy, setBusy] = useState(false);
  const send = async () => {
    if (!text.trim() || busy) return;
    setBusy(true);
    const done = await attempt(() => post(at(one.name, "send"), { text: text.trim() }), `Told ${visible(one.name, 60)}.`);
    setBusy(false);
    if (done !== undefined) setText("");
  };
  const press = (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      send();
    }
    if (event.key === "Escape") event.target.blur();
  };
  return html`<form class="session-send" onSubmit=${(event) => { event.preventDefault(); send(); }}>
    <label class="field"><span>Tell ${visible(one.name, 60)}</span><textarea rows="2" data-send placeholder=${one.run ? "It reads this at its next step" : "It has no run now"} disabled=${!one.run} value=${text} onInput=${(event) => setText(event.target.value)} onKeyDown=${press}></textarea></label>
    <button type="submit" class="button" disabled=${!one.run || !text.trim() || busy}>Send <kbd>Ctrl+Enter</kbd></button>
  </form>`;
}

function Fact({ name, children }) {
  return html`<div><dt>${name}</dt><dd>${children}</dd></div>`;
}

function About({ one }) {
  const { live, full, session } = one;
  const window = live?.context;
  return html`<dl class="session-facts">
    ${one.task && html`<${Fact} name="Task"><a href=${to("board", one.task)}><span class="mono">${one.task}</span> <${Words} text=${one.title} most=${160} /></a><//>`}
    <${Fact} name="Agent"><${Words} text=${session?.agent ?? "none"} most=${60} />${session?.role && html` as <${Words} text=${session.role} most=${60} />`}<//>
    ${live?.action && html`<${Fact} name="Does"><${Words} text=${live.action} most=${160} />${live.action_at && html` <${Age} since=${live.action_at} />`}<//>`}
    ${live && (live.plus || live.minus) ? html`<${Fact} name="Changed"><span class="plus">+${live.plus}</span> <span class="minus">−${live.minus}</span> in ${some(live.files ?? 0, "file")}<//>` : ""}
    ${window !== null && window !== undefined && html`<${Fact} name="Context"><meter min="0" max="1" low="0.7" high="0.9" optimum="0" value=${window} aria-label="Context used"></meter> ${Math.round(window * 100)} % used<//>`}
    <${Fact} name="Cost">≈ ${money(live?.cost ?? full?.cost ?? 0)} <span class="faint">${tokens(live?.tokens ?? full?.tokens ?? 0)} tokens</span><//>
    ${(live?.memory || full?.memory) ? html`<${Fact} name="Memory">${bytes(live?.memory || full.memory)}<//>` : ""}
    ${live?.gate && html`<${Fact} name="Gate"><${State} name=${live.gate.state} word /><//>`}
  </dl>`;
}

function Side({ one, terminal, canTakeOver, onType }) {
  return html`<aside class="session-side" aria-label=${`About ${one.name}`}>
    <div class="session-deeds">
      ${DEEDS.filter((deed) => deed.can(one)).map((deed) => html`<${Button} key=${deed.verb} kind=${deed.danger ? "danger" : ""} keys=${deed.sign ?? deed.keys} onClick=${() => act(deed, one.name)}>${deed.button ?? deed.label}<//>`)}
      ${terminal && html`<${Button} kind="primary" keys="i" onClick=${onType}>Type<//>`}
      ${canTakeOver && html`<${Button} keys="t" onClick=${() => takeOver(one.name)}>Take over<//>`}
      ${one.person && html`<${Button} onClick=${() => giveBack(one.name)}>Give back<//>`}
      ${(terminal || canTakeOver) && html`<${Button} keys="y" onClick=${() => copyAttach(one.name)}>Copy attach command<//>`}
    </div>
    <${Why} name=${one.name} one=${one} />
    <${About} one=${one} />
    <${SendBox} one=${one} />
  </aside>`;
}

/** The runs of a session, the newest first: what each was at, and how it ended. */
function Runs({ name, chosen, onChoose }) {
  const [runs] = useRead(() => get(query("/api/runs", { session: name, limit: 30 })), ["runs"], [name]);
  if (!runs?.length) return null;
  return html`<label class="session-runs"><span class="unseen">Run</span><select value=${chosen ?? ""} onChange=${(event) => onChoose(event.target.value || null)}>
    <option value="">The last run</option>
    ${runs.map((run) => html`<option key=${run.id} value=${run.id}>${run.id} · ${run.task} · ${run.outcome ?? "goes on"} · ${clock(run.begun)}</option>`)}
  </select></label>`;
}

function One({ name, all, rows }) {
  useTopics(`live:${name}`, `session:${name}`);
  const [tab, setTab] = useState("terminal");
  const [run, setRun] = useState(null);
  const [columns, setColumns] = useState(0);
  const control = useRef(null);
  const one = known(name, rows);
  const [terminal] = useRead(() => ofSession(name, "terminal"), ["runs", `session:${name}`], [name]);
  const hasTerminal = Boolean(terminal?.run) && one.run !== null;
  const canTakeOver = !hasTerminal && one.run !== null && Boolean(terminal?.can_attach);
  const showing = hasTerminal && tab === "terminal" && run === null ? "terminal" : "transcript";
  const type = () => {
    setTab("terminal");
    setRun(null);
    setTimeout(() => control.current?.write());
  };
  const others = all.filter((each) => isAtWork(each) || each.name === name).map((each) => each.name);
  const step = (by) => go("sessions", others[(others.indexOf(name) + by + others.length) % others.length]);
  const exists = () => Boolean(one.session);
  useCommands([
    { label: "Back to all sessions", group: "Sessions", keys: ["escape", "u"], run: () => go("sessions") },
    { label: "Next session", group: "Sessions", keys: "j", unlisted: true, run: () => step(1) },
    { label: "Previous session", group: "Sessions", keys: "k", unlisted: true, run: () => step(-1) },
    { label: "Type into this terminal", group: "Sessions", keys: "i", when: () => hasTerminal, run: type },
    { label: "Terminal or transcript", group: "Sessions", keys: "v", when: () => hasTerminal, run: () => setTab(tab === "terminal" ? "transcript" : "terminal") },
    { label: "Tell this session something", group: "Sessions", keys: "s", when: exists, run: () => document.querySelector("[data-send]")?.focus() },
    { label: "Take this conversation over", group: "Sessions", keys: "t", when: () => canTakeOver, run: () => takeOver(name) },
    { label: "Give this conversation back", group: "Sessions", when: () => Boolean(terminal?.person), run: () => giveBack(name) },
    ...deedCommands(() => known(name, rows), exists, () => hasTerminal || canTakeOver),
  ], [name, hasTerminal, canTakeOver, tab, others.join(" "), rows, terminal?.person]);
  if (!one.session) return html`<${Empty} title=${rows ? `There is no session ${visible(name, 60)}.` : "…"}><a href=${to("sessions")}>All sessions</a><//>`;
  const wide = showing === "terminal" && columns > WIDE ? "wide" : "";
  return html`<div class=${`session-one ${wide}`}>
    <header class="sessions-bar">
      <a class="button quiet" href=${to("sessions")} aria-label="All sessions">‹ <span>Sessions</span></a>
      <h1><${State} name=${one.state} word /> <${Words} text=${name} most=${60} /></h1>
      ${one.task && html`<span class="tile-task"><span class="mono">${one.task}</span> <${Words} text=${one.title} most=${160} /></span>`}
      <span class="sessions-spring"></span>
      ${hasTerminal && html`<span role="group" aria-label="Show"><${Button} kind="quiet" aria-pressed=${String(showing === "terminal")} onClick=${() => { setTab("terminal"); setRun(null); }}>Terminal<//><${Button} kind="quiet" keys="v" aria-pressed=${String(showing === "transcript")} onClick=${() => setTab("transcript")}>Transcript<//></span>`}
      <${Runs} name=${name} chosen=${run} onChoose=${(id) => { setRun(id); if (id) setTab("transcript"); }} />
    </header>
    <div class="session-main">
      ${showing === "terminal" ? html`<${Live} key=${`${name} ${terminal.run}`} session=${name} large control=${control} onHeard=${(said) => said.columns && setColumns(said.columns)} />` : html`<${Transcript} key=${`${name} ${run ?? ""}`} session=${name} run=${run} />`}
    </div>
    <${Side} one=${{ ...one, person: Boolean(terminal?.person) }} terminal=${hasTerminal} canTakeOver=${canTakeOver} onType=${type} />
  </div>`;
}

export function View({ what }) {
  useTopics("sessions", "tasks");
  const [rows] = useRead(() => get("/api/sessions"), ["runs", "sessions"], []);
  const all = [...state.sessions.values()].filter((session) => session.kind === "run").map((session) => known(session.name, rows)).sort((one, other) => one.name.localeCompare(other.name));
  return what ? html`<${One} key=${what} name=${what} all=${all} rows=${rows} />` : html`<${Grid} all=${all} rows=${rows} />`;
}
