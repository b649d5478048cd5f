// The prompt of a conversation from its first request to its last: what changes it, what is laid over it, and what never touches it.
import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { type Talk, talk, warningsOf } from "../support/talk.ts";

const DAY = 86_400_000;
const systemOf = (chat: Talk, at = -1): string => chat.server.requests.at(at)?.body.messages[0].content;
const storedPrompt = async (chat: Talk) => (await chat.store.getPrompt(chat.conversation.agent.sessionId))?.prompt;

/** No request broke the beginning of the one before it without a cause. */
async function assertExplained(chat: Talk): Promise<void> {
  const calls = await chat.store.calls(chat.conversation.agent.sessionId);
  for (const call of calls) assert.ok(!call.brokeOwner || call.cause, `${call.brokeOwner} broke without a cause`);
}

async function chatting(t: TestContext, options: Parameters<typeof talk>[1] = {}): Promise<Talk> {
  const chat = await talk(t, options);
  chat.server.otherwise({ text: "ok" });
  return chat;
}

test("the ephemeral prompt ends the system text of every request and is in no stored prompt", async (t) => {
  const chat = await chatting(t, { env: { HERMES_EPHEMERAL_SYSTEM_PROMPT: "Speak like a pirate." } });
  await chat.say("one");
  await chat.say("two");
  assert.ok(systemOf(chat).endsWith("\n\nSpeak like a pirate."));
  assert.equal(systemOf(chat, 0), systemOf(chat, 1));
  assert.equal(systemOf(chat), `${await storedPrompt(chat)}\n\nSpeak like a pirate.`);
});

test("a personality that changes in mid-conversation explains the break it makes", async (t) => {
  const chat = await chatting(t, { config: "agent:\n  system_prompt: Be terse.\n" });
  await chat.say("one");
  const stored = await storedPrompt(chat);
  const config = join(chat.homeDir, "config.yaml");
  await writeFile(config, (await readFile(config, "utf8")).replace("Be terse.", "Be a poet, please."));
  await chat.say("two");
  assert.match(systemOf(chat), /Be a poet, please\.$/);
  assert.equal(await storedPrompt(chat), stored);
  const calls = await chat.store.calls(chat.conversation.agent.sessionId);
  assert.equal(calls.at(-1)?.cause, "ephemeral");
});

test("what a door lays over the prompt takes the place of the configured text", async (t) => {
  const chat = await chatting(t, {
    config: "agent:\n  system_prompt: Be terse.\n",
    request: { overlay: () => "You are in a chat." },
  });
  await chat.say("one");
  assert.match(systemOf(chat), /You are in a chat\.$/);
  assert.doesNotMatch(systemOf(chat), /Be terse/);
});

test("prefill messages stand behind the system message of every request and in no transcript", async (t) => {
  const examples = [
    { role: "user", content: "2+2?" },
    { role: "assistant", content: "4." },
  ];
  const chat = await chatting(t, {
    config: "prefill_messages_file: examples.json\n",
    home: { "examples.json": JSON.stringify(examples) },
  });
  await chat.say("one");
  await chat.say("two");
  for (const { body } of chat.server.requests)
    assert.deepEqual(body.messages.slice(1, 3), examples, "right behind the system message");
  const rows = await chat.store.load(chat.conversation.agent.sessionId);
  assert.deepEqual(
    rows.map(({ content }) => content),
    ["one", "ok", "two", "ok"],
  );
  await writeFile(join(chat.homeDir, "examples.json"), JSON.stringify([...examples, ...examples]));
  await chat.say("three");
  assert.equal(chat.server.last.body.messages.length, 3 + 5, "examples are frozen for the conversation");
  await chat.resume();
  await chat.say("four");
  assert.equal(chat.server.last.body.messages.length, 5 + 7);
  await assertExplained(chat);
});

test("a prefill file that cannot be used is told once and costs nothing else", async (t) => {
  const chat = await chatting(t, {
    config: "prefill_messages_file: examples.json\n",
    home: { "examples.json": '[{"role": "system", "content": "x"}]' },
  });
  assert.match(warningsOf(await chat.say("one")).join("\n"), /examples\.json are not used: entry 0/);
  assert.doesNotMatch(warningsOf(await chat.say("two")).join("\n"), /examples/);
  assert.equal(chat.server.last.body.messages.length, 4);
});

