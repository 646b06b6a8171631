// Parses patches into rows, and finds where comments on them stand.
/** @import { Side } from "types/rest.js" */
/** @import { Comment, DiffFile, DiffRow, Folder, LineRange, RowPair, TreeRow } from "types/page.js" */

const HUNK = /^@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@ ?(.*)$/;

/**
 * Return the rows of a patch: {kind, old, new, text}. Kinds: `hunk` (text: where it is), `same`, `plus`, `minus`, and
 * `note` (what git says of the line before). `old` and `new` are line numbers, null where the row is not in that text.
 * @param {string} patch
 */
export function parse(patch) {
  /** @type {DiffRow[]} */
  const rows = [];
  let before = 0;
  let after = 0;
  const lines = patch.split("\n");
  if (lines.at(-1) === "") lines.pop();
  for (const line of lines) {
    const text = line.slice(1);
    if (line[0] === "+") rows.push({ kind: "plus", old: null, new: after++, text });
    else if (line[0] === "-") rows.push({ kind: "minus", old: before++, new: null, text });
    else if (line[0] === "\\") rows.push({ kind: "note", old: null, new: null, text: text.trim() });
    else if (line[0] === "@") {
      const found = HUNK.exec(line);
      before = found ? Number(found[1]) : before;
      after = found ? Number(found[2]) : after;
      rows.push({ kind: "hunk", old: before, new: after, text: found ? found[3] : line });
    } else rows.push({ kind: "same", old: before++, new: after++, text });
  }
  return rows;
}

/**
 * Return where a row can be commented on: {side, line}, or null.
 * @param {DiffRow} row
 * @returns {{ side: Side, line: number } | null}
 */
export function anchor(row) {
  if (row.kind === "minus") return { side: "old", line: row.old ?? 0 };
  return row.kind === "plus" || row.kind === "same" ? { side: "new", line: row.new ?? 0 } : null;
}

/**
 * Return the lines between two rows that one comment can be about: {side, line, lines, quote, from, to} with the first
 * and the last row, or null. It ends where a hunk does, and is about the text after the change unless all of it is gone.
 * @param {DiffRow[]} rows
 * @param {number} one
 * @param {number} [other]
 * @returns {(LineRange & { line: number, quote: string, from: number, to: number }) | null}
 */
export function rangeOf(rows, one, other = one) {
  const step = other < one ? -1 : 1;
  let end = one;
  while (end !== other && rows[end + step] && rows[end + step].kind !== "hunk") end += step;
  const [from, to] = [Math.min(one, end), Math.max(one, end)];
  /** @type {{ side: Side, line: number, quote: string }[]} */
  const places = [];
  for (let at = from; at <= to; at++) {
    const where = rows[at] && anchor(rows[at]);
    if (where) places.push({ ...where, quote: rows[at].text });
  }
  if (!places.length) return null;
  const side = places.some((place) => place.side === "new") ? "new" : "old";
  const own = places.filter((place) => place.side === side);
  return { side, line: own[0].line, lines: own.at(-1).line - own[0].line + 1, quote: own[0].quote, from, to };
}

/** @param {{ side: string, line: number }} props */
const keyOf = ({ side, line }) => `${side}\n${line}`;

/**
 * Return the lines of a comment as they are by now: {side, first, last}, or null if it stands at none.
 * @param {Comment} comment
 */
function linesOf(comment) {
  const first = comment.place === "outdated" ? null : (comment.now ?? comment.line);
  return first ? { side: comment.side, first, last: first + Math.max(1, comment.lines ?? 1) - 1 } : null;
}

/**
 * Return where the comments on a file stand: `top` has those on the file and on lines that are not shown, `below` those
 * under a row (at the last of their lines that is shown), and `within` says whether a row is one of several lines.
 * @param {DiffRow[]} rows
 * @param {Comment[]} comments
 */
export function placed(rows, comments) {
  /** @type {Map<string, DiffRow>} */
  const shown = new Map();
  rows.forEach((row) => {
    const where = anchor(row);
    if (where) shown.set(keyOf(where), row);
  });
  /** @type {{ top: Comment[], below: Map<DiffRow, Comment[]>, within: Set<DiffRow | null> }} */
  const found = { top: [], below: new Map(), within: new Set() };
  for (const comment of comments) {
    const lines = linesOf(comment);
    /** @type {DiffRow | null} */
    let row = null;
    for (let line = lines?.last ?? 0; lines && line >= lines.first && !row; line--)
      row = shown.get(keyOf({ side: lines.side, line })) ?? null;
    if (!row) found.top.push(comment);
    else found.below.set(row, [...(found.below.get(row) ?? []), comment]);
    for (let line = lines?.first ?? 0; lines && lines.last > lines.first && line <= lines.last; line++) {
      const covered = shown.get(keyOf({ side: lines.side, line }));
      if (covered) found.within.add(covered);
    }
  }
  return found;
}

/**
 * Return the task, of several that change a file, whose lines these are; the first of them where nobody knows.
 * @param {DiffFile} file
 * @param {{ side: string, line: number | null, lines: number }} props
 */
export function ownerOf(file, { side, line, lines }) {
  /** @param {[number, number]} pair */
  const meets = ([from, to]) => side === "new" && from < (line ?? 0) + lines && to >= (line ?? 0);
  return file.tasks.find((task) => (file.written?.[task] ?? []).some(meets)) ?? file.tasks[0] ?? null;
}

/**
 * Return lines in words: "line 12", "lines 12–15".
 * @param {number} line
 * @param {number} lines
 */
