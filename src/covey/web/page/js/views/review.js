// Review of one task or several together: the diff, comments, conflicts, and approving or sending back.
import { html, useEffect, useMemo, useRef, useState } from "../lib.js";
import { get, query } from "../data/api.js";
import { Brief, Checks, Comments, Conflicts, Files, Paths, useMeetings, verdictOf } from "../review/review_details.js";
import { Changes, Size } from "../review/diff_view.js";
import { tree } from "../rules/diff.js";
import { inGroup, useCommands } from "../widgets/keys.js";
import { approve, approveAll } from "../queue/merge.js";
import { useKept, useNarrow, useTick } from "../widgets/view_hooks.js";
import { go, to } from "../data/routes.js";
import { send, write } from "../review/comments.js";
import { state, useRead, useTopics } from "../data/store.js";
import { some } from "../rules/text.js";
import { attempt, Button, confirm, Empty, State, Words } from "../widgets/ui.js";
import { useWork, Waiting, waiting } from "../review/review_list.js";
/** @import { DiffPart } from "types/rest.js" */
/** @import { Comment, CommentFields, Diff, DiffControl, DiffFile, ReviewTab } from "types/page.js" */
/** @import { Ref, SetState } from "types/vendor/hooks.js" */

const on = inGroup("Review");

const WHOLE = 100_000;
const BACK = ["review", "merging", "blocked"];

/** @param {{ what: string | null }} props */
export function View({ what }) {
  const ids = what ? what.split(",").filter(Boolean) : [];
  if (!ids.length) return html`<${Waiting} />`;
  return ids.length === 1 ? html`<${One} key=${ids[0]} id=${ids[0]} />` : html`<${Several} key=${what} ids=${ids} />`;
}

// What has been seen

/**
 * Remember which files one has seen, as they were then.
 * @param {string} key
 * @param {DiffFile[] | undefined} files
 */
function useViewed(key, files) {
  const name = `covey.viewed.${key}`;
  /** @type {[Record<string, string | undefined>, SetState<Record<string, string | undefined>>]} */
  const [seen, setSeen] = useState(() => {
    try {
      return JSON.parse(localStorage.getItem(name) ?? "{}");
    } catch {
      return {};
    }
  });
  const viewed = useMemo(
    () => new Set((files ?? []).filter((file) => seen[file.path] === print(file)).map((file) => file.path)),
    [files, seen],
  );
  /**
   * @param {DiffFile} file
   * @param {boolean} now
   */
  const view = (file, now) =>
    setSeen((before) => {
      const next = { ...before, [file.path]: now ? print(file) : undefined };
      try {
        localStorage.setItem(name, JSON.stringify(next));
      } catch {
        // it is remembered only as long as the page is open
      }
      return next;
    });
  return /** @type {const} */ ([viewed, view]);
}

/** @type {WeakMap<DiffFile, string>} */
const prints = new WeakMap();

/** @param {DiffFile} file */
function print(file) {
  if (!prints.has(file)) {
    let sum = 2166136261;
    for (const sign of `${file.status}${file.plus},${file.minus}${file.whole ? "" : (file.patch ?? "").slice(0, 20000)}`)
      sum = Math.imul(sum ^ (sign.codePointAt(0) ?? 0), 16777619);
    prints.set(file, file.print ?? (sum >>> 0).toString(36));
  }
  return prints.get(file) ?? "";
}

function useSplit() {
  const narrow = useNarrow();
  const [split, setSplit] = useKept("covey.split", 0);
  return /** @type {const} */ ([split === 1 && !narrow, () => setSplit(1 - split), narrow]);
}

/**
 * Return files in the order in which the tree has them, so that one meets them in the same order everywhere.
 * @param {DiffFile[]} files
 */
function ordered(files) {
  return tree(files)
    .map((row) => row.file)
    .filter((file) => file !== undefined);
}

/**
 * Return what a diff shows, and the function that loads more of a file; a newer one waits until it is asked for.
 * @param {Diff | null} latest
 * @param {string} path
 */
