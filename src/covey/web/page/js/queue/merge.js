// One merge: its steps, why it waits, its gates, and what can be done with it.
import { html, useEffect, useRef, useState } from "../lib.js";
import { repeat } from "../widgets/view_hooks.js";
import { get, post } from "../data/api.js";
import { saidOfWait } from "../rules/columns.js";
import { saidOfRevert, stepsOf } from "../rules/merge_steps.js";
import { useRead } from "../data/store.js";
import { clock, some, span } from "../rules/text.js";
import { to } from "../data/routes.js";
import { Age, attempt, Button, confirm, Dialog, note, State, Words } from "../widgets/ui.js";
/** @import { MergeRow, ReviewRow } from "types/rest.js" */
/** @import { GateRun, Merge, Trouble } from "types/page.js" */
/** @import { Ref } from "types/vendor/hooks.js" */
/** @import { PageEvent } from "types/vendor/htm.js" */

// What can be done

const OPEN = ["review", "queued", "testing", "passed"];
const AGAIN = ["rejected", "withdrawn"];

/**
 * Do something with a merge and offer to take it back; returns the merge as it is then, or undefined.
 * @param {{ id: string }} merge
 * @param {"approve" | "reject" | "hold" | "retry" | "drop" | "revert"} verb
 * @param {object} body
 * @param {string | ((after: MergeRow) => string)} said
 * @param {((after: MergeRow) => Promise<unknown>) | null} [undo]
 */
async function change(merge, verb, body, said, undo = null) {
  const after = await attempt(() => post(`/api/merges/${merge.id}/${verb}`, body));
  if (after)
    note(typeof said === "function" ? said(after) : said, {
      undo: undo && (() => attempt(() => undo(after), "Taken back.")),
    });
  return after;
}

/**
 * Let a merge into the queue; taken back, it waits for a person again.
 * @param {Merge} merge
 */
export function approve(merge) {
  return change(merge, "approve", {}, `Approved ${merge.task}.`, () => post(`/api/merges/${merge.id}/hold`, {}));
}

/**
 * Ask what is wrong with work that goes back.
 * @param {string} what
 * @param {string} body
 */
const askWhatIsWrong = (what, body) =>
  confirm({ title: `Send ${what} back?`, body, text: "What is wrong", action: "Send back", required: true });

/**
 * Send a merge back to its author with what is wrong.
 * @param {Merge} merge
 */
export async function sendBack(merge) {
  const reason = await askWhatIsWrong(merge.task, "Its author goes on with it, and is told what you write here.");
  if (reason) await change(merge, "reject", { reason: oneLine(reason) }, `Sent ${merge.task} back.`);
}

/**
 * Do the same with several merges, one after another; says how many it was done with, the rest have told why not.
 * @param {ReviewRow[]} merges
 * @param {"approve" | "reject"} verb
 * @param {object} body
 */
async function each(merges, verb, body) {
  /** @type {string[]} */
  const done = [];
  for (const { merge } of merges)
    if (merge !== null && (await attempt(() => post(`/api/merges/${merge}/${verb}`, body))) !== undefined)
      done.push(merge);
  return done;
}

/**
 * Let the work of several tasks into the queue, asking first where some of it conflicts; says whether that was done.
 * @param {ReviewRow[]} rows
 */
export async function approveAll(rows) {
  const clashing = rows.filter(({ conflicts }) => conflicts.length);
  const body = clashing.length
    ? `${clashing.map(({ task, conflicts }) => `${task} conflicts with ${conflicts.join(", ")}`).join("; ")}. What cannot be merged when its turn comes goes back to its author.`
    : "";
  if (
    clashing.length &&
    (await confirm({ title: `Approve ${some(rows.length, "task")}?`, body, action: "Approve" })) === null
  )
    return false;
  const done = await each(rows, "approve", {});
  const undo = () => Promise.all(done.map((merge) => attempt(() => post(`/api/merges/${merge}/hold`, {}))));
  if (done.length)
    note(
      done.length === 1
        ? `Approved ${rows.find(({ merge }) => merge === done[0])?.task}.`
        : `Approved ${done.length} tasks.`,
      { undo },
    );
  return done.length > 0;
}

/**
 * Send the work of several tasks back with the same words; says whether that was done.
 * @param {ReviewRow[]} rows
 */
export async function sendBackAll(rows) {
  const what = rows.length === 1 ? rows[0].task : `${rows.length} tasks`;
  const reason = await askWhatIsWrong(what, "Each author goes on with its own, and is told what you write here.");
  if (!reason) return false;
  const done = await each(rows, "reject", { reason: oneLine(reason) });
  if (done.length) note(`Sent ${some(done.length, "task")} back.`);
  return done.length > 0;
}

