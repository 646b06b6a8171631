// What happened to tasks, out of the log: a story for each, in one sentence, and the days they belong to. No browser is needed.
import { some, span } from "./text.js";

/** The kinds of events that stories are made of, as the log is asked for them. */
export const TOLD = [
  "task.added", "task.claimed", "task.handed_in", "task.held", "task.approved", "task.released", "task.rejected", "task.blocked",
  "task.dropped", "task.done", "merge.reverted",
  "fleet.paused", "fleet.resumed", "queue.paused", "queue.resumed", "queue.frozen", "queue.thawed", "queue.halted",
].join(",");

/** How a story stands after its last step: the state that is shown, and the filter that finds it. */
const ENDS = {
  "task.added": ["todo", "planned"],
  "task.claimed": ["doing", "underway"],
  "task.handed_in": ["review", "underway"],
  "task.held": ["review", "underway"],
  "task.approved": ["merging", "underway"],
  "task.released": ["todo", "back"],
  "task.rejected": ["rejected", "back"],
  "task.blocked": ["blocked", "blocked"],
  "task.dropped": ["dropped", "dropped"],
  "task.done": ["landed", "landed"],
  "merge.reverted": ["reverted", "landed"],
};

/** What can be shown of all stories, with the words for one and for several of them. */
export const OUTCOMES = [
  { id: "landed", title: "Landed", words: "landed" },
  { id: "underway", title: "Under way", words: "under way" },
  { id: "back", title: "Sent back", words: "sent back" },
  { id: "blocked", title: "Blocked", words: "blocked" },
  { id: "dropped", title: "Dropped", words: "dropped" },
  { id: "planned", title: "Added", words: "added" },
];

/**
 * Return rows of the log, the newest first, as entries, the newest first: {task, at, steps, ...} for each task, with its
 * steps in the order in which they came, and {news, at, text} for what stopped or moved all of them.
 */
export function storiesOf(rows, tasks = new Map()) {
  const stories = new Map();
  const entries = [];
  for (const row of rows) {
    if (!row.task) {
      entries.push({ key: `news ${row.seq}`, news: true, at: row.time, text: row.text });
    } else if (stories.has(row.task)) {
      stories.get(row.task).steps.unshift(row);
    } else {
      const story = { key: row.task, task: row.task, at: row.time, steps: [row] };
      stories.set(row.task, story);
      entries.push(story);
    }
  }
  for (const story of stories.values()) Object.assign(story, factsOf(story.steps, tasks.get(story.task)));
  return entries;
}

function factsOf(steps, row) {
  const last = steps.at(-1);
  const [state, outcome] = ENDS[last.kind] ?? ["todo", "planned"];
  const claims = steps.filter(({ kind }) => kind === "task.claimed");
  const isHere = last.kind === "task.handed_in" && row && ["review", "merging"].includes(row.status);
  return {
    title: row?.title ?? "",
    state: isHere ? row.status : state,
    outcome,
    who: claims.at(-1)?.actor ?? null,
    tries: claims.length,
    back: steps.filter(({ kind }) => kind === "task.rejected").length,
    took: last.kind === "task.done" && claims.length ? last.time - claims[0].time : null,
    reason: row?.reason ?? "",
  };
}

const named = (actor) => (actor === "owner" ? "you" : actor === "covey" ? "the merge queue" : actor);
const times = (count) => (count === 1 ? "once" : count === 2 ? "twice" : `${count} times`);
const atTry = ({ tries }) => (tries > 1 ? `, at try ${tries}` : "");

