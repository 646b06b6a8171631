// The merge queue: gates that run, the train in its order, what was sent back and why, what has landed.
import { html, useEffect, useState } from "../lib.js";
import { get, post } from "../data/api.js";
import { inGroup, useCommands } from "../widgets/keys.js";
import { approve, GateLog, hold, Progress, retry, Reverting, Row, sendBack } from "../queue/merge.js";
import { Overlap } from "../queue/overlap_view.js";
import { useRows, useTick } from "../widgets/view_hooks.js";
import { go, to } from "../data/routes.js";
import { useRead } from "../data/store.js";
import { revertsUnderWay } from "../rules/merge_steps.js";
import { clock, some, span, visible } from "../rules/text.js";
import { Age, attempt, Button, confirm, Empty, note, State, Words } from "../widgets/ui.js";
/** @import { LandingRow, QueueFull } from "types/rest.js" */
/** @import { GateRun, Merge } from "types/page.js" */
/** @import { Child } from "types/vendor/preact.js" */

const on = inGroup("Merge queue");

const TABS = [
  { id: "train", title: "Train" },
  { id: "landings", title: "Landings" },
  { id: "flakes", title: "Flaky tests" },
  { id: "overlap", title: "Overlap" },
];
const TOPICS = ["merges", "fleet", "log", "connection"];

/** @param {{ what: string | null }} props */
export function View({ what }) {
  const tab = TABS.some(({ id }) => id === what) ? what : "train";
  const [queue, problem] = useRead(() => get("/api/queue"), TOPICS);
  const tick = useTick(TOPICS, 1000);
  const [all] = useRead(() => get("/api/merges?all=true&limit=300"), [], [tick]);
  useCommands(
    TABS.map(({ id, title }) => on(`Merge queue: ${title}`, undefined, () => go("queue", id))),
    [],
  );
  return html`<div class="sheet queue">
    ${queue && html`<${Standing} queue=${queue} />`}
    <nav class="subtabs" aria-label="Parts of the merge queue">${TABS.map(({ id, title }) => html`<a key=${id} class="tab" href=${to("queue", id)} aria-current=${id === tab ? "page" : null}>${title}${id === "train" && queue?.merges.length ? html` <span class="count">${queue.merges.length}</span>` : ""}</a>`)}</nav>
    ${problem && !queue && html`<p class="loading">${problem.message}</p>`}
    ${tab === "train" && queue && html`<${Train} queue=${queue} all=${all} first=${what?.startsWith("merge-") ? what : null} />`}
    ${tab === "landings" && html`<${Landings} all=${all} />`}
    ${tab === "flakes" && html`<${Flakes} />`}
    ${tab === "overlap" && html`<${Overlap} />`}
  </div>`;
}

// How it stands

/**
 * @param {"pause" | "freeze"} verb
 * @param {"resume" | "thaw"} back
 * @param {string} title
 * @param {string} body
 * @param {string} said
 */
async function stop(verb, back, title, body, said) {
  const reason = await confirm({ title, body, text: "Why (if you want to say)", action: "Yes" });
  if (reason === null) return;
  const done = await attempt(() => post(`/api/queue/${verb}`, reason ? { reason: reason.replace(/\s+/g, " ") } : {}));
  if (done !== undefined) note(said, { undo: () => attempt(() => post(`/api/queue/${back}`), "Taken back.") });
}

const pause = () =>
  stop(
    "pause",
    "resume",
    "Pause the merge queue?",
    "What is tested now is tested to its end; nothing more is tested or landed.",
    "The queue is paused.",
  );
const freeze = () =>
  stop("freeze", "thaw", "Freeze main?", "Testing goes on, and what passes waits for main.", "Main is frozen.");
const resume = () => attempt(() => post("/api/queue/resume"), "The queue goes on.");
const thaw = () => attempt(() => post("/api/queue/thaw"), "Main may move again.");

