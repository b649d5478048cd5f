import assert from "node:assert/strict";
import { test } from "node:test";
import { temporaryStore } from "../../test/support/session-store.ts";
import { systemClock } from "../kit/clock.ts";
import { priceOf } from "./catalogue/prices.ts";
import { demoFetch } from "./demo.ts";
import { createGate } from "./gate/create-gate.ts";
import type { Caps } from "./gate.ts";
import type { Message } from "./messages.ts";
import { demoRuntime } from "./providers/resolve.ts";
import { targetFor } from "./providers/target.ts";
import type { ModelEvent, ToolDefinition } from "./wire.ts";
import { createWire } from "./wires/drive.ts";
import { createModelFetch } from "./wires/model-fetch.ts";

const ALL_TOOLS = ["terminal", "search_files", "read_file", "memory", "session_search", "skill_manage"];

const terminal = (command: string) => ["terminal", { command }] as const;
const read = (path: string) => ["read_file", { path }] as const;
const memory = (target: string, content: string) => ["memory", { action: "add", target, content }] as const;
const recall = (query: string) => ["session_search", { query }] as const;

const understood: readonly [string, readonly [tool: string, args: Record<string, unknown>]][] = [
  ["list files", terminal("ls -1p -- .")],
  ["list the files here", terminal("ls -1p -- .")],
  ["Please list all files in src/llm.", terminal("ls -1p -- src/llm")],
  ["list files in my docs", terminal("ls -1p -- 'my docs'")],
  ["what files are in this folder?", terminal("ls -1p -- .")],
  ["what's in this folder?", terminal("ls -1p -- .")],
  ["which files are there in the docs folder", terminal("ls -1p -- docs")],
  ["ls", terminal("ls -1p -- .")],
  ["ls src", terminal("ls -1p -- src")],
  ["列出文件", terminal("ls -1p -- .")],
  ["列出当前目录的文件", terminal("ls -1p -- .")],
  ["列出 src 的文件", terminal("ls -1p -- src")],
  ["请列出 src 目录里的文件", terminal("ls -1p -- src")],
  ["这个文件夹里有什么文件？", terminal("ls -1p -- .")],
  ["当前目录下有哪些文件", terminal("ls -1p -- .")],
  ["read README.md", read("README.md")],
  ["please show me the file src/main.ts", read("src/main.ts")],
  ["cat package.json", read("package.json")],
  ["what's in notes.txt?", read("notes.txt")],
  ["读取 README.md", read("README.md")],
  ["看看 notes.txt 文件", read("notes.txt")],
  ["run date", terminal("date")],
  ["run `git status`", terminal("git status")],
  ["execute the command: echo hi there", terminal("echo hi there")],
  ["$ uname -a", terminal("uname -a")],
  ["运行 date", terminal("date")],
  ["执行命令：echo 你好", terminal("echo 你好")],
  ["remember that I like tea", memory("user", "I like tea")],
  ["remember: the server is called web1", memory("memory", "the server is called web1")],
  ["请记住：我喜欢喝茶", memory("user", "我喜欢喝茶")],
  ["search past conversations for backups", recall("backups")],
  ["what did we say about the budget?", recall("the budget")],
  ["搜索以前的对话：备份", recall("备份")],
  ["我们之前聊过备份吗？", recall("备份")],
];

test("notes for a model behind what was typed are not part of it", async () => {
  const note = "[This person writes here for the first time. Answer, then say in one sentence who you are.]";
  const { message } = await ask([{ role: "user", content: `run date\n\n${note}\n\n[Written an hour ago.]` }]);
  assert.deepEqual(JSON.parse(message.tool_calls[0].function.arguments), terminal("date")[1]);
});

for (const [text, [name, args]] of understood) {
  test(`asked to ${JSON.stringify(text)}, the demo calls ${name} with ${JSON.stringify(args)}`, async () => {
    const { message, finish } = await ask([{ role: "user", content: text }]);
    assert.equal(finish, "tool_calls", message.content);
    assert.equal(message.tool_calls[0].function.name, name);
    assert.deepEqual(JSON.parse(message.tool_calls[0].function.arguments), args);
  });
}

