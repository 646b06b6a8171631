import assert from "node:assert/strict";
import { test } from "node:test";
import {
  calls,
  differences,
  guess,
  History,
  inverse,
  leaves,
  refusal,
} from "../../../src/covey/web/page/js/rules/undo.js";

const edit = (id, changes) => ({ kind: "edit", id, changes });

test("equal steps in a row are one question, all or nothing", () => {
  const steps = [edit("A-1", { priority: 1 }), edit("A-2", { priority: 1 }), edit("A-3", { priority: 2 })];
  assert.deepEqual(calls(steps), [
    {
      method: "POST",
      path: "/api/board/bulk",
      body: { ids: ["A-1", "A-2"], changes: { priority: 1 } },
      ids: ["A-1", "A-2"],
    },
    { method: "PATCH", path: "/api/board/A-3", body: { priority: 2 }, ids: ["A-3"] },
  ]);
});

test("each step asks for what the daemon offers", () => {
  assert.deepEqual(calls([{ kind: "move", id: "A-1", below: "A-2", above: null }])[0], {
    method: "POST",
    path: "/api/board/A-1/move",
    body: { below: "A-2", above: null },
    ids: ["A-1"],
  });
  assert.deepEqual(calls([{ kind: "move", id: "A-1", below: null, above: null }]), []);
  assert.deepEqual(calls([{ kind: "drop", id: "A-1", reason: "old" }])[0].body, { reason: "old" });
  assert.deepEqual(
    calls([
      { kind: "drop", id: "A-1", reason: "old" },
      { kind: "drop", id: "A-2", reason: "old" },
    ])[0].body,
    { ids: ["A-1", "A-2"], drop: "old" },
  );
  assert.equal(calls([{ kind: "reopen", id: "A-1" }])[0].path, "/api/board/A-1/reopen");
  assert.equal(calls([{ kind: "block", id: "A-1", reason: "why" }])[0].path, "/api/board/A-1/block");
});

test("more than a thousand tasks are asked for in parts", () => {
  const steps = Array.from({ length: 2500 }, (_, index) => edit(`A-${index}`, { priority: 3 }));
  assert.deepEqual(
    calls(steps).map(({ ids }) => ids.length),
    [1000, 1000, 500],
  );
});

test("taking an edit back sets every field to what it was, also to nothing", () => {
  const before = { id: "A-1", priority: 2, assignee: null, status: "todo", title: "Old" };
  assert.deepEqual(inverse(edit("A-1", { priority: 5, assignee: "ada", title: "New", note: "x" }), before), [
    edit("A-1", { priority: 2, assignee: null, title: "Old" }),
  ]);
  assert.deepEqual(inverse(edit("A-1", { status: "backlog" }), before), [edit("A-1", { status: "todo" })]);
  assert.deepEqual(inverse(edit("A-1", { note: "x" }), before), []);
});

test("an edit that unblocked a task is taken back by blocking it for the same reason", () => {
  assert.deepEqual(inverse(edit("A-1", { status: "todo" }), { id: "A-1", status: "blocked", reason: "why" }), [
    { kind: "block", id: "A-1", reason: "why" },
  ]);
});

test("dropping is taken back by reopening, into the column where it was", () => {
  const drop = { kind: "drop", id: "A-1", reason: "old" };
  assert.deepEqual(inverse(drop, { status: "todo" }), [{ kind: "reopen", id: "A-1" }]);
  assert.deepEqual(inverse(drop, { status: "backlog" }), [
    { kind: "reopen", id: "A-1" },
    edit("A-1", { status: "backlog" }),
  ]);
  assert.deepEqual(inverse(drop, { status: "blocked", reason: "why" }), [
    { kind: "reopen", id: "A-1" },
    { kind: "block", id: "A-1", reason: "why" },
  ]);
  assert.deepEqual(inverse({ kind: "reopen", id: "A-1" }, { status: "dropped", reason: "old" }), [drop]);
});

test("a move is taken back to the neighbours and the priority of before", () => {
  const back = inverse({ kind: "move", id: "A-1" }, { priority: 3 }, { below: "A-7", above: "A-8" });
  assert.deepEqual(back, [{ kind: "move", id: "A-1", below: "A-7", above: "A-8", priority: 3 }]);
});

test("an edit and its inverse leave a task as it was", () => {
  const before = { id: "A-1", priority: 2, assignee: null, role: "docs", status: "todo", batch: null };
  for (const changes of [{ priority: 9 }, { assignee: "ada", role: null }, { status: "backlog", batch: "night" }]) {
    const steps = [edit("A-1", changes)];
    const after = steps.reduce(guess, before);
    assert.notDeepEqual(after, before);
    assert.deepEqual(inverse(steps[0], before).reduce(guess, after), before);
  }
});

test("what somebody changed meanwhile is found, and nothing else", () => {
  const left = leaves([
    edit("A-1", { priority: 5, note: "x" }),
    { kind: "move", id: "A-1", below: "A-2" },
    { kind: "drop", id: "A-3", reason: "old" },
  ]);
  assert.deepEqual(left, { "A-1": { priority: 5 }, "A-3": { status: "dropped" } });
  const tasks = new Map([
    ["A-1", { priority: 5, title: "changed" }],
    ["A-3", { status: "dropped" }],
  ]);
  assert.deepEqual(differences(left, tasks), []);
  tasks.set("A-1", { priority: 6 });
  tasks.delete("A-3");
  assert.deepEqual(differences(left, tasks), [
    { id: "A-1", field: "priority" },
    { id: "A-3", field: "task" },
  ]);
  assert.equal(
    refusal("taken back", differences(left, tasks)),
    "Somebody changed the priority of A-1 meanwhile (and 1 more), so nothing was taken back.",
  );
});

test("what was taken back can be done again until something else is done", () => {
  const history = new History();
  history.push({ label: "one" });
  history.push({ label: "two" });
  assert.equal(history.next("undo").label, "two");
  history.turn("undo");
  assert.equal(history.next("undo").label, "one");
  assert.equal(history.next("redo").label, "two");
  history.turn("redo");
  assert.equal(history.next("redo"), undefined);
  history.turn("undo");
  history.push({ label: "three" });
  assert.equal(history.next("redo"), undefined);
  for (let count = 0; count < 300; count++) history.push({ label: String(count) });
  assert.equal(history.entries.undo.length, 100);
});

test("one thing can be taken back whatever was done after it, and only once", () => {
  const history = new History();
  const [one, two] = [{ label: "one" }, { label: "two" }];
  history.push(one);
  history.push(two);
  history.turn("undo", one);
  assert.equal(history.has("undo", one), false);
  assert.equal(history.next("undo"), two);
  assert.equal(history.next("redo"), one);
  history.forget("undo", one);
  assert.equal(history.next("undo"), two);
});
