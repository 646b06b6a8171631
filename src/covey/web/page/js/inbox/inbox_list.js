// The list of everything that waits for a person, oldest first, with the buttons that answer it.
import { html, useEffect, useLayoutEffect, useRef, useState } from "../lib.js";
import { repeat } from "../widgets/view_hooks.js";
import { get, post, query } from "../data/api.js";
import { decisionsOf, rows, ruleOf, told } from "../rules/groups.js";
import { inGroup, useCommands } from "../widgets/keys.js";
import { go, to } from "../data/routes.js";
import { Settled } from "../rules/decided.js";
import { listen, loadInbox, state, touch, useRead, useTopics } from "../data/store.js";
import { ageless, span, some, visible } from "../rules/text.js";
import { Age, Button, CommandWords, Empty, State, Words, attempt, confirm, note } from "../widgets/ui.js";
/** @import { Decision } from "types/rest.js" */
/** @import { InboxAction, InboxGroup, InboxItem, Trouble } from "types/page.js" */
/** @import { PageEvent } from "types/vendor/htm.js" */
/** @import { Child } from "types/vendor/preact.js" */

const on = inGroup("Inbox");

// What waits, without what was just answered here

const settled = new Settled();
/** @type {{ from: InboxItem[] | null, items: InboxItem[] }} */
let listed = { from: null, items: [] };

/** Return the inbox without the fleet that a person paused: the strip says that, and has the switch. */
function listedNow() {
  if (listed.from !== state.inbox)
    listed = { from: state.inbox, items: state.inbox.filter(({ key }) => key !== "queue:fleet") };
  return listed.items;
}

/** Return what waits for a person, oldest first; what was answered here is gone before the daemon has said so. */
export const waiting = () => settled.shown(listedNow(), Date.now());

/**
 * Do what settles an item: it is gone at once, comes back if that failed, and is never done twice.
 * @param {InboxItem} item
 * @param {() => Promise<unknown>} work
 * @param {string | null} [done]
 * @param {(() => Promise<unknown>) | null} [undo]
 */
async function settle(item, work, done = null, undo = null) {
  const marks = settled.take(item);
  if (!marks.length) return;
  touch("inbox");
  const answered = await attempt(work, undo ? null : done);
  if (undo && answered !== undefined) note(done ?? "", { undo: () => takeBack(marks, undo) });
  settled.end(marks, answered !== undefined, Date.now());
  showSettled();
}

/** Show what is settled by now, and again when it would be back if the daemon did not say so. */
function showSettled() {
  touch("inbox");
  loadInbox();
  setTimeout(() => touch("inbox"), settled.hold + 100);
}

/**
 * Take back what settled an item: it stands there again when the daemon says so.
 * @param {string[]} marks
 * @param {() => Promise<unknown>} undo
 */
async function takeBack(marks, undo) {
  await attempt(undo, "Taken back.");
  settled.end(marks, false, Date.now());
  loadInbox();
}

// What waits by its cause: groups can be decided at once, or unfolded and decided one by one

/** @type {Set<string>} */
const unfolded = new Set();
/** @type {{ from: InboxItem[] | null, key?: string, rows: (InboxItem | InboxGroup)[] }} */
let standing = { from: null, rows: [] };

/** Return what is listed: items, groups of them, and the members of those that are unfolded. */
function listedRows() {
  const items = waiting();
  const key = [...unfolded].join("\n");
  if (standing.from !== items || standing.key !== key) standing = { from: items, key, rows: rows(items, unfolded) };
  return standing.rows;
}

/** @param {InboxGroup} group */
function unfold(group) {
  if (!unfolded.delete(group.key)) unfolded.add(group.key);
  touch("inbox-focus");
}

const AT_ONCE = 8;

/**
 * Settle each of many; what could not be is back at once, and told with the first reason why.
 * @param {InboxItem[]} members
 * @param {string} noun
 * @param {string} deed
 * @param {(item: InboxItem) => Promise<unknown>} work
 */
async function settleEach(members, noun, deed, work) {
  /** @type {{ item: InboxItem, marks: string[], isDone?: boolean, reason?: Trouble }[]} */
  const taken = members.map((item) => ({ item, marks: settled.take(item) })).filter(({ marks }) => marks.length);
  if (!taken.length) return;
  touch("inbox");
  const done = await attempt(async () => {
    for (let at = 0; at < taken.length; at += AT_ONCE) {
      const now = taken.slice(at, at + AT_ONCE);
      const ended = await Promise.allSettled(now.map(({ item }) => work(item)));
      ended.forEach((end, place) =>
        Object.assign(now[place], end.status === "fulfilled" ? { isDone: true } : { reason: end.reason }),
      );
    }
    return true;
  });
  for (const { marks, isDone } of taken) settled.end(marks, isDone === true, Date.now());
  if (done) {
    const failed = taken.find(({ isDone }) => !isDone);
    const { text, ...more } = told(
      taken.length,
      taken.filter(({ isDone }) => isDone).length,
      noun,
      deed,
      failed && { name: failed.item.task ?? failed.item.ids[0], message: failed.reason?.message ?? "" },
    );
    note(text, more);
  }
  showSettled();
}

