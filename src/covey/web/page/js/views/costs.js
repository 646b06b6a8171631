// Costs by day, task, session and model. All are estimates from list prices and counted tokens.
import { html, useState } from "../lib.js";
import { get, query } from "../data/api.js";
import { Bars, Columns, Meter } from "../widgets/charts.js";
import { useTick } from "../widgets/view_hooks.js";
import { to } from "../data/routes.js";
import { state, useRead, useTopics } from "../data/store.js";
import { money, some, tokens } from "../rules/text.js";
import { Button, Empty, Words } from "../widgets/ui.js";
/** @import { CostRow, Costs } from "types/rest.js" */
/** @import { Bar, CostsBy } from "types/page.js" */

const SPANS = [
  { days: 1, title: "Today" },
  { days: 7, title: "7 days" },
  { days: 30, title: "30 days" },
  { days: 0, title: "All" },
];
const BY = ["day", "task", "session", "model"];
const MOST = 12;
const DAY = 86400000;

/**
 * Return a day of here as the daemon writes it.
 * @param {Date} date
 */
const dayOf = (date) =>
  `${date.getFullYear()}-${String(date.getMonth() + 1).padStart(2, "0")}-${String(date.getDate()).padStart(2, "0")}`;
/** @param {number} days */
const sinceOf = (days) => (days ? dayOf(new Date(Date.now() - (days - 1) * DAY)) : undefined);

export function View() {
  const [days, setDays] = useState(7);
  const tick = useTick(["runs", "connection"], 3000);
  const [found, problem] = useRead(
    async () => {
      const answers = await Promise.all(
        BY.map((by) => get(query("/api/costs", { by, since: sinceOf(days), limit: 400 }))),
      );
      return /** @type {CostsBy} */ (Object.fromEntries(BY.map((by, i) => [by, answers[i]])));
    },
    [],
    [days, tick],
  );
  return html`<div class="sheet costs">
    <header class="sheet-head row">
      <${Total} found=${found} />
      <div class="choice" role="group" aria-label="Since when">${SPANS.map(({ days: each, title }) => html`<${Button} key=${each} aria-pressed=${days === each} onClick=${() => setDays(each)}>${title}<//>`)}</div>
      <p class="faint">An estimate: counted tokens at the prices covey knows. Your provider's bill is what counts.</p>
    </header>
    ${problem && !found && html`<p class="loading">${problem.message}</p>`}
    ${found && !found.day.rows.length && html`<${Empty} title="No agent has told what it used in this time."><p>What runs use is counted as they say it: <code>covey cost</code> shows the same in a terminal.</p><//>`}
    ${
      found &&
      found.day.rows.length > 0 &&
      html`<div class="sheet-body charts">
      <section class="chart chart-wide boxed"><h2>By day</h2><${Days} costs=${found.day} days=${days} /></section>
      <section class="chart boxed"><h2>By task</h2><${Part} costs=${found.task} name=${taskName} href=${(key) => to("timeline", `task=${key}`)} /></section>
      <section class="chart boxed"><h2>By session</h2><${Part} costs=${found.session} href=${(key) => to("timeline", `session=${key}`)} /></section>
      <section class="chart boxed"><h2>By model</h2><${Part} costs=${found.model} name=${(key) => key || "not said"} /></section>
    </div>`
    }
  </div>`;
}

/** @param {string} key */
const taskName = (key) => `${key} ${state.tasks.get(key)?.title ?? ""}`.trim();
/** @param {CostRow} row */
const textOf = (row) => (row.cost || !row.tokens ? money(row.cost) : tokens(row.tokens));

/** @param {{ found: CostsBy | null }} props */
function Total({ found }) {
  useTopics("machine");
  const today = state.today;
  const total = found?.task.total;
  return html`<div class="totals row">
    ${total && total.runs > 0 && html`<p class="total"><strong>${money(total.cost)}</strong> <span class="soft">estimated, ${tokens(total.tokens)} tokens in ${some(total.runs, "run")}</span></p>`}
    ${today && html`<${Meter} value=${today.cost} most=${today.budget} label="Today" text=${today.budget ? `${money(today.cost)} of ${money(today.budget)}` : money(today.cost)} />`}
    ${today?.budget_tokens && html`<${Meter} value=${today.tokens} most=${today.budget_tokens} label="Tokens today" text=${`${tokens(today.tokens)} of ${tokens(today.budget_tokens)}`} />`}
    ${found && found.task.without_price.length > 0 && html`<p class="soft">Without a price, and so not in the sum: <${Words} text=${found.task.without_price.join(", ")} /> (<code>[prices]</code> in covey.toml)</p>`}
  </div>`;
}

/**
 * Every day of the time, also those on which nothing was spent.
 * @param {{ costs: Costs, days: number }} props
 */
function Days({ costs, days }) {
  const known = new Map(costs.rows.map((row) => [row.key, row]));
  const first = [...known.keys()].sort()[0];
  const begin = days ? new Date(Date.now() - (days - 1) * DAY) : new Date(`${first}T12:00`);
  /** @type {Bar[]} */
  const rows = [];
  for (let day = begin; dayOf(day) <= dayOf(new Date()) && rows.length < 400; day = new Date(day.getTime() + DAY)) {
    const row = known.get(dayOf(day));
    rows.push({
      key: dayOf(day),
      label: day.toLocaleDateString([], { weekday: "short", month: "short", day: "numeric" }),
      short: day.toLocaleDateString([], { month: "numeric", day: "numeric" }),
      value: row?.cost || 0,
      text: row ? `${money(row.cost)}, ${tokens(row.tokens)} tokens` : "nothing",
    });
  }
  const largest = Math.max(...rows.map((row) => row.value));
  const limit = state.today?.budget ?? null;
  const budget = (limit ?? 0) <= largest * 3 ? limit : null; // far above all, it would make all flat
  return html`<${Columns} rows=${rows} label="Cost by day" line=${budget} lineLabel=${budget ? `budget ${money(budget)}` : ""} />`;
}

/** @param {{ costs: Costs, name?: (key: string) => string, href?: ((key: string) => string) | null }} props */
function Part({ costs, name = (/** @type {string} */ key) => key, href = null }) {
  const [all, setAll] = useState(false);
  const shown = all ? costs.rows : costs.rows.slice(0, MOST);
  const priced = costs.rows.some((row) => row.cost > 0);
  const rows = shown.map((row) => ({
    key: row.key,
    label: name(row.key),
    value: priced ? row.cost : row.tokens,
    text: textOf(row),
    href: href && row.key ? href(row.key) : null,
    note: `${tokens(row.tokens)} tokens, ${some(row.runs, "run")}`,
  }));
  const rest = costs.rows.length - shown.length + costs.more;
  return html`<${Bars} rows=${rows} label="Costs" />${rest > 0 && html`<${Button} kind="quiet" onClick=${() => setAll(true)}>and ${rest} more<//>`}`;
}
