// What work changes, file by file: lines with their numbers and colours, side by side or one below the other.
import { html, useEffect, useMemo, useRef, useState } from "./lib.js";
import { coloursOf, languageOf, listen, withMark } from "./colours.js";
import { anchor, beside, columns, isAside, marks, parse } from "./diff.js";
import { Flow } from "./flow.js";
import { useCommands } from "./keys.js";
import { to } from "./places.js";
import { Editor, Remark } from "./remarks.js";
import { some, visible } from "./text.js";
import { Button, Words } from "./ui.js";

const LINE = 20;
const HEAD = 34;
const SHOWN = 1200;
const SIGNS = { added: ["A", "added"], deleted: ["D", "deleted"], changed: ["M", "changed"], renamed: ["R", "renamed"], copied: ["C", "copied"], type: ["T", "type changed"], unmerged: ["U", "unmerged"] };
const MARKS = { plus: ["+", "added"], minus: ["−", "removed"], same: ["", ""] };

/** The sign of what became of a file: a letter, a colour and a word. */
export function Became({ status }) {
  const [letter, word] = SIGNS[status] ?? ["?", status];
  return html`<span class=${`became became-${status}`} title=${word}><span aria-hidden="true">${letter}</span><span class="unseen">${word}</span></span>`;
}

/** How many lines came and went. */
export function Size({ plus, minus }) {
  return html`<span class="size"><span class="plus">+${plus}</span> <span class="minus">−${minus}</span></span>`;
}

// Rows

const parsed = new WeakMap();

/** Return what is drawn of a file's patch; made once for each patch. */
export function rowsOf(file) {
  let found = parsed.get(file);
  if (!found) {
    const rows = file.patch ? parse(file.patch) : [];
    const index = new Map(rows.map((row, at) => [row, at]));
    parsed.set(file, (found = { rows, index, pairs: null, marks: marks(rows) }));
  }
  return found;
}

function height(text, fit) {
  return Math.max(1, Math.ceil(columns(text.length > SHOWN ? text.slice(0, SHOWN) : text) / fit)) * LINE;
}

/** Return all that can be seen of some files, one item for each row. */
function itemsOf(files, { split, open, notes, editing, fit }) {
  const items = [];
  for (const file of files) {
    const key = file.path;
    items.push({ key, type: "file", file, size: HEAD });
    if (!open(file)) continue;
    for (const comment of notes(file, null)) items.push({ key: `${key}\n${comment.id}`, type: "remark", file, comment, size: 80 });
    if (editing?.path === file.path && editing.line === null) items.push({ key: `${key}\nnew`, type: "editor", file, size: 130 });
    const said = remark(file);
    if (said) items.push({ key: `${key}\nsaid`, type: "said", file, text: said, size: 30 });
    const found = rowsOf(file);
    const rows = split ? (found.pairs ??= beside(found.rows)) : found.rows;
    rows.forEach((row, at) => {
      items.push(split ? pairItem(file, row, at, fit) : lineItem(file, row, at, fit));
      below(items, file, split ? [row.left, row.right === row.left ? null : row.right] : [row], { notes, editing, at });
    });
    if (file.cut) items.push({ key: `${key}\nmore`, type: "more", file, size: 38 });
  }
  return items;
}

function lineItem(file, row, at, fit) {
  const type = row.kind === "hunk" || row.kind === "note" ? row.kind : "line";
  return { key: `${file.path}\n${at}`, type, file, row, size: type === "hunk" ? 26 : height(row.text, fit) };
}

function pairItem(file, pair, at, fit) {
  if (pair.both) return { ...lineItem(file, pair.both, at, fit), key: `${file.path}\ns${at}` };
  const size = Math.max(...[pair.left, pair.right].map((row) => (row ? height(row.text, fit) : LINE)));
  return { key: `${file.path}\ns${at}`, type: "pair", file, pair, row: pair.right ?? pair.left, size };
}

/** Add what stands below a row: its comments, and the field for a new one. */
function below(items, file, rows, { notes, editing, at }) {
  for (const row of rows) {
    const where = row && anchor(row);
    if (!where) continue;
    for (const comment of notes(file, where)) items.push({ key: `${file.path}\n${comment.id}`, type: "remark", file, comment, row, size: 80 });
    if (editing?.path === file.path && editing.side === where.side && editing.line === where.line) items.push({ key: `${file.path}\nnew${at}`, type: "editor", file, row, size: 130 });
  }
}

