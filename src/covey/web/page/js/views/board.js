// The board: columns of cards or one list, usable by pointer and by keyboard. Draws only what is in view.
import { html, useEffect, useLayoutEffect, useMemo, useRef, useState } from "../lib.js";
import { get } from "../data/api.js";
import { Card, CARD, LINE, merges, tellCard, THUMB } from "../board/card.js";
import {
  asksForDropped,
  COLUMNS,
  firstColumn,
  HINTS,
  isOpen,
  openColumns,
  QUICK,
  readFilter,
  strangers,
} from "../rules/columns.js";
import * as deeds from "../board/task_actions.js";
import { letDrag } from "../board/drag.js";
import { inGroup, isTyping, useCommands } from "../widgets/keys.js";
import { drawNeeds } from "../board/dependency_lines.js";
import { Choices, folding, groupOf, List, ROW, shown as listing, THUMB_ROW, USUAL } from "../board/task_list.js";
import { chosen, marks, point, select, toggle } from "../board/selection.js";
import { hear, isNarrow, measure, useNarrow, useTick } from "../widgets/view_hooks.js";
import { Peek } from "../board/task_panel.js";
import { go } from "../data/routes.js";
import { choose as chooseSetting, settings } from "../data/settings.js";
import { columns, find, rowsOf } from "../board/filtered.js";
import { addSessions, Crewless, hasNoSession } from "../sessions/session_dialog.js";
import { listen, setFilter, state, touch, useRead, useTopics } from "../data/store.js";
import { Choose, QuickAdd, TaskForm } from "../board/task_form.js";
import { some, visible } from "../rules/text.js";
import { Button, Empty, Long, State, Words } from "../widgets/ui.js";
/** @import { BoardLook, ColumnId, Command, DropTarget, ListLook, NewTaskColumn, Standing, Task, TaskFormOpen } from "types/page.js" */
/** @import { Ref, SetState } from "types/vendor/hooks.js" */
/** @import { PageEvent } from "types/vendor/htm.js" */

// What this browser remembers of how the board looks

const LOOK = "covey.board";
/** @type {BoardLook} */
const look = { folded: {}, view: "board", list: USUAL, ...remembered() };

function remembered() {
  try {
    return JSON.parse(localStorage.getItem(LOOK) ?? "null") ?? {};
  } catch {
    return {};
  }
}

/** @param {Partial<BoardLook>} change */
function setLook(change) {
  Object.assign(look, change);
  localStorage.setItem(LOOK, JSON.stringify(look));
  touch("look");
}

const isCompact = () => settings.density === "compact";
const setCompact = () => chooseSetting({ density: isCompact() ? "comfortable" : "compact" });
const sizeOf = () => (!isCompact() ? CARD : isNarrow() ? THUMB : LINE);

const isList = () => look.view === "list";
const setList = () => setLook({ view: isList() ? "board" : "list" });

/** The pixels that the columns have; guessed until they were measured once. */
let room = innerWidth - 340;

const counted = () => new Map(columns().map(({ id }) => [id, rowsOf(id).length]));
const openNow = () => openColumns(counted(), room);
/** @param {string} column */
const isFolded = (column) => look.folded[column] ?? !openNow().has(column);

/**
 * Let columns fold and unfold as they get or lose room or tasks, and note how wide an open one is.
 * @param {Ref<HTMLElement>} place
 * @param {boolean} phone
 */
function useRoom(place, phone) {
  useEffect(() => {
    const area = /** @type {HTMLElement} */ (place.current.querySelector(".columns"));
    let before = "";
    const judge = () => {
      const ids = columns().map(({ id }) => id);
      const open = ids.filter((id) => !isFolded(id));
      area.style.setProperty(
        "--lane",
        `${Math.min(440, Math.floor((room - (ids.length - open.length) * 42) / open.length) - 6)}px`,
      );
      const after = open.join(" ");
      const differs = before !== after;
      before = after;
      if (differs) touch("look");
    };
    const see = () => {
      room = area.clientWidth - 16;
      judge();
    };
    const topics = [...COLUMNS.map(({ id }) => `column:${id}`), "filter", "look"];
    const ends = [measure(area, see), listen(topics, judge)];
    return () => ends.forEach((end) => end());
  }, [phone]);
}

// Where tasks stand: in columns, or in one list. The keyboard, the pointer and the selection go by these alone.

const inColumns = {
  rows: rowsOf,
  find,
  /** @returns {string[]} */
  ids: () =>
    columns()
      .map(({ id }) => id)
      .filter((id) => rowsOf(id).length && (isNarrow() || !isFolded(id))),
  element: (/** @type {string} */ column) => document.querySelector(`.board-column[data-column="${column}"] .long`),
  size: sizeOf,
  top: (/** @type {number} */ index) => index * sizeOf(),
};
const inList = {
  rows: () => listing.tasks,
  find: (/** @type {string} */ id) => {
    const index = listing.places.has(id) ? listing.tasks.findIndex((task) => task.id === id) : -1;
    return index < 0 ? null : { column: "list", index };
  },
  ids: () => (listing.tasks.length ? ["list"] : []),
  element: () => document.querySelector(".board-list .long"),
  size: () => (isNarrow() ? THUMB_ROW : ROW),
  top: (/** @type {number} */ index) => (listing.places.get(listing.tasks[index].id) ?? 0) * inList.size(),
};
const standing = () => (isList() ? inList : inColumns);

