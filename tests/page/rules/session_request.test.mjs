import assert from "node:assert/strict";
import { test } from "node:test";
import { commandOf, listed, readCrew } from "../../../src/covey/web/page/js/rules/session_request.js";

test("words that ask for sessions are read, and others are not", () => {
  assert.deepEqual(readCrew("start 4 claude sessions"), { count: 4, agent: "claude", role: null });
  assert.deepEqual(readCrew(" Add 2 Codex as qa "), { count: 2, agent: "codex", role: "qa" });
  assert.deepEqual(readCrew("add 3 sessions as docs"), { count: 3, agent: null, role: "docs" });
  assert.deepEqual(readCrew("new 1"), { count: 1, agent: null, role: null });
  for (const other of [
    "",
    "4",
    "4 claude",
    "start",
    "start claude",
    "add 0 claude",
    "add 4 claude now please",
    "restart 4",
    "add -1 claude",
  ])
    assert.equal(readCrew(other), null, other);
});

test("the command says what the dialog does, and always names somebody", () => {
  const one = { count: 1, name: "", agent: "claude", role: "", permissions: "", start: true };
  assert.equal(commandOf(one), "covey session new --agent claude --start");
  assert.equal(commandOf({ ...one, start: false }), "covey session new -n 1 --agent claude");
  assert.equal(
    commandOf({ ...one, name: "ada", role: "qa", permissions: "full" }),
    "covey session new ada --agent claude --role qa --permissions full --start",
  );
  assert.equal(commandOf({ ...one, count: 4, name: "ada" }), "covey session new -n 4 --agent claude --start");
});

test("many names are told as a few and how many more", () => {
  const names = ["a", "b", "c", "d", "e", "f"];
  assert.deepEqual(
    [0, 1, 2, 5, 6].map((count) => listed(names.slice(0, count))),
    ["", "a", "a and b", "a, b, c, d and e", "a, b, c, d and 2 more"],
  );
});
