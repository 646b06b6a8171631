// How often something is looked at, and how one goes through rows by keyboard.
import { useEffect, useLayoutEffect, useState } from "./lib.js";
import { useCommands } from "./keys.js";
import { listen } from "./store.js";

/** Everything of the log that the daemon tells a change of. */
export const ALL = ["tasks", "sessions", "alerts", "leases", "mail", "merges", "runs", "fleet", "questions", "proposals", "permits", "overlaps", "comments", "devices", "log"];

/** Return a number that grows after changes of some topics, but never more often than every `least` milliseconds. */
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

/** Return the seconds since 1970, anew every `every` milliseconds. */
export function useNow(every) {
  const [now, setNow] = useState(Date.now() / 1000);
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now() / 1000), every);
    return () => clearInterval(timer);
  }, [every]);
  return now;
}

/** Say whether the page is as narrow as a phone, and keep saying it. */
export function useNarrow() {
  const [narrow, setNarrow] = useState(() => matchMedia("(max-width: 760px)").matches);
  useEffect(() => {
    const watched = matchMedia("(max-width: 760px)");
    const change = () => setNarrow(watched.matches);
    watched.addEventListener("change", change);
    return () => watched.removeEventListener("change", change);
  }, []);
  return narrow;
}

/** Move the focus to the next or the one before of all that a selector finds. */
export function step(selector, by) {
  const rows = [...document.querySelectorAll(selector)].filter((row) => row.getClientRects().length > 0);
  const now = rows.findIndex((row) => row === document.activeElement || row.contains(document.activeElement));
  const next = rows[now < 0 ? (by > 0 ? 0 : rows.length - 1) : Math.min(Math.max(now + by, 0), rows.length - 1)];
  next?.focus();
  next?.scrollIntoView({ block: "nearest" });
}

/** Let j, k and the arrows go through the rows that a selector finds. */
export function useRows(selector, what) {
  useCommands([
    { label: `Next ${what}`, keys: ["j", "arrowdown"], unlisted: true, run: () => step(selector, 1) },
    { label: `Previous ${what}`, keys: ["k", "arrowup"], unlisted: true, run: () => step(selector, -1) },
  ], [selector]);
}
