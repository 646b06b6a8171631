import assert from "node:assert/strict";
import { test } from "node:test";
import { fit } from "../../../src/covey/web/page/js/rules/fuzzy.js";
import { isQuiet } from "../../../src/covey/web/page/js/rules/quiet_hours.js";
import { decoded, keptAt } from "../../../src/covey/web/page/js/data/routes.js";
import { Settled } from "../../../src/covey/web/page/js/rules/decided.js";
import { ageless, visible } from "../../../src/covey/web/page/js/rules/text.js";

const item = (...ids) => ({ key: "one", kind: "question", ids });

test("what is being settled is gone at once and cannot be settled again", () => {
  const settled = new Settled();
  assert.deepEqual(settled.take(item("q-1", "q-2")), ["question q-1", "question q-2"]);
  assert.deepEqual(settled.take(item("q-1", "q-2")), []);
  assert.deepEqual(settled.shown([item("q-1", "q-2")], 0), []);
});

test("what failed is back, and can be settled again", () => {
  const settled = new Settled();
  settled.end(settled.take(item("q-1")), false, 0);
  assert.deepEqual(settled.shown([item("q-1")], 0), [item("q-1")]);
  assert.equal(settled.take(item("q-1")).length, 1);
});

test("of the same question the agents that asked later are still there", () => {
  const settled = new Settled();
  settled.end(settled.take(item("q-1", "q-2")), true, 0);
  assert.deepEqual(settled.shown([item("q-1", "q-2", "q-3")], 1), [item("q-3")]);
});

test("what the daemon lists on for long was not settled", () => {
  const settled = new Settled(1000);
  settled.end(settled.take(item("q-1")), true, 0);
  assert.deepEqual(settled.shown([item("q-1")], 999), []);
  assert.deepEqual(settled.shown([item("q-1")], 1001), [item("q-1")]);
});

test("what is gone from the daemon's list may come again", () => {
  const settled = new Settled();
  settled.end(settled.take({ key: "queue:halted", kind: "queue", ids: [] }), true, 0);
  settled.shown([], 1);
  assert.equal(settled.shown([{ key: "queue:halted", kind: "queue", ids: [] }], 2).length, 1);
});

test("the beginning of a word fits better than its middle, and every word has to fit", () => {
  assert.ok(fit("merge queue", ["queue"]) > fit("unqueued work", ["queue"]));
  assert.ok(fit("t-12 fix the queue", ["que", "fix"]) > 0);
  assert.equal(fit("t-12 fix the queue", ["que", "board"]), 0);
});

test("the first letters of words fit a little", () => {
  assert.ok(fit("merge queue", ["mq"]) > 0);
  assert.equal(fit("merge queue", ["zq"]), 0);
});

const at = (hours, minutes = 0) => new Date(2030, 0, 1, hours, minutes);
const night = { quiet: true, quietFrom: "22:00", quietUntil: "07:00" };

test("quiet hours go over midnight, and end when they say", () => {
  assert.ok(isQuiet(night, at(23)) && isQuiet(night, at(3)) && isQuiet(night, at(22)));
  assert.ok(!isQuiet(night, at(7)) && !isQuiet(night, at(12)) && !isQuiet(night, at(21, 59)));
  assert.ok(!isQuiet({ ...night, quiet: false }, at(23)));
});

test("nothing in a text is obeyed instead of seen", () => {
  const signs = [
    "\u0000",
    "\u001b",
    "\u0085",
    "\u00ad",
    "\u034f",
    "\u061c",
    "\u115f",
    "\u180e",
    "\u200b",
    "\u200e",
    "\u2028",
    "\u202e",
    "\u2066",
    "\u3164",
    "\ufeff",
    "\ufff9",
    "\u{e0041}",
    "\ud800",
  ];
  for (const sign of signs) assert.ok(!visible(`a${sign}b`).includes(sign), sign.codePointAt(0).toString(16));
  assert.equal(visible("a\u202eb"), "a⟨202E⟩b");
  assert.equal(visible("a\u001bb"), "a␛b");
  assert.equal(visible("a\tb\nc \u2764\ufe0f \u{1f600} \u05d0"), "a\tb\nc \u2764\ufe0f \u{1f600} \u05d0");
});

test("a text is cut between signs, not inside of one", () => {
  assert.equal(visible("ab\u{1f600}", 3), "ab…");
  assert.equal(visible("ab\u{1f600}", 4), "ab\u{1f600}");
});

test("an address that nobody wrote right is still one", () => {
  assert.equal(decoded("AF%2D1"), "AF-1");
  assert.equal(decoded("%E0%A4%A"), "%E0%A4%A");
});

test("evidence is told without the ages of its clues, and nothing else is taken from it", () => {
  assert.equal(
    ageless("its tool runs: make (50 min ago); it last said something (2.5 h ago)"),
    "its tool runs: make; it last said something",
  );
  assert.equal(ageless("Which? (30 s ago)"), "Which?");
  assert.equal(ageless("It broke (5 min ago) and then not"), "It broke (5 min ago) and then not");
  assert.equal(ageless(null), "");
});

test("what went wrong is not told in another view, what was done still is", () => {
  const notes = [
    { id: 1, bad: true, place: "sessions" },
    { id: 2, bad: false, place: "sessions" },
    { id: 3, bad: true, place: "board" },
  ];
  const kept = (place) => keptAt(notes, place).map(({ id }) => id);
  assert.deepEqual([kept("sessions"), kept("board"), kept("costs")], [[1, 2], [2, 3], [2]]);
});
