import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { encode } from "gpt-tokenizer";
import { shellContext } from "../../../test/support/shell-context.ts";
import { recordingLog } from "../../../test/support/tool-context.ts";
import { configSchema } from "../../home/config/schema.ts";
import { systemClock } from "../../kit/clock.ts";
import { AvailabilityCache } from "./availability.ts";
import { loadTools } from "./discover.ts";
import { registry } from "./registry.ts";
import { type ForeignTools, SessionTools, type SessionToolsOptions } from "./session-tools.ts";

const log = recordingLog();
await loadTools(log);

const open = (options: Pick<SessionToolsOptions, "environment"> & Partial<SessionToolsOptions>) =>
  SessionTools.open({
    registry,
    availability: new AvailabilityCache(systemClock),
    platform: "cli",
    config: configSchema.parse({}),
    contextLength: 20_000,
    log,
    env: () => undefined,
    ports: new Set(["ask"]),
    ...options,
  });

test("a session's tools are collected once and answer by name", async (t) => {
  const { ctx, environment } = await shellContext(t);
  const box = await open({ environment });
  for (const name of ["terminal", "process", "todo", "clarify"]) assert.ok(box.names.has(name), name);
  assert.equal(JSON.parse((await box.call("terminal", { command: "echo hi" }, ctx)) as string).output, "hi");
  assert.deepEqual(box.prepare("terminal", { command: "x", timeout: "5" }), {
    name: "terminal",
    args: { command: "x", timeout: 5 },
  });
  assert.equal(box.timeoutMs("terminal", { command: "x", timeout: 5 }), 5000);
  assert.equal(box.timeoutMs("terminal", { command: "x", background: true }), undefined);
  assert.equal(box.textOrigin("terminal"), "local");
});

test("a tool that is not part of the session does not exist for it", async (t) => {
  const { ctx, environment } = await shellContext(t);
  const box = await open({ environment, toolsets: ["todo"] });
  assert.deepEqual([...box.names], ["todo"]);
  assert.deepEqual(JSON.parse((await box.call("terminal", { command: "true" }, ctx)) as string), {
    error: "Unknown tool: terminal",
  });
});

const foreign = (answer: string, ...names: string[]): ForeignTools => ({
  definitions: names.map((name) => ({
    type: "function",
    function: { name, description: name, parameters: { type: "object", properties: {} } },
  })),
  call: async () => answer,
});

test("a tool from elsewhere cannot take the name of one that is there", async (t) => {
  const { ctx, environment } = await shellContext(t);
  const box = await open({ environment, toolsets: ["todo"] });
  box.add(foreign("from elsewhere", "todo", "recall"), "sorted");
  assert.deepEqual(
    box.definitions.map((definition) => definition.function.name),
    ["recall", "todo"],
  );
  assert.equal(await box.call("recall", {}, ctx), "from elsewhere");
  assert.notEqual(await box.call("todo", {}, ctx), "from elsewhere");
});

test("after a swap the tools of the other opening answer, and what stands behind the list stays there", async (t) => {
  const { ctx, environment } = await shellContext(t);
  const box = await open({ environment, toolsets: ["todo"] });
  box.add(foreign("engine", "zoom"), "behind");
  const other = await open({ environment, toolsets: ["clarify"] });
  other.add(foreign("new", "recall"), "sorted");
  box.swap(other);
  assert.deepEqual(
    box.definitions.map((definition) => definition.function.name),
    ["clarify", "recall", "zoom"],
  );
  assert.deepEqual([await box.call("recall", {}, ctx), await box.call("zoom", {}, ctx)], ["new", "engine"]);
});

test("a session of few tools has their toolsets and no others", async (t) => {
  const { environment } = await shellContext(t);
  const only = new Set(["todo", "web_search"]);
  assert.deepEqual((await open({ environment, only })).toolsets, ["todo", "web"]);
  const coding = await open({ environment, only, toolsets: ["coding", "browser"] });
  assert.deepEqual(coding.toolsets, ["coding"]);
});

test("a result over the limit lies in a file that the environment can read", async (t) => {
  const { ctx, environment } = await shellContext(t);
  const box = await open({ environment });
  const text = "'$(touch x)\nEOF\n".repeat(2000);
  const block = await box.limitResult({ callId: "call/1", name: "terminal", text }, ctx.sessionId);
  const path = /Full output saved to: (.*)/.exec(block)?.[1] ?? "";
  assert.match(path, /\/hermes-results\/session-1\/call_1_[0-9a-f]{12}\.txt$/);
  assert.equal(await readFile(path, "utf8"), text);
  const batch = [1, 2].map((n) => ({ callId: `c${n}`, name: "terminal", text: "x".repeat(13_000) }));
  assert.deepEqual(
    (await box.limitBatch(batch, ctx.sessionId)).map((one) => one.startsWith("<persisted-output>")),
    [true, false],
  );
});

test("a resumed session has its task list", async (t) => {
  const { ctx, environment } = await shellContext(t);
  const box = await open({ environment });
  box.hydrate([
    { role: "tool", tool_call_id: "c", content: '{"todos":[{"id":"1","content":"x","status":"pending"}]}' },
  ]);
  const result = JSON.parse((await box.call("todo", {}, { ...ctx, state: box.state })) as string);
  assert.equal(result.summary.total, 1);
});

const budgets = { terminal: 350, process: 200, todo: 200, clarify: 120 };
for (const [name, most] of Object.entries(budgets)) {
  test(`${name} costs at most ${most} tokens in each request`, async (t) => {
    const { environment } = await shellContext(t);
    const definition = (await open({ environment })).definitions.find((one) => one.function.name === name);
    const tokens = encode(JSON.stringify(definition)).length;
    assert.ok(tokens <= most, `${tokens}`);
  });
}
