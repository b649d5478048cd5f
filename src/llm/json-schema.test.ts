import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { z } from "zod";
import { jsonSchemaOf, restoreKeys, sanitizeParameters, stripGrammar } from "./json-schema.ts";

const inProperty = (schema: unknown) => ({ type: "object", properties: { a: schema } });
const cases: readonly [name: string, given: unknown, expected: unknown][] = [
  ["missing parameters", undefined, { type: "object", properties: {} }],
  ["object without properties", inProperty({ type: "object" }), inProperty({ type: "object", properties: {} })],
  ["a bare word as a schema", inProperty("string"), inProperty({ type: "string" })],
  ["a type or null", inProperty({ type: ["string", "null"] }), inProperty({ type: "string", nullable: true })],
  [
    "two types",
    inProperty({ type: ["string", "integer"] }),
    inProperty({ anyOf: [{ type: "string" }, { type: "integer" }] }),
  ],
  [
    "anyOf with null collapses and keeps the outer words",
    inProperty({
      anyOf: [{ type: "string", description: "inner" }, { type: "null" }],
      description: "outer",
      default: null,
    }),
    inProperty({ type: "string", description: "outer", default: null, nullable: true }),
  ],
  [
    "oneOf with null too",
    inProperty({ oneOf: [{ type: "null" }, { type: "array", items: "integer" }], title: "t", examples: [[1]] }),
    inProperty({ type: "array", items: { type: "integer" }, title: "t", examples: [[1]], nullable: true }),
  ],
  [
    "a real union stays",
    inProperty({ anyOf: [{ type: "string" }, { type: "integer" }] }),
    inProperty({ anyOf: [{ type: "string" }, { type: "integer" }] }),
  ],
  [
    "required keeps only what exists",
    { type: "object", properties: { a: { type: "string" } }, required: ["a", "b"] },
    { type: "object", properties: { a: { type: "string" } }, required: ["a"] },
  ],
  [
    "combinators at the top go",
    { type: "object", properties: {}, allOf: [], anyOf: [], oneOf: [], enum: [], not: {} },
    { type: "object", properties: {} },
  ],
  ["siblings of $ref go", inProperty({ $ref: "#/$defs/x", description: "d" }), inProperty({ $ref: "#/$defs/x" })],
  [
    "definitions, items, additionalProperties and combinators are walked",
    {
      type: "object",
      properties: {
        a: { anyOf: [{ type: "object" }, { type: "string" }] },
        b: { type: "array", items: { type: "object" } },
      },
      $defs: { x: { type: "object" } },
      definitions: { y: "string" },
      additionalProperties: { type: ["integer", "null"] },
    },
    {
      type: "object",
      properties: {
        a: { anyOf: [{ type: "object", properties: {} }, { type: "string" }] },
        b: { type: "array", items: { type: "object", properties: {} } },
      },
      $defs: { x: { type: "object", properties: {} } },
      definitions: { y: { type: "string" } },
      additionalProperties: { type: "integer", nullable: true },
    },
  ],
  [
    "keys a provider refuses are renamed",
    { type: "object", properties: { "a b": "string", a_b: "string", "": "string" }, required: ["a b"] },
    {
      type: "object",
      properties: { a_b_2: { type: "string" }, a_b: { type: "string" }, _: { type: "string" } },
      required: ["a_b_2"],
    },
  ],
];

for (const [name, given, expected] of cases) {
  test(`sanitiser: ${name}`, () => assert.deepEqual(sanitizeParameters(given), expected));
}

test("sanitising twice is sanitising once", () => {
  const node: fc.Arbitrary<unknown> = fc.letrec((tie) => ({
    node: fc.oneof(
      { maxDepth: 4 },
      fc.constantFrom("string", "bogus", true, null),
      fc.record(
        {
          type: fc.constantFrom<unknown>("object", "string", ["string", "null"], ["array", "integer", "null"]),
          properties: fc.dictionary(fc.string({ maxLength: 4 }), tie("node"), { maxKeys: 3 }),
          required: fc.array(fc.string({ maxLength: 4 }), { maxLength: 2 }),
          anyOf: fc.array(tie("node"), { maxLength: 3 }),
          items: tie("node"),
          $ref: fc.constant("#/$defs/x"),
        },
        { requiredKeys: [] },
      ),
    ),
  })).node;
  fc.assert(
    fc.property(node, (schema) => {
      const once = sanitizeParameters(schema);
      assert.deepEqual(sanitizeParameters(once), once);
    }),
  );
});

test("renamed keys find their way back at every depth", () => {
  const schema = inProperty({ type: "array", items: { type: "object", properties: { "x y": "string", z: "string" } } });
  assert.deepEqual(restoreKeys({ a: [{ x_y: "1", z: "2" }] }, schema), { a: [{ "x y": "1", z: "2" }] });
});

test("stripping the grammar keeps parameters that are called pattern or format", () => {
  const schema = inProperty({
    type: "object",
    properties: { pattern: { type: "string", pattern: "^a$", format: "uri" } },
  });
  assert.deepEqual(stripGrammar(schema), inProperty({ type: "object", properties: { pattern: { type: "string" } } }));
});

test("a zod schema becomes data without zod's own additions", () => {
  const schema = z.object({ n: z.int().optional(), s: z.enum(["a", "b"]).catch("a"), t: z.string().describe("text") });
  assert.deepEqual(jsonSchemaOf(schema), {
    type: "object",
    properties: {
      n: { type: "integer" },
      s: { type: "string", enum: ["a", "b"] },
      t: { type: "string", description: "text" },
    },
    required: ["s", "t"],
  });
});
