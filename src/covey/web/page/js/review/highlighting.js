// Colours for code. What highlight.js finds becomes plain tokens; nothing here ever makes markup of text.

let library = null;
const PART = 200;
const LONGEST = 600;
const NAMES = { makefile: "makefile", dockerfile: "bash", "go.mod": "go", ".bashrc": "bash" };
const ALIASES = { h: "c", hpp: "cpp", mjs: "javascript", cjs: "javascript", toml: "ini", cfg: "ini", conf: "ini", htm: "xml", svg: "xml", zsh: "bash", ipynb: "json", lock: "" };

/** The classes that css/review.css has a colour for, by what highlight.js calls a thing. */
const CLASSES = {
  comment: "comment", quote: "comment", doctag: "comment",
  keyword: "keyword", literal: "keyword", "selector-tag": "keyword", operator: "",
  string: "string", regexp: "string", link: "string", char: "string", subst: "",
  number: "number", symbol: "number", bullet: "number",
  title: "title", section: "title", name: "title", "selector-class": "title", "selector-id": "title",
  type: "type", built_in: "type", class: "type",
  attr: "attr", attribute: "attr", property: "attr", "template-variable": "attr", variable: "attr", params: "",
  meta: "meta", tag: "", addition: "string", deletion: "keyword",
};

/** Collects tokens [text, class] instead of markup. */
class Tokens {
  constructor() {
    this.found = [];
    this.scopes = [];
  }
  addText(text) {
    if (text) this.found.push([text, this.scopes.findLast(Boolean) ?? ""]);
  }
  startScope(scope) {
    const [name] = String(scope).split(".");
    this.scopes.push(CLASSES[name] ?? "");
  }
  endScope() {
    this.scopes.pop();
  }
  openNode(scope) {
    this.startScope(scope);
  }
  closeNode() {
    this.endScope();
  }
  __addSublanguage(emitter) {
    for (const token of emitter.found) this.found.push(token);
  }
  finalize() {}
  toHTML() {
    return "";
  }
}

async function load() {
  const { default: hljs } = await import("../vendor/highlight.js");
  hljs.configure({ __emitter: Tokens });
  library = hljs;
}

/** Return the language of a file by its name, or null. */
export function languageOf(path) {
  const name = path.split("/").at(-1).toLowerCase();
  const ending = name.includes(".") ? name.split(".").at(-1) : "";
  return NAMES[name] ?? ALIASES[ending] ?? (ending || null);
}

/** Return the tokens of each line of some code, or null if the language is not known. */
export function tokens(lines, language) {
  if (!library?.getLanguage(language)) return null;
  const text = lines.map((line) => (line.length > LONGEST ? "" : line)).join("\n");
  const found = library.highlight(text, { language, ignoreIllegals: true })._emitter.found;
  const rows = [[]];
  for (const [part, name] of found) {
    part.split("\n").forEach((piece, i) => {
      if (i) rows.push([]);
      if (piece) rows.at(-1).push([piece, name]);
    });
  }
  return lines.map((line, i) => (line.length > LONGEST ? [[line, ""]] : rows[i] ?? [[line, ""]]));
}

const known = new WeakMap();
const waiting = [];
const heard = new Set();
let timer = 0;

/** Call a function when more colours are there; returns what ends that. */
export function listen(again) {
  heard.add(again);
  return () => heard.delete(again);
}

/** Return the tokens of one of the rows of a patch, or null as long as they are not there; they come soon after. */
export function coloursOf(rows, at, language) {
  if (!language) return null;
  let parts = known.get(rows);
  if (!parts) known.set(rows, (parts = new Map()));
  const part = Math.floor(at / PART);
  const found = parts.get(part);
  if (found) return found.get(rows[at]) ?? null;
  if (found === undefined) {
    parts.set(part, null);
    waiting.push([rows, part, language, parts]);
    timer ||= setTimeout(work, 0);
  }
  return null;
}

async function work() {
  if (!library) await load();
  const begun = performance.now();
  while (waiting.length && performance.now() - begun < 8) {
    const [rows, part, language, parts] = waiting.pop(); // what was asked for last is what is seen now
    parts.set(part, colour(rows.slice(part * PART, (part + 1) * PART), language));
  }
  timer = waiting.length ? setTimeout(work, 16) : 0;
  heard.forEach((again) => again());
}

/** Both texts are read by themselves: what was there before must not spoil what is there now. */
function colour(rows, language) {
  const found = new Map();
  for (const without of ["plus", "minus"]) {
    const code = rows.filter((row) => row.kind !== without && row.kind !== "hunk" && row.kind !== "note");
    const lines = tokens(code.map((row) => row.text), language);
    if (lines) code.forEach((row, i) => found.set(row, lines[i]));
  }
  return found;
}

/** Return tokens cut where a part begins and ends: [text, class, whether it is in the part]. */
export function withMark(line, part, text) {
  const pieces = [];
  let at = 0;
  for (const [piece, name] of line ?? [[text, ""]]) {
    const end = at + piece.length;
    const cuts = part ? [...new Set([at, Math.min(Math.max(part[0], at), end), Math.min(Math.max(part[1], at), end), end])] : [at, end];
    for (let i = 1; i < cuts.length; i++) {
      const inside = part !== null && part !== undefined && cuts[i - 1] >= part[0] && cuts[i] <= part[1];
      pieces.push([text.slice(cuts[i - 1], cuts[i]), name, inside]);
    }
    at = end;
  }
  return pieces;
}
