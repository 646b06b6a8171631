import assert from "node:assert/strict";
import { test } from "node:test";
import {
  countsInWords,
  crowdInWords,
  sentenceOf,
  storiesOf,
  TOLD,
  wanted,
  withDays,
} from "../../../src/covey/web/page/js/rules/stories.js";

let seq = 0;
const NOON = Date.UTC(2026, 10, 17, 12) / 1000;
const step = (task, kind, actor, minute) => ({
  seq: ++seq,
  time: NOON + minute * 60,
  kind,
  actor,
  subject: task,
  task,
  text: `${actor} ${kind} ${task}`,
});
/** Return the stories of steps that are told in the order in which they came. */
const tell = (steps, tasks) => storiesOf([...steps].reverse(), tasks);

const LANDED = [
  step("A-1", "task.added", "owner", 0),
  step("A-1", "task.claimed", "ada", 1),
  step("A-1", "task.handed_in", "ada", 5),
  step("A-1", "task.rejected", "covey", 7),
  step("A-1", "task.claimed", "ada", 8),
  step("A-1", "task.handed_in", "ada", 20),
  step("A-1", "task.done", "covey", 31),
];

test("all that happened to a task is one story, told in one sentence", () => {
  const [story, ...more] = tell(LANDED, new Map([["A-1", { title: "Mend it", status: "done" }]]));
  assert.deepEqual(more, []);
  assert.deepEqual([story.title, story.state, story.tries, story.back, story.took], ["Mend it", "landed", 2, 1, 1800]);
  assert.equal(sentenceOf(story), "Landed 30 min after ada took it, at try 2, sent back once.");
  assert.deepEqual(
    story.steps.map(({ kind }) => kind),
    LANDED.map(({ kind }) => kind),
  );
});

test("a story is told at every step of its way", () => {
  const said = LANDED.map((_, end) =>
    sentenceOf(tell(LANDED.slice(0, end + 1), new Map([["A-1", { title: "", status: "merging" }]]))[0]),
  );
  assert.deepEqual(said.slice(0, 5), [
    "Added by you.",
    "ada works on it.",
    "ada handed it in; it is on its way to main.",
    "Sent back by the merge queue; ada is to mend it.",
    "ada works on it, try 2, after it was sent back once.",
  ]);
  const blocked = tell(
    [...LANDED.slice(0, 4), step("A-1", "task.blocked", "covey", 8)],
    new Map([["A-1", { title: "", status: "blocked", reason: "make test fails" }]]),
  );
  assert.equal(sentenceOf(blocked[0]), "Blocked: make test fails");
  assert.equal(sentenceOf(tell([step("B-1", "task.done", "covey", 1)])[0]), "Done.");
  assert.equal(
    sentenceOf(tell([...LANDED, step("A-1", "merge.reverted", "covey", 40)])[0]),
    "Taken out of main again.",
  );
});

test("every kind that is asked for has an ending or is news of all", () => {
  for (const kind of TOLD.split(",")) {
    const row = { ...step("C-1", kind, "owner", 1), task: /^(task|merge)/.test(kind) ? "C-1" : null };
    const [entry] = storiesOf([row]);
    assert.ok(entry.news ? entry.text : sentenceOf(entry) !== row.text, kind);
  }
});

test("the newest story comes first, and news of all stands between", () => {
  const entries = tell([
    ...LANDED,
    { seq: 90, time: NOON + 2400, kind: "fleet.paused", task: null, text: "owner paused the fleet" },
    step("B-1", "task.claimed", "bob", 50),
  ]);
  assert.deepEqual(
    entries.map((entry) => entry.task ?? entry.text),
    ["B-1", "owner paused the fleet", "A-1"],
  );
  assert.deepEqual(
    wanted(entries, { outcome: "landed" }).map(({ task }) => task),
    ["A-1"],
  );
  assert.deepEqual(
    wanted(entries, { text: "BOB" }).map(({ task }) => task),
    ["B-1"],
  );
  assert.equal(wanted(entries, {}).length, 3);
});

test("a report is done when it is handed in", () => {
  const [story] = tell(
    [step("R-1", "task.claimed", "rita", 0), step("R-1", "task.handed_in", "rita", 3)],
    new Map([["R-1", { title: "", status: "done" }]]),
  );
  assert.deepEqual([story.state, story.outcome, sentenceOf(story)], ["done", "reported", "rita handed its report in."]);
});

test("a day counts how its stories ended, and what is the same of many tasks is one line after them", () => {
  const added = [1, 2, 3].map((number) => step(`N-${number}`, "task.added", "owner", 60 + number));
  const begun = [1, 2].map((number) => step(`B-${number}`, "task.claimed", "bob", 50 + 30 * number));
  const entries = tell([begun[0], ...LANDED, ...added, step("C-1", "task.added", "cy", 64), begun[1]]);
  const lines = withDays(entries);
  assert.deepEqual(
    lines.map((line) => (line.day ? "day" : line.crowd ? crowdInWords(line) : line.task)),
    ["day", "C-1", "A-1", "2 tasks being worked on", "You added 3 tasks"],
  );
  assert.equal(countsInWords(lines[0].counts), "1 landed, 2 under way, 4 added");
  assert.deepEqual(
    withDays(entries, false).map((line) => line.task ?? "day"),
    ["day", "B-2", "C-1", "N-3", "N-2", "N-1", "A-1", "B-1"],
  );
});
