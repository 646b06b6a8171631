// A diff, file by file, side by side or unified, with comments at their lines.
import { html, useEffect, useLayoutEffect, useMemo, useRef, useState } from "../lib.js";
import { hear, isNarrow, measure } from "../widgets/view_hooks.js";
import { coloursOf, languageOf, listen, withMark } from "./highlighting.js";
import { anchor, beside, columns, isAside, marks, ownerOf, parse, placed, rangeOf, sayLines } from "../rules/diff.js";
import { Flow } from "../widgets/virtual_list.js";
import { inGroup, useCommands } from "../widgets/keys.js";
import { to } from "../data/routes.js";
import { Editor, Remark } from "./comments.js";
import { some, visible } from "../rules/text.js";
import { Button, Words } from "../widgets/ui.js";
/** @import { Comment, CommentFields, DiffControl, DiffFile, DiffItem, DiffRow, Editing, LineRange, ListControl, ParsedPatch, PickedLines, RowPair } from "types/page.js" */
/** @import { Ref } from "types/vendor/hooks.js" */
/** @import { PageEvent } from "types/vendor/htm.js" */
/** @import { Child } from "types/vendor/preact.js" */

const on = inGroup("Review");

const LINE = 20;
const HEAD = 34;
const SHOWN = 1200;
/** @type {Record<string, [string, string]>} */
const SIGNS = {
  added: ["A", "added"],
  deleted: ["D", "deleted"],
  changed: ["M", "changed"],
  renamed: ["R", "renamed"],
  copied: ["C", "copied"],
  type: ["T", "type changed"],
  unmerged: ["U", "unmerged"],
};
/** @type {Record<string, [string, string]>} */
const MARKS = { plus: ["+", "added"], minus: ["−", "removed"], same: ["", ""] };

/**
 * The sign of what became of a file: a letter, a colour and a word.
 * @param {{ status: string }} props
 */
export function Became({ status }) {
  const [letter, word] = SIGNS[status] ?? ["?", status];
  return html`<span class=${`became became-${status}`} title=${word}><span aria-hidden="true">${letter}</span><span class="unseen">${word}</span></span>`;
}

/**
 * How many lines came and went.
 * @param {{ plus: number | null, minus: number | null }} props
 */
export function Size({ plus, minus }) {
  return html`<span class="size"><span class="plus">+${plus}</span> <span class="minus">−${minus}</span></span>`;
}

// Rows

/** @type {WeakMap<DiffFile, ParsedPatch>} */
const parsed = new WeakMap();

/**
 * Return what is drawn of a file's patch; made once for each patch.
 * @param {DiffFile} file
 */
export function rowsOf(file) {
  let found = parsed.get(file);
  if (!found) {
    const rows = file.patch ? parse(file.patch) : [];
    const index = new Map(rows.map((row, at) => [row, at]));
    found = { rows, index, pairs: null, marks: marks(rows) };
    parsed.set(file, found);
  }
  return found;
}

/**
 * @param {string} text
 * @param {number} fit
 */
function height(text, fit) {
  return Math.max(1, Math.ceil(columns(text.length > SHOWN ? text.slice(0, SHOWN) : text) / fit)) * LINE;
}

/**
 * Return something to draw, which has what its type needs and nothing else.
 * @param {Partial<DiffItem>} item
 */
const made = (item) => /** @type {DiffItem} */ (item);

/**
 * Return all that can be seen of some files, one item for each row; what `leads` stands before all of them.
 * @param {DiffFile[]} files
 * @param {{ split: boolean, open: (file: DiffFile) => boolean, notes: Map<string, Comment[]>, editing: Editing | null, fit: number, leads: boolean }} props
 */