function remark(file) {
  const parts = [];
  if (file.old_path) parts.push(`${file.status} from ${file.old_path}`);
  if (file.old_mode) parts.push(`mode ${file.old_mode} → ${file.mode}`);
  if (file.binary) parts.push("binary file");
  else if (file.patch === "" && !file.cut && !parts.length) parts.push(file.status === "added" ? "empty file" : "no lines differ");
  return parts.join(", ");
}

/** The text of a line: its tokens in their colours, and the part of it that is another. */
function Code({ file, row, split }) {
  const found = rowsOf(file);
  const text = row.text.length > SHOWN ? row.text.slice(0, SHOWN) : row.text;
  const tokens = row.text.length > SHOWN ? null : coloursOf(found.rows, found.index.get(row), languageOf(file.path));
  const pieces = withMark(tokens, found.marks.get(row), text);
  return html`<code class="code"><bdi>${pieces.map(([piece, name, marked]) => (name || marked ? html`<span class=${`${name && `hl-${name}`} ${marked ? "hl-mark" : ""}`}>${visible(piece, SHOWN)}</span>` : visible(piece, SHOWN)))}</bdi>${row.text.length > SHOWN ? html`<span class="cut-off"> … the rest of the line is not shown</span>` : ""}</code>`;
}

// The whole

/**
 * All that some files change. `comments` stand at their lines; `onComment(fields, now)` writes one (null: there is nothing to
 * comment on), `onMore(file, context)` loads the rest of a file, or all of it with more lines around.
 */
