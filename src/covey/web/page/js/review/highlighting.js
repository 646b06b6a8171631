// Syntax colours. Takes highlight.js's tokens and never its HTML.
/** @import { DiffRow, Token } from "types/page.js" */

/** @type {typeof import("types/vendor/highlight.js").default | null} */
let library = null;
const PART = 200;
const LONGEST = 600;
/** @type {Record<string, string>} */
const NAMES = { makefile: "makefile", dockerfile: "bash", "go.mod": "go", ".bashrc": "bash" };
/** @type {Record<string, string>} */
const ALIASES = {
  h: "c",
  hpp: "cpp",
  mjs: "javascript",
  cjs: "javascript",
  toml: "ini",
  cfg: "ini",
  conf: "ini",
  htm: "xml",
  svg: "xml",
  zsh: "bash",
  ipynb: "json",
  lock: "",
};

/** The classes that css/review.css has a colour for, each with what highlight.js calls a thing of it. */
const KINDS = {
  comment: "comment quote doctag",
  keyword: "keyword literal selector-tag deletion",
  string: "string regexp link char addition",
  number: "number symbol bullet",
  title: "title section name selector-class selector-id",
  type: "type built_in class",
  attr: "attr attribute property template-variable variable",
  meta: "meta",
};
/** @type {Map<string, string>} */
const CLASSES = new Map(Object.entries(KINDS).flatMap(([name, kinds]) => kinds.split(" ").map((kind) => [kind, name])));

/** Collects tokens [text, class] instead of markup. */
class Tokens {
  constructor() {
    /** @type {Token[]} */
    this.found = [];
    /** @type {string[]} */
    this.scopes = [];
  }
  /** @param {string} text */
  addText(text) {
    if (text) this.found.push([text, this.scopes.findLast(Boolean) ?? ""]);
  }
  /** @param {string} scope */
  startScope(scope) {
    const [name] = String(scope).split(".");
    this.scopes.push(CLASSES.get(name) ?? "");
  }
  endScope() {
    this.scopes.pop();
  }
  /** @param {string} scope */
  openNode(scope) {
    this.startScope(scope);
  }
  closeNode() {
    this.endScope();
  }
  /** @param {Tokens} emitter */
  __addSublanguage(emitter) {
    for (const token of emitter.found) this.found.push(token);
  }
  finalize() {}
  toHTML() {
    return "";
  }
}

async function load() {
  // By its own place, not by that of the page: the tests load it in Node.js.
  library = (await import(import.meta.resolve("../../vendor/highlight.js"))).default;
  library?.configure({ __emitter: Tokens });
}

/**
 * Return the language of a file by its name, or null.
 * @param {string} path
 */
export function languageOf(path) {
  const name = path.split("/").at(-1).toLowerCase();
  const ending = name.includes(".") ? name.split(".").at(-1) : "";
  return NAMES[name] ?? ALIASES[ending] ?? (ending || null);
}

/**
 * Return the tokens of each line of some code, or null if the language is not known.
 * @param {string[]} lines
 * @param {string} language
 */
export function tokens(lines, language) {
  if (!library?.getLanguage(language)) return null;
  const text = lines.map((line) => (line.length > LONGEST ? "" : line)).join("\n");
  const found = library.highlight(text, { language, ignoreIllegals: true })._emitter.found;
  /** @type {Token[][]} */
  const rows = [[]];
  for (const [part, name] of found) {
    part.split("\n").forEach((piece, i) => {
      if (i) rows.push([]);
      if (piece) rows.at(-1).push([piece, name]);
    });
  }
  return lines.map(
    (line, i) => /** @type {Token[]} */ (line.length > LONGEST ? [[line, ""]] : (rows[i] ?? [[line, ""]])),
  );
}

/** @type {WeakMap<DiffRow[], Map<number, Map<DiffRow, Token[]> | null>>} */
const known = new WeakMap();
/** @type {[DiffRow[], number, string, Map<number, Map<DiffRow, Token[]> | null>][]} */
const waiting = [];
/** @type {Set<() => void>} */
const heard = new Set();
let timer = 0;

/**
 * Call a function when more colours are there; returns what ends that.
 * @param {() => void} again
 */
export function listen(again) {
  heard.add(again);
  return () => heard.delete(again);
}

/**
 * Return the tokens of one of the rows of a patch, or null as long as they are not there; they come soon after.
 * @param {DiffRow[]} rows
 * @param {number} at
 * @param {string | null} language
 */
export function coloursOf(rows, at, language) {
  if (!language) return null;
  let parts = known.get(rows);
  if (!parts) {
    parts = new Map();
    known.set(rows, parts);
  }
  const part = Math.floor(at / PART);
  const found = parts.get(part);
  if (found) return found.get(rows[at]) ?? null;
  if (found === undefined) {
    parts.set(part, null);
    waiting.push([rows, part, language, parts]);
    if (!timer) timer = setTimeout(work, 0);
  }
  return null;
}

async function work() {
  if (!library) await load();
  const begun = performance.now();
  while (waiting.length && performance.now() - begun < 8) {
    const last = waiting.pop(); // what was asked for last is what is seen now
    if (!last) break;
    const [rows, part, language, parts] = last;
    parts.set(part, colour(rows.slice(part * PART, (part + 1) * PART), language));
  }
  timer = waiting.length ? setTimeout(work, 16) : 0;
  heard.forEach((again) => again());
}

/**
 * Both texts are read by themselves: what was there before must not spoil what is there now.
 * @param {DiffRow[]} rows
 * @param {string} language
 */
function colour(rows, language) {
  /** @type {Map<DiffRow, Token[]>} */
  const found = new Map();
  for (const without of ["plus", "minus"]) {
    const code = rows.filter((row) => row.kind !== without && row.kind !== "hunk" && row.kind !== "note");
    const lines = tokens(
      code.map((row) => row.text),
      language,
    );
    if (lines) code.forEach((row, i) => found.set(row, lines[i]));
  }
  return found;
}

/**
 * Return tokens cut where a part begins and ends: [text, class, whether it is in the part].
 * @param {Token[] | null} line
 * @param {[number, number] | null | undefined} part
 * @param {string} text
 */
export function withMark(line, part, text) {
  /** @type {[string, string, boolean][]} */
  const pieces = [];
  let at = 0;
  for (const [piece, name] of line ?? [[text, ""]]) {
    const end = at + piece.length;
    const cuts = part
      ? [...new Set([at, Math.min(Math.max(part[0], at), end), Math.min(Math.max(part[1], at), end), end])]
      : [at, end];
    for (let i = 1; i < cuts.length; i++) {
      const inside = part !== null && part !== undefined && cuts[i - 1] >= part[0] && cuts[i] <= part[1];
      pieces.push([text.slice(cuts[i - 1], cuts[i]), name, inside]);
    }
    at = end;
  }
  return pieces;
}
