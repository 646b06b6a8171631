// The page: who may see it, where one is, and the frame around every view.
import { html, render, useEffect, useState } from "./lib.js";
import * as alerts from "./alerts.js";
import { join as enter } from "./api.js";
import * as feed from "./feed.js";
import * as keys from "./keys.js";
import { leaveInbox } from "./inbox.js";
import { go, whereabouts } from "./places.js";
import { Palette } from "./palette.js";
import { Rail } from "./rail.js";
import { SessionDialogs } from "./session_dialog.js";
import { Banner, Strip, Tabs } from "./strip.js";
import { TaskForm } from "./taskform.js";
import { setConnection, state, useTopics } from "./store.js";
import { Asking, Button, Notes, Words } from "./ui.js";
import { View as Board } from "./views/board.js";

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
  { id: "settings", title: "Settings", also: "config covey.toml gate budget agent try", keys: "g ,", load: () => import("./views/settings.js") },
];

function usePlace() {
  const [where, setWhere] = useState(whereabouts());
  useEffect(() => {
    const move = () => setWhere({ ...whereabouts(), from: document.activeElement });
    addEventListener("hashchange", move);
    return () => removeEventListener("hashchange", move);
  }, []);
  return where;
}

const loaded = new Map([["board", Board]]);

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

function Place({ where }) {
  const [, again] = useState(0);
  const [problem, setProblem] = useState(null);
  const View = loaded.get(where.place);
  useTopics("connection");
  useEffect(() => {
    if (View || (problem && state.connection.state !== "live")) return;
    bring(PLACES.find(({ id }) => id === where.place)).then(() => {
      setProblem(null);
      again((count) => count + 1);
    }, setProblem);
  }, [where.place, state.connection.state]);
  if (problem && !View) return html`<div class="loading"><p>This view cannot be loaded now.</p><${Button} onClick=${() => location.reload()}>Reload the page<//></div>`;
  return View ? html`<${View} key=${where.place} what=${where.what} />` : html`<p class="loading" aria-busy="true">…</p>`;
}

function Stranger() {
  const refused = sessionStorage.getItem("covey.refused");
  return html`<main class="stranger">
    <h1>covey</h1>
    ${refused && html`<p class="refused" role="alert"><${Words} text=${refused} /></p>`}
    <p>This browser does not know this project yet.</p>
    <p>Run this in the project's folder:</p>
    <pre><code>covey open</code></pre>
    <p>or, for a phone, <code>covey open --phone</code>. The link works once.</p>
  </main>`;
}

/** Take the focus along to where somebody has gone, if it was anywhere; what a view or a dialog has given it to keeps it. */
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

/** Let all that needs a person move in one rhythm, whenever each of them came. */
function keepTime(event) {
  for (const moving of event.animationName === "pulse" ? event.target.getAnimations() : []) moving.startTime = 0;
}

function App() {
  useTopics("connection");
  const where = usePlace();
  keys.useCommands(PLACES.map((place) => ({ label: place.title, group: "Go to", also: place.also, keys: place.keys, run: () => go(place.id) })), []);
  useEffect(() => {
    document.title = `${PLACES.find(({ id }) => id === where.place).title} · covey`;
  }, [where.place]);
  useEffect(() => takeFocus(where.from ?? null), [where]);
  if (state.connection.state === "unknown") return html`<${Stranger} />`;
  return html`<div class=${`frame at-${where.place}`}>
    <a class="skip" href="#main" onClick=${(event) => { event.preventDefault(); document.getElementById("main")?.focus(); }}>Skip to the view</a>
    <${Strip} where=${where} places=${PLACES} />
    <${Banner} />
    <${Tabs} where=${where} places=${PLACES} />
    <${Rail} where=${where} />
    <main id="main" class="view" tabindex="-1" aria-label=${PLACES.find(({ id }) => id === where.place).title}><h1 class="unseen">covey: ${PLACES.find(({ id }) => id === where.place).title}</h1><${Place} where=${where} /></main>
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
  history.replaceState(null, "", `${location.pathname}#/${matchMedia("(max-width: 760px)").matches ? "inbox" : "board"}`);
  try {
    sessionStorage.removeItem("covey.refused");
    await enter(found[1], deviceName());
  } catch (error) {
    if (error.status === 0) throw error;
    sessionStorage.setItem("covey.refused", error.message);
  }
}

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
const page = document.getElementById("app");
page.replaceChildren(); // the word that stood there before is nobody's
render(html`<${App} />`, page);
feed.begin();
alerts.begin();
setTimeout(bringAll, 3000);
