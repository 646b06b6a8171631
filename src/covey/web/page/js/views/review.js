// Review: what waits, what it changes, what is said of it, and what becomes of it.
import { html, useEffect, useMemo, useRef, useState } from "../lib.js";
import { get, query } from "../api.js";
import { Became, Changes, Size } from "../changes.js";
import { tree } from "../diff.js";
import { useCommands } from "../keys.js";
import { approve, Gate } from "../merge.js";
import { useNarrow, useRows, useTick } from "../pace.js";
import { go, to } from "../places.js";
import { Remark, send, write } from "../remarks.js";
import { state, useRead, useTopics } from "../store.js";
import { some } from "../text.js";
import { Age, attempt, Button, confirm, Empty, Long, State, Words } from "../ui.js";

const WHOLE = 100_000;
const BACK = ["review", "merging", "blocked"];

export function View({ what }) {
  const ids = what ? what.split(",").filter(Boolean) : [];
  if (!ids.length) return html`<${Waiting} />`;
  return ids.length === 1 ? html`<${One} key=${ids[0]} id=${ids[0]} />` : html`<${Several} key=${what} ids=${ids} />`;
}

// What waits

/** Return the tasks with work to look at, those that wait for a person first, the oldest of them first. */
function waiting() {
  const order = { review: 0, blocked: 1, merging: 2, doing: 3 };
  return [...state.tasks.values()]
    .filter((task) => task.kind === "change" && task.status in order && (task.status !== "blocked" || task.failed_tries || task.sent_back || task.commit))
    .sort((one, other) => order[one.status] - order[other.status] || one.updated - other.updated);
}

