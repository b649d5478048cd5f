import assert from "node:assert/strict";
import { test } from "node:test";
import { compactDuration, contextSize, dollars, exactDuration, percentBar, tokenCount } from "./formats.ts";

function table<T>(name: string, format: (value: T) => string, rows: readonly (readonly [T, string])[]) {
  for (const [value, expected] of rows)
    test(`${name} of ${value} is ${expected}`, () => assert.equal(format(value), expected));
}

table("compact duration", compactDuration, [
  [4.6, "5s"],
  [59, "59s"],
  [60, "1m"],
  [3599, "59m"],
  [3600, "1h"],
  [3900, "1h 5m"],
  [129_600, "1.5d"],
]);
table("exact duration", exactDuration, [
  [5, "5s"],
  [60, "1m"],
  [61, "1m 1s"],
  [3600, "1h 0m"],
  [3661, "1h 1m 1s"],
  [86_400, "1d 0h 0m"],
]);
table("token count", tokenCount, [
  [999, "999"],
  [1000, "1K"],
  [1234, "1.23K"],
  [12_400, "12.4K"],
  [200_000, "200K"],
  [1_234_567, "1.23M"],
  [1.5e9, "1.5B"],
]);
table("context size", contextSize, [
  [500, "500"],
  [8192, "8.2K"],
  [128_000, "128K"],
  [131_072, "131.1K"],
  [1_048_576, "1M"],
]);
table("percent bar", percentBar, [
  [-5, "░░░░░░░░░░"],
  [25, "██░░░░░░░░"],
  [35, "████░░░░░░"],
  [62, "██████░░░░"],
  [140, "██████████"],
]);
table("dollars", dollars, [
  [0, "$0.00"],
  [0.0042, "$0.0042"],
  [1.234, "$1.23"],
]);
