import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { manualClock } from "../../../test/support/session-store.ts";
import { recordingLog, toolContext } from "../../../test/support/tool-context.ts";
import { configSchema } from "../../home/config/schema.ts";
import { systemClock } from "../../kit/clock.ts";
import { AvailabilityCache } from "./availability.ts";
import { type ForeignToolSpec, ToolRegistry } from "./registry.ts";
import { rankTools } from "./search.ts";
import { listTools } from "./search-split.ts";
import { SessionTools, type SessionToolsOptions } from "./session-tools.ts";

const tool = (name: string, toolset: string, more: Partial<ForeignToolSpec> = {}): ForeignToolSpec => ({
  name,
  toolset,
  description: `Does ${name.replaceAll("_", " ")}. And more.`,
  parameters: { type: "object", properties: {} },
  handler: (args) => JSON.stringify({ ran: name, args }),
  ...more,
});

const issue = tool("mcp_github_create_issue", "mcp-github", {
  description: "Open an issue in a repository.",
  parameters: {
    type: "object",
    properties: { title: { type: "string" }, count: { type: "integer" } },
    required: ["title"],
  },
});

const DEFAULTS = [
  tool("todo", "todo"),
  tool("browser_navigate", "browser", { deferred: true, description: "Open a page in a browser." }),
  tool("kanban_show", "kanban", { deferred: true }),
];

async function open(
  specs: readonly ForeignToolSpec[],
  { search = {}, ...options }: Partial<SessionToolsOptions> & { search?: object } = {},
) {
  const registry = new ToolRegistry();
  for (const spec of specs) registry.register(spec);
  const ctx = toolContext();
  const box = await SessionTools.open({
    registry,
    availability: new AvailabilityCache(systemClock),
    platform: "cli",
    config: configSchema.parse({ tools: { tool_search: search } }),
    contextLength: 200_000,
    environment: ctx.environment,
    log: recordingLog(),
    env: () => undefined,
    ...options,
  });
  const call = async (name: string, args: object) => JSON.parse(String(await box.call(name, { ...args }, ctx)));
  const listed = box.definitions.map((one) => one.function.name);
  return { box, call, listed, registry };
}

const BRIDGES = ["tool_call", "tool_describe", "tool_search"];

test("deferred tools stand behind three bridges, named in their description, and count as tools of the session", async () => {
  const { box, listed } = await open(DEFAULTS, { toolsets: ["todo", "browser", "kanban"] });
  assert.deepEqual(listed, ["todo", ...BRIDGES]);
  const description = box.definitions.at(-1)?.function.description ?? "";
  assert.match(description, /\nbrowser_navigate\nkanban_show$/, "the only one of a set needs no heading");
  assert.ok(box.names.has("browser_navigate") && box.names.has("tool_call"));
});

test("without anything to find there are no bridges, and with search off everything is listed", async () => {
  assert.deepEqual((await open([tool("todo", "todo")])).listed, ["todo"]);
  assert.deepEqual((await open(DEFAULTS, { search: { enabled: "off" } })).listed, ["browser_navigate", "todo"]);
  assert.ok(!(await open(DEFAULTS)).box.names.has("kanban_show"), "the board is for those who were given it");
});

test("a kanban worker has the board's tools in its list", async () => {
  const env = (name: string) => (name === "HERMES_KANBAN_TASK" ? "t_1" : undefined);
  assert.ok((await open(DEFAULTS, { env })).listed.includes("kanban_show"));
  assert.ok(!(await open(DEFAULTS, { env, delegated: true })).listed.includes("kanban_show"));
});

test("tools of servers and plugins wait once their schemas take more than the share of the window", async () => {
  const foreign = [...DEFAULTS, issue, tool("weather", "weather-plugin")];
  assert.ok((await open(foreign)).listed.includes("mcp_github_create_issue"));
  assert.ok(!(await open(foreign, { contextLength: 1000 })).listed.includes("mcp_github_create_issue"));
  assert.ok(!(await open(foreign, { search: { enabled: true } })).listed.includes("weather"));
  const { box } = await open(foreign, { search: { enabled: "on" } });
  const description = box.definitions.at(-1)?.function.description ?? "";
  assert.match(description, /\ngithub: \n- mcp_github_create_issue: Open an issue in a repository\n/);
});

