// Adding and editing tasks: a one-line field for many in a row, and the full form.
import { html, useEffect, useLayoutEffect, useMemo, useRef, useState } from "../lib.js";
import { get } from "../data/api.js";
import { readTask, splitNeeds } from "../rules/columns.js";
import { add, edit } from "./task_actions.js";
import { state } from "../data/store.js";
import { attempt, Button, confirm, Dialog, State } from "../widgets/ui.js";
import { isInRows } from "../rules/task_fields.js";
import { visible } from "../rules/text.js";
/** @import { Changes, Choice, FormTask, NewTaskColumn, Task } from "types/page.js" */
/** @import { Ref, SetState } from "types/vendor/hooks.js" */
/** @import { PageEvent } from "types/vendor/htm.js" */

// One line

/**
 * A line at the head of a column: Enter adds a task and stays, Ctrl+Enter opens the form with what was typed.
 * @param {{ status: NewTaskColumn, onClose: () => void, onForm: (values: Partial<Task>) => void, onAdded: (task: Task) => void }} props
 */
export function QuickAdd({ status, onClose, onForm, onAdded }) {
  const [text, setText] = useState("");
  const [busy, setBusy] = useState(0);
  /** @type {Ref<HTMLInputElement>} */
  const field = useRef(null);
  useLayoutEffect(() => field.current.focus(), []); // at once: the next key is the first letter
  const read = useMemo(() => ({ status, ...readTask(text) }), [text, status]);
  const send = async () => {
    if (!read.title) return;
    setText("");
    setBusy((count) => count + 1);
    const added = await add(read);
    setBusy((count) => count - 1);
    if (added) onAdded(added);
    else setText((now) => now || text);
  };
  /** @param {PageEvent} event */
  const press = (event) => {
    if (event.key === "Escape") onClose();
    else if (event.key !== "Enter" || event.isComposing) return;
    else if (event.ctrlKey || event.metaKey) onForm(read);
    else send();
    event.preventDefault();
    event.stopPropagation();
  };
  const parts = Object.entries(read).filter(([name]) => name !== "title" && name !== "status");
  return html`<div class="quick-add">
    <input ref=${field} aria-label=${`New task in ${status === "backlog" ? "Backlog" : "To do"}`} placeholder="New task: title p5 @session role:docs" value=${text} maxlength="500" aria-busy=${busy > 0}
      autocomplete="off" onInput=${(event) => setText(event.target.value)} onKeyDown=${press} onBlur=${() => !text && onClose()} />
    <div class="quick-hint">${parts.length ? parts.map(([name, value]) => html`<span class="board-token"><b>${name}</b> <bdi>${visible(String(value), 40)}</bdi></span>`) : html`<span class="with-keys"><kbd>Enter</kbd> adds</span><span class="with-keys"><kbd>Ctrl+Enter</kbd> form</span><span class="with-keys"><kbd>Esc</kbd> ends</span>`}</div>
  </div>`;
}

// The form

const LISTS = ["needs", "needs_any", "scope", "do_not_touch", "done_when"];
const NAMES = ["assignee", "role", "parent"];
/** @type {FormTask} */
const EMPTY = {
  title: "",
  body: "",
  kind: "change",
  status: "todo",
  assignee: null,
  role: null,
  priority: 0,
  needs: [],
  needs_any: [],
  parent: null,
  scope: [],
  do_not_touch: [],
  overlap: false,
  done_when: [],
  budget: null,
};

/**
 * @param {string} name
 * @param {unknown} value
 */
const toText = (name, value) =>
  LISTS.includes(name)
    ? /** @type {string[]} */ (value).join(name.startsWith("needs") ? " " : "\n")
    : /** @type {string} */ (value ?? "");

/**
 * @param {string} name
 * @param {string} text
 */
function toValue(name, text) {
  if (name.startsWith("needs"))
    return text
      .toUpperCase()
      .split(/[\s,]+/)
      .filter(Boolean);
  if (LISTS.includes(name))
    return text
      .split("\n")
      .map((line) => line.trim())
      .filter(Boolean);
  if (NAMES.includes(name)) return text.trim() || null;
  if (name === "priority") return Number.parseInt(text, 10) || 0;
  if (name === "budget") return text === "" || text === null ? null : Number(text);
  return text;
}

/**
 * Return what of a task's fields the form's texts change.
 * @param {FormTask} before
 * @param {Record<string, string>} texts
 */
function changesOf(before, texts) {
  /** @type {Record<string, unknown>} */
  const changes = {};
  for (const [name, text] of Object.entries(texts)) {
    const value = toValue(name, text);
    if (JSON.stringify(value) !== JSON.stringify(before[name] ?? (LISTS.includes(name) ? [] : null)))
      changes[name] = value;
  }
  // Needs that may be dropped are told among all needs too: each is sent in one list only.
  if ("needs" in changes || "needs_any" in changes) {
    const any = /** @type {string[]} */ (
      toValue("needs_any", texts.needs_any ?? toText("needs_any", before.needs_any))
    );
    changes.needs_any = any;
    const all = /** @type {string[]} */ (toValue("needs", texts.needs ?? toText("needs", before.needs)));
    changes.needs = all.filter((need) => !any.includes(need));
  }
  return changes;
}

