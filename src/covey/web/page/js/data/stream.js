// The event stream, opened as soon as the daemon has proved itself and before the rest of the page has loaded.
import { key, query } from "./api.js";

const KINDS = ["open", "error", "counts", "sessions", "board", "live", "alerts", "invalidate", "heartbeat", "goodbye"];

/**
 * Open the stream after what was heard last; what it tells before somebody listens is kept for whoever does.
 * @param {string} own
 * @param {string | null} [after]
 */
export function open(own, after = null) {
  const source = new EventSource(query("/api/events", { after, key: own })); // it can send no header
  /** @type {MessageEvent<string>[]} */
  const kept = [];
  /** @type {(event: MessageEvent<string>) => unknown} */
  let hear = (event) => kept.push(event);
  source.addEventListener("error", () => source.close()); // by itself a browser would come back to whoever answers
  for (const kind of KINDS) source.addEventListener(kind, (event) => hear(event));
  return {
    close: () => source.close(),
    /** @param {(event: MessageEvent<string>) => void} take */
    listen(take) {
      hear = take;
      kept.splice(0).forEach(take);
    },
  };
}

/** The first stream of this page; null if it comes with a code, or never joined, so that nobody knows it yet. */
export const first = location.hash.startsWith("#code=")
  ? Promise.resolve(null)
  : key().then(
      (own) => (own ? open(own) : null),
      () => null,
    );