/**
 * @param {string} id
 * @param {Decision} decision
 * @param {string} text
 * @param {string} [about]
 */
const send = (id, decision, text, about) =>
  post(`/api/questions/${id}/answer`, { decision, text, ...(about === undefined ? {} : { about }) });

/**
 * Answer one question of many; one that somebody else has answered meanwhile is no trouble.
 * @param {InboxItem} item
 * @param {Decision} decision
 * @param {string} text
 * @param {string} [about]
 */
async function answerOne(item, decision, text, about) {
  try {
    await send(item.ids[0], decision, text, about);
  } catch (error) {
    if (/** @type {Trouble} */ (error).status !== 409) throw error;
  }
}

/**
 * @param {InboxGroup} group
 * @param {Decision} decision
 * @param {string} deed
 */
const answerEach = (group, decision, deed, text = "") =>
  settleEach(group.members, "question", deed, (item) => answerOne(item, decision, text));

/**
 * Allow all of a group for good by one rule: that lets the others through itself.
 * @param {InboxGroup} group
 * @param {string} rule
 */
function allowAll(group, rule) {
  const [first] = group.members;
  return settle(first, () => answerOne(first, "always", "", rule), `Allowed from now on: ${visible(rule, 60)}`);
}

/**
 * Ask why something is to be dropped.
 * @param {string} title
 * @param {string} body
 * @param {string} text
 */
const askWhy = (title, body, text, required = true) =>
  confirm({ title, body, text, action: "Drop", danger: true, required });

/** @param {InboxGroup} group */
async function dropEach(group) {
  const body = group.members.map(({ task }) => task).join(", ");
  const reason = await askWhy(`Drop ${group.members.length} tasks?`, body, "Why they are not wanted any more");
  if (reason)
    await settleEach(group.members, "task", "were dropped", (item) => post(`/api/board/${item.task}/drop`, { reason }));
}

/** @param {InboxGroup} group */
function ofGroup(group) {
  /** @param {string} decision */
  const may = (decision) => decisionsOf(group).includes(decision);
  const rule = ruleOf(group);
  const [first] = group.items;
  const whole = group.items.length === 1 && first.kind === "session" ? ofSession(first) : [];
  /** @type {Record<string, (InboxAction | false)[]>} */
  const ways = {
    blocked: [
      may("reopen") && {
        label: "Try all again",
        kind: "primary",
        run: () =>
          settleEach(group.members, "task", "are to do again", (item) => post(`/api/board/${item.task}/reopen`)),
      },
      may("drop") && { label: "Drop all", kind: "danger", run: () => dropEach(group) },
    ],
    question: [
      may("allow") && {
        label: "Allow all once",
        kind: "primary",
        run: () => answerEach(group, "allow", "are allowed once"),
      },
      may("always") &&
        rule !== null && {
          label: `Always allow “${visible(rule, 60)}”`,
          short: "Allow all such",
          run: () => allowAll(group, rule),
        },
      may("always") &&
        rule === null &&
        group.items.length === 1 && {
          label: "Allow for this repository",
          short: "Allow for repo",
          run: () => answer(first, "always"),
        },
      may("allow") &&
        may("deny") && { label: "Deny all", kind: "danger", run: () => answerEach(group, "deny", "are denied") },
      may("allow") &&
        may("deny") && {
          label: "Deny all, and say why",
          short: "Reply to all",
          field: "Why not, and what to do instead",
          action: "Deny with this",
          write: (/** @type {string} */ text) => answerEach(group, "deny", "are denied", text),
        },
      ...(may("reply")
        ? [...new Set(group.items.flatMap(({ choices }) => choices))].map((choice) => ({
            label: visible(choice, 120),
            choice: true,
            run: () => answerEach(group, "reply", "are answered", choice),
          }))
        : []),
      may("reply") && {
        label: "Reply to all",
        kind: "primary",
        field: "Your answer to all of them",
        action: "Send",
        write: (/** @type {string} */ text) => answerEach(group, "reply", "are answered", text),
      },
    ],
  };
  return [
    ...(ways[group.kind] ?? whole).filter((way) => way !== false),
    { label: unfolded.has(group.key) ? "Hide each" : "Show each", run: () => unfold(group) },
  ];
}

// What can be done with each kind

/**
 * Answer each question of an item; one that somebody else has answered meanwhile is no trouble among others.
 * @param {InboxItem} item
 * @param {Decision} decision
 * @param {string | undefined} [about]
 */
function answer(item, decision, text = "", about = undefined) {
  return settle(item, async () => {
    const ids = decision === "always" ? item.ids.slice(0, 1) : item.ids; // a permit lets the others through itself
    const ended = await Promise.allSettled(ids.map((id) => send(id, decision, text, about)));
    const failed = ended.filter((end) => end.status === "rejected");
    if (failed.length && (failed.length === ids.length || failed.some(({ reason }) => reason.status !== 409)))
      throw failed[0].reason;
  });
}