/** @param {{ id: string }} props */
function Names({ id }) {
  const names =
    id === "sessions"
      ? [...state.sessions.keys()]
      : [...new Set([...state.tasks.values()].map((task) => task.role).filter(Boolean))].slice(0, 200);
  return html`<datalist id=${`names-${id}`}>${names.map((name) => html`<option value=${name} />`)}</datalist>`;
}

/**
 * Return what is known at once of a task that is to be edited, null if nothing is; without an id, a new one.
 * @param {string | null} id
 * @returns {FormTask | null}
 */
function known(id) {
  if (id === null) return EMPTY;
  const task = state.tasks.get(id);
  return task ? { ...EMPTY, ...splitNeeds(task), partial: true } : null;
}

/**
 * The whole form: with an `id` it edits that task, else it adds one that begins with `values`.
 * @param {{ id?: string | null, values?: Partial<Task>, onClose: () => void }} props
 */
export function TaskForm({ id = null, values = {}, onClose }) {
  // What the board knows is there at once; what only the whole task says comes a moment later.
  const [before, setBefore] = useState(() => known(id));
  /** @type {[Record<string, string>, SetState<Record<string, string>>]} */
  const [texts, setTexts] = useState(() =>
    id === null ? Object.fromEntries(Object.entries(values).map(([name, value]) => [name, toText(name, value)])) : {},
  );
  const [busy, setBusy] = useState(false); // from the moment when somebody said "save"
  useEffect(() => {
    if (id !== null)
      attempt(() => get(`/api/board/${id}`)).then((task) => (task ? setBefore(splitNeeds(task)) : onClose()));
  }, [id]);
  /** @param {string} name */
  const text = (name) => texts[name] ?? toText(name, before?.[name]);
  const send = async () => {
    const done =
      id === null || before === null
        ? await add({ ...changesOf(EMPTY, texts), title: text("title").trim() })
        : await saveEdit(id, before, changesOf(before, texts));
    setBusy(false);
    if (done) onClose();
  };
  useEffect(() => {
    if (busy && !before?.partial) send(); // or once the whole task is there
  }, [busy, before]);
  if (before === null || busy) return null; // while it is saved, keys belong to the board again; if that fails, it is back
  const isPartial = Boolean(before.partial);
  const waits = ["backlog", "todo", "blocked", "dropped"].includes(before.status ?? "");
  /** @param {string} name */
  const set = (name) => (/** @type {PageEvent} */ event) => {
    const value = event.target.type === "checkbox" ? event.target.checked : event.target.value;
    setTexts((now) => ({ ...now, [name]: /** @type {string} */ (value) })); // of a box, whether it is ticked
  };
  const leave = async () => {
    const dirty =
      id === null
        ? Boolean(text("title").trim() || text("body").trim())
        : Object.keys(changesOf(before, texts)).length > 0;
    if (
      !dirty ||
      (await confirm({
        title: "Close without saving?",
        body: "What you wrote would be lost.",
        action: "Close",
        danger: true,
      }))
    )
      onClose();
  };
  /** @param {PageEvent} event */
  const save = (event) => {
    event.preventDefault();
    if (text("title").trim()) setBusy(true);
  };
  /** @param {PageEvent} event */
  const press = (event) => (event.ctrlKey || event.metaKey) && event.key === "Enter" && save(event);
  /**
   * @param {string} name
   * @param {string} label
   * @param {Record<string, unknown>} [more]
   */
  function field(name, label, more = {}, hint = "") {
    return html`<label class=${`field ${more.wide ? "wide" : ""}`}><span>${label}${hint && html` <small class="faint">${hint}</small>`}</span>
    <input value=${text(name)} onInput=${set(name)} autocomplete="off" spellcheck=${false} ...${more} /></label>`;
  }
  /**
   * @param {string} name
   * @param {string} label
   * @param {number} rows
   */
  function area(name, label, rows, hint = "", wide = "wide") {
    return html`<label class=${`field ${wide}`}><span>${label}${hint && html` <small class="faint">${hint}</small>`}</span>
    <textarea rows=${rows} value=${text(name)} onInput=${set(name)} spellcheck=${name === "body"} disabled=${isPartial && !isInRows(name)}></textarea></label>`;
  }
  return html`<${Dialog} title=${id === null ? "New task" : `Edit ${id}`} onClose=${leave} wide name="task-form">
    <form onSubmit=${save} onKeyDown=${press}>
      <div class="form-grid">
        <label class="field wide"><span>Title</span><input data-first required maxlength="500" value=${text("title")} onInput=${set("title")} autocomplete="off" /></label>
        ${area("body", "What to do", 7)}
        ${field("assignee", "Session", { list: "names-sessions", placeholder: "whoever comes" })}
        ${field("role", "Role", { list: "names-role" })}
        ${field("priority", "Priority", { type: "number" }, "larger first")}
        <label class="field"><span>Stands in</span><select value=${waits ? text("status") : before.status} onChange=${set("status")} disabled=${!waits}>
          <option value="todo">To do</option><option value="backlog">Backlog</option>${!["todo", "backlog"].includes(before.status ?? "") && html`<option value=${before.status}>${before.status}</option>`}</select></label>
        <label class="field"><span>Ends in</span><select value=${text("kind")} onChange=${set("kind")}><option value="change">a change on main</option><option value="report">a report</option></select></label>
        ${field("needs", "Needs", { placeholder: "AF-3 AF-4" }, "tasks that must land first")}
        ${field("needs_any", "Needs, unless dropped")}
        ${field("parent", "Part of", { placeholder: "AF-1" })}
        ${area("scope", "May change", 2, "globs, one a line", "form-half")}
        ${area("do_not_touch", "Must not touch", 2, "globs", "form-half")}
        ${area("done_when", "Done when", 2, "one check a line")}
        ${field("budget", "Budget", { type: "number", step: "0.01", min: "0", disabled: isPartial }, "dollars")}
        <label class="form-check"><input type="checkbox" checked=${Boolean(texts.overlap ?? before.overlap)} onChange=${set("overlap")} /> May write the same files as others at work</label>
      </div>
      <${Names} id="sessions" /><${Names} id="role" />
      <footer class="dialog-foot"><${Button} onClick=${leave}>Cancel<//><button class="button primary" type="submit">${id === null ? "Add task" : "Save"}<kbd>Ctrl+Enter</kbd></button></footer>
    </form>
  <//>`;
}

