import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { repairArguments, repairToolCallArguments } from "./json-repair.ts";

const anyString = fc
  .array(fc.oneof(fc.integer({ min: 0, max: 0x7f }), fc.integer({ min: 0xd7f0, max: 0xe00f }), fc.nat(0xffff)), {
    maxLength: 12,
  })
  .map((codes) => String.fromCharCode(...codes));

const repairs: readonly [what: string, raw: unknown, json: string][] = [
  ["an object is written as text", { a: 1 }, '{"a":1}'],
  ["nothing means no arguments", undefined, "{}"],
  ["null means no arguments", null, "{}"],
  ["blank means no arguments", "  \n ", "{}"],
  ["None means no arguments", "None", "{}"],
  ["valid JSON is written compactly", ' { "a" : [ 1, 2 ] } ', '{"a":[1,2]}'],
  ["a raw newline inside a string is allowed", '{"a":"x\ny"}', '{"a":"x\\ny"}'],
  ["a raw tab and NUL inside a string are allowed", '{"a":"\t\u0000"}', '{"a":"\\t\\u0000"}'],
  ["a trailing comma in an object goes", '{"a":1,}', '{"a":1}'],
  ["a trailing comma in a list goes", '{"a":[1,2, ]}', '{"a":[1,2]}'],
  ["a trailing comma at the end goes with the closing", '{"a":1,', '{"a":1}'],
  ["a comma inside a string stays", '{"a":",}",}', '{"a":",}"}'],
  ["open brackets close in nesting order", '{"a":[{"b":[1', '{"a":[{"b":[1]}]}'],
  ["a list left open inside a closed object closes first", '{"a":[1,2}', '{"a":[1,2]}'],
  ["one surplus closer goes", '{"a":1}}', '{"a":1}'],
  ["many surplus closers go", `{"a":[1]}${"]}".repeat(20)}`, '{"a":[1]}'],
  ["fifty-one surplus closers are too many", `{"a":1}${"}".repeat(51)}`, "{}"],
  ["an unterminated string is never closed", '{"path":"/tmp/rep', "{}"],
  ["an escaped quote does not end a string", '{"a":"x\\"', "{}"],
  ["prose is no JSON", "please run ls", "{}"],
  ["text after surplus closers is beyond repair", '{"a":1}} and {"b":2}', "{}"],
];
for (const [what, raw, json] of repairs) test(what, () => assert.equal(repairToolCallArguments(raw), json));

test("at the length limit no bracket is added, and lossless repairs still work", () => {
  assert.deepEqual(repairArguments('{"a":[1,2', { truncated: true }), { json: "{}", outcome: "cut" });
  assert.deepEqual(repairArguments('{"a":[1}', { truncated: true }), { json: "{}", outcome: "cut" });
  assert.deepEqual(repairArguments('{"a":"x\ny",}', { truncated: true }), {
    json: '{"a":"x\\ny"}',
    outcome: "repaired",
  });
});

test("a repair says what it did", () => {
  assert.equal(repairArguments("{}").outcome, "valid");
  assert.equal(repairArguments('{"a":1,}').outcome, "repaired");
  assert.equal(repairArguments('{"a":"').outcome, "cut");
  const { outcome, problem } = repairArguments('{"command": ls}');
  assert.deepEqual([outcome, /Unexpected token 'l'/.test(problem ?? "")], ["invalid", true]);
  assert.equal(repairArguments('{"a": b}', { truncated: true }).outcome, "cut", "the brace may be an inner one");
});

test("whatever comes in, valid JSON comes out", () => {
  const noise = fc.oneof(
    anyString,
    fc
      .array(fc.constantFrom("{", "}", "[", "]", '"', ",", ":", "\\", "\n", "1", "a", " ", "null"), { maxLength: 40 })
      .map((x) => x.join("")),
    fc.json().chain((json) => fc.nat(json.length).map((end) => json.slice(0, end))),
    fc.jsonValue(),
  );
  fc.assert(
    fc.property(noise, fc.boolean(), (raw, truncated) => void JSON.parse(repairToolCallArguments(raw, { truncated }))),
  );
});

test("valid JSON keeps its value", () => {
  fc.assert(
    fc.property(fc.json(), (json) => {
      assert.deepEqual(JSON.parse(repairToolCallArguments(json)), JSON.parse(json));
    }),
  );
});

test("arguments nested beyond all use are lost, not walked", () => {
  const nested = (levels: number) => `{"a":${"[".repeat(levels)}${"]".repeat(levels)}}`;
  assert.equal(repairArguments(nested(400)).outcome, "valid");
  assert.deepEqual(repairArguments(nested(5_000)), {
    json: "{}",
    outcome: "invalid",
    problem: "nested deeper than 500 levels",
  });
  assert.equal(repairArguments(`{"a":"${"[".repeat(5_000)}"}`).outcome, "valid", "brackets in a text are no levels");
});
