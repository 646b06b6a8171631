// Leases: who holds what, since when and until when, and who waits for it.
import { html, useState } from "../lib.js";
import { get, post } from "../data/api.js";
import { useNow, useRows } from "../widgets/view_hooks.js";
import { to } from "../data/routes.js";
import { useRead } from "../data/store.js";
import { clock, some, span } from "../rules/text.js";
import { Age, attempt, Button, confirm, Empty, State, Words } from "../widgets/ui.js";
/** @import { LeaseFull } from "types/rest.js" */

export function View() {
  const [leases, problem] = useRead(() => get("/api/leases?waiting=true"), ["leases", "connection"]);
  const [text, setText] = useState("");
  useRows(".leases [data-row]", "lease");
  if (!leases) return html`<p class="loading">${problem?.message ?? "…"}</p>`;
  const held = leases.filter((lease) => lease.state !== "waiting");
  const waiting = leases.filter((lease) => lease.state === "waiting");
  /** @param {LeaseFull} lease */
  const fits = (lease) =>
    !text ||
    [lease.holder, lease.task ?? "", lease.reason ?? "", ...lease.resources].some((word) =>
      word.toLowerCase().includes(text.toLowerCase()),
    );
  const shown = held.filter((lease) => fits(lease) || waitersOf(lease, waiting).some(fits));
  const lost = waiting.filter((lease) => fits(lease) && !held.some((each) => lease.behind.includes(each.id)));
  return html`<div class="sheet leases">
    <header class="sheet-head row"><div class="figures"><span><strong>${held.length}</strong> in force</span><span><strong>${waiting.length}</strong> in line</span></div>
      <input type="search" aria-label="Search leases" placeholder="Search files, sessions, tasks" value=${text} onInput=${(event) => setText(event.target.value)} /></header>
    ${
      !leases.length
        ? html`<${Empty} title="Nothing is leased."><p>Agents take leases on files and other things that only one may use: <code>covey lease take src/db.py</code></p><//>`
        : html`<div class="sheet-body">
      <ol class="lease-list">${shown.map((lease) => html`<${Lease} key=${lease.id} lease=${lease} waiters=${waitersOf(lease, waiting)} />`)}</ol>
      ${lost.length > 0 && html`<section><h2>In line</h2><ol class="lease-list">${lost.map((lease) => html`<${Lease} key=${lease.id} lease=${lease} waiters=${[]} />`)}</ol></section>`}
      ${!shown.length && !lost.length && html`<p class="faint">No lease matches.</p>`}
    </div>`
    }
  </div>`;
}

/**
 * @param {LeaseFull} lease
 * @param {LeaseFull[]} waiting
 */
const waitersOf = (lease, waiting) => waiting.filter((each) => each.behind.includes(lease.id));

/** @param {LeaseFull} lease */
async function release(lease) {
  const waits = lease.state === "waiting";
  const sure = await confirm({
    title: waits ? `Take ${lease.holder} out of the line?` : `End the lease of ${lease.holder}?`,
    body: `${lease.resources.join("\n")}\n\n${waits ? "It waits for this no more." : "Who is next in line gets it at once. The holder is not stopped; its next write may be refused."}`,
    action: waits ? "Take out" : "Release",
    danger: true,
  });
  if (sure)
    await attempt(
      () => post(`/api/leases/${lease.id}/give`),
      waits ? `${lease.holder} waits no more.` : `${lease.id} has ended.`,
    );
}

/** @param {{ lease: LeaseFull, waiters: LeaseFull[] }} props */
function Lease({ lease, waiters }) {
  const waits = lease.state === "waiting";
  return html`<li class=${`lease boxed ${waits ? "lease-waits" : ""}`}>
    <div class="lease-head" data-row tabindex="-1">
      ${waits && html`<${State} name="waiting" />`}
      <span class="lease-what">${lease.resources.slice(0, 8).map((resource) => html`<${Words} key=${resource} text=${resource} class="mono lease-resource" most=${200} />`)}${lease.resources.length > 8 && html`<span class="faint">and ${lease.resources.length - 8} more</span>`}</span>
      <span class="lease-who"><strong><${Words} text=${lease.holder} /></strong> ${waits ? "waits for it" : lease.shared ? "shares it" : "holds it alone"}${lease.task && html`, for <a href=${to("timeline", `task=${lease.task}`)}>${lease.task}</a>`}</span>
      <span class="lease-when soft">since ${clock(lease.taken)} (<${Age} since=${lease.taken} />)<${Until} until=${lease.until} /></span>
      <${Button} onClick=${() => release(lease)} aria-label=${`${waits ? "Take out of the line" : "Release"}: ${lease.id} of ${lease.holder}`}>${waits ? "Take out" : "Release"}<//>
    </div>
    ${lease.reason && html`<p class="lease-why soft"><${Words} text=${lease.reason} /></p>`}
    ${waiters.length > 0 && html`<div class="lease-line"><span class="faint">${some(waiters.length, "session")} in line</span><ol>${waiters.map((each) => html`<${Lease} key=${each.id} lease=${each} waiters=${[]} />`)}</ol></div>`}
  </li>`;
}

/** @param {{ until: number | null }} props */
function Until({ until }) {
  const now = useNow(5000);
  if (!until) return ", as long as its holder lives";
  return until > now ? `, ends in ${span(until - now)} unless renewed` : ", ends now";
}
