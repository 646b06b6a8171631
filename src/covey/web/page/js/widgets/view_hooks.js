// Hooks that views share: throttled updates, the current time, events, narrow screens, and moving through rows by key.
import { useEffect, useLayoutEffect, useState } from "../lib.js";
import { useCommands } from "./keys.js";
import { listen } from "../data/store.js";

/** Everything of the log that the daemon tells a change of. */
export const ALL = [
  "tasks",
  "sessions",
  "alerts",
  "leases",
  "mail",
  "merges",
  "runs",
  "fleet",
  "questions",
  "proposals",
  "permits",
  "overlaps",
  "comments",
  "devices",
  "log",
];

/**
 * Return a number that grows after changes of some topics, but never more often than every `least` milliseconds.
 * @param {string[]} topics
 * @param {number} least
 */
export function useTick(topics, least) {
  const [tick, setTick] = useState(0);
  useLayoutEffect(() => {
    let timer = 0;
    let last = 0;
    const go = () => {
      timer = 0;
      last = performance.now();
      setTick((count) => count + 1);
    };
    const leave = listen(topics, () => {
      if (!timer) timer = setTimeout(go, Math.max(30, last + least - performance.now()));
    });
    return () => {
      leave();
      clearTimeout(timer);
    };
  }, [topics.join(" "), least]);
  return tick;
}

/**
 * Return the seconds since 1970, anew every `every` milliseconds.
 * @param {number} every
 */
export function useNow(every) {
  const [now, setNow] = useState(Date.now() / 1000);
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now() / 1000), every);
    return () => clearInterval(timer);
  }, [every]);
  return now;
}

/**
 * Keep something that somebody chose in this browser.
 * @template T
 * @param {string} key
 * @param {T} usual
 * @returns {[T, (next: T) => void]}
 */
export function useKept(key, usual) {
  const [value, setValue] = useState(() => JSON.parse(localStorage.getItem(key) ?? "null") ?? usual);
  /** @param {T} next */
  const keep = (next) => {
    localStorage.setItem(key, JSON.stringify(next));
    setValue(next);
  };
  return [value, keep];
}

/**
 * Call a function for each event of a name; returns what ends that.
 * @param {EventTarget} target
 * @param {Record<string, (event: any) => unknown>} handlers
 * @param {AddEventListenerOptions} [options]
 */
export function hear(target, handlers, options = {}) {
  for (const [name, handle] of Object.entries(handlers)) target.addEventListener(name, handle, options);
  return () => Object.entries(handlers).forEach(([name, handle]) => target.removeEventListener(name, handle, options));
}

/**
 * Draw now, and again every `every` milliseconds; returns what ends that.
 * @param {() => void} draw
 * @param {number} every
 */
export function repeat(draw, every) {
  draw();
  const timer = setInterval(draw, every);
  return () => clearInterval(timer);
}

/**
 * Look now, and whenever an element gets another size; returns what ends that.
 * @param {HTMLElement} element
 * @param {() => void} look
 */
export function measure(element, look) {
  const watcher = new ResizeObserver(look);
  watcher.observe(element);
  look();
  return () => watcher.disconnect();
}

/**
 * Look now, and whenever an element is scrolled or gets another size; returns what ends that.
 * @param {HTMLElement} element
 * @param {() => void} look
 */
export function watch(element, look) {
  const ends = [measure(element, look), hear(element, { scroll: look }, { passive: true })];
  return () => ends.forEach((end) => end());
}

const phone = matchMedia("(max-width: 760px)");

/** Say whether the page is as narrow as a phone. */
export const isNarrow = () => phone.matches;

/** Say whether the page is as narrow as a phone, and keep saying it. */
export function useNarrow() {
  const [narrow, setNarrow] = useState(isNarrow);
  useEffect(() => hear(phone, { change: () => setNarrow(isNarrow()) }), []);
  return narrow;
}

/**
 * Move the focus to the next or the one before of all that a selector finds.
 * @param {string} selector
 * @param {number} by
 */
export function step(selector, by) {
  /** @type {HTMLElement[]} */
  const rows = [...document.querySelectorAll(selector)].filter((row) => row.getClientRects().length > 0);
  const now = rows.findIndex((row) => row === document.activeElement || row.contains(document.activeElement));
  const next = rows[now < 0 ? (by > 0 ? 0 : rows.length - 1) : Math.min(Math.max(now + by, 0), rows.length - 1)];
  next?.focus();
  next?.scrollIntoView({ block: "nearest" });
}

/**
 * Let j, k and the arrows go through the rows that a selector finds.
 * @param {string} selector
 * @param {string} what
 */
export function useRows(selector, what) {
  useCommands(
    [
      { label: `Next ${what}`, keys: ["j", "arrowdown"], unlisted: true, run: () => step(selector, 1) },
      { label: `Previous ${what}`, keys: ["k", "arrowup"], unlisted: true, run: () => step(selector, -1) },
    ],
    [selector],
  );
}
