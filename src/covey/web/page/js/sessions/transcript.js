// The transcript of a run: messages, tools and their edits, questions, costs. All of it is untrusted text.
import { html, useEffect, useLayoutEffect, useRef, useState } from "../lib.js";
import { get, query } from "../data/api.js";
import { listen } from "../data/store.js";
import { State, Words } from "../widgets/ui.js";
import { money, some, tokens, visible } from "../rules/text.js";
/** @import { Reading, Entry } from "types/rest.js" */
/** @import { TranscriptRow, Trouble } from "types/page.js" */
/** @import { Ref } from "types/vendor/hooks.js" */
/** @import { PageEvent } from "types/vendor/htm.js" */

const TAIL = 96 * 1024;
const BACK = 256 * 1024;
const KEPT = 600;
const EVERY = 3000;
const PAUSE = 400;
const EDIT_LINES = 12;
const PRINTED_LINES = 6;

/** What has been read of a run so far; it reads on as more is said, and back when somebody wants to see more. */
class Reader {
  /**
   * @param {string} session
   * @param {string | null} run
   * @param {() => void} changed
   */
  constructor(session, run, changed) {
    this.session = session;
    this.run = run;
    this.changed = changed;
    this.ran = false;
    /** @type {string | null} */
    this.told = null;
    /** @type {Entry[]} */
    this.entries = [];
    /** @type {number | null} */
    this.next = null;
    this.start = 0;
    this.alive = true;
    /** @type {string | null} */
    this.error = null;
    this.busy = false;
    this.closed = false;
  }

  /** @param {number} since */
  async read(since) {
    return get(query(`/api/sessions/${encodeURIComponent(this.session)}/transcript`, { run: this.run, since }));
  }

  /** Say whether there is a run to read of: a new session has none yet. */
  async hasRun() {
    this.ran ||= this.run !== null || (await get(query("/api/runs", { session: this.session, limit: 1 }))).length > 0;
    this.alive &&= this.ran;
    return this.ran;
  }

  /** Read what is new; the first time, the end of it. */
  async go() {
    if (this.busy || this.closed) return;
    this.busy = true;
    try {
      const ran = await this.hasRun();
      for (let more = ran; more && !this.closed; ) {
        const part = await this.read(this.next ?? -TAIL);
        if (this.told && this.told !== part.run) return this.begin();
        more = this.take(part);
      }
      this.error = ran ? null : "It has not run yet.";
    } catch (error) {
      this.error = /** @type {Trouble} */ (error).message;
    } finally {
      this.busy = false;
    }
    if (!this.closed) this.changed();
  }

  /** Begin anew: the session has another run now. */
  begin() {
    this.told = null;
    this.entries = [];
    this.next = null;
    this.busy = false;
    this.go();
  }

  /** @param {Reading} part */
  take(part) {
    const more = this.next !== null ? part.next > this.next : part.entries.length > 0;
    if (this.next === null) this.start = part.start;
    this.told = part.run;
    this.entries = [...this.entries, ...part.entries];
    if (this.entries.length > KEPT * 2) {
      this.entries = this.entries.slice(-KEPT);
      this.start = this.entries[0].place;
    }
    this.next = part.next;
    this.alive = part.alive;
    return more && part.next > 0;
  }

  /** Read what came before. */
  async back() {
    const part = await this.read(Math.max(0, this.start - BACK));
    const end = this.entries[0]?.place ?? Infinity;
    this.entries = [
      ...part.entries.filter((entry) => entry.place < end || entry.kind === "told"),
      ...this.entries.filter((entry) => entry.kind !== "told"),
    ];
    this.start = part.start;
    this.changed();
  }
}

/**
 * Return entries with those that belong together joined: a tool and its end, costs that follow each other, printed
 * lines.
 * @param {Entry[]} entries
 */
export function joined(entries) {
  /** @type {TranscriptRow[]} */
  const rows = [];
  /** @type {Map<string, TranscriptRow>} */
  const calls = new Map();
  for (const entry of entries) {
    const last = rows.at(-1);
    if (entry.kind === "result") {
      const used = calls.get(entry.call);
      if (used)
        Object.assign(used, {
          outcome: entry.failed ? "failed" : "done",
          text: used.edit && !entry.failed ? "" : (entry.text ?? ""),
        });
    } else if (entry.kind === "cost" && entry.call === "total") {
      rows.push({ ...entry, key: rows.length });
    } else if (entry.kind === "cost") {
      if (last?.kind === "cost" && last.call !== "total")
        Object.assign(last, { tokens: last.tokens + entry.tokens, cost: (last.cost ?? 0) + (entry.cost ?? 0) || null });
      else rows.push({ ...entry, key: `c${entry.place}` });
    } else if (entry.kind === "printed" && last?.kind === "printed") {
      last.text += entry.text;
    } else {
      const row = { ...entry, key: `${entry.kind}${entry.place}-${rows.length}` };
      rows.push(row);
      if (entry.kind === "tool" && entry.call) calls.set(entry.call, row);
    }
  }
  return rows;
}