test("a search finds by words, says where a tool is from, and loads nothing it does not show", async () => {
  const asked: string[] = [];
  const probed = (name: string, toolset: string, is: boolean) =>
    tool(name, toolset, {
      deferred: true,
      available: () => {
        asked.push(name);
        return is;
      },
    });
  const { call } = await open(
    [tool("todo", "todo"), probed("browser_click", "browser", true), probed("browser_type", "browser", false), issue],
    { search: { enabled: "on" } },
  );
  assert.deepEqual(asked, []);
  assert.deepEqual(await call("tool_search", { query: "github issue" }), {
    query: "github issue",
    matches: [
      {
        name: "mcp_github_create_issue",
        source: "mcp",
        source_name: "github",
        description: "Open an issue in a repository.",
      },
    ],
  });
  assert.deepEqual(asked, []);
  const found = await call("tool_search", { query: "browser" });
  assert.deepEqual(
    found.matches.map((hit: { name: string }) => hit.name),
    ["browser_click"],
  );
  const none = await call("tool_search", { query: "zzz" });
  assert.deepEqual(none.matches, []);
  assert.deepEqual(none.available_sources, [
    { source: "core", source_name: "browser", tools: 2 },
    { source: "mcp", source_name: "github", tools: 1 },
  ]);
  assert.match(none.hint, /other words/);
  assert.match((await call("browser_type", {})).error, /browser_type is not available here/);
});

test("the number of hits keeps to the settings", async () => {
  const many = Array.from({ length: 60 }, (_, index) => tool(`page_${index}`, "pages"));
  const count = async (args: object, search = {}) =>
    (await (await open(many, { search: { enabled: "on", ...search } })).call("tool_search", { query: "page", ...args }))
      .matches.length;
  assert.equal(await count({}), 5);
  assert.equal(await count({ limit: 7 }), 7);
  assert.equal(await count({ limit: 0 }), 1);
  assert.equal(await count({ limit: 99 }), 20);
  assert.equal(await count({ limit: 99 }, { max_search_limit: 1000 }), 50);
});

test("a call through the bridge becomes the real call; what cannot go through says why", async () => {
  const { box, call } = await open([...DEFAULTS, issue], { search: { enabled: "on" } });
  const name = "mcp_github_create_issue";
  assert.deepEqual(box.prepare("tool_call", { name, arguments: { title: "x" } }), { name, args: { title: "x" } });
  assert.deepEqual(box.prepare("tool_call", { name, arguments: '{"title":"x"}' }), { name, args: { title: "x" } });
  assert.deepEqual(box.prepare("tool_call", { name: "todo" }), { name: "todo", args: {} });
  const stays = (args: object) => assert.equal(box.prepare("tool_call", { ...args }).name, "tool_call");

  stays({ name, arguments: {} });
  const missing = await call("tool_call", { name, arguments: {} });
  assert.match(missing.error, /was not called: title is missing/);
  assert.deepEqual(missing.parameters, issue.parameters);

  stays({ name, arguments: "not json" });
  assert.match((await call("tool_call", { name, arguments: "not json" })).error, /one JSON object/);
  for (const bridge of BRIDGES) {
    stays({ name: bridge, arguments: { name: "todo" } });
    assert.match((await call("tool_call", { name: bridge, arguments: { name: "todo" } })).error, /called directly/);
  }
  stays({ name: "browser_navigat" });
  assert.deepEqual(await call("tool_call", { name: "browser_navigat" }), {
    error: 'There is no tool named "browser_navigat" in this conversation.',
    hint: "Did you mean browser_navigate?",
  });
  assert.match((await call("tool_call", {})).error, /say which tool/);
});

test("a tool outside the session's toolsets is neither found nor called nor described", async () => {
  const { box, call } = await open([...DEFAULTS, issue], { toolsets: ["todo", "browser", "no_mcp"] });
  const name = issue.name;
  assert.deepEqual((await call("tool_search", { query: "issue" })).matches, []);
  assert.equal(box.prepare("tool_call", { name, arguments: { title: "x" } }).name, "tool_call");
  assert.match((await call("tool_call", { name, arguments: { title: "x" } })).error, /There is no tool/);
  assert.match((await call("tool_describe", { name })).error, /There is no tool/);
});

test("a description shows the parameters", async () => {
  const { call } = await open([...DEFAULTS, issue], { search: { enabled: "on" } });
  assert.deepEqual(await call("tool_describe", { name: issue.name }), {
    name: issue.name,
    source: "mcp",
    source_name: "github",
    description: issue.description,
    parameters: issue.parameters,
  });
});

test("what comes after the list was made is found and called, and the list stays as it is", async () => {
  const { box, call, registry } = await open(DEFAULTS);
  const before = JSON.stringify(box.definitions);
  registry.register(issue);
  assert.equal((await call("tool_search", { query: "issue" })).matches[0].name, issue.name);
  const { name, args } = box.prepare("tool_call", { name: issue.name, arguments: { title: "x", count: "2" } });
  assert.deepEqual(await call(name, args), { ran: issue.name, args: { title: "x", count: 2 } });
  assert.equal(JSON.stringify(box.definitions), before);
  registry.deregister(issue.name);
  assert.deepEqual((await call("tool_search", { query: "issue" })).matches, []);
});

