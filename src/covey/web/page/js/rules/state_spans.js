// How a session's states are drawn over time: shapes, positions, and the span at a given time.
import { placeOf } from "./columns.js";
/** @import { Span } from "types/page.js" */

export const BAR = 12;

/**
 * What a strip tells apart: the word for it, and the top and height of its bar.
 * @type {Record<string, { word: string; top: number; height: number; }>}
 */
export const DOING = {
  working: { word: "working", top: 0, height: BAR },
  "needs-you": { word: "waiting for you", top: 0, height: BAR },
  limited: { word: "limited", top: 3, height: BAR - 3 },
  paused: { word: "paused", top: 4, height: 4 },
  idle: { word: "idle", top: 5, height: 1.5 },
  stalled: { word: "stalled", top: 2, height: BAR - 4 },
  down: { word: "down", top: BAR - 4, height: 4 },
  unknown: { word: "not seen", top: 1, height: BAR - 2 },
};
export const HATCHED = new Set(["needs-you", "limited", "stalled", "unknown"]);

/**
 * Return the way of each state's path over a row of spans, so that a row is a few elements and not hundreds.
 * @param {Span[]} spans
 * @param {number} since
 * @param {number} until
 * @param {number} width
 */
export function paths(spans, since, until, width) {
  /** @type {Map<string, string>} */
  const ways = new Map();
  const scale = width / (until - since);
  for (const each of spans) {
    const { top, height } = DOING[each.state] ?? DOING.unknown;
    const left = (each.at - since) * scale;
    const wide = Math.max((each.until - each.at) * scale, 0.8);
    ways.set(
      each.state,
      `${ways.get(each.state) ?? ""}M${left.toFixed(1)} ${top}h${wide.toFixed(1)}v${height}h-${wide.toFixed(1)}z`,
    );
  }
  return ways;
}

/**
 * Return the span at a time, or the one before or after it.
 * @param {{ until: number }[]} spans
 * @param {number} at
 */
export function spanAt(spans, at) {
  const place = placeOf(spans, at, ({ until }) => (until <= at ? -1 : 1));
  return Math.max(0, Math.min(place, spans.length - 1));
}

/**
 * Return times for the axis: round ones, and not too many.
 * @param {number} since
 * @param {number} until
 * @param {number} width
 */
export function ticks(since, until, width) {
  const steps = [300, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800];
  const step = steps.find((each) => ((until - since) / each) * 58 <= width) ?? 604800;
  const shift = new Date(since * 1000).getTimezoneOffset() * 60;
  const first = Math.ceil((since - shift) / step) * step + shift;
  return Array.from({ length: Math.max(0, Math.floor((until - first) / step) + 1) }, (_, i) => first + i * step);
}
