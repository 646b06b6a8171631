// What happened: a story for each task, every event of the log, or each session over time.
import { html, useMemo, useRef, useState } from "../lib.js";
import { get, query } from "../data/api.js";
import { inGroup, useCommands } from "../widgets/keys.js";
import { Night } from "../timeline/session_timeline.js";
import { useKept, useTick } from "../widgets/view_hooks.js";
import { go, to } from "../data/routes.js";
import { state, useRead, useTopics } from "../data/store.js";
import { OUTCOMES, TOLD } from "../rules/stories.js";
import { Stories } from "../timeline/story_list.js";
import { clock, visible } from "../rules/text.js";
import { Trail } from "../timeline/event_log.js";
import { Button } from "../widgets/ui.js";
/** @import { TimelineFilters } from "types/page.js" */
/** @import { Ref } from "types/vendor/hooks.js" */
/** @import { PageEvent } from "types/vendor/htm.js" */

const on = inGroup("Timeline");

const LEAST = 600;
const HOURS = [3, 12, 24, 72, 168];
const GROUPS = [
  { id: "tasks", title: "Tasks", kinds: "task." },
  { id: "sessions", title: "Sessions", kinds: "session.,fleet." },
  { id: "runs", title: "Runs", kinds: "run.begun,run.ending,run.ended,run.missed" },
  { id: "queue", title: "Merge queue", kinds: "merge.,queue.,gate.,landing." },
  { id: "questions", title: "Questions", kinds: "question.,permit." },
  { id: "mail", title: "Mail", kinds: "mail." },
  { id: "leases", title: "Leases", kinds: "lease.,overlap." },
  { id: "alerts", title: "Alerts", kinds: "alert." },
  { id: "spending", title: "Spending", kinds: "run.spent" },
];
const NOISE = "run.spent"; // many a minute, so they are shown only to who asks for them

/**
 * Return the filters that the address names: session=ada&task=AF-1&outcome=landed&until=1700000000 of stories,
 * events=1&groups=queue,mail of events.
 * @param {string | null} what
 */
function filtersOf(what) {
  const found = new URLSearchParams(what ?? "");
  const groups = (found.get("groups") ?? "").split(",").filter(Boolean);
  return {
    session: found.get("session") ?? "",
    task: found.get("task") ?? "",
    outcome: found.get("outcome") ?? "",
    groups,
    until: Number(found.get("until")) || null,
    events: found.get("events") === "1" || groups.length > 0,
  };
}

/** @param {TimelineFilters} props */
function addressOf({ session, task, outcome, groups, until, events }) {
  const values = {
    session,
    task,
    until: until ? Math.round(until) : "",
    ...(events ? { events: 1, groups: groups.join(",") } : { outcome }),
  };
  return query("", values).slice(1) || null;
}

/** @param {TimelineFilters} props */
const isNarrowed = ({ session, task, outcome, groups, until }) =>
  Boolean(session || task || outcome || groups.length || until);
/** @param {string[]} groups */
const kindsOf = (groups) =>
  groups
    .map((id) => GROUPS.find((group) => group.id === id)?.kinds ?? "")
    .filter(Boolean)
    .join(",");

/** @param {{ what: string | null }} props */
export function View({ what }) {
  const filters = useMemo(() => filtersOf(what), [what]);
  /** @param {Partial<TimelineFilters>} part */
  const change = (part) => go("timeline", addressOf({ ...filters, ...part }));
  const [text, setText] = useState("");
  const search = useRef(null);
  useCommands(
    [
      on("Search the timeline", "/", () => search.current?.focus()),
      on("Stories, or every event", "e", () => change({ events: !filters.events })),
      on("Show all of the timeline", "x", () => {
        setText("");
        go("timeline", filters.events ? "events=1" : null);
      }),
    ],
    [what],
  );
  const { session, task, until, groups } = filters;
  const about = { session, task, until };
  const hint = isNarrowed(filters)
    ? "Show all, or choose other filters."
    : html`Add a first task: <code>covey task add "Say hello"</code>`;
  return html`<div class="sheet timeline">
    <${Filters} filters=${filters} change=${change} text=${text} setText=${setText} search=${search} />
    <${Strips} filters=${filters} onPick=${(/** @type {string | null} */ name, /** @type {number | null} */ at) => change({ session: name ?? "", until: at })} />
    ${
      filters.events
        ? html`<${Trail} key=${what ?? ""} asked=${{ ...about, kinds: kindsOf(groups), without: groups.length ? "" : NOISE }} text=${text} hint=${hint} />`
        : html`<${Stories} key=${JSON.stringify(about)} asked=${{ ...about, kinds: TOLD }} outcome=${filters.outcome} text=${text} hint=${hint} />`
    }
  </div>`;
}

// The night

