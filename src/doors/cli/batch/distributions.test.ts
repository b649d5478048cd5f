import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { CONFIGURABLE } from "../../../tools/toolset/toolsets.ts";
import { DISTRIBUTIONS, distributionNamed, drawToolsets } from "./runner.ts";

test("every distribution names toolsets that exist, with percentages", () => {
  for (const [name, toolsets] of Object.entries(DISTRIBUTIONS)) {
    assert.ok(Object.keys(toolsets).length > 0, name);
    for (const [toolset, percent] of Object.entries(toolsets)) {
      assert.ok(toolset in CONFIGURABLE, `${name}: ${toolset}`);
      assert.ok(percent > 0 && percent <= 100);
    }
  }
});

test("each toolset is drawn by its own percentage, and there is always at least one", () => {
  const percents = fc.dictionary(fc.constantFrom("a", "b", "c"), fc.integer({ min: 0, max: 100 }), { minKeys: 1 });
  fc.assert(
    fc.property(
      percents,
      fc.array(fc.double({ min: 0, max: 0.999, noNaN: true }), { minLength: 3 }),
      (given, rolls) => {
        let next = 0;
        const drawn = drawToolsets(given, { random: () => rolls[next++ % rolls.length] ?? 0 });
        assert.ok(drawn.length > 0);
        for (const [name, percent] of Object.entries(given)) if (percent === 100) assert.ok(drawn.includes(name));
        if (drawn.length > 1) for (const name of drawn) assert.notEqual(given[name], 0);
      },
    ),
  );
  assert.deepEqual(drawToolsets({ rare: 1, likely: 60 }, { random: () => 0.99 }), ["likely"]);
});

test("a name nobody knows is answered with the names there are", () => {
  assert.throws(() => distributionNamed("toString"), /no distribution "toString".*default/);
});
