import assert from "node:assert/strict";
import { test } from "node:test";
import { normalise } from "./decode.ts";
import type { Tree } from "./yaml-text.ts";

const cases: readonly [Tree, Tree][] = [
  [{ model: "gpt" }, { model: { default: "gpt" } }],
  [{ model: "gpt", provider: "openrouter" }, { model: { default: "gpt", provider: "openrouter" } }],
  [{ model: "", base_url: "u" }, { model: { base_url: "u" } }],
  [{ model: { default: "d", model: "m" } }, { model: { default: "d" } }],
  [{ model: { model: "m" } }, { model: { default: "m" } }],
  [{ model: { name: "n", default: "" } }, { model: { default: "n" } }],
  [{ model: { api_base: "a" } }, { model: { base_url: "a" } }],
  [{ model: { api_base: "a", base_url: "b" } }, { model: { base_url: "b" } }],
  [{ api_base: "a" }, { model: { base_url: "a" } }],
  [{ model: { provider: "x" }, provider: "y" }, { model: { provider: "x" } }],
  [{ context_length: 8000, model: { default: "d" } }, { model: { default: "d", context_length: 8000 } }],
  [{ max_turns: 5 }, { agent: { max_turns: 5 } }],
  [{ max_turns: 5, agent: { max_turns: 7 } }, { agent: { max_turns: 7 } }],
  [
    { personalities: { a: "x" }, agent: { personalities: { a: "y", b: "z" } } },
    { agent: { personalities: { a: "x", b: "z" } } },
  ],
  [{ display: { skin: "x" } }, { display: { skin: "x" } }],
  [{}, {}],
];
for (const [given, wanted] of cases) {
  test(`${JSON.stringify(given)} becomes ${JSON.stringify(wanted)}`, () => {
    const before = structuredClone(given);
    assert.deepEqual(normalise(given), wanted);
    assert.deepEqual(given, before);
    assert.deepEqual(normalise(wanted), wanted);
  });
}
