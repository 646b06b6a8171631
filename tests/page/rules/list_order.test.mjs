import assert from "node:assert/strict";
import { test } from "node:test";
import { firstColumn, openColumns } from "../../../src/covey/web/page/js/rules/columns.js";
import { GROUPS, listed, pressed, sorted, SORTS } from "../../../src/covey/web/page/js/rules/list_order.js";

const task = (id, more = {}) => ({
  id,
  title: id,
  status: "todo",
  session: null,
  assignee: null,
  role: null,
  parent: null,
  batch: null,
  priority: 0,
  rank: 1,
  failed_tries: 0,
  updated: 0,
  ...more,
});
const facts = {
  column: (one) => (one.status === "blocked" ? "needs" : one.status),
  since: (one) => one.updated,
  cost: (one) => one.cost ?? 0,
  title: (id) => `title of ${id}`,
};
const ids = (rows) => rows.map((row) => row.id ?? `[${row.title} ${row.count}]`);

test("a list is sorted by any of its columns, both ways", () => {
  const tasks = [
    task("A-2", { title: "b", priority: 1, cost: 2, updated: 5 }),
    task("A-10", { title: "C", priority: 5, updated: 9 }),
    task("B-1", { title: "a", cost: 7, updated: 1 }),
  ];
  const order = (sort, down) => ids(sorted(tasks, { sort, down }, facts));
  assert.deepEqual(order("priority", true), ["A-10", "A-2", "B-1"]);
  assert.deepEqual(order("priority", false), ["B-1", "A-2", "A-10"]);
  assert.deepEqual(order("title", false), ["B-1", "A-2", "A-10"]);
  assert.deepEqual(order("id", false), ["A-2", "A-10", "B-1"], "numbers are numbers");
  assert.deepEqual(order("id", true), ["B-1", "A-10", "A-2"]);
  assert.deepEqual(order("age", true), ["B-1", "A-2", "A-10"], "the oldest first");
});

test("what has nothing to compare stands last whichever way it is sorted", () => {
  const tasks = [task("A-1"), task("A-2", { cost: 3 }), task("A-3", { cost: 1 })];
  assert.deepEqual(ids(sorted(tasks, { sort: "cost", down: true }, facts)), ["A-2", "A-3", "A-1"]);
  assert.deepEqual(ids(sorted(tasks, { sort: "cost", down: false }, facts)), ["A-3", "A-2", "A-1"]);
});

test("equals stand as the board has them", () => {
  const tasks = [task("A-3", { role: "x", rank: 3 }), task("A-1", { rank: 2 }), task("A-2", { priority: 4 })];
  assert.deepEqual(ids(sorted(tasks, { sort: "tries", down: true }, facts)), ["A-2", "A-1", "A-3"]);
});

test("a press on the same sort turns it round, on another begins as that usually does", () => {
  assert.deepEqual(pressed({ sort: "title", down: false }, "title"), { sort: "title", down: true });
  assert.deepEqual(pressed({ sort: "title", down: false }, "cost"), { sort: "cost", down: true });
});

test("groups by state begin with what a person is asked for, and have all their tasks", () => {
  const tasks = [
    task("A-1", { status: "done" }),
    task("A-2"),
    task("A-3", { status: "blocked" }),
    task("A-4", { status: "doing" }),
    task("A-5"),
  ];
  const { rows, places } = listed(tasks, { group: "state", sort: "id", down: false }, facts);
  assert.deepEqual(ids(rows), [
    "[Needs you 1]",
    "A-3",
    "[Doing 1]",
    "A-4",
    "[To do 2]",
    "A-2",
    "A-5",
    "[Done 1]",
    "A-1",
  ]);
  assert.equal(rows[places.get("A-5")].id, "A-5");
});

test("groups by name are in order, what has none is last, and a folded one shows its head", () => {
  const tasks = [
    task("A-1"),
    task("A-2", { parent: "E-2" }),
    task("A-3", { parent: "E-1" }),
    task("A-4", { parent: "E-1" }),
  ];
  const look = { group: "parent", sort: "id", down: false };
  assert.deepEqual(ids(listed(tasks, look, facts).rows), [
    "[E-1  title of E-1 2]",
    "A-3",
    "A-4",
    "[E-2  title of E-2 1]",
    "A-2",
    "[No parent 1]",
    "A-1",
  ]);
  const folded = listed(tasks, { ...look, folded: ["parent E-1"] }, facts);
  assert.deepEqual(ids(folded.rows), ["[E-1  title of E-1 2]", "[E-2  title of E-2 1]", "A-2", "[No parent 1]", "A-1"]);
  assert.deepEqual(ids(folded.tasks), ["A-2", "A-1"], "the keyboard passes over what is folded");
});

test("every sort and group holds every task once", () => {
  const tasks = Array.from({ length: 40 }, (_, i) =>
    task(`T-${i}`, {
      role: ["a", "b", null][i % 3],
      session: i % 4 ? null : "ada",
      batch: i % 5 ? null : "n",
      failed_tries: i % 2,
      cost: i % 7,
    }),
  );
  for (const { id: group } of GROUPS) {
    for (const { id: sort } of SORTS) {
      const found = listed(tasks, { group, sort, down: true }, facts);
      assert.equal(new Set(ids(found.tasks)).size, 40, `${group} ${sort}`);
    }
  }
});

test("as many columns stand open as have room, those with tasks first", () => {
  const counts = (some) =>
    new Map(["backlog", "todo", "doing", "needs", "review", "merging", "done"].map((id) => [id, some[id] ?? 0]));
  const open = (some, width) => [...openColumns(counts(some), width)].sort();
  assert.deepEqual(
    open({ todo: 1, doing: 1, done: 1 }, 1104),
    ["doing", "done", "needs", "review", "todo"],
    "three tasks, and the way between them",
  );
  assert.deepEqual(
    open({ todo: 1, doing: 1, needs: 1, review: 1, done: 1, backlog: 9 }, 1104),
    ["doing", "done", "needs", "review", "todo"],
    "done is in view before the backlog",
  );
  assert.equal(open({}, 1584).length, 7);
  assert.equal(open({ done: 3 }, 100).length, 1, "never none");
});

test("a phone begins with what needs a person, else with what there is", () => {
  assert.equal(
    firstColumn(
      new Map([
        ["needs", 1],
        ["review", 1],
        ["done", 1],
      ]),
    ),
    "needs",
  );
  assert.equal(
    firstColumn(
      new Map([
        ["doing", 0],
        ["done", 3],
        ["backlog", 9],
      ]),
    ),
    "done",
  );
  assert.equal(firstColumn(new Map([["doing", 0]])), "doing");
});