/** @param {{ text: string }} props */
function Edit({ text }) {
  const lines = text.split("\n");
  const [whole, setWhole] = useState(false);
  const shown = whole ? lines : lines.slice(0, EDIT_LINES);
  return html`<div class="entry-edit">
    ${shown.map((line, i) => html`<code key=${i} class=${line[0] === "-" ? "minus" : "plus"}>${visible(line, 400)}</code>`)}
    ${lines.length > shown.length && html`<button type="button" class="button quiet" onClick=${() => setWhole(true)}>${some(lines.length - shown.length, "more line")}</button>`}
  </div>`;
}

/** @param {{ text: string }} props */
function Printed({ text }) {
  const lines = text.split("\n");
  const [whole, setWhole] = useState(false);
  const shown = whole ? lines : lines.slice(-PRINTED_LINES);
  return html`<div class="entry-edit">
    ${lines.length > shown.length && html`<button type="button" class="button quiet" onClick=${() => setWhole(true)}>${some(lines.length - shown.length, "line")} before</button>`}
    ${shown.map((line, i) => html`<code key=${i}>${visible(line, 400)}</code>`)}
  </div>`;
}

/** @param {{ entry: TranscriptRow, alive?: boolean, last: boolean }} props */
function Row({ entry, alive, last }) {
  switch (entry.kind) {
    case "told":
      return html`<li class="entry entry-told"><details><summary>What it was told</summary><p class="entry-text"><${Words} text=${entry.text} most=${16000} /></p></details></li>`;
    case "tool": {
      const sign = entry.outcome ?? (alive && last ? "running" : "idle");
      return html`<li class="entry entry-tool"><${State} name=${sign} /><b>${visible(entry.tool, 60)}</b> <code><${Words} text=${entry.about} most=${300} /></code>${entry.edit && html`<${Edit} text=${entry.edit} />`}${entry.text && html`<${Printed} text=${entry.text} />`}</li>`;
    }
    case "cost":
      return html`<li class="entry entry-cost">${entry.call === "total" ? "in all " : ""}${entry.model && `${visible(entry.model, 60)} · `}${tokens(entry.tokens ?? 0)} tokens${entry.cost ? ` · ≈ ${money(entry.cost)}` : ""}</li>`;
    case "printed":
      return html`<li class="entry entry-printed"><pre><${Words} text=${entry.text} most=${60000} /></pre></li>`;
    case "asks":
      return html`<li class="entry entry-asks"><${State} name="needs-you" word /><p class="entry-text"><${Words} text=${entry.text} most=${4000} /></p></li>`;
    case "note":
      return html`<li class=${`entry entry-note ${entry.failed ? "bad" : ""}`}><p class="entry-text"><${Words} text=${entry.text} most=${4000} /></p></li>`;
    default:
      return html`<li class=${`entry entry-${entry.kind}`}>${entry.kind === "done" && html`<${State} name="done" word />`}<p class="entry-text"><${Words} text=${entry.text || "done"} most=${16000} /></p></li>`;
  }
}

/**
 * The transcript of a run of a session (the last one if none is named); `small` shows only its end, as a tile does.
 * @param {{ session: string, run?: string | null, small?: boolean }} props
 */
export function Transcript({ session, run = null, small = false }) {
  const place = useRef(null);
  /** @type {Ref<Reader | null>} */
  const reader = useRef(null);
  const atEnd = useRef(true);
  const [, again] = useState(0);
  useEffect(() => {
    const made = new Reader(session, run, () => again((count) => count + 1));
    reader.current = made;
    let waiting = 0;
    const soon = () => {
      waiting ||= setTimeout(() => {
        waiting = 0;
        made.go();
      }, PAUSE);
    };
    made.go();
    const leave = listen([`live:${session}`, `session:${session}`], soon);
    const timer = setInterval(() => made.alive && !document.hidden && made.go(), EVERY);
    return () => {
      made.closed = true;
      clearTimeout(waiting);
      clearInterval(timer);
      leave();
    };
  }, [session, run]);
  useLayoutEffect(() => {
    if (atEnd.current && place.current) place.current.scrollTop = place.current.scrollHeight;
  });
  /** @param {PageEvent} props */
  const scroll = ({ target }) => (atEnd.current = target.scrollHeight - target.scrollTop - target.clientHeight < 30);
  const known = reader.current;
  const all = joined(known?.entries ?? []);
  const rows = small ? all.filter((row) => row.kind !== "told" && row.kind !== "cost").slice(-30) : all;
  return html`<div class=${`transcript ${small ? "small" : ""}`} ref=${place} onScroll=${scroll} tabindex=${small ? undefined : "0"} role="log" aria-live="off" aria-label=${`Transcript of ${session}`}>
    ${!small && known && known.start > 0 && html`<button type="button" class="button quiet" onClick=${() => known.back()}>Show what came before</button>`}
    <ol>${rows.map((row, i) => html`<${Row} key=${row.key} entry=${row} alive=${known?.alive} last=${i === rows.length - 1} />`)}</ol>
    ${!rows.length && html`<p class="transcript-empty">${visible(known?.error ?? (known?.next === null ? "Reading…" : "It has not said anything yet."))}</p>`}
  </div>`;
}
