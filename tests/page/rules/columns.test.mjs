import assert from "node:assert/strict";
import { test } from "node:test";
import {
  asksForDropped,
  between,
  byOrder,
  columnOf,
  Columns,
  dropOn,
  faceOf,
  HINTS,
  isOfRun,
  isOpen,
  lineOf,
  matches,
  neededBy,
  neighbourhood,
  neighbours,
  orderOf,
  QUICK,
  readFilter,
  readTask,
  saidOf,
  saidOfWait,
  sinceOf,
  splitNeeds,
  strangers,
  waitsFor,
  whyNotAssign,
} from "../../../src/covey/web/page/js/rules/columns.js";

const task = (id, more = {}) => ({
  id,
  title: `Task ${id}`,
  status: "todo",
  session: null,
  assignee: null,
  role: null,
  priority: 0,
  rank: Number(id.split("-")[1]),
  needs: [],
  needs_any: [],
  parent: null,
  scope: [],
  overlap: false,
  ready: true,
  reason: null,
  commit: null,
  kind: "change",
  failed_tries: 0,
  sent_back: 0,
  created: 1,
  updated: 1,
  claimed: null,
  ended: null,
  batch: null,
  ...more,
});
const all = (...tasks) => new Map(tasks.map((each) => [each.id, each]));

/** A source of numbers that looks somewhere new each time, and says where if it fails. */
function numbers(seed = Number(process.env.SEED ?? Date.now() % 1e9)) {
  let now = seed >>> 0;
  const next = (below) => {
    now = (Math.imul(now, 1664525) + 1013904223) >>> 0;
    return Math.floor((now / 2 ** 32) * below);
  };
  return { seed, next, one: (list) => list[next(list.length)] };
}

test("a blocked task and one whose session asks need a person", () => {
  const asks = (name) => name === "ada";
  assert.equal(columnOf(task("A-1", { status: "blocked" }), asks), "needs");
  assert.equal(columnOf(task("A-1", { status: "doing", session: "ada" }), asks), "needs");
  assert.equal(columnOf(task("A-1", { status: "doing", session: "bob" }), asks), "doing");
  assert.equal(columnOf(task("A-1", { status: "dropped" }), asks), null);
});

test("the board is ordered by priority, then rank, then age", () => {
  const rows = [task("A-3"), task("A-1", { rank: 9 }), task("A-2", { priority: 5, rank: 99 })];
  assert.deepEqual(
    rows.sort(byOrder).map(({ id }) => id),
    ["A-2", "A-3", "A-1"],
  );
});

test("whatever changes in whatever order, the columns are what sorting all tasks anew would give", () => {
  const random = numbers();
  const asking = new Set();
  const columns = new Columns((name) => asking.has(name));
  const tasks = new Map();
  const statuses = ["backlog", "todo", "doing", "review", "merging", "done", "blocked", "dropped"];
  for (let step = 0; step < 2000; step++) {
    const id = `A-${1 + random.next(60)}`;
    if (random.next(12) === 0) {
      tasks.delete(id);
      columns.remove(id);
    } else {
      const status = random.one(statuses);
      const row = task(id, {
        status,
        session: status === "doing" ? random.one(["ada", "bob"]) : null,
        priority: random.next(3),
        rank: random.next(40) / 2,
        updated: random.next(50),
        ended: status === "done" ? random.next(50) : null,
      });
      tasks.set(id, row);
      columns.put(row);
    }
  }
  const fresh = new Columns((name) => asking.has(name));
  for (const row of tasks.values()) fresh.put(row);
  for (const [column, list] of columns.lists) {
    assert.deepEqual(
      list.map(({ id }) => id),
      fresh.lists.get(column).map(({ id }) => id),
      `column ${column}, seed ${random.seed}`,
    );
    const sorted = [...list].sort(orderOf(column));
    assert.deepEqual(list, sorted);
  }
});

