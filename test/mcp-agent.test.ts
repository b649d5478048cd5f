// MCP tools in conversations: through the program itself, and through an opened agent with the fake model.
import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import { after, before, beforeEach, describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { openAgent } from "../src/agent/open.ts";
import { isAlive } from "../src/kit/pid.ts";
import { realServer, tinyServer } from "./support/mcp/hub-rig.ts";
import { ModelServer } from "./support/model-server/server.ts";
import { openRequest } from "./support/open-request.ts";
import { runHermes } from "./support/run-hermes.ts";
import { isRunning } from "./support/running.ts";
import { modelConfig, type TempHome, tempHome } from "./support/temp-home.ts";

interface Named {
  readonly function: { readonly name: string };
}

describe("a conversation with MCP servers", () => {
  let server: ModelServer;
  before(async () => {
    server = await ModelServer.start();
  });
  beforeEach(() => void server.clear());
  after(() => server.close());

  const config = (servers: object) => `${modelConfig(server)}mcp_servers: ${JSON.stringify(servers)}\n`;
  const tools = (): string[] => server.last.body.tools.map((tool: Named) => tool.function.name);
  const lastResult = () => server.last.body.messages.at(-1).content as string;

  test("offers their tools, calls one and fences its answer; no process is left", async () => {
    await using home = await tempHome();
    // biome-ignore lint/suspicious/noTemplateCurlyInString: a template of config.yaml
    const env = { STARTS_FILE: home.at("starts"), MINE: "${GIVEN}" };
    await home.write("config.yaml", config({ tiny: { ...tinyServer(), env } }));
    server.script(
      { toolCalls: [{ name: "mcp__tiny__echo", arguments: { text: "a heron in the reeds, seen at noon" } }] },
      { toolCalls: [{ name: "mcp_tiny_env", arguments: {} }] },
      { text: "done" },
    );
    const { stdout, stderr, code } = await runHermes(["-z", "look"], {
      home,
      env: { GIVEN: "1", OPENAI_API_KEY: "sk-x" },
    });
    assert.equal(stdout, "done\n", stderr);
    assert.equal(code, 0);
    const names = tools();
    assert.ok(names.includes("mcp_tiny_echo"));
    assert.deepEqual(names, [...names].sort());
    assert.match(lastResult(), /HOME LANG MINE PATH STARTS_FILE/);
    const fenced = server.last.raw.includes('<untrusted_tool_result source=\\"mcp_tiny_echo\\" id=');
    assert.ok(fenced, server.last.raw.slice(-3000));
    const pids = (await readFile(home.at("starts"), "utf8")).trim().split("\n").map(Number);
    assert.equal(pids.length, 1);
    assert.ok(!isAlive(pids[0] ?? 0));
  });

  test("a server that never answers delays the first request by three seconds at most, and a broken one not at all", async () => {
    await using home = await tempHome({
      "config.yaml": config({ hang: tinyServer("hang"), none: { command: "no-such-program" }, tiny: tinyServer() }),
    });
    server.script({ text: "hello" });
    const { stdout, code } = await runHermes(["-z", "hi"], { home });
    assert.deepEqual([stdout, code], ["hello\n", 0]);
    assert.ok(tools().includes("mcp_tiny_echo"));
    assert.ok(!tools().some((name) => name.startsWith("mcp_hang")));
    assert.match(
      await readFile(home.at("logs", "agent.log"), "utf8"),
      /MCP server "none": the command "no-such-program" was not found/,
    );
  });

  test("a server that cannot start, is written down wrong or has not answered is told at the start, and listed with ✗", async () => {
    await using home = await tempHome({
      "config.yaml": config({
        none: { command: "no-such-program" },
        gone: { command: "false" },
        blank: { timeout: 5 },
        hang: tinyServer("hang"),
        off: { command: "no-such-program", enabled: false },
        tiny: tinyServer(),
      }),
    });
    server.otherwise({ text: "hello" });
    const told = [
      /^MCP server "none": the command "no-such-program" was not found\. Install it, or correct mcp_servers\.none\.command/,
      /^MCP server "gone": .*logs\/mcp-stderr\.log/,
      /^MCP server "blank": it has no command or url/,
      /^MCP server "hang" has not responded yet: this conversation starts without its tools/,
    ];
    const { stdout, stderr, code } = await runHermes(["chat", "-q", "hi"], { home });
    assert.deepEqual([stdout, code], ["hello\n", 0]);
    const lines = stderr.split("\n");
    for (const line of told) assert.equal(lines.filter((one) => line.test(one)).length, 1, `${line}\n${stderr}`);
    assert.doesNotMatch(stderr, /"(?:off|tiny)"/);
    const script = await runHermes(["-z", "hi", "--json"], { home });
    assert.equal(script.stderr, "");
    const { warnings } = JSON.parse(script.stdout);
    for (const line of told) assert.equal(warnings.filter((one: string) => line.test(one)).length, 1, `${line}`);
    assert.equal(warnings.length, told.length, warnings.join("\n"));

    const listed = (await runHermes(["mcp", "list"], { home })).stdout;
    assert.match(listed, /^✗ none {3}stdio, failed just now {2}no-such-program\n {4}MCP server "none": the command/m);
    assert.match(listed, /^✗ gone {3}stdio, failed just now/m);
    assert.match(listed, /^✗ off {4}stdio, disabled/m);
    assert.match(listed, /^✓ tiny {3}stdio, 8 tools/m);
    await home.write("config.yaml", config({ none: tinyServer() }));
    assert.match((await runHermes(["mcp", "list"], { home })).stdout, /^✓ none {2}stdio, not connected yet/m);
  });

  test("a resumed conversation, which waits for no server, hears of a broken one in its first turn", async () => {
    await using home = await tempHome({ "config.yaml": config({ tiny: tinyServer() }) });
    server.otherwise({ text: "hello" });
    await runHermes(["-z", "first"], { home });
    await home.write("config.yaml", config({ tiny: { command: "no-such-program" } }));
    const { stderr } = await runHermes(["chat", "-q", "second", "--continue"], { home });
    assert.equal(stderr.split('MCP server "tiny": the command "no-such-program" was not found').length, 2, stderr);
  });

  test("what happens to a server while the model answers is told when it has answered", async () => {
    await using home = await tempHome({ "config.yaml": config({ tiny: tinyServer() }) });
    await runHermes(["-z", "first"], { home });
    await home.write("late.sh", `until [ -e ${home.at("go")} ]; do sleep 0.05; done; exit 3\n`);
    await home.write("config.yaml", config({ tiny: { command: "sh", args: [home.at("late.sh")] } }));
    server.otherwise(async () => {
      await writeFile(home.at("go"), "");
      const listed = async () => (await runHermes(["mcp", "list"], { home })).stdout;
      while (!/^✗ tiny .*failed/m.test(await listed())) await sleep(50);
      return { text: "second" };
    });
    const { stdout, stderr } = await runHermes(["chat", "-q", "second", "--continue"], { home });
    assert.equal(stdout, "second\n");
    assert.equal(stderr.match(/^⚠ MCP server "tiny": /gm)?.length, 1, stderr);
  });

  test("goes on with the list it began with when a server is gone, and the call says why", async () => {
    await using home = await tempHome({ "config.yaml": config({ tiny: tinyServer() }) });
    server.script({ text: "one" });
    await runHermes(["-z", "first"], { home });
    const first = JSON.stringify(server.last.body.tools);
    await home.write("config.yaml", config({ tiny: { command: "no-such-program" } }));
    server.script({ toolCalls: [{ name: "mcp_tiny_echo", arguments: { text: "x" } }] }, { text: "two" });
    const { stdout, stderr } = await runHermes(["-z", "second", "--continue"], { home });
    assert.equal(stdout, "two\n", stderr);
    assert.equal(JSON.stringify(server.last.body.tools), first);
    assert.match(lastResult(), /the command \\?"no-such-program\\?" was not found/);
  });

  test("-t names one server, no_mcp none", async () => {
    await using home = await tempHome({ "config.yaml": config({ tiny: tinyServer(), other: tinyServer() }) });
    server.otherwise({ text: "ok" });
    await runHermes(["-z", "hi", "-t", "file,tiny"], { home });
    assert.ok(tools().includes("mcp_tiny_echo") && !tools().some((name) => name.startsWith("mcp_other")));
    await runHermes(["-z", "hi", "-t", "file,no_mcp"], { home });
    assert.ok(!tools().some((name) => name.startsWith("mcp_")));
  });

  test("a home without servers never loads the package", async () => {
    await using home = await tempHome({ "config.yaml": modelConfig(server) });
    const hook = home.at("hook.mjs");
    await writeFile(
      hook,
      `import { registerHooks } from "node:module"; import { appendFileSync } from "node:fs";
registerHooks({ resolve(s, c, next) { const r = next(s, c); if (/modelcontextprotocol|\\/src\\/mcp\\/(?!open|settings)/.test(r.url)) appendFileSync(${JSON.stringify(home.at("loaded"))}, r.url + "\\n"); return r; } });`,
    );
    server.script({ text: "ok" });
    const { code, stderr } = await runHermes(["-z", "hi"], { home, env: { NODE_OPTIONS: `--import ${hook}` } });
    assert.equal(code, 0, stderr);
    await assert.rejects(readFile(home.at("loaded")), { code: "ENOENT" });
  });

  /** Closed however its test ends: servers that were left would keep the process of the tests alive. */
  async function openIn(temp: TempHome) {
    const { home, store, request } = await openRequest(temp);
    const opened = await openAgent(request);
    const close = async () => {
      await opened.close("cli_close");
      await store.close();
      await home.close();
    };
    return { store, opened, [Symbol.asyncDispose]: close };
  }

  test("what a server asks of a model passes the gate as task mcp of the conversation that called it", async () => {
    await using temp = await tempHome({ "config.yaml": config({ every: realServer("everything") }) });
    await using conversation = await openIn(temp);
    const { opened, store } = conversation;
    server.script(
      { toolCalls: [{ name: "mcp_every_trigger_sampling_request", arguments: { prompt: "a bird", maxTokens: 20 } }] },
      { text: "a heron" },
      { text: "it said heron" },
    );
    assert.equal(await opened.agent.chat("ask it"), "it said heron");
    assert.match(lastResult(), /a heron/);
    const calls = await store.calls(opened.agent.sessionId);
    assert.deepEqual(
      calls.map(({ task }) => task),
      ["main", "mcp", "main"],
    );
  });

  test("a tool that comes later is found and called through the search, one that went answers with an error", async () => {
    await using temp = await tempHome({ "config.yaml": config({ tiny: tinyServer() }) });
    await using conversation = await openIn(temp);
    const { opened } = conversation;
    server.script({ toolCalls: [{ name: "mcp_tiny_grow", arguments: {} }] }, { text: "grown" });
    await opened.agent.chat("grow");
    const before = JSON.stringify(server.last.body.tools);
    const results = async () => {
      server.script(
        { toolCalls: [{ name: "tool_search", arguments: { query: "extra" } }] },
        { toolCalls: [{ name: "tool_call", arguments: { name: "mcp_tiny_extra", arguments: {} } }] },
        { toolCalls: [{ name: "mcp_tiny_echo", arguments: { text: "x" } }] },
        { text: "ok" },
      );
      await opened.agent.chat("what is there?");
      const { messages } = server.last.body as { messages: { role: string; content: string }[] };
      return messages.filter(({ role }) => role === "tool").slice(-3);
    };
    // The server tells of its change behind the answer; the turn after it was read accepts it.
    let [found, called, gone] = await results();
    for (let n = 0; n < 20 && !found?.content.includes("mcp_tiny_extra"); n++) [found, called, gone] = await results();
    assert.match(found?.content ?? "", /mcp_tiny_extra/);
    assert.match(called?.content ?? "", /"result":"new"/);
    assert.match(gone?.content ?? "", /no longer offers mcp_tiny_echo/);
    assert.equal(JSON.stringify(server.last.body.tools), before);
  });

  test("a reload brings new tools in with a named cause", async () => {
    await using temp = await tempHome({ "config.yaml": config({ tiny: tinyServer() }) });
    await using conversation = await openIn(temp);
    const { opened, store } = conversation;
    server.script({ toolCalls: [{ name: "mcp_tiny_grow", arguments: {} }] }, { text: "grown" });
    await opened.agent.chat("grow");
    const before = JSON.stringify(server.last.body.tools);
    server.script({ text: "same" });
    await opened.agent.chat("still the same list?");
    assert.equal(JSON.stringify(server.last.body.tools), before);

    await temp.write("config.yaml", config({ tiny: tinyServer(), other: tinyServer() }));
    const lines = await opened.reloadMcp();
    assert.deepEqual([...lines].sort(), ["other: 8 tools", "tiny: 8 tools"]);
    server.script({ toolCalls: [{ name: "mcp_other_echo", arguments: { text: "x" } }] }, { text: "seen" });
    assert.equal(await opened.agent.chat("and now?"), "seen");
    assert.ok(tools().includes("mcp_other_echo"));
    const causes = (await store.calls(opened.agent.sessionId))
      .map(({ cause }) => cause)
      .filter((cause) => cause != null);
    assert.deepEqual(causes, ["reload"]);
  });

  test("a resumed conversation goes on with the list that a reload gave it", async () => {
    const all = tinyServer();
    await using temp = await tempHome({ "config.yaml": config({ tiny: { ...all, tools: { exclude: ["env"] } } }) });
    server.otherwise({ text: "hello" });
    {
      await using conversation = await openIn(temp);
      await conversation.opened.agent.chat("first");
      assert.ok(!tools().includes("mcp_tiny_env"));
      await temp.write("config.yaml", config({ tiny: all }));
      await conversation.opened.reloadMcp();
      await conversation.opened.agent.chat("second");
    }
    assert.ok(tools().includes("mcp_tiny_env"));
    const list = JSON.stringify(server.last.body.tools);
    const { stderr } = await runHermes(["-z", "third", "--continue"], { home: temp });
    assert.equal(JSON.stringify(server.last.body.messages.at(-1).content), '"third"', stderr);
    assert.equal(JSON.stringify(server.last.body.tools), list);
  });

  test("a conversation that cannot be opened leaves no server behind", async (t) => {
    await using temp = await tempHome();
    const env = { STARTS_FILE: temp.at("starts") };
    await temp.write("config.yaml", config({ tiny: { ...tinyServer(), env } }));
    const { home, store, request } = await openRequest(temp);
    const started = Promise.withResolvers<number>();
    const onceStarted = async () => {
      let pid = 0;
      for (; pid === 0; await sleep(20)) pid = Number(await readFile(temp.at("starts"), "utf8").catch(() => 0));
      started.resolve(pid);
      t.after(() => isRunning(pid) && process.kill(pid));
      return store;
    };
    const opening = openAgent({ ...request, store: onceStarted, resume: { name: "no such conversation" } });
    await assert.rejects(opening, { name: "SessionNotFoundError" });
    assert.ok(!isRunning(await started.promise));
    await store.close();
    await home.close();
  });
});
