// A conversation goes on: after a normal end, after kill -9 in a stream and in a tool call, under another process.
import assert from "node:assert/strict";
import { readdir } from "node:fs/promises";
import { after, before, beforeEach, describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { ModelServer } from "../support/model-server/server.ts";
import { runHermes, startHermes } from "../support/run-hermes.ts";
import { oneOf } from "../support/sample.ts";
import { modelConfig, tempHome } from "../support/temp-home.ts";
import { validateChat } from "../support/wire-validators.ts";

interface ChatMessage {
  readonly role: string;
  readonly content: string | null;
}

describe("a conversation", () => {
  let server: ModelServer;
  before(async () => {
    server = await ModelServer.start();
  });
  beforeEach(() => void server.clear());
  after(() => server.close());

  const texts = () =>
    server.last.body.messages
      .filter((m: ChatMessage) => m.role !== "system")
      .map((m: ChatMessage) => `${m.role}: ${m.content}`);

  test("goes on with --continue, and the model sees what was said", async () => {
    await using home = await tempHome({ "config.yaml": modelConfig(server) });
    server.script({ text: "Hello Ada." }, { text: "You are Ada." });
    await runHermes(["-z", "I am Ada."], { home });
    const { stdout, code } = await runHermes(["-z", "Who am I?", "--continue"], { home });
    assert.equal(stdout, "You are Ada.\n");
    assert.equal(code, 0);
    assert.deepEqual(texts(), ["user: I am Ada.", "assistant: Hello Ada.", "user: Who am I?"]);
  });

  test("is found by id, by the beginning of its id, and by its title without quotes", async () => {
    await using home = await tempHome({ "config.yaml": modelConfig(server) });
    server.otherwise({ text: "ok" });
    const first = JSON.parse((await runHermes(["-z", "one", "--json"], { home })).stdout);
    const renamed = await runHermes(["sessions", "rename", first.session_id, "my", "great", "plan"], { home });
    assert.equal(renamed.code, 0, renamed.stderr);
    const names = [[first.session_id], [first.session_id.slice(0, 17)], ["my", "great", "plan"]];
    for (const name of oneOf(names, "a name of a conversation")) {
      const { code, stderr, stdout } = await runHermes(["-r", ...name, "--json", "-z", "more"], { home });
      assert.equal(code, 0, stderr);
      assert.equal(JSON.parse(stdout).session_id, first.session_id);
    }
  });

  test("begun with the demo goes on with the model that was configured since", async () => {
    await using home = await tempHome();
    await runHermes(["-z", "help"], { home });
    await home.write("config.yaml", modelConfig(server));
    server.script({ text: "now it is me" });
    const { stdout, stderr } = await runHermes(["-z", "and now?", "--continue"], { home });
    assert.equal(stdout, "now it is me\n");
    assert.equal(stderr, "");
  });

  test("goes on with another provider when the model names one", async () => {
    await using home = await tempHome({ "config.yaml": modelConfig(server) });
    await runHermes(["-z", "one"], { home });
    server.clear();
    const { code, stderr } = await runHermes(["-z", "two", "--continue", "-m", "openrouter:some/model"], { home });
    assert.match(stderr, /OPENROUTER_API_KEY/);
    assert.equal(code, 1);
    assert.equal(server.requests.length, 0, "nothing goes to the provider of before");
  });

  test("that does not exist is an error that says how to find one", async () => {
    await using home = await tempHome({ "config.yaml": modelConfig(server) });
    const { stderr, code } = await runHermes(["-z", "x", "--resume", "nobody"], { home });
    assert.match(stderr, /nobody.*hermes sessions list/s);
    assert.equal(code, 1);
  });

  test("survives kill -9 in the middle of a stream: the user's message is there, the history legal", async () => {
    await using home = await tempHome({ "config.yaml": modelConfig(server) });
    server.script({ fault: "stall", after: 4, answer: { text: "a long answer that never ends" } });
    const child = startHermes(["-z", "tell me everything"], { home });
    await waitFor(() => server.requests.length === 1);
    await sleep(100);
    child.kill("SIGKILL");
    await child.result;
    server.script({ text: "going on" });
    const { stdout, code, stderr } = await runHermes(["-z", "and now?", "--continue"], { home });
    assert.equal(code, 0, stderr);
    assert.equal(stdout, "going on\n");
    validateChat(server.last.raw);
    assert.match(JSON.stringify(server.last.body.messages), /tell me everything/);
  });

  test("survives kill -9 in the middle of a tool call", async () => {
    await using home = await tempHome({ "config.yaml": modelConfig(server) });
    server.script({ toolCalls: [{ name: "terminal", arguments: { command: "touch started; sleep 30" } }] });
    const child = startHermes(["-z", "wait a bit"], { home });
    await waitFor(async () => (await readdir(home.project)).includes("started"));
    child.kill("SIGKILL");
    await child.result;
    server.script({ text: "back again" });
    const { stdout, code, stderr } = await runHermes(["-z", "what happened?", "--continue"], { home });
    assert.equal(code, 0, stderr);
    assert.equal(stdout, "back again\n");
    validateChat(server.last.raw);
    assert.match(JSON.stringify(server.last.body.messages), /wait a bit/);
  });

  test("sends the same bytes again: each request begins with the one before it, also in another process", async () => {
    await using home = await tempHome({ "config.yaml": modelConfig(server) });
    server.otherwise({ text: "ok" });
    server.script({ toolCalls: [{ name: "terminal", arguments: { command: "echo hello" } }] }, { text: "done" });
    await runHermes(["-z", "first"], { home });
    await runHermes(["-z", "second", "--continue"], { home });
    await runHermes(["-z", "third", "--continue"], { home });
    const prompts = server.requests.map(({ body }) => ({
      ...body,
      messages: body.messages.map((m: unknown) => JSON.stringify(m)),
    }));
    for (const [index, next] of prompts.slice(1).entries()) {
      const previous = prompts[index];
      assert.deepEqual(next.tools, previous.tools);
      assert.deepEqual(next.messages.slice(0, previous.messages.length), previous.messages, `request ${index + 2}`);
    }
  });
});

async function waitFor(condition: () => boolean | Promise<boolean>): Promise<void> {
  for (let i = 0; i < 2400; i++) {
    if (await condition()) return;
    await sleep(25);
  }
  throw new Error("waited a minute for nothing");
}
