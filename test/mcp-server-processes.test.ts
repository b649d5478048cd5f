// The MCP server as a program of its own, next to a gateway: approvals that another process waits for, events over crashes, and its clients.
import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { readdir, readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { promisify } from "node:util";
import type { Client } from "@modelcontextprotocol/client";
import { answerTurns, lastSaid, ModelServer, type RunningGateway, startGateway, until } from "./support/gateway-rig.ts";
import { type Answered, asked, KEY, stdioClient } from "./support/mcp/server-rig.ts";
import { paperHome, rowsOf } from "./support/paper-home.ts";
import { PaperServer } from "./support/platforms/paper-server.ts";
import { environmentFor, launcher, repository, runHermes, startHermes } from "./support/run-hermes.ts";
import { modelConfig, type TempHome, tempHome } from "./support/temp-home.ts";

const CHAT_C = "agent:main:paper:dm:c";

let model: ModelServer;
before(async () => {
  model = await ModelServer.start();
});
after(() => model.close());

describe("next to a gateway", () => {
  let paper: PaperServer;
  let home: TempHome;
  let gateway: RunningGateway;
  let client: Client;
  let pid = 0;
  before(async () => {
    paper = await PaperServer.start();
    answerTurns(model, (request) => {
      const said = lastSaid(request).split("\n").at(-1) ?? "";
      const [, command] = /^run (.+)$/.exec(said) ?? [];
      return command
        ? { toolCalls: [{ name: "terminal", arguments: { command } }] }
        : { text: `heard: ${said.slice(0, 80)}` };
    });
    home = await paperHome(model, paper, { config: "approvals: {mode: manual}\nterminal: {sandbox: off}\n" });
    gateway = await startGateway(home);
    ({ client, pid } = await stdioClient(home));
  });
  after(async () => {
    await client.close();
    await gateway.kill();
    await paper.close();
    await home[Symbol.asyncDispose]();
  });

  const waiting = async (): Promise<Answered["json"]> => {
    let open: Answered["json"] = null;
    await until("a command waits for approval", async () => {
      open = (await asked(client, "permissions_list_open")).json;
      return open.count === 1;
    });
    return open.approvals[0];
  };
  const told = (part: string) =>
    until(`the chat is told "${part}"; there: ${JSON.stringify(paper.textsOf("a"))}`, () =>
      paper.textsOf("a").some((text) => text.includes(part)),
    );
  const everything = async (from = 0): Promise<Answered["json"][]> => {
    const all: Answered["json"][] = [];
    for (let cursor = from; ; ) {
      const { json } = await asked(client, "events_poll", { after_cursor: cursor, limit: 3 });
      if (json.events.length === 0) return all;
      all.push(...json.events);
      cursor = json.next_cursor;
    }
  };

  test("a command that waits in a chat is refused, with the reason, and then released by another process", async () => {
    const target = join(home.project, "shared");
    await writeFile(target, "x", { mode: 0o600 });
    const { json: now } = await asked(client, "events_wait", { timeout_ms: 0 });
    const mode = async () => (await stat(target)).mode & 0o777;

    paper.say("a", `run chmod 777 ${target}`);
    const first = await waiting();
    assert.equal(first.command, `chmod 777 ${target}`);
    assert.match(first.session_key, /^agent:main:paper:dm:a$/);
    assert.deepEqual(first.choices, ["allow-once", "allow-session", "allow-always", "deny"]);
    const denied = await asked(client, "permissions_respond", { id: first.id, decision: "deny", reason: "too open" });
    assert.deepEqual(denied.json, { resolved: true, id: first.id, decision: "deny" });
    await until("the model reads the reason", () => model.requests.some(({ raw }) => raw.includes("too open")));
    await until("the turn has ended", () => rowsOf(home, "SELECT 1 FROM inbox WHERE state = 'queued'").length === 0);
    assert.equal(await mode(), 0o600);
    const again = await asked(client, "permissions_respond", { id: first.id, decision: "allow-once" });
    assert.equal(again.json.code, "not_pending");

    paper.say("a", `run chmod 777 ${target}`);
    const second = await waiting();
    assert.equal(await mode(), 0o600);
    const released = await asked(client, "permissions_respond", { id: second.id, decision: "allow-once" });
    assert.equal(released.json.resolved, true);
    await until("the command has run", async () => (await mode()) === 0o777);
    await until("the turn has ended", () => rowsOf(home, "SELECT 1 FROM inbox WHERE state = 'queued'").length === 0);

    const events = (await everything(now.next_cursor)).filter(({ type }) => type !== "message");
    assert.deepEqual(
      events.map(({ type, id, decision, is_open, session_key }) => [type, id, decision ?? is_open, session_key]),
      [
        ["approval_requested", first.id, false, "agent:main:paper:dm:a"],
        ["approval_resolved", first.id, "deny", "agent:main:paper:dm:a"],
        ["approval_requested", second.id, false, "agent:main:paper:dm:a"],
        ["approval_resolved", second.id, "allow-once", "agent:main:paper:dm:a"],
      ],
    );
  });

  test("a cursor holds over kill -9 of the gateway and of the server: nothing lost, nothing twice", async () => {
    const { json: start } = await asked(client, "events_wait", { timeout_ms: 0 });
    let cursor: number = start.next_cursor;
    const seen: Answered["json"][] = [];
    const take = async () => {
      const { json } = await asked(client, "events_wait", {
        after_cursor: cursor,
        session_key: CHAT_C,
        timeout_ms: 60_000,
      });
      assert.notEqual(json.event, null, JSON.stringify(seen));
      seen.push(json.event);
      cursor = json.next_cursor;
    };
    paper.say("c", "one");
    await take();
    paper.say("c", "two");
    await until(
      "the second waits or is taken",
      () => rowsOf(home, "SELECT 1 FROM inbox WHERE json_extract(event, '$.text') = 'two'").length === 1,
    );
    await gateway.kill();
    process.kill(pid, "SIGKILL");
    await client.close();
    [gateway, { client, pid }] = await Promise.all([startGateway(home), stdioClient(home)]);
    paper.say("c", "three");
    const said = () => seen.map(({ role, content }) => `${role} ${content}`.replace(/\[[^\]]*\]\s*/g, "").trim());
    while (!said().some((line) => line.startsWith("assistant heard: three"))) await take();
    for (const word of ["one", "two", "three"])
      assert.equal(
        said().filter((line) => line.startsWith("user") && line.endsWith(word)).length,
        1,
        said().join(" | "),
      );
    const { json: chat } = await asked(client, "messages_read", { session_key: CHAT_C });
    const ids = seen.map(({ message_id: id }) => String(id));
    assert.deepEqual(
      ids,
      chat.messages.map(({ id }: { id: string }) => id),
      "each message of the conversation, in its order, and each once",
    );
    const all = (await everything(start.next_cursor)).filter(({ session_key }) => session_key === CHAT_C);
    assert.deepEqual(all, seen, "polled from the same place, the same events come");
  });

  test("a message is sent through the gateway, once, and channels are listed with it", async () => {
    await told("heard");
    const { json } = await asked(client, "messages_send", { target: "paper:a", message: "from another agent" });
    assert.equal(json.success, true);
    assert.equal(paper.textsOf("a").filter((text) => text === "from another agent").length, 1);
    assert.equal(rowsOf(home, "SELECT 1 FROM outbox WHERE cause LIKE 'send:mcp:%' AND state = 'sent'").length, 1);
  });

  test("an answer that was not offered is refused, and one whose process is gone is not called resolved", async () => {
    const target = join(home.project, "other");
    await writeFile(target, "x", { mode: 0o600 });
    paper.say("b", `run chmod 777 ${target}`);
    const { id } = await waiting();
    // As a question whose answer is not to be remembered.
    const { DatabaseSync } = await import("node:sqlite");
    const db = new DatabaseSync(home.at("state.db"), { timeout: 10_000 });
    db.exec(
      `UPDATE approvals_open SET payload = json_set(payload, '$.allowAlways', json('false'), '$.allowSession', json('false'))`,
    );
    db.close();
    for (const decision of ["allow-always", "allow-session"]) {
      const { json } = await asked(client, "permissions_respond", { id, decision });
      assert.equal(json.code, "not_offered", decision);
    }
    await gateway.kill();
    const { json } = await asked(client, "permissions_respond", { id, decision: "allow-once" });
    assert.equal(json.code, "nobody_waits");
    assert.equal((await stat(target)).mode & 0o777, 0o600);
  });
});