test("a server that is late is reached through the search, also where nothing else waits", async () => {
  const config = configSchema.parse({ mcp_servers: { github: { command: "none" } } });
  const { box, call, listed, registry } = await open([tool("todo", "todo")], { config });
  assert.deepEqual(listed, ["todo", ...BRIDGES]);
  registry.register(issue);
  assert.equal((await call("tool_search", { query: "issue" })).matches[0].name, issue.name);
  const { name, args } = box.prepare("tool_call", { name: issue.name, arguments: { title: "x" } });
  assert.equal((await call(name, args)).ran, issue.name);
});

test("a listed tool that became unavailable still answers for itself; one behind the list is refused", async () => {
  const clock = manualClock();
  let works = true;
  const available = () => works;
  const { call, listed } = await open(
    [tool("weather", "weather", { available }), tool("browser_click", "browser", { available, deferred: true })],
    { availability: new AvailabilityCache(clock), toolsets: ["weather", "browser"] },
  );
  assert.deepEqual(listed, [...BRIDGES, "weather"]);
  assert.equal((await call("browser_click", {})).ran, "browser_click");
  works = false;
  clock.ms += 3_600_000; // what the probes said before holds no longer
  assert.equal((await call("weather", {})).ran, "weather");
  assert.match((await call("browser_click", {})).error, /browser_click is not available here/);
});

test("a resumed session keeps its list; tools that came since wait behind it, tools that went answer so", async () => {
  const { box } = await open([...DEFAULTS, tool("process", "terminal")]);
  const later = await open([...DEFAULTS, tool("clarify", "clarify")]);
  const frozen = later.box;
  frozen.use(box.definitions);
  assert.equal(frozen.definitions, box.definitions);
  assert.ok(frozen.names.has("browser_navigate"));
  const ctx = toolContext();
  const search = JSON.parse(String(await frozen.call("tool_search", { query: "clarify" }, ctx)));
  assert.equal(search.matches[0].name, "clarify");
  assert.equal(JSON.parse(String(await frozen.call("clarify", {}, ctx))).ran, "clarify");
  assert.equal(JSON.parse(String(await frozen.call("process", {}, ctx))).error, "Unknown tool: process");
});

test("the catalogue takes the fullest form that fits", () => {
  const tools = [
    ...["one", "two", "three"].map((name) => ({ name, description: `${"Long ".repeat(20)}end.`, group: "big" })),
    { name: "four", description: "Short. Second sentence.", group: "small" },
  ].map((one) => ({ ...one, plain: false }));
  const forms = [100, 14, 6, 5, 1].map((tokens) => listTools(tools, tokens));
  assert.match(forms[0] ?? "", /^big: \n- one: Long .*…\n- three/);
  assert.match(forms[0] ?? "", /\nsmall: \n- four: Short$/);
  assert.deepEqual(forms.slice(1), ["big: one, three, two\nsmall: four", "big: 3 tools\nsmall: four", "", ""]);
});

test("for any tools the catalogue keeps to its tokens", () => {
  const some = fc.record({
    name: fc.stringMatching(/^[a-z_]{1,20}$/),
    description: fc.string(),
    group: fc.constantFrom("a", "b", "c"),
    plain: fc.boolean(),
  });
  fc.assert(
    fc.property(fc.array(some, { maxLength: 40 }), fc.integer({ min: 0, max: 200 }), (tools, tokens) => {
      assert.ok(listTools(tools, tokens).length <= tokens * 4);
    }),
  );
});

test("ranking goes by rare words first, and by a piece of text when no word fits", () => {
  const made = (name: string, description: string, parameterNames: readonly string[] = []) => ({
    ...{ name, description, parameterNames },
  });
  const tools = [
    made("list_files", "List files in a folder"),
    made("createIssue", "Make something", ["repository"]),
    made("read_mail", "Read a mail message in a folder"),
  ];
  const names = (query: string) => rankTools(query, tools).map(({ name }) => name);
  assert.deepEqual(names("create issue"), ["createIssue"]);
  assert.deepEqual(names("repository"), ["createIssue"]);
  assert.deepEqual(names("mail in folder")[0], "read_mail");
  assert.deepEqual(names("issu"), ["createIssue"]);
  assert.deepEqual(names(""), []);
  assert.deepEqual(names("???"), []);
});
