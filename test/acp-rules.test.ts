// What an editor may rely on beside its prompts: lists and copies, what a prompt carries, what is told of work in the background, modes that last.
import assert from "node:assert/strict";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { after, before, beforeEach, describe, test } from "node:test";
import type { McpServer } from "@agentclientprotocol/sdk";
import { type Connected, chosen, startEditorHere } from "./support/editor.ts";
import { bodyOf } from "./support/mcp/http-server.ts";
import type { RecordedRequest, Reply, Step } from "./support/model-server/script.ts";
import { ModelServer } from "./support/model-server/server.ts";
import { modelConfig, type TempHome, tempHome } from "./support/temp-home.ts";

const NOBODY = "00000000-0000-4000-8000-00000000000f";
const PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const call = (name: string, args: Readonly<Record<string, unknown>>) => ({ toolCalls: [{ name, arguments: args }] });

let model: ModelServer;
let home: TempHome;
let editor: Connected;
let steps: Step[] = [];
let dialog: string;

const config = () => `${modelConfig(model)}terminal:\n  sandbox: "off"\n`;
const turns = () => model.requests.filter(({ body }) => body.tools?.length);
const last = () => turns().at(-1)?.raw ?? "";
const at = (): { cwd: string; mcpServers: McpServer[] } => ({ cwd: home.project, mcpServers: [] });

before(async () => {
  model = await ModelServer.start();
  home = await tempHome({ "config.yaml": config() });
  editor = await startEditorHere({ home, answer: (request) => chosen(dialog || (request.options[0]?.optionId ?? "")) });
});
beforeEach(() => {
  steps = [];
  dialog = "";
  editor.told.length = 0;
  editor.asked.length = 0;
  model.clear().otherwise(async (request: RecordedRequest): Promise<Reply> => {
    if (!request.body.tools?.length) return { text: "A title" };
    const step = steps.shift() ?? { text: "ok" };
    return typeof step === "function" ? step(request) : step;
  });
});
after(async () => {
  await editor[Symbol.asyncDispose]();
  await model.close();
  await home[Symbol.asyncDispose]();
});

test("a home without a model can be signed in to once one is connected, and says how", async () => {
  await using empty = await tempHome();
  await using other = await startEditorHere({ home: empty });
  assert.deepEqual(
    other.initialized.authMethods?.map(({ id }) => id),
    ["hermes-setup"],
  );
  await assert.rejects(
    other.agent.request("authenticate", { methodId: "hermes-setup" }),
    /No model is connected\. Run: hermes acp --setup/,
  );
});

