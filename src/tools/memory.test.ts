import assert from "node:assert/strict";
import { test } from "node:test";
import { countTokens } from "gpt-tokenizer";
import { dispatch } from "../../test/support/dispatch.ts";
import { memoryHome } from "../../test/support/memory.ts";
import { toolContext } from "../../test/support/tool-context.ts";
import type { ToolContext } from "./toolset/context.ts";

import "./memory.ts";
import { registry } from "./toolset/registry.ts";

async function call(args: Record<string, unknown>, given: Partial<ToolContext> = {}) {
  const output = await dispatch(registry, "memory", args, toolContext(given));
  assert.ok(typeof output === "string");
  return JSON.parse(output);
}

test("without a store the tool says who must handle it", async () => {
  assert.deepEqual(await call({ action: "add", target: "memory", content: "x" }), {
    error: "memory must be handled by the agent loop",
  });
});

test("arguments reach the store as they were written, and so do its answers", async (t) => {
  const box = await memoryHome(t);
  const memory = box.memory;
  assert.equal((await call({ action: "add", target: "user", content: "Ada" }, { memory })).message, "Entry added.");
  assert.equal((await call({ action: "add", target: null, content: "no target" }, { memory })).target, "memory");
  assert.equal((await call({ action: "add", target: "both", content: "x" }, { memory })).code, "bad_target");
  assert.equal((await call({ target: "memory" }, { memory })).code, "bad_action");
  const operations = JSON.stringify([{ action: "add", content: "as text" }]);
  assert.equal((await call({ target: "memory", operations }, { memory })).message, "Applied 1 operation(s).");
  assert.equal(
    (await call({ target: "memory", operations: { action: "add", content: "alone" } }, { memory })).success,
    true,
  );
  const [first] = await box.memory.history();
  assert.deepEqual(
    [first?.origin, first?.session_id, first?.turn, first?.platform, first?.target],
    ["foreground", "session-1", 1, "cli", "user"],
  );
});

test("the schema asks for a target only and has no combinators", () => {
  const parameters = registry.get("memory")?.parameters;
  assert.deepEqual(parameters?.required, ["target"]);
  assert.deepEqual(Object.keys(parameters?.properties ?? {}), [
    "action",
    "target",
    "content",
    "old_text",
    "operations",
  ]);
  assert.doesNotMatch(JSON.stringify(parameters), /anyOf|oneOf|allOf/);
});

test("the description makes its points within 400 tokens", () => {
  const description = registry.get("memory")?.spec.description ?? "";
  assert.ok(countTokens(description) <= 400);
  for (const point of [
    /correct/,
    /remember this/,
    /don't do that again/,
    /preference/,
    /habit/,
    /environment/,
    /convention/,
    /quirk/,
    /workflow/,
    /user preferences and corrections > environment facts > procedural knowledge/,
    /'user' = who the user is/,
    /'memory' = your notes/,
    /trivial or obvious/,
    /easily found again/,
    /raw data dumps/,
    /TODO/,
    /one call with operations/,
    /every future turn/,
  ]) {
    assert.match(description, point);
  }
});