function itemsOf(files, { split, open, notes, editing, fit, leads }) {
  const items = leads ? [made({ key: "\nlead", type: "lead", size: 140 })] : [];
  for (const file of files) {
    const key = file.path;
    items.push(made({ key, type: "file", file, size: HEAD }));
    if (!open(file)) continue;
    const found = rowsOf(file);
    const said = placed(found.rows, notes.get(file.path) ?? []);
    for (const comment of said.top)
      items.push(made({ key: `${key}\n${comment.id}`, type: "remark", file, comment, size: 80 }));
    if (editing?.path === file.path && editing.line === null)
      items.push(made({ key: `${key}\nnew`, type: "editor", file, size: 130 }));
    const about = remark(file);
    if (about) items.push(made({ key: `${key}\nsaid`, type: "said", file, text: about, size: 30 }));
    if (split) {
      found.pairs ??= beside(found.rows);
      found.pairs.forEach((pair, at) => {
        const { left, right } = pair;
        items.push({ ...pairItem(file, pair, at, fit), within: said.within.has(left) || said.within.has(right) });
        below(items, file, [left, right === left ? null : right], { said, editing, at });
      });
    } else
      found.rows.forEach((row, at) => {
        items.push({ ...lineItem(file, row, at, fit), within: said.within.has(row) });
        below(items, file, [row], { said, editing, at });
      });
    if (file.cut) items.push(made({ key: `${key}\nmore`, type: "more", file, size: 38 }));
  }
  return items;
}

/**
 * @param {DiffFile} file
 * @param {DiffRow} row
 * @param {number} at
 * @param {number} fit
 */
function lineItem(file, row, at, fit) {
  const type = row.kind === "hunk" || row.kind === "note" ? row.kind : "line";
  return made({ key: `${file.path}\n${at}`, type, file, row, size: type === "hunk" ? 26 : height(row.text, fit) });
}

/**
 * @param {DiffFile} file
 * @param {RowPair} pair
 * @param {number} at
 * @param {number} fit
 */
function pairItem(file, pair, at, fit) {
  if (pair.both) return { ...lineItem(file, pair.both, at, fit), key: `${file.path}\ns${at}` };
  const size = Math.max(...[pair.left, pair.right].map((row) => (row ? height(row.text, fit) : LINE)));
  return made({
    key: `${file.path}\ns${at}`,
    type: "pair",
    file,
    pair,
    row: pair.right ?? pair.left ?? undefined,
    size,
  });
}

/**
 * Add what stands below a row: its comments, and the field for a new one.
 * @param {DiffItem[]} items
 * @param {DiffFile} file
 * @param {(DiffRow | null)[]} rows
 * @param {{ said: ReturnType<typeof placed>, editing: Editing | null, at: number }} props
 */
function below(items, file, rows, { said, editing, at }) {
  for (const row of rows) {
    const where = row && anchor(row);
    if (!where) continue;
    for (const comment of said.below.get(row) ?? [])
      items.push(made({ key: `${file.path}\n${comment.id}`, type: "remark", file, comment, row, size: 80 }));
    if (
      editing?.path === file.path &&
      editing.side === where.side &&
      editing.line !== null &&
      editing.line + editing.lines - 1 === where.line
    )
      items.push(made({ key: `${file.path}\nnew${at}`, type: "editor", file, row, size: 130 }));
  }
}

/** @param {DiffFile} file */
function remark(file) {
  /** @type {string[]} */
  const parts = [];
  if (file.old_path) parts.push(`${file.status} from ${file.old_path}`);
  if (file.old_mode) parts.push(`mode ${file.old_mode} → ${file.mode}`);
  if (file.binary) parts.push("binary file");
  else if (file.patch === "" && !file.cut && !parts.length)
    parts.push(file.status === "added" ? "empty file" : "no lines differ");
  return parts.join(", ");
}

/**
 * The text of a line: its tokens in their colours, and the part of it that is another.
 * @param {{ file: DiffFile, row: DiffRow }} props
 */
function Code({ file, row }) {
  const found = rowsOf(file);
  const text = row.text.length > SHOWN ? row.text.slice(0, SHOWN) : row.text;
  const tokens =
    row.text.length > SHOWN ? null : coloursOf(found.rows, found.index.get(row) ?? 0, languageOf(file.path));
  const pieces = withMark(tokens, found.marks.get(row), text);
  return html`<code class="code"><bdi>${pieces.map(([piece, name, marked]) => (name || marked ? html`<span class=${`${name && `hl-${name}`} ${marked ? "hl-mark" : ""}`}>${visible(piece, SHOWN)}</span>` : visible(piece, SHOWN)))}</bdi>${row.text.length > SHOWN ? html`<span class="cut-off"> … the rest of the line is not shown</span>` : ""}</code>`;
}