test("a filter finds words, fields, priorities, and what it must not", () => {
  const row = task("AF-12", {
    title: "Fix the Login",
    session: "ada",
    role: "docs",
    batch: "night",
    priority: 4,
    needs: ["AF-3"],
    scope: ["src/auth/**"],
    failed_tries: 1,
  });
  for (const text of [
    "login",
    "LOGIN fix",
    "af-12",
    "@ad",
    "#night",
    "role:docs",
    "p>3",
    "p<5",
    "p=4",
    "needs:af-3",
    "auth",
    "is:ready",
    "is:failed",
    "status:todo",
    "-cache",
    "-@bob",
    "-role:api",
  ]) {
    assert.ok(matches(row, readFilter(text)), text);
  }
  for (const text of [
    "logout",
    "@bob",
    "#day",
    "p>4",
    "p<-1",
    "needs:af-4",
    "status:done",
    "is:waiting",
    "is:nonsense",
    "-login",
    "login -#night",
  ]) {
    assert.ok(!matches(row, readFilter(text)), text);
  }
});

test("each hint of the search box is understood as what it says", () => {
  for (const { form } of HINTS) assert.ok(!isOpen(readFilter(form), null), form);
  assert.ok(isOpen(readFilter("   "), null));
  assert.ok(!isOpen(readFilter(""), "needs"));
  assert.ok(asksForDropped(readFilter("status:dropped")));
  assert.ok(!asksForDropped(readFilter("dropped")));
});

test("a quick filter lets through what the strip counts", () => {
  assert.ok(QUICK.needs.lets(task("A-1"), "needs"));
  assert.ok(QUICK.failed.lets(task("A-1", { failed_tries: 2 }), "todo"));
  assert.ok(QUICK.failed.lets(task("A-1"), "doing", { gate: { state: "failed" } }));
  assert.ok(!QUICK.failed.lets(task("A-1", { failed_tries: 2 }), "done"));
});

test("a card says what happens, or what it waits for", () => {
  const tasks = all(task("A-1", { status: "doing" }), task("A-2", { status: "done" }), task("A-3"));
  assert.equal(lineOf(task("A-4", { needs: ["A-1", "A-2"], ready: false }), "todo", { tasks }), "needs A-1");
  assert.equal(lineOf(task("A-4", { ready: false }), "todo", { tasks }), "waits for its children");
  assert.equal(lineOf(task("A-4", { assignee: "ada" }), "todo", { tasks }), "ready for ada");
  const wait = { text: "It is for the role qa, and no session has it.", until: null };
  assert.equal(lineOf(task("A-4", { role: "qa", failed_tries: 1 }), "todo", { tasks, wait }), wait.text);
  assert.equal(lineOf(task("A-4", { needs: ["A-1"], ready: false }), "todo", { tasks, wait }), "needs A-1");
  assert.equal(lineOf(task("A-4", { status: "backlog" }), "backlog", { tasks, wait }), "not planned yet");
  assert.match(saidOf({ text: "ada waits: 429.", until: 1_750_000_000 }), /^ada waits: 429\. Until \d\d:\d\d.*\.$/);
  assert.equal(lineOf(task("A-4", { failed_tries: 2 }), "todo", { tasks }), "ready again after 2 failed tries");
  assert.equal(lineOf(task("A-4", { sent_back: 1 }), "todo", { tasks }), "ready again after you sent it back");
  assert.equal(
    lineOf(task("A-4", { failed_tries: 1, sent_back: 2 }), "todo", { tasks }),
    "ready again after a failed try, and after you sent it back 2 times",
  );
  assert.equal(
    lineOf(task("A-4", { status: "doing", session: "ada" }), "doing", { live: { action: "editing auth.py" } }),
    "editing auth.py",
  );
  assert.equal(lineOf(task("A-4", { status: "blocked", reason: "Which one?" }), "needs"), "Which one?");
  assert.equal(
    lineOf(task("A-4", { status: "doing", session: "ada" }), "needs", { item: { text: "May I push?" } }),
    "May I push?",
  );
  assert.equal(lineOf(task("A-4", { status: "done", commit: "0123456789abcdef" }), "done"), "landed as 01234567");
  assert.equal(
    lineOf(task("A-4", { status: "done", commit: "0123456789abcdef", reverted: "merge-9" }), "done"),
    "done, and taken out of main again by merge-9",
  );
});

