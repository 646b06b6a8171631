// What a reviewer needs besides the diff: the task, what its author says, conflicts, comments, gates, the file tree.
import { html, useMemo, useRef, useState } from "../lib.js";
import { get } from "../data/api.js";
import { Became, Size } from "./diff_view.js";
import { tree } from "../rules/diff.js";
import { useCommands } from "../widgets/keys.js";
import { Gate } from "../queue/merge.js";
import { useNarrow, useTick } from "../widgets/view_hooks.js";
import { to } from "../data/routes.js";
import { Remark, send } from "./comments.js";
import { useRead } from "../data/store.js";
import { some, visible } from "../rules/text.js";
import { Button, Long, State, Words } from "../widgets/ui.js";
/** @import { MeetingRow } from "types/rest.js" */
/** @import { Comment, CommentFields, DiffFile, Meetings, Merge, Task, TreeRow, Trouble } from "types/page.js" */
/** @import { PageEvent } from "types/vendor/htm.js" */

// Files, comments

/**
 * The files of a diff as a tree.
 * @param {{ files: DiffFile[], more: number, viewed: Set<string>, comments: Comment[], now: string | null, onOpen: (path: string, key?: string) => void }} props
 */
export function Files({ files, more, viewed, comments, now, onOpen }) {
  const [text, setText] = useState("");
  const rows = useMemo(
    () => tree(files.filter((file) => file.path.toLowerCase().includes(text.toLowerCase()))),
    [files, text],
  );
  const said = useMemo(() => Map.groupBy?.(comments, (comment) => comment.path) ?? new Map(), [comments]);
  const field = useRef(null);
  const narrow = useNarrow();
  useCommands([{ label: "Find a file", group: "Review", keys: "f", run: () => field.current?.focus() }], []);
  /** @param {TreeRow} row */
  const draw = (row) => {
    if (row.folder)
      return html`<div class="tree-row row bare tree-folder" key=${`/${row.path}`} style=${{ "--depth": row.depth }}><${Words} text=${row.name} most=${200} /></div>`;
    const file = /** @type {DiffFile} */ (row.file);
    const done = viewed.has(file.path);
    return html`<button type="button" class=${`tree-row row bare ${done ? "is-viewed" : ""}`} key=${file.path} style=${{ "--depth": row.depth }} aria-current=${now === file.path ? "true" : null} onClick=${() => onOpen(file.path)}>
      <${Became} status=${file.status} /><span class="tree-name one-line"><${Words} text=${row.name} most=${200} /></span>
      ${said.has(file.path) && html`<span class="tree-said">${said.get(file.path)?.length}<span class="unseen"> comments</span></span>`}
      ${done ? html`<span class="tree-done"><span aria-hidden="true">✓</span><span class="unseen">viewed</span></span>` : html`<${Size} plus=${file.plus} minus=${file.minus} />`}
    </button>`;
  };
  return html`<div class="files">
    <div class="files-head row"><input ref=${field} type="search" placeholder="Find a file" aria-label="Find a file" value=${text} onInput=${(event) => setText(event.target.value)} /><span class="faint">${viewed.size}/${files.length} viewed</span></div>
    <${Long} rows=${rows} size=${narrow ? 40 : 26} draw=${draw} label="Files" class="files-rows" role="group" />
    ${more > 0 && html`<p class="faint files-more">and ${some(more, "file")} more</p>`}
  </div>`;
}

/**
 * All comments on a task, and a field for one on all of it; or, of `several` tasks, the comments alone.
 * @param {{ id?: string, comments: Comment[], may?: boolean, onBack?: () => void, onOpen: (path: string, key?: string) => void, onWrite?: (fields: CommentFields, now: boolean) => Promise<boolean>, several?: boolean }} props
 */
