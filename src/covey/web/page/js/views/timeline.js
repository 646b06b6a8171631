// What happened, from the log: the newest first, on and on backwards, and above it the night at a glance.
import { html, useEffect, useLayoutEffect, useMemo, useRef, useState } from "../lib.js";
import { get, query } from "../api.js";
import { useCommands } from "../keys.js";
import { Night } from "../night.js";
import { ALL, useNarrow, useTick } from "../pace.js";
import { go, to } from "../places.js";
import { state, useRead, useTopics } from "../store.js";
import { clock, some, visible } from "../text.js";
import { Button, Dialog, Empty, Long, Words } from "../ui.js";

const PAGE = 200;
const MOST = 10_000;
const KEPT = 2_000;
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

/** Return the filters that the address names: session=ada&task=AF-1&groups=queue,mail&until=1700000000. */
function filtersOf(what) {
  const found = new URLSearchParams(what ?? "");
  return { session: found.get("session") ?? "", task: found.get("task") ?? "", groups: (found.get("groups") ?? "").split(",").filter(Boolean), until: Number(found.get("until")) || null };
}

function addressOf({ session, task, groups, until }) {
  const values = new URLSearchParams(Object.entries({ session, task, groups: groups.join(","), until: until ? Math.round(until) : "" }).filter(([, value]) => value));
  return values.toString() || null;
}

export function View({ what }) {
  const filters = useMemo(() => filtersOf(what), [what]);
  const change = (part) => go("timeline", addressOf({ ...filters, ...part }));
  const [text, setText] = useState("");
  const search = useRef(null);
  useCommands([
    { label: "Search the timeline", keys: "/", group: "Timeline", run: () => search.current?.focus() },
    { label: "Show all of the timeline", keys: "x", group: "Timeline", run: () => { setText(""); go("timeline"); } },
  ], []);
  return html`<div class="sheet timeline">
    <${Strips} filters=${filters} onPick=${(session, until) => change({ session: session ?? "", until })} />
    <${Filters} filters=${filters} change=${change} text=${text} setText=${setText} search=${search} />
    <${Trail} key=${what ?? ""} filters=${filters} text=${text} />
  </div>`;
}

// The night

function Strips({ filters, onPick }) {
  const [hours, setHours] = useState(() => Number(localStorage.getItem("covey.strip")) || 12);
  const [shown, setShown] = useState(() => localStorage.getItem("covey.strips") !== "hidden");
  const tick = useTick(["sessions", "runs", "connection"], 5000);
  const [found] = useRead(async () => {
    const until = Date.now() / 1000;
    const rows = await get(query("/api/strips", { since: until - hours * 3600 }));
    const first = Math.min(until - LEAST, ...rows.flatMap(({ spans }) => spans.slice(0, 1).map(({ at }) => at)));
    return { rows, since: Math.max(first, until - hours * 3600), until }; // a project that is an hour old needs no empty night
  }, [], [hours, shown, tick]);
  const choose = (next) => {
    localStorage.setItem("covey.strip", next);
    setHours(next);
  };
  const toggle = () => {
    localStorage.setItem("covey.strips", shown ? "hidden" : "shown");
    setShown(!shown);
  };
  return html`<section class="strips" aria-label="What each session did">
    <div class="sheet-tools">
      <${Button} kind="quiet" aria-expanded=${shown} onClick=${toggle}>${shown ? "▾" : "▸"} Sessions over time<//>
      ${shown && html`<div class="choice" role="group" aria-label="How much time">${HOURS.map((each) => html`<${Button} key=${each} aria-pressed=${hours === each} onClick=${() => choose(each)}>${each < 72 ? `${each} h` : `${each / 24} d`}<//>`)}</div>`}
    </div>
    ${shown && found && (found.rows.length ? html`<${Night} ...${found} picked=${filters.session} onPick=${onPick} />` : html`<p class="faint strips-none">No session was there in this time.</p>`)}
  </section>`;
}

// Filters

