// Questions to the daemon. Whatever changes something carries a key, so that asking again never does it twice.

import { visible } from "./text.js";

const AGAIN = [250, 1000, 3000];
const KEY = "covey.key";

/**
 * Return the key of this page, made once: without it the cookie is worth nothing. A server on another port of this host
 * is sent our cookies by the browser, but never sees what is stored for this origin.
 */
export function key() {
  let known = localStorage.getItem(KEY);
  if (known === null) localStorage.setItem(KEY, (known = crypto.randomUUID()));
  return known;
}

/** What the daemon refused: `message` says why in one sentence, `hint` what to do, `status` is the HTTP status. */
export class Problem extends Error {
  constructor(message, hint, status) {
    super(visible(message));
    this.hint = visible(hint ?? "");
    this.status = status;
  }
}

/** Ask the daemon and return its answer as data (null for none), or throw a Problem; `total` is on arrays of a page. */
export async function ask(method, path, body) {
  const headers = { accept: "application/json", "covey-key": key() };
  if (method !== "GET") headers["idempotency-key"] = crypto.randomUUID();
  if (body !== undefined) headers["content-type"] = "application/json";
  const asked = { method, headers, body: body === undefined ? undefined : JSON.stringify(body), credentials: "same-origin" };
  const answer = await send(path, asked);
  const text = await answer.text();
  let said = null;
  try {
    said = text ? JSON.parse(text) : null;
  } catch {
    throw new Problem("The daemon's answer cannot be read.", "Is this covey's own address?", answer.status);
  }
  if (!answer.ok) throw new Problem(said?.error ?? answer.statusText, said?.hint, answer.status);
  const total = answer.headers.get("x-total-count");
  if (Array.isArray(said) && total !== null) said.total = Number(total);
  return said;
}

async function send(path, asked) {
  for (let tried = 0; ; tried++) {
    try {
      return await fetch(path, asked);
    } catch {
      if (tried >= AGAIN.length) throw new Problem("The daemon does not answer.", "covey status tells whether it runs.", 0);
      await new Promise((go) => setTimeout(go, AGAIN[tried]));
    }
  }
}

export const get = (path) => ask("GET", path);
export const post = (path, body = {}) => ask("POST", path, body);
export const patch = (path, body) => ask("PATCH", path, body);

/** Return a path with a query of those values that are there. */
export function query(path, values) {
  const pairs = Object.entries(values).filter(([, value]) => value !== undefined && value !== null && value !== "");
  const search = new URLSearchParams(pairs).toString();
  return search ? `${path}?${search}` : path;
}
