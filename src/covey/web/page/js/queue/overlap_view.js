// The matrix of open branches that touch the same files: tasks by tasks, or files by sessions.
import { html, useState } from "../lib.js";
import { get } from "../data/api.js";
import { LEVELS, matrices } from "../rules/overlap_tables.js";
import { useRead } from "../data/store.js";
import { Age, Button, Empty, Words } from "../widgets/ui.js";
import { some, visible } from "../rules/text.js";
import { to } from "../data/routes.js";
/** @import { HotFileRow, OverlapRow } from "types/rest.js" */
/** @import { OverlapCell, OverlapTable } from "types/page.js" */

/** The overlap matrix. */
export function Overlap() {
  const [found, problem] = useRead(() => get("/api/overlaps"), ["overlaps", "log", "connection"]);
  const [by, setBy] = useState("task");
  const [shown, setShown] = useState(/** @type {string | null} */ (null));
  if (!found) return html`<p class="loading">${problem?.message ?? "…"}</p>`;
  if (!found.overlaps.length && !found.hot.length)
    return html`<${Empty} title="No open branches overlap."><p>covey looks at every branch as it grows, and shows here where two of them change the same file.</p><//>`;
  const tables = matrices(found);
  const table = by === "task" ? tables.byTask : tables.byFile;
  return html`<div class="overlap">
    <div class="sheet-tools row">
      <div class="choice" role="group" aria-label="What the matrix shows">
        <${Button} aria-pressed=${by === "task"} onClick=${() => setBy("task")}>Tasks by tasks<//>
        <${Button} aria-pressed=${by === "file"} onClick=${() => setBy("file")}>Files by sessions<//>
      </div>
      <ul class="legend">${Object.entries(LEVELS).map(([name, level]) => html`<li key=${name}><span class=${`cell-sign level-${name}`}>${level.sign}</span> ${level.word}</li>`)}<li><span class="hot-sign">hot</span> collides again and again</li></ul>
    </div>
    <div class="overlap-both">
      <div class="matrix-place boxed" tabindex="0" role="region" aria-label="Overlap matrix"><${Matrix} table=${table} by=${by} shown=${shown} onShow=${setShown} />${table.more > 0 && html`<p class="matrix-more faint">and ${table.more} more that come less near</p>`}</div>
      <${Near} cell=${shown ? table.cells.get(shown) : null} hot=${found.hot} all=${found.overlaps} />
    </div>
  </div>`;
}

/** @param {{ table: OverlapTable, by: string, shown: string | null, onShow: (key: string) => void }} props */
function Matrix({ table, by, shown, onShow }) {
  return html`<table class=${`matrix matrix-by-${by}`}>
    <thead><tr><td></td>${table.columns.map((name) => html`<th key=${name} scope="col"><${Words} text=${name} most=${24} /></th>`)}</tr></thead>
    <tbody>${table.rows.map(
      (row) => html`<tr key=${row}>
      <th scope="row" class="one-line" title=${visible(row, 300)}>${table.heat.has(row) && html`<span class="hot-sign">hot ${table.heat.get(row)}</span> `}<${Words} text=${row} most=${80} /></th>
      ${table.columns.map((column) => html`<${Cell} key=${column} row=${row} column=${column} cell=${table.cells.get(`${row}\n${column}`)} heat=${table.heat} shown=${shown} onShow=${onShow} />`)}
    </tr>`,
    )}</tbody>
  </table>`;
}

/**
 * @param {{ row: string, column: string, cell: OverlapCell | null | undefined, heat: Map<string, number>, shown: string | null, onShow: (key: string) => void }} props
 */
function Cell({ row, column, cell, heat, shown, onShow }) {
  if (row === column) return html`<td class="cell-self"></td>`;
  if (!cell) return html`<td></td>`;
  const key = `${row}\n${column}`;
  const hot = cell.overlaps.some((overlap) => overlap.files.some((file) => heat.has(file)));
  const look = () => onShow(key);
  return html`<td class=${hot ? "cell-hot" : ""}><button type="button" class=${`cell row-button level-${cell.level} ${key === shown ? "shown" : ""}`} onMouseEnter=${look} onFocus=${look} onClick=${look}
    aria-label=${`${visible(row, 200)} and ${visible(column, 60)}: ${LEVELS[cell.level].word}${hot ? ", hot" : ""}`}>${LEVELS[cell.level].sign}</button></td>`;
}

/**
 * What stands behind one place of the matrix; without one, the closest overlaps and the hot files.
 * @param {{ cell: OverlapCell | null | undefined, hot: HotFileRow[], all: OverlapRow[] }} props
 */
function Near({ cell, hot, all }) {
  const overlaps = cell?.overlaps ?? all.slice(0, 6);
  return html`<div class="near" aria-live="polite">
    <h2>${cell ? "Here" : "Closest"}</h2>
    <ul>${overlaps.map(
      (overlap) => html`<li key=${overlap.id} class="near-one boxed">
      <p><span class=${`cell-sign level-${overlap.level}`}>${LEVELS[overlap.level].sign}</span> ${LEVELS[overlap.level].word}, <span class="faint">for <${Age} since=${overlap.found} /></span></p>
      <${Side} task=${overlap.one} title=${overlap.one_title} session=${overlap.one_session} />
      <${Side} task=${overlap.other} title=${overlap.other_title} session=${overlap.other_session} />
      <ul class="near-files">${overlap.files.slice(0, 10).map((file) => html`<li key=${file}><${Words} text=${file} class="mono" most=${200} /></li>`)}${overlap.files.length > 10 && html`<li class="faint">and ${overlap.files.length - 10} more</li>`}</ul>
    </li>`,
    )}</ul>
    ${!cell && hot.length > 0 && html`<h2>Hot files</h2><ul>${hot.map((file) => html`<li key=${file.path}><span class="hot-sign">hot</span> <${Words} text=${file.path} class="mono" /> <span class="faint">${some(file.collisions, "collision")}, last <${Age} since=${file.last} /> ago</span></li>`)}</ul>`}
  </div>`;
}

/** @param {{ task: string, title: string | null, session: string | null }} props */
function Side({ task, title, session }) {
  if (task === "main") return html`<p class="near-side">main</p>`;
  return html`<p class="near-side"><a href=${to("review", task)}>${task}</a> <${Words} text=${title ?? ""} most=${120} /> ${session && html`<span class="faint">by <${Words} text=${session} /></span>`}</p>`;
}
