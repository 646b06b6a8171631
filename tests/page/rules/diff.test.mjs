import assert from "node:assert/strict";
import { test } from "node:test";
import { coloursOf, languageOf, listen, tokens, withMark } from "../../../src/covey/web/page/js/review/highlighting.js";
import {
  anchor,
  beside,
  columns,
  difference,
  isAside,
  marks,
  ownerOf,
  parse,
  placed,
  rangeOf,
  sayLines,
  tree,
} from "../../../src/covey/web/page/js/rules/diff.js";

const PATCH =
  "@@ -1,4 +1,4 @@ def one():\n a\n-b = 1\n+b = 2\n+c\n d\n\\ No newline at end of file\n@@ -10 +11 @@\n-x\n+y\n";
const kinds = (rows) => rows.map(({ kind }) => kind).join(" ");

test("a patch becomes rows with the numbers that its lines have on both sides", () => {
  const rows = parse(PATCH);
  assert.equal(kinds(rows), "hunk same minus plus plus same note hunk minus plus");
  assert.deepEqual(rows.map((row) => [row.old, row.new]).slice(1, 6), [
    [1, 1],
    [2, null],
    [null, 2],
    [null, 3],
    [3, 4],
  ]);
  assert.deepEqual([rows[0].text, rows[8].old, rows[9].new], ["def one():", 10, 11]);
  assert.deepEqual(parse(""), []);
});

test("a patch that is cut anywhere is read as far as it goes", () => {
  for (let end = 0; end <= PATCH.length; end++) {
    const rows = parse(PATCH.slice(0, end));
    assert.ok(rows.every((row) => ["hunk", "same", "plus", "minus", "note"].includes(row.kind)));
  }
});

test("lines that look like headers of a patch are lines", () => {
  const rows = parse("@@ -1,2 +1,2 @@\n---- a\n-@@ -9 +9 @@\n++++ b\n+diff --git a/x b/x\n");
  assert.equal(kinds(rows), "hunk minus minus plus plus");
  assert.equal(rows[3].text, "+++ b");
});

test("a comment stands on the side that has the line", () => {
  const [hunk, same, minus, plus] = parse(PATCH);
  assert.equal(anchor(hunk), null);
  assert.deepEqual(
    [anchor(same), anchor(minus), anchor(plus)],
    [
      { side: "new", line: 1 },
      { side: "old", line: 2 },
      { side: "new", line: 2 },
    ],
  );
});

test("side by side, what was replaced stands beside what replaced it, and nothing is lost", () => {
  const rows = parse(PATCH);
  const pairs = beside(rows);
  assert.deepEqual(pairs.map(({ left, right }) => [left?.text, right?.text]).slice(1, 5), [
    ["a", "a"],
    ["b = 1", "b = 2"],
    [undefined, "c"],
    ["d", "d"],
  ]);
  const shown = new Set(pairs.flatMap(({ both, left, right }) => [both, left, right]).filter(Boolean));
  assert.equal(shown.size, rows.length);
});

test("of two lines that are alike the part that differs is marked, of others nothing", () => {
  assert.deepEqual(difference("LETTER = 4 * 1024", "LETTER = 16 * 1024"), { from: 9, old: 10, new: 11 });
  assert.equal(difference("import os", "return None"), null);
  assert.equal(difference("same", "same"), null);
  const rows = parse(PATCH);
  assert.deepEqual(
    [...marks(rows)].map(([row, part]) => [row.text, part]),
    [
      ["b = 1", [4, 5]],
      ["b = 2", [4, 5]],
    ],
  );
});

test("columns count tabs to their stops and wide letters twice", () => {
  assert.deepEqual(["abc", "\ta", "ab\tc", "日本", ""].map(columns), [3, 5, 5, 4, 0]);
});

test("files stand in a tree, folders with one folder in them together", () => {
  const files = ["z.md", "src/deep/only/one.py", "src/two.py"].map((path) => ({ path }));
  assert.deepEqual(
    tree(files).map(({ name, depth, folder }) => [name, depth, Boolean(folder)]),
    [
      ["src", 0, true],
      ["deep/only", 1, true],
      ["one.py", 2, false],
      ["two.py", 1, false],
      ["z.md", 0, false],
    ],
  );
});

test("a file that programs write is closed at first, unless it is the only one", () => {
  const file = (path, more = {}) => ({ path, status: "changed", plus: 1, minus: 0, ...more });
  assert.equal(isAside(file("a/package-lock.json"), false), true);
  assert.equal(isAside(file("a/package-lock.json"), true), false);
  assert.equal(isAside(file("src/a.py"), false), false);
  assert.equal(isAside(file("src/a.py", { plus: 5000 }), false), true);
});