/**
 * Say whether an item can be allowed for good by a rule that is wider than it.
 * @param {InboxItem} item
 */
const offers = (item) => Boolean(item.rule) && item.rule !== item.about;

/** @param {InboxItem} item */
function permission(item) {
  /** @param {string} decision */
  const may = (decision) => !item.decisions?.length || item.decisions.includes(decision);
  return [
    may("allow") && { label: "Allow once", kind: "primary", run: () => answer(item, "allow") },
    may("always") && { label: "Allow for this repository", short: "Allow for repo", run: () => answer(item, "always") },
    may("deny") && { label: "Deny", kind: "danger", run: () => answer(item, "deny") },
    may("deny") && {
      label: "Deny, and say why",
      short: "Reply",
      write: (/** @type {string} */ text) => answer(item, "deny", text),
      field: "Why not, and what to do instead",
      action: "Deny with this",
    },
    may("always") &&
      offers(item) && {
        label: `Always allow “${visible(item.rule, 60)}”`,
        short: "Allow all such",
        run: () => answer(item, "always", "", item.rule),
      },
  ].filter((way) => way !== false);
}

/** @param {InboxItem} item */
function reply(item) {
  return [
    ...item.choices.map((choice) => ({
      label: visible(choice, 120),
      run: () => answer(item, "reply", choice),
      choice: true,
    })),
    {
      label: "Reply",
      kind: item.choices.length ? "" : "primary",
      write: (/** @type {string} */ text) => answer(item, "reply", text),
      field: "Your answer",
      action: "Send",
    },
  ];
}

/** @param {InboxItem} item */
const isPermission = (item) =>
  item.decisions?.includes("allow") || (item.tool !== "" && item.tool !== null && item.tool !== undefined);

/** @param {InboxItem} item */
const ofBlocked = (item) =>
  [
    (item.decisions ?? ["reopen"]).includes("reopen") && {
      label: "Try again",
      kind: "primary",
      run: () => settle(item, () => post(`/api/board/${item.task}/reopen`), `${item.task} is to do again.`),
    },
    { label: "Edit", run: () => edit(item.task ?? "") },
    { label: "Drop", kind: "danger", run: () => dropTask(item) },
    { label: "Open", run: () => go("board", item.task) },
  ].filter((way) => way !== false);

/** @param {InboxItem} item */
function approve(item) {
  const at = `/api/merges/${item.ids[0]}`;
  return settle(
    item,
    () => post(`${at}/approve`),
    `${item.task} goes into the queue.`,
    () => post(`${at}/hold`, {}),
  );
}

/** Return a command for each merge that waits for a person's word. */
export function approvals() {
  return waiting()
    .filter(({ kind }) => kind === "approve")
    .map((item) => on(`Approve ${item.task} ${visible(item.title, 120)}`, undefined, () => approve(item)));
}

/** @param {InboxItem} item */
const ofMerge = (item) => [
  { label: "Approve", kind: "primary", run: () => approve(item) },
  {
    label: "Send back",
    field: "What has to change",
    action: "Send back",
    write: (/** @type {string} */ text) =>
      settle(
        item,
        () => post(`/api/merges/${item.ids[0]}/reject`, { reason: text }),
        `${item.task} goes back to ${item.session ?? "its author"}.`,
      ),
  },
  { label: "Review", run: () => go("review", item.task) },
];

/** @param {InboxItem} item */
const ofLanding = (item) => [
  { label: "Why", kind: "primary", run: () => go("queue", item.ids[0]) },
  { label: "Drop the merge", kind: "danger", run: () => dropMerge(item) },
];

/** @type {Record<string, [string, string]>} */
const WAYS = {
  resume: ["Go on", "/api/queue/resume"],
  thaw: ["Thaw", "/api/queue/thaw"],
  "resume-fleet": ["Go on", "/api/resume"],
};

/** @param {InboxItem} item */
function ofQueue(item) {
  const ways = (item.decisions ?? [])
    .filter((way) => WAYS[way])
    .map((way) => ({ label: WAYS[way][0], kind: "primary", run: () => settle(item, () => post(WAYS[way][1])) }));
  return [...ways, { label: "Open the queue", run: () => go("queue") }];
}

