// Building blocks of the views. A state is always shown by shape, colour and word together.
import { html, useEffect, useLayoutEffect, useRef, useState } from "../lib.js";
import { hear, watch } from "./view_hooks.js";
import { useCommands } from "./keys.js";
import { keptAt, whereabouts } from "../data/routes.js";
import { listen, state, touch, useTopics } from "../data/store.js";
import { span, visible } from "../rules/text.js";
/** @import { Asked, PageNote, Trouble } from "types/page.js" */
/** @import { Ref } from "types/vendor/hooks.js" */
/** @import { Child } from "types/vendor/preact.js" */

// States

/** @type {Record<string, string>} */
const SHAPES = {
  needs: "M8 1.5 14.5 8 8 14.5 1.5 8Z",
  failed: "M3.2 3.2 12.8 12.8M12.8 3.2 3.2 12.8",
  working: "M8 2a6 6 0 1 1-6 6",
  review: "M8 2a6 6 0 1 0 0 12 6 6 0 0 0 0-12ZM8 2v12a6 6 0 0 0 0-12Z",
  merging: "M4.5 8 8 4.5 11.5 8M4.5 12.5 8 9 11.5 12.5",
  done: "M2.5 8.5 6.3 12.3 13.5 4.5",
  paused: "M5.5 3v10M10.5 3v10",
  limited: "M8 2a6 6 0 1 0 0 12A6 6 0 0 0 8 2ZM8 5v3.2l2.2 1.5",
  waiting: "M8 2.5a5.5 5.5 0 1 0 0 11 5.5 5.5 0 0 0 0-11Z",
  stale: "M8 2.5a5.5 5.5 0 1 0 0 11 5.5 5.5 0 0 0 0-11Z",
  stalled: "M8 2.5a5.5 5.5 0 1 0 0 11 5.5 5.5 0 0 0 0-11Z",
  idle: "M3 8h10",
};
const FILLED = new Set(["needs"]);

/**
 * The states that people see, of tasks, sessions, merges and gates, by the shape of each. The shape also chooses the
 * colour: `.state-<shape>` in css/base.css.
 */
const STATES = {
  needs: ["needs-you", "blocked", "needs"],
  working: ["working", "doing", "starting", "compacting", "testing", "building", "running"],
  review: ["review"],
  waiting: ["waiting", "todo", "queued"],
  idle: ["backlog", "idle", "stopped"],
  merging: ["merging", "landing"],
  done: ["done", "landed", "passed"],
  failed: ["failed", "rejected", "dead", "dropped", "clashed", "withdrawn", "reverted"],
  stale: ["lost"],
  paused: ["paused", "held"],
  limited: ["limited"],
  stalled: ["stalled"],
};
const SHAPE_OF = new Map(Object.entries(STATES).flatMap(([shape, names]) => names.map((name) => [name, shape])));
/**
 * The word of each state that has another one than its name.
 * @type {Record<string, string>}
 */
const WORDS = { "needs-you": "needs you", needs: "needs you", todo: "to do", clashed: "conflict" };

/**
 * Return the shape and the word of a state.
 * @param {string | null | undefined} name
 */
export function stateOf(name) {
  return { shape: SHAPE_OF.get(name ?? "") ?? "stale", word: WORDS[name ?? ""] ?? name ?? "unknown" };
}

/**
 * The sign of a state; with `word` its word stands beside it, else it is there for those who cannot see.
 * @param {{ name: string | null | undefined, word?: boolean }} props
 */
export function State({ name, word = false }) {
  const known = stateOf(name);
  const filled = FILLED.has(known.shape) ? "filled" : "";
  return html`<span class="state state-${known.shape}">
    <svg viewBox="0 0 16 16" class=${`glyph ${filled}`} aria-hidden="true"><path d=${SHAPES[known.shape]} /></svg>
    <span class=${word ? "word" : "unseen"}>${known.word}</span>
  </span>`;
}

