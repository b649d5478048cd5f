import assert from "node:assert/strict";
import { test } from "node:test";
import { z } from "zod";
import { recordingLog } from "../../../test/support/tool-context.ts";
import { early, outlineOf, ToolRegistry } from "./registry.ts";

const spec = (name: string, toolset: string, description = "") => ({
  name,
  toolset,
  description,
  parameters: z.object({}),
  handler: () => description,
});

test("the same name in the same toolset is replaced", () => {
  const tools = new ToolRegistry();
  tools.register(spec("a", "x", "old"));
  assert.equal(tools.register(spec("a", "x", "new")), true);
  assert.equal(tools.get("a")?.spec.description, "new");
});

test("the same name in another toolset is rejected with an error in the log", () => {
  const tools = new ToolRegistry();
  const log = recordingLog();
  tools.register(spec("a", "mcp-one", "old"));
  assert.equal(tools.register(spec("a", "mcp-two", "new")), false);
  assert.equal(tools.get("a")?.toolset, "mcp-one");
  tools.useLog(log);
  assert.deepEqual(
    log.lines.map((line) => line.level),
    ["error"],
  );
});

test("the core may override, and says so in the log", () => {
  const tools = new ToolRegistry();
  const log = recordingLog();
  tools.useLog(log);
  tools.register(spec("a", "x"));
  assert.equal(tools.register(spec("a", "y"), { override: true }), true);
  assert.equal(tools.get("a")?.toolset, "y");
  assert.equal(log.lines[0]?.level, "info");
});

test("a user's plugin overrides and removes only with leave, except among MCP tools", () => {
  const tools = new ToolRegistry();
  tools.register(spec("a", "x"));
  tools.register(spec("m", "mcp-one"));
  const by = { plugin: "p", bundled: false, mayOverride: false };
  assert.throws(() => tools.register(spec("a", "y"), { override: true, by }), /may not replace/);
  assert.throws(() => tools.deregister("a", by), /plugins\.entries\.p\.allow_tool_override/);
  assert.equal(tools.deregister("m", by), true);
  assert.equal(tools.register(spec("a", "y"), { override: true, by: { ...by, mayOverride: true } }), true);
});

test("the last tool of a toolset takes the toolset's aliases with it", () => {
  const tools = new ToolRegistry();
  tools.register(spec("a", "mcp-github"));
  tools.register(spec("b", "mcp-github"));
  tools.alias("github", "mcp-github");
  assert.deepEqual(tools.toolsOf("github"), ["a", "b"]);
  tools.deregister("a");
  assert.equal(tools.aliasTarget("github"), "mcp-github");
  tools.deregister("b");
  assert.equal(tools.aliasTarget("github"), undefined);
  assert.deepEqual(tools.toolsets(), []);
});

test("every change raises the generation", () => {
  const tools = new ToolRegistry();
  const seen = [tools.generation];
  tools.register(spec("a", "x"));
  seen.push(tools.generation);
  tools.alias("y", "x");
  seen.push(tools.generation);
  tools.deregister("a");
  seen.push(tools.generation);
  assert.deepEqual(
    seen,
    [...new Set(seen)].sort((a, b) => a - b),
  );
});

test("an outlined tool is offered without its file, which the first call loads", () => {
  const tools = new ToolRegistry();
  let loads = 0;
  const parameters = { type: "object", properties: {} };
  tools.outline([{ name: "a", toolset: "x", description: "offered", parameters }], () => {
    loads++;
    tools.register(spec("a", "x", "loaded"));
  });
  const entry = tools.get("a");
  assert.ok(entry);
  assert.deepEqual(
    [entry.traits.description, entry.parameters, early(entry, "available")],
    ["offered", parameters, undefined],
  );
  assert.equal(loads, 0);
  assert.equal(entry.spec.description, "loaded");
  assert.equal(entry.spec.description, "loaded");
  assert.equal(loads, 1);
});

test("an outline of a tool with a probe loads the file to ask it", () => {
  const tools = new ToolRegistry();
  const probed = { ...spec("a", "x"), available: () => false };
  tools.outline([{ name: "a", toolset: "x", description: "", parameters: {}, asks: ["available"] }], () => {
    tools.register(probed);
  });
  const entry = tools.get("a");
  assert.ok(entry);
  assert.equal(early(entry, "available"), probed.available);
});

test("the outline of a registered tool has what a request needs of it", () => {
  const tools = new ToolRegistry();
  tools.register({ ...spec("a", "x", "words"), maxResultChars: Number.POSITIVE_INFINITY, hydrate: () => undefined });
  const entry = tools.get("a");
  assert.ok(entry);
  assert.deepEqual(outlineOf(entry), {
    name: "a",
    toolset: "x",
    description: "words",
    maxResultChars: Number.POSITIVE_INFINITY,
    parameters: { type: "object", properties: {} },
    asks: ["hydrate"],
  });
});
