// What the program learns from its conversations, seen from outside: a fake model that learns, and the files and prompts that follow.
import assert from "node:assert/strict";
import { access, readFile } from "node:fs/promises";
import { after, before, beforeEach, describe, test } from "node:test";
import type { RecordedRequest, Reply } from "../support/model-server/script.ts";
import { ModelServer } from "../support/model-server/server.ts";
import { runHermes, startHermes } from "../support/run-hermes.ts";
import { oneOf } from "../support/sample.ts";
import { skillText } from "../support/skills-home.ts";
import { modelConfig, type TempHome, tempHome } from "../support/temp-home.ts";
import { TerminalScreen, tmuxMissing } from "../support/terminal-screen.ts";
import { validateChat } from "../support/wire-validators.ts";

const isReview = ({ raw }: RecordedRequest) => raw.includes("Review the conversation above");
const isFlush = ({ raw }: RecordedRequest) => raw.includes("[System: This conversation is about to be");
const isMain = (request: RecordedRequest) => !isReview(request) && !isFlush(request);
const learning = (memory: number, skills = 0) =>
  `memory:\n  nudge_interval: ${memory}\nskills:\n  creation_nudge_interval: ${skills}\n`;
const SEEN = "onboarding:\n  seen:\n    busy_input_prompt: true\n    tool_progress_prompt: true\n";

const remember = (content: string, target = "user") => ({
  toolCalls: [{ name: "memory", arguments: { action: "add", target, content } }],
});