// Moving the cursor

/**
 * Bring a row of a column, or of the list, into view.
 * @param {string} column
 * @param {number} index
 */
function reveal(column, index) {
  const list = standing().element(column);
  if (!list) return;
  const [top, size] = [standing().top(index), standing().size()];
  if (top < list.scrollTop) list.scrollTop = index === 0 ? 0 : top;
  else if (top + size > list.scrollTop + list.clientHeight) list.scrollTop = top + size - list.clientHeight;
  list.closest(".board-column")?.scrollIntoView({ block: "nearest", inline: "nearest" });
}

/**
 * @param {string} column
 * @param {number} index
 */
function pointAt(column, index, owned = true) {
  const rows = standing().rows(column);
  if (!rows.length) return;
  const at = Math.max(0, Math.min(index, rows.length - 1));
  reveal(column, at);
  point(rows[at].id, column, at, owned);
}

/**
 * Return where the cursor is now: its card may have moved, or gone.
 * @returns {Standing | null}
 */
function cursor() {
  const found = marks.cursor === null ? null : standing().find(marks.cursor);
  if (found) return found;
  const ids = standing().ids();
  if (!ids.length) return null;
  const column = marks.column !== null && ids.includes(marks.column) ? marks.column : ids[0];
  return { column, index: Math.min(marks.index, standing().rows(column).length - 1), fresh: true };
}

/** @param {number} by */
function step(by) {
  const at = cursor();
  if (at) pointAt(at.column, at.fresh ? at.index : at.index + by);
}

/**
 * Go to another column, to the row at the same height; in a list, fold the group to the left and unfold all to the
 * right.
 * @param {number} by
 */
function cross(by) {
  const at = cursor();
  if (isList()) return foldGroup(by, at);
  if (!at) return;
  const ids = standing().ids();
  const next = ids[ids.indexOf(at.column) + by];
  if (next === undefined) return;
  if (isNarrow()) setLook({ column: next });
  const list = standing().element(at.column);
  const offset = list ? at.index * sizeOf() - list.scrollTop : 0;
  const other = standing().element(next);
  pointAt(next, isNarrow() ? 0 : Math.round((offset + (other?.scrollTop ?? 0)) / sizeOf()));
}

/**
 * @param {number} by
 * @param {Standing | null} at
 */
function foldGroup(by, at) {
  if (by > 0) return setLook({ list: { ...look.list, folded: [] } });
  const group = at && groupOf(listing.tasks[at.index], look.list);
  if (group) setLook({ list: folding(look.list, group) });
}

/** @param {number} index */
function toPlace(index) {
  const at = cursor();
  if (at) pointAt(at.column, index);
}

/**
 * Select everything from where the selection began to the cursor, one row further.
 * @param {number} by
 */
function extend(by) {
  const at = cursor();
  if (!at) return;
  const rows = standing().rows(at.column);
  const from = marks.anchor === null ? -1 : rows.findIndex(({ id }) => id === marks.anchor);
  const anchor = from < 0 ? at.index : from;
  if (from < 0) marks.anchor = rows[anchor].id;
  const to = Math.max(0, Math.min(rows.length - 1, at.index + by));
  select(rows.slice(Math.min(anchor, to), Math.max(anchor, to) + 1).map(({ id }) => id));
  pointAt(at.column, to);
}

function selectAll() {
  const at = cursor();
  const rows = at ? standing().rows(at.column) : [];
  if (at) select(rows.map(({ id }) => id));
}

// A column

// No drawn card is kept for the next time, nor is its drawing left out: what two drawings of a list share knows the later
// one as its parent, so that the first drawing, which its view keeps, would keep all that ever came after it.
/**
 * @param {ColumnId} column
 * @param {number} count
 */
function drawsCards(column, count) {
  const compact = isCompact();
  return (/** @type {Task} */ task, /** @type {number} */ index) =>
    html`<${Card} key=${task.id} task=${task} column=${column} index=${index} count=${count} compact=${compact} />`;
}

/**
 * Let the list be reached by Tab while the focus is elsewhere; the cursor's card then takes it.
 * @param {string} column
 * @param {Ref<HTMLElement>} place
 * @param {boolean} filled
 */
function useEntrance(column, place, filled) {
  useLayoutEffect(() => {
    const list = place.current?.querySelector(".long");
    if (!list) return;
    list.setAttribute("aria-multiselectable", "true");
    list.tabIndex = 0;
    /** @param {FocusEvent} event */
    const enter = (event) => {
      list.tabIndex = -1;
      if (event.target !== list) return;
      const at = marks.cursor === null ? null : standing().find(marks.cursor);
      pointAt(column, at?.column === column ? at.index : Math.ceil(list.scrollTop / standing().size()));
    };
    /** @param {FocusEvent} event */
    const leave = (event) => {
      if (!list.contains(/** @type {Node | null} */ (event.relatedTarget))) list.tabIndex = 0;
    };
    return hear(list, { focusin: enter, focusout: leave });
  }, [column, filled]);
}

