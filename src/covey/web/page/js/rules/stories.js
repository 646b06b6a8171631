// Turns the log into one story per task, told in a sentence and grouped by day.
import { some, span } from "./text.js";
/** @import { LogRow, Notice, StoryCrowd, StoryDay, Task, TaskStory } from "types/page.js" */

/**
 * How a story stands after its last step: the state that is shown, and the filter that finds it.
 * @type {Record<string, [string, string]>}
 */
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

/** The kinds of events that stories are made of, and those that stop or move all of them, as the log is asked for them. */
export const TOLD = [
  ...Object.keys(ENDS),
  "fleet.paused",
  "fleet.resumed",
  "queue.paused",
  "queue.resumed",
  "queue.frozen",
  "queue.thawed",
  "queue.halted",
].join(",");

/** How stories end, with the words that count them; those that are asked for have a filter of their own. */
export const OUTCOMES = [
  { id: "landed", title: "Landed", words: "landed", isAsked: true },
  { id: "reported", title: "Reported", words: "reported", isAsked: true },
  { id: "underway", title: "Under way", words: "under way", isAsked: true },
  { id: "back", title: "Sent back", words: "sent back", isAsked: true },
  { id: "blocked", title: "Blocked", words: "blocked", isAsked: true },
  { id: "dropped", title: "Dropped", words: "dropped" },
  { id: "planned", title: "Added", words: "added" },
];

/**
 * Return rows of the log, the newest first, as entries, the newest first: {task, at, steps, ...} for each task, with its
 * steps in the order in which they came, and {news, at, text} for what stopped or moved all of them.
 * @param {LogRow[]} rows
 * @param {Map<string, Task>} [tasks]
 */
export function storiesOf(rows, tasks = new Map()) {
  /** @type {Map<string, TaskStory>} */
  const stories = new Map();
  /** @type {(TaskStory | Notice)[]} */
  const entries = [];
  for (const row of rows) {
    if (!row.task) {
      entries.push({ key: `news ${row.seq}`, news: true, at: row.time, text: row.text });
    } else if (stories.has(row.task)) {
      stories.get(row.task)?.steps.unshift(row);
    } else {
      const story = /** @type {TaskStory} */ ({ key: row.task, task: row.task, at: row.time, steps: [row] });
      stories.set(row.task, story);
      entries.push(story);
    }
  }
  for (const story of stories.values()) Object.assign(story, factsOf(story.steps, tasks.get(story.task)));
  return entries;
}

/**
 * @param {LogRow[]} steps
 * @param {Task | undefined} row
 */
function factsOf(steps, row) {
  const last = steps.at(-1);
  const [state, outcome] = ENDS[last.kind] ?? ["todo", "planned"];
  const claims = steps.filter(({ kind }) => kind === "task.claimed");
  const isReport = last.kind === "task.handed_in" && row?.status === "done";
  const isHere = last.kind === "task.handed_in" && ["review", "merging", "done"].includes(row?.status ?? "");
  return {
    title: row?.title ?? "",
    state: isHere && row ? row.status : state,
    outcome: isReport ? "reported" : outcome,
    who: claims.at(-1)?.actor ?? null,
    tries: claims.length,
    back: steps.filter(({ kind }) => kind === "task.rejected").length,
    took: last.kind === "task.done" && claims.length ? last.time - claims[0].time : null,
    reason: row?.reason ?? "",
  };
}

/** @param {string} actor */
const named = (actor) => (actor === "owner" ? "you" : actor === "covey" ? "the merge queue" : actor);
/** @param {number} count */
const times = (count) => (count === 1 ? "once" : count === 2 ? "twice" : `${count} times`);
/** @param {{ tries: number }} props */
const atTry = ({ tries }) => (tries > 1 ? `, at try ${tries}` : "");

/** @type {Record<string, (story: TaskStory, last: LogRow) => string>} */
const ENDINGS = {
  "task.added": (_story, last) => `Added by ${named(last.actor)}.`,
  "task.claimed": (story) =>
    `${story.who} works on it${story.tries > 1 ? `, try ${story.tries}` : ""}${story.back ? `, after it was sent back ${times(story.back)}` : ""}.`,
  "task.handed_in": (story, last) =>
    `${last.actor} handed ${story.outcome === "reported" ? "its report" : "it"} in${atTry(story)}${{ merging: "; it is on its way to main", review: "; it waits for your review" }[story.state] ?? ""}.`,
  "task.held": () => "It waits for your word.",
  "task.approved": (_story, last) => `Approved by ${named(last.actor)}; it is on its way to main.`,
  "task.released": (story, last) => `${named(last.actor)} gave it back${atTry(story)}; it waits for its next try.`,
  "task.rejected": (story, last) =>
    `Sent back by ${named(last.actor)}${story.back > 1 ? `, ${times(story.back)} by now` : ""}; ${story.who ?? "its author"} is to mend it.`,
  "task.blocked": (story) =>
    story.reason
      ? `Blocked: ${story.reason}`
      : `Blocked${story.tries ? ` after ${story.tries === 1 ? "one try" : `${story.tries} tries`}` : ""}.`,
  "task.dropped": (_story, last) => `Dropped by ${named(last.actor)}.`,
  "task.done": (story) =>
    `${story.took === null ? "Done" : `Landed ${span(story.took)} after ${story.steps.find(({ kind }) => kind === "task.claimed")?.actor} took it`}${atTry(story)}${story.back ? `, sent back ${times(story.back)}` : ""}.`,
  "merge.reverted": () => "Taken out of main again.",
};

