// All commands: one list feeds the keyboard, the palette and the help.
import { useLayoutEffect } from "../lib.js";
/** @import { Command } from "types/page.js" */

/** @type {Set<Command>} */
const commands = new Set();
const CHORD = 1500;
let prefix = "";
let since = 0;
let held = "";
let deaf = 0;
const HUSH = 1500;
const STILL = 600;

/**
 * Offer commands while a component is shown. Each is {label, run} with, if it has them, `keys` ("a", "g b", "mod+k",
 * "shift+arrowdown"), `group`, `hint`, `when` (says whether it can be used now), `always` (also while typing),
 * `within` (a selector: only while the focus is inside, and then before all others), `unlisted` (not in
 * the palette; "always": nor in the help), `also` (more words that the palette finds it by), `usual` (the palette
 * shows it before others).
 * @param {Command[]} list
 * @param {unknown[]} inputs
 */
export function useCommands(list, inputs) {
  // With the drawing: who sees what a key is for can press it at once.
  useLayoutEffect(() => {
    for (const command of list) commands.add(command);
    return () => list.forEach((command) => commands.delete(command));
  }, inputs);
}

/**
 * Return what makes commands of a group from their label, their keys and what they do.
 * @param {string} group
 */
export const inGroup =
  (group) =>
  /**
   * @param {string} label
   * @param {string | string[] | undefined} keys
   * @param {() => unknown} run
   * @param {Partial<Command>} [more]
   * @returns {Command}
   */
  (label, keys, run, more = {}) => ({ label, keys, run, group, ...more });

/** Return all commands that can be used now, the latest offered first for the same key. */
export function offered() {
  return [...commands].reverse().filter((command) => !command.when || command.when());
}

/**
 * Return a pressed key as commands name it; letters are large by Shift alone, never by Caps Lock.
 * @param {KeyboardEvent} event
 */
function nameOf(event) {
  const key = event.key === " " ? "space" : event.key.toLowerCase();
  /** @type {string[]} */
  const parts = [];
  if (event.ctrlKey || event.metaKey) parts.push("mod");
  if (event.altKey) parts.push("alt");
  if (event.shiftKey && (key.length > 1 || parts.length)) parts.push("shift");
  const large = /^[a-z]$/.test(key) ? key.toUpperCase() : event.key;
  return [...parts, event.shiftKey && key.length === 1 && !parts.length ? large : key].join("+");
}

/**
 * Say whether keys belong to what has the focus: a field, or a terminal.
 * @param {EventTarget | null} target
 */
export function isTyping(target) {
  return (
    target instanceof Element &&
    target.closest(
      "input:not([type=checkbox]):not([type=radio]), textarea, select, [contenteditable], [data-keys=own]",
    ) !== null
  );
}

/**
 * @param {Command} command
 * @param {EventTarget | null} target
 */
const isNear = (command, target) =>
  !command.within || (target instanceof Element && target.closest(command.within) !== null);
const PRESSES = ["enter", "space"];
const PRESSED = "button, a[href], summary, [role=menuitem], [role=option]";

/**
 * @param {EventTarget | null} target
 * @param {string} name
 */
function usableAt(target, name) {
  const near = offered().filter((command) => command.keys && isNear(command, target));
  if (PRESSES.includes(name) && target instanceof Element && target.closest(PRESSED)) return []; // it is pressed itself
  return [...near.filter((command) => command.within), ...near.filter((command) => !command.within)];
}

/** Keys that may be held down; whatever else a key does is done once, however long it is held. */
const HELD = /^(shift\+)?(arrow\w+|page\w+|[hjklJK+=-])$/;

/** Let keys mean nothing for a moment: somebody was typing elsewhere, and what is still on its way is no command. */
export function hush() {
  deaf = performance.now() + HUSH;
}

/**
 * @param {KeyboardEvent} event
 * @param {number} now
 */
function isMeantElsewhere(event, now) {
  if (now < deaf && !isTyping(event.target)) {
    deaf = Math.max(deaf, now + STILL);
    return true;
  }
  if (!event.repeat) held = "";
  return event.repeat && event.key === held;
}

/** @param {KeyboardEvent} event */
function take(event) {
  if (event.defaultPrevented || event.isComposing || ["Shift", "Control", "Alt", "Meta"].includes(event.key)) return;
  const now = performance.now();
  if (isMeantElsewhere(event, now)) return void event.preventDefault();
  const typing = isTyping(event.target);
  const name = nameOf(event);
  // By when they were pressed: a page that is busy hears the second one late.
  const whole = prefix && event.timeStamp - since < CHORD ? `${prefix} ${name}` : name;
  const usable = usableAt(event.target, name).filter((command) => !typing || command.always);
  const open = document.querySelector("dialog[open]");
  const found = usable.find(
    (command) => [command.keys].flat().includes(whole) && (!open || command.always || command.inDialog),
  );
  if (found) {
    prefix = "";
    event.preventDefault();
    if (!HELD.test(whole)) held = event.key; // held on, it is no letter either where the command leads
    if (!event.repeat || HELD.test(whole)) found.run(event);
  } else if (
    !typing &&
    !open &&
    usable.some((command) => [command.keys ?? []].flat().some((keys) => keys.startsWith(`${whole} `)))
  ) {
    prefix = whole;
    since = event.timeStamp;
  } else {
    prefix = "";
  }
}

/** Listen to the keyboard. */
export function begin() {
  document.addEventListener("keydown", take);
}

/** @type {Record<string, string>} */
const SIGNS = {
  mod: navigator.platform.startsWith("Mac") ? "⌘" : "Ctrl",
  arrowup: "↑",
  arrowdown: "↓",
  arrowleft: "←",
  arrowright: "→",
  escape: "Esc",
  pagedown: "Page Down",
  pageup: "Page Up",
};

/** @param {string} key */
const capital = (key) => key[0].toUpperCase() + key.slice(1);

/** @param {string} chord */
function spellChord(chord) {
  const parts = chord === "+" ? ["+"] : chord.split("+");
  return parts.map((key) => SIGNS[key] ?? (parts.length > 1 || key.length > 1 ? capital(key) : key)).join("+");
}

/**
 * Return keys as people read them.
 * @param {string | string[]} keys
 */
export function spell(keys) {
  return [keys].flat()[0].split(" ").map(spellChord).join(" then ");
}
