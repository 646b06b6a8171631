// Sessions: tiles that show what each agent is doing, and one session with everything about it.
import { html, useEffect, useRef, useState } from "../lib.js";
import { isNarrow, useKept } from "../widgets/view_hooks.js";
import { get, post, query } from "../data/api.js";
import { saidOf } from "../rules/columns.js";
import { inGroup, useCommands } from "../widgets/keys.js";
import { go, to } from "../data/routes.js";
import { at, FleetButtons, NoSession, removeSession, tell } from "../sessions/session_dialog.js";
import { state, useRead, useTopics } from "../data/store.js";
import { Live, useShown } from "../sessions/terminal.js";
/** @typedef {import("../sessions/terminal.js").Screen} TerminalScreen */
import { Transcript } from "../sessions/transcript.js";
import { Age, attempt, Button, confirm, Empty, note, State, Words } from "../widgets/ui.js";
import { ageless, bytes, clock, money, some, span, tokens, visible } from "../rules/text.js";
/** @import { GetAnswers, SessionFull } from "types/rest.js" */
/** @import { KnownSession, SessionDeed, TerminalShown } from "types/page.js" */
/** @import { Ref } from "types/vendor/hooks.js" */
/** @import { PageEvent } from "types/vendor/htm.js" */
/** @import { Child } from "types/vendor/preact.js" */

const on = inGroup("Sessions");

const SIZES = [1, 2, 3, 4];
/** @type {[most: number, name: string, beside: number][]} */
const WHOLE = [
  [1, "1", 1],
  [2, "pair", 2],
  [4, "2", 2],
  [9, "3", 3],
];
const RESTING = new Set(["idle", "stopped"]);
const WIDE = 130;
const URGENT = new Set(["needs-you", "stalled", "dead"]);

/**
 * Read something of a session, null once it is removed.
 * @template {"why" | "terminal"} Verb
 * @param {string} name
 * @param {Verb} verb
 * @returns {Promise<GetAnswers[`/api/sessions/{}/${Verb}`] | null>}
 */
const ofSession = async (name, verb) =>
  state.sessions.has(name)
    ? /** @type {Promise<GetAnswers[`/api/sessions/{}/${Verb}`]>} */ (get(at(name, verb)))
    : null;

/**
 * Return what is known of a session at this moment: its row, what it does, and the task it is at.
 * @param {string} name
 * @param {SessionFull[] | null} rows
 * @returns {KnownSession}
 */
function known(name, rows) {
  const session = state.sessions.get(name);
  const full = rows?.find((row) => row.name === name);
  const live = state.live.get(name);
  const id = live?.task ?? full?.tasks[0] ?? null;
  const run = live?.run ?? full?.run ?? null;
  const rests = (session ?? full)?.goal === "stopped" && run === null;
  const now = rests ? "stopped" : (live?.state ?? session?.state ?? full?.state);
  return {
    name,
    session: session ?? full,
    full,
    live,
    run,
    task: id,
    title: state.tasks.get(id ?? "")?.title ?? "",
    state: now,
    since: live?.since ?? session?.updated,
  };
}

/** @param {KnownSession} one */
const isAtWork = (one) => one.run !== null || !RESTING.has(one.state ?? "");

// What can be done to a session

/** @type {SessionDeed[]} */
const DEEDS = [
  { verb: "pause", label: "Pause", keys: "p", can: (one) => one.session?.goal === "working", done: "stands still" },
  { verb: "resume", label: "Go on", keys: "p", can: (one) => one.session?.goal === "paused", done: "goes on" },
  { verb: "start", label: "Start", keys: "p", can: (one) => one.session?.goal === "stopped", done: "works the board" },
  {
    verb: "restart",
    label: "Restart",
    keys: "R",
    can: (one) => one.run !== null,
    ask: "It is ended and begins its task again; what it has written stays.",
    done: "is started again",
  },
  {
    verb: "stop",
    label: "Stop",
    button: "Stop the run",
    keys: "x",
    can: (one) => one.session?.goal !== "stopped",
    danger: true,
    ask: "Its run is ended, its work is kept, and its task goes back to the board.",
    done: "is stopped",
  },
  {
    verb: "remove",
    label: "Remove",
    keys: "delete",
    sign: "Del",
    can: (one) => one.session?.goal !== "removed",
    open: removeSession,
  },
];