/**
 * Let a merge wait for a person.
 * @param {Merge} merge
 */
export async function hold(merge) {
  const reason = await confirm({
    title: `Hold ${merge.task}?`,
    body: "It waits until you approve it.",
    text: "Why (if you want to say)",
    action: "Hold",
  });
  if (reason !== null)
    await change(merge, "hold", because(reason), `${merge.task} is held.`, () =>
      post(`/api/merges/${merge.id}/approve`, {}),
    );
}

/**
 * Bring a merge into the queue again as it is.
 * @param {Merge} merge
 */
export function retry(merge) {
  return change(merge, "retry", {}, `${merge.task} is in the queue again.`);
}

/**
 * Take a merge out of the queue; taken back, it is queued again.
 * @param {Merge} merge
 */
export async function drop(merge) {
  const reason = await confirm({
    title: `Take ${merge.task} out of the queue?`,
    body: "Its work stays on its branch, and its task is blocked until you decide.",
    text: "Why (if you want to say)",
    action: "Take out",
    danger: true,
  });
  if (reason !== null)
    await change(merge, "drop", because(reason), `${merge.task} is out of the queue.`, () =>
      post(`/api/merges/${merge.id}/retry`, {}),
    );
}

/** @param {string} text */
const oneLine = (text) => text.replace(/\s+/g, " ").trim();
/** @param {string} text */
const because = (text) => (text ? { reason: oneLine(text) } : {});

/**
 * Ask whether landed work shall leave main again, and how.
 * @param {{ merge: Merge, onClose: () => void }} props
 */
export function Reverting({ merge, onClose }) {
  const [reason, setReason] = useState("");
  const [reopen, setReopen] = useState(true);
  /** @param {PageEvent} event */
  const go = async (event) => {
    event.preventDefault();
    onClose();
    /** @param {MergeRow} made */
    const undo = (made) => post(`/api/merges/${made.id}/drop`, {});
    await change(merge, "revert", { ...because(reason), reopen }, (made) => saidOfRevert(merge, made), undo);
  };
  return html`<${Dialog} title=${`Revert ${merge.task}?`} onClose=${onClose}>
    <form onSubmit=${go}>
      <p class="dialog-text as-written"><${Words} text=${merge.title} /></p>
      <p class="dialog-text as-written">The revert goes through the queue like any other work: it is tested before main moves, and main stays green. Where work waits for a review, so does this.</p>
      <label class="field"><span>Why (if you want to say)</span><textarea rows="2" data-first value=${reason} onInput=${(event) => setReason(event.target.value)}></textarea></label>
      <label class="check"><input type="checkbox" checked=${reopen} onChange=${(event) => setReopen(event.target.checked)} /> Open the task again, so that somebody does it anew</label>
      <footer class="dialog-foot"><${Button} onClick=${onClose}>Cancel<//><button class="button danger" type="submit">Revert</button></footer>
    </form>
  <//>`;
}

/**
 * The buttons of what can be done with a merge now; `reverted_by`, where it is known, is under way already.
 * @param {{ merge: Merge, again?: boolean }} props
 */
