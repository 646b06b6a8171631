// Drag and drop of cards: a mouse drags after a few pixels, a finger after it has rested.
import { dropOn, whyNotAssign } from "../rules/columns.js";
import { hear } from "../widgets/view_hooks.js";
import { rowsOf } from "./filtered.js";
import { state } from "../data/store.js";
import { some, visible } from "../rules/text.js";
/** @import { DropTarget, Held } from "types/page.js" */

const FAR = 5;
const REST = 350;
const EDGE = 44;

/**
 * Let the cards under `root` be dragged. `chosen(id)` returns the ids that go along, `size()` the height of a row;
 * `begin(ids)` and `end()` are called around a drag; `drop(ids, {column, index} or {session})` when it ends well.
 * @param {HTMLElement} root
 * @param {{ chosen: (id: string) => string[], size: () => number, begin: (ids: string[]) => void, end: () => void, drop: (ids: string[], target: DropTarget) => void }} props
 */
export function letDrag(root, { chosen, size, begin, end, drop }) {
  /** @type {Held | null} */
  let held = null;

  const start = () => {
    if (!held) return;
    held.ids = chosen(held.id);
    held.ghost = ghost(held.ids);
    held.line = Object.assign(document.createElement("div"), { className: "drop-line" });
    document.body.append(held.ghost, held.line);
    document.documentElement.classList.add("dragging");
    held.active = true;
    begin(held.ids);
    follow(held.x, held.y);
    held.frame = requestAnimationFrame(creep);
  };
  const stop = () => {
    if (!held) return;
    clearTimeout(held.timer);
    cancelAnimationFrame(held.frame);
    held.ghost?.remove();
    held.line?.remove();
    document.documentElement.classList.remove("dragging");
    for (const each of root.querySelectorAll(".drop-here, .drop-not")) each.classList.remove("drop-here", "drop-not");
    for (const [name, hear] of Object.entries(hears)) removeEventListener(name, hear, true);
    const active = held.active;
    held = null;
    if (active) end();
  };
  /**
   * @param {number} x
   * @param {number} y
   */
  const follow = (x, y) => {
    if (!held) return;
    Object.assign(held, { x, y });
    held.ghost.style.transform = `translate(${x + 10}px, ${y + 8}px)`;
    held.target = targetAt(root, x, y, held.ids, size());
    show(root, held);
  };
  /** Scroll what lies under the pointer while it rests near an edge. */
  const creep = () => {
    if (!held) return;
    const list = held.target?.list;
    const box = list?.getBoundingClientRect();
    const by = box && held.y < box.top + EDGE ? -12 : box && held.y > box.bottom - EDGE ? 12 : 0;
    if (by && list) list.scrollTop += by;
    const columns =
      held.target?.element?.closest(".drop-sessions") ?? /** @type {HTMLElement} */ (root.querySelector(".columns"));
    const frame = columns.getBoundingClientRect();
    const across = held.x > frame.right - EDGE ? 14 : held.x < frame.left + EDGE ? -14 : 0;
    if (across) columns.scrollLeft += across;
    if (by || across) follow(held.x, held.y);
    held.frame = requestAnimationFrame(creep);
  };

  /** @type {Record<string, (event: any) => void>} */
  const hears = {
    pointermove: (/** @type {PointerEvent} */ event) => {
      if (event.pointerId !== held?.pointer) return;
      const far = Math.hypot(event.clientX - held.x0, event.clientY - held.y0) > FAR;
      if (held.active) return follow(event.clientX, event.clientY);
      Object.assign(held, { x: event.clientX, y: event.clientY });
      if (far && held.touch)
        stop(); // it scrolls
      else if (far) start();
    },
    pointerup: (/** @type {PointerEvent} */ event) => {
      if (event.pointerId !== held?.pointer) return;
      const { active, ids, target } = held;
      stop();
      if (!active) return;
      addEventListener("click", swallow, { capture: true, once: true });
      setTimeout(() => removeEventListener("click", swallow, true), 50);
      if (target) drop(ids, target);
    },
    pointercancel: () => stop(),
    keydown: (/** @type {KeyboardEvent} */ event) => {
      if (event.key !== "Escape" || !held?.active) return;
      event.preventDefault();
      event.stopPropagation();
      stop();
    },
    blur: (/** @type {Event} */ event) => event.target === window && stop(),
  };
  /** @param {Event} event */
  const swallow = (event) => {
    event.preventDefault();
    event.stopPropagation();
  };
  /** @param {PointerEvent} event */
  const press = (event) => {
    const card = event.target instanceof Element ? event.target.closest(".card") : null;
    if (held || !card || event.button !== 0 || event.ctrlKey || event.metaKey || event.shiftKey) return;
    const touch = event.pointerType === "touch";
    held = /** @type {Held} */ ({
      id: card.dataset.id,
      pointer: event.pointerId,
      touch,
      x0: event.clientX,
      y0: event.clientY,
      x: event.clientX,
      y: event.clientY,
      active: false,
    });
    if (touch) held.timer = setTimeout(start, REST);
    for (const [name, hear] of Object.entries(hears)) addEventListener(name, hear, true);
  };
  /** @param {Event} event */
  const still = (event) => held?.active && event.preventDefault();
  const leave = hear(
    root,
    { pointerdown: press, touchmove: still, contextmenu: still, dragstart: still },
    { passive: false },
  );
  return () => {
    stop();
    leave();
  };
}

