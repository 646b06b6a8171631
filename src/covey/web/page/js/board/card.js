// A card of the board: one task and what its session is doing, in three lines or in one.
import { html, useLayoutEffect, useRef } from "../lib.js";
import { faceOf, isOfRun, lineOf, sinceOf } from "../rules/columns.js";
import { marks } from "./selection.js";
import { state, useTopics, waitOf } from "../data/store.js";
import { money, some, span, visible } from "../rules/text.js";
import { State } from "../widgets/ui.js";
/** @import { ColumnId, Fact, Live, Merge, Task } from "types/page.js" */

/** Rows of the board, in pixels: a card with its gap, and a line. */
export const CARD = 90;
export const LINE = 28;
/** A line that a thumb hits. */
export const THUMB = 40;

/**
 * What the merge queue says of tasks that are on their way, by task.
 * @type {Map<string, Merge>}
 */
export const merges = new Map();

/**
 * Return what is live of a task: its session's row, while that is about this task.
 * @param {Task} task
 */
export function liveOf(task) {
  const row = task.session === null ? undefined : state.live.get(task.session);
  return row?.task === task.id ? row : null;
}

/** @param {Task} task */
const itemOf = (task) =>
  state.inbox.find(
    (item) =>
      item.task === task.id ||
      (task.session !== null && item.sessions.includes(task.session) && item.kind === "question"),
  );

/**
 * Return the parts of a card's last line, only what is there: [class, text, what it means].
 * @param {Task} task
 * @param {ColumnId} column
 * @param {Live | null} live
 */
function facts(task, column, live) {
  /** @type {Fact[]} */
  const parts = [];
  const who = task.session ?? task.assignee;
  if (who)
    parts.push([
      "who",
      task.session === null ? `for ${who}` : who,
      task.session === null ? "is meant for this session" : "session",
    ]);
  else if (task.role) parts.push(["who", task.role, "role"]);
  if (live?.plus || live?.minus)
    parts.push(["size", [live.plus, live.minus], `${some(live.files ?? 0, "file")} changed`]);
  if (live?.gate)
    parts.push(
      live.gate.state === "failed"
        ? ["bad", `gate ${live.gate.failed || ""} failing`.replace("  ", " "), "tests that fail"]
        : ["fact", `gate ${live.gate.state}`, "its tests"],
    );
  if (typeof live?.context === "number")
    parts.push([
      live.context > 0.85 ? "warn" : "fact",
      `ctx ${Math.round(live.context * 100)} %`,
      "of the context is used",
    ]);
  const cost = costOf(task, live);
  if (cost) parts.push(["fact", money(cost), "estimated cost of this task"]);
  if (live?.overlaps) parts.push(["warn", some(live.overlaps, "overlap"), "others write the same files"]);
  if (task.failed_tries && column !== "done") parts.push(["bad", `${task.failed_tries} failed`, "tries that failed"]);
  if (task.sent_back && column !== "done")
    parts.push(["fact", task.sent_back === 1 ? "sent back" : `sent back ${task.sent_back}×`, "by you, to be mended"]);
  if (task.priority) parts.push(["fact", `p${task.priority}`, "priority"]);
  if (task.batch && !isOfRun(task.batch)) parts.push(["fact", `#${task.batch}`, "batch"]);
  /** @param {Fact} pair */
  const isFirst = ([kind]) => kind === "bad" || kind === "size"; // what has no room is cut from the end
  return [...parts.filter(isFirst), ...parts.filter((part) => !isFirst(part))];
}

/**
 * Return the second line of a card.
 * @param {Task} task
 * @param {ColumnId} column
 * @param {Live | null} live
 */
const lineUnder = (task, column, live) =>
  lineOf(task, column, {
    live,
    merge: merges.get(task.id),
    item: column === "needs" ? itemOf(task) : null,
    wait: waitOf(task),
    tasks: state.tasks,
  });

/**
 * Return one part of a card's last line.
 * @param {Fact} pair
 */
export function factOf([kind, value, means]) {
  if (kind === "size")
    return html`<span class="part" title=${means}><span class="plus">+${value[0] ?? 0}</span> <span class="minus">−${value[1] ?? 0}</span></span>`;
  return html`<span class=${`part ${kind}`} title=${means}><bdi>${visible(value, 60)}</bdi></span>`;
}