export function Actions({ merge, again = true }) {
  const [reverting, setReverting] = useState(false);
  const waits = merge.state === "review" || (merge.person && !merge.approved);
  return html`<div class="merge-actions buttons">
    ${OPEN.includes(merge.state) && waits && html`<${Button} kind="primary" keys="a" onClick=${() => approve(merge)}>Approve<//>`}
    ${OPEN.includes(merge.state) && html`<${Button} keys="b" onClick=${() => sendBack(merge)}>Send back<//>`}
    ${["queued", "testing"].includes(merge.state) && html`<${Button} keys="h" onClick=${() => hold(merge)}>Hold<//>`}
    ${((AGAIN.includes(merge.state) && again) || (merge.state === "queued" && merge.reason)) && html`<${Button} keys="t" onClick=${() => retry(merge)}>Retry<//>`}
    ${merge.state === "landed" && !merge.reverted_by && html`<${Button} kind="danger" onClick=${() => setReverting(true)}>Revert<//>`}
    <a class="button" href=${to("review", merge.task)}>Diff</a>
    <a class="button" href=${to("timeline", `task=${merge.task}`)}>Timeline</a>
    ${OPEN.includes(merge.state) && html`<${Button} kind="danger" onClick=${() => drop(merge)}>Take out<//>`}
    ${reverting && html`<${Reverting} merge=${merge} onClose=${() => setReverting(false)} />`}
  </div>`;
}

// Where it is

/** @type {Record<string, string>} */
const WORDS = { done: "done", now: "now", next: "not yet", skipped: "left out", failed: "failed" };

/**
 * The steps of a merge, one after another.
 * @param {{ merge: Merge }} props
 */
export function Steps({ merge }) {
  return html`<ol class="steps" aria-label="Steps">
    ${stepsOf(merge).map(({ name, state }) => html`<li key=${name} class=${`step step-${state}`}>${name}<span class="unseen">: ${WORDS[state]}</span></li>`)}
  </ol>`;
}

// Why, and what the gates said

/**
 * All that is known of a merge, opened in place.
 * @param {{ merge: Merge }} props
 */
export function Whole({ merge }) {
  const [full, problem] = useRead(() => get(`/api/merges/${merge.id}`), ["merges", "log"], [merge.id]);
  const [why] = useRead(() => get(`/api/merges/${merge.id}/why`), ["merges", "log", "fleet"], [merge.id]);
  const now = full ?? merge;
  return html`<div class="merge-whole">
    <${Actions} merge=${now} again=${!why || why.retry} />
    ${problem && html`<p class="soft">${problem.message}</p>`}
    ${why && html`<ul class="because">${why.because.map((said) => html`<li key=${said}><${Words} text=${said} /></li>`)}</ul>`}
    ${full && html`<${Facts} merge=${full} />`}
    ${full?.gates.slice(0, 8).map((gate, i) => html`<${Gate} key=${gate.id} gate=${gate} open=${i === 0 && ["failed", "running"].includes(gate.state)} />`)}
  </div>`;
}

/** @param {{ merge: Merge }} props */
function Facts({ merge }) {
  const facts = [
    ["branch", merge.branch],
    ["commit", merge.commit?.slice(0, 12)],
    ["landed", merge.landed?.slice(0, 12)],
    ["with", merge.group?.join(", ")],
    ["approved by", merge.approved_by],
    ["cannot be merged with", merge.against.join(", ")],
    ["waits for", merge.needs.join(", ")],
    [
      "files",
      merge.paths.length
        ? `${merge.paths.slice(0, 12).join("  ")}${merge.paths.length > 12 ? `  and ${merge.paths.length - 12} more` : ""}`
        : "",
    ],
    ["reverts", merge.reverts],
    [merge.state === "landed" ? "is being reverted by" : "reverted by", merge.reverted_by],
  ].filter(([, value]) => value);
  return html`<dl class="facts">${facts.map(([name, value]) => html`<div key=${name}><dt>${name}</dt><dd><${Words} text=${value} /></dd></div>`)}</dl>`;
}

/** @type {Record<string, string>} */
const PURPOSES = { group: "in the train", solo: "alone", retry: "once more", probe: "main alone" };

/**
 * One gate: what it tested, how that ended, which tests failed, and its log in place.
 * @param {{ gate: GateRun, open?: boolean }} props
 */
export function Gate({ gate, open = false }) {
  const [shown, setShown] = useState(open);
  const name = gate.state === "lost" ? "stopped" : gate.state;
  return html`<div class="gate">
    <div class="gate-head row">
      <${State} name=${name} word />
      <span class="mono">${gate.id}</span>
      <span class="soft">${PURPOSES[gate.purpose] ?? gate.purpose}${gate.merges.length > 1 ? `, with ${gate.merges.length - 1} more` : ""}</span>
      <span class="faint">${clock(gate.started)}${gate.seconds !== null ? `, took ${span(gate.seconds)}` : ""}${gate.step && gate.state === "failed" ? `, failed at ` : ""}${gate.step && gate.state === "failed" ? html`<${Words} text=${gate.step} most=${80} />` : ""}</span>
      <${Button} kind="quiet" aria-expanded=${shown} onClick=${() => setShown(!shown)}>${shown ? "Hide log" : "Log"}<//>
    </div>
    ${
      gate.failures.length > 0 &&
      html`<ul class="failures" aria-label="Failing tests">${gate.failures.slice(0, 20).map((test) => html`<li key=${test}><${State} name="failed" /> <${Words} text=${test} class="mono" most=${300} /></li>`)}
      ${gate.failures.length > 20 && html`<li class="faint">and ${gate.failures.length - 20} more</li>`}</ul>`
    }
    ${gate.why && html`<p class="soft"><${Words} text=${gate.why} /></p>`}
    ${shown && html`<${GateLog} id=${gate.id} />`}
  </div>`;
}

const TAIL = 24_000;
const MOST = 60_000;
const EVERY = 1000;
// biome-ignore lint/suspicious/noControlCharactersInRegex: escape sequences begin with one
const ESCAPES = /\u001b(?:\[[0-?]*[ -/]*[@-~]|[\]PX^_][^\u0007\u001b]*(?:\u0007|\u001b\\)?|[ -/]*[0-~])/g;

/**
 * What a gate printed last, and what it goes on to print.
 * @param {{ id: string }} props
 */
export function GateLog({ id }) {
  const [said, setSaid] = useState(
    /** @type {{ text: string | null, problem: Trouble | null, alive: boolean }} */ ({
      text: null,
      problem: null,
      alive: false,
    }),
  );
  const place = useRef(null);
  useEffect(() => {
    let timer = 0;
    let gone = false;
    let whole = "";
    let since = -TAIL;
    const read = async () => {
      try {
        const part = await get(`/api/gates/${id}/log?since=${since}`);
        if (gone) return;
        whole = (whole + part.text).slice(-MOST);
        since = part.next;
        setSaid({ text: whole, problem: null, alive: part.alive });
        if (part.alive) timer = setTimeout(read, EVERY);
      } catch (error) {
        if (gone) return;
        const problem = /** @type {Trouble & { status: number }} */ (error);
        setSaid((before) => ({ ...before, problem }));
        if (problem.status === 0 || problem.status >= 500) timer = setTimeout(read, EVERY * 3); // the daemon may be back then
      }
    };
    read();
    return () => {
      gone = true;
      clearTimeout(timer);
    };
  }, [id]);
  const atEnd = useRef(true);
  useEffect(() => {
    if (place.current && atEnd.current) place.current.scrollTop = place.current.scrollHeight;
  }, [said.text]);
  /** @param {PageEvent} props */
  const scroll = ({ target }) => (atEnd.current = target.scrollHeight - target.scrollTop - target.clientHeight < 30);
  if (said.problem && said.text === null) return html`<p class="soft gate-log-none">${said.problem.message}</p>`;
  if (said.text === null) return html`<p class="faint gate-log-none">…</p>`;
  const lines = said.text.replace(ESCAPES, "").replace(/\r\n?/g, "\n");
  return html`<pre class="gate-log as-written sunken" ref=${place} onScroll=${scroll} tabindex="0" role="region" aria-label=${`Log of ${id}`}><${Words} text=${lines || "It has printed nothing."} most=${MOST} /></pre>`;
}

/** @param {GateRun} gate */
const passedOf = (gate) => Math.max(Date.now() / 1000 - gate.started, 0);

/**
 * How long a gate has run against what gates take; it moves by itself.
 * @param {{ gate: GateRun, usual: number | null }} props
 */
export function Progress({ gate, usual }) {
  /** @type {Ref<HTMLProgressElement>} */
  const bar = useRef(null);
  const words = useRef(null);
  useEffect(() => {
    const draw = () => {
      const passed = passedOf(gate);
      if (bar.current && usual) bar.current.value = Math.min(passed, usual);
      const text = !usual
        ? span(passed)
        : passed <= usual
          ? `${span(passed)} of about ${span(usual)}`
          : `${span(passed)}, usually ${span(usual)}`;
      if (words.current) words.current.textContent = text;
      if (bar.current) bar.current.setAttribute("aria-valuetext", text);
    };
    return repeat(draw, 500);
  }, [gate.id, usual]);
  return html`<div class="slot-progress">${usual && html`<progress ref=${bar} max=${usual} value=${Math.min(passedOf(gate), usual)} aria-label=${`Progress of ${gate.id}`}></progress>`}<span class="faint" ref=${words}></span></div>`;
}

/** @param {Merge} merge */
const waitsOf = (merge) => (merge.waits ? saidOfWait(merge) : merge.reason);

/**
 * One merge as a row that opens in place.
 * @param {{ merge: Merge, open: boolean, onOpen: (id: string | null) => void }} props
 */
export function Row({ merge, open, onOpen }) {
  const row = useRef(null);
  useEffect(() => {
    if (open) row.current?.scrollIntoView({ block: "nearest" });
  }, [open]);
  const state =
    merge.state === "review" || merge.person ? "needs-you" : merge.state === "withdrawn" ? "dropped" : merge.state;
  return html`<li class=${`merge ${open ? "open" : ""}`} ref=${row}>
    <button type="button" class="merge-head row-button" data-row data-merge=${merge.id} aria-expanded=${open} onClick=${() => onOpen(open ? null : merge.id)}>
      <span class="merge-place">${merge.place !== null && merge.place !== undefined ? merge.place : "–"}</span>
      <${State} name=${state} word />
      <span class="merge-title one-line"><span class="merge-task">${merge.task}</span> <${Words} text=${merge.title} most=${200} /></span>
      <span class="merge-side row">
        <${Steps} merge=${merge} />
        <span class="soft merge-author one-line"><${Words} text=${merge.session} /></span>
        <${Age} since=${merge.ended ?? merge.queued} />
      </span>
      ${(merge.waits || merge.reason) && html`<span class="merge-waits soft"><${Words} text=${waitsOf(merge)} most=${400} /></span>`}
    </button>
    ${open && html`<${Whole} merge=${merge} />`}
  </li>`;
}
