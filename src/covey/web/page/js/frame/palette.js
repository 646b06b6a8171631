// The command palette, and the help that lists all keys that do something now.
import { html, useEffect, useLayoutEffect, useMemo, useRef, useState } from "../lib.js";
import { fit } from "../rules/fuzzy.js";
import { approvals } from "../inbox/inbox_list.js";
import { inGroup, offered, spell, useCommands } from "../widgets/keys.js";
import { go } from "../data/routes.js";
import { sessionCommands } from "../sessions/session_dialog.js";
import { listen, state } from "../data/store.js";
import { Dialog, State, Words } from "../widgets/ui.js";
/** @import { Command, PaletteEntry, Session, Task } from "types/page.js" */
/** @import { PageEvent } from "types/vendor/htm.js" */

const on = inGroup("Page");

const MOST = 40;

/** @type {WeakMap<Task, string>} */
const folded = new WeakMap();

/**
 * Return what a task is found by; made once for each version of it.
 * @param {Task} task
 */
function wordsOf(task) {
  let text = folded.get(task);
  if (text === undefined) {
    text = `${task.id} ${task.title} ${task.session ?? ""}`.slice(0, 300).toLowerCase();
    folded.set(task, text);
  }
  return text;
}

/**
 * @param {number} score
 * @param {number} by
 */
const better = (score, by) => (score > 0 ? score + by : 0);
const ENDED = new Set(["done", "dropped"]);

const entryOf = {
  command: (/** @type {Command} */ command) => ({
    key: `command ${command.group} ${command.label}`,
    title: command.label,
    side: command.group,
    keys: command.keys,
    run: command.run,
  }),
  session: (/** @type {Session} */ session) => ({
    key: `session ${session.name}`,
    title: session.name,
    side: "Session",
    state: session.state,
    run: () => go("sessions", session.name),
  }),
  task: (/** @type {Task} */ task) => ({
    key: `task ${task.id}`,
    id: task.id,
    title: task.title,
    side: task.session ?? "Task",
    state: task.status,
    run: () => go("board", task.id),
  }),
};

/**
 * Return where a command stands while nothing is typed: places first, as their tabs do, then what is usual, then what
 * can be done in this view.
 * @param {Command} props
 * @param {number} place
 */
function usualness({ group, usual }, place) {
  if (group === "Go to") return 20_000 + place;
  if (group === "Settings") return 1000 + place;
  return (usual ? 10_000 : 5000) + place;
}

/**
 * Return what fits best, the best first: commands, sessions and tasks. Only what is shown is made into entries.
 * @param {string} typed
 */
function found(typed) {
  const words = typed.toLowerCase().split(/\s+/).filter(Boolean);
  /** @type {{ score: number, entry: () => PaletteEntry }[]} */
  const all = [];
  /**
   * @template T
   * @param {number} score
   * @param {(what: T) => PaletteEntry} made
   * @param {T} what
   */
  const add = (score, made, what) => score > 0 && all.push({ score, entry: () => made(what) });
  /** @param {Command} command */
  const fitOf = ({ label, group = "", also = "" }) => better(fit(`${label} ${group} ${also}`.toLowerCase(), words), 3);
  const listed = offered().filter(({ unlisted }) => !unlisted);
  for (const [place, command] of listed.entries())
    add(words.length ? fitOf(command) : usualness(command, place), entryOf.command, command);
  if (words.length) {
    for (const command of [...approvals(), ...sessionCommands(typed)]) add(fitOf(command), entryOf.command, command);
    for (const session of state.sessions.values()) {
      const text = `${session.name} ${session.role ?? ""} session`.toLowerCase();
      add(better(fit(text, words), 1), entryOf.session, session);
    }
    for (const task of state.tasks.values())
      add(better(fit(wordsOf(task), words), ENDED.has(task.status) ? -15 : 0), entryOf.task, task);
  }
  all.sort((one, other) => other.score - one.score);
  /** @type {Map<string, PaletteEntry>} */
  const entries = new Map();
  for (const { entry: made } of all) {
    const entry = made();
    if (!entries.has(entry.key)) entries.set(entry.key, entry);
    if (entries.size === MOST) break;
  }
  return [...entries.values()];
}

/**
 * @param {{ entry: PaletteEntry, chosen: boolean, onChoose: () => void, onLook: () => void, place: number }} props
 */
