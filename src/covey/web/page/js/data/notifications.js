// Sounds and notifications, once for everything that starts to need a person or is done.
import { decoded, go } from "./routes.js";
import { isQuiet } from "../rules/quiet_hours.js";
import { marksOf } from "../rules/decided.js";
import { settings } from "./settings.js";
import { listen, state, touch } from "./store.js";
import { some, visible } from "../rules/text.js";
/** @import { InboxItem, Task } from "types/page.js" */

const TOGETHER = 3000;

// Sounds, made by code: two that nobody can take for each other

/** @type {AudioContext | null} */
let sounds = null;

/** Make ready to sound, and say whether that may be: browsers let a page sound only after somebody has touched it. */
async function wake() {
  if (!("AudioContext" in window) || navigator.userActivation?.hasBeenActive === false) return false;
  sounds ??= new AudioContext();
  if (sounds.state === "suspended") await Promise.race([sounds.resume(), new Promise((go) => setTimeout(go, 1000))]);
  return sounds.state === "running";
}

/**
 * @param {number} at
 * @param {number} pitch
 * @param {number} length
 * @param {number} loud
 */
function tone(at, pitch, length, loud) {
  if (sounds === null) return;
  const source = new OscillatorNode(sounds, { type: "sine", frequency: pitch });
  const volume = new GainNode(sounds, { gain: 0 });
  volume.gain.setValueAtTime(0, at);
  volume.gain.linearRampToValueAtTime(loud, at + 0.012);
  volume.gain.exponentialRampToValueAtTime(0.0001, at + length);
  source.connect(volume).connect(sounds.destination);
  source.start(at);
  source.stop(at + length + 0.05);
}

/**
 * Play a sound: `needs` knocks twice and rises, `done` falls once, softly.
 * @param {"needs" | "done"} name
 */
export async function play(name) {
  if (!(await wake()) || sounds === null) return;
  const now = sounds.currentTime + 0.01;
  if (name === "needs") {
    tone(now, 659, 0.16, 0.16);
    tone(now + 0.13, 880, 0.16, 0.16);
    tone(now + 0.34, 659, 0.16, 0.14);
    tone(now + 0.47, 880, 0.28, 0.14);
  } else {
    tone(now, 784, 0.3, 0.08);
    tone(now + 0.11, 523, 0.55, 0.08);
  }
}

// Notifications

/** @type {ServiceWorkerRegistration | null | undefined} */
let worker = null;

/** Ask whether notifications may be shown; says whether they may. */
export async function askForNotifications() {
  if (!("Notification" in window)) return false;
  const said = Notification.permission === "default" ? await Notification.requestPermission() : Notification.permission;
  return said === "granted";
}

/**
 * @param {string} title
 * @param {string} body
 * @param {string} hash
 */
async function show(title, body, hash) {
  if (!settings.notify || !("Notification" in window) || Notification.permission !== "granted") return;
  const more = { body, tag: `covey ${hash}`, icon: "icon.svg", silent: true, data: { hash } };
  try {
    const shown = new Notification(title, more);
    shown.onclick = () => {
      focus();
      location.hash = hash;
      shown.close();
    };
  } catch {
    // Phones show notifications only through a worker.
    worker ??= await navigator.serviceWorker?.register("js/worker.js").catch(() => null);
    await worker?.showNotification(title, more).catch(() => {});
  }
}

// What is new

/** @type {Set<string> | null} */
let known = null;
let ended = 0;
/** @type {{ needs: { key: string, what: InboxItem }[], done: { key: string, what: Task }[] }} */
let news = { needs: [], done: [] };
let timer = 0;
/** @type {Set<string>} */
const seen = new Set();
const others = "BroadcastChannel" in window ? new BroadcastChannel("covey.alerts") : null;
let isFirst = !("locks" in navigator);

/** Only one page of this browser tells; the others tell it what they show already. */
function queueUp() {
  navigator.locks?.request("covey.alerts", () => {
    isFirst = true;
    touch("telling");
    return new Promise(() => {});
  });
  others?.addEventListener("message", ({ data }) => data.forEach((/** @type {string} */ key) => seen.add(key)));
}

/** Say whether this page is the one that tells a person who does not look. Topic: `telling`. */
export const isTelling = () => isFirst;

