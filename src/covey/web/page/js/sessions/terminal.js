// Live terminals of agents. They can only draw, and nobody types into one by accident.
import { html, useEffect, useLayoutEffect, useRef, useState } from "../lib.js";
import { hear } from "../widgets/view_hooks.js";
import { doubt, key } from "../data/api.js";
import { hush, isTyping } from "../widgets/keys.js";
import { confirm } from "../widgets/ui.js";
import { FONT, lettersIn, scrolledTo } from "../rules/terminal_font.js";
import { visible } from "../rules/text.js";
/** @import { TerminalNews, TerminalShown } from "types/page.js" */
/** @import { Ref } from "types/vendor/hooks.js" */
/** @import { Terminal } from "types/vendor/xterm.js" */

/** Pixels around the terminal of a tile, as its style says. */
const AROUND = 6;
const CHUNK = 32 * 1024;
const AGAIN = [500, 1000, 2000, 5000];
const LEAVE = "Ctrl+]";
const STILL = 600;

const DARK = {
  background: "#0c0e12",
  foreground: "#d8dde6",
  cursor: "#d8dde6",
  cursorAccent: "#0c0e12",
  selectionBackground: "#35507d",
  black: "#2a303a",
  red: "#ff7b72",
  green: "#6fbf84",
  yellow: "#e3b341",
  blue: "#6ea8fe",
  magenta: "#b794f6",
  cyan: "#4fd1c5",
  white: "#c9d1d9",
  brightBlack: "#8b94a3",
  brightRed: "#ffa198",
  brightGreen: "#7ee2a8",
  brightYellow: "#f2cc60",
  brightBlue: "#9cc4ff",
  brightMagenta: "#d2b8ff",
  brightCyan: "#7be3d9",
  brightWhite: "#f0f3f8",
};
const LIGHT = {
  background: "#fbfbfc",
  foreground: "#1f242d",
  cursor: "#1f242d",
  cursorAccent: "#fbfbfc",
  selectionBackground: "#bcd3ff",
  black: "#1f242d",
  red: "#b3261e",
  green: "#1f6b37",
  yellow: "#7a5200",
  blue: "#1f5fd0",
  magenta: "#6d3fc4",
  cyan: "#0b756b",
  white: "#5b6472",
  brightBlack: "#626c7b",
  brightRed: "#c0271f",
  brightGreen: "#23713c",
  brightYellow: "#8a5a00",
  brightBlue: "#1f5fd0",
  brightMagenta: "#7d4fd4",
  brightCyan: "#0b756b",
  brightWhite: "#3a424f",
};

// xterm writes <style> elements and style attributes, which our policy forbids; both go by ways that it allows.

const DIM = /(#[0-9a-f]{6})80;/gi;

/** Return an element that stands where a <style> would, and feeds a style sheet that needs no permission. */
function styleElement() {
  const sheet = new CSSStyleSheet();
  document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet];
  const element = makeElement("span");
  element.hidden = true;
  let text = "";
  /** @param {string} css */
  const set = (css) => {
    text = css.replace(DIM, "$1d9;"); // dim, but not too faint to be read
    sheet.replaceSync(text);
  };
  Object.defineProperty(element, "textContent", { get: () => text, set });
  element.remove = () => {
    document.adoptedStyleSheets = document.adoptedStyleSheets.filter((each) => each !== sheet);
    Element.prototype.remove.call(element);
  };
  return element;
}

/**
 * @param {string} name
 * @param {ElementCreationOptions} [options]
 */
const makeElement = (name, options) => Document.prototype.createElement.call(document, name, options);

/**
 * @this {HTMLElement}
 * @param {string} name
 * @param {string} value
 */
function setAttribute(name, value) {
  if (name === "style") this.style.cssText = value;
  else Element.prototype.setAttribute.call(this, name, value);
}

/**
 * @param {string} name
 * @param {ElementCreationOptions} [options]
 */
function createElement(name, options) {
  if (name === "style") return styleElement();
  const element = makeElement(name, options);
  element.setAttribute = setAttribute;
  return element;
}

/**
 * Open a terminal in an element. It asks for its styles while it is opened, and for its letters whenever it draws.
 * @param {Terminal} terminal
 * @param {HTMLElement} element
 */
function openIn(terminal, element) {
  document.createElement = createElement;
  try {
    terminal.open(element);
  } finally {
    Reflect.deleteProperty(document, "createElement");
  }
  const letters = terminal._core?._renderService?._renderer?.value?._rowFactory;
  if (letters) letters._document = { createElement };
}

