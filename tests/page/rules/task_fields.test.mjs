import assert from "node:assert/strict";
import { test } from "node:test";
import { isInRows, rowOf } from "../../../src/covey/web/page/js/rules/task_fields.js";

test("what only a whole task shows is not in its row", () => {
  const whole = { id: "A-1", title: "One", lane: "", body: "Words", author: "ada", reverted: "merge-2", until: null };
  assert.deepEqual(rowOf(whole), { id: "A-1", title: "One", lane: "" });
});

test("an edit of words, checks or money needs the whole task", () => {
  const changed = ["title", "body", "done_when", "budget", "scope", "priority"];
  assert.deepEqual(
    changed.filter((name) => !isInRows(name)),
    ["body", "done_when", "budget"],
  );
});
