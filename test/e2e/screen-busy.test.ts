// What a user may do on the screen while the agent is at work: prompts beside the conversation, a queue, steering, sub-agents.
import assert from "node:assert/strict";
import { after, before, beforeEach, describe, test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { ModelServer } from "../support/model-server/server.ts";
import { answerBy, askedWith, SEEN } from "../support/screen-rig.ts";
import { modelConfig, tempHome } from "../support/temp-home.ts";
import { TerminalScreen, tmuxMissing } from "../support/terminal-screen.ts";

const WAITING = "waiting for fake-model";

describe("the screen while the agent works", { skip: tmuxMissing() }, () => {
  let server: ModelServer;
  before(async () => {
    server = await ModelServer.start();
  });
  beforeEach(() => void server.clear());
  after(() => server.close());

  const answer = (replies: Parameters<typeof answerBy>[1]) => answerBy(server, replies);
  const asked = (words: string) => askedWith(server, words);
  const open = async (config = "") => {
    const at = await tempHome({ "config.yaml": modelConfig(server) + SEEN + config });
    const screen = await TerminalScreen.start([], { home: at });
    await screen.waitFor("fake-model");
    return {
      screen,
      async [Symbol.asyncDispose]() {
        await screen[Symbol.asyncDispose]();
        await at[Symbol.asyncDispose]();
      },
    };
  };

  test("a prompt in the background is answered beside the conversation, which never hears of it", async () => {
    await using opened = await open();
    const { screen } = opened;
    const counted = Promise.withResolvers<void>();
    answer({
      "count the herons": () => counted.promise.then(() => ({ text: "Forty-two herons." })),
      "never ends": async (request) => {
        await request.clientLeft;
        return { text: "" };
      },
      "good morning": () => ({ text: "Morning." }),
      "what now": () => ({ text: "Nothing new." }),
    });
    await screen.say("/background count the herons");
    const started = await screen.waitFor(/▶ bg_\d{6}_[0-9a-f]{6} started: count the herons/);
    const id = /bg_\d{6}_[0-9a-f]{6}/.exec(started)?.[0] ?? "";
    await screen.waitFor(/⚕ fake-model.*▶ 1/, { history: false });
    await screen.say("good morning");
    await screen.waitFor("Morning.");
    await screen.say("/agents");
    await screen.waitFor(new RegExp(`❯ 1\\. count the herons +background .*${id}`));
    await screen.press("Enter");
    await screen.waitFor("2. Stop it");
    await screen.press("Escape");
    await screen.waitForGone("2. Stop it");
    counted.resolve();
    await screen.waitFor("Forty-two herons.");
    await screen.waitFor(new RegExp(`▶ ${id} · count the herons`));
    await screen.say("what now");
    await screen.waitFor("Nothing new.");
    const [beside] = asked("count the herons");
    const [inside] = asked("what now");
    assert.ok(beside && inside);
    assert.deepEqual(beside.body.tools, inside.body.tools, "the same tools");
    assert.equal(beside.body.model, inside.body.model);
    assert.equal(beside.body.messages.length, 2, "no history");
    assert.doesNotMatch(inside.raw, /heron/i);

    await screen.say("/bg this never ends");
    await screen.waitFor("started: this never ends");
    await screen.say("/stop");
    await screen.waitFor("Only background prompts are running");
    const second = /(bg_\S+) started: this never ends/.exec(await screen.text({ history: true }))?.[1] ?? "";
    await screen.say(`/agents stop ${second}`);
    await screen.waitFor("stopped before it was done");
    await asked("never ends")[0]?.clientLeft;
    await screen.say("/quit");
    assert.equal(await screen.exitCode(), 0);
  });

  test("what is queued gets a turn each, in order; steering that nothing carried becomes a message", async () => {
    await using opened = await open();
    const { screen } = opened;
    const slow = Promise.withResolvers<void>();
    answer({
      "slow thing": () => slow.promise.then(() => ({ text: "Slow answered." })),
      "queued one": () => ({ text: "One answered." }),
      "queued two": () => ({ text: "Two answered." }),
      "be brief": () => ({ text: "Brief answered." }),
      "hello there": () => ({ text: "Hello answered." }),
    });
    await screen.say("/steer hello there");
    await screen.waitFor("Hello answered.");
    await screen.say("slow thing");
    await screen.waitFor(WAITING, { history: false });
    await screen.say("/queue queued one");
    await screen.say("/q queued two");
    await screen.say("/queue");
    await screen.waitFor(/1\. queued one\n❯ 2\. queued two/);
    await screen.press("Escape");
    await screen.waitForGone("Queue (2)");
    await screen.say("/steer be brief");
    await screen.waitFor("↪ with the next tool result: be brief");
    slow.resolve();
    const text = await screen.waitFor("Two answered.");
    assert.match(text, /Slow answered\.[\s\S]*Brief answered\.[\s\S]*One answered\.[\s\S]*Two answered\./);
    assert.deepEqual(
      ["slow thing", "be brief", "queued one", "queued two"].map((words) => asked(words).length),
      [1, 1, 1, 1],
    );
  });

  test("a word in between does not throw away the work of sub-agents; /stop does", async () => {
    await using opened = await open();
    const { screen } = opened;
    answer({
      "ask a helper": () => ({ toolCalls: [{ name: "delegate_task", arguments: { goal: "look for herons" } }] }),
      "look for herons": async (request) => {
        await request.clientLeft;
        return { text: "" };
      },
      "other thing": () => ({ text: "Other answered." }),
    });
    await screen.say("ask a helper");
    await screen.waitFor(/look for herons/);
    for (let tries = 0; asked("look for herons").length === 0 && tries < 1200; tries++) await pause(50);
    await screen.say("other thing");
    await screen.waitFor(/▶ next: other thing/);
    await screen.waitFor("Sub-agents are running: your message is sent");
    await screen.say("/stop");
    await asked("look for herons")[0]?.clientLeft;
    await screen.waitFor("⏹ stopped");
    await screen.waitFor("Other answered.");
  });

  test("/new asks while the agent works on, and stops it after the yes", async () => {
    await using opened = await open();
    const { screen } = opened;
    const slow = Promise.withResolvers<void>();
    answer({
      "slow thing": () => slow.promise.then(() => ({ text: "Slow answered." })),
      "endless thing": async (request) => {
        await request.clientLeft;
        return { text: "" };
      },
    });
    await screen.say("slow thing");
    await screen.waitFor(WAITING, { history: false });
    await screen.say("/new");
    await screen.waitFor("Start a new conversation?");
    await screen.press("Enter");
    await screen.waitFor("Nothing changed.");
    slow.resolve();
    await screen.waitFor("Slow answered.");
    await screen.say("endless thing");
    await screen.waitFor(WAITING, { history: false });
    await screen.say("/new");
    await screen.waitFor("Start a new conversation?", { history: false });
    await screen.press("Up", "Up", "Enter");
    await asked("endless thing")[0]?.clientLeft;
    await screen.waitFor("Started a new conversation");
  });
});
