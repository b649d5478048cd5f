import assert from "node:assert/strict";
import { test } from "node:test";
import { z } from "zod";
import { recordingLog } from "../../../test/support/tool-context.ts";
import { systemClock } from "../../kit/clock.ts";
import { AvailabilityCache, toolDefinitions } from "./availability.ts";
import { ToolRegistry, type ToolSpec } from "./registry.ts";

const facts = { env: () => undefined, platform: "cli" };
const spec = (name: string, extra: Partial<ToolSpec> = {}): ToolSpec => ({
  name,
  toolset: "t",
  description: `does ${name}`,
  parameters: z.object({ text: z.string() }),
  handler: () => "",
  ...extra,
});

function source(specs: readonly ToolSpec[], clock = systemClock) {
  const registry = new ToolRegistry();
  for (const one of specs) registry.register(one);
  return { registry, availability: new AvailabilityCache(clock), facts, log: recordingLog() };
}

test("definitions come sorted, whole, and without unknown or unavailable tools", async () => {
  const given = source([spec("b"), spec("a"), spec("c", { available: () => false })]);
  const list = await toolDefinitions(["c", "b", "a", "nobody", "b"], given);
  assert.deepEqual(
    list.map((one) => one.function.name),
    ["a", "b"],
  );
  assert.deepEqual(list[0], {
    type: "function",
    function: {
      name: "a",
      description: "does a",
      parameters: { type: "object", properties: { text: { type: "string" } }, required: ["text"] },
    },
  });
});

test("a dynamic schema is merged over the static one, and a failing one costs a warning", async () => {
  const broken = () => {
    throw new Error("no");
  };
  const given = source([
    spec("a", { dynamicSchema: () => ({ description: "now" }) }),
    spec("b", { dynamicSchema: broken }),
  ]);
  const list = await toolDefinitions(["a", "b"], given);
  assert.deepEqual(
    list.map((one) => one.function.description),
    ["now", "does b"],
  );
  assert.equal(given.log.lines.filter((line) => line.level === "warn").length, 1);
});

test("a probe is asked once in 30 s, and a no within 60 s of a yes is a hiccup", async () => {
  let now = 0;
  let answer = true;
  let asked = 0;
  const available = () => {
    asked++;
    return answer;
  };
  const given = source([spec("a", { available })], { ...systemClock, now: () => now });
  const offered = async () => (await toolDefinitions(["a"], given)).length === 1;
  assert.equal(await offered(), true);
  answer = false;
  now = 29_999;
  assert.equal(await offered(), true);
  assert.equal(asked, 1);
  now = 59_999;
  assert.equal(await offered(), true, "within the flake guard");
  assert.equal(await offered(), true);
  assert.equal(asked, 3, "a guarded no is not kept");
  now = 60_000;
  assert.equal(await offered(), false);
  assert.equal(await offered(), false);
  assert.equal(asked, 4, "a real no is kept");
  answer = true;
  given.availability.invalidate();
  assert.equal(await offered(), true);
});

test("a probe that throws says no", async () => {
  const given = source([spec("a", { available: () => Promise.reject(new Error("x")) })]);
  assert.deepEqual(await toolDefinitions(["a"], given), []);
});
