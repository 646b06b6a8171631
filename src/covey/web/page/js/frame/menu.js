// The menu: how this page looks and sounds here, the devices that may use it, and the way out.
import { html, useState } from "./lib.js";
import { askForNotifications, play } from "./alerts.js";
import { Devices, Phone, leave } from "./phone.js";
import { useCommands } from "./keys.js";
import { to } from "./places.js";
import { choose, settings } from "./settings.js";
import { touch, useTopics } from "./store.js";
import { Button, Dialog, note } from "./ui.js";

/** One of a few, chosen. */
function Choice({ name, label, options }) {
  return html`<div class="setting" role="radiogroup" aria-label=${label}><span>${label}</span><span class="segments">
    ${options.map(([value, word]) => html`<button type="button" key=${value} role="radio" aria-checked=${settings[name] === value} class="segment" onClick=${() => choose({ [name]: value })}>${word}</button>`)}
  </span></div>`;
}

/** Something on or off. */
function Toggle({ name, label, hint, onChange = (value) => choose({ [name]: value }), children }) {
  return html`<div class="setting"><label class="toggle"><span>${label}${hint && html`<small>${hint}</small>`}</span><input type="checkbox" role="switch" checked=${settings[name]} onChange=${(event) => onChange(event.target.checked)} /></label>${children}</div>`;
}

async function notifications(wanted) {
  const given = wanted && (await askForNotifications());
  choose({ notify: given });
  if (wanted && !given) note("This browser does not allow notifications for this page.", { hint: "Allow them in the settings of the page's address.", bad: true });
}

function Quiet() {
  const time = (name, label) => html`<label class="time"><span class="unseen">${label}</span><input type="time" value=${settings[name]} disabled=${!settings.quiet} onChange=${(event) => event.target.value && choose({ [name]: event.target.value })} /></label>`;
  return html`<${Toggle} name="quiet" label="Quiet hours" hint="No sound and no notification"><span class="times">${time("quietFrom", "Quiet from")} to ${time("quietUntil", "Quiet until")}</span><//>`;
}

function hear(name, sound) {
  return (value) => {
    choose({ [name]: value });
    if (value) play(sound);
  };
}

const set = (label, name, value, also = "") => ({ label, group: "Settings", also, when: () => settings[name] !== value, run: () => choose({ [name]: value }) });

function sound(what, name, sample) {
  return [true, false].map((on) => ({ label: `${on ? "Sound" : "No sound"} ${what}`, group: "Settings", also: "sounds", when: () => settings[name] !== on, run: () => hear(name, sample)(on) }));
}

/** Offer all of the menu by name; `open(name)` opens it, or one of the dialogs that it leads to. */
export function useMenuCommands(open) {
  useCommands([
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
  ], []);
}

/** The menu, and the dialogs that it leads to; `first` is what it begins with. */
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
      <${Button} kind="quiet with-keys" keys="?" onClick=${() => { onClose(); touch("help"); }}>Keyboard<//>
      <${Button} kind="quiet" onClick=${() => { onClose(); leave(); }}>Log out<//>
    </div>
  <//>`;
}
