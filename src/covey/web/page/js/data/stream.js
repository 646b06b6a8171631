// The stream of what happens, opened as soon as the daemon has proved itself: before the rest of the page is here.
import { key, query } from "./api.js";

const KINDS = ["open", "error", "counts", "sessions", "board", "live", "alerts", "invalidate", "heartbeat", "goodbye"];

/** Open the stream after what was heard last; what it tells before somebody listens is kept for whoever does. */
export function open(own, after) {
  const source = new EventSource(query("/api/events", { after, key: own })); // it can send no header
  const kept = [];
  let hear = (event) => kept.push(event);
  source.addEventListener("error", () => source.close()); // by itself a browser would come back to whoever answers
  for (const kind of KINDS) source.addEventListener(kind, (event) => hear(event));
  return {
    close: () => source.close(),
    listen(take) {
      hear = take;
      kept.splice(0).forEach(take);
    },
  };
}

/** The first stream of this page; null if it comes with a code, or never joined, so that nobody knows it yet. */
export const first = location.hash.startsWith("#code=") ? Promise.resolve(null) : key().then((own) => (own ? open(own) : null), () => null);