/** @type {Promise<typeof Terminal> | null} */
let loading = null;

/** Return xterm, fetched when the first terminal is shown. */
function load() {
  loading ??= (async () => {
    const link = document.createElement("link");
    link.rel = "stylesheet";
    link.href = new URL("../../vendor/xterm.css", import.meta.url).href;
    const styled = new Promise((go) => link.addEventListener("load", go));
    document.head.append(link);
    const [{ Terminal }] = await Promise.all([import("/vendor/xterm.js"), styled]);
    return Terminal;
  })();
  return loading;
}

/**
 * Make a terminal obey only what draws: it answers no question, takes no title, touches no clipboard.
 * @param {Terminal} terminal
 */
function tame(terminal) {
  const { parser } = terminal;
  const ignore = () => true;
  for (const id of [
    { final: "c" },
    { prefix: ">", final: "c" },
    { prefix: "=", final: "c" },
    { prefix: ">", final: "q" },
    { final: "n" },
    { prefix: "?", final: "n" },
    { final: "t" },
    { intermediates: "$", final: "p" },
    { prefix: "?", intermediates: "$", final: "p" },
  ])
    parser.registerCsiHandler(id, ignore);
  for (const number of [0, 1, 2, 4, 7, 10, 11, 12, 52, 104, 110, 111, 112, 133, 633, 1337])
    parser.registerOscHandler(number, ignore);
  for (const id of [{ intermediates: "$", final: "q" }, { intermediates: "+", final: "q" }, { final: "q" }])
    parser.registerDcsHandler(id, ignore);
}

/**
 * Open a link of an agent only after a person has read where it goes.
 * @param {MouseEvent} _event
 * @param {string} address
 */
async function follow(_event, address) {
  let target;
  try {
    target = new URL(address);
  } catch {
    return;
  }
  if (!["http:", "https:"].includes(target.protocol)) return;
  const wanted = await confirm({
    title: "Open a link of this agent?",
    body: visible(target.href, 400),
    action: "Open",
  });
  if (wanted) window.open(target.href, "_blank", "noopener,noreferrer");
}

// Of many tiles one is drawn in each frame, in turn: however much they show, the page stays quick.

/** @type {Set<Screen>} */
const turns = new Set();
let frame = 0;

function drawNext() {
  frame = 0;
  const [screen] = turns;
  if (!screen) return;
  turns.delete(screen);
  screen.draw();
  if (turns.size) frame = requestAnimationFrame(drawNext);
}

/** @param {Screen} screen */
function awaitTurn(screen) {
  turns.add(screen);
  if (!frame) frame = requestAnimationFrame(drawNext);
}

const theme = () => (document.documentElement.dataset.theme === "light" ? LIGHT : DARK);

/** One terminal in the page: connects, draws, and sends keys while its person types. It tells `heard({...})` what changes. */
export class Screen {
  /** @type {Terminal} */
  terminal;
  /** @type {HTMLElement} */
  inside;
  /** @type {WebSocket | undefined} */
  socket;
  /** @type {number | undefined} */
  timer;
  /** How many rows the agent's own terminal has; 0 until that is told. */
  rows = 0;
  /** Whether only a part of it is shown. */
  part = false;

  /**
   * @param {HTMLElement} place
   * @param {string} session
   * @param {{ large: boolean, heard: (told: Partial<TerminalShown>) => void }} props
   */
  constructor(place, session, { large, heard }) {
    this.place = place;
    this.session = session;
    this.large = large;
    this.heard = heard;
    this.tries = 0;
    this.wants = false;
    this.writes = false;
    /** @type {"lost" | "back" | null} */
    this.cut = null;
    this.pressed = 0;
    this.closed = false;
    this.below = 1;
    /** @type {Uint8Array[]} */
    this.parts = [];
    this.follows = true;
    this.sizes = new ResizeObserver(() => this.fit());
    this.themes = new MutationObserver(() => {
      if (this.terminal) this.terminal.options.theme = theme();
    });
  }

