import assert from "node:assert/strict";
import { test } from "node:test";
import { matrices } from "../../../src/covey/web/page/js/rules/overlap_tables.js";
import { DOING, paths, spanAt, ticks } from "../../../src/covey/web/page/js/rules/state_spans.js";
import { revertsUnderWay, saidOfRevert, stepsOf } from "../../../src/covey/web/page/js/rules/merge_steps.js";

const overlap = (one, other, level, ...files) => ({
  id: `${one} ${other}`,
  one,
  other,
  level,
  files,
  one_session: `by-${one}`,
  other_session: other === "main" ? null : `by-${other}`,
});
const cell = (table, row, column) => table.cells.get(`${row}\n${column}`);

test("two tasks that overlap stand on both sides of the matrix, in the order of their numbers", () => {
  const { byTask } = matrices({ overlaps: [overlap("T-10", "T-9", "hunk", "a.py")], hot: [] });
  assert.deepEqual(byTask.rows, ["T-9", "T-10"]);
  assert.equal(cell(byTask, "T-9", "T-10").level, "hunk");
  assert.equal(cell(byTask, "T-10", "T-9").level, "hunk");
});

test("a file shows the worst that its sessions do to one another, and hot ones come first", () => {
  const overlaps = [
    overlap("T-1", "T-2", "file", "a.py", "b.py"),
    overlap("T-1", "T-3", "conflict", "b.py"),
    overlap("T-3", "main", "hunk", "c.py"),
  ];
  const { byFile } = matrices({ overlaps, hot: [{ path: "c.py", collisions: 4 }] });
  assert.deepEqual(byFile.rows, ["c.py", "a.py", "b.py"]);
  assert.deepEqual(byFile.columns, ["by-T-1", "by-T-2", "by-T-3", "main"]);
  assert.equal(cell(byFile, "b.py", "by-T-1").level, "conflict");
  assert.equal(cell(byFile, "b.py", "by-T-1").overlaps.length, 2);
  assert.equal(cell(byFile, "b.py", "by-T-2").level, "file");
});

test("of very many tasks the matrix shows those that come nearest, and says how many it leaves out", () => {
  const many = Array.from({ length: 100 }, (_, i) =>
    overlap(`T-${2 * i + 1}`, `T-${2 * i + 2}`, i === 77 ? "conflict" : "file", "a.py"),
  );
  const { byTask } = matrices({ overlaps: many, hot: [] });
  assert.equal(byTask.rows.length + byTask.more, 200);
  assert.ok(byTask.rows.length <= 60 && byTask.rows.includes("T-155") && byTask.rows.includes("T-156"));
});

const spans = [
  { at: 100, until: 200, state: "working" },
  { at: 200, until: 250, state: "needs-you" },
  { at: 400, until: 500, state: "working" },
];

test("a strip is one path for each state, however many spans it has", () => {
  const ways = paths(spans, 100, 500, 400);
  assert.deepEqual([...ways.keys()], ["working", "needs-you"]);
  assert.equal(ways.get("working").match(/M/g).length, 2);
  assert.ok(ways.get("working").startsWith(`M0.0 ${DOING.working.top}h100.0`));
});

test("every state has a form that no other has", () => {
  const forms = Object.values(DOING).map(({ top, height }) => `${top} ${height}`);
  assert.equal(new Set(forms).size, forms.length - 1); // waiting for you is as large as working, and hatched
});

test("a time leads to its span, and one between two to the later", () => {
  assert.deepEqual(
    [100, 199, 200, 300, 450, 999].map((at) => spanAt(spans, at)),
    [0, 0, 1, 2, 2, 2],
  );
});

test("the axis has round times, and not more than there is room for", () => {
  for (const [hours, width] of [
    [0.2, 400],
    [3, 1000],
    [12, 250],
    [168, 900],
  ]) {
    const until = Date.UTC(2031, 4, 31, 17, 3) / 1000;
    const found = ticks(until - hours * 3600, until, width);
    assert.ok(found.length * 58 <= width + 58, `${hours} h on ${width}`);
    assert.ok(found.every((time) => time >= until - hours * 3600 && time <= until && time % 300 === 0));
  }
});

const at = (merge) =>
  stepsOf({ candidate: null, untested: false, run: null, cause: "", approved: false, ...merge })
    .map(({ state }) => state)
    .join(" ");

test("the steps of a merge say how far it is, and where it failed", () => {
  assert.equal(at({ state: "review" }), "now next next next");
  assert.equal(at({ state: "queued" }), "done now next next");
  assert.equal(at({ state: "testing", candidate: "c" }), "done done now next");
  assert.equal(at({ state: "passed", candidate: "c" }), "done done done now");
  assert.equal(at({ state: "landed", candidate: "c" }), "done done done done");
  assert.equal(at({ state: "landed", candidate: "c", untested: true }), "done done skipped done");
  assert.equal(at({ state: "rejected", candidate: "c", run: "gate-1", cause: "fails" }), "done done failed next");
  assert.equal(at({ state: "rejected", cause: "text" }), "done failed next next");
  assert.equal(at({ state: "rejected" }), "failed next next next");
});

test("a revert that waits for an approval says so, and is known as under way until it has ended", () => {
  const merge = { id: "merge-1", task: "T-1" };
  assert.match(saidOfRevert(merge, { task: "T-4", state: "review" }), /T-4, waits for your approval in the inbox/);
  assert.equal(saidOfRevert(merge, { task: "T-4", state: "queued" }), "T-1 is being taken out of main, by T-4.");
  const found = revertsUnderWay([
    { id: "merge-2", reverts: "merge-1", state: "rejected" },
    { id: "merge-3", reverts: "merge-1", state: "review" },
    { id: "merge-4", reverts: null, state: "queued" },
  ]);
  assert.deepEqual(
    [...found].map(([id, { id: by }]) => [id, by]),
    [["merge-1", "merge-3"]],
  );
});

test("no test fails in what a person sent back, or what git could not merge, after a gate of it", () => {
  assert.equal(at({ state: "rejected", candidate: "c", run: "gate-1", approved: true }), "failed done next next");
  assert.equal(at({ state: "rejected", candidate: "c", run: "gate-1", cause: "text" }), "done failed next next");
  assert.equal(at({ state: "rejected", cause: "needs" }), "done failed next next");
});
