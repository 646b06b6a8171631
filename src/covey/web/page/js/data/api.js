// Requests to the daemon. Every change carries an idempotency key, so a retry never does it twice.

import { visible } from "../rules/text.js";
/** @import { GetAnswers, PatchAnswers, PatchBodies, PostAnswers, PostBodies } from "types/rest.js" */
/** @import { Answer, Body, Paged } from "types/page.js" */

const AGAIN = [250, 1000, 3000];
const DEVICE = "covey.device";

/** @type {Promise<string> | null} */
let proved = null;

/**
 * Return what tells the daemon which browser this is, "" if it never joined; throw unless the daemon proves itself.
 *
 * The secret that this browser got when it joined is never sent. Whoever answers has to prove first that it knows it
 * too; what we then send is made from it for the life of that very daemon, so that it is worth nothing to whoever
 * listens here after that has ended.
 */
export function key() {
  proved ??= prove().catch((error) => {
    proved = null;
    throw error;
  });
  return proved;
}

/** Let whoever answers prove itself anew before anything else is asked: the connection was lost, or is to begin. */
export const doubt = () => {
  proved = null;
};

class Unproved extends Error {}

/**
 * Show a code, and keep the secret that makes this browser known from now on; one that proves nothing here is old.
 * @param {string} code
 * @param {string} label
 */
export async function join(code, label) {
  await key().catch((/** @type {unknown} */ error) => error instanceof Unproved && localStorage.removeItem(DEVICE));
  const { id, secret } = await post("/api/devices/join", { code, label });
  if (secret) localStorage.setItem(DEVICE, JSON.stringify({ id, secret }));
  doubt();
}

async function prove() {
  const device = JSON.parse(localStorage.getItem(DEVICE) ?? "null");
  if (device === null) return "";
  const nonce = crypto.randomUUID();
  const said = await (
    await fetch(query("/api/proof", { for: `device:${device.id}`, nonce }), { credentials: "omit", cache: "no-store" })
  ).json();
  const secret = await crypto.subtle.importKey(
    "raw",
    new TextEncoder().encode(device.secret),
    { name: "HMAC", hash: "SHA-256" },
    false,
    ["sign"],
  );
  if ((await mac(secret, "covey daemon", nonce, location.host, said.life)) !== said.proof)
    throw new Unproved("it did not prove to be covey");
  return `${device.id}.${await mac(secret, "covey page", location.host, said.life)}`;
}

/**
 * @param {CryptoKey} secret
 * @param {...string} parts
 */
async function mac(secret, ...parts) {
  const made = await crypto.subtle.sign("HMAC", secret, new TextEncoder().encode(parts.join("\n")));
  return Array.from(new Uint8Array(made), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** What the daemon refused: `message` says why in one sentence, `hint` what to do, `status` is the HTTP status. */
export class Problem extends Error {
  /**
   * @param {string} message
   * @param {string | undefined} hint
   * @param {number} status
   */
  constructor(message, hint, status) {
    super(visible(message));
    this.hint = visible(hint ?? "");
    this.status = status;
  }
}

/**
 * Ask the daemon and return its answer as data (null for none), or throw a Problem; `total` is on arrays of a page.
 * @param {string} method
 * @param {string} path
 * @param {unknown} [body]
 * @returns {Promise<any>} what it is, `get`, `post` and `patch` say
 */
export async function ask(method, path, body) {
  /** @type {Record<string, string>} */
  const headers = { accept: "application/json" };
  if (method !== "GET") headers["idempotency-key"] = crypto.randomUUID();
  if (body !== undefined) headers["content-type"] = "application/json";
  /** @type {RequestInit} */
  const asked = { method, headers, body: body === undefined ? undefined : JSON.stringify(body), credentials: "omit" };
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
  if (Array.isArray(said) && total !== null) Object.assign(said, { total: Number(total) });
  return said;
}

/**
 * @param {string} path
 * @param {RequestInit} asked
 */
async function send(path, asked) {
  for (let tried = 0; ; tried++) {
    try {
      return await known(path, asked);
    } catch {
      doubt();
      if (tried >= AGAIN.length)
        throw new Problem("The daemon does not answer.", "covey status tells whether it runs.", 0);
      await new Promise((go) => setTimeout(go, AGAIN[tried]));
    }
  }
}

/**
 * Send a request as this browser, to a daemon that has proved itself; one that began meanwhile has to do so too.
 * @param {string} path
 * @param {RequestInit} asked
 */
async function known(path, asked) {
  const own = await key();
  const answer = await fetch(path, own ? { ...asked, headers: { ...asked.headers, "covey-key": own } } : asked);
  if (answer.status !== 401 || !own) return answer;
  doubt();
  const other = await key();
  return other === own ? answer : fetch(path, { ...asked, headers: { ...asked.headers, "covey-key": other } });
}

/**
 * Ask for something.
 * @template {string} Path
 * @param {Path} path
 * @returns {Promise<Paged<Answer<GetAnswers, Path>>>}
 */
export const get = (path) => ask("GET", path);
/**
 * Do something, or make something.
 * @template {string} Path
 * @param {Path} path
 * @param {Body<PostBodies, Path>} [body]
 * @returns {Promise<Answer<PostAnswers, Path>>}
 */
export const post = (path, body = /** @type {Body<PostBodies, Path>} */ ({})) => ask("POST", path, body);
/**
 * Change something.
 * @template {string} Path
 * @param {Path} path
 * @param {Body<PatchBodies, Path>} body
 * @returns {Promise<Answer<PatchAnswers, Path>>}
 */
export const patch = (path, body) => ask("PATCH", path, body);

/**
 * Return a path with a query of those values that are there.
 * @template {string} Path
 * @param {Path} path
 * @param {Record<string, unknown>} values
 */
export function query(path, values) {
  const pairs = Object.entries(values).filter(([, value]) => value !== undefined && value !== null && value !== "");
  const search = new URLSearchParams(pairs.map(([name, value]) => [name, String(value)])).toString();
  return /** @type {Path} */ (search ? `${path}?${search}` : path);
}