export function sayLines(line, lines) {
  return lines > 1 ? `lines ${line}–${line + lines - 1}` : `line ${line}`;
}

/**
 * Return rows side by side: each {left, right} with rows of `parse`, either of them null; what is one row for both is
 * `both`.
 * @param {DiffRow[]} rows
 */
export function beside(rows) {
  /** @type {RowPair[]} */
  const found = [];
  for (let at = 0; at < rows.length; ) {
    const row = rows[at];
    if (row.kind === "hunk" || row.kind === "note") {
      found.push({ both: row, left: null, right: null });
      at++;
    } else if (row.kind === "same") {
      found.push({ both: null, left: row, right: row });
      at++;
    } else {
      const gone = run(rows, at, "minus");
      const come = run(rows, at + gone.length, "plus");
      for (let i = 0; i < Math.max(gone.length, come.length); i++)
        found.push({ both: null, left: gone[i] ?? null, right: come[i] ?? null });
      at += gone.length + come.length;
    }
  }
  return found;
}

/**
 * @param {DiffRow[]} rows
 * @param {number} at
 * @param {DiffRow["kind"]} kind
 */
function run(rows, at, kind) {
  let end = at;
  while (rows[end]?.kind === kind) end++;
  return rows.slice(at, end);
}

const LONGEST = 1000;
const ALIKE = 0.35;

/**
 * Return what differs between two lines that are alike: {from, old, new} with the ends in each, or null if they are
 * not.
 * @param {string} before
 * @param {string} after
 */
export function difference(before, after) {
  if (before === after || before.length > LONGEST || after.length > LONGEST) return null;
  const most = Math.min(before.length, after.length);
  let from = 0;
  while (from < most && before[from] === after[from]) from++;
  let tail = 0;
  while (tail < most - from && before[before.length - 1 - tail] === after[after.length - 1 - tail]) tail++;
  const same = before.slice(0, from).trim().length + before.slice(before.length - tail).trim().length;
  if (same < ALIKE * Math.max(before.trim().length, after.trim().length)) return null;
  return { from, old: before.length - tail, new: after.length - tail };
}

/**
 * Return for each row that was replaced by one like it which part of it is another: a Map of row to [from, to].
 * @param {DiffRow[]} rows
 */
export function marks(rows) {
  /** @type {Map<DiffRow, [number, number]>} */
  const found = new Map();
  for (let at = 0; at < rows.length; at++) {
    if (rows[at].kind !== "minus") continue;
    const gone = run(rows, at, "minus");
    const come = run(rows, at + gone.length, "plus");
    for (let i = 0; i < Math.min(gone.length, come.length); i++) {
      const part = difference(gone[i].text, come[i].text);
      if (!part) continue;
      if (part.old > part.from) found.set(gone[i], [part.from, part.old]);
      if (part.new > part.from) found.set(come[i], [part.from, part.new]);
    }
    at += gone.length + come.length - 1;
  }
  return found;
}

const WIDE =
  /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6]|[\ud83c-\ud83e][\udc00-\udfff]/g;
const TAB = 4;

/**
 * Return how many columns a text takes in a font whose letters are all alike.
 * @param {string} text
 */
export function columns(text) {
  let count = 0;
  if (text.includes("\t")) for (const sign of text) count += sign === "\t" ? TAB - (count % TAB) : 1;
  else count = text.length;
  return count + (text.match(WIDE)?.length ?? 0);
}

/**
 * Return files as a tree in rows: {folder, name, depth, path} and {file, name, depth}; a folder with nothing but one
 * folder in it is written together with that.
 * @param {DiffFile[]} files
 */
export function tree(files) {
  /** @type {Folder} */
  const root = { folders: new Map(), files: [] };
  for (const file of files) {
    const parts = file.path.split("/");
    let place = root;
    for (const part of parts.slice(0, -1)) {
      const inside = place.folders.get(part) ?? { folders: new Map(), files: [] };
      place.folders.set(part, inside);
      place = inside;
    }
    place.files.push({ file, name: parts.at(-1) });
  }
  /** @type {TreeRow[]} */
  const rows = [];
  walk(root, "", 0, rows);
  return rows;
}

/**
 * @param {Folder} place
 * @param {string} above
 * @param {number} depth
 * @param {TreeRow[]} rows
 */
function walk(place, above, depth, rows) {
  for (let [name, inside] of [...place.folders].sort(byName)) {
    while (inside.files.length === 0 && inside.folders.size === 1) {
      const [[next, deeper]] = inside.folders;
      name = `${name}/${next}`;
      inside = deeper;
    }
    rows.push({ folder: true, name, depth, path: `${above}${name}/` });
    walk(inside, `${above}${name}/`, depth + 1, rows);
  }
  for (const { file, name } of place.files.sort((one, other) => byName([one.name], [other.name])))
    rows.push({ file, name, depth });
}

/**
 * @param {[string, ...unknown[]]} pair
 * @param {[string, ...unknown[]]} pair
 */
function byName([one], [other]) {
  return one < other ? -1 : one > other ? 1 : 0;
}

const MADE =
  /(^|\/)(package-lock\.json|yarn\.lock|pnpm-lock\.yaml|poetry\.lock|uv\.lock|Cargo\.lock|go\.sum|composer\.lock)$|\.min\.(js|css)$|\.snap$/;

/**
 * Say whether nobody reads a file first: programs wrote it, or it is gone, or it is very long.
 * @param {DiffFile} file
 * @param {boolean} alone
 */
export function isAside(file, alone) {
  return !alone && (MADE.test(file.path) || file.status === "deleted" || file.plus + file.minus > 1500);
}