describe("on stdin and stdout", () => {
  const line = (value: unknown) => `${JSON.stringify(value)}\n`;
  const hello = (id: number) =>
    line({
      jsonrpc: "2.0",
      id,
      method: "initialize",
      params: { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: "x", version: "1" } },
    });

  test("stdout is the protocol alone, whatever comes in, and the end of stdin ends the program", async () => {
    answerTurns(model, () => ({ text: "four" }));
    await using home = await tempHome({ "config.yaml": modelConfig(model) });
    const before = await readdir(home.project);
    const child = spawn(process.execPath, [launcher, "mcp", "serve", "--verbose"], {
      cwd: home.project,
      env: environmentFor({ home }),
      stdio: ["pipe", "pipe", "pipe"],
    });
    let [out, err] = ["", ""];
    child.stdout.setEncoding("utf8").on("data", (text) => (out += text));
    child.stderr.setEncoding("utf8").on("data", (text) => (err += text));
    const ended = new Promise<number | null>((resolve) => child.once("exit", resolve));
    const has = (id: number) =>
      until(`an answer to ${id}; ${out}${err}`, () => out.includes(`"id":${id}}`) || out.includes(`"id":${id},`));
    child.stdin.write(hello(1));
    await has(1);
    for (const junk of [
      "not json\n",
      "{}\n",
      "[]\n",
      '{"jsonrpc":"2.0"}\n',
      "\u0000\u0001\n",
      '"\\ud800"\n',
      "null\n",
      "\n\n",
      '{"jsonrpc":"2.0","id":{},"method":"tools/call"}\n',
    ])
      child.stdin.write(junk);
    child.stdin.write(
      line({ jsonrpc: "2.0", id: 2, method: "tools/call", params: { name: "ask", arguments: { prompt: "2+2?" } } }),
    );
    await has(2);
    child.stdin.end();
    assert.equal(await ended, 0, err);
    for (const one of out.trimEnd().split("\n")) assert.equal(JSON.parse(one).jsonrpc, "2.0", one);
    assert.match(out, /"text":"\{\\"session_id\\":.*four/);
    assert.match(err, /^ask: ok, \d+ ms$/m);
    assert.deepEqual(await readdir(home.project), before);
  });

  test("a message that is too large ends it without a trace of what it held", async () => {
    await using home = await tempHome({ "config.yaml": modelConfig(model) });
    const { code, stderr } = await runHermes(["mcp", "serve"], {
      home,
      stdin: `${hello(1)}"${"x".repeat(5_000_000)}"\n`,
    });
    assert.equal(code, 0, stderr);
    assert.doesNotMatch(stderr, /xxxx|\.ts:\d/);
  });

  test("a client that is gone stops its turn", async () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    let state = "none";
    answerTurns(model, async () => {
      state = "asked";
      await promise;
      return { text: "late" };
    });
    await using home = await tempHome({ "config.yaml": modelConfig(model) });
    const { client } = await stdioClient(home);
    const call = asked(client, "ask", { prompt: "hold" });
    call.catch(() => undefined);
    await until("the model is asked", () => state === "asked");
    await client.close();
    await until(
      "the lease is given back",
      () => rowsOf(home, "SELECT 1 FROM lanes WHERE holder IS NOT NULL").length === 0,
    );
    resolve();
    const [last] = rowsOf(home, "SELECT role, content FROM messages ORDER BY id DESC LIMIT 1");
    assert.notEqual(last?.content, "late");
  });
});

