// What a person chose in this browser; kept in this browser only.
import { touch } from "./store.js";

const KEPT = "covey.settings";
const THEME = "covey.theme";

/** What can be chosen, and what is chosen until somebody does. */
const USUAL = {
  theme: "system",
  density: "comfortable",
  soundNeeds: true,
  soundDone: true,
  notify: false,
  quiet: false,
  quietFrom: "22:00",
  quietUntil: "07:00",
  rail: true,
};

export const settings = { ...USUAL, ...read() };

function read() {
  try {
    const kept = JSON.parse(localStorage.getItem(KEPT) ?? "{}");
    const known = Object.entries(kept).filter(
      ([name, value]) => typeof value === typeof USUAL[/** @type {keyof typeof USUAL} */ (name)],
    );
    return { ...Object.fromEntries(known), theme: localStorage.getItem(THEME) ?? "system" };
  } catch {
    return {};
  }
}

/**
 * Choose something; it holds at once, also in other tabs. Topic: `settings`.
 * @param {Partial<typeof settings>} changes
 */
export function choose(changes) {
  Object.assign(settings, changes);
  const { theme, ...others } = settings;
  try {
    localStorage.setItem(KEPT, JSON.stringify(others));
    if (theme === "system") localStorage.removeItem(THEME);
    else localStorage.setItem(THEME, theme);
  } catch {
    // A browser that keeps nothing still shows what was chosen until it is closed.
  }
  wear();
  touch("settings");
}

const light = matchMedia("(prefers-color-scheme: light)");

function wear() {
  const { theme, density } = settings;
  const root = document.documentElement;
  root.dataset.theme = theme === "system" ? (light.matches ? "light" : "dark") : theme;
  root.dataset.density = density;
}

light.addEventListener("change", wear);
addEventListener("storage", (event) => {
  if (event.key !== KEPT && event.key !== THEME) return;
  Object.assign(settings, USUAL, read());
  wear();
  touch("settings");
});
wear();