/** @param {InboxItem} item */
function ofSession(item) {
  const names = item.ids.length ? item.ids : [item.session];
  const who = names.length > 1 ? some(names.length, "session") : names[0];
  /**
   * @param {"restart" | "start" | "stop"} verb
   * @param {string} done
   */
  const each = (verb, done) => () =>
    settle(item, () => Promise.all(names.map((name) => post(`/api/sessions/${name}/${verb}`))), `${who} ${done}`);
  /** @type {Record<string, InboxAction>} */
  const ways = {
    restart: {
      label: "Restart",
      kind: "primary",
      run: each("restart", names.length > 1 ? "start again." : "starts again."),
    },
    start: { label: "Start now", kind: "primary", run: each("start", names.length > 1 ? "start." : "starts.") },
    stop: { label: "Stop the session", kind: "danger", run: each("stop", names.length > 1 ? "stop." : "stops.") },
  };
  const wanted = item.decisions?.length ? item.decisions : ["restart", "stop"];
  return [
    ...wanted.map((way) => ways[way]).filter(Boolean),
    { label: "Open", kind: wanted.includes("attach") ? "primary" : "", run: () => go("sessions", item.session) },
  ];
}

/** @param {InboxItem} item */
const ofMail = (item) => [
  { label: "Acknowledge", kind: "primary", run: () => settle(item, () => acknowledge(item)) },
  {
    label: "Reply",
    field: `To ${item.session}`,
    action: "Send",
    write: (/** @type {string} */ text) => settle(item, () => replyTo(item, text), `${item.session} gets your answer.`),
  },
  { label: "Open", run: () => go("mail", item.session) },
];

/** @param {InboxItem} item */
function ofProposal(item) {
  const at = `/api/proposals/${item.ids[0]}`;
  const anyway = item.decisions?.includes("accept-anyway");
  return [
    {
      label: anyway ? "Accept anyway" : "Accept",
      kind: anyway ? "" : "primary",
      run: () =>
        settle(item, () => post(`${at}/accept`, anyway ? { anyway } : {}), `Done, and ${item.session} is told.`),
    },
    {
      label: "Decline",
      kind: "danger",
      run: () => settle(item, () => post(`${at}/decline`, {}), `${item.session} is told that it will not be done.`),
    },
    {
      label: "Decline, and say why",
      short: "Say why",
      field: "Why not",
      action: "Decline with this",
      write: (/** @type {string} */ text) =>
        settle(item, () => post(`${at}/decline`, { reason: text }), `${item.session} is told why.`),
    },
  ];
}

/**
 * Tasks that nobody takes: their sessions are started, or there are to be others.
 * @param {InboxItem} item
 */
const ofWaits = (item) => [
  ...(item.decisions.includes("start")
    ? [
        {
          label: item.ids.length > 1 ? `Start ${some(item.ids.length, "session")}` : `Start ${item.ids[0]}`,
          kind: "primary",
          run: () =>
            settle(item, () => Promise.all(item.ids.map((name) => post(`/api/sessions/${name}/start`))), "Started."),
        },
      ]
    : []),
  { label: "Open the sessions", run: () => go("sessions") },
  { label: "Open the first task", short: "First task", run: () => go("board", item.tasks[0]) },
];

/** @param {InboxItem} item */
const ofQuestion = (item) => (isPermission(item) ? permission(item) : reply(item));
/** @type {Record<string, (item: InboxItem) => InboxAction[]>} */
const ACTIONS = {
  question: ofQuestion,
  blocked: ofBlocked,
  approve: ofMerge,
  landing: ofLanding,
  queue: ofQueue,
  session: ofSession,
  mail: ofMail,
  proposal: ofProposal,
  waits: ofWaits,
};

/**
 * Say whether a row of the list stands for several things.
 * @param {InboxItem | InboxGroup} item
 * @returns {item is InboxGroup}
 */
const isGroup = (item) => "members" in item;

/**
 * Return all that can be done with an item, in the order of its number keys.
 * @param {InboxItem | InboxGroup} item
 * @returns {InboxAction[]}
 */
function actionsOf(item) {
  if (isGroup(item)) return ofGroup(item);
  return ACTIONS[item.kind]?.(item) ?? [];
}

/** @param {InboxItem} item */
const acknowledge = (item) => Promise.all(item.ids.map((id) => post(`/api/mail/${id}/ack`)));

/**
 * @param {InboxItem} item
 * @param {string} text
 */
async function replyTo(item, text) {
  const sent = await post("/api/mail", { to: item.session ?? "", text, task: item.task ?? undefined, wake: true });
  await acknowledge(item);
  return sent;
}

/** @param {InboxItem} item */
async function dropTask(item) {
  const reason = await askWhy(`Drop ${item.task}?`, item.title, "Why it is not wanted any more");
  if (reason) await settle(item, () => post(`/api/board/${item.task}/drop`, { reason }), `${item.task} was dropped.`);
}

/** @param {InboxItem} item */
async function dropMerge(item) {
  const reason = await askWhy(`Drop the merge of ${item.task}?`, item.title, "Why it shall not land", false);
  if (reason !== null)
    await settle(
      item,
      () => post(`/api/merges/${item.ids[0]}/drop`, reason ? { reason } : {}),
      `${item.task} does not land.`,
    );
}

/** @param {string} id */
async function edit(id) {
  const { TaskForm } = await import("../board/task_form.js");
  current.edits = { id, TaskForm };
  touch("inbox-focus");
}