// Text

/**
 * Text of agents and repositories: shown as it is, isolated, nothing hidden in it.
 * @param {{ text: unknown, most?: number, class?: string }} props
 */
export function Words({ text, most, class: name }) {
  return html`<bdi class=${name}>${visible(text, most)}</bdi>`;
}

/**
 * A command: where it does not fit its line, it breaks between its words, never within an option.
 * @param {{ text: string, most?: number }} props
 */
export function CommandWords({ text, most }) {
  return html`<bdi>${visible(text, most)
    .split(" ")
    .map((word, i) => [i ? " " : "", html`<span class="command-word">${word}</span>`])}</bdi>`;
}

/** @type {Set<() => void>} */
const ages = new Set();
setInterval(() => ages.forEach((draw) => draw()), 1000);

/**
 * How long ago something was; it stays right without drawing anything else again.
 * @param {{ since: number | null | undefined, class?: string }} props
 */
export function Age({ since, class: name = "age" }) {
  const place = useRef(null);
  useLayoutEffect(() => {
    const draw = () => {
      const text = since ? span(Date.now() / 1000 - since) : "";
      if (place.current && place.current.textContent !== text) place.current.textContent = text;
    };
    draw();
    ages.add(draw);
    return () => ages.delete(draw);
  }, [since]);
  return html`<time class=${name} ref=${place} title=${since ? new Date(since * 1000).toLocaleString() : ""}></time>`;
}

/**
 * A button; `keys` are shown beside its label.
 * @param {{ children: Child, keys?: string, kind?: string } & Record<string, unknown>} props
 */
export function Button({ children, keys, kind = "", ...more }) {
  return html`<button type="button" class=${`button ${kind}`} ...${more}>${children}${keys && html`<kbd>${keys}</kbd>`}</button>`;
}

/**
 * What is shown where nothing is: what would stand here, and one command that brings it.
 * @param {{ title: string, children: Child }} props
 */
export function Empty({ title, children }) {
  return html`<div class="empty"><p class="empty-title">${title}</p>${children}</div>`;
}

// Dialogs

/**
 * A dialog over the page; Escape, a click beside it and the way back close it, and the focus goes back.
 * @param {{ title: string, onClose: () => void, children: Child, wide?: boolean, name?: string }} props
 */
export function Dialog({ title, onClose, children, wide = false, name = "" }) {
  /** @type {Ref<HTMLDialogElement>} */
  const place = useRef(null);
  useLayoutEffect(() => {
    const dialog = place.current;
    const before = document.activeElement;
    dialog.showModal();
    /** @type {HTMLElement | null} */
    const first =
      dialog.querySelector("[data-first]") ?? dialog.querySelector("input, textarea, select, button:not(.close)");
    first?.focus();
    return () => {
      if (dialog.open) dialog.close();
      if (before instanceof HTMLElement && before.isConnected) before.focus();
    };
  }, []);
  const close = useRef(onClose);
  close.current = onClose;
  useEffect(() => {
    const here = location.hash;
    return hear(window, { hashchange: () => location.hash !== here && close.current() });
  }, []);
  /** @param {MouseEvent} event */
  const outside = (event) => {
    if (event.target !== place.current) return;
    const { left, right, top, bottom } = place.current.getBoundingClientRect(); // its own bar to scroll is inside
    if (event.clientX < left || event.clientX > right || event.clientY < top || event.clientY > bottom) onClose();
  };
  /** @param {Event} event */
  const cancel = (event) => {
    event.preventDefault();
    onClose();
  };
  return html`<dialog ref=${place} class=${`dialog ${wide ? "wide" : ""} ${name}`} aria-label=${title} onCancel=${cancel} onMouseDown=${outside}>
    <header class="dialog-head"><h2>${title}</h2><button type="button" class="button quiet close" aria-label="Close" onClick=${onClose}>✕</button></header>
    ${children}
  </dialog>`;
}