/** @param {{ queue: QueueFull }} props */
function Standing({ queue }) {
  const stopped = queue.paused || queue.halted;
  useCommands(
    [
      on(stopped ? "Resume the merge queue" : "Pause the merge queue", undefined, stopped ? resume : pause),
      on(queue.frozen ? "Let main move again" : "Freeze main", undefined, queue.frozen ? thaw : freeze),
    ],
    [stopped, queue.frozen],
  );
  const share = queue.ended ? `${queue.rejected} of the last ${queue.ended} sent back` : "nothing has ended yet";
  return html`<header class="sheet-head row">
    <div class="figures">
      <span><strong>${queue.landed_hour}</strong> landed in the last hour</span>
      <span>${share}</span>
      <span>${queue.gate_seconds ? `a gate takes ${queue.gate_seconds < 1 ? "under 1 s" : `about ${span(queue.gate_seconds)}`}` : "no gate has passed yet"}</span>
      <span class="faint">onto <${Words} text=${queue.branch} />, ${queue.strategy}${queue.slots ? `, ${some(queue.slots, "slot")}` : ""}</span>
    </div>
    <div class="sheet-actions">
      ${stopped ? html`<${Button} kind="primary" onClick=${resume}>Resume<//>` : html`<${Button} onClick=${pause}>Pause<//>`}
      ${queue.frozen ? html`<${Button} kind="primary" onClick=${thaw}>Thaw main<//>` : html`<${Button} onClick=${freeze}>Freeze main<//>`}
    </div>
    <${Troubles} queue=${queue} />
  </header>`;
}

/** @param {{ queue: QueueFull }} props */
function Troubles({ queue }) {
  /**
   * @param {string} state
   * @param {string} text
   * @param {number | null} since
   */
  const said = (state, text, since = null) =>
    html`<p key=${text} class=${`trouble raised trouble-${state}`}><${State} name=${state} /> <${Words} text=${text} />${since ? html` <${Age} since=${since} />` : ""}</p>`;
  /**
   * @param {string} what
   * @param {string | null} who
   * @param {string | null} why
   */
  const by = (what, who, why) => `${what}${who ? ` by ${who}` : ""}${why ? `: ${why}` : "."}`;
  const { paused_by, paused_why, frozen_by, frozen_why } = queue;
  return html`${queue.halted && said("failed", `The queue halted: ${queue.halted}`)}
    ${queue.paused && said("paused", by("The queue is paused", paused_by, paused_why), queue.paused_since)}
    ${queue.frozen && said("held", by("Main is frozen", frozen_by, frozen_why), queue.frozen_since)}
    ${queue.fleet_paused && said("paused", "The whole fleet is paused, and so is the queue.")}
    ${!queue.checked && said("held", "There is no gate: merge.check in covey.toml is empty, so work lands only when you approve it.")}
    ${queue.troubles.map((trouble) => said("failed", trouble))}
    ${queue.limits.map((limit) => said("held", limit))}`;
}

// The train

/** @param {{ queue: QueueFull, all: Merge[] | null, first: string | null }} props */
function Train({ queue, all, first }) {
  const [open, setOpen] = useState(first);
  useEffect(() => first && setOpen(first), [first]);
  useRows(".queue [data-row]", "merge");
  const known = new Map([...(all ?? []), ...queue.merges].map((merge) => [merge.id, merge]));
  const last = new Map((all ?? []).map((merge) => [merge.task, merge.id])); // the oldest come first: what was tried again since is told there
  const ended = (all ?? [])
    .filter((merge) => ["rejected", "withdrawn"].includes(merge.state) && last.get(merge.task) === merge.id)
    .sort((a, b) => (b.ended ?? 0) - (a.ended ?? 0))
    .slice(0, 40);
  useMergeCommands(known);
  /** @param {Merge} merge */
  const draw = (merge) => html`<${Row} key=${merge.id} merge=${merge} open=${open === merge.id} onOpen=${setOpen} />`;
  const beside = open && all && !queue.merges.some(({ id }) => id === open) && !ended.some(({ id }) => id === open);
  return html`<div class="sheet-body">
    <${Slots} queue=${queue} known=${known} onOpen=${setOpen} />
    ${beside && (known.has(open) ? html`<${Opened}><ol class="merges boxed">${draw(/** @type {Merge} */ (known.get(open)))}</ol><//>` : html`<${Older} key=${open} id=${open} draw=${draw} />`)}
    <section aria-labelledby="train-title">
      <h2 id="train-title">Train <span class="count">${queue.merges.length}</span></h2>
      ${queue.merges.length ? html`<ol class="merges boxed">${queue.merges.map(draw)}</ol>` : html`<${Empty} title="Nothing wants to land."><p>What agents hand in comes here by itself. Bring a branch of your own: <code>covey merge queue my/branch</code></p><//>`}
    </section>
    ${
      ended.length > 0 &&
      html`<section aria-labelledby="back-title">
      <h2 id="back-title">Sent back or taken out <span class="count">${ended.length}</span></h2>
      <ol class="merges boxed">${ended.map(draw)}</ol>
    </section>`
    }
  </div>`;
}

/** @param {{ children: Child }} props */
const Opened = ({ children }) =>
  html`<section aria-labelledby="opened-title"><h2 id="opened-title">Opened</h2>${children}</section>`;

/**
 * A merge that is not among the last ones, or that there is not.
 * @param {{ id: string, draw: (merge: Merge) => Child }} props
 */
function Older({ id, draw }) {
  const [merge, problem] = useRead(() => get(`/api/merges/${encodeURIComponent(id)}`), ["merges"], [id]);
  if (!merge) return html`<${Opened}><p class="soft" role="status">${problem ? problem.message : "…"}</p><//>`;
  return html`<${Opened}><ol class="merges boxed">${draw(merge)}</ol><//>`;
}

