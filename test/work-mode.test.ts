// Work modes, through the door of a conversation: what runs, what is refused, what the model is told.
import assert from "node:assert/strict";
import { access, readFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import type { AgentEvent } from "../src/agent/events.ts";
import { nextMode } from "../src/tools/toolset/work-mode.ts";
import { type Talk, talk } from "./support/talk.ts";

const call = (name: string, args: Record<string, unknown>) => ({ toolCalls: [{ name, arguments: args }] });
const results = (events: readonly AgentEvent[]) =>
  events.flatMap((event) => (event.type === "tool_end" ? [event.result] : []));
const sentTexts = ({ server }: Talk) =>
  server.requests
    .at(-1)
    ?.body.messages.flatMap((message: { role: string; content: unknown }) =>
      message.role === "user" ? [String(message.content)] : [],
    );
const exists = (path: string) =>
  access(path).then(
    () => true,
    () => false,
  );

test("the modes follow one another in a circle", () => {
  assert.deepEqual([nextMode("ask"), nextMode("accept-edits"), nextMode("plan")], ["accept-edits", "plan", "ask"]);
});

test("in plan mode reading tools and commands run, whatever may change something is refused", async (t) => {
  const chat = await talk(t, { project: { "notes.txt": "forty-two herons\n" } });
  chat.conversation.workMode = "plan";
  chat.server.script(
    call("read_file", { path: "notes.txt" }),
    call("terminal", { command: "cat notes.txt" }),
    call("terminal", { command: "cp notes.txt copy.txt" }),
    call("write_file", { path: "new.txt", content: "x" }),
    call("execute_code", { code: "print(1)" }),
    call("todo", { todos: [{ id: "1", content: "count", status: "pending" }] }),
    call("process", { action: "list" }),
    call("terminal", { command: "ls", background: true }),
    { text: "Here is the plan." },
  );
  const [read, cat, copy, write, code, todo, processes, background] = results(await chat.say("look around"));
  for (const allowed of [read, cat]) assert.match(allowed ?? "", /forty-two herons/);
  for (const refused of [copy, write, code, background]) assert.match(refused ?? "", /plan mode is on/);
  for (const allowed of [todo, processes]) assert.doesNotMatch(allowed ?? "", /plan mode/);
  assert.equal(await exists(join(chat.project, "copy.txt")), false);
  assert.equal(await exists(join(chat.project, "new.txt")), false);
});

test("the model is told of plan mode once when it begins and once when it ends; what was said is stored as typed", async (t) => {
  const chat = await talk(t);
  await chat.say("one");
  chat.conversation.workMode = "plan";
  await chat.say("two");
  await chat.say("three");
  chat.conversation.workMode = "accept-edits";
  await chat.say("four");
  const [one, two, three, four] = sentTexts(chat);
  assert.equal(one, "one");
  assert.match(two ?? "", /^\[System note: the user switched plan mode on\..*\]\n\ntwo$/s);
  assert.equal(three, "three");
  assert.match(four ?? "", /^\[System note: the user switched plan mode off\..*\]\n\nfour$/s);
  const stored = await chat.store.load(chat.conversation.agent.sessionId);
  assert.deepEqual(
    stored.flatMap(({ role, content }) => (role === "user" ? [content] : [])),
    ["one", "two", "three", "four"],
  );
});

test("a conversation that was left in plan mode is resumed without it, and the model is told", async (t) => {
  const chat = await talk(t);
  chat.conversation.workMode = "plan";
  await chat.say("one");
  await chat.resume();
  assert.equal(chat.conversation.workMode, "ask");
  await chat.say("two");
  assert.match(sentTexts(chat).at(-1), /switched plan mode off/);
});

test("sub-agents are held to the mode of the conversation, also while they run", async (t) => {
  const chat = await talk(t);
  chat.conversation.workMode = "plan";
  chat.server.script(
    call("delegate_task", { goal: "write a file" }),
    call("write_file", { path: "child.txt", content: "x" }),
    { text: "I could not." },
    { text: "It could not." },
  );
  await chat.say("delegate it");
  assert.equal(await exists(join(chat.project, "child.txt")), false);
  const asked = chat.server.requests.map(({ raw }) => raw);
  assert.ok(asked.some((raw) => raw.includes("plan mode is on, and write_file may change something")));
});

test("accepted edits are written unasked in the project, but not in .git and not elsewhere", async (t) => {
  const config = "terminal:\n  sandbox: off\n";
  const chat = await talk(t, { config, request: { yolo: false, interactive: true } });
  const asked: string[] = [];
  const say = async (...steps: Parameters<typeof chat.server.script>) => {
    chat.server.script(...steps, { text: "done" });
    for await (const event of chat.conversation.agent.run({ text: "write" })) {
      if (event.type !== "ask" || event.request.question.kind !== "approval") continue;
      asked.push(event.request.question.command);
      event.request.answer({ choice: "deny" });
    }
    return asked.splice(0);
  };
  const envrc = call("write_file", { path: ".envrc", content: "export A=1\n" });
  assert.equal((await say(envrc)).length, 1);
  chat.conversation.workMode = "accept-edits";
  assert.deepEqual(await say(envrc), []);
  assert.equal(await readFile(join(chat.project, ".envrc"), "utf8"), "export A=1\n");
  assert.equal((await say(call("write_file", { path: ".git/hooks/pre-commit", content: "true\n" }))).length, 1);
  assert.equal((await say(call("write_file", { path: "~/.config/autostart/x.desktop", content: "x" }))).length, 1);
});
