import assert from "node:assert/strict";
import { test } from "node:test";
import { userEcho } from "./transcript.ts";

const shown = { first_lines: 2, last_lines: 2 };

const cases: [string, string][] = [
  ["hello", "hello"],
  ["1\n2\n3\n4\n5", "1\n2\n3\n4\n5"],
  ["1\n2\n3\n4\n5\n6\n7", "1\n2\n... 3 more lines ...\n6\n7"],
];
for (const [text, echo] of cases)
  test(`${JSON.stringify(text)} is repeated as ${JSON.stringify(echo)}`, () =>
    assert.equal(userEcho(text, shown), echo));

test("10 MB are repeated in a few lines", () => {
  const echo = userEcho("some text of a line\n".repeat(500_000), shown);
  assert.ok(echo.length < 500, echo);
  assert.match(echo, /499997 more lines/);
  assert.ok(userEcho("x".repeat(10_000_000), shown).length < 5000);
});
