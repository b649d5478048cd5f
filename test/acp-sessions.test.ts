// Conversations of an editor: listed, loaded, resumed, forked, killed; what is typed while a turn runs; files that the editor holds.
import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdir, readFile, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { after, before, beforeEach, describe, test } from "node:test";
import fc from "fast-check";
import { type Editor, startAcp, startEditor } from "./support/editor.ts";
import type { RecordedRequest, Reply, Step } from "./support/model-server/script.ts";
import { ModelServer } from "./support/model-server/server.ts";
import { runHermes } from "./support/run-hermes.ts";
import { fewer } from "./support/sample.ts";
import { modelConfig, type TempHome, tempHome } from "./support/temp-home.ts";

let model: ModelServer;
let home: TempHome;
let editor: Editor;
let steps: Step[] = [];
/** What the editor holds, by path. */
const buffers = new Map<string, string>();

const call = (name: string, args: Readonly<Record<string, unknown>>) => ({ toolCalls: [{ name, arguments: args }] });
const turns = () => model.requests.filter(({ body }) => body.tools?.length);

const newEditor = () =>
  startEditor({
    home,
    capabilities: { fs: { readTextFile: true, writeTextFile: true } },
    readText(path) {
      const text = buffers.get(path);
      if (text === undefined) throw new Error("not open");
      return text;
    },
    async writeText(path, text) {
      if (buffers.has(path)) buffers.set(path, text);
      await writeFile(path, text);
    },
  });