const PLAIN = { body: "", action: "Go on", text: null, value: "", danger: false, required: false };
/** @type {(Required<Asked> & { answer(said: string | true | null): void }) | null} */
let asking = null;

/**
 * Ask a person whether to go on; resolves to what was typed (or true), or null. `text`: the label of a field, if one is
 * wanted.
 * @template {Asked} T
 * @param {T} asked
 * @returns {Promise<(T extends { text: string } ? string : true) | null>}
 */
export function confirm(asked) {
  return new Promise((answer) => {
    const answers = /** @type {(said: string | true | null) => void} */ (answer);
    asking = { ...PLAIN, ...asked, answer: answers };
    touch("asking");
  });
}

/** The place where `confirm` asks. */
export function Asking() {
  const [, again] = useState(0);
  useLayoutEffect(() => listen(["asking"], () => again((count) => count + 1)), []);
  const [typed, setTyped] = useState(/** @type {string | null} */ (null));
  if (!asking) return null;
  const { title, body, action, text, value, danger, required, answer } = asking;
  const now = typed ?? value;
  /** @param {string | true | null} said */
  const end = (said) => {
    asking = null;
    setTyped(null);
    again((count) => count + 1);
    answer(said);
  };
  /** @param {Event} event */
  const go = (event) => {
    event.preventDefault();
    if (!required || now.trim()) end(text === null ? true : now.trim());
  };
  return html`<${Dialog} title=${title} onClose=${() => end(null)}>
    <form onSubmit=${go}>
      ${body && html`<p class="dialog-text as-written"><${Words} text=${body} /></p>`}
      ${
        text !== null &&
        html`<label class="field"><span>${text}</span><textarea rows="3" data-first value=${now} onInput=${(event) => setTyped(event.target.value)}
        onKeyDown=${(event) => event.key === "Enter" && (event.ctrlKey || event.metaKey) && go(event)}></textarea></label>`
      }
      <footer class="dialog-foot"><${Button} onClick=${() => end(null)}>Cancel<//><button class=${`button ${danger ? "danger" : "primary"}`} type="submit">${action}</button></footer>
    </form>
  <//>`;
}

// Notes at the edge

/** @type {PageNote[]} */
let notes = [];
let noted = 0;

/**
 * Say something in passing; `undo` offers to take it back, `bad` says that it went wrong.
 * @param {string} text
 * @param {{ undo?: (() => unknown) | null, hint?: string, bad?: boolean }} [props]
 */
export function note(text, { undo = null, hint = "", bad = false } = {}) {
  const id = ++noted;
  notes = [...notes, { id, text, undo, hint, bad, place: whereabouts().place }].slice(-4);
  touch("notes");
  setTimeout(
    () => {
      notes = notes.filter((each) => each.id !== id);
      touch("notes");
    },
    bad ? 12000 : undo ? 10000 : 5000,
  );
}

const PATIENCE = 3000;

/** Wait a moment for a connection that is lost; says whether it is back. */
async function isConnected() {
  const begun = Date.now();
  while (state.connection.state === "lost" && Date.now() - begun < PATIENCE)
    await new Promise((go) => setTimeout(go, 100));
  return state.connection.state !== "lost";
}

/** @type {Set<Promise<unknown>>} */
const underWay = new Set();

/**
 * Do something and say what went wrong, if it did; returns what it returned, or undefined.
 * @template T
 * @param {() => T | Promise<T>} work
 * @param {string | null} [done]
 * @returns {Promise<T | null | undefined>}
 */
export function attempt(work, done = null) {
  const mine = attemptNow(work, done);
  underWay.add(mine);
  mine.finally(() => setTimeout(() => underWay.delete(mine))); // whoever did it notes first how to take it back
  return mine;
}

/**
 * @template T
 * @param {() => T | Promise<T>} work
 * @param {string | null} done
 * @returns {Promise<T | null | undefined>}
 */