// The whole

/**
 * All that some files change. `comments` stand at their lines; `onComment(fields, now)` writes one (null: there is nothing to
 * comment on), `onMore(file, context)` loads the rest of a file, or all of it with more lines around. `lead` stands first.
 * @param {{ files: DiffFile[], comments?: Comment[], split: boolean, label: string, viewed: Set<string>, onViewed: (file: DiffFile, now: boolean) => void, onComment: ((fields: CommentFields, now: boolean) => Promise<boolean>) | null, onMore: (file: DiffFile, turn: boolean) => unknown, control: Ref<DiffControl>, onFile: (file: DiffFile) => void, lead?: Child }} props
 */
export function Changes({
  files,
  comments = [],
  split,
  label,
  viewed,
  onViewed,
  onComment,
  onMore,
  control,
  onFile,
  lead = null,
}) {
  /** @type {Ref<ListControl>} */
  const flow = useRef(null);
  /** @type {Ref<{ file: DiffFile, one: number, other: number } | null>} */
  const drag = useRef(null);
  const [, again] = useState(0);
  const [shut, setShut] = useState(/** @type {Map<string, boolean>} */ (new Map()));
  const [editing, setEditing] = useState(/** @type {Editing | null} */ (null));
  const [picked, setPicked] = useState(/** @type {PickedLines | null} */ (null));
  const [cursor, setCursor] = useState(/** @type {string | null} */ (null));
  const [top, setTop] = useState(/** @type {{ file: DiffFile, into: boolean } | null} */ (null));
  const [fit, setFit] = useState(100);
  const place = useRef(null);
  useLayoutEffect(() => listen(() => again((count) => count + 1)), []);
  useEffect(() => {
    const element = place.current;
    const see = () => {
      const probe = element.querySelector(".probe");
      const wide = (probe?.getBoundingClientRect().width ?? 0) / 100 || 7;
      const room = split ? element.clientWidth / 2 - 70 : element.clientWidth - (element.clientWidth < 700 ? 58 : 118);
      setFit(Math.max(20, Math.floor(room / wide)));
    };
    return measure(element, see);
  }, [split]);

  /** @param {DiffFile} file */
  const open = (file) => !(shut.get(file.path) ?? (viewed.has(file.path) || isAside(file, files.length === 1)));
  /** @param {DiffFile} file */
  const toggle = (file, to = open(file)) => setShut((before) => new Map(before).set(file.path, to));
  const notes = useMemo(() => byFile(comments), [comments]);
  const leads = lead !== null;
  const items = useMemo(
    () => itemsOf(files, { split, open, notes, editing, fit, leads }),
    [files, split, shut, viewed, notes, editing, fit, leads],
  );

  /**
   * @param {DiffFile} file
   * @param {number} one
   * @param {number} other
   */
  const pick = (file, one, other) => {
    const range = rangeOf(rowsOf(file).rows, one, other);
    setPicked(range && { path: file.path, one, other, ...range });
    return range;
  };
  /**
   * Open the field for a comment: on the lines from one row to another, on one row, or on the file.
   * @param {DiffFile} file
   * @param {DiffRow | null} row
   */
  const begin = (file, row, other = row) => {
    if (!onComment) return;
    const { index } = rowsOf(file);
    /** @type {LineRange | null} */
    const range = row
      ? pick(file, index.get(row) ?? 0, index.get(other ?? row) ?? 0)
      : { side: "new", line: null, lines: 1, quote: null };
    if (range) setEditing({ path: file.path, task: file.tasks?.length ? ownerOf(file, range) : null, ...range });
  };
  const end = () => {
    setEditing(null);
    setPicked(null);
    flow.current?.focus();
  };
  /** @param {boolean} now */
  const save = (now) => async (/** @type {string} */ text) => {
    if (!editing || !onComment) return false;
    const { path, side, line, lines, quote, task } = editing;
    const kept = await onComment({ text, path, side, ...(task && { task }), ...(line && { line, lines, quote }) }, now);
    if (kept) end();
    return kept;
  };
  /**
   * Let the comment that is being written be about a line more, or less, at its end.
   * @param {number} by
   */
  const stretch = (by) => {
    const file = files.find(({ path }) => path === editing?.path);
    if (!file || !picked) return;
    const to = picked.to + by;
    const range = to >= picked.from ? pick(file, picked.from, to) : null;
    if (range) setEditing((before) => before && { ...before, ...range });
  };

  // A pointer goes over numbers
  /** @param {HTMLElement} target */
  const rowAt = (target) => {
    const item = byKey.current.get(target.closest?.("[data-key]")?.dataset.key);
    if (!item || (item.type !== "line" && item.type !== "pair")) return null;
    return {
      file: item.file,
      row:
        item.type === "line"
          ? item.row
          : target.closest(".half")?.matches(":first-child")
            ? item.pair.left
            : item.pair.right,
    };
  };
  /** @type {Ref<Map<string | undefined, DiffItem>>} */
  const byKey = useRef(new Map());
  byKey.current = useMemo(() => new Map(items.map((item) => [item.key, item])), [items]);
  /** @param {PageEvent} event */
  const press = (event) => {
    if (!onComment || event.button !== 0 || !event.target.closest("button.line-number")) return;
    const found = rowAt(event.target);
    if (!found?.row) return;
    event.preventDefault(); // no text is marked while lines are
    const { index } = rowsOf(found.file);
    const at = index.get(found.row) ?? 0;
    const before = !event.shiftKey
      ? null
      : picked?.path === found.file.path
        ? picked.one
        : current()?.file === found.file
          ? index.get(/** @type {DiffItem} */ (current()).row)
          : null;
    const one = before ?? at;
    drag.current = { file: found.file, one, other: at };
    pick(found.file, one, at);
  };
  /** @param {PageEvent} event */
  const pass = (event) => {
    const found = drag.current && rowAt(event.target);
    if (!drag.current || !found?.row || found.file !== drag.current.file) return;
    drag.current.other = rowsOf(found.file).index.get(found.row) ?? 0;
    pick(found.file, drag.current.one, drag.current.other);
  };
  /** @type {Ref<() => void>} */
  const release = useRef(null);
  release.current = () => {
    if (!drag.current) return;
    const { file, one, other } = drag.current;
    drag.current = null;
    const { rows } = rowsOf(file);
    begin(file, rows[one], rows[other]);
  };
  useEffect(() => {
    const up = () => drag.current && release.current();
    return hear(window, { mouseup: up });
  }, []);

  const lines = () => items.filter(({ type }) => ["line", "pair", "file", "hunk"].includes(type));
  /**
   * @param {number} by
   * @param {(item: DiffItem) => boolean} [wanted]
   */
  const move = (by, wanted = () => true) => {
    const rows = lines().filter((item) => item.key === cursor || wanted(item));
    const now = rows.findIndex((item) => item.key === cursor);
    const first = rows.findIndex((item) => item.file === top?.file); // -1 where one is at no file yet
    const next = rows[now < 0 ? Math.max(0, first) : Math.min(Math.max(now + by, 0), rows.length - 1)];
    if (!next) return null;
    setCursor(next.key);
    flow.current?.to(next.key, next.type === "file" ? "top" : "near");
    return next;
  };
  /**
   * Take the line at the cursor, and the next one, among those that are commented on together.
   * @param {number} by
   */
  const extend = (by) => {
    const from = current();
    if (!onComment || !from?.row || from.type === "hunk") return move(by);
    const { index } = rowsOf(from.file);
    const one = picked?.path === from.file.path && !editing ? picked.one : (index.get(from.row) ?? 0);
    const next = move(by, (item) => item.type === "line" || item.type === "pair");
    return next?.file === from.file ? pick(from.file, one, index.get(next.row) ?? one) : null;
  };
  const say = () => {
    const item = current();
    const file = files.find(({ path }) => path === picked?.path);
    if (picked && !editing && file) begin(file, rowsOf(file).rows[picked.one], rowsOf(file).rows[picked.other]);
    else if (item) begin(item.file, item.type === "file" || item.type === "hunk" ? null : item.row);
  };
  const current = () => items.find((item) => item.key === cursor);
  /** @param {number} by */
  const step = (by) => {
    if (!editing) setPicked(null);
    move(by);
  };
  const fileNow = () => current()?.file ?? top?.file;
  /** @param {(file: DiffFile) => void} act */
  const onFileNow = (act) => {
    const file = fileNow();
    if (file) act(file);
  };
  useCommands(
    [
      on("Next line", ["j", "arrowdown"], () => step(1), { unlisted: true }),
      on("Previous line", ["k", "arrowup"], () => step(-1), { unlisted: true }),
      on("Take the next line too", ["shift+arrowdown", "J"], () => extend(1), { when: () => Boolean(onComment) }),
      on("Take the previous line too", ["shift+arrowup", "K"], () => extend(-1), { when: () => Boolean(onComment) }),
      on("Let go of the lines", "escape", () => setPicked(null), {
        unlisted: true,
        when: () => picked !== null && editing === null,
      }),
      on("Next file", "n", () => move(1, (item) => item.type === "file")),
      on("Previous file", "p", () => move(-1, (item) => item.type === "file")),
      on("Next change", "]", () => move(1, (item) => item.type === "hunk")),
      on("Previous change", "[", () => move(-1, (item) => item.type === "hunk")),
      on("Comment on the line", "c", say, { when: () => Boolean(onComment) }),
      on("Mark the file as viewed", "v", () => onFileNow(see)),
      on("Open or close the file", "o", () => onFileNow((file) => toggle(file))),
      on("Show the whole file", "e", () => onFileNow((file) => onMore(file, true))),
    ],
    [items, cursor, top, viewed, picked, editing],
  );

  /** @param {DiffFile} file */
  const see = (file) => {
    const now = !viewed.has(file.path);
    setShut((before) => {
      const next = new Map(before);
      next.delete(file.path);
      return next;
    });
    onViewed(file, now);
  };
  control.current = {
    show: (/** @type {string} */ path, key = path) => {
      setShut((before) => new Map(before).set(path, false));
      setCursor(key);
      setTimeout(() => flow.current?.to(key, key === path ? "top" : "near"));
    },
  };

  /** @param {DiffFile} file */
  function head(file, more = "") {
    return html`<${FileHead} file=${file} more=${more} open=${open(file)} viewed=${viewed.has(file.path)} onToggle=${() => toggle(file)} onViewed=${() => see(file)}
    onComment=${onComment && (() => begin(file, null))} onWhole=${() => onMore(file, true)} remarks=${comments.filter((comment) => comment.path === file.path).length} />`;
  }
  /**
   * @param {DiffFile} file
   * @param {DiffRow | null} row
   */
  const isPicked = (file, row) =>
    row !== null &&
    picked?.path === file.path &&
    (rowsOf(file).index.get(row) ?? -1) >= picked.from &&
    (rowsOf(file).index.get(row) ?? -1) <= picked.to &&
    anchor(row)?.side === picked.side;
  /** @param {DiffItem} item */
  const draw = (item) => {
    const here = `${item.key === cursor ? "cursor" : ""} ${item.within ? "within" : ""}`;
    switch (item.type) {
      case "lead":
        return html`<div class="row-lead" key=${item.key} data-key=${item.key}>${lead}</div>`;
      case "file":
        return html`<div class=${`row-file ${here}`} key=${item.key} data-key=${item.key}>${head(item.file)}</div>`;
      case "hunk":
        return html`<div class=${`row-hunk one-line ${here}`} key=${item.key} data-key=${item.key}><span aria-hidden="true">⋯</span> <${Words} text=${item.row.text} most=${160} /><span class="faint"> line ${item.row.new}</span></div>`;
      case "note":
        return html`<div class="row-note" key=${item.key} data-key=${item.key}><${Words} text=${item.row.text} /></div>`;
      case "said":
        return html`<div class="row-note" key=${item.key} data-key=${item.key}><${Words} text=${item.text} /></div>`;
      case "line":
        return html`<${Line} key=${item.key} item=${item} here=${here} picked=${isPicked(item.file, item.row)} onBegin=${onComment && begin} />`;
      case "pair":
        return html`<${Pair} key=${item.key} item=${item} here=${here} left=${isPicked(item.file, item.pair.left)} right=${isPicked(item.file, item.pair.right)} onBegin=${onComment && begin} />`;
      case "remark":
        return html`<div class="row-remark" key=${item.key} data-key=${item.key}><${Remark} comment=${item.comment} task=${Boolean(item.file.tasks?.length)} /></div>`;
      case "editor":
        return html`<div class="row-remark" key=${item.key} data-key=${item.key}><${Editor} label=${editing?.line ? `Comment on ${item.file.path}, ${sayLines(editing.line, editing.lines)}` : `Comment on ${item.file.path}`} onSave=${save(false)} onNow=${save(true)} onClose=${end}>
        ${editing && html`<${About} editing=${editing} tasks=${item.file.tasks ?? []} onTask=${(/** @type {string} */ task) => setEditing((before) => before && { ...before, task })} onStretch=${picked && stretch} />`}<//></div>`;
      default:
        return html`<${More} key=${item.key} item=${item} onMore=${onMore} />`;
    }
  };
  /**
   * @param {DiffItem | undefined} item
   * @param {number} into
   */
  const watch = (item, into) => {
    if (item?.type === "lead") {
      if (top) setTop(null);
    } else if (item && (top?.file !== item.file || top.into !== (item.type !== "file" || into > 2))) {
      setTop({ file: item.file, into: item.type !== "file" || into > 2 });
      onFile?.(item.file);
    }
  };
  return html`<div class=${`changes ${split ? "split" : "unified"}`} ref=${place} onMouseDown=${press} onMouseOver=${pass}>
    <span class="probe mono" aria-hidden="true">${"0".repeat(100)}</span>
    ${top?.into && files.includes(top.file) && html`<div class="row-file above">${head(top.file, "above")}</div>`}
    <${Flow} items=${items} draw=${draw} label=${label} class="diff" control=${flow} onTop=${watch} />
  </div>`;
}

