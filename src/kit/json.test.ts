import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import {
  boolean,
  isNestedDeeper,
  listOf,
  mapOf,
  nullable,
  number,
  oneOf,
  optional,
  parseAs,
  record,
  type ShapeOf,
  text,
} from "./json.ts";

const person = record({
  name: text,
  age: optional(number),
  role: oneOf(["admin", "guest"]),
  tags: listOf(text),
  manager: nullable(text),
  flags: mapOf(boolean),
});
const ann: ShapeOf<typeof person> = { name: "Ann", role: "guest", tags: ["a"], manager: null, flags: { x: true } };

const CASES: readonly (readonly [string, unknown, boolean])[] = [
  ["all that is wanted", ann, true],
  ["an optional field", { ...ann, age: 3 }, true],
  ["a field nobody asked for", { ...ann, extra: 1 }, true],
  ["a missing field", { ...ann, name: undefined }, false],
  ["a wrong type", { ...ann, age: "3" }, false],
  ["a value outside the list", { ...ann, role: "root" }, false],
  ["a wrong item", { ...ann, tags: [1] }, false],
  ["a wrong value in a map", { ...ann, flags: { x: 1 } }, false],
  ["a list where a record belongs", [], false],
  ["null where a record belongs", null, false],
  ["null where a text belongs", { ...ann, name: null }, false],
];

for (const [what, value, fits] of CASES) {
  test(`${what} ${fits ? "fits" : "does not fit"}`, () => assert.equal(person(value), fits));
}

test("what was written as JSON reads back; anything else is null", () => {
  fc.assert(
    fc.property(fc.array(fc.string()), (list) => {
      assert.deepEqual(parseAs(JSON.stringify(list), listOf(text)), list);
    }),
  );
  fc.assert(
    fc.property(fc.string(), (junk) => {
      const read = parseAs(junk, person);
      assert.ok(read === null || person(read));
    }),
  );
});

test("how deep a JSON text is nested is known without reading it as JSON", () => {
  const depthOf = (value: unknown): number =>
    typeof value === "object" && value !== null ? 1 + Math.max(0, ...Object.values(value).map(depthOf)) : 0;
  fc.assert(
    fc.property(fc.jsonValue({ maxDepth: 6 }), fc.boolean(), (value, spaced) => {
      const bytes = Buffer.from(JSON.stringify(value, null, spaced ? 1 : 0));
      const depth = depthOf(value);
      assert.equal(isNestedDeeper(bytes, depth), false);
      if (depth > 0) assert.equal(isNestedDeeper(bytes, depth - 1), true);
    }),
  );
  assert.equal(isNestedDeeper(Buffer.from(JSON.stringify('\\"[[[{{')), 0), false, "brackets of a text do not count");
});