export function Changes({ files, comments = [], split, label, viewed, onViewed, onComment, onMore, control, onFile, children }) {
  const flow = useRef(null);
  const [, again] = useState(0);
  const [shut, setShut] = useState(new Map());
  const [editing, setEditing] = useState(null);
  const [cursor, setCursor] = useState(null);
  const [top, setTop] = useState(null);
  const [fit, setFit] = useState(100);
  const place = useRef(null);
  useEffect(() => listen(() => again((count) => count + 1)), []);
  useEffect(() => {
    const element = place.current;
    const measure = () => {
      const probe = element.querySelector(".probe");
      const wide = probe.getBoundingClientRect().width / 100 || 7;
      const room = split ? element.clientWidth / 2 - 70 : element.clientWidth - (element.clientWidth < 700 ? 58 : 118);
      setFit(Math.max(20, Math.floor(room / wide)));
    };
    const watcher = new ResizeObserver(measure);
    watcher.observe(element);
    measure();
    return () => watcher.disconnect();
  }, [split]);

  const open = (file) => !(shut.get(file.path) ?? (viewed.has(file.path) || isAside(file, files.length === 1)));
  const toggle = (file, to = open(file)) => setShut((before) => new Map(before).set(file.path, to));
  const notes = useMemo(() => byPlace(comments), [comments]);
  const items = useMemo(
    () => itemsOf(files, { split, open, notes: (file, where) => notes.get(where ? `${file.path}\n${where.side}\n${where.line}` : file.path) ?? [], editing, fit }),
    [files, split, shut, viewed, notes, editing, fit],
  );

  const begin = (file, row) => {
    const where = row ? anchor(row) : { side: "new", line: null };
    if (!onComment || !where) return;
    setEditing({ path: file.path, ...where, quote: row?.text ?? null });
  };
  const end = () => {
    setEditing(null);
    flow.current?.focus();
  };
  const save = (now) => async (text) => {
    const { path, side, line, quote } = editing;
    const kept = await onComment({ text, path, side, ...(line && { line, quote }) }, now);
    if (kept) end();
    return kept;
  };

  const lines = () => items.filter((item) => item.type === "line" || item.type === "pair" || item.type === "file" || item.type === "hunk");
  const move = (by, wanted = () => true) => {
    const rows = lines().filter((item) => item.key === cursor || wanted(item));
    const now = rows.findIndex((item) => item.key === cursor);
    const next = rows[now < 0 ? (top ? Math.max(0, rows.findIndex((item) => item.file === top.file)) : 0) : Math.min(Math.max(now + by, 0), rows.length - 1)];
    if (!next) return;
    setCursor(next.key);
    flow.current?.to(next.key, next.type === "file" ? "top" : "near");
  };
  const current = () => items.find((item) => item.key === cursor);
  const fileNow = () => current()?.file ?? top?.file;
  useCommands([
    { label: "Next line", group: "Review", keys: ["j", "arrowdown"], unlisted: true, run: () => move(1) },
    { label: "Previous line", group: "Review", keys: ["k", "arrowup"], unlisted: true, run: () => move(-1) },
    { label: "Next file", group: "Review", keys: "n", run: () => move(1, (item) => item.type === "file") },
    { label: "Previous file", group: "Review", keys: "p", run: () => move(-1, (item) => item.type === "file") },
    { label: "Next change", group: "Review", keys: "]", run: () => move(1, (item) => item.type === "hunk") },
    { label: "Previous change", group: "Review", keys: "[", run: () => move(-1, (item) => item.type === "hunk") },
    { label: "Comment on the line", group: "Review", keys: "c", when: () => Boolean(onComment), run: () => { const item = current(); if (item) begin(item.file, item.type === "file" || item.type === "hunk" ? null : item.row); } },
    { label: "Mark the file as viewed", group: "Review", keys: "v", run: () => fileNow() && see(fileNow()) },
    { label: "Open or close the file", group: "Review", keys: "o", run: () => fileNow() && toggle(fileNow()) },
    { label: "Show the whole file", group: "Review", keys: "e", run: () => fileNow() && onMore(fileNow(), true) },
  ], [items, cursor, top, viewed]);

  const see = (file) => {
    const now = !viewed.has(file.path);
    setShut((before) => {
      const next = new Map(before);
      next.delete(file.path);
      return next;
    });
    onViewed(file, now);
  };
  control.current = { show: (path, key = path) => { setShut((before) => new Map(before).set(path, false)); setCursor(key); setTimeout(() => flow.current?.to(key, key === path ? "top" : "near")); } };

  const head = (file, more = "") => html`<${FileHead} file=${file} more=${more} open=${open(file)} viewed=${viewed.has(file.path)} onToggle=${() => toggle(file)} onViewed=${() => see(file)}
    onComment=${onComment && (() => begin(file, null))} onWhole=${() => onMore(file, true)} remarks=${comments.filter((comment) => comment.path === file.path).length} />`;
  const draw = (item) => {
    const here = item.key === cursor ? "cursor" : "";
    switch (item.type) {
      case "file": return html`<div class=${`row-file ${here}`} key=${item.key} data-key=${item.key}>${head(item.file)}</div>`;
      case "hunk": return html`<div class=${`row-hunk ${here}`} key=${item.key} data-key=${item.key}><span aria-hidden="true">⋯</span> <${Words} text=${item.row.text} most=${160} /><span class="faint"> line ${item.row.new}</span></div>`;
      case "note": return html`<div class="row-note" key=${item.key} data-key=${item.key}><${Words} text=${item.row.text} /></div>`;
      case "said": return html`<div class="row-note" key=${item.key} data-key=${item.key}><${Words} text=${item.text} /></div>`;
      case "line": return html`<${Line} key=${item.key} item=${item} here=${here} onBegin=${onComment && begin} />`;
      case "pair": return html`<${Pair} key=${item.key} item=${item} here=${here} onBegin=${onComment && begin} />`;
      case "remark": return html`<div class="row-remark" key=${item.key} data-key=${item.key}><${Remark} comment=${item.comment} /></div>`;
      case "editor": return html`<div class="row-remark" key=${item.key} data-key=${item.key}><${Editor} label=${editing.line ? `Comment on ${item.file.path}, line ${editing.line}` : `Comment on ${item.file.path}`} onSave=${save(false)} onNow=${save(true)} onClose=${end} /></div>`;
      default: return html`<${More} key=${item.key} item=${item} onMore=${onMore} />`;
    }
  };
  const watch = (item, into) => {
    if (item && (top?.file !== item.file || top.into !== (item.type !== "file" || into > 2))) {
      setTop({ file: item.file, into: item.type !== "file" || into > 2 });
      onFile?.(item.file);
    }
  };
  return html`<div class=${`changes ${split ? "split" : "unified"}`} ref=${place}>
    <span class="probe mono" aria-hidden="true">${"0".repeat(100)}</span>
    ${top?.into && files.includes(top.file) && html`<div class="row-file above">${head(top.file, "above")}</div>`}
    <${Flow} items=${items} draw=${draw} label=${label} class="diff" control=${flow} onTop=${watch}>${children}<//>
  </div>`;
}

