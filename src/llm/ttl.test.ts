import assert from "node:assert/strict";
import { test } from "node:test";
import { readCacheTtl } from "./cache-plan.ts";

const values: readonly [value: unknown, ttl: string, warned: boolean][] = [
  [undefined, "5m", false],
  ["5m", "5m", false],
  [" 1H ", "1h", false],
  ...[false, null, "off", "false", "disabled", "No", "none"].map((value): [unknown, string, boolean] => [
    value,
    "off",
    false,
  ]),
  ["10m", "5m", true],
  [true, "5m", true],
  [60, "5m", true],
];
for (const [value, ttl, warned] of values)
  test(`${JSON.stringify(value) ?? "nothing"} is ${ttl}${warned ? " with a warning" : ""}`, () => {
    const read = readCacheTtl(value);
    assert.deepEqual([read.ttl, read.warning !== null], [ttl, warned]);
  });