/** @param {string[]} ids */
function ghost(ids) {
  const made = Object.assign(document.createElement("div"), { className: "drag-ghost" });
  const title = Object.assign(document.createElement("bdi"), { className: "one-line" });
  title.textContent =
    ids.length === 1 ? visible(`${ids[0]}  ${state.tasks.get(ids[0])?.title ?? ""}`, 200) : some(ids.length, "task");
  made.append(title, Object.assign(document.createElement("small"), { className: "drag-says" }));
  return made;
}

/**
 * Return what lies under a point: a session, or a place in a column, each with what it would mean or why not.
 * @param {HTMLElement} root
 * @param {number} x
 * @param {number} y
 * @param {string[]} ids
 * @param {number} size
 */
function targetAt(root, x, y, ids, size) {
  const under = document.elementFromPoint(x, y);
  const chip = under?.closest("[data-session]");
  const tasks = ids.map((id) => state.tasks.get(id)).filter((task) => task !== undefined);
  if (chip && root.contains(chip)) {
    const session = chip.dataset.session || null;
    const why = tasks.map(whyNotAssign).find(Boolean) ?? null;
    return { session, element: chip, why, says: why ?? (session === null ? "for whoever comes" : `for ${session}`) };
  }
  const element = under?.closest("[data-column]");
  if (!element || !root.contains(element)) return null;
  const column = element.dataset.column ?? "";
  const list = element.querySelector(".long");
  const rows = rowsOf(column);
  const box = list?.getBoundingClientRect();
  const index = box && list ? Math.max(0, Math.min(rows.length, Math.round((y - box.top + list.scrollTop) / size))) : 0;
  const found = tasks.map((task) => dropOn(task, state.columns.where.get(task.id)?.column ?? task.status, column));
  const why = found.find((each) => each.why)?.why ?? null;
  const says =
    why ??
    /** @type {Record<string, string>} */ ({
      order: "",
      status: `to ${element.dataset.title}`,
      release: "take back from its session",
      block: "block, and say why",
    })[found[0]?.does ?? ""];
  return {
    column,
    index,
    list,
    element,
    why,
    says,
    ordered: found.every(({ does }) => does === "order" || does === "status"),
  };
}

/**
 * @param {HTMLElement} root
 * @param {Held} held
 */
function show(root, held) {
  const { target, line, ghost: shown } = held;
  for (const each of root.querySelectorAll(".drop-here, .drop-not")) each.classList.remove("drop-here", "drop-not");
  const words = shown.querySelector("small");
  if (words) words.textContent = target?.says ?? "";
  shown.classList.toggle("not", Boolean(target?.why));
  line.hidden = !target?.ordered || !target.list;
  if (!target) return;
  target.element.classList.add(target.why ? "drop-not" : "drop-here");
  if (line.hidden || !target.list) return;
  const box = target.list.getBoundingClientRect();
  const inside = /** @type {HTMLElement} */ (target.list.querySelector(".long-inside")).getBoundingClientRect();
  const rows = rowsOf(target.column ?? "").length;
  const top = Math.max(
    box.top,
    Math.min(inside.top + (target.index ?? 0) * (rows ? inside.height / rows : 0), box.bottom - 2),
  );
  line.style.transform = `translate(${box.left + 6}px, ${top - 2}px)`;
  line.style.width = `${box.width - 12}px`;
}
