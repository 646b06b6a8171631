// Mail: a thread with each session, role and everyone, with receipts.
import { html, useEffect, useMemo, useRef, useState } from "../lib.js";
import { get, post, query } from "../data/api.js";
import { useCommands } from "../widgets/keys.js";
import { useRows } from "../widgets/view_hooks.js";
import { go, to } from "../data/routes.js";
import { state, useRead, useTopics } from "../data/store.js";
import { clock, some, visible } from "../rules/text.js";
import { Age, attempt, Button, Empty, State, Words } from "../widgets/ui.js";
/** @import { MessageFull, ReadingRow } from "types/rest.js" */
/** @import { MailMessage, MailThread } from "types/page.js" */
/** @import { PageEvent } from "types/vendor/htm.js" */

const PAGE = 1000;
const PAGES = 5;
const SENT = 500;
const SHOWN = 100;
const OWNER = "owner";
const COVEY = "covey"; // it writes, and reads nothing

/** Return all mail of the owner: what came in, with its state, and what went out. */
async function load() {
  const [received, events] = await Promise.all([
    loadReceived(),
    get(query("/api/log", { kind: "mail.sent", actor: OWNER, newest: true, limit: SENT })),
  ]);
  const sent = events.map(
    ({ seq, time, subject, data }) =>
      /** @type {MailMessage} */ ({
        id: subject,
        seq,
        sender: OWNER,
        sent: time,
        to: data.to,
        subject: data.subject ?? null,
        text: typeof data.text === "string" ? data.text : null,
        task: data.task ?? null,
        wants_ack: data.wants_ack ?? false,
        wake: data.wake ?? false,
      }),
  );
  return [...new Map([...sent, ...received].map((each) => [each.id, each])).values()].sort((a, b) => a.seq - b.seq);
}

async function loadReceived() {
  /** @type {MailMessage[]} */
  const received = [];
  for (let i = 0, after = 0; i < PAGES; i++) {
    const page = await get(query("/api/mail", { all: true, limit: PAGE, after }));
    received.push(...page);
    if (page.length < PAGE) break;
    after = page.at(-1).seq;
  }
  return received;
}

/**
 * Return with whom a message was exchanged: who wrote it, or to whom the owner wrote.
 * @param {MailMessage} message
 */
const otherOf = (message) =>
  message.sender === OWNER ? message.to : message.to === OWNER ? message.sender : message.to;
/** @param {MailMessage} message */
const isUnread = (message) => message.sender !== OWNER && !message.read;

/**
 * Return the threads, the latest first.
 * @param {MailMessage[]} messages
 */
function threadsOf(messages) {
  /** @type {Map<string, MailThread>} */
  const found = new Map();
  for (const message of messages) {
    const name = otherOf(message);
    const thread = found.get(name) ?? { name, messages: [], unread: 0, asks: 0 };
    found.set(name, thread);
    thread.messages.push(message);
    thread.unread += isUnread(message) ? 1 : 0;
    thread.asks += message.sender !== OWNER && message.wants_ack && !message.acked ? 1 : 0;
  }
  return [...found.values()].sort((a, b) => b.messages.at(-1).seq - a.messages.at(-1).seq);
}

