import assert from "node:assert/strict";
import { test } from "node:test";
import { FONT, lettersIn, scrolledTo } from "../../../src/covey/web/page/js/rules/terminal_font.js";

const terminal = { width: 720, height: 476 }; // 100 columns and 28 rows

test("a terminal is shown whole while its letters can be read", () => {
  const shown = lettersIn(terminal, { wide: 700, high: 470 });
  assert.equal(shown.part, false);
  assert.ok(shown.scale * FONT.tile >= FONT.legible);
});

test("no place is so small that letters shrink below what can be read", () => {
  for (let wide = 40; wide <= 2000; wide += 40) {
    for (let high = 40; high <= 1200; high += 40) {
      const { font, scale } = lettersIn(terminal, { wide, high });
      assert.ok(font * scale >= FONT.legible, `${wide} × ${high}: ${font * scale}`);
    }
  }
});

test("how it is shown does not depend on how it was", () => {
  const first = lettersIn(terminal, { wide: 362, high: 200 });
  assert.deepEqual(lettersIn(terminal, { wide: 362, high: 200 }), first);
  assert.deepEqual(first, { font: FONT.part, scale: 1, part: true });
});

test("the last line that says something stands at the bottom", () => {
  assert.equal(scrolledTo(27, 16, 200), 28 * 16 - 200);
  assert.equal(scrolledTo(3, 16, 200), 0, "what is at the top stays there");
});