async function attemptNow(work, done) {
  if (!(await isConnected())) {
    note("The connection is lost, so nothing was done.", { hint: "Try it again when the page is live.", bad: true });
    return undefined;
  }
  try {
    const value = await work();
    if (done) note(done);
    return value ?? null;
  } catch (error) {
    const { message, hint = "" } = /** @type {Trouble} */ (error);
    note(message, { hint, bad: true });
    return undefined;
  }
}

/** The place where notes are shown. */
export function Notes() {
  useTopics("notes");
  useEffect(() => {
    const move = () => {
      notes = keptAt(notes, whereabouts().place);
      touch("notes");
    };
    return hear(window, { hashchange: move });
  }, []);
  /** @param {number} id */
  const drop = (id) => {
    notes = notes.filter((each) => each.id !== id);
    touch("notes");
  };
  const last = () => notes.findLast(({ undo }) => undo !== null);
  const takeBack = async () => {
    while (underWay.size) await Promise.allSettled([...underWay, new Promise((go) => setTimeout(go))]);
    const newest = last(); // what was done last may have been on its way when the key was pressed
    if (newest === undefined) return;
    drop(newest.id);
    newest.undo?.();
  };
  const canTakeBack = () => underWay.size > 0 || last() !== undefined;
  useCommands(
    [{ label: "Undo", group: "Page", keys: "z", within: "body", unlisted: true, when: canTakeBack, run: takeBack }],
    [],
  );
  return html`<div class="notes" role="status" aria-live="polite">
    ${notes.map(
      ({ id, text, hint, undo, bad }) => html`<div class=${`note row raised ${bad ? "bad" : ""}`} key=${id}>
      <div><${Words} text=${text} />${hint && html`<small><${Words} text=${hint} /></small>`}</div>
      ${
        undo &&
        html`<${Button} onClick=${() => {
          drop(id);
          undo();
        }} keys="z">Undo<//>`
      }
      <button type="button" class="button quiet" aria-label="Dismiss" onClick=${() => drop(id)}>✕</button>
    </div>`,
    )}
  </div>`;
}

// Long lists

/**
 * A list of which only what can be seen is drawn: `rows`, each `size` pixels high, drawn by `draw(row, index)`.
 * `focus`: the index of a row that has to be in view.
 * @template T
 * @param {{ rows: T[], size: number, draw: (row: T, index: number) => Child, class?: string, focus?: number | null, label: string, role?: string, more?: number }} props
 */
export function Long({ rows, size, draw, class: name = "", focus = null, label, role = "list", more = 6 }) {
  const place = useRef(null);
  const [view, setView] = useState({ top: 0, height: 800 });
  useLayoutEffect(() => {
    const element = place.current;
    const see = () =>
      setView((before) => {
        const top = Math.floor(element.scrollTop / size) * size;
        return before.top === top && before.height === element.clientHeight
          ? before
          : { top, height: element.clientHeight };
      });
    return watch(element, see);
  }, [size]);
  useLayoutEffect(() => {
    if (focus === null || focus < 0) return;
    const element = place.current;
    if (focus * size < element.scrollTop) element.scrollTop = focus * size;
    else if ((focus + 1) * size > element.scrollTop + element.clientHeight)
      element.scrollTop = (focus + 1) * size - element.clientHeight;
  }, [focus]);
  const first = Math.max(0, Math.floor(view.top / size) - more);
  const last = Math.min(rows.length, Math.ceil((view.top + view.height) / size) + more);
  return html`<div class=${`long ${name}`} ref=${place} role=${role} aria-label=${label} tabindex="-1">
    <div class="long-inside" style=${{ height: `${rows.length * size}px` }} role="presentation">
      <div class="long-shown" style=${{ transform: `translateY(${first * size}px)` }} role="presentation">
        ${rows.slice(first, last).map((row, i) => draw(row, first + i))}
      </div>
    </div>
  </div>`;
}
