// All settings with their meaning and where they are changed, and a way to try the gate on main.
import { html, useEffect, useState } from "../lib.js";
import { get, post } from "../data/api.js";
import { inGroup, useCommands } from "../widgets/keys.js";
import { GateLog, Progress } from "../queue/merge.js";
import { useNow } from "../widgets/view_hooks.js";
import { useRead } from "../data/store.js";
import { attempt, Button, State, Words } from "../widgets/ui.js";
/** @import { SettingRow, SettingTable, SettingsShown } from "types/rest.js" */
/** @import { GateRun } from "types/page.js" */

const on = inGroup("Settings");

const EVERY = 5000;
/**
 * The gate that was tried last here: it is shown again when somebody comes back.
 * @type {string | null}
 */
let tried = null;

export function View() {
  const [found, problem] = useRead(() => get("/api/settings"), ["connection"], [useNow(EVERY)]); // nobody tells of a file that was saved
  const [text, setText] = useState("");
  const [own, setOwn] = useState(false);
  useCommands(
    [
      on("Search the settings", "/", () => document.querySelector(".settings-search")?.focus()),
      on(own ? "Show all settings" : "Show only what is set", "x", () => setOwn(!own)),
    ],
    [own],
  );
  if (!found) return html`<p class="loading" aria-busy=${!problem}>${problem ? problem.message : "…"}</p>`;
  const shown = found.tables
    .map((table) => ({
      ...table,
      settings: table.settings.filter((each) => fits(table, each, text.toLowerCase(), own)),
    }))
    .filter(({ settings }) => settings.length);
  return html`<div class="sheet settings-view">
    <header class="sheet-head row">
      <p class="settings-file soft">Changed in <code><${Words} text=${found.file} /></code>; a change counts as soon as it is saved.</p>
      <input type="search" class="settings-search" aria-label="Search the settings" placeholder="Search settings" value=${text} onInput=${(event) => setText(event.target.value)} />
      <${Button} aria-pressed=${own} onClick=${() => setOwn(!own)}>Only what is set<//>
    </header>
    <div class="sheet-body">
      ${found.problem && html`<p class="settings-problem" role="alert"><${State} name="failed" /> <span><b>covey.toml is not valid as it is now;</b> what is shown here stays in force until it is mended. <${Words} text=${found.problem} /></span></p>`}
      <${Gate} check=${settingOf(found, "merge", "check")} />
      <div class="setting-tables">${shown.map((table) => html`<${Table} key=${table.name} table=${table} agent=${found.agent} />`)}</div>
      ${!shown.length && html`<p class="faint">No setting has this in it.</p>`}
    </div>
  </div>`;
}

/**
 * @param {SettingTable} table
 * @param {SettingRow} setting
 * @param {string} text
 * @param {boolean} own
 */
function fits(table, setting, text, own) {
  if (own && !setting.is_set) return false;
  return (
    !text ||
    [`${table.name}.${setting.name}`, table.title, setting.value, setting.meaning].some((words) =>
      words.toLowerCase().includes(text),
    )
  );
}

/**
 * @param {SettingsShown} found
 * @param {string} table
 * @param {string} name
 */
function settingOf(found, table, name) {
  const row = found.tables.find((each) => each.name === table)?.settings.find((each) => each.name === name);
  return row && row.value !== row.default ? JSON.parse(row.value) : "";
}

/**
 * A value as it would be written, and in a word if it is empty.
 * @param {{ text: string }} props
 */
function Value({ text }) {
  return EMPTY.has(text)
    ? html`<span class="setting-value faint">none</span>`
    : html`<code class="setting-value"><${Words} text=${text} most=${600} /></code>`;
}

const EMPTY = new Set(['""', "[]", "{}"]);

/** @param {{ table: SettingTable, agent: string }} props */
function Table({ table, agent }) {
  const id = `settings-${table.name}`;
  return html`<section class="setting-table" aria-labelledby=${id}>
    <h2 id=${id}>${table.title} <code><${Words} text=${`[${table.name}]`} /></code></h2>
    <dl class="boxed">${table.settings.map(
      (each) => html`<div key=${each.name} class=${each.is_set ? "is-set" : ""}>
      <dt><code><${Words} text=${each.name} /></code></dt>
      <dd><${Value} text=${each.name === "agent" && !each.is_set ? `"${agent}"` : each.value} />
        <span class="setting-meaning soft">${each.meaning}</span>
        <span class="setting-where faint">${where(each)}</span></dd>
    </div>`,
    )}</dl>
  </section>`;
}