  async open() {
    const Terminal = await load();
    if (this.closed) return;
    this.inside = document.createElement("div");
    this.inside.className = "screen-inside";
    this.place.append(this.inside);
    this.terminal = new Terminal({
      disableStdin: true,
      scrollback: 0,
      fontSize: FONT.tile,
      fontFamily: getComputedStyle(document.documentElement).getPropertyValue("--mono"),
      theme: theme(),
      minimumContrastRatio: 4.5,
      cursorBlink: false,
      cursorInactiveStyle: "outline",
      allowProposedApi: false,
      rightClickSelectsWord: false,
      linkHandler: { activate: follow, allowNonHttpProtocols: false },
      logLevel: "off",
    });
    tame(this.terminal);
    openIn(this.terminal, this.inside);
    this.terminal.textarea.tabIndex = -1;
    this.terminal.textarea.setAttribute("aria-label", `Keys for ${this.session}`);
    this.terminal.textarea.readOnly = true;
    this.terminal.onData((text) => this.type(new TextEncoder().encode(text)));
    this.terminal.onBinary((text) => this.type(Uint8Array.from(text, (sign) => sign.charCodeAt(0))));
    this.terminal.attachCustomKeyEventHandler((event) => this.passes(event));
    this.terminal.textarea.addEventListener(
      "blur",
      () => (this.writes || this.cut) && document.hasFocus() && this.read(),
    );
    this.terminal.onWriteParsed(() => this.follow());
    this.place.addEventListener("wheel", (event) => this.roll(event), { capture: true, passive: false });
    this.place.addEventListener("pointerleave", () => {
      this.follows = true;
      this.follow();
    });
    this.sizes.observe(this.place);
    this.sizes.observe(this.screen()); // it takes its size when it is drawn, not when it is told
    this.themes.observe(document.documentElement, { attributeFilter: ["data-theme"] });
    this.connect();
  }

  async connect() {
    const own = await key().catch(() => null);
    if (this.closed) return;
    if (own === null) return this.lost();
    const scheme = location.protocol === "https:" ? "wss:" : "ws:";
    const socket = new WebSocket(
      `${scheme}//${location.host}/api/sessions/${encodeURIComponent(this.session)}/terminal/socket?key=${own}`,
    );
    this.socket = socket;
    socket.binaryType = "arraybuffer";
    socket.onmessage = ({ data }) =>
      typeof data === "string" ? this.told(JSON.parse(data)) : this.take(new Uint8Array(data));
    socket.onclose = ({ code }) => this.lost(code);
  }

  /** @param {Uint8Array} data */
  take(data) {
    this.parts.push(data);
    if (this.large) this.draw();
    else awaitTurn(this);
  }

  draw() {
    const parts = this.parts;
    this.parts = [];
    if (!this.closed) for (const part of parts) this.terminal.write(part);
  }

  /** @param {TerminalNews} said */
  told(said) {
    if (said.columns) {
      this.parts = [];
      this.tries = 0;
      this.below = said.below ?? 0;
      this.terminal.reset();
      this.terminal.resize(said.columns, said.rows + this.below);
      this.rows = said.rows;
      this.fit();
      this.heard({ run: said.run, columns: said.columns, shown: true, ended: false, error: null });
      if (this.cut) this.sever("back");
      if (this.wants && !said.write) return this.send({ ask: "write" });
    }
    if (said.write !== undefined) this.turn(said.write);
    if (said.ended) this.heard({ ended: true });
    if (said.error) this.heard({ error: said.error, hint: said.hint, headless: said.headless });
  }

  /** @param {number} [code] */
  lost(code = 0) {
    if (this.closed || code === 1000 || (code >= 4400 && code < 4500)) return this.end();
    if (this.writes || this.cut) this.sever("lost");
    doubt();
    this.wants = false; // whoever wants to type says so again when it is back
    this.heard({ shown: false });
    this.timer = setTimeout(() => this.connect(), AGAIN[Math.min(this.tries++, AGAIN.length - 1)]);
  }

  /** @param {object} said */
  send(said) {
    if (this.socket?.readyState === WebSocket.OPEN) this.socket.send(JSON.stringify(said));
  }

  /** @param {Uint8Array} data */
  type(data) {
    if (!this.writes || this.socket?.readyState !== WebSocket.OPEN) return;
    for (let at = 0; at < data.length; at += CHUNK)
      this.socket.send(/** @type {Uint8Array<ArrayBuffer>} */ (data.subarray(at, at + CHUNK)));
  }

  /**
   * Send no key any more but keep the keyboard: what somebody goes on to type is no command, until they say what they
   * want.
   * @param {"lost" | "back"} how
   */
  sever(how) {
    this.cut = how;
    this.writes = false;
    this.terminal.options.disableStdin = true;
    this.terminal.textarea.readOnly = true;
    this.heard({ writes: false, cut: how });
  }

  /** Let go of the keyboard, not by who types. */
  end() {
    if (this.cut) hush();
    this.mend();
    this.turn(false);
  }

  mend() {
    if (!this.cut) return;
    this.cut = null;
    this.terminal.blur();
    this.heard({ cut: null });
  }