export function Comments({ id = "", comments, may, onBack, onOpen, onWrite, several = false }) {
  const [text, setText] = useState("");
  const drafts = comments.filter((comment) => comment.state === "draft");
  /** @param {PageEvent} event */
  const add = async (event) => {
    event.preventDefault();
    if (text.trim() && (await onWrite?.({ text: text.trim() }, false))) setText("");
  };
  return html`<div class="remarks">
    ${!comments.length && html`<p class="soft remarks-none">Nothing is said yet. Click the number of a line, or drag over several<span class="with-keys">; or press <kbd>c</kbd></span>. Comments are drafts until you send them.</p>`}
    ${comments.map((comment) => html`<${Remark} key=${comment.id} comment=${comment} place task=${several} onGo=${comment.path ? () => onOpen(comment.path ?? "", comment.place === "outdated" || !comment.line ? undefined : `${comment.path}\n${comment.id}`) : null} />`)}
    ${
      !several &&
      html`<form class="editor" onSubmit=${add}>
      <textarea rows="3" aria-label="Comment on the work as a whole" placeholder="On the work as a whole" value=${text} onInput=${(event) => setText(event.target.value)}
        onKeyDown=${(event) => event.key === "Enter" && (event.ctrlKey || event.metaKey) && add(event)}></textarea>
      <footer class="editor-foot row"><button type="submit" class="button" disabled=${!text.trim()}>Add comment</button></footer>
    </form>`
    }
    ${!several && drafts.length > 0 && html`<div class="remarks-foot"><${Button} onClick=${() => send(id)}>Send ${some(drafts.length, "comment")}<//>${may && html`<${Button} kind="primary" onClick=${onBack}>Send back<//>`}</div>`}
  </div>`;
}

/**
 * The gates that work was in.
 * @param {{ merge: Merge | null, task: Task | null | undefined }} props
 */
export function Checks({ merge, task }) {
  const [why] = useRead(() => (merge ? get(`/api/merges/${merge.id}/why`) : Promise.resolve(null)), [], [merge]);
  if (!merge) return html`<p class="soft panel-text">Nothing is handed in yet, so nothing was tested.</p>`;
  return html`<div class="checks">
    <p class="checks-state"><${State} name=${merge.state === "review" ? "needs-you" : merge.state} word /> <span class="mono faint">${merge.id}</span></p>
    ${why && html`<ul class="because">${why.because.map((said) => html`<li key=${said}><${Words} text=${said} /></li>`)}</ul>`}
    ${merge.gates?.length === 0 && html`<p class="soft panel-text">It is tested when it is in the queue.</p>`}
    ${merge.gates?.slice(0, 6).map((gate, i) => html`<${Gate} key=${gate.id} gate=${gate} open=${i === 0 && gate.state !== "passed"} />`)}
    ${task && html`<p class="panel-text"><a href=${to("timeline", `task=${task.id}`)}>What happened to ${task.id}</a></p>`}
  </div>`;
}

// What it meets

/** @type {["conflicts" | "close" | "shared", string, string][]} */
const HOW = [
  ["conflicts", "clashed", "conflicts in"],
  ["close", "stalled", "at the same lines in"],
  ["shared", "idle", "also changes"],
];

/**
 * Return how near work comes to other work, the worst of it.
 * @param {MeetingRow} other
 */
const howOf = (other) => HOW.find(([name]) => other[name].length) ?? HOW[2];

/**
 * Try to merge the work for a task with main and with all that is open: [what was found, why it could not be tried].
 * @param {string} id
 * @param {string | null | undefined} tip
 * @param {boolean | undefined} landed
 */
export function useMeetings(id, tip, landed) {
  const tick = useTick(["merges", "overlaps"], 5000);
  const [found, problem] = useRead(
    () => (tip && !landed ? get(`/api/board/${encodeURIComponent(id)}/conflicts`) : Promise.resolve(null)),
    [],
    [id, tip, landed, tick],
  );
  return /** @type {const} */ ([found, problem]);
}

/**
 * Return in a few words how work meets the rest: {state, words}, null while nobody knows.
 * @param {Meetings | null} found
 */
export function verdictOf(found) {
  if (!found) return null;
  const clashing = found.others.filter(({ conflicts }) => conflicts.length);
  const names = [...(found.conflicts.length ? ["main"] : []), ...clashing.map(({ task }) => task)];
  if (names.length)
    return {
      state: "clashed",
      words: `conflicts with ${names.slice(0, 2).join(", ")}${names.length > 2 ? ` and ${names.length - 2} more` : ""}`,
      names,
    };
  return { state: "passed", words: "merges cleanly", names };
}

/** @param {MeetingRow} other */
const standing = (other) =>
  other.merge
    ? `in the queue as ${other.merge}`
    : other.status === "doing"
      ? `being written${other.session ? ` by ${other.session}` : ""}`
      : other.status;

/**
 * How work meets main and each of the others that are open.
 * @param {{ id: string, found: Meetings | null, problem: Trouble | null }} props
 */
export function Conflicts({ id, found, problem }) {
  if (problem && !found) return html`<p class="soft panel-text">${problem.message}</p>`;
  if (!found) return html`<p class="faint panel-text" aria-busy="true">Trying to merge…</p>`;
  return html`<div class="meetings">
    <section class="meeting"><header>${found.conflicts.length ? html`<${State} name="clashed" word />` : html`<${State} name="passed" />`} <strong>main</strong> <span class="soft">${found.conflicts.length ? "" : "merges cleanly"}</span></header>
      <${Paths} paths=${found.conflicts} /></section>
    ${found.others.map((other) => {
      const [kind, sign, words] = howOf(other);
      return html`<section class="meeting" key=${other.task}><header><${State} name=${sign} word=${kind === "conflicts"} /> <a class="mono" href=${to("review", other.task)}>${other.task}</a> <${Words} text=${other.title} most=${80} /></header>
        <p class="soft">${words} (${standing(other)})</p><${Paths} paths=${other[kind]} />
        <a class="meeting-both" href=${to("review", `${id},${other.task}`)}>Show both together</a></section>`;
    })}
    ${!found.others.length && html`<p class="soft panel-text">No other open work changes the same files.</p>`}
  </div>`;
}

// Before the lines

const SHORT = 420;

/** @param {{ text: string, whole: boolean, onWhole: () => void }} props */
function Prose({ text, whole, onWhole }) {
  const isLong = text.length > SHORT || text.split("\n").length > 7;
  return html`<p class=${`brief-text as-written ${isLong && !whole ? "is-cut" : ""}`}><${Words} text=${text} most=${20000} /></p>
    ${isLong && html`<button type="button" class="button quiet brief-more" aria-expanded=${whole} onClick=${onWhole}>${whole ? "Less" : "All of it"}</button>`}`;
}

/**
 * What one knows before one reads the lines: what was asked, what the author says of it, and whether it can be merged.
 * @param {{ id: string, task: Task | null | undefined, author: string | null | undefined, found: Meetings | null, problem: Trouble | null, landed: boolean | undefined, tip: string | null | undefined, whole: Set<string>, onWhole: (name: string) => void, onConflicts: () => void }} props
 */
export function Brief({ id, task, author, found, problem, landed, tip, whole, onWhole, onConflicts }) {
  const asked = task?.body?.trim();
  const said = task?.result?.trim();
  return html`<section class="brief" aria-label=${`About ${id}`}>
    <div class="brief-part"><h3>Asked</h3>
      ${asked ? html`<${Prose} text=${asked} whole=${whole.has("asked")} onWhole=${() => onWhole("asked")} />` : html`<p class="faint">${task ? "Nothing but its title." : "…"}</p>`}
      ${task?.done_when && task.done_when.length > 0 && html`<ul class="brief-when" aria-label="Done when">${task.done_when.map((each) => html`<li key=${each}><${Words} text=${each} most=${400} /></li>`)}</ul>`}</div>
    <div class="brief-part"><h3>${author ? html`<${Words} text=${author} most=${40} /> says` : "Result"}</h3>
      ${said ? html`<${Prose} text=${said} whole=${whole.has("said")} onWhole=${() => onWhole("said")} />` : html`<p class="faint">${task?.status === "doing" ? "It is still being written." : "Nothing was said with it."}</p>`}</div>
    <div class="brief-part"><h3>Merging</h3><${Meets} found=${found} problem=${problem} landed=${landed} tip=${tip} onConflicts=${onConflicts} /></div>
  </section>`;
}

/**
 * @param {{ found: Meetings | null, problem: Trouble | null, landed: boolean | undefined, tip: string | null | undefined, onConflicts: () => void }} props
 */
function Meets({ found, problem, landed, tip, onConflicts }) {
  if (landed) return html`<p class="brief-meets"><${State} name="landed" /> <span>It has landed.</span></p>`;
  if (!tip) return html`<p class="faint">There is no work to merge yet.</p>`;
  if (problem && !found) return html`<p class="faint"><${Words} text=${problem.message} most=${200} /></p>`;
  if (!found) return html`<p class="faint" aria-busy="true">Trying to merge…</p>`;
  const met = found.others.map((other) => ({ other, how: howOf(other) }));
  const near = met.filter(({ how }) => how[0] !== "shared");
  const others = met.length - near.length;
  return html`<ul class="brief-meets">
    <li>${found.conflicts.length ? html`<${State} name="clashed" /> <span>conflicts with <strong>main</strong> in <${Few} paths=${found.conflicts} /></span>` : html`<${State} name="passed" /> <span>merges cleanly with main</span>`}</li>
    ${near.slice(0, 4).map(({ other, how: [kind, sign] }) => html`<li key=${other.task}><${State} name=${sign} /> <span>${kind === "conflicts" ? "conflicts with" : "is at the same lines as"} <a href=${to("review", other.task)} title=${visible(other.title, 200)}>${other.task}</a>, ${standing(other)}, in <${Few} paths=${other[kind]} /></span></li>`)}
    ${(near.length > 4 || others > 0) && html`<li class="faint"><span>${near.length > 4 ? `${near.length - 4} more; ` : ""}${others ? `${some(others, "other task")} in the same files, further off` : ""} <button type="button" class="button quiet brief-more" onClick=${onConflicts}>Show</button></span></li>`}
    ${!met.length && html`<li class="faint"><span>No other open work changes the same files.</span></li>`}
  </ul>`;
}

/** @param {{ paths: string[] }} props */
function Few({ paths }) {
  return html`<code><${Words} text=${paths[0]} most=${120} /></code>${paths.length > 1 ? ` and ${paths.length - 1} more` : ""}`;
}

/**
 * Some paths, one below the other.
 * @param {{ paths: string[] }} props
 */
export function Paths({ paths }) {
  if (!paths.length) return null;
  return html`<ul class="paths mono">${paths.slice(0, 12).map((path) => html`<li key=${path}><${Words} text=${path} most=${200} /></li>`)}${paths.length > 12 && html`<li class="faint">and ${paths.length - 12} more</li>`}</ul>`;
}
