import assert from "node:assert/strict";
import { test } from "node:test";
import { rankFiles, scoreFile } from "./completion.ts";

const scores: [string, string, number][] = [
  ["src/main.ts", "main.ts", 100],
  ["src/main.ts", "mai", 80],
  ["src/domain.ts", "main", 60],
  ["main/x.ts", "main", 40],
  ["src/plain-table.ts", "spt", 35],
  ["src/InputLine.ts", "il", 35],
  ["src/abcdef.ts", "bdf", 25],
  ["src/abc.ts", "zzz", 0],
  ["src/abc.ts", "", 1],
];
for (const [path, query, score] of scores)
  test(`@${query} gives ${path} ${score} points`, () => assert.equal(scoreFile(path, query), score));

test("the best come first, shorter paths before longer ones", () => {
  assert.deepEqual(rankFiles(["b/long/main.ts", "main.ts", "a/domain.ts", "x.ts"], "main.ts", 2), [
    "main.ts",
    "b/long/main.ts",
  ]);
});
