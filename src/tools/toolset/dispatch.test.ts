import assert from "node:assert/strict";
import { test } from "node:test";
import { z } from "zod";
import { toolContext } from "../../../test/support/tool-context.ts";
import { dispatch, sanitizeError } from "./dispatch.ts";
import { registry as builtIn, ToolRegistry, type ToolSpec } from "./registry.ts";

const parameters = z.object({ text: z.string(), times: z.int().optional(), maybe: z.string().nullish() });

async function call(args: Record<string, unknown>, extra: Partial<ToolSpec<typeof parameters>> = {}, name = "echo") {
  const registry = new ToolRegistry();
  registry.register({
    name: "echo",
    toolset: "t",
    description: "",
    parameters,
    handler: (given) => JSON.stringify(given),
    ...extra,
  });
  return dispatch(registry, name, args, toolContext());
}
const parsed = (output: unknown) => JSON.parse(output as string);

test("arguments are coerced, unknown ones dropped, and null for an optional one means left out", async () => {
  const output = await call({ text: "a", times: "3", other: 1, maybe: null });
  assert.deepEqual(parsed(output), { text: "a", times: 3, maybe: null });
  assert.deepEqual(parsed(await call({ text: "a", times: null })), { text: "a" });
});

test("an unknown tool is named", async () => {
  assert.deepEqual(parsed(await call({}, {}, "nobody")), { error: "Unknown tool: nobody" });
});

test("arguments that do not pass are refused with the field's name", async () => {
  const { error } = parsed(await call({ times: "x" }));
  assert.match(error, /^Invalid arguments for echo: text: .*; times: /);
});

test("a tool may answer bad arguments in its own shape", async () => {
  const output = await call({}, { onInvalid: (problem) => JSON.stringify({ exit_code: -1, problem }) });
  assert.equal(parsed(output).exit_code, -1);
});

test("a handler that throws becomes a sanitised error", async () => {
  const handler = () => {
    throw new TypeError("bad <system>x</system>");
  };
  assert.deepEqual(parsed(await call({ text: "" }, { handler })), {
    error: "[TOOL_ERROR] Tool execution failed: TypeError: bad x",
  });
});

test("neither text nor an envelope is a breach of contract", async () => {
  const handler = (() => ({ a: 1 })) as never; // the wrong thing on purpose
  const result = parsed(await call({ text: "" }, { handler }));
  assert.deepEqual(
    { type: result.error_type, tool: result.tool, got: result.result_type },
    { type: "tool_result_contract", tool: "echo", got: "object" },
  );
});

test("a multimodal envelope passes through", async () => {
  const envelope = { _multimodal: true, content: [{ type: "text", text: "x" }] } as const;
  assert.equal(await call({ text: "" }, { handler: () => envelope }), envelope);
});

test("a tool with a foreign schema gets its own key names back and misses what it requires", async () => {
  const registry = new ToolRegistry();
  registry.register({
    name: "far",
    toolset: "mcp-far",
    description: "",
    parameters: { type: "object", properties: { "a b": { type: "integer" } }, required: ["a b"] },
    handler: (args) => JSON.stringify(args),
  });
  assert.deepEqual(parsed(await dispatch(registry, "far", { a_b: "1" }, toolContext())), { "a b": 1 });
  assert.match(parsed(await dispatch(registry, "far", {}, toolContext())).error, /a b: required/);
});

const errors: readonly [string, string][] = [
  ["plain", "[TOOL_ERROR] plain"],
  ['<tool_call id="1">x</tool_call>', "[TOOL_ERROR] x"],
  ["<USER>x</User> <function_call> <result/> <b>y</b>", "[TOOL_ERROR] x   <b>y</b>"],
  ["a ```json\n{}\n``` b", "[TOOL_ERROR] a \n{}\n b"],
  ["a<![CDATA[ secret <x> ]]>b", "[TOOL_ERROR] ab"],
  ["x".repeat(3000), `[TOOL_ERROR] ${"x".repeat(1997)}...`],
];
for (const [given, expected] of errors) {
  test(`error text ${JSON.stringify(given.slice(0, 30))} is made harmless`, () => {
    assert.equal(sanitizeError(given), expected);
  });
}

for (const [name, args] of [
  ["memory", { action: "add", target: "memory", content: "x" }],
  ["session_search", { query: "x" }],
  ["delegate_task", { goal: "x" }],
] as const) {
  test(`${name} without what it needs of the agent says who has to answer it`, async () => {
    await import(`../${name.replace("_", "-")}.ts`);
    const answer = await dispatch(builtIn, name, args, toolContext());
    assert.deepEqual(JSON.parse(String(answer)), { error: `${name} must be handled by the agent loop` });
  });
}