test("a start that is refused says what to do", async () => {
  await using home = await tempHome({ "config.yaml": modelConfig(model) });
  for (const [args, code, said] of [
    [["--http", "0.0.0.0:0"], 1, /no key is set.*set API_SERVER_KEY.*or --http to 127\.0\.0\.1/],
    [["--http", "127.0.0.1:99999"], 2, /--http takes HOST:PORT/],
    [["--http", "a:b:c"], 2, /--http takes HOST:PORT/],
  ] as const) {
    const result = await runHermes(["mcp", "serve", ...args], { home });
    assert.equal(result.code, code, result.stderr);
    assert.match(result.stderr, said);
    assert.equal(result.stdout, "");
  }
});

test("over HTTP: a taken port is named, a key protects it, and Ctrl+C ends it", async () => {
  await using home = await tempHome({
    "config.yaml": modelConfig(model),
    ".env": `API_SERVER_KEY=${KEY}\nAPI_SERVER_PORT=1\n`,
  });
  const child = startHermes(["mcp", "serve", "--http", "127.0.0.1:0"], { home, timeoutMs: 60_000 });
  let printed = "";
  child.stdout?.on("data", (text: string) => (printed += text));
  await until("it listens", () => /listening on \S+/.test(printed));
  const url = new URL(/listening on (\S+)/.exec(printed)?.[1] ?? "");
  assert.equal((await fetch(url, { method: "POST", body: "{}" })).status, 401);
  const listed = await inspector(home, url.href, "--header", `Authorization: Bearer ${KEY}`, "--method", "tools/list");
  assert.equal(JSON.parse(listed).tools.length, 12);
  const taken = await runHermes(["mcp", "serve", "--http", url.port], { home });
  assert.equal(taken.code, 1);
  assert.match(taken.stderr, new RegExp(`port ${url.port} on 127\\.0\\.0\\.1 is taken; choose another with --http`));
  child.kill("SIGINT");
  const { code, stdout } = await child.result;
  assert.equal(code, 0);
  assert.match(stdout, /stopping: Ctrl\+C\n\[MCP Server\] stopped\n$/);
});

