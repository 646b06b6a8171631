// The list of work that can be reviewed; several tasks can be approved or sent back at once.
import { html, useMemo, useState } from "../lib.js";
import { get } from "../data/api.js";
import { Size } from "./diff_view.js";
import { liveOf } from "../board/card.js";
import { inGroup, useCommands } from "../widgets/keys.js";
import { approveAll, sendBackAll } from "../queue/merge.js";
import { step, useRows, useTick } from "../widgets/view_hooks.js";
import { go, to } from "../data/routes.js";
import { state, useRead, useTopics } from "../data/store.js";
import { faceOf } from "../rules/columns.js";
import { some } from "../rules/text.js";
import { Age, Button, Empty, State, Words } from "../widgets/ui.js";
/** @import { ReviewRow } from "types/rest.js" */
/** @import { Task } from "types/page.js" */
/** @import { Child } from "types/vendor/preact.js" */

const on = inGroup("Review");

/** @type {Record<string, number>} */
const ORDER = { review: 0, blocked: 1, merging: 2, doing: 3 };
/** @type {Record<string, string>} */
const TITLES = { review: "Waiting for you", blocked: "Blocked", merging: "On the way to main", doing: "Being written" };
const TOGETHER = 30;

/** Return the tasks with work to look at, those that wait for a person first, the oldest of them first. */
export function waiting() {
  return [...state.tasks.values()]
    .filter(
      (task) =>
        task.kind === "change" &&
        task.status in ORDER &&
        (task.status !== "blocked" || task.failed_tries || task.sent_back || task.commit),
    )
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
  const [marked, setMarked] = useState(/** @type {Set<string>} */ (new Set()));
  const chosen = rows.filter(({ id }) => marked.has(id));
  const toApprove = chosen.filter(({ id }) => work.get(id)?.waits);
  /**
   * @param {string[]} ids
   * @param {boolean | null} [to]
   */
  const choose = (ids, to = null) =>
    setMarked((before) => {
      const next = new Set(before);
      for (const id of ids) (to ?? !before.has(id)) ? next.add(id) : next.delete(id);
      return next;
    });
  /** @param {number} by */
  const extend = (by) => {
    const from = focused();
    step(".waiting-link", by);
    choose(
      [from, focused()].filter((id) => id !== null),
      true,
    );
  };
  /** @param {string} status */
  const all = (status) => rows.filter((task) => task.status === status).map(({ id }) => id);
  /** @param {string} status */
  const chooseAll = (status) => choose(all(status), !all(status).every((id) => marked.has(id)));
  const ids = chosen.slice(0, TOGETHER).map(({ id }) => id);
  const together = () => chosen.length > 1 && go("review", ids.join(","));
  /**
   * @param {(rows: ReviewRow[]) => Promise<boolean>} deed
   * @param {Task[]} tasks
   */
  const answer = async (deed, tasks) => {
    const known = tasks.map(({ id }) => work.get(id)).filter((row) => row !== undefined);
    if (await deed(known.filter(({ merge }) => merge !== null))) setMarked(new Set());
  };
  const here = () => rows.filter(({ id }) => id === focused() && work.get(id)?.waits);
  const answered = () => (chosen.length ? toApprove : here());
  useRows(".waiting-link", "task");
  useCommands(
    [
      on("Choose the task", "x", () => choose([focused()].filter((id) => id !== null))),
      on("Choose this and the next", ["J", "shift+arrowdown"], () => extend(1)),
      on("Choose this and the one before", ["K", "shift+arrowup"], () => extend(-1)),
      on("Choose all that wait for you", "mod+a", () => chooseAll("review")),
      on("Show the chosen tasks together", "t", together, { when: () => chosen.length > 1 }),
      on("Approve what is chosen", "a", () => answer(approveAll, answered()), { when: () => answered().length > 0 }),
      on("Send back what is chosen", "b", () => answer(sendBackAll, answered()), { when: () => answered().length > 0 }),
      on("Choose none", "escape", () => setMarked(new Set()), { unlisted: true, when: () => marked.size > 0 }),
    ],
    [rows, marked, work],
  );
  if (!rows.length) {
    return html`<${Empty} title="Nothing waits for a review."><p>Work stands here once an agent has handed it in. <code>review = true</code> under <code>[merge]</code> in covey.toml lets all of it wait for you.</p><//>`;
  }
  const waits = rows.filter(({ status }) => status === "review").length;
  return html`<div class="waiting">
    <header class=${`waiting-head row ${chosen.length ? "is-choosing" : ""}`}>
      ${
        chosen.length
          ? html`<div class="waiting-tools row" role="toolbar" aria-label="Chosen tasks">
        <strong>${chosen.length} chosen</strong><span class="spring"></span>
        <${Button} disabled=${chosen.length < 2} keys="t" onClick=${together}>Show together<//>
        <${Button} disabled=${!toApprove.length} keys="b" onClick=${() => answer(sendBackAll, toApprove)}>Send back<//>
        <${Button} kind="primary" disabled=${!toApprove.length} keys="a" onClick=${() => answer(approveAll, toApprove)}>Approve ${toApprove.length || ""}<//>
        <button type="button" class="button quiet" aria-label="Choose none" onClick=${() => setMarked(new Set())}>✕</button></div>`
          : html`<h2>Review</h2><span class="soft">${waits ? `${some(waits, "task")} ${waits === 1 ? "waits" : "wait"} for you` : "nothing waits for you"}</span>`
      }
    </header>
    <ul class="waiting-rows">
      ${rows.map(
        (
          task,
          i,
        ) => html`<${Grouped} key=${task.id} first=${rows[i - 1]?.status !== task.status} status=${task.status} ids=${all} marked=${marked} onAll=${chooseAll}>
        <${Row} task=${task} work=${work.get(task.id)} isChosen=${marked.has(task.id)} onChoose=${() => choose([task.id])} /><//>`,
      )}
    </ul>
  </div>`;
}

/**
 * @param {{ first: boolean, status: string, ids: (status: string) => string[], marked: Set<string>, onAll: (status: string) => void, children: Child }} props
 */
function Grouped({ first, status, ids, marked, onAll, children }) {
  if (!first) return children;
  const names = ids(status);
  const isWhole = names.every((id) => marked.has(id));
  return [
    html`<li class="waiting-group row"><label class="waiting-pick"><input type="checkbox" aria-label=${`Choose all: ${TITLES[status]}`} checked=${isWhole} onChange=${() => onAll(status)} /></label>
    <h3>${TITLES[status]}</h3><span class="count">${names.length}</span></li>`,
    children,
  ];
}

/**
 * Return how much a task changes: what is committed, and while it is being written what its session has besides.
 * @param {Task} task
 * @param {ReviewRow | undefined} work
 */
function sizeOf(task, work) {
  const live = liveOf(task);
  if (live?.files) return live;
  return work?.files ? work : null;
}

/** @param {{ task: Task, work: ReviewRow | undefined, isChosen: boolean, onChoose: () => void }} props */
function Row({ task, work, isChosen, onChoose }) {
  const size = sizeOf(task, work);
  return html`<li class=${`waiting-row ${isChosen ? "is-chosen" : ""}`} data-task=${task.id}>
    <label class="waiting-pick"><input type="checkbox" aria-label=${`Choose ${task.id}`} checked=${isChosen} onChange=${onChoose} /></label>
    <a class="waiting-link" href=${to("review", task.id)}>
      <${State} name=${task.status === "doing" ? faceOf(task, "doing", liveOf(task)) : task.status} />
      <span class="waiting-title one-line"><${Words} text=${task.title} most=${200} /></span>
      <span class="waiting-id mono">${task.id}</span>
      <${Clash} conflicts=${work?.conflicts ?? []} />
      <span class="waiting-files faint">${size && some(size.files ?? 0, "file")}</span>
      <span class="waiting-size">${size && html`<${Size} plus=${size.plus} minus=${size.minus} />`}</span>
      <span class="soft waiting-author one-line"><${Words} text=${work?.session ?? task.session ?? ""} most=${40} /></span>
      <${Age} since=${task.updated} />
    </a>
  </li>`;
}

/**
 * Say with whom work conflicts.
 * @param {{ conflicts: string[] }} props
 */
function Clash({ conflicts }) {
  if (!conflicts.length) return html`<span class="waiting-clash"></span>`;
  const [first, ...more] = [...conflicts].sort((one, other) => Number(other === "main") - Number(one === "main"));
  return html`<span class="waiting-clash"><${State} name="clashed" /><span class="one-line">conflicts with ${first}${more.length ? ` and ${more.length} more` : ""}</span></span>`;
}
