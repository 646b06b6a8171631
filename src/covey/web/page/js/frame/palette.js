// The palette: everything by name; and the help, which lists all keys that do something now.
import { html, useEffect, useMemo, useRef, useState } from "./lib.js";
import { fit } from "./fuzzy.js";
import { approvals } from "./inbox.js";
import { offered, spell, useCommands } from "./keys.js";
import { go } from "./places.js";
import { sessionCommands } from "./session_dialog.js";
import { listen, state } from "./store.js";
import { Dialog, State, Words } from "./ui.js";

const MOST = 40;

const folded = new WeakMap();

/** Return what a task is found by; made once for each version of it. */
function wordsOf(task) {
  let text = folded.get(task);
  if (text === undefined) folded.set(task, (text = `${task.id} ${task.title} ${task.session ?? ""}`.slice(0, 300).toLowerCase()));
  return text;
}

const better = (score, by) => (score > 0 ? score + by : 0);
const ENDED = new Set(["done", "dropped"]);

const entryOf = {
  command: (command) => ({ key: `command ${command.group} ${command.label}`, title: command.label, side: command.group, keys: command.keys, run: command.run }),
  session: (session) => ({ key: `session ${session.name}`, title: session.name, side: "Session", state: session.state, run: () => go("sessions", session.name) }),
  task: (task) => ({ key: `task ${task.id}`, id: task.id, title: task.title, side: task.session ?? "Task", state: task.status, run: () => go("board", task.id) }),
};

/** Return where a command stands while nothing is typed: places first, as their tabs do, then what is usual, then what can be done in this view. */
function usualness({ group, usual }, place) {
  if (group === "Go to") return 20_000 + place;
  if (group === "Settings") return 1000 + place;
  return (usual ? 10_000 : 5000) + place;
}

/** Return what fits best, the best first: commands, sessions and tasks. Only what is shown is made into entries. */
function found(typed) {
  const words = typed.toLowerCase().split(/\s+/).filter(Boolean);
  const all = [];
  const add = (score, kind, what) => score > 0 && all.push({ score, kind, what });
  for (const [place, command] of offered().filter(({ unlisted }) => !unlisted).entries()) {
    add(words.length ? better(fit(`${command.label} ${command.group ?? ""} ${command.also ?? ""}`.toLowerCase(), words), 3) : usualness(command, place), "command", command);
  }
  if (words.length) {
    for (const command of [...approvals(), ...sessionCommands(typed)]) add(better(fit(`${command.label} ${command.group} ${command.also ?? ""}`.toLowerCase(), words), 3), "command", command);
    for (const session of state.sessions.values()) add(better(fit(`${session.name} ${session.role ?? ""} session`.toLowerCase(), words), 1), "session", session);
    for (const task of state.tasks.values()) add(better(fit(wordsOf(task), words), ENDED.has(task.status) ? -15 : 0), "task", task);
  }
  all.sort((one, other) => other.score - one.score);
  const entries = new Map();
  for (const { kind, what } of all) {
    const entry = entryOf[kind](what);
    if (!entries.has(entry.key)) entries.set(entry.key, entry);
    if (entries.size === MOST) break;
  }
  return [...entries.values()];
}

function Option({ entry, chosen, onChoose, onLook, place }) {
  return html`<li id=${`palette-${place}`} role="option" aria-selected=${chosen} class="palette-option" onMouseMove=${onLook} onClick=${onChoose}>
    ${entry.state ? html`<${State} name=${entry.state} />` : html`<svg viewBox="0 0 16 16" class="glyph faint" aria-hidden="true"><path d="M5.5 3.5 10 8l-4.5 4.5" /></svg>`}
    ${entry.id && html`<span class="mono faint">${entry.id}</span>`}
    <${Words} text=${entry.title} most=${160} class="palette-title" />
    <span class="palette-side"><bdi>${entry.side}</bdi></span>
    ${entry.keys && html`<kbd>${spell(entry.keys)}</kbd>`}
  </li>`;
}

function Search({ onClose }) {
  const [typed, setTyped] = useState("");
  const [at, setAt] = useState(0);
  const list = useRef(null);
  const entries = useMemo(() => found(typed), [typed]);
  const place = Math.min(at, Math.max(0, entries.length - 1));
  useEffect(() => list.current?.querySelector("[aria-selected=true]")?.scrollIntoView({ block: "nearest" }), [place, entries]);
  const run = (entry) => {
    onClose();
    setTimeout(() => entry.run()); // after the focus has gone back
  };
  const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: 10, PageUp: -10 };
  const press = (event) => {
    const by = steps[event.key] ?? (event.ctrlKey && { n: 1, p: -1 }[event.key]);
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
      autocomplete="off" spellcheck=${false} data-first value=${typed} onInput=${(event) => { setTyped(event.target.value); setAt(0); }} onKeyDown=${press} /></div>
    <ul class="palette-list" id="palette-list" role="listbox" aria-label="Found" ref=${list}>
      ${entries.map((entry, index) => html`<${Option} key=${entry.key} entry=${entry} place=${index} chosen=${index === place} onLook=${() => setAt(index)} onChoose=${() => run(entry)} />`)}
    </ul>
    ${!entries.length && html`<p class="palette-none" role="status">Nothing is called that.</p>`}
  <//>`;
}

/** All keys that do something now, group by group. */
function Help({ onClose }) {
  const groups = new Map();
  const known = new Set();
  for (const command of offered()) {
    if (!command.keys || command.unlisted === "always" || known.has(`${command.group} ${command.label}`)) continue;
    known.add(`${command.group} ${command.label}`);
    const group = command.group ?? "Here";
    groups.set(group, [...(groups.get(group) ?? []), command]);
  }
  return html`<${Dialog} title="Keyboard" name="help" wide=${true} onClose=${onClose}>
    <div class="help-groups">${[...groups].reverse().map(([group, commands]) => html`<section key=${group}><h3>${group}</h3><dl>
      ${[...commands].reverse().map((command) => html`<div key=${command.label}><dt>${command.label}</dt><dd>${[command.keys].flat().map((keys) => html`<kbd key=${keys}>${spell(keys)}</kbd>`)}</dd></div>`)}
    </dl></section>`)}</div>
  <//>`;
}

/** Where the palette and the help open. */
export function Palette() {
  const [shown, setShown] = useState(null);
  useEffect(() => {
    const ends = [listen(["palette"], () => setShown("search")), listen(["help"], () => setShown("help"))];
    return () => ends.forEach((end) => end());
  }, []);
  useCommands([
    { label: "Find anything", group: "Page", keys: "mod+k", always: true, unlisted: false, run: () => setShown((now) => (now === "search" ? null : "search")) },
    { label: "Keyboard help", group: "Page", keys: "?", usual: true, run: () => setShown("help") },
  ], []);
  if (shown === "search") return html`<${Search} onClose=${() => setShown(null)} />`;
  if (shown === "help") return html`<${Help} onClose=${() => setShown(null)} />`;
  return null;
}
