// Dragging cards with a pointer of any kind: a mouse after a few pixels, a finger after it has rested.
import { dropOn, whyNotAssign } from "./columns.js";
import { rowsOf } from "./shown.js";
import { state } from "./store.js";
import { some, visible } from "./text.js";

const FAR = 5;
const REST = 350;
const EDGE = 44;

/**
 * Let the cards under `root` be dragged. `chosen(id)` returns the ids that go along, `size()` the height of a row;
 * `begin(ids)` and `end()` are called around a drag; `drop(ids, {column, index} or {session})` when it ends well.
 */
export function letDrag(root, { chosen, size, begin, end, drop }) {
  let held = null;

  const start = () => {
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
  const follow = (x, y) => {
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
    if (by) list.scrollTop += by;
    const columns = held.target?.element?.closest(".drop-sessions") ?? root.querySelector(".columns");
    const frame = columns.getBoundingClientRect();
    const across = held.x > frame.right - EDGE ? 14 : held.x < frame.left + EDGE ? -14 : 0;
    if (across) columns.scrollLeft += across;
    if (by || across) follow(held.x, held.y);
    held.frame = requestAnimationFrame(creep);
  };

  const hears = {
    pointermove: (event) => {
      if (event.pointerId !== held.pointer) return;
      const far = Math.hypot(event.clientX - held.x0, event.clientY - held.y0) > FAR;
      if (held.active) return follow(event.clientX, event.clientY);
      Object.assign(held, { x: event.clientX, y: event.clientY });
      if (far && held.touch) stop(); // it scrolls
      else if (far) start();
    },
    pointerup: (event) => {
      if (event.pointerId !== held.pointer) return;
      const { active, ids, target } = held;
      stop();
      if (!active) return;
      addEventListener("click", swallow, { capture: true, once: true });
      setTimeout(() => removeEventListener("click", swallow, true), 50);
      if (target) drop(ids, target);
    },
    pointercancel: () => stop(),
    keydown: (event) => {
      if (event.key !== "Escape" || !held.active) return;
      event.preventDefault();
      event.stopPropagation();
      stop();
    },
    blur: (event) => event.target === window && stop(),
  };
  const swallow = (event) => {
    event.preventDefault();
    event.stopPropagation();
  };
  const press = (event) => {
    const card = event.target.closest?.(".card");
    if (held || !card || event.button !== 0 || event.ctrlKey || event.metaKey || event.shiftKey) return;
    const touch = event.pointerType === "touch";
    held = { id: card.dataset.id, pointer: event.pointerId, touch, x0: event.clientX, y0: event.clientY, x: event.clientX, y: event.clientY, active: false };
    if (touch) held.timer = setTimeout(start, REST);
    for (const [name, hear] of Object.entries(hears)) addEventListener(name, hear, true);
  };
  const still = (event) => held?.active && event.preventDefault();
  root.addEventListener("pointerdown", press);
  root.addEventListener("touchmove", still, { passive: false });
  root.addEventListener("contextmenu", still);
  root.addEventListener("dragstart", still);
  return () => {
    stop();
    root.removeEventListener("pointerdown", press);
    root.removeEventListener("touchmove", still);
    root.removeEventListener("contextmenu", still);
    root.removeEventListener("dragstart", still);
  };
}

function ghost(ids) {
  const made = Object.assign(document.createElement("div"), { className: "drag-ghost" });
  const title = document.createElement("bdi");
  title.textContent = ids.length === 1 ? visible(`${ids[0]}  ${state.tasks.get(ids[0])?.title ?? ""}`, 200) : some(ids.length, "task");
  made.append(title, Object.assign(document.createElement("small"), { className: "drag-says" }));
  return made;
}

/** Return what lies under a point: a session, or a place in a column, each with what it would mean or why not. */
function targetAt(root, x, y, ids, size) {
  const under = document.elementFromPoint(x, y);
  const chip = under?.closest("[data-session]");
  const tasks = ids.map((id) => state.tasks.get(id)).filter(Boolean);
  if (chip && root.contains(chip)) {
    const session = chip.dataset.session || null;
    const why = tasks.map(whyNotAssign).find(Boolean) ?? null;
    return { session, element: chip, why, says: why ?? (session === null ? "for whoever comes" : `for ${session}`) };
  }
  const element = under?.closest("[data-column]");
  if (!element || !root.contains(element)) return null;
  const column = element.dataset.column;
  const list = element.querySelector(".long");
  const rows = rowsOf(column);
  const box = list?.getBoundingClientRect();
  const index = box ? Math.max(0, Math.min(rows.length, Math.round((y - box.top + list.scrollTop) / size))) : 0;
  const found = tasks.map((task) => dropOn(task, state.columns.where.get(task.id)?.column ?? task.status, column));
  const why = found.find((each) => each.why)?.why ?? null;
  const says = why ?? { order: "", status: `to ${element.dataset.title}`, release: "take back from its session", block: "block, and say why" }[found[0]?.does];
  return { column, index, list, element, why, says, ordered: found.every(({ does }) => does === "order" || does === "status") };
}

function show(root, held) {
  const { target, line, ghost: shown } = held;
  for (const each of root.querySelectorAll(".drop-here, .drop-not")) each.classList.remove("drop-here", "drop-not");
  shown.querySelector("small").textContent = target?.says ?? "";
  shown.classList.toggle("not", Boolean(target?.why));
  line.hidden = !target?.ordered || !target.list;
  if (!target) return;
  target.element.classList.add(target.why ? "drop-not" : "drop-here");
  if (line.hidden) return;
  const box = target.list.getBoundingClientRect();
  const inside = target.list.querySelector(".long-inside").getBoundingClientRect();
  const rows = rowsOf(target.column).length;
  const top = Math.max(box.top, Math.min(inside.top + target.index * (rows ? inside.height / rows : 0), box.bottom - 2));
  line.style.transform = `translate(${box.left + 6}px, ${top - 2}px)`;
  line.style.width = `${box.width - 12}px`;
}
