import assert from "node:assert/strict";
import { test } from "node:test";
import { visibleWidth } from "@earendil-works/pi-tui";
// @ts-expect-error: plain JavaScript, which the build runs
import { isPlainCell } from "../scripts/plain-cells.mjs";

test("what the build takes for one cell wide without a closer look is one cell wide", () => {
  const wrong: string[] = [];
  let count = 0;
  for (let code = 0; code < 0x10000; code++) {
    if (!isPlainCell(code)) continue;
    count++;
    // Behind a letter outside of ASCII, so that no shortcut is taken.
    if (visibleWidth(`ж${String.fromCharCode(code)}`) - visibleWidth("ж") !== 1) wrong.push(code.toString(16));
  }
  assert.deepEqual(wrong, []);
  assert.ok(count > 1000);
});
