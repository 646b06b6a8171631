// Follows the daemon's event stream and feeds the store, across lost connections.
import { isTelling } from "./notifications.js";
import { doubt, get, key, Problem } from "./api.js";
import { ALL } from "../widgets/view_hooks.js";
import * as store from "./store.js";
import { first, open } from "./stream.js";
/** @import { Ending, News, Session, Stream, Task } from "types/page.js" */

const SILENCE = 40_000;
const LATER = 3000;
const REST = 5000;
const PRESENT = 60_000;
const INBOX = new Set(["questions", "merges", "mail", "fleet", "runs", "comments", "proposals"]);

/** @type {Promise<Stream | null> | null} */
let early = first;
/** @type {Stream | null} */
let source = null;
/** @type {string | null} */
let last = null;
let watch = 0;
let fresh = true;
let resting = 0;
let present = 0;
/** @type {Ending | null} */
let farewell = null;
let turns = 0;

/** Begin to follow a daemon that has proved itself; after a loss it goes on where it was. */
export async function follow() {
  close();
  const turn = ++turns;
  const reached = await reach();
  if (turn !== turns) return reached?.close(); // somebody hurried meanwhile
  if (reached === null) return lose();
  source = reached;
  source.listen(take);
}

/** Return a stream: the one that was opened while the page came, or one of a daemon that has just proved itself. */
async function reach() {
  const opening = early;
  early = null; // for one who follows alone: whoever hurries past closes it
  const opened = await opening;
  if (opened) return opened;
  doubt();
  const own = await key().catch(() => null);
  return own === null ? null : open(own, last);
}

/** @type {{ [Kind in keyof News]: (told: News[Kind]) => void }} */
const TAKEN = {
  counts(counts) {
    store.state.counts = counts;
    store.touch("counts");
  },
  sessions: takeSessions,
  board: takeBoard,
  live(said) {
    store.putLive(said);
    if (said.waits) store.loadInbox();
  },
  alerts() {
    store.touch("alerts");
    store.loadInbox();
  },
  invalidate: takeStale,
  heartbeat() {},
  goodbye(said) {
    farewell = said;
  },
};

/** @param {MessageEvent<string>} event */
function take(event) {
  if (event.type === "error") return lose();
  if (event.type === "open") farewell = null;
  if (event.lastEventId) last = event.lastEventId;
  hear();
  const kind = /** @type {keyof News} */ (event.type);
  TAKEN[kind]?.(JSON.parse(event.data));
}

/** @param {Session[]} rows */
function takeSessions(rows) {
  if (fresh) store.setSessions(rows);
  else store.putSessions(rows);
  store.loadInbox();
}

/** @param {Task[]} rows */
function takeBoard(rows) {
  store.putTasks(rows);
  if (fresh) begins();
  if (rows.some((row) => row.status === "blocked" || row.status === "review")) store.loadInbox();
  else if (store.state.inbox.some((item) => rows.some((row) => row.id === item.task))) store.loadInbox();
}

/** Read all that a first page does not tell: what changed before it came was told to nobody here. */
function begins() {
  fresh = false;
  store.touch(...ALL);
  store.loadInbox();
  afterPaint(() => again(store.loadBoard)); // what is in view was just told: it comes to the screen first
}

/**
 * Do something once what was told is on the screen; nobody waits for that where nobody looks.
 * @param {() => void} act
 */
function afterPaint(act) {
  if (document.hidden) setTimeout(act);
  else requestAnimationFrame(() => setTimeout(act));
}

/**
 * Read something, and read it again later if the daemon does not answer: nothing else would bring it.
 * @param {() => Promise<unknown>} read
 */
function again(read) {
  read().catch((error) => {
    report(error);
    if (store.state.connection.state !== "unknown") setTimeout(again, LATER, read);
  });
}

/** @param {{ type: string }} props */
function takeStale({ type }) {
  if (type === "board") fresh = true; // what follows is a first page: the daemon could not tell us each change
  store.touch(type);
  if (INBOX.has(type)) store.loadInbox();
}

function hear() {
  clearTimeout(watch);
  watch = setTimeout(fallSilent, SILENCE);
  store.state.heard = Date.now() / 1000;
  if (store.state.connection.state === "live") return;
  store.setConnection("live");
  again(store.loadLive);
  if (!fresh) store.loadInbox(); // its last reading may have failed with the connection
}

/** Begin anew when nothing came for long: a connection can be gone without anybody having said so. */
function fallSilent() {
  store.setConnection("lost");
  follow();
  watch = setTimeout(fallSilent, SILENCE);
}

/**
 * Let go of the stream while nobody looks: a browser has six connections for all pages of a host, and the seventh page
 * would never come. The one that tells a person who does not look goes on. The daemon hears once a minute that we are
 * here: one that was started for a command alone stays for an open page.
 */
function rest() {
  if (!document.hidden || isTelling() || store.state.connection.state !== "live") return;
  close();
  present = setInterval(isKnown, PRESENT);
  store.setConnection("connecting");
}

function look() {
  clearTimeout(resting);
  if (document.hidden) resting = setTimeout(rest, REST);
  else hurry();
}

/** Follow again if this page is now the one that tells. */
function tellOn() {
  if (source === null && store.state.connection.state === "connecting") follow();
}

/** Try at once when there is reason to hope: the machine woke up, the network is back, somebody looks. */
async function hurry() {
  if (document.hidden) return;
  tellOn();
  if (store.state.connection.state === "lost") follow();
  else if (store.state.connection.state === "unknown" && (await isKnown())) location.reload(); // joined in another tab
}

/** Try again, by ourselves: a browser would believe whoever answers. */
async function lose() {
  const wasLive = store.state.connection.state === "live";
  if (store.state.connection.state !== "unknown") store.setConnection("lost", farewell);
  close();
  const turn = ++turns;
  const known = await isKnown();
  const isGone = known === null && !farewell && (await isNobodyHere());
  if (turn !== turns) return; // somebody hurried meanwhile
  if (isGone && store.state.connection.end === null)
    store.setConnection("lost", { why: wasLive ? "died" : "gone", agents: store.atWork() });
  if (known === false) return store.setConnection("unknown");
  watch = setTimeout(follow, known ? 250 : 1000);
}

/** Say whether this browser has joined, null if the daemon does not tell. */
async function isKnown() {
  try {
    doubt();
    const own = await key();
    const answer = await fetch("/api/status", { credentials: "omit", headers: own ? { "covey-key": own } : {} });
    return answer.status === 401 ? false : answer.ok ? true : null;
  } catch {
    return null;
  }
}

/** Say whether nothing at all answers on this very machine: then it is no network that is gone. */
async function isNobodyHere() {
  if (!/(^|\.)localhost$/.test(location.hostname)) return false;
  try {
    await fetch("/covey.webmanifest", { credentials: "omit", cache: "no-store" });
    return false;
  } catch {
    return true;
  }
}

function close() {
  turns++;
  clearTimeout(watch);
  clearInterval(present);
  source?.close();
  source = null;
}

/** @param {unknown} error */
function report(error) {
  if (!(error instanceof Problem)) throw error;
}

/** Begin to follow, and bring what is wanted at the first paint. */
export function begin() {
  follow();
  addEventListener("online", hurry);
  document.addEventListener("visibilitychange", look);
  store.listen(["telling"], tellOn);
  store.loadInbox();
  again(async () => {
    const { project, log, version } = await get("/api/status");
    store.state.about = { project, log, version };
    store.touch("about");
  });
}
