import assert from "node:assert/strict";
import { test } from "node:test";
import { parseServer, parseServers, type ServerSettings } from "./settings.ts";

test("a server with nothing but a command has the documented defaults", () => {
  const { settings, problems } = parseServer("x", { command: "prog" });
  assert.deepEqual(problems, []);
  assert.deepEqual(settings, {
    name: "x",
    enabled: true,
    endpoint: { type: "stdio", command: "prog", args: [], env: {} },
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
  assert.equal(parseServer("x", { url: "https://a.example/mcp" }).settings?.endpoint.type, "http");
  assert.equal(parseServer("x", { url: "https://a.example/sse", transport: "sse" }).settings?.endpoint.type, "sse");
  const both = parseServer("x", { url: "https://a.example/mcp", command: "prog" });
  assert.equal(both.settings?.endpoint.type, "http");
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

const unread: readonly (readonly [string, object, (server: ServerSettings | null) => unknown, unknown])[] = [
  ["enabled: maybe", { enabled: "maybe" }, (server) => server?.enabled, false],
  ["tools: a list", { tools: ["a"] }, (server) => server, null],
  ["tools.exclude: a mapping", { tools: { exclude: { b: true } } }, (server) => server, null],
  ["tools.exclude: a list of mappings", { tools: { exclude: [{ name: "b" }] } }, (server) => server, null],
  ["tools.include: a mapping", { tools: { include: { b: true } } }, (server) => server, null],
  ["tools.resources: maybe", { tools: { resources: "maybe" } }, (server) => server?.resources, false],
  ["tools.prompts: maybe", { tools: { prompts: [] } }, (server) => server?.prompts, false],
  ["sampling: maybe", { sampling: "maybe" }, (server) => server?.sampling.enabled, false],
  ["sampling.enabled: maybe", { sampling: { enabled: "maybe" } }, (server) => server?.sampling.enabled, false],
  ["sampling.max_rpm: few", { sampling: { max_rpm: "few" } }, (server) => server?.sampling.enabled, false],
  ["sampling.allowed_models: 5", { sampling: { allowed_models: 5 } }, (server) => server?.sampling.enabled, false],
  ["elicitation: maybe", { elicitation: "maybe" }, (server) => server?.elicitation.enabled, false],
];
for (const [what, entry, look, expected] of unread) {
  test(`${what} cannot be read: the server may do less, not more, and it is told`, () => {
    const { settings, problems } = parseServer("x", { command: "prog", ...entry });
    assert.equal(look(settings), expected);
    assert.match(problems.join("\n"), /mcp_servers\.x\./);
  });
}

test("sampling and elicitation can be switched off and on by one word", () => {
  const read = (word: unknown) => {
    const { settings, problems } = parseServer("x", { command: "prog", sampling: word, elicitation: word });
    assert.deepEqual(problems, []);
    return [settings?.sampling.enabled, settings?.elicitation.enabled];
  };
  assert.deepEqual(read(false), [false, false]);
  assert.deepEqual(read("off"), [false, false]);
  assert.deepEqual(read(true), [true, true]);
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