/** @type {Record<string, string>} */
const EMPTY = {
  backlog: "What is not planned yet.",
  todo: "Press n to add a task.",
  doing: "Tasks that sessions work on.",
  needs: "Nothing waits for you.",
  review: "Nothing to review.",
  merging: "The merge queue is empty.",
  done: "What has landed.",
  dropped: "Nothing was dropped.",
};

/** Draw a column again when the filter or the look changes, each in a moment of its own, so that keys are heard between. */
function useOwnMoment() {
  const [, again] = useState(0);
  useLayoutEffect(() => {
    let timer = 0;
    const leave = listen(["filter", "look", "settings"], () => {
      clearTimeout(timer);
      timer = setTimeout(() => again((count) => count + 1));
    });
    return () => {
      clearTimeout(timer);
      leave();
    };
  }, []);
}

/**
 * @param {{ column: { id: ColumnId, title: string }, adding: boolean, onAdd: (column: NewTaskColumn | null) => void, onForm: (values: Partial<Task>) => void, phone: boolean }} props
 */
function Column({ column: { id, title }, adding, onAdd, onForm, phone }) {
  useTopics(
    `column:${id}`,
    id === "dropped" ? "tasks" : `column:${id}`,
    state.filter.quick === "failed" ? "live" : `column:${id}`,
  );
  useOwnMoment();
  const place = useRef(null);
  const rows = rowsOf(id);
  const all = state.columns.lists.get(id)?.length ?? rows.length;
  const folded = !phone && !adding && isFolded(id);
  const takesNew = id === "backlog" || id === "todo";
  const draw = drawsCards(id, rows.length);
  useEntrance(id, place, !folded && rows.length > 0);
  const fold = () => setLook({ folded: { ...look.folded, [id]: !folded } });
  const counted = rows.length === all ? String(all) : `${rows.length} of ${all}`;
  if (folded) {
    return html`<section class="column board-column folded" data-column=${id} data-title=${title} ref=${place} aria-label=${title}>
      <button type="button" class="column-unfold bare" onClick=${fold} aria-expanded="false" title=${`Show ${title}`}><span class="count">${counted}</span><span class="column-name">${title}</span></button>
    </section>`;
  }
  return html`<section class=${`column board-column is-${id}`} data-column=${id} data-title=${title} ref=${place} aria-label=${title}>
    <header class="column-head row"><h2>${title}</h2><span class="count">${counted}</span><span class="spring"></span>
      ${takesNew && html`<button type="button" class="column-icon" aria-label=${`Add a task to ${title}`} title="Add a task (n)" onClick=${() => onAdd(id)}><svg viewBox="0 0 16 16" class="glyph" aria-hidden="true"><path d="M8 3.5v9M3.5 8h9" /></svg></button>`}
      ${!phone && html`<button type="button" class="column-icon" aria-label=${`Fold ${title}`} aria-expanded="true" title="Fold this column" onClick=${fold}><svg viewBox="0 0 16 16" class="glyph" aria-hidden="true"><path d="M9.5 4.5 6 8l3.5 3.5" /></svg></button>`}
    </header>
    ${takesNew && adding && html`<${QuickAdd} status=${id} onClose=${() => onAdd(null)} onForm=${onForm} onAdded=${shownAfterAdding} />`}
    ${rows.length ? html`<${Long} rows=${rows} size=${sizeOf()} draw=${draw} label=${title} role="listbox" more=${isCompact() ? 8 : 4} />` : html`<p class="column-empty">${all ? "Nothing here passes the filter." : state.loaded.whole ? EMPTY[id] : ""}</p>`}
  </section>`;
}

/**
 * All columns as one list.
 * @param {{ adding: NewTaskColumn | null, onAdd: (column: NewTaskColumn | null) => void, onForm: (values: Partial<Task>) => void }} props
 */
function Lines({ adding, onAdd, onForm }) {
  useTopics("look", "tasks", "filter", "loaded");
  const place = useRef(null);
  useEntrance("list", place, listing.rows.length > 0);
  return html`<section class="board-list" ref=${place} aria-label="All tasks">
    ${adding && html`<${QuickAdd} status=${adding} onClose=${() => onAdd(null)} onForm=${onForm} onAdded=${shownAfterAdding} />`}
    <${List} look=${look.list} onLook=${setOrder} size=${inList.size()} />
  </section>`;
}

/**
 * Bring a task that was just added into view, while its author goes on typing; who is at a card by now stays there.
 * @param {Task} task
 */
function shownAfterAdding(task) {
  setTimeout(
    () => {
      const at = standing().find(task.id);
      if (at && !document.activeElement?.closest(".card")) pointAt(at.column, at.index, false);
    },
    isList() ? 250 : 40,
  );
}

// The bar above

/**
 * Give the keyboard back to the board.
 * @param {HTMLElement} field
 */