test("a line tells no age that was so when it was written, and one phrase for a review", () => {
  const live = { evidence: "Which port? (1 s ago)" };
  assert.equal(lineOf(task("A-4", { status: "doing", session: "ada" }), "needs", { live }), "Which port?");
  assert.equal(
    lineOf(task("A-4", { status: "review" }), "review", {
      merge: { state: "review", reason: null, waits: "for a review" },
    }),
    "waits for your review",
  );
  assert.equal(saidOfWait({ waits: "for main, which is frozen", waits_for: true }), "waits for main, which is frozen");
  assert.equal(saidOfWait({ waits: "for ever it waits.", waits_for: false }), "for ever it waits.");
  assert.equal(
    saidOfWait({ state: "review", reason: "It touches CODEOWNERS.", waits: "It touches CODEOWNERS." }),
    "It touches CODEOWNERS.",
  );
});

test("a filter names the words that it does not know", () => {
  assert.deepEqual(strangers(readFilter("is:bogus is:ready status:do -is:constructor role:x")), [
    "is:bogus",
    "is:constructor",
  ]);
  assert.deepEqual(strangers(readFilter("status:nowhere")), ["status:nowhere"]);
  assert.equal(matches(task("A-1"), readFilter("is:constructor")), false);
});

test("a card wears the state of its session while that is at work", () => {
  assert.equal(faceOf(task("A-1", { status: "doing" }), "doing", { state: "limited" }), "limited");
  assert.equal(faceOf(task("A-1", { status: "doing" }), "doing", null), "doing");
  assert.equal(faceOf(task("A-1", { status: "blocked" }), "needs", null), "blocked");
  assert.equal(faceOf(task("A-1", { ready: false }), "todo", null), "waiting");
  assert.equal(sinceOf(task("A-1", { claimed: 7 }), "doing", null), 7);
  assert.equal(sinceOf(task("A-1", { status: "doing", claimed: 7 }), "needs", { since: 9 }), 9);
});

test("what a task needs is counted once, and only while it has not ended", () => {
  const tasks = all(task("A-1"), task("A-2", { status: "dropped" }));
  const row = task("A-3", { needs: ["A-1", "A-2", "A-9"], needs_any: ["A-1"] });
  assert.deepEqual(waitsFor(row, tasks), ["A-1"]);
  assert.deepEqual(neededBy("A-1", all(row, task("A-4"))), ["A-3"]);
  assert.deepEqual(splitNeeds(row).needs, ["A-2", "A-9"]);
});

test("a drop that makes no sense says why, and one that does says what it does", () => {
  assert.deepEqual(dropOn(task("A-1"), "todo", "todo"), { does: "order" });
  assert.deepEqual(dropOn(task("A-1"), "todo", "backlog"), { does: "status", status: "backlog" });
  assert.deepEqual(dropOn(task("A-1", { status: "blocked" }), "needs", "todo"), { does: "status", status: "todo" });
  assert.deepEqual(dropOn(task("A-1", { status: "doing" }), "doing", "todo"), { does: "release" });
  assert.deepEqual(dropOn(task("A-1"), "todo", "needs"), { does: "block" });
  const columns = ["backlog", "todo", "doing", "needs", "review", "merging", "done"];
  for (const from of columns) {
    for (const to of columns) {
      const found = dropOn(task("A-1", { status: from === "needs" ? "blocked" : from }), from, to);
      assert.ok(found.does || found.why?.endsWith("."), `${from} to ${to}`);
    }
  }
  for (const to of ["doing", "review", "merging", "done"]) assert.ok(dropOn(task("A-1"), "todo", to).why);
  for (const to of columns) assert.ok(dropOn(task("A-1", { status: "done" }), "done", to).why);
});

