// Connecting a phone with a QR code, and the list of devices that may act as the owner.
import { html, useEffect, useRef, useState } from "../lib.js";
import { repeat } from "../widgets/view_hooks.js";
import { get, post } from "../data/api.js";
import { setConnection, useRead } from "../data/store.js";
import { span } from "../rules/text.js";
import { Age, Button, Dialog, Empty, Words, attempt, confirm } from "../widgets/ui.js";
/** @import { DeviceRow, Invitation } from "types/rest.js" */
/** @import { Trouble } from "types/page.js" */

/**
 * Return the outline of a QR code's dark cells, row by row, as the data of one SVG path.
 * @param {string[]} rows
 */
export function outline(rows) {
  /** @type {string[]} */
  const parts = [];
  rows.forEach((row, y) => {
    for (const run of row.matchAll(/1+/g)) parts.push(`M${run.index} ${y}h${run[0].length}v1h-${run[0].length}z`);
  });
  return parts.join("");
}

/** @param {{ until: number }} props */
function Left({ until }) {
  const place = useRef(null);
  useEffect(() => {
    const draw = () => {
      const left = until - Date.now() / 1000;
      if (place.current)
        place.current.textContent = left > 0 ? `Works once, for ${span(left)} more.` : "This code has run out.";
    };
    return repeat(draw, 1000);
  }, [until]);
  return html`<p class="soft" ref=${place}></p>`;
}

/**
 * The dialog with a code for a phone; it says when the phone has joined.
 * @param {{ onClose: () => void }} props
 */
export function Phone({ onClose }) {
  const [invited, setInvited] = useState(/** @type {Invitation | null} */ (null));
  const [problem, setProblem] = useState(/** @type {Trouble | null} */ (null));
  const [again, setAgain] = useState(0);
  const [devices] = useRead(() => get("/api/devices"), ["devices"]);
  useEffect(() => {
    let current = true;
    setProblem(null);
    post("/api/devices/invite", { kind: "phone" }).then(
      (found) => current && setInvited(found),
      (error) => current && setProblem(error),
    );
    return () => {
      current = false;
    };
  }, [again]);
  const joined = invited && devices?.find(({ id, joined: at }) => id === invited.id && at !== null);
  return html`<${Dialog} title="Connect a phone" name="phone" onClose=${onClose}>
    <div class="dialog-body">
      ${problem && html`<div class="phone-problem"><p><${Words} text=${problem.message} /></p>${problem.hint && html`<p class="soft"><${Words} text=${problem.hint} /></p>`}</div>`}
      ${joined && html`<p class="phone-joined"><b><${Words} text=${joined.label || joined.id} /></b> has joined. It may do here what you may.</p>`}
      ${
        invited &&
        !joined &&
        html`
        <p class="soft">Point the phone's camera at this. Both have to be in the same network, or in the same tunnel.</p>
        ${invited.qr.length > 0 && html`<svg class="qr" viewBox=${`0 0 ${invited.qr.length} ${invited.qr.length}`} role="img" aria-label="QR code of the address"><path d=${outline(invited.qr)} /></svg>`}
        <${Left} until=${invited.until} />
        <label class="field"><span>Or open this address there</span><input readonly class="mono" value=${invited.url} onFocus=${(event) => event.target.select()} /></label>
        ${invited.fingerprint && html`<div class="field"><span>If the phone warns of the certificate, compare its SHA-256 fingerprint first:</span><code class="fingerprint">${invited.fingerprint}</code></div>`}`
      }
      <footer class="dialog-foot">${
        !joined &&
        html`<${Button} onClick=${() => {
          setInvited(null);
          setAgain((count) => count + 1);
        }}>${problem ? "Try again" : "New code"}<//>`
      }<${Button} kind="primary" onClick=${onClose}>Close<//></footer>
    </div>
  <//>`;
}

/**
 * @param {DeviceRow} device
 * @param {() => void} done
 */
async function revoke(device, done) {
  const sure = await confirm({
    title: `Send ${device.label || device.id} away?`,
    body: device.this ? "That is this browser." : "What it has open ends at once.",
    action: "Revoke",
    danger: true,
  });
  if (
    sure &&
    (await attempt(
      () => post(`/api/devices/${device.id}/revoke`),
      `${device.label || device.id} may not ask any more.`,
    )) !== undefined
  ) {
    if (device.this) setConnection("unknown");
    done();
  }
}

/**
 * All devices that may act as the owner.
 * @param {{ onClose: () => void }} props
 */
export function Devices({ onClose }) {
  const [devices, problem, read] = useRead(() => get("/api/devices"), ["devices"]);
  return html`<${Dialog} title="Devices" name="devices" onClose=${onClose}>
    <div class="dialog-body">
      ${problem && html`<p><${Words} text=${problem.message} /></p>`}
      ${devices?.length === 0 && html`<${Empty} title="No browser has joined."><p><code>covey open</code> lets one in.</p><//>`}
      <ul class="devices">${(devices ?? []).map(
        (device) => html`<li key=${device.id}>
        <div><b><${Words} text=${device.label || device.id} most=${80} /></b>${device.this && html` <span class="faint">this browser</span>`}
          <small>${device.kind === "phone" ? "from beyond this machine" : "on this machine"}, joined <${Age} since=${device.joined} /> ago, seen <${Age} since=${device.seen} /> ago</small></div>
        <${Button} kind="danger" onClick=${() => revoke(device, read)}>Revoke<//>
      </li>`,
      )}</ul>
      <footer class="dialog-foot"><${Button} onClick=${onClose}>Close<//></footer>
    </div>
  <//>`;
}

/** Let this browser be a stranger again. */
export async function leave() {
  const devices = await attempt(() => get("/api/devices"));
  const own = devices?.find((device) => device.this);
  if (own) await revoke(own, () => {});
  else if (devices) setConnection("unknown");
}