/** @param {{ what: string | null }} props */
export function View({ what }) {
  const [messages, problem] = useRead(load, ["mail", "connection"]);
  const threads = useMemo(() => threadsOf(messages ?? []), [messages]);
  const thread =
    what === null
      ? null
      : (threads.find(({ name }) => name === what) ?? { name: what, messages: [], unread: 0, asks: 0 });
  useRows(".mail .thread-link", "thread");
  useCommands([{ label: "Write a message", keys: "c", group: "Mail", run: () => go("mail", "new") }], []);
  return html`<div class=${`mail ${what ? "reading" : ""}`}>
    <nav class="threads" aria-label="Threads">
      <div class="sheet-tools row"><${Button} kind="primary" keys="c" onClick=${() => go("mail", "new")}>Write<//></div>
      ${problem && !messages && html`<p class="loading">${problem.message}</p>`}
      ${!messages && !problem && html`<p class="loading" aria-busy="true">…</p>`}
      <ul>${threads.map((each) => html`<${ThreadLink} key=${each.name} thread=${each} current=${each.name === what} />`)}</ul>
      ${messages && !threads.length && html`<p class="faint threads-none">No mail yet.</p>`}
    </nav>
    ${what === "new" ? html`<${New} />` : thread ? html`<${Thread} key=${thread.name} thread=${thread} />` : messages && html`<${Empty} title=${threads.length ? "Choose a thread." : "No mail yet."}><p>Agents write to you with <code>covey mail send owner ...</code>; you write to a session, to all of a role, or to everyone.</p><//>`}
  </div>`;
}

/** @param {{ thread: MailThread, current: boolean }} props */
function ThreadLink({ thread, current }) {
  const last = thread.messages.at(-1);
  return html`<li><a class="thread-link" href=${to("mail", thread.name)} aria-current=${current ? "page" : null}>
    <span class="thread-name row one-line"><${Words} text=${thread.name} most=${80} />${thread.unread > 0 && html`<span class="unread">${thread.unread} new</span>`}</span><${Age} since=${last.sent} />
    <span class="thread-last soft one-line"><${Words} text=${(last.sender === OWNER ? "you: " : "") + (last.subject ?? last.text ?? "(a long text)")} most=${120} /></span>
  </a></li>`;
}

// One thread

/** @param {{ thread: MailThread }} props */
function Thread({ thread }) {
  const shown = thread.messages.slice(-SHOWN);
  const mine = shown.filter((message) => message.sender === OWNER).map(({ id }) => id);
  const [receipts] = useRead(
    async () =>
      new Map(
        await Promise.all(mine.slice(-20).map(async (id) => /** @type {const} */ ([id, await get(`/api/mail/${id}`)]))),
      ),
    ["mail"],
    [mine.slice(-20).join(" ")],
  );
  const end = useRef(null);
  const unread = shown
    .filter(isUnread)
    .map(({ id }) => id)
    .join(" ");
  useEffect(() => {
    end.current?.scrollIntoView({ block: "end" });
  }, [shown.at(-1)?.id]);
  useEffect(() => {
    if (!unread || document.hidden) return;
    for (const id of unread.split(" ")) post(`/api/mail/${id}/read`).catch(() => {}); // what is before one's eyes counts as read
  }, [unread]);
  return html`<section class="thread" aria-label=${`Thread with ${visible(thread.name)}`}>
    <header class="thread-head row"><a class="button quiet thread-back" href=${to("mail")} aria-label="Back to all threads">‹</a><h2><${Words} text=${thread.name} /></h2><${Who} name=${thread.name} /></header>
    <ol class="messages" tabindex="0" aria-label="Messages">${shown.map((message) => html`<${Message} key=${message.id} message=${message} receipt=${receipts?.get(message.id)} />`)}<li ref=${end} aria-hidden="true"></li></ol>
    ${thread.name !== COVEY && html`<${Compose} to=${thread.name} />`}
  </section>`;
}

/** @param {{ name: string }} props */
function Who({ name }) {
  useTopics(`session:${name}`);
  const session = state.sessions.get(name);
  if (session)
    return html`<${State} name=${session.state} word />${session.role && html`<span class="faint">${session.role}</span>`}`;
  return name === "everyone" ? html`<span class="faint">${some(state.sessions.size, "session")}</span>` : "";
}

/** @param {{ message: MailMessage, receipt: MessageFull | undefined }} props */
function Message({ message, receipt }) {
  const mine = message.sender === OWNER;
  const text = message.text ?? receipt?.text ?? "…";
  const ack = () => attempt(() => post(`/api/mail/${message.id}/ack`), "Acknowledged.");
  return html`<li class=${`message ${mine ? "mine" : ""}`}>
    <div class="message-head faint">${mine ? "you" : html`<${Words} text=${message.sender} />`}${message.to !== OWNER && !mine ? html` to <${Words} text=${message.to} />` : ""}, <time title=${new Date(message.sent * 1000).toLocaleString()}>${clock(message.sent)}</time>${message.task && html`, about <a href=${to("timeline", `task=${message.task}`)}>${message.task}</a>`}</div>
    ${message.subject && html`<p class="message-subject"><${Words} text=${message.subject} /></p>`}
    <p class="message-text as-written"><${Words} text=${text} most=${20000} /></p>
    <div class="message-foot faint">
      ${mine ? html`<${Receipt} message=${message} receipt=${receipt} />` : message.wants_ack ? (message.acked ? html`<span><${State} name="done" /> acknowledged ${clock(message.acked)}</span>` : html`<${Button} onClick=${ack}>Acknowledge<//>`) : ""}
    </div>
  </li>`;
}

/**
 * Whom a message has reached: delivered, read, acknowledged.
 * @param {{ message: MailMessage, receipt: MessageFull | undefined }} props
 */
function Receipt({ message, receipt }) {
  if (!receipt) return "sent";
  if (!receipt.readers.length)
    return html`<span>sent${receipt.waits ? html`: <${Words} text=${receipt.waits} />` : ", not read yet"}</span>`;
  /** @param {ReadingRow} props */
  const words = ({ delivered, acked }) =>
    acked ? `acknowledged ${clock(acked)}` : delivered ? `seen in its conversation ${clock(delivered)}` : "";
  return html`<ul class="receipts">${receipt.readers.slice(0, 12).map((each) => html`<li key=${each.reader}><${State} name=${each.acked || !message.wants_ack ? "done" : "waiting"} /> <${Words} text=${each.reader} /> ${words(each) || `read ${clock(each.read)}`}</li>`)}${receipt.readers.length > 12 && html`<li>and ${receipt.readers.length - 12} more</li>`}</ul>`;
}

// Writing

function New() {
  useTopics("sessions");
  const [name, setName] = useState("");
  const sessions = [...state.sessions.values()]
    .filter(({ kind }) => kind !== "person")
    .map((session) => session.name)
    .sort();
  const roles = [...new Set([...state.sessions.values()].map((session) => session.role).filter(Boolean))].sort();
  return html`<section class="thread" aria-label="New message">
    <header class="thread-head row"><a class="button quiet thread-back" href=${to("mail")} aria-label="Back to all threads">‹</a><h2>New message</h2></header>
    <label class="field new-to"><span>To</span><select data-first value=${name} onChange=${(event) => setName(event.target.value)}>
      <option value="">choose who shall read it</option>
      <option value="everyone">everyone</option>
      ${roles.length > 0 && html`<optgroup label="Everyone of a role">${roles.map((role) => html`<option key=${role} value=${`role:${role}`}>${visible(role)}</option>`)}</optgroup>`}
      ${sessions.length > 0 && html`<optgroup label="A session">${sessions.map((each) => html`<option key=${each} value=${each}>${visible(each)}</option>`)}</optgroup>`}
    </select></label>
    ${name && html`<${Compose} to=${name} subject focus onSent=${() => go("mail", name)} />`}
  </section>`;
}

/** @param {{ to: string, subject?: boolean, focus?: boolean, onSent?: (() => void) | null }} props */
function Compose({ to: name, subject: asksSubject = false, focus = false, onSent = null }) {
  const kept = `covey.draft.${name}`;
  const [text, setText] = useState(() => sessionStorage.getItem(kept) ?? "");
  const [subject, setSubject] = useState("");
  const [wake, setWake] = useState(true);
  const [ack, setAck] = useState(false);
  const field = useRef(null);
  useEffect(() => {
    if (focus) field.current?.focus();
  }, []);
  /** @param {PageEvent} event */
  const type = (event) => {
    setText(event.target.value);
    sessionStorage.setItem(kept, event.target.value);
  };
  /** @param {PageEvent} event */
  const send = async (event) => {
    event.preventDefault();
    if (!text.trim()) return;
    const sent = await attempt(
      () =>
        post("/api/mail", {
          to: name,
          text: text.trim(),
          ...(subject.trim() ? { subject: subject.trim() } : {}),
          wants_ack: ack,
          wake: wake && name !== OWNER,
        }),
      "Sent.",
    );
    if (sent === undefined) return;
    sessionStorage.removeItem(kept);
    setText("");
    setSubject("");
    onSent?.();
  };
  return html`<form class="compose" onSubmit=${send}>
    ${asksSubject && html`<input aria-label="Subject" placeholder="Subject (if you want one)" value=${subject} onInput=${(event) => setSubject(event.target.value)} />`}
    <textarea ref=${field} rows="3" aria-label=${`Message to ${visible(name)}`} placeholder=${`Write to ${visible(name, 40)}`} value=${text} onInput=${type} onKeyDown=${(event) => event.key === "Enter" && (event.ctrlKey || event.metaKey) && send(event)}></textarea>
    <div class="compose-foot row">
      <label class="check"><input type="checkbox" checked=${wake} onChange=${(event) => setWake(event.target.checked)} /> tell it at once</label>
      <label class="check"><input type="checkbox" checked=${ack} onChange=${(event) => setAck(event.target.checked)} /> ask for an acknowledgement</label>
      <button class="button primary" type="submit" disabled=${!text.trim()}>Send <kbd>Ctrl+Enter</kbd></button>
    </div>
  </form>`;
}