describe("a conversation", () => {
  test("is offered with its modes, models and, right behind that, the commands of the editor", async () => {
    const made = await editor.agent.request("session/new", { cwd: home.project, mcpServers: [] });
    assert.deepEqual(
      made.modes?.availableModes.map(({ id }) => id),
      ["default", "accept_edits", "dont_ask"],
    );
    assert.deepEqual(
      made.configOptions?.map(({ id, category }) => [id, category]),
      [
        ["mode", "mode"],
        ["model", "model"],
      ],
    );
    assert.match(made.sessionId, /^[0-9a-f]{8}-[0-9a-f]{4}-4/);
    await editor.until(() => editor.updates("available_commands_update", made.sessionId).length > 0);
    const [commands] = editor.updates("available_commands_update", made.sessionId);
    const names = commands?.availableCommands.map(({ name }) => name) ?? [];
    for (const name of [
      "compress",
      "context",
      "goal",
      "help",
      "model",
      "new",
      "queue",
      "steer",
      "subgoal",
      "tools",
      "version",
    ])
      assert.ok(names.includes(name), name);
    assert.ok(!names.includes("quit") && !names.includes("undo"), "what only a screen can do is not offered");
  });

  test("keeps its mode when it is loaded once more, and each change of it is told", async () => {
    const id = await editor.begin();
    await editor.say(id, "hello");
    await editor.agent.request("session/set_mode", { sessionId: id, modeId: "dont_ask" });
    await editor.until(() => editor.updates("config_option_update", id).length > 0);
    const [told] = editor.updates("config_option_update", id);
    assert.equal(told?.configOptions.find((one) => one.id === "mode")?.currentValue, "dont_ask");
    const loaded = await editor.agent.request("session/load", { sessionId: id, ...at() });
    assert.equal(loaded.modes?.currentModeId, "dont_ask");
  });

  test("that nobody knows is neither copied, closed into an error, nor changed", async () => {
    const { agent } = editor;
    await assert.rejects(agent.request("session/fork", { sessionId: NOBODY, ...at() }), /not found/i);
    await assert.rejects(agent.request("session/set_mode", { sessionId: NOBODY, modeId: "default" }), /not found/i);
    await assert.rejects(agent.request("session/resume", { sessionId: "../../etc/passwd", ...at() }), /no session id/);
    await agent.request("session/close", { sessionId: NOBODY });
    await agent.notify("session/cancel", { sessionId: NOBODY });
  });

  test("is told whole when it is loaded: that there was a picture, calls with their ends, and the plan", async () => {
    const id = await editor.begin();
    const begun = Promise.withResolvers<void>();
    steps = [
      call("todo", { todos: [{ id: "1", content: "first", status: "pending" }] }),
      async (request) => {
        begun.resolve();
        await request.clientLeft;
        return { text: "too late" };
      },
    ];
    const said = editor.agent.request("session/prompt", {
      sessionId: id,
      prompt: [
        { type: "text", text: "look" },
        { type: "image", data: PNG, mimeType: "image/png" },
      ],
    });
    await begun.promise;
    await editor.agent.notify("session/cancel", { sessionId: id });
    assert.deepEqual(await said, { stopReason: "cancelled" });
    editor.told.length = 0;
    await editor.agent.request("session/load", { sessionId: id, ...at() });
    await editor.until(() => editor.updates("plan", id).length > 0);
    // Pictures are not stored; that there was one is.
    assert.deepEqual(
      editor.updates("user_message_chunk", id).map(({ content }) => content),
      [{ type: "text", text: "look\n[screenshot]" }],
    );
    const ended = editor.updates("tool_call_update", id).map(({ toolCallId }) => toolCallId);
    assert.deepEqual(
      editor.updates("tool_call", id).map(({ toolCallId }) => toolCallId),
      ended,
      "each call has its end",
    );
    assert.equal(editor.updates("plan", id)[0]?.entries[0]?.content, "first");
  });

  test("comes in pages of fifty, the newest first, each once", async () => {
    const folder = join(home.osHome, "many");
    await mkdir(folder);
    dialog = "deny";
    const ids: string[] = [];
    for (let nth = 0; nth < 52; nth++) {
      const id = await editor.begin(folder);
      await editor.say(id, `talk ${nth}`);
      await editor.agent.request("session/close", { sessionId: id });
      ids.unshift(id);
    }
    const first = await editor.agent.request("session/list", { cwd: folder });
    assert.equal(first.sessions.length, 50);
    assert.equal(first.nextCursor, first.sessions.at(-1)?.sessionId);
    const second = await editor.agent.request("session/list", { cwd: folder, cursor: first.nextCursor ?? null });
    assert.equal(second.nextCursor ?? null, null);
    assert.deepEqual(
      [...first.sessions, ...second.sessions].map(({ sessionId }) => sessionId),
      ids,
    );
    // "Look only" is remembered as that.
    const trusted = JSON.parse(await readFile(home.at("trusted_folders.json"), "utf8"));
    assert.match(JSON.stringify(trusted), /look_?only/i);
    assert.equal(editor.asked.filter(({ toolCall }) => toolCall.title === "Trust this folder?").length, 1);
  });
});