function leaveSearch(field) {
  field.blur();
  const at = marks.cursor === null ? null : standing().find(marks.cursor);
  if (at) pointAt(at.column, at.index);
}

function Search() {
  useTopics("filter");
  const [open, setOpen] = useState(false);
  /** @type {Ref<HTMLInputElement>} */
  const field = useRef(null);
  const { text } = state.filter;
  /** @param {string} value */
  const type = (value) => setFilter({ text: value });
  /** @param {PageEvent} event */
  const press = (event) => {
    if (event.key === "Escape") {
      if (state.filter.text) type("");
      else leaveSearch(field.current);
      event.preventDefault();
      event.stopPropagation();
    } else if (event.key === "Enter" || event.key === "ArrowDown") {
      const at = cursor();
      if (at) pointAt(at.column, at.index);
      event.preventDefault();
    }
  };
  /** @param {string} form */
  const add = (form) => {
    type(`${text.trim()} ${form}`.trim());
    field.current.focus();
  };
  return html`<div class="board-search row" role="search" onFocusin=${() => setOpen(true)} onFocusout=${(event) => !event.currentTarget.contains(event.relatedTarget) && setOpen(false)}>
    <svg viewBox="0 0 16 16" class="glyph" aria-hidden="true"><path d="M7 2.5a4.5 4.5 0 1 0 0 9 4.5 4.5 0 0 0 0-9ZM10.5 10.5 14 14" /></svg>
    <input id="board-filter" ref=${field} type="search" aria-label="Filter the board" placeholder="Filter" autocomplete="off" spellcheck=${false} value=${text} onInput=${(event) => type(event.target.value)} onKeyDown=${press} />
    ${!text && html`<kbd aria-hidden="true">/</kbd>`}
    ${open && html`<div class="board-hints raised">${HINTS.map(({ form, means }) => html`<button type="button" class="bare" key=${form} onClick=${() => add(form)}><code>${form}</code><span>${means}</span></button>`)}</div>`}
  </div>`;
}

function Found() {
  useTopics("tasks", "filter", "loaded", "sessions");
  const { quick, text } = state.filter;
  const { whole, total } = state.loaded;
  const wanted = readFilter(text);
  const known = asksForDropped(wanted) || !whole ? state.tasks.size : state.columns.where.size;
  const strange = strangers(wanted);
  const narrowed = !isOpen(wanted, quick);
  const count = columns().reduce((sum, { id }) => sum + rowsOf(id).length, 0);
  return html`<span class="board-found row" role="status">
    ${quick && html`<button type="button" class="board-token" onClick=${() => setFilter({ quick: null })} aria-label=${`Show more than what is ${QUICK[quick].title}`}>${QUICK[quick].title} ✕</button>`}
    ${narrowed ? html`<span class="faint">${count.toLocaleString()} of ${some(known, "task")}</span>` : whole || !total ? html`<span class="faint">${known.toLocaleString()} ${known === 1 ? "task" : "tasks"}</span>` : html`<span class="faint">${known.toLocaleString()} of ${total.toLocaleString()} …</span>`}
    ${strange.length > 0 && html`<span class="soft">There is no word <${Words} text=${strange.join(", ")} most=${60} /></span>`}
  </span>`;
}

/** @param {ListLook} list */
const setOrder = (list) => setLook({ list });

/** @param {{ onAdd: (column: NewTaskColumn | null) => void }} props */
function Bar({ onAdd }) {
  useTopics("settings", "look");
  const views = [
    ["board", "Board"],
    ["list", "List"],
  ];
  return html`<div class="board-bar row">
    <${Search} /><${Found} /><span class="spring"></span>
    ${isList() && html`<${Choices} look=${look.list} onLook=${setOrder} />`}
    <div class="segments board-views" role="group" aria-label="Show tasks as">${views.map(([view, title]) => html`<button type="button" class="segment bare" key=${view} aria-pressed=${look.view === view} title=${`${title} (L)`} onClick=${() => setLook({ view })}>${title}</button>`)}</div>
    ${!isList() && html`<${Button} kind="board-dense" aria-pressed=${isCompact()} onClick=${setCompact} keys="c" title="One line for each task">Compact<//>`}
    <${Button} kind="add-button" onClick=${() => onAdd("todo")} keys="n">New task<//>
  </div>`;
}

/**
 * On a phone one column is shown at a time; these choose it, and take what is dropped on them.
 * @param {{ current: string }} props
 */
function Picker({ current }) {
  useTopics(...columns().map(({ id }) => `column:${id}`), "filter");
  return html`<div class="board-picker" role="group" aria-label="Column">${columns().map(({ id, title }) => html`<button type="button" key=${id} aria-pressed=${id === current} data-column=${id} data-title=${title} onClick=${() => setLook({ column: id })}>${title} <span class="count">${rowsOf(id).length}</span></button>`)}</div>`;
}

/**
 * What is shown while there is no task at all, or none that passes the filter.
 * @param {{ onAdd: (column: NewTaskColumn | null) => void }} props
 */
function Nothing({ onAdd }) {
  useTopics("tasks", "loaded", "filter", "sessions");
  if (!state.loaded.whole) return null;
  if (state.tasks.size) {
    const { text, quick } = state.filter;
    if (isOpen(readFilter(text), quick) || columns().some(({ id }) => rowsOf(id).length)) return null;
    return html`<div class="board-nothing beside"><${Empty} title="No task passes the filter"><${Button} onClick=${() => setFilter({ text: "", quick: null })} keys="Esc">Show all<//><//></div>`;
  }
  return html`<div class="board-nothing"><${Empty} title="No tasks yet">
    <p>Write the first one here, or in a terminal:</p>
    <pre class="boxed"><code>covey task add "A first task"</code></pre>
    <span class="fleet-buttons"><${Button} kind="primary" onClick=${() => onAdd("todo")} keys="n">New task<//>${hasNoSession() && html`<${Button} onClick=${() => addSessions()} keys="A">Add sessions<//>`}</span>
  <//></div>`;
}