function Waiting() {
  useTopics("tasks", "live", "loaded");
  const [chosen, setChosen] = useState(new Set());
  const rows = waiting();
  useRows(".waiting-link", "task");
  const choose = (id) => setChosen((before) => {
    const next = new Set(before);
    return next.delete(id) ? next : next.add(id);
  });
  const together = () => chosen.size > 1 && go("review", rows.filter(({ id }) => chosen.has(id)).map(({ id }) => id).join(","));
  useCommands([
    { label: "Choose the task for a combined diff", group: "Review", keys: "x", run: () => { const id = document.activeElement?.dataset?.task; if (id) choose(id); } },
    { label: "Show the chosen tasks together", group: "Review", keys: "t", when: () => chosen.size > 1, run: together },
  ], [rows, chosen]);
  if (!rows.length) {
    return html`<${Empty} title="Nothing waits for a review."><p>Work stands here once an agent has handed it in. <code>review = true</code> under <code>[merge]</code> in covey.toml lets all of it wait for you.</p><//>`;
  }
  const first = { review: "Waiting for you", blocked: "Blocked", merging: "On the way to main", doing: "Being written" };
  return html`<div class="waiting">
    <header class="waiting-head"><h2>Review</h2><span class="soft">${some(rows.filter(({ status }) => status === "review").length, "task")} waiting</span>
      <span class="review-room"></span>
      <${Button} disabled=${chosen.size < 2} keys="t" onClick=${together}>Show ${chosen.size || ""} together<//></header>
    <ul class="waiting-rows">
      ${rows.map((task, i) => html`<${Fragmented} key=${task.id} title=${rows[i - 1]?.status === task.status ? null : first[task.status]}>
        <li class="waiting-row">
          <input type="checkbox" aria-label=${`Choose ${task.id}`} checked=${chosen.has(task.id)} onChange=${() => choose(task.id)} />
          <a class="waiting-link" href=${to("review", task.id)} data-task=${task.id}>
            <${State} name=${task.status} />
            <span class="waiting-id mono">${task.id}</span>
            <span class="waiting-title"><${Words} text=${task.title} most=${200} /></span>
            <${Sized} session=${task.session} task=${task.id} />
            <span class="soft waiting-author"><${Words} text=${task.session ?? ""} most=${40} /></span>
            <${Age} since=${task.updated} />
          </a>
        </li>
      <//>`)}
    </ul>
  </div>`;
}

function Fragmented({ title, children }) {
  return title ? [html`<li class="waiting-group">${title}</li>`, children] : children;
}

function Sized({ session, task }) {
  const row = session ? state.live.get(session) : null;
  return row && row.task === task && (row.plus || row.minus) ? html`<${Size} plus=${row.plus} minus=${row.minus} />` : html`<span></span>`;
}

// What has been seen

/** Remember which files one has seen, as they were then. */
function useViewed(key, files) {
  const name = `covey.viewed.${key}`;
  const [seen, setSeen] = useState(() => {
    try {
      return JSON.parse(localStorage.getItem(name) ?? "{}");
    } catch {
      return {};
    }
  });
  const viewed = useMemo(() => new Set((files ?? []).filter((file) => seen[file.path] === print(file)).map((file) => file.path)), [files, seen]);
  const view = (file, now) => setSeen((before) => {
    const next = { ...before, [file.path]: now ? print(file) : undefined };
    try {
      localStorage.setItem(name, JSON.stringify(next));
    } catch {
      // it is remembered only as long as the page is open
    }
    return next;
  });
  return [viewed, view];
}

const prints = new WeakMap();

function print(file) {
  if (!prints.has(file)) {
    let sum = 2166136261;
    for (const sign of `${file.status}${file.plus},${file.minus}${file.whole ? "" : (file.patch ?? "").slice(0, 20000)}`) sum = Math.imul(sum ^ sign.codePointAt(0), 16777619);
    prints.set(file, file.print ?? (sum >>> 0).toString(36));
  }
  return prints.get(file);
}

function useSplit() {
  const narrow = useNarrow();
  const [split, setSplit] = useState(() => localStorage.getItem("covey.split") === "1");
  const change = () => setSplit((before) => {
    localStorage.setItem("covey.split", before ? "0" : "1");
    return !before;
  });
  return [split && !narrow, change, narrow];
}

/** Return files in the order in which the tree has them, so that one meets them in the same order everywhere. */
function ordered(files) {
  return tree(files).filter((row) => row.file).map((row) => row.file);
}

/** Return what a diff shows, and the function that loads more of a file; a newer one waits until it is asked for. */
function useFiles(latest, path) {
  const [shown, setShown] = useState(null);
  const loading = useRef(new Set());
  const whole = latest && { ...latest, files: ordered(latest.files) };
  useEffect(() => {
    if (latest && (!shown || (shown.tip === latest.tip && shown.working === latest.working && shown.dirty !== latest.dirty))) setShown((before) => (before ? { ...before, dirty: latest.dirty } : whole));
  }, [latest]);
  const take = () => setShown(whole);
  const replace = (old, made) => setShown((before) => ({ ...before, files: before.files.map((file) => (file.path === old.path ? { ...made, print: print(old) } : file)) }));
  const more = async (file, turn) => {
    if (loading.current.has(file.path)) return;
    loading.current.add(file.path);
    const turned = turn ? !file.whole : Boolean(file.whole);
    const since = turn ? 0 : file.next ?? 0;
    const answer = await attempt(() => get(query(path, { path: file.path, since, context: turned ? WHOLE : 3 })));
    loading.current.delete(file.path);
    const [part] = answer?.files ?? [];
    if (!part) return;
    replace(file, { ...part, tasks: file.tasks, whole: turned, patch: since ? `${file.patch ?? ""}${part.patch ?? ""}` : part.patch });
  };
  return [shown, more, take];
}

// One task

function One({ id }) {
  useTopics(`task:${id}`, "loaded");
  const [found] = useRead(() => get(`/api/board/${encodeURIComponent(id)}`), [`task:${id}`], [id]);
  const task = state.tasks.get(id) ?? found;
  const [working, setWorking] = useState(false);
  const path = query(`/api/board/${encodeURIComponent(id)}/diff`, { working: working || undefined });
  const [latest, problem, look] = useRead(() => get(path), [`task:${id}`], [path]);
  const [shown, more, take] = useFiles(latest, path);
  const mails = useTick(["mail"], 2000);
  const tests = useTick(["merges", "log"], 1000);
  const [comments] = useRead(() => get(query("/api/comments", { task: id })), ["comments"], [id, mails, latest?.tip]);
  const [merge] = useRead(() => (latest?.merge ? get(`/api/merges/${latest.merge}`) : Promise.resolve(null)), [], [latest?.merge, tests]);
  const [split, setSplit, narrow] = useSplit();
  const [viewed, view] = useViewed(id, shown?.files);
  const [tab, setTab] = useState(null);
  const [now, setNow] = useState(null);
  const control = useRef(null);
  const drafts = (comments ?? []).filter((comment) => comment.state === "draft");
  const part = tab ?? (narrow ? "diff" : "files");

  useEffect(() => {
    if (latest && shown && latest.working !== shown.working) take();
  }, [latest]);

  const waits = merge && merge.state === "review";
  const let_in = async () => {
    if (!waits) return;
    if (drafts.length && (await confirm({ title: `Approve ${id}?`, body: `${some(drafts.length, "comment")} on it ${drafts.length === 1 ? "is" : "are"} not sent. They stay as drafts.`, action: "Approve" })) === null) return;
    const next = waiting().find((each) => each.status === "review" && each.id !== id);
    if ((await approve(merge)) !== undefined) go("review", next?.id ?? null);
  };
  const back = async () => {
    const title = drafts.length ? `Send ${id} back with ${some(drafts.length, "comment")}?` : `Send ${id} back?`;
    const said = await confirm({ title, body: "Its author goes on with it, and is told what you wrote.", text: drafts.length ? "What you say besides (if you want to)" : "What is wrong", action: "Send back", required: !drafts.length });
    if (said !== null) await send(id, { back: true, text: said });
  };
  const pass = (by) => {
    const rows = waiting();
    const at = rows.findIndex((each) => each.id === id);
    const next = rows[at + by];
    if (next) go("review", next.id);
  };
  const may = task && BACK.includes(task.status);
  useCommands([
    { label: `Approve ${id}`, group: "Review", keys: "a", when: () => Boolean(waits), run: let_in },
    { label: `Send ${id} back`, group: "Review", keys: "b", when: () => may, run: back },
    { label: "Send the comments", group: "Review", keys: "S", when: () => drafts.length > 0, run: () => send(id) },
    { label: "Side by side, or one below the other", group: "Review", keys: "s", run: setSplit },
    { label: "Next task to review", group: "Review", keys: "shift+arrowright", run: () => pass(1) },
    { label: "Previous task to review", group: "Review", keys: "shift+arrowleft", run: () => pass(-1) },
    { label: "All that waits for a review", group: "Review", keys: "u", run: () => go("review") },
    { label: "Look for new commits", group: "Review", keys: "r", run: look },
  ], [waits, may, drafts.length, merge, split]);

  const comment = (fields, sends) => write({ task: id, ...fields, commit: shown.working ? undefined : fields.side === "old" ? shown.base : shown.tip }, sends);
  const tabs = [
    ...(narrow ? [["diff", "Diff", ""]] : []),
    ["files", "Files", shown ? shown.files.length + shown.more : ""],
    ["comments", "Comments", comments?.length || ""],
    ["checks", "Checks", ""],
    ["conflicts", "Conflicts", ""],
  ];
  const open = (path, key) => {
    if (narrow) setTab("diff");
    setTimeout(() => control.current?.show(path, key));
  };
  return html`<div class=${`review ${narrow ? "narrow" : ""} shows-${part}`}>
    <header class="review-head">
      <a class="button quiet" href=${to("review")} aria-label="All that waits for a review" title="All that waits (u)">‹</a>
      <span class="review-id mono"><${Words} text=${id} most=${60} /></span>
      <h2 class="review-title"><${Words} text=${task?.title ?? ""} most=${300} /></h2>
      ${task && html`<${State} name=${task.status} word />`}
      ${(merge?.session ?? task?.session) && html`<span class="soft review-author">by <${Words} text=${merge?.session ?? task.session} most=${40} /></span>`}
      ${shown && html`<${Size} plus=${shown.plus} minus=${shown.minus} />`}
      <span class="review-room"></span>
      ${shown?.dirty && html`<label class="check review-working"><input type="checkbox" checked=${working} onChange=${() => setWorking(!working)} /> <span>Not committed yet</span></label>`}
      ${!narrow && html`<${Button} kind="quiet" keys="s" aria-pressed=${split} onClick=${setSplit}>Split<//>`}
      ${may && html`<${Button} keys="b" onClick=${back}>Send back<//>`}
      ${waits && html`<${Button} kind="primary" keys="a" onClick=${let_in}>Approve<//>`}
    </header>
    ${latest && shown && latest.tip !== shown.tip && latest.working === shown.working && html`<p class="review-new" role="status">There are new commits. <${Button} onClick=${take}>Show them<//></p>`}
    <div class="review-body">
      <aside class="review-side" aria-label="About this work">
        <nav class="review-tabs" aria-label="Parts of the review">${tabs.map(([name, title, count]) => html`<button type="button" key=${name} class="review-tab" aria-pressed=${part === name} onClick=${() => setTab(name)}>${title}${count !== "" && html` <span class="count">${count}</span>`}</button>`)}</nav>
        ${part === "files" && shown && html`<${Files} files=${shown.files} more=${shown.more} viewed=${viewed} comments=${comments ?? []} now=${now} onOpen=${open} />`}
        ${part === "comments" && html`<${Comments} id=${id} comments=${comments ?? []} may=${may} onBack=${back} onOpen=${open} onWrite=${comment} />`}
        ${part === "checks" && html`<${Checks} merge=${merge} task=${task} />`}
        ${part === "conflicts" && shown && (shown.landed || !shown.tip ? html`<p class="soft panel-text">${shown.landed ? "It has landed already." : "There is no work to merge yet."}</p>` : html`<${Conflicts} id=${id} tip=${shown.tip} />`)}
      </aside>
      <section class="review-main" aria-label="Changes">
        ${problem && !shown && html`<${Empty} title=${problem.message}><p class="soft">${problem.hint}</p><//>`}
        ${!problem && !shown && html`<p class="loading" aria-busy="true">…</p>`}
        ${shown && !shown.files.length && html`<${Empty} title=${shown.dirty ? "Nothing is committed yet." : shown.tip ? "It changes nothing." : task?.kind === "report" ? "It is a report: it changes no files." : "There is no work to look at yet."}>${shown.dirty && html`<${Button} onClick=${() => setWorking(true)}>Show what is not committed<//>`}<//>`}
        ${shown && shown.files.length > 0 && html`<${Changes} files=${shown.files} comments=${comments ?? []} split=${split} label=${`Changes of ${id}`} viewed=${viewed} onViewed=${view}
          onComment=${comment} onMore=${more} control=${control} onFile=${(file) => setNow(file.path)} />`}
        ${drafts.length > 0 && html`<div class="tray" role="status"><span>${some(drafts.length, "draft comment")}</span><span class="review-room"></span>
          <${Button} keys="S" onClick=${() => send(id)}>Send<//>${may && html`<${Button} kind="primary" keys="b" onClick=${back}>Send back with them<//>`}</div>`}
      </section>
    </div>
  </div>`;
}

// Beside the lines

function Files({ files, more, viewed, comments, now, onOpen }) {
  const [text, setText] = useState("");
  const rows = useMemo(() => tree(files.filter((file) => file.path.toLowerCase().includes(text.toLowerCase()))), [files, text]);
  const said = useMemo(() => Map.groupBy?.(comments, (comment) => comment.path) ?? new Map(), [comments]);
  const field = useRef(null);
  useCommands([{ label: "Find a file", group: "Review", keys: "f", run: () => field.current?.focus() }], []);
  const draw = (row) => {
    if (row.folder) return html`<div class="tree-row tree-folder" key=${`/${row.path}`} style=${{ "--depth": row.depth }}><${Words} text=${row.name} most=${200} /></div>`;
    const { file } = row;
    const done = viewed.has(file.path);
    return html`<button type="button" class=${`tree-row ${done ? "is-viewed" : ""}`} key=${file.path} style=${{ "--depth": row.depth }} aria-current=${now === file.path ? "true" : null} onClick=${() => onOpen(file.path)}>
      <${Became} status=${file.status} /><span class="tree-name"><${Words} text=${row.name} most=${200} /></span>
      ${said.has(file.path) && html`<span class="tree-said">${said.get(file.path).length}<span class="unseen"> comments</span></span>`}
      ${done ? html`<span class="tree-done"><span aria-hidden="true">✓</span><span class="unseen">viewed</span></span>` : html`<${Size} plus=${file.plus} minus=${file.minus} />`}
    </button>`;
  };
  return html`<div class="files">
    <div class="files-head"><input ref=${field} type="search" placeholder="Find a file" aria-label="Find a file" value=${text} onInput=${(event) => setText(event.target.value)} /><span class="faint">${viewed.size}/${files.length} viewed</span></div>
    <${Long} rows=${rows} size=${26} draw=${draw} label="Files" class="files-rows" role="group" />
    ${more > 0 && html`<p class="faint files-more">and ${some(more, "file")} more</p>`}
  </div>`;
}

function Comments({ id, comments, may, onBack, onOpen, onWrite }) {
  const [text, setText] = useState("");
  const drafts = comments.filter((comment) => comment.state === "draft");
  const add = async (event) => {
    event.preventDefault();
    if (text.trim() && (await onWrite({ text: text.trim() }, false))) setText("");
  };
  return html`<div class="remarks">
    ${!comments.length && html`<p class="soft remarks-none">Nothing is said yet. Click a line number, or press <kbd>c</kbd> on a line. Comments are drafts until you send them.</p>`}
    ${comments.map((comment) => html`<${Remark} key=${comment.id} comment=${comment} place onGo=${comment.path ? () => onOpen(comment.path, comment.place === "outdated" || !comment.line ? undefined : `${comment.path}\n${comment.id}`) : null} />`)}
    <form class="editor" onSubmit=${add}>
      <textarea rows="3" aria-label="Comment on the work as a whole" placeholder="On the work as a whole" value=${text} onInput=${(event) => setText(event.target.value)}
        onKeyDown=${(event) => event.key === "Enter" && (event.ctrlKey || event.metaKey) && add(event)}></textarea>
      <footer class="editor-foot"><button type="submit" class="button" disabled=${!text.trim()}>Add comment</button></footer>
    </form>
    ${drafts.length > 0 && html`<div class="remarks-foot"><${Button} onClick=${() => send(id)}>Send ${some(drafts.length, "comment")}<//>${may && html`<${Button} kind="primary" onClick=${onBack}>Send back<//>`}</div>`}
  </div>`;
}

function Checks({ merge, task }) {
  const [why] = useRead(() => (merge ? get(`/api/merges/${merge.id}/why`) : Promise.resolve(null)), [], [merge]);
  if (!merge) return html`<p class="soft panel-text">Nothing is handed in yet, so nothing was tested.</p>`;
  return html`<div class="checks">
    <p class="checks-state"><${State} name=${merge.state === "review" ? "needs-you" : merge.state} word /> <span class="mono faint">${merge.id}</span></p>
    ${why && html`<ul class="because">${why.because.map((said) => html`<li key=${said}><${Words} text=${said} /></li>`)}</ul>`}
    ${merge.gates.length === 0 && html`<p class="soft panel-text">It is tested when it is in the queue.</p>`}
    ${merge.gates.slice(0, 6).map((gate, i) => html`<${Gate} key=${gate.id} gate=${gate} open=${i === 0 && gate.state !== "passed"} />`)}
    ${task && html`<p class="panel-text"><a href=${to("timeline", `task=${task.id}`)}>What happened to ${task.id}</a></p>`}
  </div>`;
}

const HOW = [["conflicts", "clashed", "conflicts in"], ["close", "stalled", "at the same lines in"], ["shared", "idle", "also changes"]];

function Conflicts({ id, tip }) {
  const tick = useTick(["merges", "overlaps"], 5000);
  const [found, problem] = useRead(() => get(`/api/board/${id}/conflicts`), [], [id, tip, tick]);
  if (problem && !found) return html`<p class="soft panel-text">${problem.message}</p>`;
  if (!found) return html`<p class="faint panel-text" aria-busy="true">Trying to merge…</p>`;
  return html`<div class="meetings">
    <section class="meeting"><header>${found.conflicts.length ? html`<${State} name="clashed" word />` : html`<${State} name="passed" />`} <strong>main</strong> <span class="soft">${found.conflicts.length ? "" : "merges cleanly"}</span></header>
      <${Paths} paths=${found.conflicts} /></section>
    ${found.others.map((other) => {
      const [kind, sign, words] = HOW.find(([name]) => other[name].length);
      return html`<section class="meeting" key=${other.task}><header><${State} name=${sign} word=${kind === "conflicts"} /> <a class="mono" href=${to("review", other.task)}>${other.task}</a> <${Words} text=${other.title} most=${80} /></header>
        <p class="soft">${words}${other.merge ? `, ${other.state} as ${other.merge}` : `, ${other.status}`}</p><${Paths} paths=${other[kind]} />
        <a class="meeting-both" href=${to("review", `${id},${other.task}`)}>Show both together</a></section>`;
    })}
    ${!found.others.length && html`<p class="soft panel-text">No other open work changes the same files.</p>`}
  </div>`;
}

function Paths({ paths }) {
  if (!paths.length) return null;
  return html`<ul class="paths mono">${paths.slice(0, 12).map((path) => html`<li key=${path}><${Words} text=${path} most=${200} /></li>`)}${paths.length > 12 && html`<li class="faint">and ${paths.length - 12} more</li>`}</ul>`;
}

// Several tasks

function Several({ ids }) {
  const path = query("/api/diff", { tasks: ids.join(",") });
  const [latest, problem] = useRead(() => get(path), [], [path]);
  const [shown, more] = useFiles(latest, path);
  const [split, setSplit, narrow] = useSplit();
  const [viewed, view] = useViewed(ids.join("+"), shown?.files);
  const [now, setNow] = useState(null);
  const [tab, setTab] = useState(null);
  const control = useRef(null);
  const part = tab ?? (narrow ? "diff" : "files");
  useCommands([
    { label: "Side by side, or one below the other", group: "Review", keys: "s", run: setSplit },
    { label: "All that waits for a review", group: "Review", keys: "u", run: () => go("review") },
  ], [split]);
  return html`<div class=${`review ${narrow ? "narrow" : ""} shows-${part}`}>
    <header class="review-head">
      <a class="button quiet" href=${to("review")} aria-label="All that waits for a review">‹</a>
      <h2 class="review-title">${ids.length} tasks together</h2>
      ${shown && html`<${Size} plus=${shown.plus} minus=${shown.minus} />`}
      <span class="review-room"></span>
      ${!narrow && html`<${Button} kind="quiet" keys="s" aria-pressed=${split} onClick=${setSplit}>Split<//>`}
    </header>
    <div class="review-body">
      <aside class="review-side" aria-label="About this work">
        <nav class="review-tabs" aria-label="Parts of the review">${[...(narrow ? [["diff", "Diff"]] : []), ["files", "Files"], ["tasks", "Tasks"]].map(([name, title]) => html`<button type="button" key=${name} class="review-tab" aria-pressed=${part === name} onClick=${() => setTab(name)}>${title}</button>`)}</nav>
        ${shown && part === "files" && html`<${Parts} tasks=${shown.tasks} brief />
          <${Files} files=${shown.files} more=${shown.more} viewed=${viewed} comments=${[]} now=${now} onOpen=${(file) => { if (narrow) setTab("diff"); setTimeout(() => control.current?.show(file)); }} />`}
        ${shown && part === "tasks" && html`<${Parts} tasks=${shown.tasks} />`}
      </aside>
      <section class="review-main" aria-label="Changes">
        ${problem && !shown && html`<${Empty} title=${problem.message}><p class="soft">${problem.hint}</p><//>`}
        ${shown && html`<${Changes} files=${shown.files} split=${split} label="Changes of all of them" viewed=${viewed} onViewed=${view} onComment=${null} onMore=${more} control=${control} onFile=${(file) => setNow(file.path)} />`}
      </section>
    </div>
  </div>`;
}

function Parts({ tasks, brief = false }) {
  const wanted = brief ? tasks.filter((task) => task.message) : tasks;
  if (!wanted.length) return null;
  return html`<div class="meetings">${wanted.map((task) => html`<section class="meeting" key=${task.task}>
    <header>${task.message ? html`<${State} name="clashed" word />` : html`<${State} name=${task.status} />`} <a class="mono" href=${to("review", task.task)}>${task.task}</a> <${Words} text=${task.title} most=${100} /></header>
    <p class="soft">${task.message ? "left out: it cannot be put together with those before it" : task.tip ? some(task.files.length, "file") : "no work yet, or landed already"}</p>
    <${Paths} paths=${task.message ? task.conflicts : []} />
  </section>`)}</div>`;
}