/** @param {Comment[]} comments */
function byFile(comments) {
  /** @type {Map<string, Comment[]>} */
  const found = new Map();
  for (const comment of comments)
    if (comment.path) found.set(comment.path, [...(found.get(comment.path) ?? []), comment]);
  return found;
}

/**
 * What a comment that is being written is about: its lines, with a way to take more of them, and whose work they are.
 * @param {{ editing: Editing, tasks: string[], onTask: (task: string) => void, onStretch: ((by: number) => void) | null }} props
 */
function About({ editing, tasks, onTask, onStretch }) {
  const words = editing.line
    ? `${editing.side === "old" ? "Before the change, " : "On "}${sayLines(editing.line, editing.lines)}`
    : "On the file";
  return html`<header class="editor-head row">
    <span class="soft">${words}</span>
    ${
      editing.line &&
      onStretch &&
      html`<button type="button" class="button quiet" aria-label="One line less" disabled=${editing.lines < 2} onClick=${() => onStretch(-1)}>−</button>
      <button type="button" class="button quiet" aria-label="One line more" onClick=${() => onStretch(1)}>+</button>`
    }
    ${
      tasks.length > 1
        ? html`<label class="editor-task check">for <select aria-label="Whose work it is" value=${editing.task} onChange=${(event) => onTask(event.target.value)}>${tasks.map((task) => html`<option key=${task} value=${task}>${task}</option>`)}</select></label>`
        : editing.task && html`<span class="soft">for <span class="mono">${editing.task}</span></span>`
    }
  </header>`;
}