// Many at once

/** @param {{ onChoose: (field: string) => void }} props */
function Bulk({ onChoose }) {
  useTopics("selection", "tasks");
  const ids = [...marks.selected].filter((id) => state.tasks.has(id));
  if (!ids.length) return null;
  return html`<div class="board-bulk row" role="toolbar" aria-label="Selected tasks">
    <b>${some(ids.length, "task")}</b>
    <${Button} onClick=${() => deeds.raise(ids, 1)} keys="+" title="Raise the priority">Raise<//><${Button} onClick=${() => deeds.raise(ids, -1)} keys="-" title="Lower the priority">Lower<//>
    <${Button} onClick=${() => onChoose("assignee")} keys="@">Assign<//>
    <${Button} onClick=${() => onChoose("role")}>Role<//>
    <${Button} onClick=${() => deeds.setStatus(ids, "todo")}>To do<//><${Button} onClick=${() => deeds.setStatus(ids, "backlog")}>Backlog<//>
    <${Button} kind="danger" onClick=${() => deeds.drop(ids)} keys="Del">Drop<//>
    <span class="spring"></span><${Button} kind="quiet" onClick=${() => select([])} keys="Esc">Clear<//>
  </div>`;
}

/** @type {Record<string, { title: string, label: string, none: string }>} */
const CHOICES = {
  assignee: { title: "Assign to", label: "Session", none: "Whoever comes" },
  role: { title: "Set the role", label: "Role", none: "No role" },
  priority: { title: "Set the priority", label: "Priority, a number", none: "" },
};

/** @param {string} field */
function optionsOf(field) {
  if (field === "priority")
    return [10, 5, 1, 0, -1, -5].map((value) => ({ value: String(value), label: String(value) }));
  const none = { value: null, label: CHOICES[field].none };
  if (field === "assignee")
    return [
      none,
      ...[...state.sessions.values()].map(({ name, state: now, role }) => ({
        value: name,
        label: name,
        state: now,
        more: role ?? "",
      })),
    ];
  return [
    none,
    ...[...new Set([...state.tasks.values()].map((task) => task.role ?? "").filter((role) => role !== ""))]
      .sort()
      .map((value) => ({ value, label: value })),
  ];
}

/**
 * @param {string} field
 * @param {string[]} ids
 * @param {string | null} value
 */
function choose(field, ids, value) {
  if (field === "assignee") return deeds.assign(ids, value);
  if (field === "priority")
    return (
      Number.isInteger(Number(value)) &&
      deeds.edit(ids, { priority: Number(value) }, `${some(ids.length, "task")} with priority ${value}`)
    );
  return deeds.edit(ids, { [field]: value }, `${some(ids.length, "task")}: ${field} ${value ?? "none"}`);
}

/** The sessions on which cards can be dropped, there while one is dragged. */
function Sessions() {
  useTopics("sessions");
  const names = [...state.sessions.values()].filter(({ state: now }) => now !== "dead");
  return html`<div class="drop-sessions row" aria-hidden="true"><span class="faint">Give to</span>
    <span class="drop-chip" data-session="">whoever comes</span>
    ${names.map(({ name, state: now }) => html`<span class="drop-chip" key=${name} data-session=${name}><${State} name=${now} /><bdi>${visible(name, 40)}</bdi></span>`)}
  </div>`;
}

// The view

const onCard = () =>
  document.activeElement === document.body ||
  document.activeElement?.closest?.(".columns") ||
  document.activeElement?.id === "main" ||
  document.activeElement?.closest?.(".peek");
const isAnyChosen = () => chosen().length > 0;
const on = inGroup("Board");

/**
 * @param {{ setAdding: (column: NewTaskColumn | null) => void, setForm: SetState<TaskFormOpen | null>, setChoice: SetState<string | null>, setPeeking: SetState<boolean>, setWhole: SetState<boolean>, what: string | null, peeking: boolean, whole: boolean }} props
 */
