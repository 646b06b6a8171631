// The bar at the top: counts, cost, limits, machine load, the connection, and the switch that pauses everything.
import { html, useEffect, useState } from "../lib.js";
import { isNarrow } from "../widgets/view_hooks.js";
import { get, post } from "../data/api.js";
import { QUICK } from "../rules/columns.js";
import { waiting } from "../inbox/inbox_list.js";
import { useCommands } from "../widgets/keys.js";
import { Menu, useMenuCommands } from "./menu.js";
import { go, to } from "../data/routes.js";
import { setFilter, state, tally, touch, useRead, useTopics } from "../data/store.js";
import { bytes, clock, money, some, span, tokens, visible } from "../rules/text.js";
import { State, attempt, note } from "../widgets/ui.js";
/** @import { Ending, ViewPlace, Whereabouts } from "types/page.js" */
/** @import { Child } from "types/vendor/preact.js" */

/** @type {Record<string, string>} */
const SIGNS = { needs: "needs-you", working: "working", review: "review", merging: "merging", failed: "failed" };

// Counts

/**
 * Narrow the board to what a count counts, or show all again; on a phone what needs a person is the inbox.
 * @param {string} name
 */
function narrow(name) {
  if (name === "needs" && isNarrow()) return go("inbox");
  const already = state.filter.quick === name && location.hash.startsWith("#/board");
  setFilter({ quick: already ? null : name });
  if (!already) go("board");
}

/** @param {{ where: Whereabouts }} props */
function Counts({ where }) {
  useTopics("tasks", "sessions", "inbox", "filter", "fleet");
  /** @type {Record<string, number>} */
  const counts = { ...tally(), needs: waiting().length };
  return html`<div class="counts row" role="group" aria-label="Filter the board">
    ${Object.entries(QUICK).map(([name, { title }]) => {
      const pressed = where.place === "board" && state.filter.quick === name;
      return html`<button type="button" key=${name} class=${`count-button of-${name} ${counts[name] ? "" : "none"}`} aria-pressed=${pressed} onClick=${() => narrow(name)} title=${pressed ? "Show all again" : `Show only what is counted here`}>
        <${State} name=${SIGNS[name]} /><b>${counts[name]}</b> <span class="count-word">${title}</span>
      </button>`;
    })}
  </div>`;
}

// What it costs, what it is limited by, what the machine bears

/**
 * A bar of how much of something is used, with its words; from `warn` on it looks like a warning, null is never one.
 * @param {{ share: number | null, warn?: number | null, label: string, children: Child }} props
 */
function Bar({ share, warn = 0.8, label, children }) {
  const part = Math.max(0, Math.min(1, share || 0));
  const level = warn === null || part < warn ? "" : part >= 1 ? "full" : "warned";
  return html`<span class=${`gauge ${level}`} title=${label}>
    <span class="gauge-words">${children}</span>
    <span class="gauge-bar" role="meter" aria-label=${label} aria-valuemin="0" aria-valuemax="100" aria-valuenow=${Math.round(part * 100)}><i style=${{ width: `${part * 100}%` }}></i></span>
  </span>`;
}

function Spent() {
  useTopics("machine");
  const today = state.today;
  if (!today) return null;
  const unpriced = today.unpriced ? `; ${tokens(today.unpriced)} tokens have no known price` : "";
  const said = `Estimate of today: ${money(today.cost)}, ${tokens(today.tokens)} tokens${unpriced}`;
  if (today.budget) {
    const share = today.cost / today.budget;
    return html`<a class="strip-link" href=${to("costs")}><${Bar} share=${share} label=${`${said}. Budget ${money(today.budget)}.`}>${share >= 0.8 && html`<span class="warn-sign" aria-hidden="true">▲</span>`}≈ ${money(today.cost)} <span class="faint">of ${money(today.budget)}</span><//></a>`;
  }
  if (today.budget_tokens) {
    return html`<a class="strip-link" href=${to("costs")}><${Bar} share=${today.tokens / today.budget_tokens} label=${`${said}. Budget ${tokens(today.budget_tokens)} tokens.`}>${tokens(today.tokens)} <span class="faint">of ${tokens(today.budget_tokens)} tokens</span><//></a>`;
  }
  return html`<a class="strip-link" href=${to("costs")} title=${said}>≈ ${money(today.cost)} <span class="faint">today</span></a>`;
}

function Limits() {
  useTopics("machine");
  if (!state.limits.length) return null;
  return html`<span class="limits">${state.limits.map(
    ({ agent, until, what }) => html`<span key=${agent} class="limit" title=${visible(what ?? "", 300)}>
    <${State} name="limited" /><bdi>${visible(agent, 40)}</bdi> limited${until ? html`, resets <b>${clock(until)}</b>` : ""}</span>`,
  )}</span>`;
}

