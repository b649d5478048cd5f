import assert from "node:assert/strict";
import { test } from "node:test";
import { demoFetch } from "./demo-fetch.ts";
import { embeddedFetch } from "./embedded-fetch.ts";
import { type Intent, intentOf } from "./intents.ts";

const ALL_TOOLS = ["terminal", "search_files", "read_file", "memory", "session_search", "skill_manage"];

const understood: readonly [string, Intent][] = [
  ["help", { type: "help" }],
  ["What can you do?", { type: "help" }],
  ["你好", { type: "help" }],
  ["你能做什么？", { type: "help" }],
  ["list files", { type: "list", path: "." }],
  ["list the files here", { type: "list", path: "." }],
  ["Please list all files in src/llm.", { type: "list", path: "src/llm" }],
  ["what files are in this folder?", { type: "list", path: "." }],
  ["which files are there in the docs folder", { type: "list", path: "docs" }],
  ["ls", { type: "list", path: "." }],
  ["ls src", { type: "list", path: "src" }],
  ["列出文件", { type: "list", path: "." }],
  ["列出当前目录的文件", { type: "list", path: "." }],
  ["请列出 src 目录里的文件", { type: "list", path: "src" }],
  ["这个文件夹里有什么文件？", { type: "list", path: "." }],
  ["当前目录下有哪些文件", { type: "list", path: "." }],
  ["read README.md", { type: "read", path: "README.md" }],
  ["please show me the file src/main.ts", { type: "read", path: "src/main.ts" }],
  ["cat package.json", { type: "read", path: "package.json" }],
  ["what's in notes.txt?", { type: "read", path: "notes.txt" }],
  ["读取 README.md", { type: "read", path: "README.md" }],
  ["看看 notes.txt 文件", { type: "read", path: "notes.txt" }],
  ["run date", { type: "run", command: "date" }],
  ["run `git status`", { type: "run", command: "git status" }],
  ["execute the command: echo hi there", { type: "run", command: "echo hi there" }],
  ["$ uname -a", { type: "run", command: "uname -a" }],
  ["运行 date", { type: "run", command: "date" }],
  ["执行命令：echo 你好", { type: "run", command: "echo 你好" }],
  ["remember that I like tea", { type: "remember", fact: "I like tea", target: "user" }],
  ["remember: the server is called web1", { type: "remember", fact: "the server is called web1", target: "memory" }],
  ["请记住：我喜欢喝茶", { type: "remember", fact: "我喜欢喝茶", target: "user" }],
  ["search past conversations for backups", { type: "recall", query: "backups" }],
  ["what did we say about the budget?", { type: "recall", query: "the budget" }],
  ["搜索以前的对话：备份", { type: "recall", query: "备份" }],
  ["我们之前聊过备份吗？", { type: "recall", query: "备份" }],
  [
    "make a skill called release: run the tests, then tag",
    { type: "skill", title: "release", text: "run the tests, then tag" },
  ],
  ["创建技能 发布：先跑测试，再打标签", { type: "skill", title: "发布", text: "先跑测试，再打标签" }],
  ["run the tests and fix them", { type: "unknown" }],
  ["write me a poem about the sea", { type: "unknown" }],
  ["今天天气怎么样", { type: "unknown" }],
  ["", { type: "unknown" }],
];

for (const [text, intent] of understood) {
  test(`the demo takes ${JSON.stringify(text)} as ${intent.type}`, () => assert.deepEqual(intentOf(text), intent));
}

const asks: readonly [string, string, Record<string, unknown>][] = [
  ["list files in my docs", "terminal", { command: "ls -1p -- 'my docs'" }],
  ["read a.txt", "read_file", { path: "a.txt" }],
  ["run date", "terminal", { command: "date" }],
  ["remember that I like tea", "memory", { action: "add", target: "user", content: "I like tea" }],
  ["search past conversations for tea", "session_search", { query: "tea" }],
];

for (const [text, name, args] of asks) {
  test(`asked to ${JSON.stringify(text)}, the demo calls ${name}`, async () => {
    const { message, finish } = await ask([{ role: "user", content: text }]);
    assert.equal(finish, "tool_calls");
    assert.equal(message.tool_calls[0].function.name, name);
    assert.deepEqual(JSON.parse(message.tool_calls[0].function.arguments), args);
  });
}