function useBoardKeys({ setAdding, setForm, setChoice, setPeeking, setWhole, what, peeking, whole }) {
  /**
   * @param {string} label
   * @param {string | string[] | undefined} keys
   * @param {(ids: string[]) => unknown} run
   * @param {Partial<Command>} [more]
   */
  const act = (label, keys, run, more = {}) => on(label, keys, () => run(chosen()), { when: isAnyChosen, ...more });
  const move = { when: onCard, unlisted: true };
  const leave = () => {
    if (marks.selected.size) select([]);
    else if (what || peeking) close({ setPeeking, what });
    else if (state.filter.text || state.filter.quick) setFilter({ text: "", quick: null });
  };
  useCommands(
    [
      on("Next card", ["j", "arrowdown"], () => step(1), move),
      on("Previous card", ["k", "arrowup"], () => step(-1), move),
      on("Column to the left", ["h", "arrowleft"], () => cross(-1), move),
      on("Column to the right", ["l", "arrowright"], () => cross(1), move),
      on("First card", "home", () => toPlace(0), move),
      on("Last card", "end", () => toPlace(Infinity), move),
      on("A page down", "pagedown", () => step(10), move),
      on("A page up", "pageup", () => step(-10), move),
      on("Open the card", "enter", () => marks.cursor && go("board", marks.cursor), { when: onCard }),
      on("Peek at the card", "space", () => setPeeking(!peeking), { when: onCard }),
      on("Filter the board", "/", () => document.getElementById("board-filter")?.focus()),
      on("New task", "n", () => setAdding(cursor()?.column === "backlog" ? "backlog" : "todo")),
      on("New task, whole form", "N", () => setForm({ values: {} })),
      on("Compact cards", "c", setCompact, { when: () => !isList() }),
      on("Board or list", "L", setList),
      act("Edit", "e", ([id]) => setForm({ id })),
      on("Select", "x", () => marks.cursor && toggle(marks.cursor), { when: isAnyChosen }),
      on("Select down", "J", () => extend(1), { when: isAnyChosen }),
      on("Select up", "K", () => extend(-1), { when: isAnyChosen }),
      on("Select all in the column, or in the list", "mod+a", selectAll, { when: onCard }),
      act("Raise the priority", ["+", "="], (ids) => deeds.raise(ids, 1)),
      act("Lower the priority", "-", (ids) => deeds.raise(ids, -1)),
      act("Set the priority", "p", () => setChoice("priority")),
      act("Move up", "shift+arrowup", (ids) => deeds.shift(ids, -1)),
      act("Move down", "shift+arrowdown", (ids) => deeds.shift(ids, 1)),
      act("Move to the top", "shift+home", (ids) => toEnd(ids, true)),
      act("Move to the bottom", "shift+end", (ids) => toEnd(ids, false)),
      act("Assign to a session", "@", () => setChoice("assignee")),
      act("Set the role", undefined, () => setChoice("role")),
      act("To the backlog, or back to do", "b", (ids) =>
        deeds.setStatus(ids, state.tasks.get(ids[0])?.status === "todo" ? "backlog" : "todo"),
      ),
      act("Block", undefined, (ids) => deeds.block(ids)),
      act("Reopen", undefined, (ids) => deeds.reopen(ids)),
      act("Take back from its session", undefined, (ids) => deeds.release(ids)),
      act("Drop", "delete", (ids) => deeds.drop(ids)),
      act("All that it hangs on", "d", () => showAround({ setPeeking, setWhole, what, peeking, whole })),
      act("Review", "v", ([id]) => go("review", id)),
      act(
        "Go to its session",
        "s",
        ([id]) => {
          const session = state.tasks.get(id)?.session;
          if (session) go("sessions", session);
        },
        { when: () => isAnyChosen() && state.tasks.get(chosen()[0])?.session },
      ),
      on("Undo", ["z", "mod+z"], () => deeds.turn("undo")),
      on("Redo", ["Z", "mod+shift+z"], () => deeds.turn("redo")),
      on("Clear the selection, the panel, the filter", "escape", leave, {
        when: () => marks.selected.size || what || peeking || state.filter.text || state.filter.quick,
        unlisted: true,
      }),
    ],
    [what, peeking, whole],
  );
}

/**
 * @param {{ setPeeking: SetState<boolean>, setWhole: SetState<boolean>, what: string | null, peeking: boolean, whole: boolean }} props
 */
function showAround({ setPeeking, setWhole, what, peeking, whole }) {
  setWhole(what || peeking ? !whole : true);
  if (!what) setPeeking(true);
}

/**
 * @param {string[]} ids
 * @param {boolean} top
 */
function toEnd(ids, top) {
  const at = find(ids[0]);
  if (at) deeds.dropAt(ids, at.column, top ? 0 : rowsOf(at.column).length);
}

/** @param {{ setPeeking: SetState<boolean>, what: string | null }} props */
function close({ setPeeking, what }) {
  setPeeking(false);
  if (what) go("board");
  marks.owned = true;
  if (marks.cursor) touch(`mark:${marks.cursor}`);
}

/** Read what the merge queue says of tasks on their way, whenever it says something new. */
function useMerges() {
  const [rows] = useRead(() => get("/api/merges"), ["merges"], []);
  useEffect(() => {
    const before = [...merges.keys()];
    merges.clear();
    for (const row of rows ?? []) merges.set(row.task, row);
    touch(...new Set([...before, ...merges.keys()].map((id) => `merge:${id}`)));
  }, [rows]);
}