/**
 * Let one key act on the merge that has the focus.
 * @param {Map<string, Merge>} known
 */
function useMergeCommands(known) {
  const inFocus = () =>
    known.get(document.activeElement?.closest(".merge")?.querySelector("[data-merge]")?.dataset.merge ?? "");
  /**
   * @param {string} label
   * @param {string} keys
   * @param {(merge: Merge) => unknown} work
   * @param {string[]} states
   */
  const act = (label, keys, work, states) =>
    on(label, keys, () => work(/** @type {Merge} */ (inFocus())), {
      when: () => states.includes(inFocus()?.state ?? ""),
    });
  useCommands(
    [
      act("Approve this merge", "a", approve, ["review", "queued"]),
      act("Send this merge back", "b", sendBack, ["review", "queued", "testing", "passed"]),
      act("Hold this merge", "h", hold, ["queued", "testing"]),
      act("Try this merge again", "t", retry, ["rejected", "withdrawn", "queued"]),
    ],
    [known],
  );
}

/** @param {{ queue: QueueFull, known: Map<string, Merge>, onOpen: (id: string | null) => void }} props */
function Slots({ queue, known, onOpen }) {
  const count = Math.max(queue.slots, ...queue.running.map((gate) => gate.slot), 0);
  if (!count && !queue.running.length) return null;
  const lanes = Array.from({ length: count }, (_, i) => queue.running.find((gate) => gate.slot === i + 1) ?? null);
  lanes.push(...queue.running.filter((gate) => !lanes.includes(gate)));
  const busy = lanes.flatMap((gate, i) => (gate ? [{ gate, number: i + 1 }] : []));
  const idle = lanes.length - busy.length;
  return html`<section aria-labelledby="slots-title">
    <h2 id="slots-title">Slots</h2>
    <ol class="slots">${busy.map(({ gate, number }) => html`<${Slot} key=${number} number=${number} gate=${gate} usual=${queue.gate_seconds} known=${known} onOpen=${onOpen} />`)}
      ${idle > 0 && html`<li key="idle" class="slots-idle soft"><${State} name="idle" /> ${some(idle, "slot")} idle</li>`}</ol>
  </section>`;
}

/**
 * @param {{ number: number, gate: GateRun, usual: number | null, known: Map<string, Merge>, onOpen: (id: string | null) => void }} props
 */
function Slot({ number, gate, usual, known, onOpen }) {
  const [log, setLog] = useState(false);
  return html`<li class="slot boxed">
    <span class="slot-number">${number}</span>
    <${State} name="testing" word />
    <span class="slot-what">${gate.merges.length ? gate.merges.map((id) => html`<button type="button" class="chip" key=${id} onClick=${() => onOpen(id)} title=${visible(known.get(id)?.title ?? "", 300)}>${known.get(id)?.task ?? id}</button>`) : "main alone"}</span>
    <${Progress} key=${gate.id} gate=${gate} usual=${usual} />
    <${Button} kind="quiet" aria-expanded=${log} onClick=${() => setLog(!log)}>${log ? "Hide log" : "Log"}<//>
    ${log && html`<${GateLog} id=${gate.id} />`}
  </li>`;
}

// What has landed

