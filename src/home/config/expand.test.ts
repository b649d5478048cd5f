import assert from "node:assert/strict";
import { test } from "node:test";
import { expand, restoreTemplates } from "./store.ts";

const variables: Record<string, string> = { NAME: "value", EMPTY: "", NESTED: "$" + "{NAME}" };
const env = (name: string) => variables[name];
const template = (inside: string) => `$${`{${inside}}`}`;

const cases: readonly [string, string][] = [
  [template("NAME"), "value"],
  [template("env:NAME"), "value"],
  [template(" NAME "), "value"],
  [template("env: NAME"), "value"],
  [`a${template("NAME")}b${template("NAME")}`, "avaluebvalue"],
  [template("EMPTY"), ""],
  [template("UNSET"), template("UNSET")],
  ["$NAME", "$NAME"],
  [`$${template("NAME")}`, "$value"],
  [template(""), template("")],
  [template("vault:NAME"), template("vault:NAME")],
  [template("NESTED"), template("NAME")],
];
for (const [given, wanted] of cases) {
  test(`${given} becomes ${JSON.stringify(wanted)}`, () => assert.equal(expand(given, { env }), wanted));
}

test("templates are filled in through lists and mappings, not in keys, and other values stay", () => {
  const t = template("NAME");
  assert.deepEqual(expand({ [t]: [t, 1, { x: t }], y: null, z: true }, { env }), {
    [t]: ["value", 1, { x: "value" }],
    y: null,
    z: true,
  });
});

test("an unknown source is told", () => {
  const told: string[] = [];
  expand([template("vault:x"), template("NAME")], { env, onUnknownSource: (text) => told.push(text) });
  assert.deepEqual(told, [template("vault:x")]);
});

test("what a template gave is written back as the template, wherever it moved in a list", () => {
  const t = template("NAME");
  assert.equal(restoreTemplates("value", t, env), t);
  assert.equal(restoreTemplates("other", t, env), "other");
  assert.deepEqual(restoreTemplates({ a: "value", b: 1 }, { a: t }, env), { a: t, b: 1 });
  assert.deepEqual(restoreTemplates(["x", "value"], [t], env), ["x", t]);
  assert.deepEqual(restoreTemplates([{ k: "value" }], [{ k: t }], env), [{ k: t }]);
});
