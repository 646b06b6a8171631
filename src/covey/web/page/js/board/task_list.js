// The board as one sorted and grouped list. Draws only the rows in view.
import { html, useMemo } from "../lib.js";
import { costOf, factOf, liveOf, useCard } from "./card.js";
import { sinceOf } from "../rules/columns.js";
import { GROUPS, isTask, listed, pressed, SORTS } from "../rules/list_order.js";
import { useTick } from "../widgets/view_hooks.js";
import { columns, rowsOf } from "./filtered.js";
import { state } from "../data/store.js";
import { money, visible } from "../rules/text.js";
import { Long } from "../widgets/ui.js";
/** @import { GroupHead, ListFacts, ListLook, Task } from "types/page.js" */
/** @import { PageEvent } from "types/vendor/htm.js" */

/** Rows of the list, in pixels, and those that a thumb hits. */
export const ROW = 34;
export const THUMB_ROW = 54;

/** So many tasks are not sorted anew at each change. */
const MANY = 3000;

/**
 * How the list looks until somebody chooses.
 * @type {ListLook}
 */
export const USUAL = { group: "state", sort: "priority", down: true, folded: [] };

/** @param {Task} task */
const columnOf = (task) => state.columns.where.get(task.id)?.column ?? "dropped";
/** @type {ListFacts} */
const FACTS = {
  column: columnOf,
  since: (task) => sinceOf(task, columnOf(task), liveOf(task)),
  cost: (task) => costOf(task),
  title: (id) => state.tasks.get(id)?.title ?? "",
};

/** What the list shows now: its rows, the tasks among them, and where each stands. */
export let shown = listed([], USUAL, FACTS);

/**
 * Return the group that a task stands in, as heads name it; null without groups.
 * @param {Task} task
 * @param {ListLook} look
 */
export function groupOf(task, look) {
  const { id, key } = GROUPS.find((each) => each.id === look.group) ?? GROUPS[0];
  return key === undefined ? null : `${id} ${key(task, FACTS) ?? null}`;
}

/**
 * Return how a list looks when one of its groups is folded, or no longer.
 * @param {ListLook} look
 * @param {string} group
 */
export function folding(look, group) {
  const folded = look.folded.includes(group) ? look.folded.filter((each) => each !== group) : [...look.folded, group];
  return { ...look, folded };
}

/** @param {{ task: Task, index: number, count: number, level: number }} props */
function Row({ task, index, count, level }) {
  const column = columnOf(task);
  const { live, more, sign, title, line, age } = useCard({ task, column, index, count }, " is-row", "treeitem");
  const who = task.session ?? task.assignee ?? task.role;
  const cost = costOf(task, live);
  return html`<div ...${more} aria-level=${level}>
    ${sign}<span class="card-id one-line">${task.id}</span>
    <span class="row-words">${title}<bdi class="row-line one-line">${visible(line, 240)}</bdi></span>
    <span class="row-who one-line"><bdi>${visible(who ?? "", 40)}</bdi></span>
    <span class="row-size">${live?.plus || live?.minus ? factOf(["size", [live.plus, live.minus], "changed lines"]) : null}</span>
    <span class="row-cost">${cost ? money(cost) : ""}</span>
    <span class="row-priority">${task.priority ? `p${task.priority}` : ""}</span>
    ${age}
  </div>`;
}

/** @param {{ head: GroupHead, onFold: () => void }} props */
function Head({ head, onFold }) {
  /** @param {PageEvent} event */
  const press = (event) => {
    if (event.key !== "Enter" && event.key !== " ") return;
    event.preventDefault();
    event.stopPropagation();
    onFold();
  };
  return html`<div class="list-head row" role="treeitem" tabindex="0" aria-level="1" aria-expanded=${!head.folded} onClick=${onFold} onKeyDown=${press}>
    <svg viewBox="0 0 16 16" class=${`glyph list-turn ${head.folded ? "" : "open"}`} aria-hidden="true"><path d="M6.5 4.5 10 8l-3.5 3.5" /></svg>
    <b class="one-line"><bdi>${visible(head.title, 120)}</bdi></b> <span class="count">${head.count}</span>
  </div>`;
}

const HEADS = [
  ["id", "Id"],
  ["title", "Title"],
  ["session", "Session"],
  [null, "Changes"],
  ["cost", "Cost"],
  ["priority", "Prio"],
  ["age", "Age"],
];

/**
 * The names of what a row says; a press sorts by it, and another one the other way round.
 * @param {{ look: ListLook, onLook: (look: ListLook) => void }} props
 */
function Sorting({ look, onLook }) {
  return html`<div class="list-sorts" role="group" aria-label="Sort by">${HEADS.map(([sort, title]) => {
    const isOn = look.sort === sort;
    if (sort === null) return html`<span key=${title} class="sort-none">${title}</span>`;
    return html`<button type="button" key=${sort} class=${`sort-${sort}`} aria-pressed=${isOn} onClick=${() => onLook({ ...look, ...pressed(look, sort) })}>${title}<span class="sort-way" aria-label=${isOn ? (look.down ? ", the most first" : ", the least first") : undefined}>${isOn ? (look.down ? "↓" : "↑") : ""}</span></button>`;
  })}</div>`;
}

/**
 * What chooses the groups of the list, and its order.
 * @param {{ look: ListLook, onLook: (look: ListLook) => void }} props
 */
export function Choices({ look, onLook }) {
  return html`<label class="list-choice check"><span>Group</span><select value=${look.group} onChange=${(event) => onLook({ ...look, group: event.target.value, folded: [] })}>${GROUPS.map(({ id, title }) => html`<option key=${id} value=${id} selected=${id === look.group}>${title}</option>`)}</select></label>
    <label class="list-choice check"><span>Sort</span><select value=${look.sort} onChange=${(event) => onLook({ ...look, ...pressed({}, event.target.value) })}>${SORTS.map(({ id, title }) => html`<option key=${id} value=${id} selected=${id === look.sort}>${title}</option>`)}</select></label>`;
}

/**
 * All tasks that pass the filter, one below the other.
 * @param {{ look: ListLook, onLook: (look: ListLook) => void, size: number }} props
 */
export function List({ look, onLook, size }) {
  const asked = useTick(["filter", "loaded"], 60);
  const tick = useTick(
    ["tasks", "sessions", ...(look.sort === "cost" ? ["runs"] : [])],
    state.tasks.size > MANY ? 1000 : 150,
  );
  shown = useMemo(
    () =>
      listed(
        columns().flatMap(({ id }) => rowsOf(id)),
        look,
        FACTS,
      ),
    [asked, tick, look],
  );
  const { rows, tasks } = shown;
  const order = useMemo(() => new Map(tasks.map(({ id }, index) => [id, index])), [shown]);
  const level = look.group === "none" ? 1 : 2;
  /** @param {GroupHead | Task} row */
  const draw = (row) =>
    isTask(row)
      ? html`<${Row} key=${row.id} task=${state.tasks.get(row.id) ?? row} index=${order.get(row.id) ?? 0} count=${tasks.length} level=${level} />`
      : html`<${Head} key=${row.group} head=${row} onFold=${() => onLook(folding(look, row.group))} />`;
  return html`<${Sorting} look=${look} onLook=${onLook} />
    ${rows.length ? html`<${Long} rows=${rows} size=${size} draw=${draw} label="Tasks" role="tree" more=${8} />` : html`<p class="column-empty">${state.loaded.whole ? "No task passes the filter." : ""}</p>`}`;
}
