import assert from "node:assert/strict";
import { test } from "node:test";
import { isFailedResult } from "./tool-runner.ts";

const cases: readonly [name: string, result: string, failed: boolean][] = [
  ["terminal", '{"output":"","exit_code":0,"error":"x"}', false],
  ["terminal", '{"output":"","exit_code":2}', true],
  ["memory", '{"success":false,"error":"over the limit"}', true],
  ["read_file", "Error: no such file", true],
  ["read_file", '{"error":"no such file"}', true],
  ["read_file", '{"error":null,"content":"x"}', false],
  ["read_file", '{"content":"the word error is in here"}', false],
  ["web_search", `{"results":"${"x".repeat(600)}","error":"late"}`, false],
  ["write_file", '{"success":true,"error":"lint: 3 problems"}', false],
  ["patch", '{"success":false,"error":"no match"}', true],
  ["any", '{"failed":true}', true],
  ["any", '{\n  "error": null,\n  "content": "x"\n}', false],
  ["any", '{"failed" : 0, "errors": []}', false],
  ["any", '{ "error" : "gone" }', true],
  ["any", "fine", false],
];

for (const [name, result, failed] of cases) {
  test(`${name} ${result.slice(0, 40)} ${failed ? "failed" : "did not fail"}`, () =>
    assert.equal(isFailedResult(name, result), failed));
}
