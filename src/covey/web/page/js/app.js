// The entry point: joins this browser to the daemon, picks the view from the address, and draws the frame around it.
import { html, render, useEffect, useLayoutEffect, useState } from "./lib.js";
import { hear, isNarrow } from "./widgets/view_hooks.js";
import * as notifications from "./data/notifications.js";
import { join as enter } from "./data/api.js";
import * as feed from "./data/feed.js";
import * as keys from "./widgets/keys.js";
import { leaveInbox } from "./inbox/inbox_list.js";
import { go, whereabouts } from "./data/routes.js";
import { Palette } from "./frame/palette.js";
import { Rail } from "./inbox/inbox_sidebar.js";
import { SessionDialogs } from "./sessions/session_dialog.js";
import { Banner, Strip, Tabs } from "./frame/top_bar.js";
import { TaskForm } from "./board/task_form.js";
import { setConnection, state, useTopics } from "./data/store.js";
import { Asking, Button, Notes, Words } from "./widgets/ui.js";
import { View as Board } from "./views/board.js";
/** @import { Trouble, View, ViewPlace, Whereabouts } from "types/page.js" */

const on = keys.inGroup("Go to");

/** @type {ViewPlace[]} */
export const PLACES = [
  { id: "board", title: "Board", keys: "g b", load: async () => ({ View: Board }) },
  { id: "inbox", title: "Inbox", keys: "g i", load: () => import("./views/inbox.js") },
  { id: "sessions", title: "Sessions", keys: "g s", load: () => import("./views/sessions.js") },
  { id: "review", title: "Review", also: "approve diff", keys: "g r", load: () => import("./views/review.js") },
  { id: "queue", title: "Merge queue", keys: "g q", load: () => import("./views/queue.js") },
  { id: "timeline", title: "Timeline", keys: "g t", load: () => import("./views/timeline.js") },
  { id: "mail", title: "Mail", keys: "g m", load: () => import("./views/mail.js") },
  { id: "leases", title: "Leases", keys: "g l", load: () => import("./views/leases.js") },
  { id: "costs", title: "Costs", keys: "g c", load: () => import("./views/costs.js") },
  {
    id: "settings",
    title: "Settings",
    also: "config covey.toml gate budget agent try",
    keys: "g ,",
    load: () => import("./views/settings.js"),
  },
];

function usePlace() {
  const [where, setWhere] = useState(whereabouts());
  const follow = () => setWhere({ ...whereabouts(), from: document.activeElement });
  useLayoutEffect(() => hear(window, { hashchange: follow }), []); // with the drawing: who sees a link can follow it
  return where;
}

/** @type {Map<string, View>} */
const loaded = new Map([["board", Board]]);

/** @param {ViewPlace} props */
async function bring({ id, load }) {
  loaded.set(id, (await load()).View);
}

/** Bring the other views while nothing else is to be done: they are small, and are there then while the daemon is not. */
async function bringAll() {
  for (const place of PLACES) {
    if (!loaded.has(place.id)) await bring(place).catch(() => {}); // it is brought when somebody goes there
    await new Promise((go) => setTimeout(go, 200));
  }
}

/** @param {{ where: Whereabouts }} props */
function Place({ where }) {
  const [, again] = useState(0);
  const [problem, setProblem] = useState(/** @type {unknown} */ (null));
  const View = loaded.get(where.place);
  useTopics("connection");
  useEffect(() => {
    if (View || (problem && state.connection.state !== "live")) return;
    bring(PLACES.find(({ id }) => id === where.place) ?? PLACES[0]).then(() => {
      setProblem(null);
      again((count) => count + 1);
    }, setProblem);
  }, [where.place, state.connection.state]);
  if (problem && !View)
    return html`<div class="loading"><p>This view cannot be loaded now.</p><${Button} onClick=${() => location.reload()}>Reload the page<//></div>`;
  return View
    ? html`<${View} key=${where.place} what=${where.what} />`
    : html`<p class="loading" aria-busy="true">…</p>`;
}

