// The panel beside the board with everything about one task, and what can be done with it.
import { html, useEffect, useLayoutEffect, useRef, useState } from "../lib.js";
import { get, query } from "../data/api.js";
import { liveOf, merges } from "./card.js";
import { columnOf, faceOf, lineOf, neighbourhood, neededBy, sinceOf } from "../rules/columns.js";
import { block, drop, release, reopen } from "./task_actions.js";
import { go } from "../data/routes.js";
import { state, useRead, useTopics, waitOf } from "../data/store.js";
import { clock, money, tokens, visible } from "../rules/text.js";
import { Age, Button, State, Words } from "../widgets/ui.js";
/** @import { Try } from "types/rest.js" */
/** @import { Live, Task } from "types/page.js" */

const TRAIL = 60;

/**
 * The panel of one task; `whole` shows all that it hangs on instead of its nearest needs.
 * @param {{ id: string, whole: boolean, onWhole: () => void, onClose: () => void, onEdit: (id: string) => void, onShow: (id: string) => void }} props
 */
export function Peek({ id, whole, onWhole, onClose, onEdit, onShow }) {
  useTopics(`task:${id}`, "sessions", `merge:${id}`, "waits");
  const isDone = state.tasks.get(id)?.status === "done"; // which a revert may leave as it is
  const [full, problem] = useRead(
    () => get(`/api/board/${encodeURIComponent(id)}`),
    isDone ? [`task:${id}`, "merges"] : [`task:${id}`, "waits"],
    [id, isDone],
  );
  const place = useRef(null);
  useLayoutEffect(() => {
    place.current.scrollTop = 0;
  }, [id]);
  const row = state.tasks.get(id);
  const task = full?.id === id ? { ...full, ...row } : row;
  if (!task)
    return html`<aside class="peek" ref=${place} aria-label=${visible(id, 60)}><header class="peek-head row"><h2><${Words} text=${id} most=${60} /></h2><span class="spring"></span><${Close} onClose=${onClose} /></header>
    <p class="loading">${problem ? visible(problem.message) : state.loaded.whole ? "" : "…"}</p></aside>`;
  const column = columnOf(task, state.columns.asks) ?? "dropped";
  const live = liveOf(task);
  return html`<aside class="peek" aria-label=${`Task ${id}`} tabindex="-1">
    <header class="peek-head row"><${State} name=${faceOf(task, column, live)} word /><span class="card-id">${id}</span><${Age} since=${sinceOf(task, column, live)} /><span class="spring"></span><${Close} onClose=${onClose} /></header>
    <div class="peek-body" ref=${place} tabindex="0" role="group" aria-label="Details">
      <h2 class="peek-title"><${Words} text=${task.title} /></h2>
      <p class="peek-line"><${Words} text=${lineOf(task, column, { live, merge: merges.get(id), wait: waitOf(task), tasks: state.tasks })} /></p>
      ${full?.id === id && full.waits?.command ? html`<p class="peek-command faint mono"><${Words} text=${full.waits.command} most=${300} /></p>` : null}
      <${Actions} task=${task} onEdit=${onEdit} />
      ${task.body ? html`<pre class="peek-text as-written"><${Words} text=${task.body} most=${20000} /></pre>` : null}
      <${Facts} task=${task} live=${live} />
      ${task.done_when?.length ? html`<section><h3>Done when</h3><ul class="peek-list as-written">${task.done_when.map((each) => html`<li><${Words} text=${each} /></li>`)}</ul></section>` : null}
      <${Needs} task=${task} whole=${whole} onWhole=${onWhole} onShow=${onShow} />
      ${task.result ? html`<section><h3>Result</h3><pre class="peek-text as-written"><${Words} text=${task.result} most=${20000} /></pre></section>` : null}
      <${Tries} title="Failed tries" tries=${task.tries?.filter(({ by }) => by !== "owner")} />
      <${Tries} title="Sent back by you" tries=${task.tries?.filter(({ by }) => by === "owner")} />
      ${task.notes?.length ? html`<section><h3>Notes</h3><ul class="peek-list as-written">${task.notes.map((each) => html`<li><span class="faint"><${Words} text=${each.by} /> ${clock(each.at)}</span> <${Words} text=${each.text} /></li>`)}</ul></section>` : null}
      <${Trail} id=${id} />
    </div>
  </aside>`;
}

/**
 * What was handed in or tried before; what a person sent back stands apart from what failed.
 * @param {{ title: string, tries: Try[] | undefined }} props
 */
function Tries({ title, tries }) {
  if (!tries?.length) return null;
  return html`<section><h3>${title}</h3><ul class="peek-list as-written">${tries.map((each) => html`<li key=${each.at}><span class="faint"><${Words} text=${each.session} /> ${clock(each.at)}</span><pre class="peek-text as-written"><${Words} text=${each.what} most=${20000} /></pre></li>`)}</ul></section>`;
}