/**
 * @param {{ file: DiffFile, open: boolean, viewed: boolean, onToggle: () => void, onViewed: () => void, onComment: (() => void) | null, onWhole: () => void, remarks: number, more: string }} props
 */
function FileHead({ file, open, viewed, onToggle, onViewed, onComment, onWhole, remarks, more }) {
  return html`<div class="file-head row">
    <button type="button" class="file-toggle" aria-expanded=${open} aria-label=${`${open ? "Close" : "Open"} ${visible(file.path, 200)}`} onClick=${onToggle} tabindex=${more ? "-1" : null}><svg viewBox="0 0 16 16" class="glyph" aria-hidden="true"><path d=${open ? "M4 6l4 4 4-4" : "M6 4l4 4-4 4"} /></svg></button>
    <${Became} status=${file.status} />
    <span class="file-path mono one-line"><${Words} text=${file.path} most=${400} /></span>
    ${file.tasks?.map((task) => html`<a class="file-task" key=${task} href=${to("review", task)}>${task}</a>`)}
    ${remarks > 0 && html`<span class="soft">${some(remarks, "comment")}</span>`}
    <span class="spring"></span>
    ${!file.binary && file.status === "changed" && html`<button type="button" class="button quiet file-more" onClick=${onWhole} title="Show the whole file (e)">${file.whole ? "Only changes" : "Whole file"}</button>`}
    ${onComment && html`<button type="button" class="button quiet file-more" onClick=${onComment}>Comment</button>`}
    ${file.binary ? html`<span class="faint">binary</span>` : html`<${Size} ...${file} />`}
    <label class="viewed check"><input type="checkbox" checked=${viewed} onChange=${onViewed} /> <span>Viewed</span></label>
  </div>`;
}