/** @param {SettingRow} props */
function where({ is_set, line, value, default: usual }) {
  if (!is_set) return "default";
  return `${line ? `line ${line}` : "set"}${value === usual ? "" : `, by default ${EMPTY.has(usual) ? "none" : usual}`}`;
}

// The gate, tried

/** @type {Record<string, string>} */
const VERDICTS = { works: "passed", empty: "needs-you", fails: "failed", broken: "failed", lost: "stopped" };

/** @param {{ check: string }} props */
function Gate({ check }) {
  const [id, setId] = useState(tried);
  const [gate] = useRead(async () => (id ? get(`/api/gates/${id}`) : running()), ["merges", "connection"], [id]);
  /** @param {string} found */
  const keep = (found) => {
    tried = found;
    setId(found);
  };
  useEffect(() => {
    if (gate && gate.id !== id) keep(gate.id);
  }, [gate?.id]);
  const runs = gate?.state === "running";
  const begin = async () => {
    const begun = await attempt(() => post("/api/gates/try"));
    if (begun) keep(begun.id);
  };
  const stop = () => attempt(() => post(`/api/gates/${gate?.id}/stop`), "The try was called off.");
  useCommands(
    [
      on("Try the gate now", "t", begin, { when: () => check !== "" && !runs }),
      on("Stop trying the gate", "s", stop, { when: () => runs }),
    ],
    [check, gate?.id, runs],
  );
  return html`<section class="gate-try boxed" aria-labelledby="gate-try-title">
    <header><h2 id="gate-try-title">The gate</h2>
      ${check ? html`<code class="setting-value"><${Words} text=${check} most=${600} /></code>` : html`<span class="soft">None is set: what agents hand in waits for your review, and lands untested. <code>covey init --check</code> tries what seems to test this repository.</span>`}
      ${runs ? html`<${Button} keys="s" onClick=${stop}>Stop<//>` : check !== "" && html`<${Button} kind="primary" keys="t" onClick=${begin}>Try the gate now<//>`}
    </header>
    <div role="status">${gate && html`<${Tried} key=${gate.id} gate=${gate} runs=${runs} />`}</div>
    ${gate && html`<${Said} key=${gate.id} gate=${gate} runs=${runs} />`}
  </section>`;
}

const running = async () => (await get("/api/queue")).running.find(({ purpose }) => purpose === "try") ?? null;

/** @param {{ gate: GateRun, runs: boolean }} props */
function Tried({ gate, runs }) {
  if (runs)
    return html`<p><${State} name="testing" word /> <span class="soft">main at <span class="mono">${gate.commit.slice(0, 12)}</span>, as the merge queue would</span></p>`;
  return html`<p class="gate-told"><${State} name=${VERDICTS[gate.verdict ?? ""] ?? "stopped"} word /> <${Words} text=${gate.told} most=${600} /></p>
    ${gate.failures.length > 0 && html`<p class="soft">Failed: <${Words} text=${gate.failures.slice(0, 5).join(", ")} most=${600} />${gate.failures.length > 5 ? ` and ${gate.failures.length - 5} more` : ""}</p>`}
    ${gate.advice && html`<p class="soft"><${Words} text=${gate.advice} most=${2000} /></p>`}`;
}

/**
 * What a try prints: while it runs, and afterwards if it did not work.
 * @param {{ gate: GateRun, runs: boolean }} props
 */
function Said({ gate, runs }) {
  const [shown, setShown] = useState(/** @type {boolean | null} */ (null));
  const open = shown ?? (runs || ["fails", "broken"].includes(gate.verdict ?? ""));
  return html`${runs && html`<${Progress} gate=${gate} usual=${null} />`}
    <${Button} kind="quiet" aria-expanded=${open} onClick=${() => setShown(!open)}>${open ? "Hide log" : "Log"}<//>
    ${open && html`<${GateLog} key=${gate.state} id=${gate.id} />`}`;
}