/** @param {{ filters: TimelineFilters, onPick: (session: string | null, at: number | null) => void }} props */
function Strips({ filters, onPick }) {
  const [hours, setHours] = useKept("covey.strip", 12);
  const [shown, setShown] = useState(() => localStorage.getItem("covey.strips") === "shown");
  const tick = useTick(["sessions", "runs", "connection"], 5000);
  const [found] = useRead(
    async () => {
      const until = Date.now() / 1000;
      const rows = await get(query("/api/strips", { since: until - hours * 3600 }));
      const first = Math.min(until - LEAST, ...rows.flatMap(({ spans }) => spans.slice(0, 1).map(({ at }) => at)));
      return { rows, since: Math.max(first, until - hours * 3600), until }; // a project that is an hour old needs no empty night
    },
    [],
    [hours, shown, tick],
  );
  const toggle = () => {
    localStorage.setItem("covey.strips", shown ? "hidden" : "shown");
    setShown(!shown);
  };
  return html`<section class="strips" aria-label="What each session did">
    <div class="sheet-tools row">
      <${Button} kind="quiet" aria-expanded=${shown} onClick=${toggle}><span aria-hidden="true">${shown ? "▾" : "▸"}</span> Sessions over time<//>
      ${shown && html`<div class="choice" role="group" aria-label="How much time">${HOURS.map((each) => html`<${Button} key=${each} aria-pressed=${hours === each} onClick=${() => setHours(each)}>${each < 72 ? `${each} h` : `${each / 24} d`}<//>`)}</div>`}
    </div>
    ${shown && found && (found.rows.length ? html`<${Night} ...${found} picked=${filters.session} onPick=${onPick} />` : html`<p class="faint strips-none">No session was there in this time.</p>`)}
  </section>`;
}

// Filters

/**
 * @param {{ filters: TimelineFilters, change: (part: Partial<TimelineFilters>) => void, text: string, setText: (text: string) => void, search: Ref<HTMLElement> }} props
 */
function Filters({ filters, change, text, setText, search }) {
  useTopics("sessions");
  const names = [...new Set([...state.sessions.keys(), ...(filters.session ? [filters.session] : [])])].sort();
  /** @param {string} id */
  const toggle = (id) =>
    change({
      groups: filters.groups.includes(id) ? filters.groups.filter((each) => each !== id) : [...filters.groups, id],
    });
  /** @param {PageEvent} event */
  const takeTask = (event) => change({ task: event.target.value.trim().toUpperCase() });
  const { events, outcome, groups } = filters;
  return html`<div class="sheet-tools row filters" role="search" aria-label="Filter the timeline">
    <div class="segments" role="radiogroup" aria-label="What is shown">
      ${
        /** @type {[boolean, string][]} */ ([
          [false, "Stories"],
          [true, "Every event"],
        ]).map(
          ([value, word]) =>
            html`<button type="button" key=${word} role="radio" class="segment bare" aria-checked=${events === value} onClick=${() => change({ events: value })}>${word}</button>`,
        )
      }</div>
    <input type="search" ref=${search} placeholder="Search" aria-label="Search what is shown" value=${text} onInput=${(event) => setText(event.target.value)} />
    <select class="filter-session" aria-label="Session" value=${filters.session} onChange=${(event) => change({ session: event.target.value })}>
      <option value="">every session</option>${names.map((name) => html`<option key=${name} value=${name}>${visible(name)}</option>`)}
    </select>
    <input class="task-field" aria-label="Task" placeholder="Task" value=${filters.task} onChange=${takeTask} />
    ${
      events
        ? html`<div class="choice" role="group" aria-label="Kinds">${GROUPS.map(({ id, title }) => html`<${Button} key=${id} aria-pressed=${groups.includes(id)} onClick=${() => toggle(id)}>${title}<//>`)}</div>
        <select class="instead-of-choice" aria-label="Kind" value=${groups[0] ?? ""} onChange=${(event) => change({ groups: event.target.value ? [event.target.value] : [] })}><option value="">every kind</option>${GROUPS.map(({ id, title }) => html`<option key=${id} value=${id}>${title}</option>`)}</select>`
        : html`<div class="choice" role="group" aria-label="How it ended">${OUTCOMES.filter(({ isAsked }) => isAsked).map(({ id, title }) => html`<${Button} key=${id} aria-pressed=${outcome === id} onClick=${() => change({ outcome: outcome === id ? "" : id })}>${title}<//>`)}</div>
        <select class="instead-of-choice" aria-label="How it ended" value=${outcome} onChange=${(event) => change({ outcome: event.target.value })}><option value="">all stories</option>${OUTCOMES.filter(({ isAsked }) => isAsked).map(({ id, title }) => html`<option key=${id} value=${id}>${title}</option>`)}</select>`
    }
    ${filters.until && html`<${Button} onClick=${() => change({ until: null })} aria-label=${`Up to ${clock(filters.until)}: show up to now`}>up to ${clock(filters.until)} ✕<//>`}
    ${isNarrowed(filters) && html`<a class="button quiet" href=${to("timeline", events ? "events=1" : null)}>Show all</a>`}
  </div>`;
}
