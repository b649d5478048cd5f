// The controls of an open conversation, through its door.
import assert from "node:assert/strict";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { ModelServer } from "../../test/support/model-server/server.ts";
import { talk } from "../../test/support/talk.ts";

test("a title given before the first message is the conversation's title", async (t) => {
  const { conversation } = await talk(t);
  await conversation.setTitle("Birds");
  assert.equal(await conversation.title(), "Birds");
});

test("an effort that is taken back leaves thinking to the provider again", async (t) => {
  const { conversation } = await talk(t);
  await conversation.setReasoning("high");
  assert.deepEqual(conversation.agent.model.reasoning, { enabled: true, effort: "high" });
  await conversation.setReasoning("");
  assert.equal(conversation.agent.model.reasoning, undefined);
});

test("a conversation in which nothing was said leaves nothing behind, any other is ended and opened again", async (t) => {
  const chat = await talk(t);
  const { store } = chat;
  await chat.conversation.setTitle("Nothing");
  const empty = chat.conversation.agent.sessionId;
  await chat.begin();
  assert.equal(await store.get(empty), null);
  chat.server.script({ text: "hello" });
  await chat.say("hi");
  const { sessionId } = chat.conversation.agent;
  await chat.conversation.close("cli_close");
  assert.equal((await store.get(sessionId))?.endReason, "cli_close");
  await chat.resume();
  const session = await store.get(sessionId);
  assert.deepEqual([session?.endedAt, session?.endReason], [null, null]);
});

test("a resumed conversation stands where it stood, unless the user wants to stay here", async (t) => {
  const chat = await talk(t);
  chat.server.script({ text: "hello" }, { toolCalls: [{ name: "terminal", arguments: { command: "pwd" } }] });
  chat.server.script({ text: "there" }, { toolCalls: [{ name: "terminal", arguments: { command: "pwd" } }] });
  chat.server.script({ text: "here" });
  await chat.say("hi");
  const here = join(chat.project, "here");
  await mkdir(here);
  const stoodIn = async () => {
    const results = (await chat.say("where are you?")).filter((event) => event.type === "tool_end");
    return results.map(({ result }) => JSON.parse(result).output.trim());
  };
  await chat.resume({ cwd: here });
  assert.deepEqual(await stoodIn(), [chat.project]);
  await chat.resume({ cwd: here, restoreCwd: false });
  assert.deepEqual(await stoodIn(), [here]);
});

test("after a switch to another provider the next switch stays there", async (t) => {
  const other = await ModelServer.start();
  t.after(() => other.close());
  const chat = await talk(t, { config: `providers: { other: { api: "${other.url}", api_key: key-of-the-other } }\n` });
  const { conversation } = chat;
  await conversation.switchModel({ model: "big", provider: "other" });
  assert.match(await conversation.switchModel({ model: "small" }), /^Now using small \(other\)/);
  other.script({ text: "from the other" });
  await chat.say("hi");
  assert.equal(other.last.body.model, "small");
});