const others = [
  "help",
  "What can you do?",
  "你好",
  "你能做什么？",
  "run the tests and fix them",
  "write me a poem",
  "写一首诗",
  "",
];

for (const text of others) {
  test(`asked ${JSON.stringify(text)}, the demo says that it is not an AI, what it knows, and names hermes setup`, async () => {
    const { message } = await ask([{ role: "user", content: text }]);
    assert.match(message.content, /not an AI|不是人工智能/);
    assert.match(message.content, /README\.md/);
    assert.match(message.content, /hermes setup/);
  });
}

test("without a terminal, files are listed through search_files", async () => {
  const { message } = await ask([{ role: "user", content: "list files" }], ["search_files"]);
  assert.equal(message.tool_calls[0].function.name, "search_files");
});

for (const [text, name, title] of [
  ["make a skill called Release notes: run the tests, then tag", "release-notes", "Release notes"],
  ["创建技能 发布：先跑测试，再打标签", "note-f457e7", "发布"],
] as const) {
  test(`asked to ${JSON.stringify(text)}, the demo writes the skill ${name}`, async () => {
    const { message } = await ask([{ role: "user", content: text }]);
    const { content, ...rest } = JSON.parse(message.tool_calls[0].function.arguments);
    assert.deepEqual(rest, { action: "create", name });
    assert.ok(content.startsWith(`---\nname: ${name}\ndescription: "${title}"\n---\n\n# ${title}\n\n`), content);
  });
}

test("a tool that is not offered is named plainly", async () => {
  const { message, finish } = await ask([{ role: "user", content: "read a.txt" }], ["terminal"]);
  assert.equal(finish, "stop");
  assert.match(message.content, /`read_file`.*not offered/);
});

