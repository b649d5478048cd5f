import assert from "node:assert/strict";
import { test } from "node:test";
import { relativeTime } from "./formats.ts";

const now = new Date(2026, 5, 15, 12).getTime() / 1000;
const cases: readonly (readonly [secondsAgo: number | null, text: string])[] = [
  [null, "?"],
  [Number.NaN, "?"],
  [-30, "just now"],
  [59, "just now"],
  [60, "1m ago"],
  [3599, "59m ago"],
  [3600, "1h ago"],
  [86_399, "23h ago"],
  [86_400, "yesterday"],
  [172_799, "yesterday"],
  [172_800, "2d ago"],
  [604_799, "6d ago"],
  [604_800, "2026-06-08"],
];
for (const [ago, text] of cases) {
  test(`${ago} seconds ago reads ${text}`, () =>
    assert.equal(relativeTime(ago === null ? null : now - ago, now), text));
}