function Stranger() {
  const refused = sessionStorage.getItem("covey.refused");
  return html`<main class="stranger">
    <h1>covey</h1>
    ${refused && html`<p class="refused" role="alert"><${Words} text=${refused} /></p>`}
    <p>This browser does not know this project yet.</p>
    <p>Run this in the project's folder:</p>
    <pre class="boxed"><code>covey open</code></pre>
    <p>or, for a phone, <code>covey open --phone</code>. The link works once.</p>
  </main>`;
}

/**
 * Take the focus along to where somebody has gone, if it was anywhere; what a view or a dialog has given it to keeps
 * it.
 * @param {Element | null} before
 */
function takeFocus(before) {
  const focused = document.activeElement;
  if (before === null || before === document.body) return;
  if (focused === document.body || focused?.closest(".rail, .tabs, .strip")) leaveInbox();
}

/** On a phone, a new task within the thumb's reach where one begins; on the board the button for it stands there itself. */
function Add() {
  const [open, setOpen] = useState(false);
  return html`<${Button} kind="add-button add-anywhere" onClick=${() => setOpen(true)}>New task<//>${open && html`<${TaskForm} id=${null} values=${{}} onClose=${() => setOpen(false)} />`}`;
}

/**
 * Let all that needs a person move in one rhythm, whenever each of them came.
 * @param {AnimationEvent} event
 */
function keepTime(event) {
  const animated = /** @type {Element} */ (event.target);
  for (const moving of event.animationName === "pulse" ? animated.getAnimations() : []) moving.startTime = 0;
}

/** @param {string} place */
const titleOf = (place) => PLACES.find(({ id }) => id === place)?.title;

function App() {
  useTopics("connection");
  const where = usePlace();
  keys.useCommands(
    PLACES.map(({ id, title, keys: pressed, also }) => on(title, pressed, () => go(id), { also })),
    [],
  );
  useEffect(() => {
    document.title = `${titleOf(where.place)} · covey`;
  }, [where.place]);
  useEffect(() => takeFocus(where.from ?? null), [where]);
  if (state.connection.state === "unknown") return html`<${Stranger} />`;
  return html`<div class=${`frame at-${where.place}`}>
    <a class="skip" href="#main" onClick=${(event) => {
      event.preventDefault();
      document.getElementById("main")?.focus();
    }}>Skip to the view</a>
    <${Strip} where=${where} places=${PLACES} />
    <${Banner} />
    <${Tabs} where=${where} places=${PLACES} />
    <${Rail} where=${where} />
    <main id="main" class="view" tabindex="-1" aria-label=${titleOf(where.place)}><h1 class="unseen">covey: ${titleOf(where.place)}</h1><${Place} where=${where} /></main>
    ${where.place === "inbox" && html`<${Add} />`}
    <${Palette} />
    <${SessionDialogs} />
    <${Asking} />
    <${Notes} />
  </div>`;
}

/** Take a code out of the address, so that it stays in no history, and join with it. */
async function join() {
  const found = /^#code=([\w-]+)$/.exec(location.hash);
  if (!found) return;
  history.replaceState(null, "", `${location.pathname}#/${isNarrow() ? "inbox" : "board"}`);
  try {
    sessionStorage.removeItem("covey.refused");
    await enter(found[1], deviceName());
  } catch (error) {
    const { status, message } = /** @type {Trouble} */ (error);
    if (status === 0) throw error;
    sessionStorage.setItem("covey.refused", message);
  }
}

/** @param {string[]} names */
const first = (names) => names.find((name) => navigator.userAgent.includes(name));

/** Return how this browser is called in the list of devices. */
function deviceName() {
  const system = first(["Android", "iPhone", "iPad", "Mac", "Windows", "Linux"]) ?? "a device";
  const browser = first(["Firefox", "Edg", "Chrome", "Safari"])?.replace("Edg", "Edge") ?? "A browser";
  return `${browser} on ${system}`;
}

addEventListener("hashchange", () => location.hash.startsWith("#code=") && location.reload());
document.addEventListener("animationstart", keepTime);
keys.begin();
await join().catch(() => setConnection("lost"));
const page = /** @type {HTMLElement} */ (document.getElementById("app"));
page.replaceChildren(); // the word that stood there before is nobody's
render(html`<${App} />`, page);
feed.begin();
notifications.begin();
setTimeout(bringAll, 3000);
