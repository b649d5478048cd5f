import assert from "node:assert/strict";
import { test } from "node:test";
import { z } from "zod";
import { dispatch } from "../../../test/support/dispatch.ts";
import { recordingLog, toolContext } from "../../../test/support/tool-context.ts";
import type { JsonSchema } from "../../llm/wire.ts";
import { loadTools } from "./discover.ts";
import { sanitizeError } from "./dispatch.ts";
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

test("a blank text for an optional argument means left out, on every level, unless the tool wants it", async () => {
  const item = z.object({ name: z.string(), note: z.string().optional() });
  const wide = z.object({
    text: z.string(),
    times: z.int().optional(),
    mode: z.enum(["a", "b"]).optional(),
    data: z.string().optional(),
    items: z.array(item).optional(),
  });
  const registry = new ToolRegistry();
  const handler = (given: unknown) => JSON.stringify(given);
  registry.register({ name: "wide", toolset: "t", description: "", parameters: wide, verbatim: ["data"], handler });
  const given = { text: "", times: " ", mode: "", data: "", items: [{ name: "", note: "\n" }] };
  assert.deepEqual(parsed(await dispatch(registry, "wide", given, toolContext())), {
    text: "",
    data: "",
    items: [{ name: "" }],
  });
  const properties = { note: { type: "string" } };
  registry.register({
    name: "mcp",
    toolset: "t",
    description: "",
    parameters: { type: "object", properties },
    handler,
  });
  assert.deepEqual(parsed(await dispatch(registry, "mcp", { note: "" }, toolContext())), { note: "" });
});

test("these are the only optional texts of the product's tools in which a blank one says something", async () => {
  await loadTools(recordingLog());
  const kept: string[] = [];
  for (const name of builtIn.names()) {
    const { spec, parameters } = builtIn.get(name) ?? assert.fail(name);
    const properties = (parameters.properties ?? {}) as Record<string, JsonSchema>; // our own schema
    const required = (parameters.required ?? []) as string[]; // likewise
    const registry = new ToolRegistry();
    const sample = Object.fromEntries(required.map((key) => [key, sampleOf(properties[key] ?? {})]));
    registry.register({ ...spec, handler: (given: unknown) => JSON.stringify(given) } as ToolSpec);
    for (const key of Object.keys(properties).filter((key) => !required.includes(key))) {
      const result = parsed(await dispatch(registry, name, { ...sample, [key]: " " }, toolContext()));
      assert.equal(result.error, undefined, `${name}.${key}: ${result.error}`);
      if (key in result) kept.push(`${name}.${key}`);
    }
  }
  assert.deepEqual(kept.sort(), [
    "browser_dialog.prompt_text",
    // A blank text clears a field of a job.
    ...["deliver", "name", "prompt", "script", "tz", "workdir"].map((field) => `cronjob.${field}`),
    ...["memory.content", "memory.old_text"],
    ...["patch.new_string", "patch.old_string", "process.data"],
    ...["skill_manage.file_content", "skill_manage.new_string", "skill_manage.old_string"],
  ]);
});

/** Anything that passes. */
function sampleOf({ type, enum: members, items, properties, required }: JsonSchema): unknown {
  if (Array.isArray(members)) return members[0];
  if (type === "array") return [sampleOf((items ?? {}) as JsonSchema)]; // our own schema
  if (type === "integer" || type === "number") return 1;
  if (type === "boolean") return true;
  if (type !== "object") return "x";
  const inner = (properties ?? {}) as Record<string, JsonSchema>; // likewise
  return Object.fromEntries(((required ?? []) as string[]).map((key) => [key, sampleOf(inner[key] ?? {})]));
}

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