test("a new day is told once, with the next message; the prompt and the stored words stay", async (t) => {
  const chat = await chatting(t, { config: "timezone: UTC\n" });
  await chat.say("one");
  assert.match(systemOf(chat), /Conversation started: Monday, March 30, 2026/);
  chat.now += DAY;
  await chat.say("two");
  const note = "[System note: it is now Tuesday, March 31, 2026 (was Monday, March 30, 2026).]";
  assert.equal(chat.server.last.body.messages.at(-1).content, `two\n\n${note}`);
  await chat.say("three");
  assert.equal(
    chat.server.last.raw.split("System note: it is now").length,
    2,
    "once a day, and replayed as it was sent",
  );
  assert.equal(chat.server.last.body.messages.at(-1).content, "three");
  chat.now += DAY;
  await chat.resume();
  await chat.say("four");
  assert.match(
    chat.server.last.body.messages.at(-1).content,
    /it is now Wednesday, April 01, 2026 \(was Tuesday, March 31, 2026\)/,
  );
  assert.equal(systemOf(chat), systemOf(chat, 0));
  const rows = await chat.store.load(chat.conversation.agent.sessionId);
  assert.deepEqual(
    rows.filter(({ role }) => role === "user").map(({ content }) => content),
    ["one", "two", "three", "four"],
  );
  await assertExplained(chat);
});

test("files edited in mid-conversation change nothing until the prompt is reloaded", async (t) => {
  const chat = await chatting(t, { project: { "AGENTS.md": "Rule one." } });
  await chat.say("one");
  await chat.write("AGENTS.md", "Rule two.");
  await writeFile(join(chat.homeDir, "SOUL.md"), "You are Ada.");
  await chat.say("two");
  assert.equal(systemOf(chat), systemOf(chat, 0));
  await chat.resume();
  await chat.say("three");
  assert.equal(systemOf(chat), systemOf(chat, 0));

  assert.deepEqual(await chat.conversation.reloadPrompt(), { changed: true, warnings: [] });
  await chat.say("four");
  assert.match(systemOf(chat), /^You are Ada\.[\s\S]*Rule two\./);
  assert.equal(systemOf(chat), await storedPrompt(chat));
  const calls = await chat.store.calls(chat.conversation.agent.sessionId);
  assert.equal(calls.at(-1)?.cause, "reload");
  assert.deepEqual(await chat.conversation.reloadPrompt(), { changed: false, warnings: [] });
  await chat.say("five");
  assert.equal(systemOf(chat), systemOf(chat, -2));
  await assertExplained(chat);
});

test("a model that stands in is told its own name; the stored prompt and the way back keep their bytes", async (t) => {
  const second = await talk(t);
  second.server.otherwise({ text: "from the second" });
  const chat = await chatting(t, {
    config: `fallback_providers:\n  - provider: custom\n    model: other-model\n    base_url: ${second.server.url}\n    api_key: other-key-123456\n`,
  });
  await chat.say("one");
  const stored = await storedPrompt(chat);
  chat.server.script({ fault: "status", status: 401, body: { error: { message: "no such key" } } });
  await chat.say("two");
  const there = second.server.last.body.messages[0].content;
  assert.equal(there, stored?.replace("\nModel: fake-model\n", "\nModel: other-model\n"));
  assert.notEqual(there, stored);
  assert.equal(await storedPrompt(chat), stored);
  chat.now += DAY;
  await chat.say("three");
  assert.equal(systemOf(chat), stored);
  await assertExplained(chat);
});

test("sessions that differ in folder, memory and date alone have equal stable layers", async (t) => {
  const chat = await chatting(t, {
    config: "timezone: UTC\n",
    project: { "a/AGENTS.md": "A", "a/package.json": "{}", "b/Makefile": "test:\n\ttrue\n", "b/CLAUDE.md": "B" },
  });
  const stable = async (folder: string) => {
    await chat.begin({ cwd: join(chat.project, folder) });
    await chat.say("hello");
    const record = await chat.store.getPrompt(chat.conversation.agent.sessionId);
    return { stable: (record?.prompt ?? "").slice(0, record?.stableChars ?? 0), full: record?.prompt };
  };
  const one = await stable("a");
  chat.now += 3 * DAY;
  await writeFile(join(chat.homeDir, "memories", "MEMORY.md"), "The user likes tea.");
  const other = await stable("b");
  assert.ok(one.stable.length > 1000);
  assert.equal(one.stable, other.stable);
  assert.notEqual(one.full, other.full);
  assert.match(other.full ?? "", /likes tea[\s\S]*April 02, 2026/);
});
