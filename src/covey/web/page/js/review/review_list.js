// What can be reviewed: one row for each task, with how large its work is and what it conflicts with; many are answered at once.
import { html, useMemo, useState } from "./lib.js";
import { get } from "./api.js";
import { Size } from "./changes.js";
import { useCommands } from "./keys.js";
import { approveAll, sendBackAll } from "./merge.js";
import { step, useTick } from "./pace.js";
import { go, to } from "./places.js";
import { state, useRead, useTopics } from "./store.js";
import { some } from "./text.js";
import { Age, Button, Empty, State, Words } from "./ui.js";

const ORDER = { review: 0, blocked: 1, merging: 2, doing: 3 };
const TITLES = { review: "Waiting for you", blocked: "Blocked", merging: "On the way to main", doing: "Being written" };
const TOGETHER = 30;

/** Return the tasks with work to look at, those that wait for a person first, the oldest of them first. */
export function waiting() {
  return [...state.tasks.values()]
    .filter((task) => task.kind === "change" && task.status in ORDER && (task.status !== "blocked" || task.failed_tries || task.sent_back || task.commit))
    .sort((one, other) => ORDER[one.status] - ORDER[other.status] || one.updated - other.updated);
}

/** Return what the daemon knows of the work that is under way, by task; read again when something moves. */
export function useWork() {
  const tick = useTick(["tasks", "merges", "overlaps"], 2000);
  const [found] = useRead(() => get("/api/review"), [], [tick]);
  return useMemo(() => new Map((found ?? []).map((row) => [row.task, row])), [found]);
}

const focused = () => document.activeElement?.closest?.("[data-task]")?.dataset.task ?? null;