function Machine() {
  useTopics("machine");
  const machine = state.machine;
  if (!machine) return null;
  return html`<span class="machine">
    ${machine.cpu !== null && html`<${Bar} share=${machine.cpu} warn=${null} label=${`CPU ${Math.round(machine.cpu * 100)} %`}>CPU<//>`}
    ${machine.memory_total && machine.memory !== null && html`<${Bar} share=${machine.memory / machine.memory_total} warn=${0.9} label=${`Memory: ${bytes(machine.memory)} of ${bytes(machine.memory_total)}`}>Mem<//>`}
  </span>`;
}

// The connection

function Link() {
  useTopics("connection");
  const { state: name, end } = state.connection;
  const meant = name === "lost" && end !== null && end.why !== "died";
  return html`<span class=${`link link-${meant ? "stopped" : name}`} title=${name === "live" ? "Connected: what happens shows at once" : "Not connected"}><i aria-hidden="true"></i><span>${meant ? "stopped" : name}</span></span>`;
}

/** Says that the connection is lost, since when, and what is shown meanwhile; and that all is caught up when it is back. */
export function Banner() {
  useTopics("connection");
  const [now, setNow] = useState(Date.now() / 1000);
  const lost = state.connection.state === "lost";
  useEffect(() => {
    if (!lost) return;
    const since = state.connection.since;
    const timer = setInterval(() => setNow(Date.now() / 1000), 1000);
    return () => {
      clearInterval(timer);
      if (state.connection.state === "live" && Date.now() / 1000 - since > GRACE)
        note(`Connected again after ${span(Date.now() / 1000 - since)}: all that happened meanwhile is here.`);
    };
  }, [lost]);
  const gone = now - state.connection.since;
  if (!lost || gone < GRACE) return html`<div class="banner-place" role="alert"></div>`;
  const known = state.heard ? `; showing what was known at ${clock(state.heard)}` : "";
  const { end } = state.connection;
  if (end !== null) return html`<${Ended} end=${end} gone=${gone} known=${known} />`;
  return html`<div class="banner-place" role="alert"><p class="banner row"><${State} name="stalled" /><span><b>Connection lost</b> <span aria-hidden="true">${span(gone)} ago</span>${known}; trying again. <span class="soft">Agents go on without this page.</span></span></p></div>`;
}

const GRACE = 1;
/** @type {Record<string, string>} */
const ENDS = {
  stopped: "covey was stopped",
  unneeded: "covey has ended, with the covey run that had started it",
  gone: "covey is not running",
  died: "covey has ended without a word: its daemon has died, or the way to it is cut",
};

/**
 * Says how the daemon ended, who works on without it, and how to go on.
 * @param {{ end: Ending, gone: number, known: string }} props
 */
function Ended({ end: { why, agents }, gone, known }) {
  const died = why === "died";
  const workOn = agents ? `${some(agents, "agent")} ${agents === 1 ? "works" : "work"} on without it. ` : "";
  return html`<div class="banner-place" role="alert"><p class=${died ? "banner row" : "banner row calm"}><${State} name=${died ? "stalled" : "stopped"} /><span><b>${ENDS[why] ?? ENDS.stopped}</b> <span aria-hidden="true">${span(gone)} ago</span>${known}. <span class="soft">${workOn}Type <code>covey up</code> in the repository to go on; this page comes back by itself.${died ? html` <code>covey up --service</code> keeps it alive.` : ""}</span></span></p></div>`;
}

// The switch

/** @param {boolean} paused */
async function turn(paused, mayUndo = true) {
  state.paused = paused; // shown at once, and set right if it fails
  touch("fleet");
  const row = await attempt(() => post(paused ? "/api/pause" : "/api/resume"));
  state.paused = row ? row.paused : !paused;
  touch("fleet");
  if (row !== undefined)
    note(paused ? "Everything stands still: no agent works, nothing lands." : "All go on.", {
      undo: mayUndo ? () => turn(!paused, false) : null,
    });
}

function Switch() {
  useTopics("fleet");
  useCommands(
    [{ label: "Pause all, or go on", group: "Fleet", keys: "P", usual: true, run: () => turn(!state.paused) }],
    [],
  );
  return state.paused
    ? html`<button type="button" class="button primary switch" onClick=${() => turn(false)}><svg viewBox="0 0 16 16" class="glyph filled" aria-hidden="true"><path d="M5 3.5 12 8 5 12.5Z" /></svg><span>Go on</span></button>`
    : html`<button type="button" class="button switch" onClick=${() => turn(true)}><svg viewBox="0 0 16 16" class="glyph" aria-hidden="true"><path d="M5.5 3.5v9M10.5 3.5v9" /></svg><span>Pause all</span></button>`;
}

/**
 * The strip.
 * @param {{ where: Whereabouts, places: ViewPlace[] }} props
 */
export function Strip({ where, places }) {
  useTopics("about", "fleet");
  const [open, setOpen] = useState(/** @type {string | null} */ (null));
  useMenuCommands(setOpen);
  return html`<header class=${`strip row ${state.paused ? "still" : ""}`}>
    <a class="brand row" href=${to("board")}><svg viewBox="0 0 32 32" class="mark" aria-hidden="true"><path d="M6 20c4-9 9-12 20-12-3 3-4 5-4 8 0 6-5 9-10 9-4 0-6-2-6-5Z" /></svg><strong>covey</strong>${state.about && html`<span class="project one-line"><bdi>${visible(state.about.project, 80)}</bdi></span>`}</a>
    <${Counts} where=${where} />
    <span class="spring"></span>
    <${Limits} />
    <${Spent} />
    <${Machine} />
    <${Link} />
    <button type="button" class="button quiet find" onClick=${() => touch("palette")} title="Find anything"><svg viewBox="0 0 16 16" class="glyph" aria-hidden="true"><path d="M7 2.5a4.5 4.5 0 1 0 0 9 4.5 4.5 0 0 0 0-9ZM10.3 10.3 14 14" /></svg><span class="unseen">Find anything</span></button>
    ${state.paused && html`<span class="paused-word"><${State} name="paused" word=${true} /></span>`}
    <${Switch} />
    <button type="button" class="button quiet menu-button" aria-label="Menu" aria-haspopup="dialog" aria-expanded=${open !== null} onClick=${() => setOpen("menu")}><svg viewBox="0 0 16 16" class="glyph" aria-hidden="true"><path d="M2.5 4.5h11M2.5 8h11M2.5 11.5h11" /></svg></button>
  </header>${open && html`<${Menu} key=${open} first=${open} where=${where} places=${places} onClose=${() => setOpen(null)} />`}`;
}

// Where one can go

/** @type {Record<string, string>} */
const ICONS = {
  inbox: "M2 9.5 4 3h8l2 6.5V13H2ZM2 9.5h3.5L7 11h2l1.5-1.5H14",
  board: "M2.5 3h3v10h-3ZM6.5 3h3v6h-3ZM10.5 3h3v8h-3Z",
  sessions: "M2 3h12v10H2ZM4.5 6.5 6.5 8l-2 1.5M8 10h3",
  review: "M3 3h10M3 6.3h6M3 9.6h10M3 13h5",
  more: "M3.5 8h.01M8 8h.01M12.5 8h.01",
};
const ON_PHONE = ["inbox", "board", "sessions", "review"];

function MailBadge() {
  const [unread] = useRead(() => get("/api/mail"), ["mail", "connection"]);
  return unread?.length ? html`<span class="badge">${unread.length}<span class="unseen"> unread</span></span>` : null;
}

/** @param {{ id: string }} props */
function Badge({ id }) {
  useTopics("inbox", "tasks");
  if (id === "mail") return html`<${MailBadge} />`;
  const column = { review: "review", queue: "merging" }[id];
  const count = id === "inbox" ? waiting().length : column ? state.columns.lists.get(column).length : 0;
  return count
    ? html`<span class=${`badge ${id === "inbox" ? "some" : ""}`}>${count}<span class="unseen"> ${id === "inbox" ? "wait for you" : some(count, "task").replace(/^\d+ /, "")}</span></span>`
    : null;
}

/**
 * The views: a row under the strip, at the bottom of a phone the four that count and a menu for the rest.
 * @param {{ where: Whereabouts, places: ViewPlace[] }} props
 */
export function Tabs({ where, places }) {
  const [open, setOpen] = useState(false);
  const rest = !ON_PHONE.includes(where.place);
  return html`<nav class="tabs" aria-label="Views">
    ${places.map(
      ({
        id,
        title,
      }) => html`<a key=${id} class=${`tab ${ON_PHONE.includes(id) ? `on-phone tab-${id}` : "not-on-phone"}`} href=${to(id)} aria-current=${id === where.place ? "page" : undefined}>
      ${ICONS[id] && html`<svg viewBox="0 0 16 16" class="glyph tab-icon" aria-hidden="true"><path d=${ICONS[id]} /></svg>`}<span>${title}</span><${Badge} id=${id} /></a>`,
    )}
    <button type="button" class=${`tab-more ${rest ? "here" : ""}`} aria-haspopup="dialog" aria-expanded=${open} onClick=${() => setOpen(true)}><svg viewBox="0 0 16 16" class="glyph tab-icon" aria-hidden="true"><path d=${ICONS.more} /></svg><span>More</span></button>
  </nav>${open && html`<${Menu} where=${where} places=${places} onClose=${() => setOpen(false)} />`}`;
}