/**
 * Return what happened to a task in one sentence.
 * @param {TaskStory} story
 */
export function sentenceOf(story) {
  const last = story.steps.at(-1);
  return (ENDINGS[last.kind] ?? (() => last.text))(story, last);
}

/** @type {Record<string, string>} */
const STEPS = {
  "task.added": "added it",
  "task.claimed": "took it",
  "task.handed_in": "handed it in",
  "task.approved": "approved it",
};

/**
 * Return one step of a story in words: what the log says of it, or less where that says no more.
 * @param {LogRow} props
 */
export function stepInWords({ kind, actor, text }) {
  return kind in STEPS ? `${named(actor)} ${STEPS[kind]}` : text;
}

/**
 * Return which of some entries a person wants to see: of an outcome, with a text in title, id, names or sentence.
 * @param {(TaskStory | Notice)[]} entries
 */
export function wanted(entries, { outcome = "", text = "" }) {
  const words = text.trim().toLowerCase();
  return entries.filter((entry) => {
    if (entry.news) return !outcome && (!words || entry.text.toLowerCase().includes(words));
    if (outcome ? entry.outcome !== outcome : false) return false;
    return (
      !words || `${entry.task} ${entry.title} ${entry.who ?? ""} ${sentenceOf(entry)}`.toLowerCase().includes(words)
    );
  });
}

/**
 * What many tasks have in common, of which nobody wants to read one by one: what became of them, and by whom.
 * @param {TaskStory} props
 */
function crowdOf({ outcome, state, steps }) {
  if (state === "doing") return { kind: "doing", by: "" };
  return ["planned", "dropped", "reported"].includes(outcome) ? { kind: outcome, by: steps.at(-1).actor } : null;
}

/**
 * Return entries with a line for each day before them, {day, at, counts}. With `crowds`, all tasks of a day of which only
 * the same is to be said are one line, {crowd, by, at, tasks}, after those that have a story of their own.
 * @param {(TaskStory | Notice)[]} entries
 */
export function withDays(entries, crowds = true) {
  /** @type {StoryDay[]} */
  const days = [];
  for (const entry of entries) {
    const name = dayOf(entry.at);
    if (days.at(-1)?.name !== name)
      days.push({ key: `day ${name}`, day: true, name, at: entry.at, counts: {}, own: [], many: new Map() });
    const { counts, own, many } = days.at(-1);
    if (!entry.news) counts[entry.outcome] = (counts[entry.outcome] ?? 0) + 1;
    const crowd = entry.news || !crowds ? null : crowdOf(entry);
    if (!crowd || entry.news) {
      own.push(entry);
      continue;
    }
    const key = `${crowd.kind} ${crowd.by} ${name}`;
    const known = many.get(key) ?? { key, crowd: crowd.kind, by: crowd.by, at: entry.at, tasks: [] };
    many.set(key, known);
    known.tasks.push(entry);
  }
  /** @param {StoryCrowd} props */
  const shown = ({ tasks }) => tasks.length > 1;
  return days.flatMap((day) => {
    const alone = [...day.many.values()].filter((crowd) => !shown(crowd)).map(({ tasks }) => tasks[0]);
    const own = alone.length ? [...day.own, ...alone].sort((one, other) => other.at - one.at) : day.own;
    return [day, ...own, ...[...day.many.values()].filter(shown)];
  });
}

/** @param {number} seconds */
function dayOf(seconds) {
  const day = new Date(seconds * 1000);
  return `${day.getFullYear()}-${day.getMonth()}-${day.getDate()}`;
}

/**
 * Return the counts of a day in words: "2 landed, 1 sent back".
 * @param {Record<string, number>} counts
 */
export function countsInWords(counts) {
  return OUTCOMES.filter(({ id }) => counts[id])
    .map(({ id, words }) => `${counts[id]} ${words}`)
    .join(", ");
}

/** @type {Record<string, string>} */
const CROWDS = { planned: "added", dropped: "dropped", reported: "reported on" };

/**
 * Return what a crowd of tasks has in common, in a few words.
 * @param {StoryCrowd} props
 */
export function crowdInWords({ crowd, by, tasks }) {
  const count = some(tasks.length, "task");
  return crowd === "doing"
    ? `${count} being worked on`
    : `${by === "owner" ? "You" : named(by)} ${CROWDS[crowd]} ${count}`;
}
