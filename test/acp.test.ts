// Hermes in an editor: the official client talks to the program over its standard streams. One process serves all conversations of the file.
import assert from "node:assert/strict";
import { mkdir, readFile, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, beforeEach, describe, test } from "node:test";
import type { RequestPermissionRequest, RequestPermissionResponse } from "@agentclientprotocol/sdk";
import { chosen, type Editor, startEditor } from "./support/editor.ts";
import type { RecordedRequest, Reply, Step } from "./support/model-server/script.ts";
import { ModelServer } from "./support/model-server/server.ts";
import { modelConfig, type TempHome, tempHome } from "./support/temp-home.ts";

let model: ModelServer;
let home: TempHome;
let editor: Editor;
let steps: Step[] = [];
let answer: (request: RequestPermissionRequest) => RequestPermissionResponse | Promise<RequestPermissionResponse>;

const allow = (request: RequestPermissionRequest) => chosen(request.options[0]?.optionId ?? "");
const call = (name: string, args: Readonly<Record<string, unknown>>) => ({ toolCalls: [{ name, arguments: args }] });
const bodyText = ({ raw }: RecordedRequest) => raw;

before(async () => {
  model = await ModelServer.start();
  home = await tempHome({ "config.yaml": `${modelConfig(model)}terminal:\n  sandbox: "off"\n` });
  // Everything here lies in the folder for temporary files, where editing needs no question: it gets one of its own.
  const TMPDIR = join(home.osHome, "tmp");
  await mkdir(TMPDIR);
  editor = await startEditor({ home, env: { TMPDIR }, answer: (request) => answer(request) });
});
beforeEach(() => {
  answer = allow;
  steps = [];
  editor.asked.length = 0;
  editor.told.length = 0;
  // Side calls (titles) carry no tools.
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

test("every line on the standard output is a message of the protocol", () => {
  const lines = editor.stdout().split("\n").filter(Boolean);
  assert.ok(lines.length > 0);
  for (const line of lines) assert.equal(JSON.parse(line).jsonrpc, "2.0");
});

test("it says who it is, what it can do and how to sign in", () => {
  const { agentInfo, agentCapabilities, authMethods, protocolVersion } = editor.initialized;
  assert.equal(protocolVersion, 1);
  assert.equal(agentInfo?.name, "hermes-agent");
  assert.equal(agentCapabilities?.loadSession, true);
  assert.equal(agentCapabilities?.promptCapabilities?.image, true);
  assert.deepEqual(Object.keys(agentCapabilities?.sessionCapabilities ?? {}).sort(), [
    "close",
    "fork",
    "list",
    "resume",
  ]);
  assert.deepEqual(
    authMethods?.map(({ id }) => id),
    ["custom", "hermes-setup"],
  );
});

test("authenticate takes a way that was offered and no other", async () => {
  await editor.agent.request("authenticate", { methodId: "custom" });
  await assert.rejects(editor.agent.request("authenticate", { methodId: "magic" }), /no way "magic"/);
});

describe("a prompt", () => {
  test("streams thoughts and text, tells the usage, gets a title and ends with its turn", async () => {
    const id = await editor.begin();
    steps = [{ thinking: "two and two", text: "It is four." }];
    assert.deepEqual(await editor.say(id, "two and two?"), { stopReason: "end_turn" });
    assert.equal(editor.text(id), "It is four.");
    assert.equal(editor.updates("agent_thought_chunk", id).length > 0, true);
    await editor.until(() => editor.updates("session_info_update", id).length > 0);
    assert.equal(editor.updates("session_info_update", id)[0]?.title, "A title");
    assert.equal(editor.updates("usage_update", id)[0]?.size, 128_000);
  });

  test("takes pictures, links and files along; a binary file is only named", async () => {
    const id = await editor.begin();
    const png = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
    await editor.agent.request("session/prompt", {
      sessionId: id,
      prompt: [
        { type: "text", text: "look" },
        { type: "image", data: png, mimeType: "image/png" },
        { type: "resource_link", uri: "file:///w/a%20b.ts", name: "a b.ts" },
        { type: "resource", resource: { uri: "file:///w/c.md", text: "the word is heron" } },
        { type: "resource", resource: { uri: "file:///w/d.bin", blob: "AAAA", mimeType: "application/x-thing" } },
      ],
    });
    const sent = bodyText(model.requests.filter(({ body }) => body.tools?.length).at(-1) as RecordedRequest);
    assert.match(sent, /data:image\/png;base64,iVBOR/);
    assert.match(sent, /\/w\/a b\.ts/);
    assert.match(sent, /the word is heron/);
    assert.match(sent, /binary \(application\/x-thing\): \/w\/d\.bin/);
    assert.doesNotMatch(sent, /AAAA"/);
  });

  test("of an unknown conversation is refused", async () => {
    assert.deepEqual(await editor.say("nobody", "hello"), { stopReason: "refusal" });
  });

  test("waits its turn, keeps its pictures and resolves with its own turn", async () => {
    const id = await editor.begin();
    const held = Promise.withResolvers<void>();
    steps = [
      async () => {
        await held.promise;
        return { text: "first" };
      },
      { text: "second" },
    ];
    const order: string[] = [];
    const first = editor.say(id, "one").then(() => order.push("first"));
    const png = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
    const second = editor.agent
      .request("session/prompt", {
        sessionId: id,
        prompt: [
          { type: "text", text: "two" },
          { type: "image", data: png, mimeType: "image/png" },
        ],
      })
      .then(({ stopReason }) => order.push(`second ${stopReason} ${editor.text(id)}`));
    held.resolve();
    await Promise.all([first, second]);
    assert.deepEqual(order, ["first", "second end_turn firstsecond"]);
    assert.match(
      bodyText(model.requests.filter(({ body }) => body.tools?.length).at(-1) as RecordedRequest),
      /image\/png/,
    );
  });

  test("that is cancelled ends, and so does everything queued behind it", async () => {
    const id = await editor.begin();
    const begun = Promise.withResolvers<RecordedRequest>();
    steps = [
      async (request) => {
        begun.resolve(request);
        await request.clientLeft;
        return { text: "too late" };
      },
    ];
    const both = Promise.all([editor.say(id, "one"), editor.say(id, "two")]);
    await begun.promise;
    await editor.agent.notify("session/cancel", { sessionId: id });
    assert.deepEqual(await both, [{ stopReason: "cancelled" }, { stopReason: "cancelled" }]);
    steps = [{ text: "still here" }];
    assert.deepEqual(await editor.say(id, "three"), { stopReason: "end_turn" });
  });

  test("that uses up its model calls says so with its stop reason", async () => {
    const id = await editor.begin();
    const loop = () => call("todo", { todos: [{ id: "1", content: `n${Math.random()}` }] });
    model.clear().otherwise((request) => (request.body.tools?.length ? loop() : { text: "enough" }));
    await writeFile(
      home.at("config.yaml"),
      `${modelConfig(model)}terminal:\n  sandbox: "off"\nagent:\n  max_turns: 2\n`,
    );
    const short = await editor.begin();
    assert.deepEqual(await editor.say(short, "on and on"), { stopReason: "max_turn_requests" });
    await writeFile(home.at("config.yaml"), `${modelConfig(model)}terminal:\n  sandbox: "off"\n`);
    assert.ok(id);
  });
});

describe("tool calls", () => {
  test("have a kind, a title and a place; a command shows its output, a plan comes from todo", async () => {
    const id = await editor.begin();
    await writeFile(join(home.project, "note.txt"), "the word is heron\n");
    steps = [
      call("read_file", { path: "note.txt", offset: 1 }),
      call("terminal", { command: "echo hello; exit 3" }),
      call("todo", {
        todos: [
          { id: "a", content: "first", status: "completed" },
          { id: "b", content: "second", status: "cancelled" },
          { id: "c", content: "third", status: "in_progress" },
        ],
      }),
      { text: "done" },
    ];
    await editor.say(id, "go");
    const started = editor.updates("tool_call", id);
    assert.deepEqual(
      started.map(({ title, kind }) => [title, kind]),
      [
        ["read: note.txt", "read"],
        ["terminal: echo hello; exit 3", "execute"],
        ["todo (3 items)", "other"],
      ],
    );
    for (const { toolCallId } of started) assert.match(toolCallId, /^tc-[0-9a-f]{12}$/);
    assert.deepEqual(started[0]?.locations, [{ path: join(home.project, "note.txt"), line: 1 }]);
    const ended = editor.updates("tool_call_update", id).filter(({ status }) => status !== "in_progress" && status);
    assert.deepEqual(
      ended.map(({ toolCallId, status }) => [toolCallId, status]),
      started.map(({ toolCallId }, at) => [toolCallId, at === 1 ? "failed" : "completed"]),
    );
    assert.match(JSON.stringify(ended[1]?.content), /hello.*exit 3/);
    assert.deepEqual(editor.updates("plan", id)[0]?.entries, [
      { content: "first", priority: "medium", status: "completed" },
      { content: "[cancelled] second", priority: "medium", status: "completed" },
      { content: "third", priority: "medium", status: "in_progress" },
    ]);
  });

  test("that run side by side are matched by their ids", async () => {
    const id = await editor.begin();
    for (const name of ["p", "q", "r"]) await writeFile(join(home.project, `${name}.txt`), `text of ${name}\n`);
    steps = [
      { toolCalls: ["p", "q", "r"].map((name) => ({ name: "read_file", arguments: { path: `${name}.txt` } })) },
      { text: "done" },
    ];
    await editor.say(id, "read all");
    const started = editor.updates("tool_call", id);
    assert.equal(new Set(started.map(({ toolCallId }) => toolCallId)).size, 3);
    for (const { toolCallId, title } of started) {
      const [end] = editor.updates("tool_call_update", id).filter((one) => one.toolCallId === toolCallId && one.status);
      assert.match(JSON.stringify(end?.content), new RegExp(`text of ${title?.slice(-5, -4)}`));
    }
  });
});

describe("permissions", () => {
  test("an edit is shown with both sides before it is made, in the folder too; a no leaves the file as it was", async () => {
    const id = await editor.begin();
    await writeFile(join(home.project, "code.ts"), "const a = 1;\n");
    answer = () => chosen("deny");
    steps = [call("patch", { path: "code.ts", old_string: "1", new_string: "2" }), { text: "refused" }];
    await editor.say(id, "change it");
    const [asked] = editor.asked;
    assert.equal(editor.asked.length, 1);
    assert.match(asked?.toolCall.toolCallId ?? "", /^edit-approval-\d+$/);
    assert.deepEqual(asked?.toolCall.content, [
      { type: "diff", path: join(home.project, "code.ts"), oldText: "const a = 1;\n", newText: "const a = 2;\n" },
    ]);
    assert.deepEqual(
      asked?.options.map(({ optionId, kind }) => [optionId, kind]),
      [
        ["allow_once", "allow_once"],
        ["deny", "reject_once"],
      ],
    );
    assert.equal(await readFile(join(home.project, "code.ts"), "utf8"), "const a = 1;\n");
    const ended = editor.updates("tool_call_update", id).at(-1);
    assert.equal(ended?.status, "failed");
    assert.ok(
      ended.content?.every(({ type }) => type === "content"),
      "words, and no difference that looks as if it had been made",
    );
  });

  test("an edit that is allowed is made, and the call shows the difference", async () => {
    const id = await editor.begin();
    steps = [call("write_file", { path: "fresh.txt", content: "new\n" }), { text: "done" }];
    await editor.say(id, "write it");
    assert.equal(await readFile(join(home.project, "fresh.txt"), "utf8"), "new\n");
    assert.deepEqual(editor.updates("tool_call_update", id).at(-1)?.content, [
      { type: "diff", path: join(home.project, "fresh.txt"), oldText: null, newText: "new\n" },
    ]);
  });

  test("a patch over several files is shown as a whole, once", async () => {
    const id = await editor.begin();
    await writeFile(join(home.project, "m1.txt"), "one\n");
    await writeFile(join(home.project, "m2.txt"), "two\n");
    answer = () => chosen("deny");
    const patch =
      "*** Begin Patch\n*** Update File: m1.txt\n-one\n+eins\n*** Delete File: m2.txt\n*** Add File: m3.txt\n+drei\n*** End Patch";
    steps = [call("patch", { mode: "patch", patch }), { text: "refused" }];
    await editor.say(id, "translate");
    assert.equal(editor.asked.length, 1);
    assert.deepEqual(
      editor.asked[0]?.toolCall.content?.map((one) =>
        one.type === "diff" ? [one.path, one.oldText, one.newText] : one,
      ),
      [
        [join(home.project, "m1.txt"), "one\n", "eins\n"],
        [join(home.project, "m2.txt"), "two\n", ""],
        [join(home.project, "m3.txt"), null, "drei\n"],
      ],
    );
    assert.equal(await readFile(join(home.project, "m1.txt"), "utf8"), "one\n");
    assert.equal(await readFile(join(home.project, "m2.txt"), "utf8"), "two\n");
  });

  test("a dangerous command is asked about; never again in this session means just that", async () => {
    const id = await editor.begin();
    await mkdir(join(home.project, "gone"), { recursive: true });
    const remove = call("terminal", { command: `rm -rf ${join(home.project, "gone")}` });
    answer = () => chosen("deny_always");
    steps = [remove, { text: "refused" }, remove, { text: "refused again" }];
    await editor.say(id, "clean up");
    assert.deepEqual(
      editor.asked[0]?.options.map(({ optionId, kind }) => [optionId, kind]),
      [
        ["allow_once", "allow_once"],
        ["allow_session", "allow_always"],
        ["allow_always", "allow_always"],
        ["deny", "reject_once"],
        ["deny_always", "reject_always"],
      ],
    );
    assert.match(editor.asked[0]?.toolCall.toolCallId ?? "", /^perm-check-\d+$/);
    await editor.say(id, "once more");
    assert.equal(editor.asked.length, 1);
  });

  test("cancelled instead of answered, the turn is over before the notification of that comes", async () => {
    const id = await editor.begin();
    answer = () => ({ outcome: { outcome: "cancelled" } });
    steps = [call("write_file", { path: "never.txt", content: "x" }), { text: "refused, then" }];
    assert.deepEqual(await editor.say(id, "write"), { stopReason: "cancelled" });
    assert.equal(steps.length, 1, "the model is not asked what follows from a no");
  });

  test("a client that fails to answer has said no", async () => {
    const id = await editor.begin();
    answer = () => Promise.reject(new Error("the dialog crashed"));
    steps = [call("write_file", { path: "never.txt", content: "x" }), { text: "refused" }];
    assert.deepEqual(await editor.say(id, "write"), { stopReason: "end_turn" });
    await assert.rejects(readFile(join(home.project, "never.txt")));
  });

  test("a question that waits in one conversation holds up no other, on the same file either", async () => {
    const [one, two] = [await editor.begin(), await editor.begin()];
    const open = Promise.withResolvers<RequestPermissionResponse>();
    answer = ({ sessionId }) => (sessionId === one ? open.promise : chosen("allow_once"));
    steps = [call("write_file", { path: "both.txt", content: "from one\n" })];
    const waiting = editor.say(one, "write");
    await editor.until(() => editor.asked.length === 1);
    steps = [call("write_file", { path: "both.txt", content: "from two\n" }), { text: "done" }];
    await editor.say(two, "write");
    assert.equal(await readFile(join(home.project, "both.txt"), "utf8"), "from two\n");
    open.resolve(chosen("deny"));
    await waiting;
    assert.equal(await readFile(join(home.project, "both.txt"), "utf8"), "from two\n");
  });
});

describe("modes", () => {
  const write = async (id: string, path: string) => {
    editor.asked.length = 0;
    steps = [call("write_file", { path, content: `${Math.random()}\n` }), { text: "done" }];
    await editor.say(id, "write");
    return editor.asked.length;
  };

  test("accept_edits writes in the folder unasked, through links only where they stay in it; keys and git are always shown", async () => {
    const id = await editor.begin();
    await editor.agent.request("session/set_mode", { sessionId: id, modeId: "accept_edits" });
    const outside = join(home.osHome, "outside");
    await mkdir(outside, { recursive: true });
    await mkdir(join(home.project, ".git"), { recursive: true });
    await symlink(outside, join(home.project, "way-out"));
    assert.equal(await write(id, "plain.txt"), 0);
    assert.equal(await write(id, join(outside, "x.txt")), 1);
    assert.equal(await write(id, "way-out/x.txt"), 1);
    assert.equal(await write(id, `../${outside.split("/").at(-1)}/y.txt`), 1);
    assert.equal(await write(id, ".env.example"), 1);
    assert.equal(await write(id, ".git/description"), 1);
    await editor.agent.request("session/set_config_option", { sessionId: id, configId: "mode", value: "dont_ask" });
    assert.equal(editor.updates("current_mode_update", id).at(-1)?.currentModeId, "dont_ask");
    assert.equal(await write(id, join(outside, "x.txt")), 0);
    assert.equal(await write(id, ".git/description"), 1);
    assert.equal(await write(id, "keys/id_ed25519"), 1);
  });

  test("an unknown mode, option or model is refused and nothing changes", async () => {
    const id = await editor.begin();
    const { agent } = editor;
    await assert.rejects(agent.request("session/set_mode", { sessionId: id, modeId: "yolo" }), /no mode "yolo"/);
    await assert.rejects(
      agent.request("session/set_config_option", { sessionId: id, configId: "colour", value: "red" }),
      /no option "colour"/,
    );
    await assert.rejects(
      agent.request("session/set_config_option", { sessionId: id, configId: "model", value: "nowhere:x" }),
      /nowhere/,
    );
  });

  test("another model counts from the next prompt on, by the option and by the call of older clients", async () => {
    model.models = ["fake-model", "other-model"];
    const id = await editor.begin();
    const set = await editor.agent.request("session/set_config_option", {
      ...{ sessionId: id, configId: "model", value: "custom:other-model" },
    });
    assert.equal(set.configOptions.find(({ id: name }) => name === "model")?.currentValue, "custom:other-model");
    await editor.say(id, "hello");
    assert.equal(model.requests.find(({ body }) => body.tools?.length)?.body.model, "other-model");
    await editor.agent.request("session/set_model", { sessionId: id, modelId: "custom:fake-model" });
    await editor.say(id, "hello again");
    assert.equal(model.requests.findLast(({ body }) => body.tools?.length)?.body.model, "fake-model");
    model.models = ["fake-model"];
  });
});
