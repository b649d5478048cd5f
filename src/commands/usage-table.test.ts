import assert from "node:assert/strict";
import { test } from "node:test";
import type { UsageTotals } from "../sessions/store.ts";
import { usageTable } from "./session.ts";

const totals = {
  calls: 4,
  inputTokens: 8670,
  outputTokens: 295,
  cacheReadTokens: 12_400,
  cacheWriteTokens: 0,
  reasoningTokens: 0,
  costUsd: 0,
  costStatus: "included",
  unknownCostCalls: 0,
} as UsageTotals; // all that a row shows
const rows = new Map([
  ["main", totals],
  ["title_generation", totals],
]);

test("a wide terminal has every column, a narrow one those that fit, and no row is broken", () => {
  assert.equal(
    usageTable(rows, 120)[0],
    "purpose           calls  cache read  cache write  input  output  reasoning  cost",
  );
  for (const columns of [100, 80, 60, 50]) {
    const lines = usageTable(rows, columns);
    assert.ok(
      lines.every((line) => line.length <= columns),
      lines.join("\n"),
    );
    assert.match(lines[1] ?? "", /^main +.*295 .*\$0\.00 \(included\)$/);
  }
  assert.deepEqual(usageTable(rows, 40).slice(0, 2), ["purpose           cost", "main              $0.00 (included)"]);
  assert.equal(usageTable(rows, 50)[0], "purpose           calls  output  cost");
});