/** Read what tasks have cost, and again some time after runs have cost more: those at work tell it themselves. */
function useCosts() {
  const tick = useTick(["runs"], 5000);
  const [found] = useRead(() => get("/api/costs?by=task&limit=1000"), [], [tick]);
  useEffect(() => {
    const now = new Map((found?.rows ?? []).map(({ key, cost }) => [key, cost]));
    const changed = [...now].filter(([id, cost]) => state.costs.get(id) !== cost);
    state.costs = found ? now : state.costs;
    touch(...changed.map(([id]) => `cost:${id}`));
  }, [found]);
}

/** @param {Event} event */
const cardOf = (event) => (event.target instanceof Element ? event.target.closest(".card") : null);

/**
 * Let clicks, hovers and drags reach the cards without a listener on each.
 * @param {Ref<HTMLElement>} place
 * @param {SetState<boolean>} setDragging
 * @param {SetState<boolean>} setPeeking
 */
function usePointer(place, setDragging, setPeeking) {
  useEffect(() => {
    const root = place.current;
    const area = /** @type {HTMLElement} */ (root.querySelector(".columns"));
    const needs = drawNeeds(area, /** @type {HTMLElement} */ (root.querySelector(".needs-drawn")));
    /** @param {Event} event */
    const idOf = (event) => cardOf(event)?.dataset.id ?? null;
    /** @type {HTMLElement | null} */
    let last = null;
    /** @param {MouseEvent} event */
    const click = (event) => {
      const id = idOf(event);
      if (id === null) return;
      const at = standing().find(id);
      if (!at) return;
      if (event.shiftKey && marks.column === at.column && marks.cursor !== null) {
        extend(at.index - (standing().find(marks.cursor)?.index ?? at.index));
      } else if (event.ctrlKey || event.metaKey) {
        point(id, at.column, at.index);
        toggle(id);
      } else {
        if (marks.selected.size) select([]);
        marks.anchor = null;
        point(id, at.column, at.index);
        go("board", id);
      }
    };
    /** @param {PointerEvent} event */
    const over = (event) => {
      if (event.pointerType !== "mouse") return;
      const card = cardOf(event);
      if (card && card !== last) card.title = tellCard(card.dataset.id ?? "");
      last = card;
      needs.point(card?.dataset.id ?? null);
    };
    /** @param {FocusEvent} event */
    const focus = (event) => {
      const id = idOf(event);
      if (id === null) marks.owned = false;
      else if (id !== marks.cursor) point(id, standing().find(id)?.column ?? null, standing().find(id)?.index ?? 0);
      else marks.owned = true;
    };
    /** @param {KeyboardEvent} event */
    const press = (event) => {
      if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || idOf(event) === null) return;
      if (event.key === "Enter" && marks.cursor) go("board", marks.cursor);
      else if (event.key === " ") setPeeking((now) => !now);
      else return;
      event.preventDefault();
    };
    const end = letDrag(root, {
      chosen: (/** @type {string} */ id) => (marks.selected.has(id) ? inOrder([...marks.selected]) : [id]),
      size: sizeOf,
      begin: () => setDragging(true),
      end: () => setDragging(false),
      drop: (/** @type {string[]} */ ids, /** @type {DropTarget} */ target) =>
        target.session !== undefined
          ? deeds.assign(ids, target.session)
          : deeds.dropAt(ids, target.column ?? "", target.index ?? 0),
    });
    const leave = hear(area, { click, pointerover: over, pointerleave: () => needs.point(null), keydown: press });
    const leaveFocus = hear(document, { focusin: focus });
    return () => {
      needs.end();
      end();
      leave();
      leaveFocus();
    };
  }, []);
}

/**
 * Return some tasks as they stand on the board.
 * @param {string[]} ids
 */
function inOrder(ids) {
  return ids
    .map((id) => ({ id, at: standing().find(id) }))
    .filter(({ at }) => at)
    .sort((one, other) => (one.at?.index ?? 0) - (other.at?.index ?? 0))
    .map(({ id }) => id);
}

/**
 * The panel beside the board: of the task in the address, else of the cursor's while one peeks.
 * @param {{ what: string | null, peeking: boolean, whole: boolean, setWhole: SetState<boolean>, setPeeking: SetState<boolean>, setForm: SetState<TaskFormOpen | null> }} props
 */
function Panel({ what, peeking, whole, setWhole, setPeeking, setForm }) {
  useTopics("cursor");
  const id = what ?? (peeking ? marks.cursor : null);
  useEffect(() => {
    if (!what || isTyping(document.activeElement)) return;
    document.querySelector(".peek-body")?.focus({ preventScroll: true });
  }, [what]);
  useEffect(() => {
    const at = what ? standing().find(what) : null;
    if (at && what !== marks.cursor) pointAt(at.column, at.index, false);
    else if (at) reveal(at.column, at.index); // the panel has just covered some columns
  }, [what]);
  if (id === null) return null;
  /** @param {string} other */
  const show = (other) => {
    const at = standing().find(other);
    if (at) pointAt(at.column, at.index, false);
    go("board", other);
  };
  return html`<${Peek} id=${id} whole=${whole} onWhole=${() => setWhole(!whole)} onClose=${() => close({ setPeeking, what })} onEdit=${(/** @type {string} */ each) => setForm({ id: each })} onShow=${show} />`;
}