/**
 * Save changes, unless somebody changed the same meanwhile and a person does not want to write over it.
 * @param {string} id
 * @param {FormTask} before
 * @param {Changes} changes
 */
async function saveEdit(id, before, changes) {
  const names = Object.keys(changes);
  if (!names.length) return before;
  const now = await attempt(async () => splitNeeds(await get(`/api/board/${id}`)));
  if (!now) return null;
  const clash = names.filter(
    (name) => JSON.stringify(now[/** @type {keyof Task} */ (name)]) !== JSON.stringify(before[name]),
  );
  if (
    clash.length &&
    !(await confirm({
      title: "Somebody changed this meanwhile",
      body: `Changed since you opened it: ${clash.join(", ")}.`,
      action: "Write over it",
      danger: true,
    }))
  )
    return null;
  return (await edit([id], changes, `${id} edited`, new Map([[id, now]]))) ? now : null;
}

// Choosing

/**
 * A dialog to choose one of some names, or to type a new one: `options` are {value, label, state}.
 * @param {{ title: string, label: string, options: Choice[], free?: boolean, onChoose: (value: string | null) => void, onClose: () => void }} props
 */
export function Choose({ title, label, options, free = false, onChoose, onClose }) {
  const [text, setText] = useState("");
  const [at, setAt] = useState(0);
  const found = options.filter((option) => option.label.toLowerCase().includes(text.toLowerCase())).slice(0, 50);
  /** @type {Choice[]} */
  const typed =
    free && text.trim() && !options.some(({ value }) => value === text.trim())
      ? [{ value: text.trim(), label: text.trim(), free: true }]
      : [];
  const all = [...found, ...typed];
  const current = Math.min(at, all.length - 1);
  /** @param {Choice | undefined} option */
  const choose = (option) => {
    if (!option) return;
    onClose();
    onChoose(option.value);
  };
  /** @param {PageEvent} event */
  const press = (event) => {
    const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (by) setAt((all.length + current + by) % Math.max(1, all.length));
    else if (event.key === "Enter") choose(all[current]);
    else return;
    event.preventDefault();
  };
  return html`<${Dialog} title=${title} onClose=${onClose} name="choose">
    <div class="dialog-body">
      <input data-first role="combobox" aria-label=${label} aria-expanded="true" aria-controls="choose-list" aria-activedescendant=${all.length ? `choose-${current}` : undefined} aria-autocomplete="list"
        placeholder=${label} value=${text} autocomplete="off" onInput=${(event) => {
          setText(event.target.value);
          setAt(0);
        }} onKeyDown=${press} />
      ${
        all.length
          ? html`<div id="choose-list" class="choose-list" role="listbox" aria-label=${label}>
        ${all.map(
          (
            option,
            index,
          ) => html`<div role="option" id=${`choose-${index}`} key=${String(option.value)} aria-selected=${index === current} class=${index === current ? "at" : ""} onMouseMove=${() => index !== at && setAt(index)} onClick=${() => choose(option)}>
          ${option.state && html`<${State} name=${option.state} />`}<bdi>${visible(option.label, 80)}</bdi>${option.more && html`<small class="faint"><bdi>${visible(option.more, 60)}</bdi></small>`}${option.free && html`<small class="faint">new</small>`}
        </div>`,
        )}
      </div>`
          : html`<p class="soft" id="choose-list">Nothing fits.</p>`
      }
    </div>
  <//>`;
}
