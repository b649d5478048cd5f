import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { type ModelFacts, readFactLine, writeFactLine } from "./facts.ts";
import { readModelsDev } from "./models-dev.ts";

const model = {
  id: "claude-next",
  reasoning: true,
  modalities: { input: ["text", "image"], output: ["text"] },
  limit: { context: 300_000, output: 90_000 },
  cost: { input: 3, output: 15, cache_read: 0.3, context_over_200k: { input: 6, output: 22.5 } },
};

test("what models.dev says of a model is read into one line of its provider", () => {
  const catalogue = readModelsDev({ anthropic: { models: { "claude-next": model } } });
  assert.deepEqual(catalogue, { anthropic: ["claude-next|300000|90000|ir|3,15,0.3,|200000:6,22.5,,"] });
});

test("what is no model, makes no text, or belongs to nobody we know is left out; odd values are unknown", () => {
  const painter = { ...model, modalities: { input: ["text"], output: ["image"] } };
  const odd = { limit: { context: "many", output: -1 }, cost: { input: "free" }, reasoning: "yes" };
  assert.deepEqual(
    readModelsDev({
      openai: { models: { painter, odd, nothing: null, "a|b": model } },
      elsewhere: { models: { "claude-next": model } },
      google: { models: [] },
      xai: 7,
    }),
    { "openai-api": ["odd"] },
  );
  for (const garbage of [null, 1, "x", [], { anthropic: [] }]) assert.deepEqual(readModelsDev(garbage), {});
});

const price = fc.record({
  input: fc.double({ min: 0, max: 500, noNaN: true }),
  output: fc.double({ min: 0, max: 500, noNaN: true }),
  cacheRead: fc.option(fc.double({ min: 0, max: 500, noNaN: true })),
  cacheWrite: fc.option(fc.double({ min: 0, max: 500, noNaN: true })),
});
const facts: fc.Arbitrary<ModelFacts> = fc.record({
  id: fc.stringMatching(/^[a-z0-9/.:-]{1,30}$/),
  contextLength: fc.option(fc.integer({ min: 1, max: 10_000_000 })),
  maxOutput: fc.option(fc.integer({ min: 1, max: 1_000_000 })),
  images: fc.boolean(),
  reasoning: fc.boolean(),
  price: fc.option(price),
  tiers: fc.constant([]),
});

test("a line says all that was known", () => {
  fc.assert(
    fc.property(facts, (known) => {
      const read = readFactLine(writeFactLine(known));
      assert.deepEqual(JSON.parse(JSON.stringify(read)), JSON.parse(JSON.stringify(known)));
    }),
  );
});