const answers: readonly [string, string, Record<string, unknown>, string, RegExp[]][] = [
  [
    "list files",
    "terminal",
    { command: "ls -1p -- ." },
    `{"output":"a.txt\\nsrc/","exit_code":0,"error":null}`,
    [/2 entries/, /- a\.txt/, /- src\//],
  ],
  ["read a.txt", "read_file", { path: "a.txt" }, `{"content":"1|one\\n2|two","total_lines":2}`, [/one\ntwo/]],
  ["read a.txt", "read_file", { path: "a.txt" }, `{"error":"File not found: a.txt"}`, [/File not found/]],
  [
    "run false",
    "terminal",
    { command: "false" },
    `{"output":"","exit_code":1,"error":null}`,
    [/exit code 1/, /nothing/],
  ],
  [
    "run x",
    "terminal",
    { command: "x" },
    `{"output":"","exit_code":-1,"error":"denied by the user","status":"blocked"}`,
    [/not run.*denied by you/],
  ],
  [
    "运行 date",
    "terminal",
    { command: "date" },
    `{"output":"Mon","exit_code":0,"error":null}\n\n[a note {with braces}]`,
    [/退出码 0/, /Mon/],
  ],
  ["remember x1", "memory", { content: "x1" }, `{"success":true}`, [/Saved.*x1/]],
  [
    "remember x1",
    "memory",
    { content: "x1" },
    `{"success":false,"code":"over_limit","error":"memory is full"}`,
    [/memory is full/],
  ],
  [
    "search past conversations for tea",
    "session_search",
    { query: "tea" },
    `{"success":true,"results":[{"title":"Drinks","when":"May 1","snippet":"green >>>tea<<<"}]}`,
    [/1 earlier conversation about "tea"/, /Drinks · May 1 · green/],
  ],
  [
    "search past conversations for tea",
    "session_search",
    { query: "tea" },
    `{"success":true,"results":[]}`,
    [/No earlier conversation/],
  ],
  ["make a skill a1: do", "skill_manage", { name: "a1" }, `{"success":true}`, [/`a1` is saved/]],
  ["run x", "terminal", { command: "x" }, "plain words", [/plain words/]],
  [
    "run x",
    "terminal",
    { command: "x" },
    `{"output":"say \\"}\\" twice","exit_code":0,"error":null}\n\n[a note]`,
    [/exit code 0/, /say "}" twice/],
  ],
];

for (const [question, name, args, result, expected] of answers) {
  test(`the demo answers ${JSON.stringify(question)} from ${result.slice(0, 50)}`, async () => {
    const { message, finish } = await ask([
      { role: "user", content: question },
      {
        role: "assistant",
        content: null,
        tool_calls: [{ id: "c1", type: "function", function: { name, arguments: JSON.stringify(args) } }],
      },
      { role: "tool", tool_call_id: "c1", content: result },
    ]);
    assert.equal(finish, "stop");
    for (const pattern of expected) assert.match(message.content, pattern);
  });
}

test("the same request gets the same answer", async () => {
  const messages = [{ role: "user", content: "ls" }];
  assert.deepEqual(await ask(messages), await ask(messages));
});

test("an aborted request does not answer", async () => {
  const signal = AbortSignal.abort(new Error("stop"));
  await assert.rejects(demoFetch({ body: "{}", signal }), /stop/);
});

const none = { usd: null, tokens: null };
const caps: Caps = { call: none, session: none, job: none, day: none };
const offered: readonly ToolDefinition[] = [
  { type: "function", function: { name: "terminal", description: "", parameters: { type: "object", properties: {} } } },
];

test("through the real wire and the gate the demo calls a tool, answers from its result, and each call is a row that cost nothing", async (t) => {
  const { store } = await temporaryStore(t);
  await store.create({ id: "s1" });
  const gate = createGate({
    ledger: store,
    caps: () => caps,
    priceOf,
    wireFor: (target) => createWire(target.apiMode, { fetch: createModelFetch(), clock: systemClock }),
    clock: systemClock,
    onDefect: (what, error) => assert.fail(`${what}: ${error}`),
  });
  const target = await targetFor(demoRuntime(), { config: {} });
  const askGate = async (messages: readonly Message[]) => {
    const events: ModelEvent[] = [];
    const stream = gate.stream(
      { target, messages, tools: offered },
      { task: "main", sessionId: "s1" },
      new AbortController().signal,
    );
    for await (const event of stream) events.push(event);
    const last = events.at(-1);
    assert.equal(last?.type, "done", JSON.stringify(last));
    return last as Extract<ModelEvent, { type: "done" }>; // asserted just before
  };

  const question: Message = { role: "user", content: "run echo hi" };
  const first = await askGate([question]);
  assert.equal(first.finishReason, "tool_calls");
  const [call] = first.message.tool_calls ?? [];
  assert.deepEqual(JSON.parse(call?.function.arguments ?? ""), { command: "echo hi" });

  const result: Message = {
    role: "tool",
    tool_call_id: call?.id ?? "",
    content: '{"output":"hi","exit_code":0,"error":null}',
  };
  const second = await askGate([question, first.message, result]);
  assert.match(second.message.content ?? "", /exit code 0[\s\S]*hi/);

  const totals = (await store.usage({ by: "purpose" })).get("main");
  assert.deepEqual([totals?.calls, totals?.costUsd, totals?.unknownCostCalls], [2, 0, 0]);
  assert.ok((totals?.inputTokens ?? 0) > 0 && (totals?.outputTokens ?? 0) > 0);
});

async function ask(messages: readonly unknown[], tools: readonly string[] = ALL_TOOLS) {
  const response = await demoFetch({
    body: JSON.stringify({ model: "demo", messages, tools: toolList(tools) }),
  });
  const answer = JSON.parse(await response.text());
  return { message: answer.choices[0].message, finish: answer.choices[0].finish_reason };
}

function toolList(names: readonly string[]) {
  return names.map((name) => ({ type: "function", function: { name, description: "", parameters: {} } }));
}