/**
 * @param {SessionDeed} deed
 * @param {string} name
 */
async function act(deed, name) {
  if (deed.open) return deed.open(name);
  if (
    deed.ask &&
    !(await confirm({
      title: `${deed.label} ${visible(name, 60)}?`,
      body: deed.ask,
      action: deed.label,
      danger: deed.danger,
    }))
  )
    return;
  await tell(name, deed.verb, deed.done ?? "");
}

/** @param {string} name */
async function copyAttach(name) {
  const command = `covey session attach ${name}`;
  try {
    await navigator.clipboard.writeText(command);
    note(`Copied: ${command}`);
  } catch {
    note(command, { hint: "Type this in the project's folder." });
  }
}

/** @param {string} name */
const takeOver = (name) => tell(name, "attach", "is yours: its conversation opens in a terminal");
/** @param {string} name */
const giveBack = (name) => tell(name, "giveback", "goes on by itself");

// Tiles

/** @param {{ one: KnownSession }} props */
function Facts({ one }) {
  const { live, full } = one;
  /** @type {Child[]} */
  const parts = [];
  if (live?.plus || live?.minus)
    parts.push(
      html`<span key="diff" title="lines changed"><span class="plus">+${live.plus}</span> <span class="minus">−${live.minus}</span></span>`,
    );
  if (live?.context !== null && live?.context !== undefined)
    parts.push(html`<span key="context" title="of its context used">ctx ${Math.round(live.context * 100)} %</span>`);
  const cost = live?.cost ?? full?.cost;
  if (cost) parts.push(html`<span key="cost" title="spent, an estimate">≈ ${money(cost)}</span>`);
  if (live?.overlaps)
    parts.push(
      html`<span key="overlaps" class="tile-warn" title="files that others change too">⚠ ${live.overlaps}</span>`,
    );
  return parts.length ? html`<span class="tile-facts">${parts}</span>` : null;
}

/**
 * What a session does now, or why it is in its state, in one line.
 * @param {{ one: KnownSession }} props
 */
function Doing({ one }) {
  const text = one.live?.action ?? (one.live?.waits ? saidOf(one.live.waits) : ageless(one.session?.evidence));
  return html`<span class="tile-action one-line" title=${visible(text, 300)}><${Words} text=${text || "nothing yet"} most=${160} /></span>`;
}

/** @param {{ one: KnownSession, shown: boolean, control: Ref<TerminalScreen | null> }} props */
function Body({ one, shown, control }) {
  const [headless, setHeadless] = useState(false);
  const [words, setWords] = useState(/** @type {string | null} */ (null));
  useEffect(() => {
    setHeadless(false);
    setWords(null);
  }, [one.run]);
  if (!shown) return null;
  if (one.run === null) return html`<${Transcript} session=${one.name} small />`;
  /** @param {Partial<TerminalShown>} said */
  const heard = (said) => said.error && (said.headless ? setHeadless(true) : setWords(said.error));
  if (one.live ? !one.live.terminal : headless) return html`<${Transcript} session=${one.name} small key=${one.run} />`;
  return html`<${Live} key=${`${one.name} ${one.run}`} session=${one.name} onHeard=${heard} control=${control} />${words && html`<p class="unseen">${visible(words)}</p>`}`;
}

/**
 * @param {{ one: KnownSession, chosen: boolean, onChoose: (name: string) => void, controls: Map<string, Ref<TerminalScreen | null>> }} props
 */
