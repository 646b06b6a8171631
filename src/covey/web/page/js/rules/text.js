// Text for people. What agents and repositories say is shown with every hidden character made visible.
export { count, money, one as some, size as bytes, span, tokens } from "./figures.js";

/** Whatever is obeyed instead of seen, but for tabs, ends of lines, and what only chooses a picture of a sign before it. */
// biome-ignore lint/suspicious/noMisleadingCharacterClass: the signs of variation stand there for themselves
const HIDDEN = /(?![\t\n\ufe00-\ufe0f])[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu;
/** @type {Record<string, string>} */
const NAMES = { "\u007f": "\u2421" };

/**
 * Return a text in which control characters and marks of direction are seen instead of obeyed; at most `most` long.
 * @param {unknown} text
 */
export function visible(text, most = 2000) {
  const whole = String(text ?? "");
  const part = whole.length > most ? `${whole.slice(0, most).replace(/[\ud800-\udbff]$/, "")}…` : whole;
  return part.replace(HIDDEN, (mark) => {
    const code = mark.codePointAt(0) ?? 0;
    if (code < 0x20) return String.fromCodePoint(0x2400 + code);
    return NAMES[mark] ?? `⟨${code.toString(16).toUpperCase().padStart(4, "0")}⟩`;
  });
}

const AGES = / \(\d+(?:\.\d+)? (?:s|min|h|h \d+ min|d) ago\)(?=;|$)/g;

/**
 * Return evidence without how old it was when it was written: beside it stands how old it is now.
 * @param {unknown} text
 */
export function ageless(text) {
  return String(text ?? "").replace(AGES, "");
}

/**
 * Return a time of day, with its date if that is not today's.
 * @param {number} seconds
 */
export function clock(seconds) {
  const at = new Date(seconds * 1000);
  const time = at.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
  if (at.toDateString() === new Date().toDateString()) return time;
  return `${at.toLocaleDateString([], { month: "short", day: "numeric" })} ${time}`;
}

/**
 * Return a day with its name.
 * @param {number} seconds
 */
export const dayOf = (seconds) =>
  new Date(seconds * 1000).toLocaleDateString([], { weekday: "long", day: "numeric", month: "long", year: "numeric" });