/**
 * @param {{ file: DiffFile, row: DiffRow | null, side: "old" | "new", onBegin: ((file: DiffFile, row: DiffRow | null) => void) | null }} props
 */
function Numbered({ file, row, side, onBegin }) {
  const line = row?.[side];
  if (line === null || line === undefined) return html`<span class="line-number"></span>`;
  const own = side === "new" || row?.kind === "minus";
  if (!onBegin || !own) return html`<span class="line-number">${line}</span>`;
  return html`<button type="button" class="line-number" tabindex="-1" aria-label=${`Comment on line ${line}`} onClick=${(event) => event.detail === 0 && onBegin(file, row)}>${line}</button>`;
}

/**
 * @param {{ item: DiffItem, here: string, picked: boolean, onBegin: ((file: DiffFile, row: DiffRow | null) => void) | null }} props
 */
function Line({ item, here, picked, onBegin }) {
  const { file, row } = item;
  const [sign, word] = MARKS[row.kind];
  /** @param {PageEvent} event */
  const tap = (event) =>
    onBegin && isNarrow() && !getSelection()?.toString() && !event.target.closest("button") && onBegin(file, row);
  return html`<div class=${`line ${row.kind} ${here} ${picked ? "picked" : ""}`} data-key=${item.key} onClick=${tap}>
    <${Numbered} file=${file} row=${row} side="old" onBegin=${onBegin} /><${Numbered} file=${file} row=${row} side="new" onBegin=${onBegin} />
    <span class="line-sign" aria-hidden="true">${sign}</span><span class="unseen">${word}</span><${Code} file=${file} row=${row} />
  </div>`;
}