function Filters({ filters, change, text, setText, search }) {
  useTopics("sessions");
  const names = [...new Set([...state.sessions.keys(), ...(filters.session ? [filters.session] : [])])].sort();
  const toggle = (id) => change({ groups: filters.groups.includes(id) ? filters.groups.filter((each) => each !== id) : [...filters.groups, id] });
  const takeTask = (event) => change({ task: event.target.value.trim().toUpperCase() });
  return html`<div class="sheet-tools filters" role="search" aria-label="Filter the timeline">
    <input type="search" ref=${search} placeholder="Search what is shown" aria-label="Search what is shown" value=${text} onInput=${(event) => setText(event.target.value)} />
    <select aria-label="Session" value=${filters.session} onChange=${(event) => change({ session: event.target.value })}>
      <option value="">every session</option>${names.map((name) => html`<option key=${name} value=${name}>${visible(name)}</option>`)}
    </select>
    <input class="task-field" aria-label="Task" placeholder="Task" value=${filters.task} onChange=${takeTask} />
    <div class="choice" role="group" aria-label="Kinds">${GROUPS.map(({ id, title }) => html`<${Button} key=${id} aria-pressed=${filters.groups.includes(id)} onClick=${() => toggle(id)}>${title}<//>`)}</div>
    ${filters.until && html`<${Button} onClick=${() => change({ until: null })} aria-label=${`Up to ${clock(filters.until)}: show up to now`}>up to ${clock(filters.until)} ✕<//>`}
    ${(filters.session || filters.task || filters.groups.length > 0 || filters.until) && html`<a class="button quiet" href=${to("timeline")}>Show all</a>`}
  </div>`;
}

// The trail

const askedFor = ({ session, task, groups, until }) => ({ session, task, until, without: groups.length ? "" : NOISE, kinds: groups.map((id) => GROUPS.find((group) => group.id === id)?.kinds ?? "").filter(Boolean).join(",") });

/** Follow the log: returns the rows, newest first, whether older ones are being read, whether all are here, and what reads them. */
function useTrail(filters) {
  const [found, setFound] = useState({ rows: [], whole: false, problem: null, begun: false });
  const now = useRef(found);
  const busy = useRef(false);
  const put = (next) => setFound((now.current = { ...now.current, ...next }));
  const asked = askedFor(filters);
  const older = async () => {
    if (busy.current || now.current.whole) return;
    busy.current = true;
    try {
      const page = await get(query("/api/trail", { ...asked, newest: true, limit: PAGE, before: now.current.rows.at(-1)?.seq }));
      put({ rows: [...now.current.rows, ...page.reverse()], whole: page.length < PAGE || now.current.rows.length > MOST, begun: true, problem: null });
    } catch (problem) {
      put({ problem, begun: true });
    }
    busy.current = false;
  };
  const newer = async () => {
    if (!now.current.begun || filters.until) return;
    if (now.current.problem) return older();
    const page = await get(query("/api/trail", { ...asked, after: now.current.rows[0]?.seq ?? 0, limit: 1000 })).catch(() => []);
    const first = now.current.rows[0]?.seq ?? 0;
    const fresh = page.filter((row) => row.seq > first).reverse();
    if (fresh.length) put({ rows: [...fresh, ...now.current.rows] });
  };
  const forget = () => {
    if (now.current.rows.length > MOST / 2) put({ rows: now.current.rows.slice(0, KEPT), whole: false });
  };
  useEffect(() => {
    older();
  }, []);
  const tick = useTick([...ALL, "connection"], 500);
  useEffect(() => {
    if (tick) newer();
  }, [tick]);
  return { ...found, older, forget };
}

/** Return the rows that have a text in them, with a line for each day between them. */
function withDays(rows, text) {
  const wanted = text.trim().toLowerCase();
  const lines = [];
  let begin = Infinity;
  let end = 0;
  for (const row of rows) {
    if (wanted && !row.text.toLowerCase().includes(wanted) && !row.kind.includes(wanted)) continue;
    if (row.time < begin || row.time >= end) {
      const day = new Date(row.time * 1000);
      begin = day.setHours(0, 0, 0, 0) / 1000;
      end = day.setDate(day.getDate() + 1) / 1000;
      lines.push({ day: new Date(row.time * 1000).toLocaleDateString([], { weekday: "long", day: "numeric", month: "long", year: "numeric" }), seq: `day ${begin}` });
    }
    lines.push(row);
  }
  return lines;
}

function Trail({ filters, text }) {
  const { rows, whole, problem, begun, older, forget } = useTrail(filters);
  const narrow = useNarrow();
  const size = narrow ? 54 : 28;
  const lines = useMemo(() => withDays(rows, text), [rows, text]);
  const [focus, setFocus] = useState(null);
  const [open, setOpen] = useState(null);
  const place = useRef(null);
  useKeptPlace(place, lines, size);
  useEffect(() => {
    const list = place.current?.querySelector(".long");
    if (!list) return undefined;
    const see = () => {
      if (list.scrollTop + list.clientHeight > list.scrollHeight - 30 * size) older();
      if (list.scrollTop === 0) forget();
    };
    list.addEventListener("scroll", see, { passive: true });
    see();
    return () => list.removeEventListener("scroll", see);
  }, [lines.length, size, begun]);
  const move = (by) => {
    let next = (focus ?? -1) + by;
    while (lines[next]?.day) next += by;
    if (lines[next]) setFocus(next);
  };
  useEffect(() => {
    if (focus !== null) place.current?.querySelector(`[data-line="${focus}"]`)?.focus({ preventScroll: true });
  }, [focus]);
  useCommands([
    { label: "Next event", keys: ["j", "arrowdown"], unlisted: true, run: () => move(1) },
    { label: "Previous event", keys: ["k", "arrowup"], unlisted: true, run: () => move(-1) },
  ], [lines, focus]);
  if (begun && !lines.length && whole) return html`<${Empty} title=${rows.length ? "Nothing that is shown has this in it." : "Nothing has happened that fits."}><p>${filters.session || filters.task || filters.groups.length ? "Show all, or choose other filters." : html`Add a first task: <code>covey task add "Say hello"</code>`}</p><//>`;
  const draw = (line, index) => (line.day ? html`<div class="trail-day" key=${line.seq} role="listitem">${line.day}</div>` : html`<${Line} key=${line.seq} line=${line} index=${index} onOpen=${setOpen} onFocus=${setFocus} />`);
  return html`<div class="trail" ref=${place}>
    ${problem && html`<p class="trail-problem soft">${problem.message}</p>`}
    <${Long} rows=${lines} size=${size} draw=${draw} focus=${focus} label="What happened, the newest first" class="trail-list" />
    <p class="trail-foot faint" role="status">${some(rows.length, "event")}${whole ? ", all that there are" : ", older ones follow as you scroll"}</p>
    ${open && html`<${Event} seq=${open} onClose=${() => setOpen(null)} />`}
  </div>`;
}