function byPlace(comments) {
  const found = new Map();
  for (const comment of comments) {
    if (!comment.path) continue;
    const line = comment.place === "outdated" ? null : comment.now ?? comment.line;
    const key = line ? `${comment.path}\n${comment.side}\n${line}` : comment.path;
    found.set(key, [...(found.get(key) ?? []), comment]);
  }
  return found;
}

function FileHead({ file, open, viewed, onToggle, onViewed, onComment, onWhole, remarks, more }) {
  return html`<div class="file-head">
    <button type="button" class="file-toggle" aria-expanded=${open} aria-label=${`${open ? "Close" : "Open"} ${visible(file.path, 200)}`} onClick=${onToggle} tabindex=${more ? "-1" : null}><svg viewBox="0 0 16 16" class="glyph" aria-hidden="true"><path d=${open ? "M4 6l4 4 4-4" : "M6 4l4 4-4 4"} /></svg></button>
    <${Became} status=${file.status} />
    <span class="file-path mono"><${Words} text=${file.path} most=${400} /></span>
    ${file.tasks?.map((task) => html`<a class="file-task" key=${task} href=${to("review", task)}>${task}</a>`)}
    ${remarks > 0 && html`<span class="soft">${some(remarks, "comment")}</span>`}
    <span class="file-room"></span>
    ${!file.binary && file.status === "changed" && html`<button type="button" class="button quiet file-more" onClick=${onWhole} title="Show the whole file (e)">${file.whole ? "Only changes" : "Whole file"}</button>`}
    ${onComment && html`<button type="button" class="button quiet file-more" onClick=${onComment}>Comment</button>`}
    ${file.binary ? html`<span class="faint">binary</span>` : html`<${Size} ...${file} />`}
    <label class="viewed"><input type="checkbox" checked=${viewed} onChange=${onViewed} /> <span>Viewed</span></label>
  </div>`;
}

function Numbered({ file, row, side, onBegin }) {
  const line = row && row[side];
  if (line === null || line === undefined) return html`<span class="line-number"></span>`;
  const own = side === "new" || row.kind === "minus";
  if (!onBegin || !own) return html`<span class="line-number">${line}</span>`;
  return html`<button type="button" class="line-number" tabindex="-1" aria-label=${`Comment on line ${line}`} onClick=${(event) => { event.stopPropagation(); onBegin(file, row); }}>${line}</button>`;
}

function Line({ item, here, onBegin }) {
  const { file, row } = item;
  const [sign, word] = MARKS[row.kind];
  const tap = (event) => onBegin && matchMedia("(max-width: 760px)").matches && !getSelection().toString() && !event.target.closest("button") && onBegin(file, row);
  return html`<div class=${`line ${row.kind} ${here}`} data-key=${item.key} onClick=${tap}>
    <${Numbered} file=${file} row=${row} side="old" onBegin=${onBegin} /><${Numbered} file=${file} row=${row} side="new" onBegin=${onBegin} />
    <span class="line-sign" aria-hidden="true">${sign}</span><span class="unseen">${word}</span><${Code} file=${file} row=${row} />
  </div>`;
}

function Half({ file, row, side, onBegin }) {
  if (!row) return html`<div class="half none"></div>`;
  const [sign, word] = MARKS[row.kind];
  return html`<div class=${`half ${row.kind}`}>
    <${Numbered} file=${file} row=${row} side=${side} onBegin=${onBegin} /><span class="line-sign" aria-hidden="true">${sign}</span><span class="unseen">${word}</span><${Code} file=${file} row=${row} />
  </div>`;
}

function Pair({ item, here, onBegin }) {
  const { file, pair } = item;
  return html`<div class=${`pair ${here}`} data-key=${item.key}>
    <${Half} file=${file} row=${pair.left} side="old" onBegin=${onBegin} /><${Half} file=${file} row=${pair.right} side="new" onBegin=${onBegin} />
  </div>`;
}

/** The rest of a file: it is loaded as soon as one comes near it. */
function More({ item, onMore }) {
  const { file } = item;
  useEffect(() => {
    if (file.next !== null) onMore(file, false);
  }, [file]);
  return html`<div class="row-more" data-key=${item.key}>${file.next === null ? "It is too large to be shown whole." : html`<${Button} onClick=${() => onMore(file, false)}>Load the rest<//>`}</div>`;
}
