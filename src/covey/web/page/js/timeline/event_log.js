// The log: every event as a sentence, newest first; older ones load on scrolling.
import { html, useEffect, useLayoutEffect, useMemo, useRef, useState } from "../lib.js";
import { get, query } from "../data/api.js";
import { useCommands } from "../widgets/keys.js";
import { ALL, hear, useNarrow, useTick } from "../widgets/view_hooks.js";
import { to } from "../data/routes.js";
import { state, useRead } from "../data/store.js";
import { dayOf, some, visible } from "../rules/text.js";
import { Dialog, Empty, Long, Words } from "../widgets/ui.js";
/** @import { EventRow } from "types/rest.js" */
/** @import { LogFilter, LogLine, LogRead, LogRow, Trouble } from "types/page.js" */
/** @import { Ref } from "types/vendor/hooks.js" */
/** @import { Child } from "types/vendor/preact.js" */

const PAGE = 200;
const MOST = 10_000;
const KEPT = 2_000;

/**
 * Follow the log as it is asked for: returns the rows, newest first, whether all are here, and what reads older ones.
 * @param {LogFilter} asked
 */
export function useTrail(asked, size = PAGE) {
  const [found, setFound] = useState(/** @type {LogRead} */ ({ rows: [], whole: false, problem: null, begun: false }));
  const now = useRef(found);
  const busy = useRef(false);
  /** @param {Partial<LogRead>} next */
  const put = (next) => {
    now.current = { ...now.current, ...next };
    setFound(now.current);
  };
  const older = async () => {
    if (busy.current || now.current.whole) return;
    busy.current = true;
    try {
      const page = await get(
        query("/api/trail", { ...asked, newest: true, limit: size, before: now.current.rows.at(-1)?.seq }),
      );
      put({
        rows: [...now.current.rows, ...page.reverse()],
        whole: page.length < size || now.current.rows.length > MOST,
        begun: true,
        problem: null,
      });
    } catch (problem) {
      put({ problem: /** @type {Trouble} */ (problem), begun: true });
    }
    busy.current = false;
  };
  const newer = async () => {
    if (!now.current.begun || asked.until) return;
    if (now.current.problem) return older();
    const page = await get(query("/api/trail", { ...asked, after: now.current.rows[0]?.seq ?? 0, limit: 1000 })).catch(
      () => [],
    );
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

/**
 * Return the rows that have a text in them, with a line for each day between them.
 * @param {LogRow[]} rows
 * @param {string} text
 */
function byDay(rows, text) {
  const wanted = text.trim().toLowerCase();
  /** @type {LogLine[]} */
  const lines = [];
  let begin = Infinity;
  let end = 0;
  for (const row of rows) {
    if (wanted && !row.text.toLowerCase().includes(wanted) && !row.kind.includes(wanted)) continue;
    if (row.time < begin || row.time >= end) {
      const day = new Date(row.time * 1000);
      begin = day.setHours(0, 0, 0, 0) / 1000;
      end = day.setDate(day.getDate() + 1) / 1000;
      lines.push({ day: dayOf(row.time), seq: `day ${begin}` });
    }
    lines.push(row);
  }
  return lines;
}

/**
 * Every event that fits, with what one searches for in it.
 * @param {{ asked: LogFilter, text: string, hint: Child }} props
 */
export function Trail({ asked, text, hint }) {
  const { rows, whole, problem, begun, older, forget } = useTrail(asked);
  const narrow = useNarrow();
  const size = narrow ? 54 : 28;
  const lines = useMemo(() => byDay(rows, text), [rows, text]);
  const [focus, setFocus] = useState(/** @type {number | null} */ (null));
  const [open, setOpen] = useState(/** @type {number | null} */ (null));
  const place = useRef(null);
  useKeptPlace(place, lines, size);
  useEffect(() => {
    const list = place.current?.querySelector(".long");
    if (!list) return undefined;
    const see = () => {
      if (list.scrollTop + list.clientHeight > list.scrollHeight - 30 * size) older();
      if (list.scrollTop === 0) forget();
    };
    see();
    return hear(list, { scroll: see }, { passive: true });
  }, [lines.length, size, begun]);
  /** @param {number} by */
  const move = (by) => {
    let next = (focus ?? -1) + by;
    while (lines[next]?.day) next += by;
    if (lines[next]) setFocus(next);
  };
  useEffect(() => {
    if (focus !== null) place.current?.querySelector(`[data-line="${focus}"]`)?.focus({ preventScroll: true });
  }, [focus]);
  useCommands(
    [
      { label: "Next event", keys: ["j", "arrowdown"], unlisted: true, run: () => move(1) },
      { label: "Previous event", keys: ["k", "arrowup"], unlisted: true, run: () => move(-1) },
    ],
    [lines, focus],
  );
  if (begun && !lines.length && whole)
    return html`<${Empty} title=${rows.length ? "Nothing that is shown has this in it." : "Nothing has happened that fits."}><p>${hint}</p><//>`;
  /**
   * @param {LogLine} line
   * @param {number} index
   */
  const draw = (line, index) =>
    line.day !== undefined
      ? html`<div class="trail-day" key=${line.seq} role="listitem">${line.day}</div>`
      : html`<${Line} key=${line.seq} line=${line} index=${index} onOpen=${setOpen} onFocus=${setFocus} />`;
  return html`<div class="trail" ref=${place}>
    ${problem && html`<p class="trail-problem soft">${problem.message}</p>`}
    <${Long} rows=${lines} size=${size} draw=${draw} focus=${focus} label="What happened, the newest first" class="trail-list" />
    <p class="trail-foot faint" role="status">${some(rows.length, "event")}${whole ? ", all that there are" : ", older ones follow as you scroll"}</p>
    ${open && html`<${Event} seq=${open} onClose=${() => setOpen(null)} />`}
  </div>`;
}

/**
 * Keep what is read in its place when newer lines come above it.
 * @param {Ref<HTMLElement>} place
 * @param {LogLine[]} lines
 * @param {number} size
 */
function useKeptPlace(place, lines, size) {
  /** @type {Ref<number | string | null>} */
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
/** What each line is marked as, with the nouns whose events those are. */
const MARKS = {
  tasks: ["task"],
  runs: ["run"],
  sessions: ["session", "fleet"],
  queue: ["merge", "queue", "gate", "landing"],
  questions: ["question", "permit"],
  mail: ["mail"],
  leases: ["lease", "overlap"],
  alerts: ["alert"],
};
const MARK_OF = new Map(Object.entries(MARKS).flatMap(([mark, nouns]) => nouns.map((noun) => [noun, mark])));

/** @param {string} task */
const titleOf = (task) => state.tasks.get(task)?.title ?? "";

/**
 * @param {{ line: LogRow, index: number, onOpen: (seq: number) => void, onFocus: (index: number) => void }} props
 */
function Line({ line, index, onOpen, onFocus }) {
  const noun = line.kind.split(".")[0];
  return html`<div class="trail-cell" role="listitem"><button type="button" class=${`trail-line row-button trail-${MARK_OF.get(noun) ?? "other"}`} data-line=${index} onFocus=${() => onFocus(index)} onClick=${() => onOpen(line.seq)} title=${visible(line.text, 400)}>
    <time class="trail-time">${TIME.format(line.time * 1000)}</time>
    <span class="trail-kind one-line">${line.kind}</span>
    <span class="trail-text one-line"><${Words} text=${line.text} most=${400} /></span>
    <span class="trail-title faint one-line">${line.task && !line.text.includes(titleOf(line.task)) && html`<${Words} text=${line.kind.startsWith("task.") ? titleOf(line.task) : `${line.task} ${titleOf(line.task)}`} most=${120} />`}</span>
  </button></div>`;
}

/**
 * One event whole, as the log has it.
 * @param {{ seq: number, onClose: () => void }} props
 */
function Event({ seq, onClose }) {
  const [found, problem] = useRead(
    async () => (await get(query("/api/log", { after: seq - 1, limit: 1 })))[0],
    [],
    [seq],
  );
  const facts = !found
    ? []
    : [
        ["number", seq],
        ["time", new Date(found.time * 1000).toLocaleString()],
        ["by", found.actor],
        ["kind", found.kind],
        ["about", found.subject],
      ];
  return html`<${Dialog} title=${`Event ${seq}`} onClose=${onClose} wide name="event-dialog">
    <div class="dialog-body">
      ${problem && html`<p>${problem.message}</p>`}
      ${
        found &&
        html`<dl class="facts">${facts.map(([name, value]) => html`<div key=${name}><dt>${name}</dt><dd><${Words} text=${value} /></dd></div>`)}</dl>
        <pre class="event-data as-written sunken" tabindex="0" role="region" aria-label="What the log keeps"><${Words} text=${JSON.stringify(found.data, null, 2)} most=${20000} /></pre>
        <footer class="dialog-foot">${links(found).map(([title, href]) => html`<a key=${href} class="button" href=${href} onClick=${onClose}>${title}</a>`)}</footer>`
      }
    </div>
  <//>`;
}

/** @param {EventRow} props */
function links({ subject, actor, data }) {
  const task = /^[A-Z0-9]{1,5}-[1-9]\d*$/.test(subject) ? subject : typeof data.task === "string" ? data.task : null;
  const known = [subject, actor].find((name) => state.sessions.has(name));
  const session = typeof data.session === "string" ? data.session : known;
  return [
    task && [`All about ${task}`, to("timeline", `task=${task}&events=1`)],
    session && [`All about ${session}`, to("timeline", `session=${session}&events=1`)],
    subject.startsWith("merge-") && ["Open in the queue", to("queue", subject)],
  ].filter((link) => Array.isArray(link));
}