test("without a terminal, files are listed through search_files", async () => {
  const { message } = await ask([{ role: "user", content: "list files" }], ["search_files"]);
  assert.equal(message.tool_calls[0].function.name, "search_files");
});

test("a skill gets front matter whose name is the skill's name", async () => {
  const { message } = await ask([{ role: "user", content: "创建技能 发布：先跑测试" }]);
  const args = JSON.parse(message.tool_calls[0].function.arguments);
  assert.match(args.name, /^note-[0-9a-f]{6}$/);
  assert.ok(args.content.startsWith(`---\nname: ${args.name}\ndescription: "发布"\n---\n`));
});

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
    [/not run.*denied by the user/],
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

test("whatever else is asked, the demo says that it is no AI and names hermes setup", async () => {
  for (const text of ["write a poem", "写一首诗"]) {
    const { message } = await ask([{ role: "user", content: text }]);
    assert.match(message.content, /not an AI|不是人工智能/);
    assert.match(message.content, /hermes setup/);
  }
});

test("a stream carries the same text as a whole answer, ends with [DONE] and reports usage when asked", async () => {
  const messages = [{ role: "user", content: "help" }];
  const { message } = await ask(messages);
  const response = await demoFetch("demo:/v1/chat/completions", {
    method: "POST",
    body: JSON.stringify({ messages, stream: true, stream_options: { include_usage: true } }),
  });
  const events = (await response.text()).split("\n\n").filter(Boolean);
  assert.equal(events.at(-1), "data: [DONE]");
  const chunks = events.slice(0, -1).map((line) => JSON.parse(line.slice("data: ".length)));
  const text = chunks.map((chunk) => chunk.choices[0]?.delta.content ?? "").join("");
  assert.equal(text, message.content);
  assert.deepEqual(chunks.at(-1).choices, []);
  assert.ok(chunks.at(-1).usage.prompt_tokens > 0);
});

test("the same request gets the same bytes", async () => {
  const init = {
    method: "POST",
    body: JSON.stringify({ messages: [{ role: "user", content: "ls" }], tools: toolList(ALL_TOOLS), stream: true }),
  };
  const [one, two] = await Promise.all(
    [1, 2].map(async () => (await demoFetch("demo:/v1/chat/completions", init)).text()),
  );
  assert.equal(one, two);
});

test("only demo addresses are answered inside; the rest go on", async () => {
  const sent: string[] = [];
  const fetch = embeddedFetch(async (url) => {
    sent.push(url);
    return new Response("outside");
  });
  const read = async (url: string) => ((await fetch(url, {})) as Response).text(); // both answer with the global one
  assert.equal(JSON.parse(await read("demo:/v1/models")).data[0].context_length, 128_000);
  assert.equal(await read("https://example.com/demo:/v1"), "outside");
  assert.deepEqual(sent, ["https://example.com/demo:/v1"]);
});

test("wrong paths and bodies are refused in the protocol's own shape", async () => {
  assert.equal((await demoFetch("demo:/v1/nothing")).status, 404);
  const bad = await demoFetch("demo:/v1/chat/completions", { method: "POST", body: "{" });
  assert.equal(bad.status, 400);
  assert.equal(typeof JSON.parse(await bad.text()).error.message, "string");
});

test("an aborted request does not answer", async () => {
  const signal = AbortSignal.abort(new Error("stop"));
  await assert.rejects(demoFetch("demo:/v1/models", { signal }), /stop/);
});

async function ask(messages: readonly unknown[], tools: readonly string[] = ALL_TOOLS) {
  const response = await demoFetch("demo:/v1/chat/completions", {
    method: "POST",
    body: JSON.stringify({ model: "demo", messages, tools: toolList(tools) }),
  });
  const answer = JSON.parse(await response.text());
  return { message: answer.choices[0].message, finish: answer.choices[0].finish_reason };
}

function toolList(names: readonly string[]) {
  return names.map((name) => ({ type: "function", function: { name, description: "", parameters: {} } }));
}