/** @param {{ all: Merge[] | null }} props */
function Landings({ all }) {
  const [landings, problem] = useRead(() => get("/api/landings?limit=200"), TOPICS);
  const [reverting, setReverting] = useState(/** @type {Merge | null} */ (null));
  useRows(".queue [data-row]", "landing");
  if (!landings) return html`<p class="loading">${problem?.message ?? "…"}</p>`;
  if (!landings.length)
    return html`<${Empty} title="Nothing has landed yet."><p>Each move of main is written here: what it was, what it is, after which gate.</p><//>`;
  const known = new Map((all ?? []).map((merge) => [merge.id, merge]));
  const reverts = revertsUnderWay(all ?? []);
  return html`<div class="sheet-body"><ol class="landings">${landings.map((landing) => html`<${Landing} key=${landing.id} landing=${landing} known=${known} reverts=${reverts} onRevert=${setReverting} />`)}</ol>
    ${reverting && html`<${Reverting} merge=${reverting} onClose=${() => setReverting(null)} />`}
  </div>`;
}

/**
 * @param {{ landing: LandingRow, known: Map<string, Merge>, reverts: Map<string, Merge>, onRevert: (merge: Merge) => void }} props
 */
function Landing({ landing, known, reverts, onRevert }) {
  const pushed = landing.pushed ? `pushed to ${landing.remote} ${clock(landing.pushed)}` : "";
  return html`<li class="landing boxed">
    <div class="landing-head row"><${State} name="landed" /><span>${clock(landing.made)}</span><span class="mono">${landing.before.slice(0, 8)} → ${landing.commit.slice(0, 8)}</span>
      <span class="faint">on <${Words} text=${landing.branch} />${landing.untested ? ", without a test" : landing.gate ? `, after ${landing.gate}` : ""}${pushed ? `, ${pushed}` : ""}</span></div>
    <ul>${landing.merges.map((id) => html`<${Landed} key=${id} id=${id} merge=${known.get(id)} revert=${reverts.get(id)} onRevert=${onRevert} />`)}</ul>
  </li>`;
}

/**
 * @param {{ id: string, merge: Merge | undefined, revert: Merge | undefined, onRevert: (merge: Merge) => void }} props
 */
function Landed({ id, merge, revert, onRevert }) {
  if (!merge) return html`<li class="landed"><a href=${to("queue", id)} class="mono">${id}</a></li>`;
  return html`<li class="landed" data-row tabindex="-1">
    <a href=${to("review", merge.task)}>${merge.task}</a><span class="landed-title one-line"><${Words} text=${merge.title} most=${200} /></span>
    <span class="faint"><${Words} text=${merge.session} /></span>
    ${merge.state === "landed" ? html`<${Revert} merge=${merge} revert=${revert} onRevert=${onRevert} />` : html`<${State} name=${merge.state} word />`}
  </li>`;
}

/**
 * The button that takes landed work out of main, or how far that is.
 * @param {{ merge: Merge, revert: Merge | undefined, onRevert: (merge: Merge) => void }} props
 */
function Revert({ merge, revert, onRevert }) {
  if (!revert) return html`<${Button} onClick=${() => onRevert(merge)}>Revert<//>`;
  return html`<a class="landed-revert" href=${to("queue", revert.id)}>${revert.task} ${revert.state === "review" ? "would revert it, and waits for your approval" : "reverts it"}</a>`;
}

function Flakes() {
  const [flakes, problem] = useRead(() => get("/api/flakes"), TOPICS);
  const [open, setOpen] = useState(/** @type {string | null} */ (null));
  useRows(".queue [data-row]", "test");
  if (!flakes) return html`<p class="loading">${problem?.message ?? "…"}</p>`;
  if (!flakes.length)
    return html`<${Empty} title="No test has flaked."><p>A test that fails and then passes on the very same tree is listed here, with the log of where it failed.</p><//>`;
  return html`<div class="sheet-body"><ul class="flakes">${flakes.map(
    (flake) => html`<li key=${flake.test} class="flake boxed">
    <button type="button" class="flake-head row-button" data-row aria-expanded=${open === flake.test} onClick=${() => setOpen(open === flake.test ? null : flake.test)}>
      <${Words} text=${flake.test} class="mono" most=${300} /><span class="faint">${some(flake.times, "time")}, last <${Age} since=${flake.last} /> ago, first ${clock(flake.first)}</span>
    </button>
    ${open === flake.test && html`<${GateLog} id=${flake.gate} />`}
  </li>`,
  )}</ul></div>`;
}
