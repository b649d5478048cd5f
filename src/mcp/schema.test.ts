import assert from "node:assert/strict";
import { test } from "node:test";
import { sanitizeParameters } from "../llm/json-schema.ts";
import { toolParameters } from "./server-tools.ts";

test("definitions become $defs and references follow, but a parameter of that name stays", () => {
  const schema = {
    $schema: "http://json-schema.org/draft-07/schema#",
    type: "object",
    definitions: { Point: { type: "object", properties: { next: { $ref: "#/definitions/Point" } } } },
    properties: { at: { $ref: "#/definitions/Point" }, definitions: { type: "string" } },
    required: ["at", "gone"],
  };
  assert.deepEqual(toolParameters(schema), {
    type: "object",
    $defs: { Point: { type: "object", properties: { next: { $ref: "#/$defs/Point" } } } },
    properties: { at: { $ref: "#/$defs/Point" }, definitions: { type: "string" } },
    required: ["at"],
  });
});

test("a missing or broken schema is one without parameters", () => {
  for (const schema of [undefined, null, "x", [], {}, { type: "object" }]) {
    assert.deepEqual(toolParameters(schema), { type: "object", properties: {} });
  }
});

test("together with what the tool list does, nullable unions are collapsed", () => {
  const schema = { properties: { a: { anyOf: [{ type: "string" }, { type: "null" }], description: "text" } } };
  assert.deepEqual(sanitizeParameters(toolParameters(schema)), {
    type: "object",
    properties: { a: { type: "string", description: "text", nullable: true } },
  });
});