before(async () => {
  model = await ModelServer.start();
  home = await tempHome({ "config.yaml": `${modelConfig(model)}terminal:\n  sandbox: "off"\n` });
  editor = await newEditor();
});
beforeEach(() => {
  steps = [];
  buffers.clear();
  editor.asked.length = 0;
  editor.told.length = 0;
  model.clear().otherwise(async (request): Promise<Reply> => {
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

describe("stored conversations", () => {
  test("a loaded one is told from its beginning before the load is answered, and goes on where it was", async () => {
    const id = await editor.begin();
    await writeFile(join(home.project, "n.txt"), "the word is heron\n");
    steps = [{ thinking: "hm", ...call("read_file", { path: "n.txt" }) }, { text: "It is heron." }];
    await editor.say(id, "which word?");
    await editor.agent.request("session/close", { sessionId: id });
    assert.deepEqual(await editor.say(id, "there?"), { stopReason: "refusal" });

    await using other = await newEditor();
    const { agent } = other;
    await agent.request("session/load", { sessionId: id, cwd: home.project, mcpServers: [] });
    const lines = other.stdout().split("\n").filter(Boolean);
    const answered = lines.findIndex((line) => line.includes('"availableModes"'));
    assert.deepEqual(
      lines.slice(0, answered).flatMap((line) => JSON.parse(line).params?.update?.sessionUpdate ?? []),
      ["user_message_chunk", "agent_thought_chunk", "tool_call", "tool_call_update", "agent_message_chunk"],
    );
    await other.until(() => other.updates("agent_message_chunk", id).length > 0);
    assert.match(JSON.stringify(other.updates("tool_call_update", id)[0]), /completed.*heron/);
    other.told.length = 0;
    steps = [{ text: "still heron" }];
    await other.say(id, "and now?");
    assert.match(turns().at(-1)?.raw ?? "", /which word\?.*It is heron\..*and now\?/s);
  });

  test("one that does not exist cannot be loaded; resumed, it begins under that id", async () => {
    const at = { cwd: home.project, mcpServers: [] };
    await assert.rejects(
      editor.agent.request("session/load", { sessionId: "00000000-0000-4000-8000-000000000000", ...at }),
      /not found/i,
    );
    const id = "00000000-0000-4000-8000-000000000001";
    await editor.agent.request("session/resume", { sessionId: id, ...at });
    assert.deepEqual(await editor.say(id, "hello"), { stopReason: "end_turn" });
    const { sessions } = await editor.agent.request("session/list", {});
    assert.ok(sessions.some(({ sessionId }) => sessionId === id));
  });

  test("a fork holds what was said, and both go their own ways", async () => {
    const id = await editor.begin();
    await editor.say(id, "the word is heron");
    const { sessionId: copy } = await editor.agent.request<{ sessionId: string }>("session/fork", {
      ...{ sessionId: id, cwd: home.project, mcpServers: [] },
    });
    assert.notEqual(copy, id);
    await editor.say(copy, "only in the copy");
    await editor.say(id, "only in the original");
    const last = turns().at(-1)?.raw ?? "";
    assert.match(last, /the word is heron/);
    assert.doesNotMatch(last, /only in the copy/);
  });

  test("the list is paged by the last id, filtered by folder; an unknown cursor gives an empty page", async () => {
    const other = join(home.osHome, "other");
    await mkdir(other, { recursive: true });
    const id = await editor.begin(other);
    await editor.say(id, "hello there");
    // A folder that is new is asked about once, before anything in it counts.
    assert.equal(editor.asked[0]?.toolCall.title, "Trust this folder?");
    assert.match(await readFile(home.at("trusted_folders.json"), "utf8"), new RegExp(`"${other}"`));
    const { sessions } = await editor.agent.request("session/list", { cwd: other });
    assert.deepEqual(
      sessions.map(({ sessionId, cwd }) => [sessionId, cwd]),
      [[id, other]],
    );
    assert.deepEqual((await editor.agent.request("session/list", { cursor: "nobody" })).sessions, []);
    assert.deepEqual((await editor.agent.request("session/list", { cursor: id, cwd: other })).sessions, []);
    const stored = await runHermes(["sessions", "list", "--source", "acp"], { home });
    assert.match(stored.stdout, /A title|hello there/);
  });

  test("a folder that does not exist is an error that says so", async () => {
    await assert.rejects(editor.begin(join(home.osHome, "nowhere")), /no such folder/);
    await assert.rejects(editor.begin("relative"), /absolute path/);
    // An editor on Windows, an agent in WSL.
    if (process.platform === "linux")
      await assert.rejects(editor.begin("C:\\No\\such place"), /no such folder: \/mnt\/c\/No\/such place/);
  });
});

describe("a tab after /new", () => {
  const said = (one: Editor, id: string) =>
    one.updates("user_message_chunk", id).map(({ content }) => (content.type === "text" ? content.text : ""));

  /** What is told when the tab is loaded, in this process or another one. */
  async function told(one: Editor, id: string): Promise<readonly string[]> {
    one.told.length = 0;
    await one.agent.request("session/load", { sessionId: id, cwd: home.project, mcpServers: [] });
    await one.until(() => one.updates("available_commands_update", id).length > 0);
    return said(one, id);
  }

  test("is loaded with the conversation it is on, and goes on there; the one it left is in the list", async () => {
    const id = await editor.begin();
    await editor.say(id, "alpha");
    await editor.say(id, "/new");
    const [asked] = editor.asked;
    assert.match(JSON.stringify(asked?.toolCall.content), /This one is saved; the list of the editor offers it\./);
    assert.deepEqual(await told(editor, id), [], "nothing was said in it yet");
    await editor.say(id, "beta");
    assert.deepEqual(await told(editor, id), ["beta"]);
    await editor.say(id, "more of beta");
    assert.doesNotMatch(turns().at(-1)?.raw ?? "", /alpha/);

    await using other = await newEditor();
    assert.deepEqual(await told(other, id), ["beta", "more of beta"]);
    const { sessions } = await other.agent.request("session/list", {});
    const [tab, left] = sessions.map(({ sessionId }) => sessionId);
    assert.equal(tab, id);
    assert.match(left ?? "", /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/);
    assert.deepEqual(await told(other, left ?? ""), ["alpha"]);
    await other.say(left ?? "", "/new now");
    await other.say(left ?? "", "gamma");
    await other.say(id, "/new now");
    await other.say(id, "delta");
    assert.deepEqual(await told(editor, id), ["delta"]);
    assert.deepEqual(await told(editor, left ?? ""), ["gamma"]);
    const firsts: string[] = [];
    for (const { sessionId } of (await editor.agent.request("session/list", {})).sessions.slice(0, 4))
      firsts.push((await told(editor, sessionId))[0] ?? "");
    assert.deepEqual(firsts.sort(), ["alpha", "beta", "delta", "gamma"]);
  });
});

describe("while a turn runs", () => {
  /** A turn whose first request waits. */
  async function held(id: string, text = "work") {
    const begun = Promise.withResolvers<RecordedRequest>();
    const go = Promise.withResolvers<Reply>();
    steps = [
      (request) => {
        begun.resolve(request);
        return go.promise;
      },
    ];
    const ended = editor.say(id, text);
    await begun.promise;
    return { ended, go: go.resolve };
  }

  test("/steer reaches the model with the next result, and answers at once", async () => {
    const id = await editor.begin();
    const turn = await held(id);
    assert.deepEqual(await editor.say(id, "/steer look at the docs too"), { stopReason: "end_turn" });
    steps = [{ text: "done" }];
    turn.go(call("todo", {}));
    await turn.ended;
    assert.match(turns().at(-1)?.raw ?? "", /look at the docs too/);
  });

  test("/queue waits for the turn and resolves with its own; /steer without a turn is a prompt", async () => {
    const id = await editor.begin();
    const turn = await held(id);
    const queued = editor.say(id, "/queue next thing");
    steps = [{ text: "second" }];
    turn.go({ text: "first " });
    assert.deepEqual(await turn.ended, { stopReason: "end_turn" });
    assert.deepEqual(await queued, { stopReason: "end_turn" });
    assert.equal(turns().at(-1)?.body.messages.at(-1).content, "next thing");
    await editor.say(id, "/steer hello");
    assert.equal(turns().at(-1)?.body.messages.at(-1).content, "hello");
  });

  test("/new ends it and begins a conversation without a past", async () => {
    const id = await editor.begin();
    await editor.say(id, "the word is heron");
    const turn = await held(id);
    assert.deepEqual(await editor.say(id, "/new now"), { stopReason: "end_turn" });
    assert.deepEqual(await turn.ended, { stopReason: "cancelled" });
    await editor.say(id, "which word?");
    assert.doesNotMatch(turns().at(-1)?.raw ?? "", /heron/);
  });

  test("commands of the registry answer without the model; other words behind a slash are the model's", async () => {
    const id = await editor.begin();
    for (const [typed, answer] of [
      ["/version", /v\d+\.\d+/],
      ["/help", /\/steer/],
      ["/tools", /read_file/],
      ["/context", /tokens|%/],
      ["/model", /fake-model/],
    ] as const) {
      editor.told.length = 0;
      await editor.say(id, typed);
      assert.match(editor.text(id), answer, typed);
    }
    assert.equal(turns().length, 0);
    await editor.say(id, "/explain this");
    assert.equal(turns().at(-1)?.body.messages.at(-1).content, "/explain this");
    const [commands] = editor.updates("available_commands_update");
    assert.equal(commands, undefined);
  });
});

describe("files of the editor", () => {
  test("what is not saved is what the agent reads, and what it writes goes through the editor", async () => {
    const path = join(home.project, "open.txt");
    await writeFile(path, "saved\n");
    buffers.set(path, "typed but not saved\n");
    const id = await editor.begin();
    steps = [
      call("read_file", { path: "open.txt" }),
      call("patch", { path: "open.txt", old_string: "not saved", new_string: "changed" }),
      { text: "done" },
    ];
    await editor.say(id, "change it");
    assert.match(JSON.stringify(editor.updates("tool_call_update", id)[0]), /typed but not saved/);
    assert.deepEqual(editor.asked[0]?.toolCall.content, [
      { type: "diff", path, oldText: "typed but not saved\n", newText: "typed but changed\n" },
    ]);
    assert.equal(buffers.get(path), "typed but changed\n");
    assert.equal(await readFile(path, "utf8"), "typed but changed\n");
  });

  test("a file outside the folder is none of the editor's", async () => {
    const path = join(home.osHome, "elsewhere.txt");
    await writeFile(path, "on the disk\n");
    buffers.set(path, "never shown\n");
    const id = await editor.begin();
    steps = [call("read_file", { path }), { text: "done" }];
    await editor.say(id, "read it");
    assert.match(JSON.stringify(editor.updates("tool_call_update", id)[0]), /on the disk/);
  });

  test("a link that leads out of the folder is not the editor's; what is asked about is the file behind it", async () => {
    const outside = join(home.osHome, "behind.txt");
    await writeFile(outside, "behind the link\n");
    await symlink(outside, join(home.project, "way-out.txt"));
    for (const path of [outside, join(home.project, "way-out.txt")]) buffers.set(path, "never shown\n");
    const id = await editor.begin();
    steps = [
      call("read_file", { path: "way-out.txt" }),
      call("write_file", { path: "way-out.txt", content: "new\n" }),
      { text: "done" },
    ];
    await editor.say(id, "read and write it");
    assert.match(JSON.stringify(editor.updates("tool_call_update", id)[0]), /behind the link/);
    assert.deepEqual(editor.asked[0]?.toolCall.locations, [{ path: outside }]);
    assert.deepEqual([...buffers.values()], ["never shown\n", "never shown\n"]);
    assert.equal(await readFile(outside, "utf8"), "new\n");
  });

  test("a folder that is opened through a link is the editor's by the paths it knows", async () => {
    const link = join(home.osHome, "linked");
    await symlink(home.project, link);
    const [known, real] = [join(link, "known.txt"), join(home.project, "known.txt")];
    await writeFile(real, "saved\n");
    buffers.set(known, "typed but not saved\n").set(real, "of another tab\n");
    const id = await editor.begin(link);
    steps = [
      call("read_file", { path: "known.txt" }),
      call("write_file", { path: "known.txt", content: "new\n" }),
      { text: "done" },
    ];
    await editor.say(id, "read and write it");
    assert.match(JSON.stringify(editor.updates("tool_call_update", id)[0]), /typed but not saved/);
    assert.deepEqual([...buffers.values()], ["new\n", "of another tab\n"]);
    assert.equal(await readFile(real, "utf8"), "new\n");
  });
});

describe("laws", () => {
  test("every prompt is resolved exactly once, in whatever order prompts, cancels and loads come", async () => {
    const id = await editor.begin();
    await editor.say(id, "begin");
    const move = fc.constantFrom("prompt", "prompt", "cancel", "load", "steer", "wait");
    await fc.assert(
      fc.asyncProperty(fc.array(move, { minLength: 1, maxLength: 8 }), async (moves) => {
        const asked: Promise<{ readonly stopReason: string }>[] = [];
        for (const one of moves) {
          if (one === "prompt") asked.push(editor.say(id, "go"));
          else if (one === "steer") asked.push(editor.say(id, "/steer this way"));
          else if (one === "cancel") await editor.agent.notify("session/cancel", { sessionId: id });
          else if (one === "wait") await asked.at(-1);
          else await editor.agent.request("session/load", { sessionId: id, cwd: home.project, mcpServers: [] });
        }
        for (const { stopReason } of await Promise.all(asked))
          assert.ok(["end_turn", "cancelled", "refusal"].includes(stopReason), stopReason);
        // The conversation is as usable as before.
        assert.deepEqual(await editor.say(id, "still there?"), { stopReason: "end_turn" });
      }),
      { numRuns: fewer(60, 10) },
    );
  });

  test("a call keeps its id from start to end, however many run side by side", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.integer({ min: 1, max: 6 }), { minLength: 1, maxLength: 3 }), async (batches) => {
        // A long conversation is looked back at, with requests of its own.
        const id = await editor.begin();
        steps = [
          ...batches.map((count) => ({
            toolCalls: Array.from({ length: count }, (_, at) => ({
              name: "search_files",
              arguments: { pattern: `heron${at}` },
            })),
          })),
          { text: "done" },
        ];
        await editor.say(id, "go");
        const started = editor.updates("tool_call", id).map(({ toolCallId }) => toolCallId);
        const ended = editor
          .updates("tool_call_update", id)
          .filter(({ status }) => status === "completed" || status === "failed")
          .map(({ toolCallId }) => toolCallId);
        assert.equal(
          new Set(started).size,
          batches.reduce((sum, count) => sum + count, 0),
        );
        assert.deepEqual([...ended].sort(), [...started].sort());
      }),
      { numRuns: fewer(40, 10) },
    );
  });
});