/** @param {Element | null} element */
function isInView(element) {
  if (!element || !document.hasFocus()) return false;
  const { top, bottom, height } = element.getBoundingClientRect();
  return height > 0 && top < innerHeight && bottom > 0;
}

/**
 * @param {string} name
 * @param {string} value
 */
const find = (name, value) => document.querySelector(`[${name}="${CSS.escape(value)}"]`);

/** What a person did: nobody has to be told. */
const OWN = new Set(["queue:fleet", "queue:paused", "queue:frozen"]);

function hearInbox() {
  const now = new Set(state.inbox.flatMap(marksOf));
  const before = known;
  if (before !== null) {
    for (const item of state.inbox)
      if (!OWN.has(item.key) && marksOf(item).some((mark) => !before.has(mark))) collect("needs", item.key, item);
  }
  known = now;
}

/** Note what is done since the last look; the column begins with what ended last. */
function hearDone() {
  const list = state.columns.lists.get("done");
  if (!state.loaded.whole) {
    ended = Math.max(ended, list[0]?.ended ?? 0, Date.now() / 1000 - 5);
    return;
  }
  for (const task of list) {
    if ((task.ended ?? 0) <= ended) break;
    collect("done", task.id, task);
  }
  ended = Math.max(ended, list[0]?.ended ?? 0);
}

/**
 * @param {"needs" | "done"} kind
 * @param {string} key
 * @param {InboxItem | Task} what
 */
function collect(kind, key, what) {
  /** @type {{ key: string, what: InboxItem | Task }[]} */
  const list = news[kind];
  if (!list.some((each) => each.key === key)) list.push({ key, what });
  if (!timer) timer = setTimeout(tell, TOGETHER);
  requestAnimationFrame(() => witness(kind, key));
  setTimeout(() => witness(kind, key), TOGETHER - 300);
}

/**
 * Note that somebody sees something already, in this page or another one.
 * @param {"needs" | "done"} kind
 * @param {string} key
 */
function witness(kind, key) {
  if (!isInView(find(kind === "needs" ? "data-key" : "data-id", key))) return;
  seen.add(key);
  others?.postMessage([key]);
}

/** Tell what came together, without what somebody sees already or has settled meanwhile. */
function tell() {
  timer = 0;
  const { needs, done } = news;
  news = { needs: [], done: [] };
  const open = new Set(state.inbox.map(({ key }) => key));
  const asking = needs.filter(({ key }) => !seen.has(key) && open.has(key)).map(({ what }) => what);
  const over = done.filter(({ key }) => !seen.has(key)).map(({ what }) => what);
  seen.clear();
  if (!isFirst || isQuiet(settings) || !(asking.length || over.length)) return;
  if (asking.length) tellNeeds(asking);
  if (over.length) tellDone(over, asking.length > 0);
}

/** @param {InboxItem[]} items */
function tellNeeds(items) {
  if (settings.soundNeeds) play("needs");
  const [first] = items;
  const title =
    items.length === 1
      ? `${first.session ?? first.task ?? "covey"} needs you`
      : `${some(items.length, "thing")} need you`;
  show(title, visible(first.about || first.text || first.title, 200), "#/inbox");
}

/**
 * @param {Task[]} tasks
 * @param {boolean} isBeside
 */
function tellDone(tasks, isBeside) {
  if (settings.soundDone && !isBeside) play("done");
  const title = tasks.length === 1 ? `${tasks[0].id} is done` : `${some(tasks.length, "task")} are done`;
  show(
    title,
    visible(tasks.map((task) => task.title).join("; "), 200),
    tasks.length === 1 ? `#/board/${tasks[0].id}` : "#/board",
  );
}

/**
 * Go where a notification leads.
 * @param {string} hash
 */
function lead(hash) {
  const [place, what] = hash.replace(/^#\//, "").split("/").map(decoded);
  go(place, what);
}

/** Begin to watch what changes; what is there already is no news. */
export function begin() {
  queueUp();
  listen(["inbox"], hearInbox);
  listen(["tasks", "loaded"], hearDone);
  navigator.serviceWorker?.addEventListener("message", ({ data }) => typeof data?.hash === "string" && lead(data.hash));
}