/** Keep what is read in its place when newer lines come above it. */
function useKeptPlace(place, lines, size) {
  const first = useRef(null);
  useLayoutEffect(() => {
    const list = place.current?.querySelector(".long");
    const before = first.current;
    first.current = lines.find((line) => !line.day)?.seq ?? null;
    if (!list || before === null || list.scrollTop < size) return;
    const moved = lines.findIndex((line) => line.seq === before) - (lines[0]?.day ? 1 : 0);
    if (moved > 0) list.scrollTop += moved * size;
  }, [lines]);
}

const TIME = new Intl.DateTimeFormat([], { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" });
const KINDS = { task: "tasks", run: "runs", session: "sessions", fleet: "sessions", merge: "queue", queue: "queue", gate: "queue", landing: "queue", question: "questions", permit: "questions", mail: "mail", lease: "leases", overlap: "leases", alert: "alerts" };

function Line({ line, index, onOpen, onFocus }) {
  const noun = line.kind.split(".")[0];
  return html`<div class="trail-cell" role="listitem"><button type="button" class=${`trail-line trail-${KINDS[noun] ?? "other"}`} data-line=${index} onFocus=${() => onFocus(index)} onClick=${() => onOpen(line.seq)} title=${visible(line.text, 400)}>
    <time class="trail-time">${TIME.format(line.time * 1000)}</time>
    <span class="trail-kind">${line.kind}</span>
    <span class="trail-text"><${Words} text=${line.text} most=${400} /></span>
  </button></div>`;
}

/** One event whole, as the log has it. */
function Event({ seq, onClose }) {
  const [found, problem] = useRead(async () => (await get(query("/api/log", { after: seq - 1, limit: 1 })))[0], [], [seq]);
  const facts = found && [["number", seq], ["time", new Date(found.time * 1000).toLocaleString()], ["by", found.actor], ["kind", found.kind], ["about", found.subject]];
  return html`<${Dialog} title=${`Event ${seq}`} onClose=${onClose} wide name="event-dialog">
    <div class="dialog-body">
      ${problem && html`<p>${problem.message}</p>`}
      ${found && html`<dl class="facts">${facts.map(([name, value]) => html`<div key=${name}><dt>${name}</dt><dd><${Words} text=${value} /></dd></div>`)}</dl>
        <pre class="event-data" tabindex="0" role="region" aria-label="What the log keeps"><${Words} text=${JSON.stringify(found.data, null, 2)} most=${20000} /></pre>
        <footer class="dialog-foot">${links(found).map(([title, href]) => html`<a key=${href} class="button" href=${href} onClick=${onClose}>${title}</a>`)}</footer>`}
    </div>
  <//>`;
}

function links({ subject, actor, data }) {
  const task = /^[A-Z0-9]{1,5}-[1-9]\d*$/.test(subject) ? subject : typeof data.task === "string" ? data.task : null;
  const session = typeof data.session === "string" ? data.session : state.sessions.has(subject) ? subject : state.sessions.has(actor) ? actor : null;
  return [
    task && [`All about ${task}`, to("timeline", `task=${task}`)],
    session && [`All about ${session}`, to("timeline", `session=${session}`)],
    subject.startsWith("merge-") && ["Open in the queue", to("queue", subject)],
  ].filter(Boolean);
}