  /** Begin to type: what is pressed goes to the agent, but for the keys that leave. While the connection is lost nothing begins. */
  write() {
    if (this.tries > 0) return;
    this.wants = true;
    this.send({ ask: "write" });
  }

  /** Go back to looking. */
  read() {
    this.wants = false;
    this.mend();
    this.turn(false);
    this.send({ ask: "read" });
  }

  /** Go back to looking by a key or a button: the keyboard is the view's again. */
  leave() {
    this.read();
    this.place.closest(".tile")?.focus();
  }

  /** @param {boolean} on */
  turn(on) {
    if (on && (!this.wants || this.isElsewhere())) return this.read();
    if (on === this.writes || !this.terminal) return;
    if (!on && this.wants) hush(); // not by who types
    this.wants = on;
    this.writes = on;
    this.terminal.options.disableStdin = !on;
    this.terminal.textarea.readOnly = !on;
    this.cut = null;
    if (on) this.terminal.focus();
    else this.terminal.blur();
    this.heard({ writes: on, cut: null });
  }

  /** Say whether somebody types in another field meanwhile: the keyboard is not taken from there. */
  isElsewhere() {
    const focused = document.activeElement;
    return focused !== this.terminal?.textarea && (isTyping(focused) || Boolean(focused?.closest("dialog")));
  }

  /**
   * Swallow what is pressed while nothing is sent; only `i` after a moment of rest begins again, when there is a
   * connection.
   * @param {KeyboardEvent} event
   */
  swallow(event) {
    event.stopPropagation();
    if (!(event.ctrlKey || event.metaKey || /^F\d/.test(event.key))) event.preventDefault();
    if (event.type !== "keydown") return;
    const isAtRest = event.timeStamp - this.pressed > STILL;
    this.pressed = event.timeStamp;
    if (this.cut === "back" && isAtRest && event.key === "i" && !event.repeat) this.write();
  }

  /** @param {KeyboardEvent} event */
  passes(event) {
    if (event.ctrlKey && event.key === "]") {
      event.preventDefault();
      if (event.type === "keydown") this.leave();
      return false;
    }
    if (this.cut) this.swallow(event);
    return this.writes;
  }

  /** Make it fit its place: a tile shows it whole or its last lines, the large one gets letters of the right size. */
  fit() {
    const screen = this.inside?.querySelector(".xterm-screen");
    const around = this.large ? 0 : AROUND;
    const [wide, high] = [this.place.clientWidth - 2 * around, this.place.clientHeight - 2 * around];
    if (!screen || wide <= 0 || high <= 0 || !this.rows) return;
    if (this.large) this.sizeLetters(wide, high);
    const shown = this.large ? { scale: 1, part: false } : this.choose(wide, high);
    const [width, height] = this.measure();
    const { scale } = shown;
    this.part = shown.part;
    this.place.classList.toggle("part", this.part && width > wide);
    this.inside.style.width = `${width}px`;
    this.inside.style.height = `${height}px`;
    this.inside.style.transform = Math.abs(scale - 1) < 0.002 ? "" : `scale(${scale})`;
    this.follow();
  }

  /**
   * @param {number} wide
   * @param {number} high
   */
  choose(wide, high) {
    const [width, height] = this.measure();
    const drawn = FONT.tile / this.terminal.options.fontSize;
    const shown = lettersIn({ width: width * drawn, height: height * drawn }, { wide, high });
    if (this.terminal.options.fontSize !== shown.font) this.terminal.options.fontSize = shown.font;
    return shown;
  }

  /** Keep the last line that says something in view, where only a part has room, unless somebody looks further up. */
  follow() {
    if (!this.part) {
      this.place.scrollTop = 0;
      this.place.scrollLeft = 0;
      return;
    }
    if (!this.follows) return;
    const { active } = this.terminal.buffer;
    let last = this.rows - 1;
    while (last > 0 && last !== active.cursorY && !active.getLine(active.viewportY + last)?.translateToString(true))
      last--;
    this.place.scrollTop = scrolledTo(last, this.measure()[1] / this.rows, this.place.clientHeight - 2 * AROUND);
    this.place.scrollLeft = 0;
  }

  /**
   * Let a wheel move the part that is shown; until the pointer leaves, it stays there.
   * @param {WheelEvent} event
   */
  roll(event) {
    if (!this.part || this.writes) return;
    const { scrollTop, scrollLeft } = this.place;
    this.place.scrollBy(event.deltaX, event.deltaY);
    if (this.place.scrollTop === scrollTop && this.place.scrollLeft === scrollLeft) return;
    this.follows = false;
    event.preventDefault();
    event.stopPropagation();
  }

