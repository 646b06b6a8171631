// Small charts. Every figure is also there as text, so no information is in the drawing alone.
import { html, useLayoutEffect, useRef, useState } from "../lib.js";
import { Words } from "./ui.js";
import { measure } from "./view_hooks.js";
/** @import { Bar } from "types/page.js" */
/** @import { Ref } from "types/vendor/hooks.js" */
/** @import { PageEvent } from "types/vendor/htm.js" */

/** Return the width of an element, and what it has to be given as its ref. */
export function useWidth(first = 600) {
  const place = useRef(null);
  const [width, setWidth] = useState(first);
  useLayoutEffect(() => {
    const see = () => place.current && setWidth(Math.max(place.current.clientWidth, 40));
    return measure(place.current, see);
  }, []);
  return /** @type {[number, Ref<HTMLElement>]} */ ([width, place]);
}

/**
 * Rows with a bar each: {key, label, value, text, href, note}. The longest bar is the largest value, or `most` if that
 * is larger.
 * @param {{ rows: Bar[], most?: number, label: string }} props
 */
export function Bars({ rows, most = 0, label }) {
  const largest = Math.max(most, ...rows.map((row) => row.value), 1e-9);
  return html`<ul class="bars" aria-label=${label}>
    ${rows.map(
      (row) => html`<li key=${row.key} class="bar-row">
      <span class="bar-label one-line">${row.href ? html`<a href=${row.href}><${Words} text=${row.label} most=${120} /></a>` : html`<${Words} text=${row.label} most=${120} />`}</span>
      <svg class="bar" viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true"><rect class="bar-ground" width="100" height="8" /><rect class="bar-fill" width=${Math.max((row.value / largest) * 100, row.value > 0 ? 0.6 : 0)} height="8" /></svg>
      <span class="bar-value">${row.text}</span>
      ${row.note && html`<small class="bar-note faint">${row.note}</small>`}
    </li>`,
    )}
  </ul>`;
}

/**
 * A bar against its limit: how much of `most` is used; without a limit only what is used.
 * @param {{ value: number, most: number | null, label: string, text: string }} props
 */
export function Meter({ value, most, label, text }) {
  const share = most ? Math.min(value / most, 1) : 0;
  const level = !most ? "" : value >= most ? "over" : value >= most * 0.8 ? "near" : "";
  return html`<div class=${`meter ${level}`}>
    <div class="meter-words"><span>${label}</span><strong>${text}</strong></div>
    ${
      most
        ? html`<svg class="bar" viewBox="0 0 100 8" preserveAspectRatio="none" role="img" aria-label=${`${Math.round((value / most) * 100)} % of the limit`}>
      <rect class="bar-ground" width="100" height="8" /><rect class="bar-fill" width=${share * 100} height="8" />
    </svg>`
        : ""
    }
  </div>`;
}

const HEIGHT = 120;
const FOOT = 18;

/**
 * Columns over time: {key, label, value, text}. Each can be reached and read by keyboard.
 * @param {{ rows: Bar[], label: string, line?: number | null, lineLabel?: string }} props
 */
export function Columns({ rows, label, line = null, lineLabel = "" }) {
  const [width, place] = useWidth();
  const [shown, setShown] = useState(/** @type {string | null} */ (null));
  const largest = Math.max(line ?? 0, ...rows.map((row) => row.value), 1e-9);
  const step = width / Math.max(rows.length, 1);
  const room = HEIGHT - FOOT - 14;
  /** @param {number} value */
  const height = (value) => (value / largest) * room;
  const every = Math.max(1, Math.ceil(46 / step));
  const at = rows.findIndex((row) => row.key === shown);
  /** @param {PageEvent} event */
  const move = (event) => {
    const by = event.key === "ArrowLeft" ? -1 : event.key === "ArrowRight" ? 1 : 0;
    if (!by || !rows.length) return;
    event.preventDefault();
    setShown(rows[Math.min(Math.max((at < 0 ? rows.length - 1 : at) + by, 0), rows.length - 1)].key);
  };
  /** @param {PageEvent} event */
  const point = (event) => {
    const box = place.current.getBoundingClientRect();
    setShown(rows[Math.floor((event.clientX - box.left) / step)]?.key ?? null);
  };
  const told = rows[at] ?? rows.at(-1);
  return html`<div class="columns-chart" ref=${place}>
    <svg width=${width} height=${HEIGHT} role="slider" tabindex="0" aria-label=${label} aria-valuemin="0" aria-valuemax=${Math.max(rows.length - 1, 0)}
      aria-valuenow=${Math.max(at < 0 ? rows.length - 1 : at, 0)} aria-valuetext=${told ? `${told.label}: ${told.text}` : "nothing yet"}
      onKeyDown=${move} onPointerMove=${point} onPointerLeave=${() => setShown(null)}>
      <line class="axis" x1="0" x2=${width} y1=${HEIGHT - FOOT} y2=${HEIGHT - FOOT} />
      ${rows.map(
        (
          row,
          i,
        ) => html`<rect key=${row.key} class=${`chart-column ${row.key === shown ? "shown" : ""}`} x=${i * step + step * 0.15} width=${Math.max(Math.min(step * 0.7, 48), 1)}
        y=${HEIGHT - FOOT - Math.max(height(row.value), row.value > 0 ? 1.5 : 0)} height=${Math.max(height(row.value), row.value > 0 ? 1.5 : 0)} />`,
      )}
      ${rows.map((row, i) => i % every === 0 && html`<text key=${`t${row.key}`} class="axis-text" x=${i * step + step * 0.15} y=${HEIGHT - 5}>${row.short ?? row.label}</text>`)}
      ${line ? html`<line class="limit-line" x1="0" x2=${width} y1=${HEIGHT - FOOT - height(line)} y2=${HEIGHT - FOOT - height(line)} /><text class="axis-text" x="2" y=${HEIGHT - FOOT - height(line) - 3}>${lineLabel}</text>` : ""}
    </svg>
    <p class="chart-said faint">${told ? `${told.label}: ${told.text}` : " "}</p>
  </div>`;
}