function useFiles(latest, path) {
  const [shown, setShown] = useState(/** @type {Diff | null} */ (null));
  /** @type {Ref<Set<string>>} */
  const loading = useRef(new Set());
  const whole = latest && { ...latest, files: ordered(latest.files) };
  useEffect(() => {
    if (
      latest &&
      (!shown || (shown.tip === latest.tip && shown.working === latest.working && shown.dirty !== latest.dirty))
    )
      setShown((before) => (before ? { ...before, dirty: latest.dirty } : whole));
  }, [latest]);
  const take = () => setShown(whole);
  /**
   * @param {DiffFile} old
   * @param {DiffFile} made
   */
  const replace = (old, made) =>
    setShown(
      (before) =>
        before && {
          ...before,
          files: before.files.map((file) => (file.path === old.path ? { ...made, print: print(old) } : file)),
        },
    );
  /**
   * @param {DiffFile} file
   * @param {boolean} turn
   */
  const more = async (file, turn) => {
    if (loading.current.has(file.path)) return;
    loading.current.add(file.path);
    const turned = turn ? !file.whole : Boolean(file.whole);
    const since = turn ? 0 : (file.next ?? 0);
    const answer = /** @type {Diff | null | undefined} */ (
      await attempt(() => get(query(path, { path: file.path, since, context: turned ? WHOLE : 3 })))
    );
    loading.current.delete(file.path);
    const [part] = answer?.files ?? [];
    if (!part) return;
    replace(file, {
      ...part,
      tasks: file.tasks,
      whole: turned,
      patch: since ? `${file.patch ?? ""}${part.patch ?? ""}` : part.patch,
    });
  };
  return /** @type {const} */ ([shown, more, take]);
}

/**
 * Return how one looks at a diff: side by side or not, which files one has seen, the part beside it and the file that one
 * is at, and what opens a place in it.
 * @param {string} key
 * @param {DiffFile[] | undefined} files
 */
function useLook(key, files) {
  const [split, setSplit, narrow] = useSplit();
  const [viewed, view] = useViewed(key, files);
  const [tab, setTab] = useState(/** @type {string | null} */ (null));
  const [now, setNow] = useState(/** @type {string | null} */ (null));
  /** @type {Ref<DiffControl>} */
  const control = useRef(null);
  /**
   * @param {string} path
   * @param {string | undefined} place
   */
  const open = (path, place) => {
    if (narrow) setTab("diff");
    setTimeout(() => control.current?.show(path, place));
  };
  const part = tab ?? (narrow ? "diff" : "files");
  return { split, setSplit, narrow, viewed, view, part, setTab, now, setNow, control, open };
}

// One task