function Option({ entry, chosen, onChoose, onLook, place }) {
  return html`<li id=${`palette-${place}`} role="option" aria-selected=${chosen} class="palette-option row" onMouseMove=${onLook} onClick=${onChoose}>
    ${entry.state ? html`<${State} name=${entry.state} />` : html`<svg viewBox="0 0 16 16" class="glyph faint" aria-hidden="true"><path d="M5.5 3.5 10 8l-4.5 4.5" /></svg>`}
    ${entry.id && html`<span class="mono faint">${entry.id}</span>`}
    <${Words} text=${entry.title} most=${160} class="palette-title one-line" />
    <span class="palette-side one-line"><bdi>${entry.side}</bdi></span>
    ${entry.keys && html`<kbd>${spell(entry.keys)}</kbd>`}
  </li>`;
}

/** @param {{ onClose: () => void }} props */
function Search({ onClose }) {
  const [typed, setTyped] = useState("");
  const [at, setAt] = useState(0);
  const list = useRef(null);
  const entries = useMemo(() => found(typed), [typed]);
  const place = Math.min(at, Math.max(0, entries.length - 1));
  useEffect(
    () => list.current?.querySelector("[aria-selected=true]")?.scrollIntoView({ block: "nearest" }),
    [place, entries],
  );
  /** @param {PaletteEntry} entry */
  const run = (entry) => {
    onClose();
    setTimeout(() => entry.run()); // after the focus has gone back
  };
  /** @type {Record<string, number>} */
  const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: 10, PageUp: -10 };
  /** @param {PageEvent} event */
  const press = (event) => {
    const by = steps[event.key] ?? (event.ctrlKey && (event.key === "n" ? 1 : event.key === "p" ? -1 : 0));
    if (by) {
      event.preventDefault();
      setAt(Math.min(entries.length - 1, Math.max(0, place + by)));
    } else if (event.key === "Enter" && entries[place]) {
      event.preventDefault();
      run(entries[place]);
    }
  };
  return html`<${Dialog} title="Find anything" name="palette" onClose=${onClose}>
    <div class="palette-search"><input type="text" role="combobox" aria-label="A command, task, session or view" placeholder="A command, task, session or view" aria-expanded="true" aria-controls="palette-list" aria-activedescendant=${entries.length ? `palette-${place}` : undefined}
      autocomplete="off" spellcheck=${false} data-first value=${typed} onInput=${(event) => {
        setTyped(event.target.value);
        setAt(0);
      }} onKeyDown=${press} /></div>
    <ul class="palette-list" id="palette-list" role="listbox" aria-label="Found" ref=${list}>
      ${entries.map((entry, index) => html`<${Option} key=${entry.key} entry=${entry} place=${index} chosen=${index === place} onLook=${() => setAt(index)} onChoose=${() => run(entry)} />`)}
    </ul>
    ${!entries.length && html`<p class="palette-none" role="status">Nothing is called that.</p>`}
  <//>`;
}

/**
 * All keys that do something now, group by group.
 * @param {{ onClose: () => void }} props
 */
function Help({ onClose }) {
  /** @type {Map<string, Command[]>} */
  const groups = new Map();
  /** @type {Set<string>} */
  const known = new Set();
  for (const command of offered()) {
    if (!command.keys || command.unlisted === "always" || known.has(`${command.group} ${command.label}`)) continue;
    known.add(`${command.group} ${command.label}`);
    const group = command.group ?? "Here";
    groups.set(group, [...(groups.get(group) ?? []), command]);
  }
  return html`<${Dialog} title="Keyboard" name="help" wide=${true} onClose=${onClose}>
    <div class="help-groups">${[...groups].reverse().map(
      ([group, commands]) => html`<section key=${group}><h3>${group}</h3><dl>
      ${[...commands].reverse().map((command) => html`<div key=${command.label}><dt>${command.label}</dt><dd>${[command.keys ?? []].flat().map((keys) => html`<kbd key=${keys}>${spell(keys)}</kbd>`)}</dd></div>`)}
    </dl></section>`,
    )}</div>
  <//>`;
}

/** Where the palette and the help open. */
export function Palette() {
  const [shown, setShown] = useState(/** @type {"search" | "help" | null} */ (null));
  useLayoutEffect(() => {
    const ends = [listen(["palette"], () => setShown("search")), listen(["help"], () => setShown("help"))];
    return () => ends.forEach((end) => end());
  }, []);
  useCommands(
    [
      on("Find anything", "mod+k", () => setShown((now) => (now === "search" ? null : "search")), { always: true }),
      on("Keyboard help", "?", () => setShown("help"), { usual: true }),
    ],
    [],
  );
  if (shown === "search") return html`<${Search} onClose=${() => setShown(null)} />`;
  if (shown === "help") return html`<${Help} onClose=${() => setShown(null)} />`;
  return null;
}
