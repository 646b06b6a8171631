// A list with rows of any height that draws only those in view.
import { html, useLayoutEffect, useMemo, useRef, useState } from "../lib.js";
import { placeOf } from "../rules/columns.js";
import { watch } from "./view_hooks.js";
/** @import { ListControl } from "types/page.js" */
/** @import { Ref } from "types/vendor/hooks.js" */
/** @import { Child } from "types/vendor/preact.js" */

const MORE = 400;

/**
 * A place that scrolls over `items` ({key, size}: about how high it is), drawn by `draw(item, index)` as an element
 * with `data-key`. Heights are measured once drawn. `control` is given {to(key), top()}.
 * @template {{ key: string, size: number }} T
 * @param {{ items: T[], draw: (item: T, index: number) => Child, label: string, class?: string, control: Ref<ListControl>, onTop: (item: T, into: number) => void, children: Child }} props
 */
export function Flow({ items, draw, label, class: name = "", control, onTop, children }) {
  const place = useRef(null);
  const inside = useRef(null);
  /** @type {Ref<Map<string, number>>} */
  const measured = useRef(new Map());
  const shift = useRef(0);
  const [view, setView] = useState({ top: 0, height: 900, width: 0 });
  const [version, setVersion] = useState(0);
  const offsets = useMemo(() => sums(items, measured.current), [items, version]);

  useLayoutEffect(() => {
    const element = place.current;
    const see = () => {
      const next = { top: element.scrollTop, height: element.clientHeight, width: element.clientWidth };
      setView((before) => {
        if (next.width !== before.width) measured.current.clear();
        return Math.abs(before.top - next.top) < 1 && before.height === next.height && before.width === next.width
          ? before
          : next;
      });
    };
    return watch(element, see);
  }, []);

  useLayoutEffect(() => {
    if (!shift.current) return;
    place.current.scrollTop += shift.current;
    shift.current = 0;
  }, [version]);

  const first = Math.max(0, find(offsets, view.top - MORE));
  const last = Math.min(items.length, find(offsets, view.top + view.height + MORE) + 1);

  useLayoutEffect(() => {
    let changed = false;
    let moved = 0;
    let index = first;
    for (const child of /** @type {Iterable<HTMLElement>} */ (inside.current.children)) {
      const item = items[index++];
      const height = child.offsetHeight;
      if (
        !item ||
        child.dataset.key !== item.key ||
        !height ||
        height === (measured.current.get(item.key) ?? item.size)
      )
        continue;
      if (offsets[index] <= place.current.scrollTop) moved += height - (measured.current.get(item.key) ?? item.size);
      measured.current.set(item.key, height);
      changed = true;
    }
    if (changed) setVersion((count) => count + 1);
    if (moved) shift.current += moved; // what one reads stays where it is when something above it is higher than thought
  });

  useLayoutEffect(() => {
    if (onTop && items.length)
      onTop(
        items[Math.min(find(offsets, view.top + 1), items.length - 1)],
        view.top - (offsets[find(offsets, view.top + 1)] ?? 0),
      );
  }, [view.top, offsets]);

  if (control) {
    control.current = {
      to: (/** @type {string} */ key, edge = "near") => {
        const index = items.findIndex((item) => item.key === key);
        if (index < 0) return;
        const element = place.current;
        const [top, end] = [offsets[index], offsets[index + 1]];
        if (edge === "top") element.scrollTop = top;
        else if (top < element.scrollTop + 36) element.scrollTop = top - 60;
        else if (end > element.scrollTop + element.clientHeight - 20)
          element.scrollTop = end - element.clientHeight + 60;
      },
      focus: () => place.current?.focus({ preventScroll: true }),
    };
  }
  return html`<div class=${`flow ${name}`} ref=${place} role="region" aria-label=${label} tabindex="0">
    ${children}
    <div class="long-inside" style=${{ height: `${offsets[items.length] ?? 0}px` }}>
      <div class="long-shown" ref=${inside} style=${{ transform: `translateY(${offsets[first] ?? 0}px)` }}>
        ${items.slice(first, last).map((item, i) => draw(item, first + i))}
      </div>
    </div>
  </div>`;
}

/**
 * @param {{ key: string, size: number }[]} items
 * @param {Map<string, number>} measured
 */
function sums(items, measured) {
  const offsets = new Float64Array(items.length + 1);
  for (let i = 0; i < items.length; i++) offsets[i + 1] = offsets[i] + (measured.get(items[i].key) ?? items[i].size);
  return offsets;
}

/**
 * Return the index of the item at a place.
 * @param {Float64Array} offsets
 * @param {number} top
 */
const find = (offsets, top) => Math.max(0, placeOf(offsets, top, (offset) => (offset <= top ? -1 : 1)) - 1);