function Tile({ one, chosen, onChoose, controls }) {
  useTopics(`live:${one.name}`, `session:${one.name}`);
  const place = useRef(null);
  /** @type {Ref<TerminalScreen | null>} */
  const control = useRef(null);
  const shown = useShown(place) && !isNarrow();
  useEffect(() => {
    controls.set(one.name, control);
    return () => controls.delete(one.name);
  }, [one.name]);
  const now = known(one.name, one.full ? [one.full] : []);
  const open = () => go("sessions", one.name);
  return html`<article ref=${place} class=${`tile boxed ${URGENT.has(now.state ?? "") ? `tile-${now.state}` : ""} ${chosen ? "chosen" : ""}`} data-session=${one.name} aria-label=${`${one.name}, ${now.state}`}
      tabindex=${chosen ? 0 : -1} onFocusIn=${() => onChoose(one.name)} onDblClick=${open} onClick=${() => isNarrow() && open()}>
    <header class="tile-head row">
      <${State} name=${now.state} word />
      <a class="tile-name one-line" href=${to("sessions", one.name)} tabindex="-1"><${Words} text=${one.name} most=${60} /></a>
      ${now.task && html`<span class="tile-task one-line" title=${visible(now.title, 300)}><span class="mono">${now.task}</span> <${Words} text=${now.title} most=${120} /></span>`}
      <${Age} since=${now.since} />
    </header>
    <div class="tile-line"><${Doing} one=${now} /><${Facts} one=${now} /></div>
    <div class="tile-body"><${Body} one=${now} shown=${shown} control=${control} /></div>
  </article>`;
}

/**
 * Return how tiles are laid out, [name, how many beside each other]: as somebody chose, else so that few are large
 * enough to be read.
 * @param {number | null} chosen
 * @param {number} count
 * @returns {[string, number]}
 */
function layoutOf(chosen, count) {
  if (chosen !== null) return [String(chosen), chosen];
  const [, name, beside] = WHOLE.find(([most]) => count <= most) ?? WHOLE.at(-1);
  return [name, beside];
}

