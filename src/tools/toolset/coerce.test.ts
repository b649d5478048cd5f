import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { JsonSchema } from "../../llm/wire.ts";
import { coerceArguments } from "./dispatch.ts";

const cases: readonly [name: string, schema: JsonSchema, value: unknown, expected: unknown][] = [
  ["integer from digits", { type: "integer" }, "42", 42],
  ["integer with blanks", { type: "integer" }, " 8 ", 8],
  ["integer written as a float", { type: "integer" }, "3.0", 3],
  ["a fraction is no integer", { type: "integer" }, "3.5", "3.5"],
  ["a word is no integer", { type: "integer" }, "abc", "abc"],
  ["nothing is no integer", { type: "integer" }, "", ""],
  ["number", { type: "number" }, "1.5", 1.5],
  ["number with exponent", { type: "number" }, "1e3", 1000],
  ["infinity stays text", { type: "number" }, "inf", "inf"],
  ["nan stays text", { type: "number" }, "nan", "nan"],
  ["hexadecimal stays text", { type: "number" }, "0x10", "0x10"],
  ["true", { type: "boolean" }, " true ", true],
  ["False in any case", { type: "boolean" }, "False", false],
  ["yes is no boolean", { type: "boolean" }, "yes", "yes"],
  ["1 is no boolean", { type: "boolean" }, "1", "1"],
  ["array from JSON", { type: "array" }, '["a","b"]', ["a", "b"]],
  ["text is wrapped", { type: "array" }, "x", ["x"]],
  ["a number is wrapped", { type: "array" }, 5, [5]],
  ["JSON of an object is wrapped as text", { type: "array" }, '{"k":1}', ['{"k":1}']],
  ["null for an array stays null", { type: "array" }, null, null],
  ["object from JSON", { type: "object" }, '{"k":1}', { k: 1 }],
  ["JSON of an array is no object", { type: "object" }, "[1]", "[1]"],
  ["null in a type list", { type: ["string", "null"] }, "null", null],
  ["nullable", { type: "string", nullable: true }, "null", null],
  ["anyOf with null", { anyOf: [{ type: "integer" }, { type: "null" }] }, "null", null],
  ["null without leave stays text", { type: "string" }, "null", "null"],
  ["union: the first that converts", { type: ["integer", "string"] }, "42", 42],
  ["union: text first", { type: ["string", "integer"] }, "42", "42"],
  ["union: falls through", { type: ["integer", "boolean"] }, "true", true],
  ["union: text that fits is not wrapped", { type: ["array", "string"] }, "x", "x"],
  [
    "JSON text inside a parsed array",
    { type: "array", items: { type: "object", properties: { n: { type: "integer" } } } },
    '["{\\"n\\":\\"1\\"}"]',
    [{ n: 1 }],
  ],
];

for (const [name, schema, value, expected] of cases) {
  test(`coercion: ${name}`, () => {
    const declared = { type: "object", properties: { field: schema } };
    assert.deepEqual(coerceArguments({ field: value }, declared), { field: expected });
  });
}

test("what the schema does not declare is left alone", () => {
  assert.deepEqual(coerceArguments({ other: "42" }, { type: "object", properties: {} }), { other: "42" });
});

test("a second coercion changes nothing", () => {
  const kinds = fc.constantFrom("integer", "number", "boolean", "array", "object", "string", "null");
  const schema = fc.oneof(kinds, fc.uniqueArray(kinds, { minLength: 1, maxLength: 3 })).map((type) => ({ type }));
  const value = fc.oneof(fc.json(), fc.string(), fc.jsonValue());
  fc.assert(
    fc.property(schema, value, (declared, given) => {
      const whole = { properties: { field: declared } };
      const once = coerceArguments({ field: given }, whole);
      assert.deepEqual(coerceArguments(once, whole), once);
    }),
  );
});