// A board draws many cards while it scrolls, so a card is one component: ages are told by one clock for all.

/** @param {number} since */
const ageOf = (since) => span(Date.now() / 1000 - since);

setInterval(() => {
  for (const each of document.querySelectorAll(".card > time, .card-meta > time")) {
    const text = ageOf(Number(each.dataset.since));
    if (each.textContent !== text) /** @type {Text} */ (each.firstChild).data = text;
  }
}, 1000);

/** Titles that surely stand in one line, in characters; what is said below them has the second one. */
const SHORT = 24;

/**
 * Return what a task has cost so far, in dollars.
 * @param {Task} task
 */
export const costOf = (task, live = liveOf(task)) => Math.max(live?.cost ?? 0, state.costs.get(task.id) ?? 0);

/**
 * Return what is drawn of a task wherever it stands: its attributes, sign, title, line and age. It is drawn again when its
 * session says something, and takes the focus with the cursor.
 * @param {{ task: Task, column: ColumnId, index: number, count: number }} props
 * @param {string} kind
 */
export function useCard({ task, column, index, count }, kind, role = "option") {
  const { id } = task;
  const place = useRef(null);
  useTopics(
    `mark:${id}`,
    `live:${task.session}`,
    column === "needs" ? "inbox" : column === "todo" ? "waits" : `merge:${id}`,
    `cost:${id}`,
  );
  const isCursor = marks.cursor === id;
  useLayoutEffect(() => {
    if (isCursor && marks.owned && document.activeElement !== place.current && !document.querySelector("dialog[open]"))
      place.current.focus({ preventScroll: true });
  });
  const live = liveOf(task);
  const related = marks.related.get(id);
  const selected = marks.selected.has(id);
  const asks = column === "needs" && task.status === "doing";
  const name = `card boxed in-${column}${asks ? " is-asks" : ""}${kind}${selected ? " is-selected" : ""}${isCursor ? " is-cursor" : ""}${related ? ` is-related ${related}` : ""}`;
  const since = sinceOf(task, column, live);
  return {
    live,
    more: {
      ref: place,
      id: `card-${id}`,
      "data-id": id,
      class: name,
      role,
      tabindex: isCursor ? 0 : -1,
      "aria-selected": selected,
      "aria-posinset": index + 1,
      "aria-setsize": count,
    },
    sign: State({ name: faceOf(task, column, live) }),
    title: html`<bdi class="card-title">${visible(task.title, 300)}</bdi>`,
    line: lineUnder(task, column, live),
    age: html`<time class="age" data-since=${since}>${ageOf(since)}</time>`,
  };
}

/**
 * A card of the board.
 * @param {{ task: Task, column: ColumnId, index: number, count: number, compact: boolean }} props
 */
export function Card({ task, column, index, count, compact }) {
  const kind = compact ? " is-compact" : task.title.length <= SHORT ? " is-short" : "";
  const { live, more, sign, title, line, age } = useCard({ task, column, index, count }, kind);
  const { id } = task;
  if (compact) {
    const size = live?.plus || live?.minus ? factOf(["size", [live.plus, live.minus], "changed lines"]) : null;
    return html`<div ...${more}>${sign}<span class="card-id">${id}</span>${title}${size}${age}</div>`;
  }
  return html`<div ...${more}>
    <div class="card-top">${sign}<div class="card-words">${title}<div class="card-line one-line"><bdi>${visible(line, 240)}</bdi></div></div></div>
    <div class="card-meta"><span class="card-facts one-line"><span class="card-id">${id}</span>${facts(task, column, live).map(factOf)}</span>${age}</div>
  </div>`;
}

/**
 * Return all that a card says at once, for those who rest on it.
 * @param {string} id
 */
export function tellCard(id) {
  const task = state.tasks.get(id);
  const column = state.columns.where.get(id)?.column ?? "dropped";
  if (!task) return "";
  const live = liveOf(task);
  const line = lineUnder(task, column, live);
  const parts = facts(task, column, live).map(([kind, value]) =>
    kind === "size" ? `+${value[0] ?? 0} −${value[1] ?? 0}` : value,
  );
  return visible(
    `${task.title}\n${line}\n${[id, ...parts].join(" · ")}\nsince ${new Date(sinceOf(task, column, live) * 1000).toLocaleString()}`,
    900,
  );
}