/** Put the cursor on a neighbour when its card is shown no more. */
function useCursor() {
  const judge = () => {
    if (marks.cursor === null || standing().find(marks.cursor)) return;
    const rows = marks.column === null ? [] : standing().rows(marks.column);
    if (marks.column !== null && rows.length) pointAt(marks.column, marks.index, marks.owned);
    else point(null, marks.column, 0, false);
  };
  useLayoutEffect(() => listen(["tasks", "filter", "sessions"], judge), []);
}

/** Draw the board again when it gets or loses a column, or a phone shows another one. */
function useShape() {
  const shape = () => `${columns().length} ${look.column} ${look.view} ${JSON.stringify(look.list)}`;
  const [, set] = useState(shape);
  useLayoutEffect(() => listen(["filter", "look"], () => set(shape())), []);
}

/** Return the column that a phone begins with: known as soon as there is a task, and then it stays. */
function useFirstColumn() {
  const [first, setFirst] = useState(/** @type {string | null} */ (null));
  useLayoutEffect(() => {
    if (first !== null) return undefined;
    const begin = () => void (state.tasks.size && setFirst(firstColumn(counted())));
    begin();
    return listen(["loaded", "tasks"], begin);
  }, [first]);
  return first ?? "doing";
}

/**
 * The board; `what` is the task in the address, which is shown beside it.
 * @param {{ what: string | null }} props
 */
export function View({ what }) {
  useShape();
  useCursor();
  const place = useRef(null);
  const phone = useNarrow();
  const [adding, setAdding] = useState(/** @type {NewTaskColumn | null} */ (null));
  const [form, setForm] = useState(/** @type {TaskFormOpen | null} */ (null));
  const [choice, setChoice] = useState(/** @type {string | null} */ (null));
  const [peeking, setPeeking] = useState(false);
  const [whole, setWhole] = useState(false);
  const [dragging, setDragging] = useState(false);
  useBoardKeys({ setAdding, setForm, setChoice, setPeeking, setWhole, what, peeking, whole });
  usePointer(place, setDragging, setPeeking);
  useRoom(place, phone);
  useMerges();
  useCosts();
  const all = columns();
  const first = useFirstColumn();
  const current = all.find(({ id }) => id === look.column)?.id ?? first;
  const asList = isList();
  const shown = phone ? all.filter(({ id }) => id === current) : all;
  /** @param {NewTaskColumn | null} column */
  const startAdding = (column) => {
    if (phone && column) setLook({ column });
    if (column && !asList && look.folded[column]) setLook({ folded: { ...look.folded, [column]: false } });
    setAdding(column);
    if (column === null && marks.cursor) {
      marks.owned = true;
      touch(`mark:${marks.cursor}`);
    }
  };
  /** @param {Partial<Task>} values */
  const fillIn = (values) => {
    startAdding(null);
    setForm({ values });
  };
  const options = useMemo(() => (choice ? optionsOf(choice) : []), [choice]);
  return html`<div class=${`board${dragging ? " is-dragging" : ""}${asList ? " is-list" : ""}`} ref=${place}>
    <${Bar} onAdd=${startAdding} />
    <${Crewless} />
    ${phone && !asList && html`<${Picker} current=${current} />`}
    <div class="board-body">
      <div class="columns-frame">
        <div class=${`columns${what || peeking ? " has-panel" : ""}`}>
          ${
            asList
              ? html`<${Lines} adding=${adding} onAdd=${startAdding} onForm=${fillIn} />`
              : shown.map(
                  (column) =>
                    html`<${Column} key=${column.id} column=${column} phone=${phone} adding=${adding === column.id} onAdd=${startAdding} onForm=${fillIn} />`,
                )
          }
        </div>
        <div class="needs-drawn" aria-hidden="true"><svg></svg><span class="needs-count"></span></div>
        ${!adding && html`<${Nothing} onAdd=${startAdding} />`}
        ${dragging && html`<${Sessions} />`}
        <${Bulk} onChoose=${setChoice} />
      </div>
      <${Panel} what=${what} peeking=${peeking} whole=${whole} setWhole=${setWhole} setPeeking=${setPeeking} setForm=${setForm} />
    </div>
    ${form && html`<${TaskForm} key=${form.id ?? "new"} id=${form.id ?? null} values=${form.values} onClose=${() => setForm(null)} />`}
    ${choice && html`<${Choose} ...${CHOICES[choice]} options=${options} free=${choice !== "assignee"} onChoose=${(/** @type {string | null} */ value) => choose(choice, chosen(), value)} onClose=${() => setChoice(null)} />`}
  </div>`;
}