/** @param {{ id: string }} props */
function One({ id }) {
  useTopics(`task:${id}`, "loaded");
  const [full] = useRead(() => get(`/api/board/${encodeURIComponent(id)}`), [`task:${id}`], [id]);
  const task = state.tasks.get(id) ?? full;
  const [working, setWorking] = useState(false);
  const path = query(`/api/board/${encodeURIComponent(id)}/diff`, { working: working || undefined });
  const [latest, problem, look] = useRead(() => get(path), [`task:${id}`], [path]);
  const [shown, more, take] = useFiles(latest, path);
  const mails = useTick(["mail"], 2000);
  const tests = useTick(["merges", "log"], 1000);
  const [comments] = useRead(() => get(query("/api/comments", { task: id })), ["comments"], [id, mails, latest?.tip]);
  const [merge] = useRead(
    () => (latest?.merge ? get(`/api/merges/${latest.merge}`) : Promise.resolve(null)),
    [],
    [latest?.merge, tests],
  );
  const { split, setSplit, narrow, viewed, view, part, setTab, now, setNow, control, open } = useLook(id, shown?.files);
  const drafts = (comments ?? []).filter((comment) => comment.state === "draft");
  const [found, trouble] = useMeetings(id, shown?.tip, shown?.landed || task?.status === "done");
  const verdict = verdictOf(found);
  const [whole, setWhole] = useState(/** @type {Set<string>} */ (new Set()));

  useEffect(() => {
    if (latest && shown && latest.working !== shown.working) take();
  }, [latest]);

  const waits = merge && merge.state === "review";
  const let_in = async () => {
    if (!waits) return;
    const doubts = [
      verdict?.names.length
        ? `It ${verdict.words}. What cannot be merged when its turn comes goes back to its author.`
        : "",
      drafts.length
        ? `${some(drafts.length, "comment")} on it ${drafts.length === 1 ? "is" : "are"} not sent. They stay as drafts.`
        : "",
    ]
      .filter(Boolean)
      .join("\n");
    if (doubts && (await confirm({ title: `Approve ${id}?`, body: doubts, action: "Approve" })) === null) return;
    const next = waiting().find((each) => each.status === "review" && each.id !== id);
    if ((await approve(merge)) !== undefined) go("review", next?.id ?? null);
  };
  const back = async () => {
    const title = drafts.length ? `Send ${id} back with ${some(drafts.length, "comment")}?` : `Send ${id} back?`;
    const said = await confirm({
      title,
      body: "Its author goes on with it, and is told what you wrote.",
      text: drafts.length ? "What you say besides (if you want to)" : "What is wrong",
      action: "Send back",
      required: !drafts.length,
    });
    if (said !== null) await send(id, { back: true, text: said });
  };
  /** @param {number} by */
  const pass = (by) => {
    const rows = waiting();
    const at = rows.findIndex((each) => each.id === id);
    const next = rows[at + by];
    if (next) go("review", next.id);
  };
  const may = BACK.includes(task?.status ?? "");
  useCommands(
    [
      on(`Approve ${id}`, "a", let_in, { when: () => Boolean(waits) }),
      on(`Send ${id} back`, "b", back, { when: () => may }),
      on("Send the comments", "S", () => send(id), { when: () => drafts.length > 0 }),
      on("Side by side, or one below the other", "s", setSplit),
      on("Next task to review", "shift+arrowright", () => pass(1)),
      on("Previous task to review", "shift+arrowleft", () => pass(-1)),
      on("All that waits for a review", "u", () => go("review")),
      on("Look for new commits", "r", look),
    ],
    [waits, may, drafts.length, merge, split, verdict?.words],
  );

  /**
   * @param {CommentFields} fields
   * @param {boolean} sends
   */
  const comment = (fields, sends) =>
    write(
      { task: id, ...fields, commit: shown?.working ? undefined : fields.side === "old" ? shown?.base : shown?.tip },
      sends,
    );
  /** @type {ReviewTab[]} */
  const tabs = [
    .../** @type {ReviewTab[]} */ (narrow ? [["diff", "Diff", ""]] : []),
    ["files", "Files", shown ? shown.files.length + shown.more : ""],
    ["comments", "Comments", comments?.length || ""],
    ["checks", "Checks", ""],
    ["conflicts", "Conflicts", verdict?.names.length || ""],
  ];
  /** @param {string} name */
  const toggle = (name) =>
    setWhole((before) => {
      const next = new Set(before);
      return next.delete(name) ? next : next.add(name);
    });
  const brief = html`<${Brief} id=${id} task=${full ? { ...full, status: task?.status ?? full.status } : null} author=${merge?.session ?? task?.session} found=${found} problem=${trouble} landed=${shown?.landed} tip=${shown?.tip} whole=${whole} onWhole=${toggle} onConflicts=${() => setTab("conflicts")} />`;
  const deeds = html`${may && html`<${Button} keys="b" onClick=${back}>Send back${narrow && drafts.length ? " with them" : ""}<//>`}
      ${waits && html`<${Button} kind="primary" keys="a" onClick=${let_in}>Approve<//>`}`;
  return html`<div class=${`review ${narrow ? "narrow" : ""} shows-${part}`}>
    <header class="review-head row">
      <a class="button quiet" href=${to("review")} aria-label="All that waits for a review" title="All that waits (u)">‹</a>
      <span class="review-id mono"><${Words} text=${id} most=${60} /></span>
      <h2 class="review-title one-line"><${Words} text=${task?.title ?? ""} most=${300} /></h2>
      ${task && html`<${State} name=${task.status} word />`}
      ${(merge?.session ?? task?.session) && html`<span class="soft review-author">by <${Words} text=${merge?.session ?? task?.session} most=${40} /></span>`}
      ${shown && html`<${Size} plus=${shown.plus} minus=${shown.minus} />`}
      <span class="spring"></span>
      ${shown?.dirty && html`<label class="check review-working"><input type="checkbox" checked=${working} onChange=${() => setWorking(!working)} /> <span>Not committed yet</span></label>`}
      ${!narrow && html`<${Button} kind="quiet" keys="s" aria-pressed=${split} onClick=${setSplit}>Split<//>`}
      ${verdict && !shown?.landed && html`<button type="button" class=${`button quiet verdict ${verdict.state}`} onClick=${() => setTab("conflicts")}><${State} name=${verdict.state} /><span>${verdict.words}</span></button>`}
      ${!narrow && deeds}
    </header>
    ${latest && shown && latest.tip !== shown.tip && latest.working === shown.working && html`<p class="review-new row" role="status">There are new commits. <${Button} onClick=${take}>Show them<//></p>`}
    <div class="review-body">
      <aside class="review-side" aria-label="About this work">
        <${Tabs} tabs=${tabs} part=${part} onPart=${setTab} />
        ${part === "files" && shown && html`<${Files} files=${shown.files} more=${shown.more} viewed=${viewed} comments=${comments ?? []} now=${now} onOpen=${open} />`}
        ${part === "comments" && html`<${Comments} id=${id} comments=${comments ?? []} may=${may} onBack=${back} onOpen=${open} onWrite=${comment} />`}
        ${part === "checks" && html`<${Checks} merge=${merge} task=${task} />`}
        ${part === "conflicts" && shown && (shown.landed || !shown.tip ? html`<p class="soft panel-text">${shown.landed ? "It has landed already." : "There is no work to merge yet."}</p>` : html`<${Conflicts} id=${id} found=${found} problem=${trouble} />`)}
      </aside>
      <section class="review-main" aria-label="Changes">
        ${shown && !shown.files.length && brief}
        ${problem && !shown && html`<${Empty} title=${problem.message}><p class="soft">${problem.hint}</p><//>`}
        ${!problem && !shown && html`<p class="loading" aria-busy="true">…</p>`}
        ${shown && !shown.files.length && html`<${Empty} title=${shown.dirty ? "Nothing is committed yet." : shown.tip ? "It changes nothing." : task?.kind === "report" ? "It is a report: it changes no files." : "There is no work to look at yet."}>${shown.dirty && html`<${Button} onClick=${() => setWorking(true)}>Show what is not committed<//>`}<//>`}
        ${
          shown &&
          shown.files.length > 0 &&
          html`<${Changes} files=${shown.files} comments=${comments ?? []} split=${split} label=${`Changes of ${id}`} viewed=${viewed} onViewed=${view}
          onComment=${comment} onMore=${more} control=${control} onFile=${(/** @type {DiffFile} */ file) => setNow(file.path)} lead=${brief} />`
        }
        ${
          drafts.length > 0 &&
          html`<div class="tray row" role="status"><span>${some(drafts.length, "draft comment")}</span><span class="spring"></span>
          <${Button} keys="S" onClick=${() => send(id)}>Send<//>${may && !narrow && html`<${Button} kind="primary" keys="b" onClick=${back}>Send back with them<//>`}</div>`
        }
      </section>
    </div>
    ${narrow && (may || waits) && html`<footer class="review-deeds">${deeds}</footer>`}
  </div>`;
}

// Several tasks

/** @param {{ ids: string[] }} props */
function Several({ ids }) {
  const path = query("/api/diff", { tasks: ids.join(",") });
  const [latest, problem] = useRead(() => get(path), [], [path]);
  const [shown, more] = useFiles(latest, path);
  const { split, setSplit, narrow, viewed, view, part, setTab, now, setNow, control, open } = useLook(
    ids.join("+"),
    shown?.files,
  );
  const comments = useCommentsOf(ids, shown);
  const work = useWork();
  const drafts = comments.filter((comment) => comment.state === "draft");
  const drafted = ids.filter((id) => drafts.some(({ task }) => task === id));
  const waits = ids
    .map((id) => work.get(id))
    .filter((row) => row !== undefined)
    .filter((row) => row.waits);
  const mayGoBack = drafted.filter((id) => BACK.includes(state.tasks.get(id)?.status ?? ""));
  useTopics("tasks");
  /**
   * @param {CommentFields} fields
   * @param {boolean} sends
   */
  const comment = (fields, sends) =>
    write({ ...fields, task: fields.task ?? ids[0], commit: fields.side === "old" ? shown?.base : shown?.tip }, sends);
  const sendAll = async () => {
    for (const id of drafted) await send(id);
  };
  const backAll = async () => {
    const title = `Send ${mayGoBack.join(", ")} back with ${some(drafts.length, "comment")}?`;
    const said = await confirm({
      title,
      body: "Each author goes on with its own work, and is told what you wrote on that.",
      text: "What you say besides (if you want to)",
      action: "Send back",
    });
    for (const id of said === null ? [] : mayGoBack) await send(id, { back: true, text: said ?? "" });
  };
  const let_in = async () => {
    if (await approveAll(waits)) go("review");
  };
  useCommands(
    [
      on("Side by side, or one below the other", "s", setSplit),
      on("All that waits for a review", "u", () => go("review")),
      on("Approve all of them", "a", let_in, { when: () => waits.length > 0 }),
      on("Send the comments", "S", sendAll, { when: () => drafts.length > 0 }),
      on("Send back with the comments", "b", backAll, { when: () => mayGoBack.length > 0 }),
    ],
    [split, waits.length, drafts.length, mayGoBack.length],
  );
  /** @type {ReviewTab[]} */
  const tabs = [
    .../** @type {ReviewTab[]} */ (narrow ? [["diff", "Diff", ""]] : []),
    ["files", "Files", shown ? shown.files.length + shown.more : ""],
    ["comments", "Comments", comments.length || ""],
    ["tasks", "Tasks", ids.length],
  ];
  const deeds =
    waits.length > 0 &&
    html`<${Button} kind="primary" keys="a" onClick=${let_in}>Approve ${waits.length === ids.length ? "all" : waits.length}<//>`;
  return html`<div class=${`review ${narrow ? "narrow" : ""} shows-${part}`}>
    <header class="review-head row">
      <a class="button quiet" href=${to("review")} aria-label="All that waits for a review">‹</a>
      <h2 class="review-title one-line">${ids.length} tasks together</h2>
      ${shown && html`<${Size} plus=${shown.plus} minus=${shown.minus} />`}
      <span class="spring"></span>
      ${!narrow && html`<${Button} kind="quiet" keys="s" aria-pressed=${split} onClick=${setSplit}>Split<//>${deeds}`}
    </header>
    <div class="review-body">
      <aside class="review-side" aria-label="About this work">
        <${Tabs} tabs=${tabs} part=${part} onPart=${setTab} />
        ${
          shown &&
          part === "files" &&
          html`<${Parts} tasks=${shown.tasks} brief />
          <${Files} files=${shown.files} more=${shown.more} viewed=${viewed} comments=${comments} now=${now} onOpen=${open} />`
        }
        ${part === "comments" && html`<${Comments} comments=${comments} onOpen=${open} several />`}
        ${shown && part === "tasks" && html`<${Parts} tasks=${shown.tasks} />`}
      </aside>
      <section class="review-main" aria-label="Changes">
        ${problem && !shown && html`<${Empty} title=${problem.message}><p class="soft">${problem.hint}</p><//>`}
        ${!problem && !shown && html`<p class="loading" aria-busy="true">…</p>`}
        ${shown && html`<${Changes} files=${shown.files} comments=${comments} split=${split} label="Changes of all of them" viewed=${viewed} onViewed=${view} onComment=${comment} onMore=${more} control=${control} onFile=${(/** @type {DiffFile} */ file) => setNow(file.path)} />`}
        ${
          drafts.length > 0 &&
          html`<div class="tray row" role="status"><span>${some(drafts.length, "draft comment")} for ${drafted.join(", ")}</span><span class="spring"></span>
          <${Button} keys="S" onClick=${sendAll}>Send<//>${mayGoBack.length > 0 && html`<${Button} kind="primary" keys="b" onClick=${backAll}>Send back with them<//>`}</div>`
        }
      </section>
    </div>
    ${narrow && deeds && html`<footer class="review-deeds">${deeds}</footer>`}
  </div>`;
}

/**
 * Return the comments on several tasks, with where their lines are in the diff of all of them.
 * @param {string[]} ids
 * @param {Diff | null} shown
 */
function useCommentsOf(ids, shown) {
  const mails = useTick(["mail"], 2000);
  const { tip, base } = shown ?? {};
  const [found] = useRead(
    async () =>
      tip ? (await Promise.all(ids.map((task) => get(query("/api/comments", { task, tip, base }))))).flat() : [],
    ["comments"],
    [ids.join(), tip, base, mails],
  );
  return found ?? NONE;
}

/** @type {Comment[]} */
const NONE = [];

/** @param {{ tabs: ReviewTab[], part: string, onPart: (part: string) => void }} props */
function Tabs({ tabs, part, onPart }) {
  return html`<nav class="review-tabs" aria-label="Parts of the review">${tabs.map(([name, title, count]) => html`<button type="button" key=${name} class="review-tab bare tab" aria-pressed=${part === name} onClick=${() => onPart(name)}>${title}${count !== "" && html` <span class="count">${count}</span>`}</button>`)}</nav>`;
}

/** @param {{ tasks?: DiffPart[], brief?: boolean }} props */
function Parts({ tasks = [], brief = false }) {
  const wanted = brief ? tasks.filter((task) => task.message) : tasks;
  if (!wanted.length) return null;
  return html`<div class="meetings">${wanted.map(
    (task) => html`<section class="meeting" key=${task.task}>
    <header>${task.message ? html`<${State} name="clashed" word />` : html`<${State} name=${task.status} />`} <a class="mono" href=${to("review", task.task)}>${task.task}</a> <${Words} text=${task.title} most=${100} /></header>
    <p class="soft">${task.message ? "left out: it cannot be put together with those before it" : task.tip ? some(task.files.length, "file") : "no work yet, or landed already"}</p>
    <${Paths} paths=${task.message ? task.conflicts : []} />
  </section>`,
  )}</div>`;
}