/** @param {{ onClose: () => void }} props */
const Close = ({ onClose }) =>
  html`<button type="button" class="button quiet" aria-label="Close the panel" title="Close (Esc)" onClick=${onClose}>✕</button>`;

/** @param {{ task: Task, onEdit: (id: string) => void }} props */
function Actions({ task, onEdit }) {
  const { id, status } = task;
  return html`<div class="buttons">
    <${Button} onClick=${() => onEdit(id)} keys="e">Edit<//>
    ${["review", "merging", "doing"].includes(status) && html`<${Button} kind=${status === "review" ? "primary" : ""} onClick=${() => go("review", id)} keys="v">${status === "review" ? "Review" : "Diff"}<//>`}
    ${task.session && task.session !== "owner" && status === "doing" && html`<${Button} onClick=${() => go("sessions", task.session)} keys="s">Session<//>`}
    ${["blocked", "dropped"].includes(status) && html`<${Button} kind=${status === "blocked" ? "primary" : ""} onClick=${() => reopen([id])}>${status === "blocked" ? "Unblock" : "Reopen"}<//>`}
    ${status === "doing" && html`<${Button} onClick=${() => release([id])}>Take back<//>`}
    ${["backlog", "todo", "doing", "review"].includes(status) && html`<${Button} onClick=${() => block([id])}>Block<//>`}
    ${!["done", "dropped"].includes(status) && html`<${Button} kind="danger" onClick=${() => drop([id])}>Drop<//>`}
  </div>`;
}

/** @param {{ task: Task, live: Live | null }} props */
function Facts({ task, live }) {
  const merge = merges.get(task.id);
  const rows = [
    ["Session", task.session ?? (task.assignee ? `for ${task.assignee}` : null)],
    ["Role", task.role],
    ["Batch", task.batch],
    ["Priority", task.priority || null],
    ["Part of", task.parent],
    [
      "Changes",
      live?.plus || live?.minus
        ? html`<span class="plus">+${live.plus}</span> <span class="minus">−${live.minus}</span> in ${live.files} files`
        : null,
    ],
    ["Gate", live?.gate ? `${live.gate.state}${live.gate.failed ? `, ${live.gate.failed} failing` : ""}` : null],
    ["Merge", merge ? `${merge.id}, ${merge.state}${merge.place ? `, place ${merge.place}` : ""}` : null],
    ["Context", typeof live?.context === "number" ? `${Math.round(live.context * 100)} % used` : null],
    [
      "Cost",
      task.cost || task.tokens
        ? `≈ ${money(task.cost)}, ${tokens(task.tokens ?? 0)} tokens${task.budget ? ` of ${money(task.budget)}` : ""}`
        : task.budget
          ? `up to ${money(task.budget)}`
          : null,
    ],
    ["May change", task.scope.join("\n") || null],
    ["Not", task.do_not_touch.join("\n") || null],
    ["Commit", task.commit],
    ["Reverted", task.reverted ? `by ${task.reverted}` : null],
    ["Ends in", task.kind === "report" ? "a report" : null],
    ["Added", clock(task.created)],
    ["Claimed", task.claimed ? clock(task.claimed) : null],
    ["Ended", task.ended ? clock(task.ended) : null],
  ].filter(([, value]) => value !== null && value !== undefined && value !== "");
  return html`<dl class="peek-facts facts">${rows.map(([name, value]) => html`<div key=${name}><dt>${name}</dt><dd>${typeof value === "object" ? value : html`<${Words} text=${value} />`}</dd></div>`)}</dl>`;
}

// Needs

/** @param {{ id: string, onShow: (id: string) => void }} props */
function TaskLink({ id, onShow }) {
  const task = state.tasks.get(id);
  return html`<button type="button" class="task-link row bare" onClick=${() => onShow(id)}><${State} name=${task ? faceOf(task, state.columns.where.get(id)?.column ?? "dropped", liveOf(task)) : null} /><span class="card-id">${id}</span><${Words} text=${task?.title ?? "not here"} most=${120} class="one-line" /></button>`;
}

/** @param {{ task: Task, whole: boolean, onWhole: () => void, onShow: (id: string) => void }} props */
function Needs({ task, whole, onWhole, onShow }) {
  useTopics("tasks");
  const needing = neededBy(task.id, state.tasks);
  const parts = [...state.tasks.values()].filter((each) => each.parent === task.id).map(({ id }) => id);
  if (!task.needs.length && !needing.length && !parts.length)
    return whole
      ? html`<section><h3>Needs</h3><p class="soft">Nothing hangs on it, and it hangs on nothing.</p></section>`
      : null;
  /**
   * @param {string} title
   * @param {string[]} ids
   */
  const list = (title, ids) =>
    ids.length > 0 &&
    html`<h4>${title} <span class="count">${ids.length}</span></h4><ul>${ids.slice(0, 12).map((id) => html`<li key=${id}><${TaskLink} id=${id} onShow=${onShow} /></li>`)}</ul>${ids.length > 12 ? html`<p class="faint">and ${ids.length - 12} more</p>` : null}`;
  return html`<section class="peek-needs">
    <h3>Needs <button type="button" class="button quiet" aria-pressed=${whole} onClick=${onWhole}>${whole ? "Nearest only" : "All around"}<kbd>d</kbd></button></h3>
    ${whole ? html`<${Around} id=${task.id} onShow=${onShow} />` : html`${list("It needs", task.needs)}${list("Needs it", needing)}`}
    ${list("Its parts", parts)}
  </section>`;
}

const WIDE = 104;
const HIGH = 26;
const ACROSS = 12;
const DOWN = 30;

/**
 * All around a task, drawn: what it needs above, what needs it below.
 * @param {{ id: string, onShow: (id: string) => void }} props
 */
function Around({ id, onShow }) {
  const { nodes, edges, left } = neighbourhood(id, state.tasks);
  const first = Math.min(...nodes.map(({ level }) => level));
  const most = Math.max(...nodes.map(({ place }) => place)) + 1;
  /** @type {Map<number, number>} */
  const size = new Map();
  for (const { level } of nodes) size.set(level, (size.get(level) ?? 0) + 1);
  /** @param {{ level: number, place: number }} props */
  const at = ({ level, place }) => ({
    x: (place + (most - (size.get(level) ?? 0)) / 2) * (WIDE + ACROSS) + 4,
    y: (level - first) * (HIGH + DOWN) + 4,
  });
  const places = new Map(nodes.map((node) => [node.id, at(node)]));
  /** @param {string} id */
  const placeOf = (id) => places.get(id) ?? { x: 0, y: 0 };
  const width = most * (WIDE + ACROSS) - ACROSS + 8;
  const height = (Math.max(...nodes.map(({ level }) => level)) - first + 1) * (HIGH + DOWN) - DOWN + 8;
  /** @param {{ from: string, to: string }} props */
  const path = ({ from, to }) => {
    const [one, other] = [placeOf(from), placeOf(to)];
    const [x, y, u, v] = [one.x + WIDE / 2, one.y + HIGH, other.x + WIDE / 2, other.y];
    return `M${x} ${y}C${x} ${y + DOWN / 2} ${u} ${v - DOWN / 2} ${u} ${v}`;
  };
  return html`<div class="needs-around sunken" tabindex="0" role="group" aria-label=${`All around ${id}`}><div class="needs-inside" style=${{ width: `${width}px`, height: `${height}px` }}>
    <svg width=${width} height=${height} aria-hidden="true">${edges.map((edge) => html`<path key=${`${edge.from} ${edge.to}`} d=${path(edge)} class=${edge.to === id ? "needs" : edge.from === id ? "needed" : ""} />`)}</svg>
    ${nodes.map((node) => {
      const task = /** @type {Task} */ (state.tasks.get(node.id));
      const { x, y } = placeOf(node.id);
      return html`<button type="button" key=${node.id} class=${`needs-task row ${node.id === id ? "own" : ""}`} style=${{ left: `${x}px`, top: `${y}px`, width: `${WIDE}px`, height: `${HIGH}px` }} title=${visible(task.title, 300)} onClick=${() => onShow(node.id)}>
        <${State} name=${faceOf(task, state.columns.where.get(node.id)?.column ?? "dropped", liveOf(task))} /><span class="card-id">${node.id}</span></button>`;
    })}
  </div></div>${left ? html`<p class="faint">and ${left} more</p>` : null}`;
}

// What happened

/** @param {{ id: string }} props */
function Trail({ id }) {
  const [rows, problem] = useRead(
    () => get(query("/api/trail", { subject: id, limit: TRAIL, newest: true })),
    [`task:${id}`],
    [id],
  );
  const [shown, setShown] = useState(8);
  useEffect(() => setShown(8), [id]);
  if (!rows?.length) return problem ? html`<p class="faint"><${Words} text=${problem.message} /></p>` : null;
  const latest = [...rows].sort((one, other) => other.seq - one.seq);
  return html`<section><h3>What happened</h3><ol class="peek-trail">${latest.slice(0, shown).map((each) => html`<li key=${each.seq}><time class="faint" title=${new Date(each.time * 1000).toLocaleString()}>${clock(each.time)}</time><span><${Words} text=${each.text} most=${400} /></span></li>`)}</ol>
    ${latest.length > shown ? html`<${Button} kind="quiet" onClick=${() => setShown(TRAIL)}>Earlier<//>` : null}</section>`;
}
