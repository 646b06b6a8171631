// The menu: how the page looks and sounds, connected devices, and logging out.
import { html, useState } from "../lib.js";
import { askForNotifications, play } from "../data/notifications.js";
import { Devices, Phone, leave } from "./devices.js";
import { inGroup, useCommands } from "../widgets/keys.js";
import { to } from "../data/routes.js";
import { choose, settings } from "../data/settings.js";
import { touch, useTopics } from "../data/store.js";
import { Button, Dialog, note } from "../widgets/ui.js";
/** @import { ViewPlace, Whereabouts } from "types/page.js" */
/** @import { Child } from "types/vendor/preact.js" */

const on = inGroup("Settings");

/**
 * One of a few, chosen.
 * @param {{ name: keyof typeof settings, label: string, options: [string, string][] }} props
 */
function Choice({ name, label, options }) {
  return html`<div class="setting row" role="radiogroup" aria-label=${label}><span>${label}</span><span class="segments">
    ${options.map(([value, word]) => html`<button type="button" key=${value} role="radio" aria-checked=${settings[name] === value} class="segment bare" onClick=${() => choose({ [name]: value })}>${word}</button>`)}
  </span></div>`;
}

/**
 * Something on or off.
 * @param {{ name: keyof typeof settings, label: string, hint?: string, onChange?: (value: boolean) => void, children?: Child }} props
 */
function Toggle({
  name,
  label,
  hint,
  onChange = (/** @type {string | boolean} */ value) => choose({ [name]: value }),
  children,
}) {
  return html`<div class="setting row"><label class="toggle row"><span>${label}${hint && html`<small>${hint}</small>`}</span><input type="checkbox" role="switch" checked=${settings[name]} onChange=${(event) => onChange(event.target.checked)} /></label>${children}</div>`;
}

/** @param {boolean} wanted */
async function notifications(wanted) {
  const given = wanted && (await askForNotifications());
  choose({ notify: given });
  if (wanted && !given)
    note("This browser does not allow notifications for this page.", {
      hint: "Allow them in the settings of the page's address.",
      bad: true,
    });
}

function Quiet() {
  /**
   * @param {keyof typeof settings} name
   * @param {string} label
   */
  const time = (name, label) =>
    html`<label class="time"><span class="unseen">${label}</span><input type="time" value=${settings[name]} disabled=${!settings.quiet} onChange=${(event) => event.target.value && choose({ [name]: event.target.value })} /></label>`;
  return html`<${Toggle} name="quiet" label="Quiet hours" hint="No sound and no notification"><span class="times row">${time("quietFrom", "Quiet from")} to ${time("quietUntil", "Quiet until")}</span><//>`;
}

/**
 * @param {keyof typeof settings} name
 * @param {"needs" | "done"} sound
 */
function hear(name, sound) {
  return (/** @type {string | boolean} */ value) => {
    choose({ [name]: value });
    if (value) play(sound);
  };
}

/**
 * @param {string} label
 * @param {keyof typeof settings} name
 * @param {string | boolean} value
 */
const set = (label, name, value) =>
  on(label, undefined, () => choose({ [name]: value }), { when: () => settings[name] !== value });

/**
 * @param {string} what
 * @param {keyof typeof settings} name
 * @param {"needs" | "done"} sample
 */
function sound(what, name, sample) {
  return [true, false].map((wanted) =>
    on(`${wanted ? "Sound" : "No sound"} ${what}`, undefined, () => hear(name, sample)(wanted), {
      also: "sounds",
      when: () => settings[name] !== wanted,
    }),
  );
}

/**
 * Offer all of the menu by name; `open(name)` opens it, or one of the dialogs that it leads to.
 * @param {(name: string) => void} open
 */
export function useMenuCommands(open) {
  useCommands(
    [
      { label: "Log out", group: "Page", also: "logout leave", run: leave },
      { label: "Devices", group: "Page", also: "browsers revoke", run: () => open("devices") },
      { label: "Connect a phone", group: "Page", usual: true, also: "qr code", run: () => open("phone") },
      { label: "Notifications on", group: "Settings", when: () => !settings.notify, run: () => notifications(true) },
      set("Notifications off", "notify", false),
      ...sound("when something needs you", "soundNeeds", "needs"),
      ...sound("when work is done", "soundDone", "done"),
      set("Quiet hours on", "quiet", true),
      set("Quiet hours off", "quiet", false),
      set("Comfortable density", "density", "comfortable"),
      set("Compact density", "density", "compact"),
      set("Theme of the system", "theme", "system"),
      set("Light theme", "theme", "light"),
      set("Dark theme", "theme", "dark"),
      { label: "Menu and settings", group: "Page", keys: ",", usual: true, run: () => open("menu") },
    ],
    [],
  );
}

/**
 * The menu, and the dialogs that it leads to; `first` is what it begins with.
 * @param {{ where: Whereabouts, places: ViewPlace[], onClose: () => void, first?: string }} props
 */
export function Menu({ where, places, onClose, first = "menu" }) {
  useTopics("settings");
  const [shown, setShown] = useState(first);
  if (shown === "phone") return html`<${Phone} onClose=${onClose} />`;
  if (shown === "devices") return html`<${Devices} onClose=${onClose} />`;
  return html`<${Dialog} title="Menu" name="menu" onClose=${onClose}>
    <nav class="menu-places" aria-label="More views">${places.filter(({ id }) => !["inbox", "board", "sessions", "review"].includes(id)).map(({ id, title }) => html`<a key=${id} href=${to(id)} aria-current=${id === where.place ? "page" : undefined} onClick=${onClose}>${title}</a>`)}</nav>
    <div class="settings">
      <${Choice} name="theme" label="Theme" options=${[["system", "System"], ["dark", "Dark"], ["light", "Light"]]} />
      <${Choice} name="density" label="Density" options=${[["comfortable", "Comfortable"], ["compact", "Compact"]]} />
      <${Toggle} name="soundNeeds" label="Sound when something needs you" onChange=${hear("soundNeeds", "needs")} />
      <${Toggle} name="soundDone" label="Sound when work is done" onChange=${hear("soundDone", "done")} />
      <${Toggle} name="notify" label="Notifications" onChange=${notifications} />
      <${Quiet} />
    </div>
    <div class="menu-foot">
      <${Button} kind="quiet" onClick=${() => setShown("phone")}>Connect a phone<//>
      <${Button} kind="quiet" onClick=${() => setShown("devices")}>Devices<//>
      <${Button} kind="quiet with-keys" keys="?" onClick=${() => {
        onClose();
        touch("help");
      }}>Keyboard<//>
      <${Button} kind="quiet" onClick=${() => {
        onClose();
        leave();
      }}>Log out<//>
    </div>
  <//>`;
}