/**
 * Go to where all of an item can be seen.
 * @param {InboxItem | InboxGroup} item
 */
export function open(item) {
  if (isGroup(item)) return unfold(item);
  const [id] = item.ids;
  if (item.kind === "approve") go("review", item.task);
  else if (item.kind === "mail") go("mail", item.session);
  else if (item.kind === "queue" || item.kind === "landing") go("queue", item.kind === "landing" ? id : null);
  else if (item.kind === "session" || (item.kind === "question" && item.session)) go("sessions", item.session);
  else if (item.kind === "waits") go("sessions");
  else if (item.task) go("board", item.task);
}

// One item

/** @type {Record<string, string>} */
const HEADS = {
  blocked: "is blocked",
  approve: "waits for your review",
  landing: "cannot land",
};

/**
 * Return who or what an item is about, and what it is.
 * @param {InboxItem} item
 */
function headOf(item) {
  const many = item.sessions?.length > 1 ? some(item.sessions.length, "agent") : item.session;
  if (item.kind === "question") {
    const title = visible(item.title, 80);
    return [many, item.sessions?.length > 1 ? title.replace(/^(ask|want)s\b/, "$1") : title];
  }
  if (item.kind === "session") return [many, many === item.session ? item.title : item.title.replace(/^is /, "are ")];
  if (item.kind === "mail") return [item.session, "writes"];
  if (item.kind === "proposal") return [item.session, visible(item.title, 200)];
  if (item.kind === "waits") return [null, `${some(item.tasks.length, "task")} that nobody takes`];
  if (item.kind === "approve" && item.untested) return [item.task, "waits for your approval"];
  if (HEADS[item.kind]) return [item.task, HEADS[item.kind]];
  return [null, item.title];
}

/** @type {Record<string, string>} */
const SIGNS = {
  question: "needs-you",
  blocked: "blocked",
  approve: "review",
  landing: "failed",
  queue: "paused",
  session: "stalled",
  mail: "idle",
  proposal: "needs-you",
  setting: "needs-you",
  waits: "waiting",
};
/** @param {InboxItem} item */
const signOf = (item) => (item.kind === "session" ? item.title.replace(/^is /, "") : (SIGNS[item.kind] ?? "needs-you"));

const DIFF = /^(@@ |diff --git |--- |\+\+\+ )/m;

/**
 * Return what a line of a diff is: added, removed, or where it stands.
 * @param {string} line
 */
function kindOf(line) {
  if (/^(@@|\+\+\+ |--- |diff --git )/.test(line)) return "place";
  return { "+": "added", "-": "removed" }[line[0]] ?? "";
}

/**
 * Text as it was sent, in place: it scrolls inside its box, and lines of a diff have their colours.
 * @param {{ text: string, most?: number, label: string }} props
 */
function Given({ text, most = 16_384, label }) {
  const shown = visible(text, most).trimEnd();
  if (!DIFF.test(shown))
    return html`<pre class="given sunken as-written" tabindex="0" role="group" aria-label=${label}><bdi>${shown}</bdi></pre>`;
  return html`<pre class="given diff sunken as-written" tabindex="0" role="group" aria-label=${label}><span class="given-lines">${shown.split("\n").map((line, place) => html`<bdi key=${place} class=${kindOf(line)}>${line}${"\n"}</bdi>`)}</span></pre>`;
}

/**
 * What somebody wrote; a long text scrolls in its place, also by keyboard.
 * @param {{ text: string, class?: string }} props
 */
function Prose({ text, class: name = "ask-text" }) {
  const long = text.length > 400 || text.split("\n", 9).length > 8;
  return html`<p class=${`${name} as-written ${long ? "long-text" : ""}`} tabindex=${long ? 0 : undefined} role=${long ? "group" : undefined} aria-label=${long ? "What it says" : undefined}><${Words} text=${text} most=${16_384} /></p>`;
}

/**
 * How large the change is that waits, and its first files.
 * @param {{ item: InboxItem }} props
 */
function Files({ item }) {
  const [diff] = useRead(() => get(query(`/api/board/${item.task}/diff`, { context: 0 })), [], [item.ids[0]]);
  if (!diff?.files.length) return null;
  const count = diff.files.length + diff.more;
  const shown = diff.files.slice(0, 4);
  return html`<ul class="ask-files" aria-label="What it changes">
    <li class="one-line"><span class="plus">+${diff.plus}</span> <span class="minus">−${diff.minus}</span> in ${some(count, "file")}</li>
    ${shown.map(({ path }) => html`<li key=${path} class="one-line"><${Words} text=${path} most=${200} class="mono" /></li>`)}
    ${count > shown.length && html`<li class="faint one-line">and ${some(count - shown.length, "file")} more</li>`}
  </ul>`;
}

