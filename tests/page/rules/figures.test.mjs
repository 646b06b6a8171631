import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import * as figures from "../../../src/covey/web/page/js/rules/figures.js";

const cases = JSON.parse(readFileSync(new URL("../../core/figures.json", import.meta.url)));

const { took, age, ...shown } = cases; // the page says neither how long a thing took nor how long ago it was

for (const [rule, table] of Object.entries(shown)) {
  test(`${rule} reads as it does on the command line`, () => {
    const asked = rule === "one" ? (number) => figures.one(number, "task") : figures[rule];
    assert.deepEqual(
      table.map(([number]) => [number, asked(number)]),
      table,
    );
  });
}