test("only what waits can be given to a session", () => {
  assert.equal(whyNotAssign(task("A-1")), null);
  assert.match(whyNotAssign(task("A-1", { status: "doing", session: "ada" })), /ada/);
});

test("those that move do not count as neighbours", () => {
  const rows = ["A-1", "A-2", "A-3", "A-4"].map((id) => task(id));
  assert.deepEqual(neighbours(rows, 0, ["A-3"]), { below: null, above: "A-1" });
  assert.deepEqual(neighbours(rows, 3, ["A-3"]), { below: "A-2", above: "A-4" });
  assert.deepEqual(neighbours(rows, 4, ["A-3", "A-4"]), { below: "A-2", above: null });
});

test("a task shown between two others stands between them", () => {
  const random = numbers();
  for (let round = 0; round < 500; round++) {
    const rows = Array.from({ length: 8 }, (_, index) =>
      task(`A-${index + 1}`, { priority: random.next(3), rank: random.next(1000) }),
    ).sort(byOrder);
    const moved = random.one(rows);
    const rest = rows.filter((each) => each !== moved);
    const index = random.next(rest.length + 1);
    const guessed = between(moved, rest[index - 1], rest[index]);
    const ordered = [...rest, guessed].sort(byOrder);
    const place = ordered.indexOf(guessed);
    const near = rest[index - 1]?.rank === rest[index]?.rank && rest[index - 1]?.priority === rest[index]?.priority;
    assert.ok(near || place === index, `seed ${random.seed}, round ${round}`);
  }
});

test("what hangs together is found in both directions, and never without end", () => {
  const tasks = all(
    task("A-1"),
    task("A-2", { needs: ["A-1"] }),
    task("A-3", { needs: ["A-2"] }),
    task("A-4", { needs: ["A-3", "A-1"] }),
    task("A-9"),
  );
  const { nodes, edges, left } = neighbourhood("A-3", tasks);
  assert.deepEqual(
    nodes.map(({ id, level }) => [id, level]),
    [
      ["A-1", -2],
      ["A-2", -1],
      ["A-3", 0],
      ["A-4", 1],
    ],
  );
  assert.equal(edges.length, 4);
  assert.equal(left, 0);
  const circle = all(task("A-1", { needs: ["A-2"] }), task("A-2", { needs: ["A-1"] }));
  assert.equal(neighbourhood("A-1", circle).nodes.length, 2);
  const many = all(
    task("A-1"),
    ...Array.from({ length: 200 }, (_, index) => task(`A-${index + 2}`, { needs: ["A-1"] })),
  );
  const bounded = neighbourhood("A-1", many, { most: 60 });
  assert.equal(bounded.nodes.length, 60);
  assert.equal(bounded.left, 141);
});

test("one line describes a task", () => {
  assert.deepEqual(readTask("  Fix the login p5 @ada #7 role:docs needs:af-3,AF-4 now "), {
    title: "Fix the login #7 now",
    priority: 5,
    assignee: "ada",
    role: "docs",
    needs: ["AF-3", "AF-4"],
  });
  assert.deepEqual(readTask("Explain p-2 issue #12 and a@b !backlog"), {
    title: "Explain issue #12 and a@b",
    priority: -2,
    status: "backlog",
  });
  assert.equal(readTask("p5").title, "");
});

test("the name that a run gave its batch is told from one that a person chose", () => {
  assert.equal(isOfRun("batch-0a1b2c"), true);
  for (const chosen of [
    "night",
    "batch",
    "batch-night",
    "batch-0a1b2",
    "batch-0a1b2c3",
    "batch-0A1B2C",
    "my-batch-0a1b2c",
  ])
    assert.equal(isOfRun(chosen), false, chosen);
});