/** @param {{ item: InboxItem }} props */
function Body({ item }) {
  const { kind, text, about } = item;
  if (kind === "question" && about && isPermission(item)) {
    return html`<${Given} text=${about} label="What it wants to do" />
      ${text && !text.includes(about) && !about.includes(text) && html`<${Prose} text=${text} class="ask-why" />`}
      ${offers(item) && html`<${Prose} text=${`“${item.rule}” for good would allow ${item.allows}.`} class="ask-why" />`}`;
  }
  if (kind === "question" && isPermission(item)) return html`<${Given} text=${text} label="What it wants to do" />`;
  if (kind === "approve") {
    return html`${item.why && html`<${Prose} text=${item.why} />`}<${Files} item=${item} />`;
  }
  if (kind === "waits")
    return html`<${Prose} text=${`${item.title}.`} />${text && html`<pre class="given sunken as-written" tabindex="0" role="group" aria-label="What changes it"><${CommandWords} text=${text} most=${2000} /></pre>`}`;
  if (kind === "session") return text ? html`<${Prose} text=${ageless(text)} />` : null;
  if (!text) return null;
  return DIFF.test(text) ? html`<${Given} text=${text} label="The question" />` : html`<${Prose} text=${text} />`;
}

const SOON = 600;

/**
 * When nobody answers, it is denied: how long that is away.
 * @param {{ until: number }} props
 */
function Until({ until }) {
  const place = useRef(null);
  useEffect(() => {
    const draw = () => {
      const left = until - Date.now() / 1000;
      const text = left > 0 ? `denied in ${span(left)}` : "denied now";
      if (place.current && place.current.textContent !== text) {
        place.current.textContent = text;
        place.current.classList.toggle("soon", left < SOON);
      }
    };
    return repeat(draw, 1000);
  }, [until]);
  return html`<span class="ask-until" ref=${place}></span>`;
}

/** @type {Map<string, string>} */
const writing = new Map();

/**
 * A field for an answer in words; what was typed stays while the list changes around it.
 * @param {{ item: InboxItem | InboxGroup, action: InboxAction, onEnd: () => void }} props
 */
function Writing({ item, action, onEnd }) {
  const [text, setText] = useState(writing.get(item.key) ?? "");
  /** @param {PageEvent} event */
  const type = (event) => {
    writing.set(item.key, event.target.value);
    setText(event.target.value);
  };
  /** @param {PageEvent} event */
  const send = (event) => {
    event.preventDefault();
    if (!text.trim()) return;
    writing.delete(item.key);
    onEnd();
    action.write?.(text.trim());
  };
  /** @param {PageEvent} event */
  const press = (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) send(event);
    if (event.key === "Escape") {
      event.stopPropagation();
      onEnd();
      event.target.closest(".ask")?.focus();
    }
  };
  return html`<form class="ask-write" onSubmit=${send}>
    <label><span class="unseen">${action.field}</span><textarea rows="2" placeholder=${action.field} value=${text} onInput=${type} onKeyDown=${press} ref=${(/** @type {HTMLElement | null} */ field) => field?.dataset.begun ?? begin(field)}></textarea></label>
    <div class="ask-actions buttons"><button class="button primary" type="submit" disabled=${!text.trim()}>${action.action}<kbd>Ctrl+Enter</kbd></button><${Button} kind="quiet" onClick=${onEnd}>Cancel<//></div>
  </form>`;
}

/** @param {HTMLElement | null} field */
function begin(field) {
  if (!field) return;
  field.dataset.begun = "yes";
  field.focus();
}

/**
 * @param {InboxItem | InboxGroup} item
 * @param {InboxAction} action
 */
function press(item, action) {
  if (action.write) {
    current.writes = { key: item.key, label: action.label };
    touch("inbox-focus");
  } else {
    action.run?.();
  }
}

/**
 * Return who a group is about, and what it is.
 * @param {InboxGroup} props
 */
function headOfGroup({ kind, members, items }) {
  const who = new Set(members.map(({ session }) => session)).size;
  if (kind === "blocked") return [some(members.length, "task"), "are blocked by the same"];
  if (kind === "session") return [some(members.length, "session"), items[0].title.replace(/^is /, "are ")];
  if (items.length === 1 && who > 1) return headOf(items[0]);
  const [one, several] = isPermission(items[0])
    ? ["wants permissions", "want a permission"]
    : ["asks the same again", "ask the same"];
  return [some(who, "agent"), who === 1 ? one : several];
}

const NAMES = 8;

/**
 * The members of a group by name, each of which leads there.
 * @param {{ group: InboxGroup, until: number }} props
 */
function Names({ group, until }) {
  const shown = group.members.slice(0, NAMES);
  /** @param {InboxItem} item */
  const place = (item) => (group.kind === "blocked" ? to("board", item.task) : to("sessions", item.session));
  return html`<p class="ask-names">${shown.map((item) => html`<a key=${item.key} href=${place(item)} title=${visible(state.tasks.get(item.task ?? "")?.title ?? "", 200)}><${Words} text=${group.kind === "blocked" ? item.task : item.session} most=${40} /></a>`)}${group.members.length > NAMES && html`<span>and ${group.members.length - NAMES} more</span>`}${Number.isFinite(until) && html`<${Until} until=${until} />`}</p>`;
}

