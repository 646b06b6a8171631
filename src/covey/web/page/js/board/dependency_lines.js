// Draws what a task needs and what needs it as curves between the visible cards, and counts those out of view.
import { neededBy } from "../rules/columns.js";
import { marks, relate } from "./selection.js";
import { listen, state } from "../data/store.js";
import { hear, measure } from "../widgets/view_hooks.js";
/** @import { CardBox } from "types/page.js" */

const CURVES = 40;
const SVG = "http://www.w3.org/2000/svg";

/**
 * Draw what hangs on the card pointed at into an overlay of the board's columns; returns {point, end}.
 * @param {HTMLElement} columns
 * @param {HTMLElement} overlay
 */
export function drawNeeds(columns, overlay) {
  const svg = /** @type {SVGElement} */ (/** @type {Element | null} */ (overlay.querySelector("svg")));
  const count = /** @type {HTMLElement} */ (overlay.querySelector(".needs-count"));
  /** @type {string | null} */
  let hovered = null;
  let wait = 0;
  let frame = 0;

  const target = () => hovered ?? (marks.owned ? marks.cursor : null);
  const look = () => {
    const id = target();
    const task = id === null ? undefined : state.tasks.get(id);
    /** @type {Map<string, "needs" | "needed">} */
    const related = new Map();
    if (task) {
      for (const need of task.needs) if (state.tasks.has(need)) related.set(need, "needs");
      for (const other of neededBy(task.id, state.tasks)) related.set(other, "needed");
    }
    relate(related);
    draw();
  };
  const draw = () => {
    cancelAnimationFrame(frame);
    frame = requestAnimationFrame(() => paint(columns, svg, count, target()));
  };
  /** @param {number} delay */
  const soon = (delay) => {
    clearTimeout(wait);
    wait = setTimeout(look, delay);
  };
  const moved = () => marks.related.size && draw();
  const ends = [
    hear(columns, { scroll: moved }, { capture: true, passive: true }),
    measure(columns, moved),
    listen(["cursor"], () => soon(80)),
    listen(["tasks"], () => marks.related.size && soon(200)),
  ];
  return {
    /**
     * Point at a card, or at none.
     * @param {string | null} id
     */
    point(id) {
      if (id === hovered) return;
      hovered = id;
      soon(id === null ? 150 : 120);
    },
    /** Stop drawing. */
    end() {
      clearTimeout(wait);
      cancelAnimationFrame(frame);
      for (const leave of ends) leave();
      relate(new Map());
    },
  };
}

/**
 * Return where a card can be seen inside the columns, or null.
 * @param {string} id
 * @param {HTMLElement} columns
 * @param {DOMRect} ground
 */
function boxOf(id, columns, ground) {
  const card = document.getElementById(`card-${id}`);
  const list = card?.closest(".long");
  if (!card || !list || !columns.contains(card)) return null;
  const box = card.getBoundingClientRect();
  const frame = list.getBoundingClientRect();
  const middle = (box.top + box.bottom) / 2;
  if (middle < frame.top || middle > frame.bottom || box.right < ground.left + 8 || box.left > ground.right - 8)
    return null;
  return {
    left: box.left - ground.left,
    right: box.right - ground.left,
    middle: middle - ground.top,
    top: box.top - ground.top,
    bottom: box.bottom - ground.top,
  };
}

/**
 * @param {HTMLElement} columns
 * @param {SVGElement} svg
 * @param {HTMLElement} count
 * @param {string | null} id
 */
function paint(columns, svg, count, id) {
  svg.replaceChildren();
  count.textContent = "";
  if (id === null || !marks.related.size) return;
  const ground = columns.getBoundingClientRect();
  const own = boxOf(id, columns, ground);
  if (!own) return;
  const away = { needs: 0, needed: 0 };
  let drawn = 0;
  for (const [other, how] of marks.related) {
    const box = drawn < CURVES ? boxOf(other, columns, ground) : null;
    if (!box) away[how]++;
    else {
      drawn++;
      svg.append(how === "needs" ? curve(box, own, how) : curve(own, box, how));
    }
  }
  tellAway(count, own, away, ground.width);
}

/**
 * @param {CardBox} from
 * @param {CardBox} to
 * @param {"needs" | "needed"} how
 */
function curve(from, to, how) {
  const same = Math.abs(from.left - to.left) < 4;
  const rightwards = to.left >= from.right - 4;
  const start = rightwards || same ? from.right : from.left;
  const end = rightwards ? to.left : to.right;
  const bend = same ? 28 : Math.max(24, Math.abs(end - start) / 2);
  const out = rightwards || same ? bend : -bend;
  const into = rightwards ? -bend : bend;
  const group = document.createElementNS(SVG, "g");
  group.setAttribute("class", how);
  const path = document.createElementNS(SVG, "path");
  path.setAttribute(
    "d",
    `M${start} ${from.middle}C${start + out} ${from.middle} ${end + into} ${to.middle} ${end} ${to.middle}`,
  );
  const tip = document.createElementNS(SVG, "circle");
  for (const [name, value] of [
    ["cx", end],
    ["cy", to.middle],
    ["r", 3],
  ])
    tip.setAttribute(String(name), String(value));
  group.append(path, tip);
  return group;
}

/**
 * @param {HTMLElement} count
 * @param {CardBox} own
 * @param {{ needs: number, needed: number }} away
 * @param {number} width
 */
function tellAway(count, own, away, width) {
  /** @type {string[]} */
  const parts = [];
  if (away.needs) parts.push(`needs ${away.needs} out of view`);
  if (away.needed) parts.push(`${away.needed} out of view need it`);
  if (!parts.length) return;
  count.textContent = parts.join(" · ");
  count.style.left = `${Math.max(0, Math.min(own.left + 8, width - 240))}px`;
  count.style.top = `${own.bottom - 4}px`;
}