/** @param {{ all: KnownSession[], rows: SessionFull[] | null }} props */
function Grid({ all, rows }) {
  const [wanted, setSize] = useKept("covey.tiles", /** @type {number | null} */ (null));
  const [every, setEvery] = useKept("covey.tiles.every", false);
  const [chosen, choose] = useState(/** @type {string | null} */ (null));
  /** @type {Ref<string | undefined>} */
  const latest = useRef(null); // keys can come faster than what they change is drawn
  const controls = useRef(new Map()).current;
  const place = useRef(null);
  const busy = all.filter(isAtWork);
  const shown = every || !busy.length ? all : busy; // where all are at rest, they are what there is to see
  const [layout, size] = layoutOf(wanted, shown.length);
  const current = shown.find((one) => one.name === chosen)?.name ?? shown[0]?.name;
  latest.current = current;
  /** @param {string} name */
  const setChosen = (name) => {
    latest.current = name;
    choose(name);
  };
  /** @param {string} name */
  const pick = (name) => {
    setChosen(name);
    place.current?.querySelector(`[data-session="${CSS.escape(name)}"]`)?.focus();
  };
  /** @param {number} by */
  const step = (by) => {
    const index = shown.findIndex((one) => one.name === latest.current);
    const next = shown[Math.max(0, Math.min(shown.length - 1, index + by))];
    if (next) pick(next.name);
  };
  /** @param {number} by */
  const grow = (by) => setSize(Math.max(1, Math.min(4, size + by)));
  const has = () => current !== undefined;
  const screen = () => controls.get(latest.current ?? "")?.current;
  useCommands(
    [
      on("Next session", ["j", "arrowright"], () => step(1), { unlisted: true }),
      on("Previous session", ["k", "arrowleft"], () => step(-1), { unlisted: true }),
      on("Session below", "arrowdown", () => step(size), { unlisted: true }),
      on("Session above", "arrowup", () => step(-size), { unlisted: true }),
      on("Open this session", ["enter", "o"], () => go("sessions", latest.current), { when: has }),
      on("Type into this terminal", "i", () => screen()?.write(), { when: () => Boolean(screen()) }),
      on("Larger tiles", "+", () => grow(-1)),
      on("Smaller tiles", "-", () => grow(1)),
      on("Show all sessions, or those at work", "e", () => setEvery(!every)),
      ...deedCommands(() => known(latest.current ?? "", rows), has),
    ],
    [shown.map((one) => one.name).join(" "), current, size, every, rows],
  );
  const hidden = all.length - shown.length;
  return html`<div class="sessions">
    <header class="sessions-bar row">
      <h1>Sessions</h1><span class="count">${some(shown.length, "session")}${hidden ? `, ${hidden} at rest` : ""}</span>
      <span class="spring"></span>
      ${(hidden > 0 || (every && busy.length < all.length)) && html`<${Button} aria-pressed=${String(every)} onClick=${() => setEvery(!every)} keys="e">All<//>`}
      ${all.length > 0 && html`<span class="tile-sizes" role="group" aria-label="Tiles">${SIZES.map((each) => html`<${Button} key=${each} kind="quiet" aria-pressed=${String(layout === String(each))} onClick=${() => setSize(each)}>${each}×${each}<//>`)}</span>`}
      ${all.length > 0 && html`<${FleetButtons} />`}
    </header>
    ${
      shown.length
        ? html`<div class=${`tiles tiles-${layout}`} ref=${place} role="group" aria-label="Sessions as tiles">${shown.map((one) => html`<${Tile} key=${one.name} one=${one} chosen=${one.name === current} onChoose=${setChosen} controls=${controls} />`)}</div>`
        : html`<${NoSession} />`
    }
  </div>`;
}

/**
 * @param {() => KnownSession} one
 * @param {() => boolean} has
 */
function deedCommands(one, has, canAttach = has) {
  return [
    ...DEEDS.map((deed) =>
      on(`${deed.label} this session`, deed.keys, () => act(deed, one().name), {
        when: () => has() && deed.can(one()),
      }),
    ),
    on("Copy the command that attaches", "y", () => copyAttach(one().name), { when: canAttach }),
  ];
}

// One session

/** @param {{ name: string }} props */
function Why({ name }) {
  const [told, problem] = useRead(() => ofSession(name, "why"), [`session:${name}`, `live:${name}`, "runs"], [name]);
  if (!told) return html`<p class="faint">${problem ? visible(problem.message) : "…"}</p>`;
  return html`<section class="session-why" aria-label="Why this state?">
    <h2>Why this state?</h2>
    <p class="session-why-state row"><${State} name=${told.state} word /> <span class="faint">for</span> <${Age} since=${told.since} />${told.until && html`<span class="faint">until ${clock(told.until)}</span>`}</p>
    ${told.waits && html`<p class="session-why-waits"><${Words} text=${saidOf(told.waits)} most=${600} />${told.waits.command && html` <span class="faint mono"><${Words} text=${told.waits.command} most=${300} /></span>`}</p>`}
    ${told.evidence && html`<p class="session-why-evidence sunken"><${Words} text=${ageless(told.evidence)} most=${600} /></p>`}
    ${told.rule && html`<p class="faint">Rule: <${Words} text=${told.rule} />${told.action && told.action !== "none" ? html`, so it will <${Words} text=${told.action} />` : ""}</p>`}
    ${
      told.clues.length > 0 &&
      html`<table class="session-clues"><caption class="unseen">Evidence</caption><thead class="unseen"><tr><th>source</th><th>says</th><th>age</th></tr></thead><tbody>
      ${told.clues.map((clue, i) => html`<tr key=${i}><th scope="row"><${Words} text=${clue.source} most=${40} /></th><td><${Words} text=${clue.text} most=${300} /></td><td class="age">${span(clue.age)}</td></tr>`)}
    </tbody></table>`
    }
    ${
      told.history.length > 0 &&
      html`<details><summary>Before (${told.history.length})</summary><ol class="session-moments">
      ${told.history.map((moment) => html`<li key=${moment.at}><time class="age">${clock(moment.at)}</time><${State} name=${moment.state} word /><${Words} text=${ageless(moment.evidence)} most=${160} class="faint one-line" /></li>`)}
    </ol></details>`
    }
  </section>`;
}

/** @param {{ one: KnownSession }} props */
function SendBox({ one }) {
  const [text, setText] = useState("");
  const [busy, setBusy] = useState(false);
  const send = async () => {
    if (!text.trim() || busy) return;
    setBusy(true);
    const done = await attempt(
      () => post(at(one.name, "send"), { text: text.trim() }),
      `Told ${visible(one.name, 60)}.`,
    );
    setBusy(false);
    if (done !== undefined) setText("");
  };
  /** @param {PageEvent} event */
  const press = (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      send();
    }
    if (event.key === "Escape") event.target.blur();
  };
  return html`<form class="session-send" onSubmit=${(event) => {
    event.preventDefault();
    send();
  }}>
    <label class="field"><span>Tell ${visible(one.name, 60)}</span><textarea rows="2" data-send placeholder=${one.run ? "It reads this at its next step" : "It has no run now"} disabled=${!one.run} value=${text} onInput=${(event) => setText(event.target.value)} onKeyDown=${press}></textarea></label>
    <button type="submit" class="button" disabled=${!one.run || !text.trim() || busy}>Send <kbd>Ctrl+Enter</kbd></button>
  </form>`;
}

/** @param {{ name: string, children: Child }} props */
function Fact({ name, children }) {
  return html`<div><dt>${name}</dt><dd>${children}</dd></div>`;
}

/** @param {{ one: KnownSession }} props */
function About({ one }) {
  const { live, full, session } = one;
  const window = live?.context;
  return html`<dl class="session-facts facts">
    ${one.task && html`<${Fact} name="Task"><a href=${to("board", one.task)}><span class="mono">${one.task}</span> <${Words} text=${one.title} most=${160} /></a><//>`}
    <${Fact} name="Agent"><${Words} text=${session?.agent ?? "none"} most=${60} />${session?.role && html` as <${Words} text=${session.role} most=${60} />`}<//>
    ${live?.action && html`<${Fact} name="Does"><${Words} text=${live.action} most=${160} />${live.action_at && html` <${Age} since=${live.action_at} />`}<//>`}
    ${live && (live.plus || live.minus) ? html`<${Fact} name="Changed"><span class="plus">+${live.plus}</span> <span class="minus">−${live.minus}</span> in ${some(live.files ?? 0, "file")}<//>` : ""}
    ${window !== null && window !== undefined && html`<${Fact} name="Context"><meter min="0" max="1" low="0.7" high="0.9" optimum="0" value=${window} aria-label="Context used"></meter> ${Math.round(window * 100)} % used<//>`}
    <${Fact} name="Cost">≈ ${money(live?.cost ?? full?.cost ?? 0)} <span class="faint">${tokens(live?.tokens ?? full?.tokens ?? 0)} tokens</span><//>
    ${live?.memory || full?.memory ? html`<${Fact} name="Memory">${bytes(live?.memory || full?.memory || 0)}<//>` : ""}
    ${live?.gate && html`<${Fact} name="Gate"><${State} name=${live.gate.state} word /><//>`}
  </dl>`;
}

/** @param {{ one: KnownSession, terminal: boolean, canTakeOver: boolean, onType: () => void }} props */
function Side({ one, terminal, canTakeOver, onType }) {
  return html`<aside class="session-side" aria-label=${`About ${one.name}`}>
    <div class="buttons">
      ${DEEDS.filter((deed) => deed.can(one)).map((deed) => html`<${Button} key=${deed.verb} kind=${deed.danger ? "danger" : ""} keys=${deed.sign ?? deed.keys} onClick=${() => act(deed, one.name)}>${deed.button ?? deed.label}<//>`)}
      ${terminal && html`<${Button} kind="primary" keys="i" onClick=${onType}>Type<//>`}
      ${canTakeOver && html`<${Button} keys="t" onClick=${() => takeOver(one.name)}>Take over<//>`}
      ${one.person && html`<${Button} onClick=${() => giveBack(one.name)}>Give back<//>`}
      ${(terminal || canTakeOver) && html`<${Button} keys="y" onClick=${() => copyAttach(one.name)}>Copy attach command<//>`}
    </div>
    <${Why} name=${one.name} />
    <${About} one=${one} />
    <${SendBox} one=${one} />
  </aside>`;
}

/**
 * The runs of a session, the newest first: what each was at, and how it ended.
 * @param {{ name: string, chosen: string | null, onChoose: (run: string | null) => void }} props
 */
function Runs({ name, chosen, onChoose }) {
  const [runs] = useRead(() => get(query("/api/runs", { session: name, limit: 30 })), ["runs"], [name]);
  if (!runs?.length) return null;
  return html`<label class="session-runs"><span class="unseen">Run</span><select value=${chosen ?? ""} onChange=${(event) => onChoose(event.target.value || null)}>
    <option value="">The last run</option>
    ${runs.map((run) => html`<option key=${run.id} value=${run.id}>${run.id} · ${run.task} · ${run.outcome ?? "goes on"} · ${clock(run.begun)}</option>`)}
  </select></label>`;
}

/** @param {{ name: string, all: KnownSession[], rows: SessionFull[] | null }} props */
function One({ name, all, rows }) {
  useTopics(`live:${name}`, `session:${name}`);
  const [tab, setTab] = useState("terminal");
  const [run, setRun] = useState(/** @type {string | null} */ (null));
  const [columns, setColumns] = useState(0);
  /** @type {Ref<TerminalScreen | null>} */
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
  /** @param {number} by */
  const step = (by) => go("sessions", others[(others.indexOf(name) + by + others.length) % others.length]);
  const exists = () => Boolean(one.session);
  useCommands(
    [
      on("Back to all sessions", ["escape", "u"], () => go("sessions")),
      on("Next session", "j", () => step(1), { unlisted: true }),
      on("Previous session", "k", () => step(-1), { unlisted: true }),
      on("Type into this terminal", "i", type, { when: () => hasTerminal }),
      on("Terminal or transcript", "v", () => setTab(tab === "terminal" ? "transcript" : "terminal"), {
        when: () => hasTerminal,
      }),
      on("Tell this session something", "s", () => document.querySelector("[data-send]")?.focus(), { when: exists }),
      on("Take this conversation over", "t", () => takeOver(name), { when: () => canTakeOver }),
      on("Give this conversation back", undefined, () => giveBack(name), { when: () => Boolean(terminal?.person) }),
      ...deedCommands(
        () => known(name, rows),
        exists,
        () => hasTerminal || canTakeOver,
      ),
    ],
    [name, hasTerminal, canTakeOver, tab, others.join(" "), rows, terminal?.person],
  );
  if (!one.session)
    return html`<${Empty} title=${rows ? `There is no session ${visible(name, 60)}.` : "…"}><a href=${to("sessions")}>All sessions</a><//>`;
  const wide = showing === "terminal" && columns > WIDE ? "wide" : "";
  return html`<div class=${`session-one ${wide}`}>
    <header class="sessions-bar row">
      <a class="button quiet" href=${to("sessions")} aria-label="All sessions">‹ <span>Sessions</span></a>
      <h1><${State} name=${one.state} word /> <${Words} text=${name} most=${60} /></h1>
      ${one.task && html`<span class="tile-task one-line"><span class="mono">${one.task}</span> <${Words} text=${one.title} most=${160} /></span>`}
      <span class="spring"></span>
      ${
        hasTerminal &&
        html`<span role="group" aria-label="Show"><${Button} kind="quiet" aria-pressed=${String(showing === "terminal")} onClick=${() => {
          setTab("terminal");
          setRun(null);
        }}>Terminal<//><${Button} kind="quiet" keys="v" aria-pressed=${String(showing === "transcript")} onClick=${() => setTab("transcript")}>Transcript<//></span>`
      }
      <${Runs} name=${name} chosen=${run} onChoose=${(/** @type {string | null} */ id) => {
        setRun(id);
        if (id) setTab("transcript");
      }} />
    </header>
    <div class="session-main">
      ${showing === "terminal" ? html`<${Live} key=${`${name} ${terminal?.run}`} session=${name} large control=${control} onHeard=${(/** @type {Partial<TerminalShown>} */ said) => said.columns && setColumns(said.columns)} />` : html`<${Transcript} key=${`${name} ${run ?? ""}`} session=${name} run=${run} />`}
    </div>
    <${Side} one=${{ ...one, person: Boolean(terminal?.person) }} terminal=${hasTerminal} canTakeOver=${canTakeOver} onType=${type} />
  </div>`;
}

/** @param {{ what: string | null }} props */
export function View({ what }) {
  useTopics("sessions", "tasks");
  const [rows] = useRead(() => get("/api/sessions"), ["runs", "sessions"], []);
  const all = [...state.sessions.values()]
    .filter((session) => session.kind === "run")
    .map((session) => known(session.name, rows))
    .sort((one, other) => one.name.localeCompare(other.name));
  return what
    ? html`<${One} key=${what} name=${what} all=${all} rows=${rows} />`
    : html`<${Grid} all=${all} rows=${rows} />`;
}