test("code is coloured by tokens whose texts are the code itself, whatever it is", async () => {
  // biome-ignore lint/suspicious/noTemplateCurlyInString: code of others, which is not ours to run
  const hostile = ["</script><b>", "x = '\u202e' # \u001b]8;;x", "def f(a): return `${a}`", "y".repeat(1000), ""];
  const rows = parse(`@@ -0,0 +1,5 @@\n${hostile.map((line) => `+${line}`).join("\n")}\n`);
  await new Promise((go) => {
    const leave = listen(() => {
      leave();
      go();
    });
    assert.equal(coloursOf(rows, 1, "python"), null);
  });
  hostile.forEach((line, i) =>
    assert.equal((coloursOf(rows, i + 1, "python") ?? []).map(([text]) => text).join(""), line),
  );
  assert.ok(tokens(["def f(): pass"], "python")[0].some(([text, name]) => text === "def" && name === "keyword"));
  assert.equal(tokens(["x"], "no-such-language"), null);
  assert.deepEqual(["src/a.py", "Makefile", "x.toml", "none"].map(languageOf), ["py", "makefile", "ini", null]);
});

test("a mark cuts tokens and loses nothing of the line", () => {
  const pieces = withMark(
    [
      ["ab", "keyword"],
      ["cdef", ""],
    ],
    [1, 4],
    "abcdef",
  );
  assert.deepEqual(pieces, [
    ["a", "keyword", false],
    ["b", "keyword", true],
    ["cd", "", true],
    ["ef", "", false],
  ]);
  assert.deepEqual(withMark(null, undefined, "abc"), [["abc", "", false]]);
});

test("a comment covers the lines between two rows, in either direction, and never more than one hunk", () => {
  const rows = parse(PATCH); // hunk same minus plus plus same note hunk minus plus
  assert.deepEqual(rangeOf(rows, 1), { side: "new", line: 1, lines: 1, quote: "a", from: 1, to: 1 });
  assert.deepEqual(rangeOf(rows, 1, 5), { side: "new", line: 1, lines: 4, quote: "a", from: 1, to: 5 });
  assert.deepEqual(rangeOf(rows, 4, 2), { side: "new", line: 2, lines: 2, quote: "b = 2", from: 2, to: 4 });
  assert.deepEqual(rangeOf(rows, 2), { side: "old", line: 2, lines: 1, quote: "b = 1", from: 2, to: 2 });
  assert.deepEqual(rangeOf(rows, 4, 9), { side: "new", line: 3, lines: 2, quote: "c", from: 4, to: 6 });
  assert.deepEqual(rangeOf(rows, 9, 1), { side: "new", line: 11, lines: 1, quote: "y", from: 8, to: 9 });
  assert.equal(rangeOf(rows, 0), null);
});

test("a comment on several lines stands below the last of them that is shown, and all of them are marked", () => {
  const rows = parse(PATCH);
  const said = [
    { id: 1, side: "new", line: 2, lines: 2, now: 2 },
    { id: 2, side: "new", line: 3, lines: 9, now: 4 },
    { id: 3, side: "new", line: 700, lines: 1 },
    { id: 4, side: "new", line: 2, lines: 1, place: "outdated" },
    { id: 5, side: "old", line: 2, lines: 1 },
    { id: 6, line: null },
  ];
  const { top, below, within } = placed(rows, said);
  assert.deepEqual(
    top.map(({ id }) => id),
    [3, 4, 6],
  );
  assert.deepEqual(
    [...below].map(([row, list]) => [rows.indexOf(row), list.map(({ id }) => id)]),
    [
      [4, [1]],
      [9, [2]],
      [2, [5]],
    ],
  );
  assert.deepEqual(
    [...within].map((row) => rows.indexOf(row)),
    [3, 4, 5, 9],
  );
});

test("of several tasks that change a file, a comment goes to the one that wrote the lines", () => {
  const file = {
    tasks: ["A-1", "B-1"],
    written: {
      "A-1": [[1, 2]],
      "B-1": [
        [30, 31],
        [40, 44],
      ],
    },
  };
  assert.equal(ownerOf(file, { side: "new", line: 31, lines: 3 }), "B-1");
  assert.equal(ownerOf(file, { side: "new", line: 2, lines: 1 }), "A-1");
  assert.equal(ownerOf(file, { side: "new", line: 20, lines: 1 }), "A-1");
  assert.equal(ownerOf(file, { side: "old", line: 31, lines: 1 }), "A-1");
  assert.equal(ownerOf({ tasks: [] }, { side: "new", line: 1, lines: 1 }), null);
  assert.deepEqual([sayLines(12, 1), sayLines(12, 4)], ["line 12", "lines 12–15"]);
});
