// A row for each session that shows what it did when. Each state has its own shape as well as its colour.
import { html, useMemo, useRef, useState } from "../lib.js";
import { useWidth } from "../widgets/charts.js";
import { step } from "../widgets/view_hooks.js";
import { BAR, DOING, HATCHED, paths, spanAt, ticks } from "../rules/state_spans.js";
import { Words } from "../widgets/ui.js";
import { clock, span, visible } from "../rules/text.js";
/** @import { Span, StripRow } from "types/rest.js" */
/** @import { PageEvent } from "types/vendor/htm.js" */

const ROW = 22;

/**
 * Say what a span is: what, from when until when, and why.
 * @param {Span | undefined} each
 * @param {number} since
 */
function tell(each, since) {
  if (!each) return "nothing known";
  const from = each.at <= since ? `before ${clock(since)}` : clock(each.at);
  return `${DOING[each.state]?.word ?? each.state} from ${from} to ${clock(each.until)} (${span(each.until - each.at)})`;
}

/**
 * The strips of all sessions between two times; `onPick(session, time)` is told what is clicked.
 * @param {{ rows: StripRow[], since: number, until: number, picked: string | null, onPick: (session: string | null, at: number | null) => void }} props
 */
export function Night({ rows, since, until, picked, onPick }) {
  const [width, place] = useWidth(800);
  const [at, setAt] = useState(/** @type {{ session: string, index: number } | null} */ (null));
  const axis = useMemo(() => ticks(since, until, width), [since, until, width]);
  /** @param {number} time */
  const x = (time) => ((time - since) / (until - since)) * width;
  const said = at && rows.find((row) => row.session === at.session);
  return html`<div class="night">
    <svg class="night-patterns" aria-hidden="true" width="0" height="0"><defs>
      ${[...HATCHED].map(
        (
          name,
        ) => html`<pattern key=${name} id=${`hatch-${name}`} width="5" height="5" patternUnits="userSpaceOnUse" patternTransform=${`rotate(${name === "limited" ? 135 : 45})`}>
        <rect width="5" height="5" class=${`hatch-ground span-${name}`} /><rect width=${name === "unknown" ? 1 : 2} height="5" class=${`span-${name}`} fill="currentColor" />
      </pattern>`,
      )}
    </defs></svg>
    <div class="night-axis"><span class="night-name"></span><div class="night-track" ref=${place}><svg width=${width} height="16" aria-hidden="true">${axis.map(
      (time) =>
        html`<text key=${time} class="axis-text" x=${x(time)} y="12">${clock(time)
          .split(" ")
          .at(until - since > 2 * 86400 ? 0 : -1)}</text>`,
    )}</svg></div></div>
    <ol class="night-rows">${rows.map((row) => html`<${Strip} key=${row.session} row=${row} since=${since} until=${until} width=${width} axis=${axis} picked=${picked === row.session} at=${at?.session === row.session ? at.index : null} onLook=${setAt} onPick=${onPick} />`)}</ol>
    <div class="night-foot"><p class="night-said one-line" aria-hidden="true">${said ? html`<strong><${Words} text=${said.session} /></strong> ${tell(said.spans[at.index], since)}${said.spans[at.index]?.evidence ? html`: <${Words} text=${said.spans[at.index].evidence} class="soft" />` : ""}${taskAt(said, said.spans[at.index])}` : html`<span class="faint">Point at a strip, or go through it with the arrow keys; Enter shows what happened there.</span>`}</p>
    <ul class="legend night-legend">${Object.entries(DOING).map(([name, { word }]) => html`<li key=${name}><svg width="22" height=${BAR} aria-hidden="true"><path class=${`span-${name}`} fill=${HATCHED.has(name) ? `url(#hatch-${name})` : "currentColor"} d=${paths([{ at: 0, until: 1, state: name }], 0, 1, 22).get(name)} /></svg> ${word}</li>`)}</ul></div>
  </div>`;
}