describe("a prompt", () => {
  test("says what could not be taken along, and goes on with the rest", async () => {
    const id = await editor.begin();
    const big = "b".repeat(512 * 1024 + 1);
    await editor.agent.request("session/prompt", {
      sessionId: id,
      prompt: [
        { type: "text", text: "what of it?" },
        { type: "audio", data: "AAAA", mimeType: "audio/wav" },
        { type: "image", data: Buffer.from("no picture").toString("base64"), mimeType: "image/png" },
        { type: "resource", resource: { uri: "file:///w/big.txt", text: big } },
        { type: "resource", resource: { uri: "file:///w/ticks.md", text: "a\n```\nb\n````" } },
        { type: "resource", resource: { uri: "file:///w/p.png", blob: PNG, mimeType: "image/png" } },
      ],
    });
    const thoughts = JSON.stringify(editor.updates("agent_thought_chunk", id));
    assert.match(thoughts, /Sound is not taken/);
    assert.match(thoughts, /the picture/);
    assert.ok(!last().includes("bbbbbbbb"));
    assert.match(last(), /524289 bytes, too large to include: \/w\/big\.txt/);
    assert.match(last(), /`````\\na\\n```\\nb\\n````\\n`````/, "a fence that its text cannot close");
    assert.match(last(), /data:image\/png;base64,iVBOR/);
  });

  test("ends with the reason that the model gave, and what went wrong is told as the answer", async () => {
    const id = await editor.begin();
    steps = Array(6).fill({ text: "cut", finish: "length" });
    const cut = await editor.say(id, "long");
    assert.equal(cut.stopReason, "max_tokens");
    editor.told.length = 0;
    model.clear().otherwise({ fault: "status", status: 401, body: { error: { message: "no such key" } } });
    assert.deepEqual(await editor.say(id, "again"), { stopReason: "end_turn" });
    assert.match(editor.text(id), /key/i);
  });

  test("that its client takes back is cancelled alone: the next one gets its turn", async () => {
    const id = await editor.begin();
    const begun = Promise.withResolvers<void>();
    steps = [
      async (request) => {
        begun.resolve();
        await request.clientLeft;
        return { text: "too late" };
      },
      { text: "third" },
    ];
    const takeBack = [new AbortController(), new AbortController()];
    const asked = ["one", "two", "three"].map((text, nth) =>
      editor.agent.request(
        "session/prompt",
        { sessionId: id, prompt: [{ type: "text", text }] },
        takeBack[nth] ? { cancellationSignal: takeBack[nth].signal } : {},
      ),
    );
    await begun.promise;
    takeBack[1]?.abort();
    takeBack[0]?.abort();
    assert.deepEqual(
      (await Promise.all(asked)).map(({ stopReason }) => stopReason),
      ["cancelled", "cancelled", "end_turn"],
    );
    assert.doesNotMatch(last(), /"two"/);
  });

  test("is followed by what was steered too late, in the same turn of the editor", async () => {
    const id = await editor.begin();
    const begun = Promise.withResolvers<void>();
    const go = Promise.withResolvers<Reply>();
    steps = [
      async () => {
        begun.resolve();
        return go.promise;
      },
      { text: " second" },
    ];
    const ended = editor.say(id, "go");
    await begun.promise;
    await editor.say(id, "/steer and then?");
    go.resolve({ text: "first" });
    assert.deepEqual(await ended, { stopReason: "end_turn" });
    assert.equal(turns().at(-1)?.body.messages.at(-1).content, "and then?");
    assert.match(editor.text(id), /first[\s\S]*second/);
  });

  test("hears of a process that ended in the background", async () => {
    const id = await editor.begin();
    steps = [
      call("terminal", { command: "sleep 0.2; printf 'her%s' on", background: true, notify_on_complete: true }),
      { text: "started" },
    ];
    await editor.say(id, "start it");
    for (let nth = 0; nth < 200 && !/heron/.test(last()); nth++) {
      await new Promise((resolve) => setTimeout(resolve, 50));
      await editor.say(id, "and?");
    }
    assert.match(last(), /heron/);
  });
});

describe("tool calls", () => {
  test("of a sub-agent are reported under the call that started it", async () => {
    const id = await editor.begin();
    await writeFile(join(home.project, "seen.txt"), "heron\n");
    model.clear().otherwise((request): Reply => {
      const { messages, tools } = request.body;
      if (!tools?.length) return { text: "A title" };
      const isChild = !messages.some(({ content }: { content: unknown }) => content === "delegate it");
      const { role } = messages.at(-1);
      if (isChild) return role === "tool" ? { text: "it says heron" } : call("read_file", { path: "seen.txt" });
      return role === "tool" ? { text: "done" } : call("delegate_task", { goal: "read the file" });
    });
    await editor.say(id, "delegate it");
    const [started] = editor.updates("tool_call", id);
    assert.equal(started?.title, "delegate: read the file");
    assert.equal(editor.updates("tool_call", id).length, 1, "its own calls are no calls of this conversation");
    const reports = editor.updates("tool_call_update", id).filter(({ status }) => !status);
    assert.ok(reports.every(({ toolCallId }) => toolCallId === started?.toolCallId));
    const [, child] = turns();
    assert.deepEqual(
      child?.body.messages.slice(1),
      [{ role: "user", content: "read the file" }],
      "it knows its task alone",
    );
    assert.match(JSON.stringify(reports.at(-1)?.content), /🔀 read the file.*read: seen\.txt.*✓ read the file/);
  });
});

describe("a client that knows more", () => {
  test("gets notices as notices, and a server of its own over SSE with the headers it gave", async () => {
    const seen: string[] = [];
    const sse = await sseServer((authorization) => seen.push(authorization));
    await using other = await startEditorHere({ home, capabilities: { session: { notices: {} } } as never }); // newer than these types
    const { sessionId } = await other.agent.request("session/new", {
      cwd: home.project,
      mcpServers: [
        {
          type: "sse",
          name: "events",
          url: sse.url,
          headers: [{ name: "Authorization", value: "Bearer of the client" }],
        },
      ],
    });
    await other.agent.request("session/prompt", {
      sessionId,
      prompt: [
        { type: "text", text: "hello" },
        { type: "audio", data: "AAAA", mimeType: "audio/wav" },
      ],
    });
    await sse.close();
    assert.match(last(), /mcp_events_/);
    assert.ok(seen.length > 0 && seen.every((one) => one === "Bearer of the client"), String(seen));
    assert.ok(other.told.some(({ update }) => JSON.stringify(update).includes('"notice"')));
    assert.equal(other.updates("agent_thought_chunk", sessionId).length, 0);
  });
});

/** An MCP server of the older kind: answers come over one stream of events. */
async function sseServer(authorized: (header: string) => void) {
  let events: ServerResponse | null = null;
  const server = createServer(async (request, response) => {
    authorized(String(request.headers.authorization));
    if (request.method === "GET") {
      events = response.writeHead(200, { "content-type": "text/event-stream" });
      return void events.write("event: endpoint\ndata: /messages\n\n");
    }
    const { id, method, params } = JSON.parse(await bodyOf(request));
    response.writeHead(202).end();
    if (id === undefined) return;
    const result =
      method === "initialize"
        ? {
            protocolVersion: params.protocolVersion,
            capabilities: { tools: {} },
            serverInfo: { name: "events", version: "1" },
          }
        : method === "tools/list"
          ? { tools: [{ name: "ping", inputSchema: { type: "object" } }] }
          : {};
    events?.write(`event: message\ndata: ${JSON.stringify({ jsonrpc: "2.0", id, result })}\n\n`);
  });
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  const { port } = server.address() as AddressInfo; // it listens on a port
  return {
    url: `http://127.0.0.1:${port}/sse`,
    close: () => {
      server.closeAllConnections();
      return new Promise<void>((done) => void server.close(() => done()));
    },
  };
}