describe("learning", () => {
  let server: ModelServer;
  before(async () => {
    server = await ModelServer.start();
  });
  beforeEach(() => void server.clear());
  after(() => server.close());

  /** The reviews get these replies in order, everything else is answered with ok. */
  function reviewsGet(...replies: Reply[]): void {
    const left = [...replies];
    server.otherwise((request) =>
      isReview(request) ? (left.shift() ?? { text: "Nothing to save." }) : { text: "ok" },
    );
  }
  const reviews = () => server.requests.filter(isReview);
  const ask = (home: TempHome, text: string, ...args: string[]) => runHermes(["chat", "-q", text, ...args], { home });
  const promptOf = (request: RecordedRequest) => String(request.body.messages[0].content);

  const MODES = ["chat_completions", "codex_responses", "anthropic_messages"] as const;
  for (const mode of oneOf(MODES, "a wire for a review")) {
    test(`on ${mode} a review repeats the conversation byte for byte: over 95 % of it is read from the cache`, async () => {
      await using home = await tempHome({ "config.yaml": modelConfig(server, mode) + learning(1, 3) });
      const flow: Reply[] = [
        { toolCalls: [{ name: "todo", arguments: {} }], thinking: "let me see" },
        { toolCalls: [{ name: "todo", arguments: { merge: true } }] },
        { toolCalls: [{ name: "session_search", arguments: { query: "lorem" } }] },
        { text: "done", thinking: "hm" },
      ];
      const learned: Reply[] = [
        { toolCalls: [{ name: "terminal", arguments: { command: "touch stolen" } }] },
        remember("Likes Latin"),
        { text: "Saved." },
      ];
      server.otherwise((request) => (isReview(request) ? learned.shift() : flow.shift()) ?? { text: "ok" });
      const { code, stderr } = await ask(home, "lorem ipsum dolor sit amet 你好 ".repeat(3000), "--learn");
      assert.equal(code, 0, stderr);
      assert.equal(reviews().length, 3);
      for (const { cachedChars, promptChars } of reviews()) assert.ok(cachedChars / promptChars > 0.95);
      await assert.rejects(access(`${home.project}/stolen`), "nothing but memory and skills is run");
      assert.equal(await readFile(home.at("memories", "USER.md"), "utf8"), "Likes Latin");
      const blame = await readFile(home.at("logs", "agent.log"), "utf8");
      assert.doesNotMatch(blame, /does not begin with the one before it/);
    });
  }

  test("a script is not kept waiting: what is due waits for a run with --learn", async () => {
    await using home = await tempHome({ "config.yaml": modelConfig(server) + learning(1) });
    reviewsGet(remember("Is called Ada"), { text: "Saved." });
    await runHermes(["-z", "one"], { home });
    assert.equal(reviews().length, 0);
    const { stdout, stderr, code } = await runHermes(["-z", "two", "--continue", "--learn"], { home });
    assert.deepEqual([stdout, code], ["ok\n", 0], stderr);
    assert.equal(stderr, "  💾 Self-improvement review: User profile updated\n");
  });

  test("a kill in the middle of a review loses nothing: what it saved stays, the session goes on, the review is made up for", async () => {
    await using home = await tempHome({ "config.yaml": modelConfig(server) + learning(1) });
    const stalled = Promise.withResolvers<void>();
    const replies: (() => Reply)[] = [
      () => remember("Is called Ada"),
      () => {
        stalled.resolve();
        return { fault: "stall", after: 1, answer: { text: "thinking" } };
      },
    ];
    server.otherwise((request) => (isReview(request) ? replies.shift()?.() : undefined) ?? { text: "ok" });
    const child = startHermes(["chat", "-q", "one", "--learn"], { home });
    await stalled.promise;
    child.kill("SIGKILL");
    assert.equal((await child.result).signal, "SIGKILL");

    assert.equal(await readFile(home.at("memories", "USER.md"), "utf8"), "Is called Ada");
    server.clear();
    reviewsGet({ text: "Nothing to save." });
    await home.write("config.yaml", modelConfig(server) + learning(100));
    const next = await ask(home, "two", "--continue", "--learn");
    assert.equal(next.code, 0, next.stderr);
    const [main, review] = server.requests;
    validateChat(main?.raw ?? "");
    const said = main?.body.messages.slice(1).map(({ content }: { content: string }) => content);
    assert.deepEqual(said, ["one", "ok", "two"]);
    assert.ok(review && isReview(review), "it is looked at again");
  });

  test("a review whose model is down changes neither answer nor exit code", async () => {
    await using home = await tempHome({ "config.yaml": modelConfig(server) + learning(1) });
    server.otherwise((request) => (isReview(request) ? { fault: "status", status: 401 } : { text: "ok" }));
    const { stdout, stderr, code } = await runHermes(["-z", "hi", "--learn"], { home });
    assert.deepEqual([stdout, stderr, code], ["ok\n", "", 0]);
  });

  test("the demo model learns nothing and stays quiet", async () => {
    await using home = await tempHome({ "config.yaml": learning(1, 1) });
    const { code } = await ask(home, "list the files here", "--learn");
    assert.equal(code, 0);
    const { stdout } = await runHermes(["usage", "--by", "purpose", "--json"], { home });
    assert.deepEqual(
      JSON.parse(stdout).rows.map(({ purpose }: { purpose: string }) => purpose),
      ["main"],
    );
  });

  describe("on the screen", { skip: tmuxMissing() }, () => {
    const open = async (home: TempHome) => {
      const screen = await TerminalScreen.start([], { home });
      await screen.waitFor("fake-model");
      return screen;
    };

    test("ten turns, a review, and the next conversation knows what was learned; whose it is and what it cost can be seen", async () => {
      await using home = await tempHome({ "config.yaml": modelConfig(server) + SEEN });
      const learned: Reply[] = [remember("Is called Ada and writes Ada"), { text: "Saved." }];
      server.otherwise((request) =>
        isReview(request)
          ? (learned.shift() ?? { text: "Nothing to save." })
          : { text: `heard ${request.body.messages.at(-1).content}` },
      );
      await using screen = await open(home);
      for (let n = 1; n <= 10; n++) {
        assert.equal(reviews().length, 0, `no review before turn ${n}`);
        await screen.say(`question ${n}.`);
        await screen.waitFor(`heard question ${n}.`);
      }
      await screen.waitFor(/^ {2}💾 Self-improvement review: User profile updated$/m);
      await screen.press("C-d");
      assert.equal(await screen.exitCode(), 0);

      assert.equal(reviews().length, 2);
      assert.equal(server.requests.filter(isFlush).length, 0, "a review is last look enough");
      const tenth = server.requests.filter(isMain).at(-1);
      const [review] = reviews();
      assert.deepEqual(review?.body.tools, tenth?.body.tools);
      assert.deepEqual(review?.body.messages.slice(0, tenth?.body.messages.length), tenth?.body.messages);
      validateChat(reviews().at(-1)?.raw ?? "");

      server.clear();
      await ask(home, "a new conversation");
      assert.match(promptOf(server.last), /Is called Ada and writes Ada/);
      const history = await runHermes(["memory", "history", "--json"], { home });
      assert.match(history.stdout, /background_review/);
      const usage = JSON.parse((await runHermes(["usage", "--by", "purpose", "--json"], { home })).stdout);
      const row = usage.rows.find(({ purpose }: { purpose: string }) => purpose === "background_review");
      assert.equal(row.calls, 2);
      assert.ok(row.cache_read_tokens > 10 * row.input_tokens, "most of it was read from the cache");
    });

    test("a skill is written after the work, used as a command, and patched when it fails", async () => {
      await using home = await tempHome({ "config.yaml": modelConfig(server) + SEEN + learning(0, 2) });
      const content = skillText("ship-it", "Ship a package", "", "1. Run the wrong-command.\n");
      const patch = { action: "patch", name: "ship-it", old_string: "wrong-command", new_string: "right-command" };
      const reply = (request: RecordedRequest): Reply => {
        const { role, content: text } = request.body.messages.at(-1);
        if (isReview(request)) {
          if (role === "user")
            return { toolCalls: [{ name: "skill_manage", arguments: { action: "create", name: "ship-it", content } }] };
          return { text: "Saved." };
        }
        if (role === "user" && String(text).includes("wrong-command"))
          return { toolCalls: [{ name: "terminal", arguments: { command: "false" } }] };
        if (role === "user" && text === "ship the package") return { toolCalls: [{ name: "todo", arguments: {} }] };
        if (role === "tool" && String(text).includes("exit_code"))
          return { toolCalls: [{ name: "skill_manage", arguments: patch }] };
        if (role === "tool" && String(text).includes("ship-it")) return { text: "The skill is right now." };
        const tools = request.body.messages.filter((message: { role: string }) => message.role === "tool").length;
        return tools < 2
          ? { toolCalls: [{ name: "todo", arguments: { merge: true } }] }
          : { text: "The package is shipped." };
      };
      server.otherwise(reply);
      await using screen = await open(home);
      await screen.say("ship the package");
      await screen.waitFor("The package is shipped.");
      await screen.waitFor("💾 Self-improvement review: Skill 'ship-it' created.");
      assert.match(await readFile(home.at("skills/.usage.json"), "utf8"), /"created_by": ?"agent"/);
      await screen.say("/new");
      await screen.waitFor("Start a new conversation?");
      await screen.press("1");
      await screen.waitFor("Started a new conversation");
      await screen.say("/ship-it version 2");
      await screen.waitFor("The skill is right now.");
      const told = server.requests.find(({ raw }) => raw.includes("wrong-command") && raw.includes("version 2"));
      assert.ok(told, "the model was told the skill's steps");
      assert.match(await readFile(home.at("skills/ship-it/SKILL.md"), "utf8"), /Run the right-command/);
      await screen.press("C-d");
      assert.equal(await screen.exitCode(), 0);
    });

    test("the user goes on typing while a review thinks; leaving does not wait for it", async () => {
      await using home = await tempHome({ "config.yaml": modelConfig(server) + SEEN + learning(1) });
      server.otherwise((request) =>
        isReview(request)
          ? { fault: "stall", after: 1, answer: { text: "thinking" } }
          : { text: `answer to ${request.body.messages.at(-1).content}` },
      );
      await using screen = await open(home);
      await screen.say("first");
      await screen.waitFor("answer to first");
      await screen.say("second");
      await screen.waitFor("answer to second");
      assert.equal(reviews().length, 1);
      await screen.press("C-d");
      assert.equal(await screen.exitCode(), 0);
      // A tip of the day may speak of thinking too.
      const said = (await screen.text({ history: true })).replace(/^Tip: .*$/gm, "");
      assert.doesNotMatch(said, /thinking|💾/);
    });

    test("before a conversation is compressed the model may save, and the new prompt knows it", async () => {
      const config =
        modelConfig(server).replace("context_length: 128000", "context_length: 16000") + SEEN + learning(0);
      await using home = await tempHome({ "config.yaml": config });
      const isSummary = ({ raw }: RecordedRequest) => raw.includes("hand-over notes");
      const order: string[] = [];
      server.otherwise((request) => {
        if (isFlush(request)) {
          order.push("flush");
          return remember("Counts lorem ipsum", "memory");
        }
        if (isSummary(request)) {
          order.push("summary");
          return { text: "## Active Task\nNone\n" };
        }
        order.push("turn");
        return { text: `heard ${order.length}. ${"yes indeed ".repeat(300)}` };
      });
      await using screen = await open(home);
      for (let n = 1; n <= 12 && !order.includes("summary"); n++) {
        await screen.say(`turn ${n}`);
        await screen.waitFor(new RegExp(`❯ turn ${n}\\s[\\s\\S]*heard`));
      }
      const at = order.indexOf("summary");
      assert.deepEqual(order.slice(at - 1, at + 1), ["flush", "summary"]);
      await screen.waitFor("context compressed");
      await screen.say("and now?");
      await screen.waitFor(/❯ and now\?\s[\s\S]*heard/);
      assert.match(promptOf(server.last), /Counts lorem ipsum/);
    });

    test("after six turns a last look is taken before the end, after five none", async () => {
      await using home = await tempHome({ "config.yaml": `${modelConfig(server)}${SEEN}memory:\n  flush_wait: 60\n` });
      server.otherwise((request) =>
        isFlush(request)
          ? remember("Counts to six", "memory")
          : { text: `heard ${request.body.messages.at(-1).content}` },
      );
      const talk = async (from: number, to: number, ...args: string[]) => {
        const screen = await TerminalScreen.start(args, { home });
        await screen.waitFor("fake-model");
        for (let n = from; n <= to; n++) {
          await screen.say(`turn ${n}`);
          await screen.waitFor(`heard turn ${n}`);
        }
        await screen.press("C-d");
        assert.equal(await screen.exitCode(), 0);
        const text = await screen.text({ history: true });
        await screen[Symbol.asyncDispose]();
        return text;
      };
      assert.doesNotMatch(await talk(1, 5), /Saving memories/);
      assert.equal(server.requests.filter(isFlush).length, 0);
      assert.match(await talk(6, 6, "--continue"), /Saving memories[\s\S]*💾 Memory ➕ Counts to six/);
      const [flush] = server.requests.filter(isFlush);
      assert.ok(flush && flush.cachedChars / flush.promptChars > 0.9, "it goes on from the cache as well");
      assert.equal(await readFile(home.at("memories", "MEMORY.md"), "utf8"), "Counts to six");
      server.clear();
      await ask(home, "again", "--continue");
      assert.doesNotMatch(server.last.raw, /about to be closed/, "the conversation knows nothing of it");
    });
  });
});