/**
 * What all of a group have in common: the error, the question, or what each of them wants to do.
 * @param {{ group: InboxGroup }} props
 */
function Common({ group }) {
  const [first] = group.items;
  if (group.items.length === 1) return html`<${Body} item=${first} />`;
  if (group.kind !== "question") return html`<${Prose} text=${first.text} />`;
  const rule = ruleOf(group);
  return html`<${Given} text=${group.items.map(({ about, text }) => about || text).join("\n")} label="What they want to do" />
    ${rule && html`<${Prose} text=${`“${rule}” for good would allow ${first.allows}.`} class="ask-why" />`}`;
}

/** @param {InboxGroup} group */
const countedUntil = (group) => Math.min(...group.members.map(({ until }) => until ?? Infinity));

/** @param {{ group: InboxGroup, first: boolean }} props */
function Group({ group, first }) {
  useTopics(...group.members.slice(0, NAMES).map(({ task }) => (task ? `task:${task}` : "none")));
  const [who, what] = headOfGroup(group);
  const until = group.kind === "question" ? countedUntil(group) : Infinity;
  return html`<${Shell} item=${group} first=${first} label=${`${who} ${what}`} name=${`ask-${group.kind} ask-group`}>
    <header class="ask-head row"><${State} name=${SIGNS[group.kind] ?? "needs-you"} /><h3 class="one-line"><b>${who}</b> ${what}</h3><${Age} since=${group.since} /></header>
    <${Common} group=${group} />
    <${Names} group=${group} until=${until} />
  <//>`;
}

/**
 * One row of the inbox, whatever is in it, with its answers below.
 * @param {{ item: InboxItem | InboxGroup, first: boolean, label: string, name: string, children: Child }} props
 */
function Shell({ item, first, label, name, children }) {
  const actions = actionsOf(item);
  const focused = current.key === item.key;
  const written =
    current.writes?.key === item.key ? actions.find((action) => action.label === current.writes?.label) : null;
  const end = () => {
    current.writes = null;
    touch("inbox-focus");
  };
  const numbered = focused || first;
  return html`<li class=${`ask ${name} ${numbered ? "near" : ""} ${item.within ? "within" : ""}`} data-key=${item.key} tabindex=${numbered ? 0 : -1} aria-label=${label} onFocusIn=${() => look(item.key)}>
    ${children}
    ${
      written
        ? html`<${Writing} item=${item} action=${written} onEnd=${end} />`
        : html`<div class=${`ask-actions buttons ${item.kind === "question" && isPermission(isGroup(item) ? item.items[0] : item) ? "paired" : ""}`} role="group" aria-label="Answers">${actions.map(
            (action, index) => html`<button type="button" key=${action.label} title=${action.label}
          class=${`button ${action.kind ?? ""} ${action.choice ? "choice" : ""}`} aria-keyshortcuts=${numbered && index < 9 ? String(index + 1) : undefined} onClick=${(event) => event.detail < 2 && press(item, action)}>
          <bdi>${action.short ?? action.label}${action.write && "…"}</bdi>${numbered && index < 9 && html`<kbd aria-hidden="true">${index + 1}</kbd>`}</button>`,
          )}</div>`
    }
  </li>`;
}

/** @param {{ item: InboxItem, first: boolean }} props */
function Item({ item, first }) {
  useTopics(item.task ? `task:${item.task}` : "none", item.session ? `session:${item.session}` : "none");
  const [who, what] = headOf(item);
  const task = item.task ? state.tasks.get(item.task) : undefined;
  return html`<${Shell} item=${item} first=${first} label=${`${who ?? ""} ${what}`.trim()} name=${`ask-${item.kind}`}>
    <header class="ask-head row">
      <${State} name=${signOf(item)} />
      <h3 class="one-line">${who && html`<a href=${item.kind === "question" || ["session", "mail", "proposal"].includes(item.kind) ? to("sessions", item.session) : to("board", item.task)}><${Words} text=${who} most=${60} /></a> `}${what}</h3>
      <${Age} since=${item.since} />
    </header>
    ${(item.task || item.until) && html`<p class="ask-task">${item.task && !HEADS[item.kind] && html`<a class="mono" href=${to("board", item.task)}>${item.task}</a>`}<${Words} text=${task?.title ?? (HEADS[item.kind] ? item.title : "")} most=${200} class="ask-title one-line" />${item.until && item.kind === "question" && html`<${Until} until=${item.until} />`}</p>`}
    ${!item.isSaid && html`<${Body} item=${item} />`}
  <//>`;
}

// The list, which item of it one is at, and its keys

/**
 * @type {{
 *   key: string | null, place: number, writes: { key: string, label: string } | null,
 *   edits: { id: string, TaskForm: typeof import("../board/task_form.js").TaskForm } | null,
 * }}
 */
