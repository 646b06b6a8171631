// Words for people. What agents and repositories say is shown as text, with nothing hidden in it.

/** Whatever is obeyed instead of seen, but for tabs, ends of lines, and what only chooses a picture of a sign before it. */
const HIDDEN = /(?![\t\n\ufe00-\ufe0f])[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu;
const NAMES = { "\u007f": "\u2421" };

/** Return a text in which control characters and marks of direction are seen instead of obeyed; at most `most` long. */
export function visible(text, most = 2000) {
  const whole = String(text ?? "");
  const part = whole.length > most ? `${whole.slice(0, most).replace(/[\ud800-\udbff]$/, "")}…` : whole;
  return part.replace(HIDDEN, (mark) => {
    const code = mark.codePointAt(0);
    if (code < 0x20) return String.fromCodePoint(0x2400 + code);
    return NAMES[mark] ?? `⟨${code.toString(16).toUpperCase().padStart(4, "0")}⟩`;
  });
}

/** Return a span of seconds in a few characters: 12s, 4m, 3h, 2d. */
export function span(seconds) {
  const passed = Math.max(0, Math.round(seconds));
  if (passed < 60) return `${passed}s`;
  if (passed < 3600) return `${Math.floor(passed / 60)}m`;
  if (passed < 36000) return `${Math.floor(passed / 3600)}h ${Math.floor((passed % 3600) / 60)}m`.replace(" 0m", "");
  if (passed < 172800) return `${Math.floor(passed / 3600)}h`;
  return `${Math.floor(passed / 86400)}d`;
}

const AGES = / \(\d+(?:\.\d+)? (?:s|min|h) ago\)(?=;|$)/g;

/** Return evidence without how old it was when it was written: beside it stands how old it is now. */
export function ageless(text) {
  return String(text ?? "").replace(AGES, "");
}

/** Return a time of day, with its date if that is not today's. */
export function clock(seconds) {
  const at = new Date(seconds * 1000);
  const time = at.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
  if (at.toDateString() === new Date().toDateString()) return time;
  return `${at.toLocaleDateString([], { month: "short", day: "numeric" })} ${time}`;
}

/** Return dollars as they are shown: always an estimate. */
export function money(dollars) {
  if (!dollars) return "$0";
  return dollars < 0.01 ? "<$0.01" : dollars < 100 ? `$${dollars.toFixed(2)}` : `$${Math.round(dollars)}`;
}

/** Return a number of tokens in a few characters: 950, 12k, 3.4M. */
export function tokens(count) {
  if (count < 1000) return String(count);
  return count < 1e6 ? `${Math.round(count / 1000)}k` : `${(count / 1e6).toFixed(1)}M`;
}

/** Return bytes in a few characters: 340 MB, 1.2 GB. */
export function bytes(count) {
  if (count < 1e6) return `${Math.round(count / 1000)} kB`;
  return count < 1e9 ? `${Math.round(count / 1e6)} MB` : `${(count / 1e9).toFixed(1)} GB`;
}

/** Return a count with its noun: 1 task, 3 tasks. */
export function some(count, noun) {
  return `${count} ${noun}${count === 1 ? "" : "s"}`;
}
