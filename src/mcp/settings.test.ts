import assert from "node:assert/strict";
import { test } from "node:test";
import { parseServer, parseServers } from "./settings.ts";

test("a server with nothing but a command has the documented defaults", () => {
  const { settings, problems } = parseServer("x", { command: "prog" });
  assert.deepEqual(problems, []);
  assert.deepEqual(settings, {
    name: "x",
    enabled: true,
    place: { type: "stdio", command: "prog", args: [], env: {} },
    timeoutMs: 120_000,
    connectMs: 60_000,
    include: null,
    exclude: [],
    resources: true,
    prompts: true,
    parallel: false,
    keepaliveMs: 180_000,
    idleMs: null,
    lazy: false,
    sampling: {
      enabled: true,
      model: null,
      maxTokensCap: 4096,
      timeoutSeconds: 30,
      maxPerMinute: 10,
      allowedModels: [],
      maxToolRounds: 5,
    },
    elicitation: { enabled: false, timeoutMs: 300_000 },
  });
});

test("an address means streamable HTTP unless it says sse, and wins over a command with a warning", () => {
  assert.equal(parseServer("x", { url: "https://a.example/mcp" }).settings?.place.type, "http");
  assert.equal(parseServer("x", { url: "https://a.example/sse", transport: "sse" }).settings?.place.type, "sse");
  const both = parseServer("x", { url: "https://a.example/mcp", command: "prog" });
  assert.equal(both.settings?.place.type, "http");
  assert.match(both.problems[0] ?? "", /both command and url; url is used/);
});

test("numbers and switches may come as text, and what does not fit is told and replaced", () => {
  const { settings, problems } = parseServer("x", {
    command: "prog",
    timeout: "5",
    enabled: "false",
    keepalive_interval: 1,
    connect_timeout: "soon",
    tools: { include: ["a"], exclude: "b" },
    elicitation: {},
  });
  assert.equal(settings?.timeoutMs, 5000);
  assert.equal(settings?.enabled, false);
  assert.equal(settings?.keepaliveMs, 5000);
  assert.equal(settings?.connectMs, 60_000);
  assert.deepEqual([settings?.include, settings?.exclude], [["a"], ["b"]]);
  assert.equal(settings?.elicitation.enabled, true);
  assert.deepEqual(problems, ['MCP server "x": mcp_servers.x.connect_timeout must be a number; 60 is used.']);
});

test("one bad server never stops the rest", () => {
  const { servers, problems } = parseServers({ a: 5, b: {}, c: { url: "ftp://x" }, d: { command: "prog" } });
  assert.deepEqual(
    servers.map(({ name }) => name),
    ["d"],
  );
  assert.equal(problems.length, 3);
  for (const problem of problems) assert.match(problem, /^MCP server "[abc]": /);
});