/**
 * @param {StripRow} row
 * @param {Span | undefined} each
 */
function taskAt(row, each) {
  const run = each && row.runs.findLast((one) => one.at < each.until && (one.until ?? Infinity) > each.at);
  return run && !each.evidence?.includes(run.task) ? html` <span class="faint">on ${run.task}</span>` : "";
}

/**
 * @param {{ row: StripRow, since: number, until: number, width: number, axis: number[], picked: boolean, at: number | null, onLook: (at: { session: string, index: number } | null) => void, onPick: (session: string | null, at: number | null) => void }} props
 */
function Strip({ row, since, until, width, axis, picked, at, onLook, onPick }) {
  const place = useRef(null);
  const ways = useMemo(() => paths(row.spans, since, until, width), [row.spans, since, until, width]);
  /** @param {number} time */
  const x = (time) => ((time - since) / (until - since)) * width;
  /** @param {PageEvent} event */
  const timeOf = (event) => {
    const box = place.current.getBoundingClientRect();
    return since + Math.min(Math.max((event.clientX - box.left) / box.width, 0), 1) * (until - since);
  };
  /** @param {number} index */
  const look = (index) => onLook({ session: row.session, index: Math.min(Math.max(index, 0), row.spans.length - 1) });
  const last = row.spans.length - 1;
  /** @param {PageEvent} event */
  const press = (event) => {
    const by = { ArrowLeft: -1, ArrowRight: 1, Home: -1e9, End: 1e9 }[event.key];
    if (by) look((at ?? (by > 0 ? -1 : last + 1)) + by);
    else if (event.key === "ArrowUp" || event.key === "ArrowDown")
      step(".night-row .night-track", event.key === "ArrowUp" ? -1 : 1);
    else if (event.key === "Enter") onPick(row.session, row.spans[at ?? last]?.until ?? until);
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  const shown = row.spans[at ?? last];
  return html`<li class=${`night-row ${picked ? "picked" : ""}`}>
    <button type="button" class="night-name" aria-pressed=${picked} title="Show only this session" onClick=${() => onPick(picked ? null : row.session, null)}><${Words} text=${row.session} /></button>
    <svg class="night-track" ref=${place} width=${width} height=${ROW} role="slider" tabindex="0" aria-label=${`What ${row.session} did`} aria-valuemin="0" aria-valuemax=${Math.max(last, 0)} aria-valuenow=${Math.max(at ?? last, 0)}
      aria-valuetext=${visible(`${tell(shown, since)}${shown?.evidence ? `: ${shown.evidence}` : ""}`, 300)} onKeyDown=${press} onFocus=${() => at === null && look(last)}
      onPointerMove=${(event) => look(spanAt(row.spans, timeOf(event)))} onPointerLeave=${() => onLook(null)} onClick=${(event) => onPick(row.session, timeOf(event))}>
      ${axis.map((time) => html`<line key=${time} class="grid-line" x1=${x(time)} x2=${x(time)} y1="0" y2=${ROW} />`)}
      <g transform="translate(0 3)">
        ${[...ways].map(([name, way]) => html`<path key=${name} class=${`span-${name}`} fill=${HATCHED.has(name) ? `url(#hatch-${name})` : "currentColor"} d=${way} />`)}
        ${row.runs.map((run) => html`<rect key=${run.run} class=${`run-line ${run.outcome ?? "running"}`} x=${x(Math.max(run.at, since))} width=${Math.max(x(Math.min(run.until ?? until, until)) - x(Math.max(run.at, since)) - 1, 1)} y=${BAR + 1.5} height="1.5" />`)}
        ${at !== null && shown && html`<rect class="span-shown" x=${x(shown.at)} width=${Math.max(x(shown.until) - x(shown.at), 2)} y="-2" height=${BAR + 4} />`}
      </g>
    </svg>
  </li>`;
}