/** What the Inspector prints, without its web page. */
async function inspector(home: TempHome, ...args: readonly string[]): Promise<string> {
  const program = join(repository, "node_modules", "@modelcontextprotocol", "inspector-cli", "build", "index.js");
  const options = { cwd: home.project, env: environmentFor({ home }), timeout: 60_000 };
  return (await promisify(execFile)(process.execPath, [program, ...args], options)).stdout;
}

describe("other clients", () => {
  test("the Inspector of the protocol's makers asks", async () => {
    answerTurns(model, () => ({ text: "four" }));
    await using home = await tempHome({ "config.yaml": modelConfig(model) });
    const call = ["--method", "tools/call", "--tool-name", "ask", "--tool-arg", "prompt=2+2?"];
    const answer = JSON.parse(await inspector(home, process.execPath, launcher, "mcp", "serve", ...call));
    assert.equal(JSON.parse(answer.content[0].text).text, "four");
  });

  test("our own MCP client is a guest: what it reads here is fenced", async () => {
    await using served = await tempHome({ "config.yaml": modelConfig(model) });
    await using guest = await tempHome();
    const { HERMES_HOME, ...env } = environmentFor({ home: served });
    const hermes = {
      command: process.execPath,
      args: [launcher, "mcp", "serve", "--read-only"],
      env: { ...env, HERMES_HOME },
      lazy: true,
    };
    await guest.write("config.yaml", `${modelConfig(model)}mcp_servers: ${JSON.stringify({ other: hermes })}\n`);
    await runHermes(["-z", "the heron stands on one leg"], { home: served });
    // What it has is known then, however long it takes to start the next time.
    assert.equal((await runHermes(["mcp", "test", "other"], { home: guest })).code, 0);
    model.clear().script({ toolCalls: [{ name: "mcp_other_conversations_list", arguments: {} }] }, { text: "one" });
    const { code, stderr } = await runHermes(["-z", "look"], { home: guest });
    assert.equal(code, 0, stderr);
    const names = model.last.body.tools.map(({ function: { name } }: { function: { name: string } }) => name);
    assert.ok(names.includes("mcp_other_messages_read"), names.join());
    assert.ok(!names.some((name: string) => /respond|_ask$|messages_send/.test(name)), names.join());
    assert.match(
      model.last.raw,
      /<untrusted_tool_result source=\\"mcp_other_conversations_list\\".*the heron stands on one leg/s,
    );
  });

  test("a client of the first SDK, on which most agents are built, lists and calls tools", async () => {
    answerTurns(model, () => ({ text: "four" }));
    await using home = await tempHome({ "config.yaml": modelConfig(model) });
    const [sdk, stdio] = await Promise.all([
      import("@modelcontextprotocol/sdk/client/index.js"),
      import("@modelcontextprotocol/sdk/client/stdio.js"),
    ]);
    const client = new sdk.Client({ name: "first", version: "1" });
    const start = { command: process.execPath, args: [launcher, "mcp", "serve"], env: environmentFor({ home }) };
    await client.connect(new stdio.StdioClientTransport({ ...start, cwd: home.project }));
    const { tools } = await client.listTools();
    assert.equal(tools.length, 12);
    const guide = await readFile(join(repository, "docs", "guide", "mcp-server.md"), "utf8");
    for (const { name } of tools) assert.ok(guide.includes(`\`${name}\``), `${name} is in the guide`);
    const { content } = await client.callTool({ name: "ask", arguments: { prompt: "2+2?" } });
    assert.match(JSON.stringify(content), /four/);
    await client.close();
  });
});
