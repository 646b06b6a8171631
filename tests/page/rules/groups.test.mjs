import assert from "node:assert/strict";
import { test } from "node:test";
import { decisionsOf, each, grouped, rows, ruleOf, told } from "../../../src/covey/web/page/js/rules/groups.js";

const item = (key, more = {}) => ({
  key,
  kind: "blocked",
  cause: "",
  ids: [key],
  parts: [],
  since: 1,
  session: null,
  task: key,
  decisions: ["reopen", "drop"],
  ...more,
});
const keys = (units) => units.map(({ key }) => key);

test("items of one kind and cause are one group, where the oldest of them stands", () => {
  const items = [
    item("a", { cause: "x" }),
    item("b"),
    item("c", { cause: "x" }),
    item("d", { cause: "x", kind: "question" }),
    item("e", { cause: "y" }),
  ];
  const units = grouped(items);
  assert.deepEqual(keys(units), ["group blocked x", "b", "d", "e"]);
  assert.deepEqual(keys(units[0].members), ["a", "c"]);
});

test("without a cause nothing is put together, however alike the words are", () => {
  const units = grouped([item("a", { text: "same" }), item("b", { text: "same" })]);
  assert.deepEqual(keys(units), ["a", "b"]);
});

test("what several ask alike can be answered one by one", () => {
  const asked = item("q", {
    kind: "question",
    ids: ["question-1", "question-2"],
    parts: [
      { id: "question-1", session: "ada", task: "A-1", since: 1, until: 9 },
      { id: "question-2", session: "bob", task: null, since: 2, until: null },
    ],
  });
  assert.deepEqual(
    each(asked).map(({ ids, session, task, until }) => [ids, session, task, until]),
    [
      [["question-1"], "ada", "A-1", 9],
      [["question-2"], "bob", null, null],
    ],
  );
  const [group] = grouped([asked]);
  assert.equal(group.members.length, 2);
  assert.equal(each({ ...asked, ids: ["question-2"] }).length, 1, "what was answered is not there any more");
});

test("a group that is unfolded is followed by its members", () => {
  const items = [item("a", { cause: "x" }), item("b", { cause: "x" }), item("c")];
  assert.deepEqual(keys(rows(items, new Set())), ["group blocked x", "c"]);
  const open = rows(items, new Set(["group blocked x"]));
  assert.deepEqual(keys(open), ["group blocked x", "a", "b", "c"]);
  assert.deepEqual(
    open.map(({ within }) => within ?? null),
    [null, "group blocked x", "group blocked x", null],
  );
});

test("a group can do what each of its items can", () => {
  const group = { items: [item("a"), item("b", { decisions: ["drop"] })] };
  assert.deepEqual(decisionsOf(group), ["drop"]);
});

test("one rule lets all of a group through only if it is the rule of each", () => {
  const group = (...rules) => ({ items: rules.map((rule, index) => item(`q${index}`, { rule })) });
  assert.equal(ruleOf(group("npm test", "npm test")), "npm test");
  assert.equal(ruleOf(group("npm test", "make")), null);
  assert.equal(ruleOf(group("", "")), null);
});

test("what of many was not done is told", () => {
  assert.deepEqual(told(14, 14, "task", "are to do again", null), {
    text: "14 tasks are to do again.",
    hint: "",
    bad: false,
  });
  assert.deepEqual(told(14, 11, "task", "are to do again", { name: "A-1", message: "It is not blocked." }), {
    text: "11 of 14 tasks are to do again, 3 could not be.",
    hint: "A-1: It is not blocked.",
    bad: true,
  });
  assert.equal(told(2, 0, "question", "are answered", null).text, "None of 2 questions are answered.");
});