const current = { key: null, place: 0, writes: null, edits: null };

/** @param {string} key */
function look(key) {
  if (current.key === key) return;
  current.key = key;
  current.place = Math.max(
    0,
    listedRows().findIndex((item) => item.key === key),
  );
  touch("inbox-focus");
}

/** @param {string} key */
const elementOf = (key) =>
  [...document.querySelectorAll(".ask[data-key]")].find((element) => element.dataset.key === key);

/** @param {number} by */
function move(by) {
  const items = listedRows();
  if (!items.length) return;
  const at = items.findIndex((item) => item.key === current.key);
  const next = items[Math.min(items.length - 1, Math.max(0, at < 0 ? 0 : at + by))];
  look(next.key);
  const element = elementOf(next.key);
  element?.focus({ preventScroll: true });
  element?.scrollIntoView({ block: "nearest" });
}

/** Return the item that keys are for: the one with the focus, else the first. */
function chosen() {
  const items = listedRows();
  const key = document.activeElement?.closest(".ask")?.dataset.key;
  return items.find((item) => item.key === key) ?? items[0];
}

const REST = 700;
let answered = -REST;

/**
 * Answer by a number; pressed again at once, it was meant for what is gone, not for what has taken its place.
 * @param {number} number
 */
function actByNumber(number) {
  const now = performance.now();
  const item = chosen();
  const action = item && actionsOf(item)[number - 1];
  if (!action || now - answered < REST) return;
  if (!action.write) answered = now;
  press(item, action);
}

/** Leave the inbox: keys are the view's again. */
export function leaveInbox() {
  current.writes = null;
  const main = document.getElementById("main");
  (main?.querySelector(".inbox-view") ?? main)?.focus({ preventScroll: true });
}

/**
 * Note that the focus has left the list: then numbers answer what waits longest.
 * @param {PageEvent} props
 */
function forgetLater({ currentTarget }) {
  setTimeout(() => {
    if (current.key === null || current.writes || currentTarget?.contains(document.activeElement)) return;
    current.key = null;
    touch("inbox-focus");
  });
}

const has = () => waiting().length > 0 && document.querySelector(".asks") !== null;

/** The keys of the inbox: numbers answer, j and k move inside it, Enter opens. */
export function useInboxKeys() {
  const numbers = [1, 2, 3, 4, 5, 6, 7, 8, 9].map((number) =>
    on(`Answer with its button ${number}`, String(number), () => actByNumber(number), {
      ...(number > 4 ? { unlisted: "always", within: ".asks" } : { unlisted: true }),
      when: has,
    }),
  );
  const inside = { within: ".asks, body:has(.inbox-view)", unlisted: true, when: has };
  useCommands(
    [
      ...numbers,
      on("Next", ["j", "arrowdown"], () => move(1), inside),
      on("Previous", ["k", "arrowup"], () => move(-1), inside),
      on("Open", "enter", () => chosen() && open(chosen()), { within: ".asks", unlisted: true, when: has }),
      on("Leave the inbox", "escape", leaveInbox, { within: ".asks", unlisted: true }),
      on("Focus the inbox", "i", () => move(0), { usual: true, when: has }),
    ],
    [],
  );
}

const MOST = 80;

function endEditing() {
  current.edits = null;
  touch("inbox-focus");
}

/** All that waits, as a list. */
export function Asks({ label = "Inbox" }) {
  useTopics("inbox", "inbox-focus");
  const place = useRef(null);
  const had = useRef(false);
  const note = () => (had.current = place.current?.contains(document.activeElement) ?? false);
  useLayoutEffect(() => listen(["inbox"], note), []);
  const items = listedRows();
  useLayoutEffect(() => {
    if (current.key !== null && !items.some((item) => item.key === current.key)) {
      const next = items[Math.min(current.place, items.length - 1)];
      current.key = had.current || !next ? (next?.key ?? null) : null;
      current.writes = null;
      if (had.current && next) elementOf(next.key)?.focus({ preventScroll: false });
      touch("inbox-focus");
    }
  });
  if (!items.length)
    return html`<${Empty} title="Nothing waits for you."><p>Questions, permissions, blocked tasks and merges that want your word stand here, oldest first.</p><//>`;
  const first = items.some((item) => item.key === current.key) ? null : items[0].key;
  return html`<ul class="asks" ref=${place} aria-label=${label} onFocusOut=${forgetLater}>${items.slice(0, MOST).map((item) => (isGroup(item) ? html`<${Group} key=${item.key} group=${item} first=${item.key === first} />` : html`<${Item} key=${item.key} item=${item} first=${item.key === first} />`))}
    ${items.length > MOST && html`<li class="asks-more">and ${items.length - MOST} more, which come when these are answered</li>`}</ul>
    ${current.edits && html`<${current.edits.TaskForm} id=${current.edits.id} onClose=${endEditing} />`}`;
}