  /** Return the element in which xterm draws. */
  screen() {
    return /** @type {HTMLElement} */ (this.inside.querySelector(".xterm-screen"));
  }

  measure() {
    const { offsetWidth, offsetHeight } = this.screen();
    return [offsetWidth, (offsetHeight / this.terminal.rows) * this.rows];
  }

  /**
   * @param {number} wide
   * @param {number} high
   */
  sizeLetters(wide, high) {
    const [width, height] = this.measure();
    const now = this.terminal.options.fontSize;
    const wanted =
      Math.floor(Math.max(FONT.least, Math.min(FONT.most, now * Math.min(wide / width, high / height))) * 4) / 4;
    if (wanted === now) return;
    this.terminal.options.fontSize = wanted;
    const [wider] = this.measure();
    if (wider > wide && wanted > FONT.least) this.terminal.options.fontSize = wanted - 0.25; // letters are as wide as pixels let them
  }

  close() {
    if (this.writes || this.cut) hush();
    this.closed = true;
    clearTimeout(this.timer);
    turns.delete(this);
    this.sizes.disconnect();
    this.themes.disconnect();
    this.socket?.close();
    this.terminal?.dispose();
    this.inside?.remove();
  }
}

const CUT = { lost: "Connection lost: keys are not sent.", back: "Connected again: press i or click to type on." };

/**
 * A session's terminal. `large`: letters of a size to read. `onHeard` hears what it tells ({ended}, {error}, {writes}).
 * It only looks until `i` or a click in it; while somebody types, its frame says so.
 * @param {{ session: string, large?: boolean, onHeard?: (told: Partial<TerminalShown>) => void, control?: Ref<Screen | null> | null }} props
 */
export function Live({ session, large = false, onHeard = () => {}, control = null }) {
  const place = useRef(null);
  /** @type {Ref<Screen>} */
  const screen = useRef(null);
  const [told, setTold] = useState(
    /** @type {TerminalShown} */ ({ shown: false, writes: false, cut: null, ended: false, error: null }),
  );
  useLayoutEffect(() => {
    /** @param {Partial<TerminalShown>} change */
    const heard = (change) => {
      setTold((before) => ({ ...before, ...change }));
      onHeard(change);
    };
    const made = new Screen(place.current, session, { large, heard });
    screen.current = made;
    made.open();
    if (control) control.current = made;
    return () => {
      if (control?.current === made) control.current = null;
      made.close();
    };
  }, [session, large]);
  const click = () => {
    const selected = screen.current?.terminal?.hasSelection();
    if ((large || told.cut) && !selected && !told.writes) screen.current.write();
  };
  const words = told.error ?? (told.ended ? "The run has ended." : told.shown || told.cut ? null : "Connecting…");
  const keeps = told.writes || told.cut;
  return html`<div class=${`live ${told.writes ? "typing" : told.cut ? "typing cut" : ""}`} role="group" aria-label=${`Terminal of ${session}`} data-keys=${keeps ? "own" : undefined}>
    <div class=${large ? "screen large" : "screen"} ref=${place} onClick=${click}></div>
    ${words && html`<p class="screen-words raised" role="status">${visible(words)}</p>`}
    ${keeps && html`<p class="typing-words row" role="status"><span class="one-line">${told.cut ? CUT[told.cut] : html`You are typing into <b>${visible(session, 60)}</b>`}</span> <button type="button" class="button" onMouseDown=${(event) => event.preventDefault()} onClick=${() => screen.current.leave()}>Leave typing <kbd>${LEAVE}</kbd></button></p>`}
  </div>`;
}

/**
 * Say whether an element can be seen now: in view, and the page before somebody. Becomes true a moment later, so that
 * scrolling past costs nothing.
 * @param {Ref<HTMLElement>} place
 */
export function useShown(place) {
  const [shown, setShown] = useState(false);
  useEffect(() => {
    let inView = false;
    let timer = 0;
    const judge = () => {
      clearTimeout(timer);
      const now = inView && !document.hidden;
      timer = setTimeout(() => setShown(now), now ? 120 : 1500);
    };
    const watcher = new IntersectionObserver(([entry]) => {
      inView = entry.isIntersecting;
      judge();
    });
    watcher.observe(place.current);
    const leave = hear(document, { visibilitychange: judge });
    return () => {
      clearTimeout(timer);
      watcher.disconnect();
      leave();
    };
  }, []);
  return shown;
}