/**
 * @param {{ file: DiffFile, row: DiffRow | null, side: "old" | "new", picked: boolean, onBegin: ((file: DiffFile, row: DiffRow | null) => void) | null }} props
 */
function Half({ file, row, side, picked, onBegin }) {
  if (!row) return html`<div class="half none"></div>`;
  const [sign, word] = MARKS[row.kind];
  return html`<div class=${`half ${row.kind} ${picked ? "picked" : ""}`}>
    <${Numbered} file=${file} row=${row} side=${side} onBegin=${onBegin} /><span class="line-sign" aria-hidden="true">${sign}</span><span class="unseen">${word}</span><${Code} file=${file} row=${row} />
  </div>`;
}

/**
 * @param {{ item: DiffItem, here: string, left: boolean, right: boolean, onBegin: ((file: DiffFile, row: DiffRow | null) => void) | null }} props
 */
function Pair({ item, here, left, right, onBegin }) {
  const { file, pair } = item;
  return html`<div class=${`pair ${here}`} data-key=${item.key}>
    <${Half} file=${file} row=${pair.left} side="old" picked=${left} onBegin=${onBegin} /><${Half} file=${file} row=${pair.right} side="new" picked=${right} onBegin=${onBegin} />
  </div>`;
}

/**
 * The rest of a file: it is loaded as soon as one comes near it.
 * @param {{ item: DiffItem, onMore: (file: DiffFile, turn: boolean) => unknown }} props
 */
function More({ item, onMore }) {
  const { file } = item;
  useEffect(() => {
    if (file.next !== null) onMore(file, false);
  }, [file]);
  return html`<div class="row-more" data-key=${item.key}>${file.next === null ? "It is too large to be shown whole." : html`<${Button} onClick=${() => onMore(file, false)}>Load the rest<//>`}</div>`;
}