const ENDINGS = {
  "task.added": (story, last) => `Added by ${named(last.actor)}.`,
  "task.claimed": (story) => `${story.who} works on it${story.tries > 1 ? `, try ${story.tries}` : ""}${story.back ? `, after it was sent back ${times(story.back)}` : ""}.`,
  "task.handed_in": (story, last) => `${last.actor} handed it in${atTry(story)}; ${story.state === "merging" ? "it is on its way to main" : "it waits for your review"}.`,
  "task.held": () => "It waits for your word.",
  "task.approved": (story, last) => `Approved by ${named(last.actor)}; it is on its way to main.`,
  "task.released": (story, last) => `${named(last.actor)} gave it back${atTry(story)}; it waits for its next try.`,
  "task.rejected": (story, last) => `Sent back by ${named(last.actor)}${story.back > 1 ? `, ${times(story.back)} by now` : ""}; ${story.who ?? "its author"} is to mend it.`,
  "task.blocked": (story) => `Blocked${story.tries ? ` after ${story.tries === 1 ? "one try" : `${story.tries} tries`}` : ""}${story.reason ? `: ${story.reason}` : "."}`,
  "task.dropped": (story, last) => `Dropped by ${named(last.actor)}.`,
  "task.done": (story) => `${story.took === null ? "Done" : `Landed ${span(story.took)} after ${story.steps.find(({ kind }) => kind === "task.claimed").actor} took it`}${atTry(story)}${story.back ? `, sent back ${times(story.back)}` : ""}.`,
  "merge.reverted": () => "Taken out of main again.",
};

/** Return what happened to a task in one sentence. */
export function sentenceOf(story) {
  const last = story.steps.at(-1);
  return (ENDINGS[last.kind] ?? (() => last.text))(story, last);
}

const STEPS = {
  "task.added": "added it", "task.claimed": "took it", "task.handed_in": "handed it in", "task.approved": "approved it",
};

/** Return one step of a story in words: what the log says of it, or less where that says no more. */
export function stepInWords({ kind, actor, text }) {
  return kind in STEPS ? `${named(actor)} ${STEPS[kind]}` : text;
}

/** Return which of some entries a person wants to see: of an outcome, with a text in title, id, names or sentence. */
export function wanted(entries, { outcome = "", text = "" }) {
  const words = text.trim().toLowerCase();
  return entries.filter((entry) => {
    if (entry.news) return !outcome && (!words || entry.text.toLowerCase().includes(words));
    if (outcome ? entry.outcome !== outcome : false) return false;
    return !words || `${entry.task} ${entry.title} ${entry.who ?? ""} ${sentenceOf(entry)}`.toLowerCase().includes(words);
  });
}

/** What many a task has in common, and nobody reads one by one: it was only added, by somebody, or is being worked on. */
function crowdOf(entry) {
  if (entry.outcome === "planned") return `added by ${entry.steps[0].actor}`;
  return entry.state === "doing" ? "doing" : null;
}

/**
 * Return entries with a line for each day before them, {day, at, counts}; with `crowds`, all tasks of a day that were
 * only added or are being worked on are one line, {crowd, by, at, tasks}, where the newest of them would stand.
 */
export function withDays(entries, crowds = true) {
  const lines = [];
  let day = null;
  let found = new Map();
  for (const entry of entries) {
    const name = dayOf(entry.at);
    if (day?.name !== name) {
      day = { key: `day ${name}`, day: true, name, at: entry.at, counts: {} };
      found = new Map();
      lines.push(day);
    }
    if (!entry.news) day.counts[entry.outcome] = (day.counts[entry.outcome] ?? 0) + 1;
    const crowd = entry.news || !crowds ? null : crowdOf(entry);
    if (crowd && found.has(crowd)) {
      found.get(crowd).tasks.push(entry);
    } else {
      const line = crowd ? { key: `${crowd} ${name}`, crowd, by: entry.steps[0].actor, at: entry.at, tasks: [entry] } : entry;
      if (crowd) found.set(crowd, line);
      lines.push(line);
    }
  }
  return lines.map((line) => (line.tasks?.length === 1 ? line.tasks[0] : line));
}

function dayOf(seconds) {
  const day = new Date(seconds * 1000);
  return `${day.getFullYear()}-${day.getMonth()}-${day.getDate()}`;
}

/** Return the counts of a day in words: "2 landed, 1 sent back". */
export function countsInWords(counts) {
  return OUTCOMES.filter(({ id }) => counts[id]).map(({ id, words }) => `${counts[id]} ${words}`).join(", ");
}

/** Return what a crowd of tasks has in common, in a few words. */
export function crowdInWords({ crowd, by, tasks }) {
  const count = some(tasks.length, "task");
  return crowd === "doing" ? `${count} being worked on` : `${by === "owner" ? "You" : by} added ${count}`;
}