/** All that can be reviewed. */
export function Waiting() {
  useTopics("tasks", "live", "loaded");
  const work = useWork();
  const rows = waiting();
  const [marked, setMarked] = useState(new Set());
  const chosen = rows.filter(({ id }) => marked.has(id));
  const toApprove = chosen.filter(({ id }) => work.get(id)?.waits);
  const choose = (ids, to = null) => setMarked((before) => {
    const next = new Set(before);
    for (const id of ids) (to ?? !before.has(id)) ? next.add(id) : next.delete(id);
    return next;
  });
  const extend = (by) => {
    const from = focused();
    step(".waiting-link", by);
    choose([from, focused()].filter(Boolean), true);
  };
  const all = (status) => rows.filter((task) => task.status === status).map(({ id }) => id);
  const chooseAll = (status) => choose(all(status), !all(status).every((id) => marked.has(id)));
  const together = () => chosen.length > 1 && go("review", chosen.slice(0, TOGETHER).map(({ id }) => id).join(","));
  const answer = async (deed, tasks) => {
    if (await deed(tasks.map(({ id }) => work.get(id)).filter((row) => row?.merge))) setMarked(new Set());
  };
  const here = () => rows.filter(({ id }) => id === focused() && work.get(id)?.waits);
  const answered = () => (chosen.length ? toApprove : here());
  useCommands([
    { label: "Next task", keys: ["j", "arrowdown"], unlisted: true, run: () => step(".waiting-link", 1) },
    { label: "Previous task", keys: ["k", "arrowup"], unlisted: true, run: () => step(".waiting-link", -1) },
    { label: "Choose the task", group: "Review", keys: "x", run: () => focused() && choose([focused()]) },
    { label: "Choose this and the next", group: "Review", keys: ["J", "shift+arrowdown"], run: () => extend(1) },
    { label: "Choose this and the one before", group: "Review", keys: ["K", "shift+arrowup"], run: () => extend(-1) },
    { label: "Choose all that wait for you", group: "Review", keys: "mod+a", run: () => chooseAll("review") },
    { label: "Show the chosen tasks together", group: "Review", keys: "t", when: () => chosen.length > 1, run: together },
    { label: "Approve what is chosen", group: "Review", keys: "a", when: () => answered().length > 0, run: () => answer(approveAll, answered()) },
    { label: "Send back what is chosen", group: "Review", keys: "b", when: () => answered().length > 0, run: () => answer(sendBackAll, answered()) },
    { label: "Choose none", group: "Review", keys: "escape", unlisted: true, when: () => marked.size > 0, run: () => setMarked(new Set()) },
  ], [rows, marked, work]);
  if (!rows.length) {
    return html`<${Empty} title="Nothing waits for a review."><p>Work stands here once an agent has handed it in. <code>review = true</code> under <code>[merge]</code> in covey.toml lets all of it wait for you.</p><//>`;
  }
  const waits = rows.filter(({ status }) => status === "review").length;
  return html`<div class="waiting">
    <header class=${`waiting-head ${chosen.length ? "is-choosing" : ""}`}>
      ${chosen.length ? html`<div class="waiting-tools" role="toolbar" aria-label="Chosen tasks">
        <strong>${chosen.length} chosen</strong><span class="review-room"></span>
        <${Button} disabled=${chosen.length < 2} keys="t" onClick=${together}>Show together<//>
        <${Button} disabled=${!toApprove.length} keys="b" onClick=${() => answer(sendBackAll, toApprove)}>Send back<//>
        <${Button} kind="primary" disabled=${!toApprove.length} keys="a" onClick=${() => answer(approveAll, toApprove)}>Approve ${toApprove.length || ""}<//>
        <button type="button" class="button quiet" aria-label="Choose none" onClick=${() => setMarked(new Set())}>✕</button></div>`
        : html`<h2>Review</h2><span class="soft">${waits ? `${some(waits, "task")} ${waits === 1 ? "waits" : "wait"} for you` : "nothing waits for you"}</span>`}
    </header>
    <ul class="waiting-rows">
      ${rows.map((task, i) => html`<${Grouped} key=${task.id} first=${rows[i - 1]?.status !== task.status} status=${task.status} ids=${all} marked=${marked} onAll=${chooseAll}>
        <${Row} task=${task} work=${work.get(task.id)} isChosen=${marked.has(task.id)} onChoose=${() => choose([task.id])} /><//>`)}
    </ul>
  </div>`;
}

function Grouped({ first, status, ids, marked, onAll, children }) {
  if (!first) return children;
  const names = ids(status);
  const isWhole = names.every((id) => marked.has(id));
  return [html`<li class="waiting-group"><label class="waiting-pick"><input type="checkbox" aria-label=${`Choose all: ${TITLES[status]}`} checked=${isWhole} onChange=${() => onAll(status)} /></label>
    <h3>${TITLES[status]}</h3><span class="count">${names.length}</span></li>`, children];
}

/** Return how much a task changes: what is committed, and while it is being written what its session has besides. */
function sizeOf(task, work) {
  const live = task.session ? state.live.get(task.session) : null;
  if (live?.task === task.id && live.files) return live;
  return work?.files ? work : null;
}

function Row({ task, work, isChosen, onChoose }) {
  const size = sizeOf(task, work);
  return html`<li class=${`waiting-row ${isChosen ? "is-chosen" : ""}`} data-task=${task.id}>
    <label class="waiting-pick"><input type="checkbox" aria-label=${`Choose ${task.id}`} checked=${isChosen} onChange=${onChoose} /></label>
    <a class="waiting-link" href=${to("review", task.id)}>
      <${State} name=${task.status} />
      <span class="waiting-title"><${Words} text=${task.title} most=${200} /></span>
      <span class="waiting-id mono">${task.id}</span>
      <${Clash} conflicts=${work?.conflicts ?? []} />
      <span class="waiting-files faint">${size && some(size.files, "file")}</span>
      <span class="waiting-size">${size && html`<${Size} plus=${size.plus} minus=${size.minus} />`}</span>
      <span class="soft waiting-author"><${Words} text=${work?.session ?? task.session ?? ""} most=${40} /></span>
      <${Age} since=${task.updated} />
    </a>
  </li>`;
}

/** Say with whom work conflicts. */
function Clash({ conflicts }) {
  if (!conflicts.length) return html`<span class="waiting-clash"></span>`;
  const [first, ...more] = [...conflicts].sort((one, other) => (other === "main") - (one === "main"));
  return html`<span class="waiting-clash"><${State} name="clashed" /><span>conflicts with ${first}${more.length ? ` and ${more.length} more` : ""}</span></span>`;
}