describe("when something breaks", () => {
  test("lines that are no messages are answered with errors, nothing else is printed, and it goes on", async () => {
    const child = startAcp({ home });
    assert.ok(child.stdin && child.stdout);
    const lines: string[] = [];
    const reader = createInterface({ input: child.stdout });
    reader.on("line", (line) => lines.push(line));
    const bad = [
      "{",
      "null",
      "42",
      '"text"',
      "[]",
      "[1]",
      "{}",
      '{"jsonrpc":"2.0"}',
      '{"jsonrpc":"1.0","id":1,"method":"initialize"}',
    ];
    const odd = [
      '{"jsonrpc":"2.0","id":7,"method":"session/new","params":{"cwd":5}}',
      '{"jsonrpc":"2.0","id":8,"method":"no/such/call","params":{}}',
      '{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":9}}',
      '{"jsonrpc":"2.0","id":99,"result":{}}',
      "\u0000\u0001\u{1f600}",
      `{"a":${"[".repeat(5000)}`,
    ];
    for (const line of [...bad, ...odd]) child.stdin.write(`${line}\n`);
    child.stdin.write('{"jsonrpc":"2.0","id":"last","method":"initialize","params":{"protocolVersion":1}}\n');
    while (!lines.some((line) => line.includes('"last"'))) await once(reader, "line");
    for (const line of lines) assert.equal(JSON.parse(line).jsonrpc, "2.0");
    child.stdin.end();
    const [code] = await once(child, "exit");
    assert.equal(code, 0);
  });

  test("a client that is killed in mid-turn ends the turn; what was said is there afterwards", async () => {
    const one = await newEditor();
    const id = await one.begin();
    const begun = Promise.withResolvers<RecordedRequest>();
    steps = [
      async (request) => {
        begun.resolve(request);
        await request.clientLeft;
        return { text: "too late" };
      },
    ];
    one.say(id, "remember the heron").catch(() => undefined);
    const request = await begun.promise;
    // What the end of a client's process does to its agent: both ends of the pipes are gone.
    one.child.stdout?.destroy();
    one.child.stdin?.destroy();
    await request.clientLeft;
    if (one.child.exitCode === null) await once(one.child, "exit");
    await editor.agent.request("session/load", { sessionId: id, cwd: home.project, mcpServers: [] });
    await editor.until(() => /remember the heron/.test(JSON.stringify(editor.updates("user_message_chunk", id))));
    assert.deepEqual(await editor.say(id, "go on"), { stopReason: "end_turn" });
  });

  test("an agent that is killed in mid-turn has kept what was said; another one goes on with it", async () => {
    const one = await newEditor();
    const id = await one.begin();
    const begun = Promise.withResolvers<void>();
    steps = [
      call("todo", { todos: [{ id: "1", content: "first" }] }),
      async (request) => {
        begun.resolve();
        await request.clientLeft;
        return { text: "too late" };
      },
    ];
    one.say(id, "remember the stork").catch(() => undefined);
    await begun.promise;
    one.child.kill("SIGKILL");
    await once(one.child, "exit");
    await editor.agent.request("session/load", { sessionId: id, cwd: home.project, mcpServers: [] });
    await editor.until(() => /remember the stork/.test(JSON.stringify(editor.updates("user_message_chunk", id))));
    steps = [{ text: "going on" }];
    assert.deepEqual(await editor.say(id, "go on"), { stopReason: "end_turn" });
  });
});

test("--version and --check answer and end; a terminal is not needed", async () => {
  const version = await runHermes(["acp", "--version"], { home });
  assert.match(version.stdout, /^Hermes.* v\d/);
  const check = await runHermes(["acp", "--check"], { home });
  assert.equal(check.code, 0);
  assert.match(check.stdout, /ACP is ready; model: fake-model/);
  const browser = await runHermes(["acp", "--setup-browser"], { home });
  assert.equal(browser.code, 2);
  assert.match(browser.stderr, /--yes/);
});
