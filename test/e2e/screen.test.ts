import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readdir, readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { after, before, beforeEach, describe, test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import type { RecordedRequest, Reply } from "../support/model-server/script.ts";
import { ModelServer } from "../support/model-server/server.ts";
import { launcher } from "../support/run-hermes.ts";
import { modelConfig, type TempHome, tempHome } from "../support/temp-home.ts";
import { TerminalScreen, tmuxMissing } from "../support/terminal-screen.ts";

const SEEN = "onboarding:\n  seen:\n    busy_input_prompt: true\n    tool_progress_prompt: true\n";

/** The newest message of a request. */
function newest(request: RecordedRequest): { role: string; text: string } {
  const { role, content } = request.body.messages.at(-1);
  return { role, text: typeof content === "string" ? content : JSON.stringify(content) };
}

describe("the interactive screen", { skip: tmuxMissing() }, () => {
  let server: ModelServer;
  before(async () => {
    server = await ModelServer.start();
  });
  beforeEach(() => void server.clear());
  after(() => server.close());

  /** Replies by what was said last, not by order: side calls of the program do not disturb the script. */
  function answer(replies: Readonly<Record<string, (request: RecordedRequest) => Reply | Promise<Reply>>>): void {
    server.otherwise((request) => {
      const { role, text } = newest(request);
      if (role === "tool") return replies["tool:"]?.(request) ?? { text: "ok" };
      // Messages that were never answered come joined; the last one counts.
      const place = (key: string) => text.lastIndexOf(key);
      const [key] = Object.keys(replies).sort((one, other) => place(other) - place(one));
      return (key !== undefined && place(key) >= 0 && replies[key]?.(request)) || { text: "ok" };
    });
  }
  const home = (config = "") => tempHome({ "config.yaml": modelConfig(server) + SEEN + config });
  const open = async (at: TempHome, args: readonly string[] = [], size: { columns?: number; rows?: number } = {}) => {
    const screen = await TerminalScreen.start(args, { home: at, ...size });
    await screen.waitFor("fake-model");
    return screen;
  };

  test("a turn shows its tool, the change and the answer; the session is told at the end", async () => {
    await using at = await home();
    await using screen = await open(at);
    answer({
      写一个文件: () => ({
        toolCalls: [{ name: "write_file", arguments: { path: "数据.txt", content: "one\ntwo\n" } }],
      }),
      "tool:": () => ({
        text: "Done: **数据.txt** has `two` lines.\n\n| 名称 | n |\n|---|---|\n| 行 | 2 |\n\nThe end.",
      }),
    });
    await screen.say("写一个文件 🙂");
    const text = await screen.waitFor("The end.");
    assert.match(text, /❯ 写一个文件 🙂/);
    assert.match(text, /┊ ✍️ write +数据\.txt +\d+\.\ds/u);
    assert.match(text, /1 \+one\n2 \+two/);
    assert.match(text, /Done: 数据\.txt has two lines\./);
    assert.match(text, / 名称 │ n\n─+┼─+\n 行 {3}│ 2/);
    assert.equal(await readFile(join(at.project, "数据.txt"), "utf8"), "one\ntwo\n");
    assert.ok(!server.requests.some((request) => request.raw.includes("+one")), "the diff is for the user alone");

    await screen.say("/quit");
    assert.equal(await screen.exitCode(), 0);
    assert.match(await screen.waitFor("Messages:"), /hermes --resume \d{8}_\d{6}_[0-9a-f]{6}\n/);
    const [file] = (await readdir(at.dir)).filter((name) => name === ".hermes_history");
    assert.equal((await stat(at.at(file ?? "missing"))).mode & 0o777, 0o600);
  });

  test("dangerous commands are asked about, and a clarification is answered", async () => {
    await using at = await home();
    await writeFile(join(at.project, "marker-of-this-test.txt"), "");
    await using screen = await open(at);
    answer({
      "clean up": () => ({
        toolCalls: [{ name: "terminal", arguments: { command: "chmod 666 marker-of-this-test.txt" } }],
      }),
      "which colour": () => ({
        toolCalls: [{ name: "clarify", arguments: { question: "Which one?", choices: ["red", "blue"] } }],
      }),
      "tool:": (request) => ({ text: `Heard: ${/blue|DENIED|"exit_code":\s*0/.exec(newest(request).text)?.[0]}` }),
    });
    await screen.type("a draft to keep");
    await screen.press("C-s");
    await screen.waitFor("Draft stashed");
    await screen.say("please clean up");
    assert.match(
      await screen.waitFor("don't run it"),
      /chmod 666 marker-of-this-test.txt[\s\S]*1\. Run it once[\s\S]*tell the agent why/,
    );
    await screen.press("Enter");
    await screen.waitFor(/not allowed: chmod 666 marker-of-this-test.txt/);
    await screen.waitFor("Heard: DENIED");

    await screen.say("please clean up again");
    await screen.waitFor("don't run it", { history: false });
    await screen.press("1");
    await screen.waitFor(/Heard: "exit_code": ?0/);

    await screen.say("which colour");
    await screen.waitFor(/2\. blue/);
    await screen.press("Down", "Enter");
    await screen.waitFor("Heard: blue");
    await screen.press("C-s");
    await screen.waitFor(/❯ a draft to keep/, { history: false });
  });

  test("typing while the agent works stops it, waits, or steers, as configured", async () => {
    await using at = await home();
    await using screen = await open(at);
    const slow = Promise.withResolvers<void>();
    const tool = Promise.withResolvers<void>();
    answer({
      "first thing": async (request) => {
        await request.clientLeft;
        return { text: "never seen" };
      },
      "second thing": () => ({ text: "Second answered." }),
      "slow thing": () => slow.promise.then(() => ({ text: "Slow answered." })),
      "third thing": () => ({ text: "Third answered." }),
      "use a tool": async () => {
        await tool.promise;
        return { toolCalls: [{ name: "todo", arguments: {} }] };
      },
      "tool:": (request) => ({ text: newest(request).text.includes("be brief") ? "Brief." : "Not steered." }),
    });
    await screen.say("first thing");
    await screen.waitFor("waiting for fake-model", { history: false });
    await screen.say("second thing");
    await screen.waitFor("Second answered.");
    assert.match(await screen.text({ history: true }), /⏹ stopped/);

    await screen.say("/busy queue");
    await screen.waitFor("queues the message until");
    await screen.say("slow thing");
    await screen.waitFor("waiting for fake-model", { history: false });
    await screen.say("third thing");
    await screen.waitFor(/▶ next: third thing/);
    slow.resolve();
    assert.match(await screen.waitFor("Third answered."), /Slow answered\.[\s\S]*Third answered\./);

    await screen.say("/busy steer");
    await screen.waitFor("sends the message along with the next tool result");
    await screen.say("use a tool");
    await screen.waitFor("waiting for fake-model", { history: false });
    await screen.say("be brief");
    await screen.waitFor("↪ be brief");
    await screen.say("/model other");
    await screen.waitFor(/\/model cannot run during a turn/);
    tool.resolve();
    await screen.waitFor("Brief.");
  });

  test("Ctrl+C stops a turn, clears a draft, and leaves on the second press", async () => {
    await using at = await home();
    await using screen = await open(at);
    answer({
      wait: async (request) => {
        await request.clientLeft;
        return { text: "" };
      },
    });
    await screen.say("wait");
    await screen.waitFor("waiting for fake-model", { history: false });
    await screen.press("C-c");
    await screen.waitFor("⏹ stopped");
    await screen.waitFor(/^❯ *$/m, { history: false });
    await screen.type("half a thought");
    await screen.waitFor("❯ half a thought", { history: false });
    await screen.press("C-c");
    await screen.waitForGone("❯ half a thought");
    await screen.press("C-c");
    await screen.waitFor("press Ctrl+C again to quit");
    await screen.press("C-c");
    assert.equal(await screen.exitCode(), 0);
    await screen.waitFor("Resume this conversation with:");
  });

  test("commands: title, model, usage, new, resume, help, undo", async () => {
    await using at = await home("quick_commands:\n  hello:\n    type: exec\n    command: echo quick-$((40+2))\n");
    await using screen = await open(at);
    answer({
      "remember the heron": () => ({ text: "A heron." }),
      "be refused": () => ({ fault: "status", status: 401, body: { error: { message: "invalid api key" } } }),
    });
    await screen.say("be refused");
    await screen.waitFor(/⚠ .*key/i);
    await screen.say("/new now");
    await screen.waitFor("Started a new conversation");
    await screen.say("remember the heron");
    await screen.waitFor("A heron.");
    await screen.say("/title Birds");
    await screen.waitFor("Title: Birds");
    await screen.say("/usage");
    await screen.waitFor(/API calls: +[12]/);
    await screen.waitFor(/^main +1 /m);
    await screen.say("/helo");
    await screen.waitFor("Did you mean /hello, /help?");
    await screen.say("/hello");
    await screen.waitFor("quick-42");
    await screen.say("/new now Fish");
    await screen.waitFor("Started a new conversation: Fish");
    await screen.waitFor(/⚕ fake-model │ –\//, { history: false });
    await screen.type("/resume Bir");
    await screen.waitFor(/^ *→ Birds/m, { history: false });
    await screen.press("Enter");
    await screen.press("Enter");
    await screen.waitFor("resumed Birds, 2 messages");
    // As full as its last request was.
    await screen.waitFor(/⚕ fake-model │ [\d.]+K\/128K │ \[.*\] \d+%/, { history: false });
    await screen.say("/undo");
    await screen.waitFor("Undo the last message?");
    await screen.press("1");
    await screen.waitFor("Undid 1 message and its answers. Your text is back in the input line.");
    await screen.waitFor(/❯ remember the heron\s*\n─+\n⚕ /, { history: false });
    await screen.press("C-c");
    await screen.say("/model no-such-provider:x --provider nowhere");
    await screen.waitFor("Still using fake-model");
    await screen.say("/help");
    await screen.waitFor(/\/quit \[--delete\]/);
    await screen.say("/quit");
    assert.equal(await screen.exitCode(), 0);
  });

  test("keys: several lines, history, search, a shadow, the user's editor", async () => {
    await using at = await home();
    await writeFile(at.at("editor.sh"), '#!/bin/sh\nprintf "%s and more" "$(cat "$1")" > "$1"\n', { mode: 0o755 });
    await using screen = await TerminalScreen.start([], { home: at, env: { EDITOR: at.at("editor.sh") } });
    // The first frame is enough to type; the conversation may still be opening.
    await screen.waitFor("❯");
    await screen.type("typed before it is ready\\");
    await screen.press("Enter");
    await screen.type("second line");
    await screen.press("C-j");
    await screen.type("third line");
    await screen.waitFor(/❯ typed before it is ready\n {2}second line\n {2}third line/);
    await screen.press("Enter");
    await screen.waitFor(/^ok$/m);
    const [first] = server.requests;
    assert.equal(first && newest(first).text, "typed before it is ready\nsecond line\nthird line");

    await screen.say("what about herons");
    await screen.waitFor(/herons[\s\S]*^ok$/m);
    await screen.type("draft");
    await screen.press("Up");
    await screen.waitFor(/❯ what about herons *\n─/, { history: false });
    await screen.press("Down");
    await screen.waitFor(/❯ draft *\n─/, { history: false });
    await screen.press("C-g");
    await screen.waitFor(/❯ draft and more *\n─/, { history: false });
    await screen.press("C-c");
    await screen.type("what ab");
    await screen.waitFor(/❯ what about herons *\n─/, { history: false });
    await screen.press("C-c", "C-r");
    await screen.waitFor("1. what about herons", { history: false });
    await screen.type("second");
    await screen.waitFor("filter: second", { history: false });
    await screen.press("Enter");
    await screen.waitFor(/❯ typed before it is ready\n {2}second line/, { history: false });
    await screen.press("C-c", "C-d");
    assert.equal(await screen.exitCode(), 0);
  });

  test("what is typed before the program reads keys is a message for each Enter, and a command if it is one", async () => {
    await using at = await home();
    const command = ["sh", "-c", 'sleep 2; exec "$@"', "sh", process.execPath, launcher];
    await using screen = await TerminalScreen.start([], { home: at, command });
    await screen.say("first thing");
    await screen.say("/version");
    await screen.say("second thing");
    await screen.type("a draft");
    await screen.waitFor(/second thing[\s\S]*^ok$/m);
    await screen.waitFor("Hermes Agent v");
    await screen.waitFor(/❯ a draft *\n─/, { history: false });
    assert.deepEqual(
      server.requests.map((request) => newest(request).text).filter((text) => !text.startsWith("User: ")),
      ["first thing", "second thing"],
    );
  });

  test("a paste of 200 lines is short on the screen and whole for the model; a resize leaves no ghosts", async () => {
    await using at = await home();
    await using screen = await open(at);
    const lines = Array.from({ length: 200 }, (_, i) => `pasted line ${i}`).join("\n");
    await screen.type("look: ");
    await screen.paste(lines);
    await screen.waitFor(/look: \[Pasted text #1: 200 lines → /);
    await screen.press("Enter");
    await screen.waitFor(/^ok$/m);
    const sent = server.requests.find((request) => newest(request).text.startsWith("look: "));
    assert.equal(newest(sent as RecordedRequest).text, `look: ${lines}`); // it was found: the answer came
    assert.match(await readFile(at.at(".hermes_history"), "utf8"), /\+look: \[Pasted text #1: 200 lines/);

    await screen.type("汉字汉字");
    for (const [columns, rows] of [
      [40, 20],
      [90, 30],
      [60, 25],
      [120, 30],
    ] as const) {
      await screen.resize(columns, rows);
      const width = columns < 52 ? "⚕ fake-model · " : "%";
      await screen.waitFor(width, { history: false });
      await screen.waitFor(new RegExp(`^─{${columns}}$`, "m"), { history: false });
      const text = await screen.text();
      assert.equal(text.match(/❯ 汉字汉字/g)?.length, 1, text);
      assert.equal(text.match(/^⚕ fake-model/gm)?.length, 1, text);
    }
    await screen.press("BSpace", "BSpace");
    await screen.waitFor(/❯ 汉字 *\n/, { history: false });
  });

  test("after kill -9 the conversation goes on with what was said", async () => {
    await using at = await home();
    answer({
      "unfinished business": async (request) => {
        await request.clientLeft;
        return { text: "" };
      },
      "go on": () => ({ text: "gladly" }),
    });
    {
      await using screen = await open(at);
      await screen.say("first words");
      await screen.waitFor(/^ok$/m);
      await screen.say("unfinished business");
      await screen.waitFor("waiting for fake-model", { history: false });
      process.kill(await screen.pid(), "SIGKILL");
      await screen.waitFor("[exit 137]");
    }
    await using screen = await open(at, ["--continue"]);
    const text = await screen.waitFor("unfinished business");
    assert.match(text, /resumed [\s\S]*❯ first words[\s\S]*ok[\s\S]*❯ unfinished business/);
    await screen.say("go on");
    await screen.waitFor("gladly");
  });

  /** Something nobody ends: a timer, started with the program. */
  async function held(at: TempHome): Promise<Record<string, string>> {
    await writeFile(at.at("held.mjs"), "setInterval(() => undefined, 1000);\n");
    return { NODE_OPTIONS: `--import ${at.at("held.mjs")}` };
  }

  test("a closed terminal ends the conversation properly, and the process with it", async () => {
    await using at = await home();
    let pid = 0;
    {
      await using screen = await TerminalScreen.start([], { home: at, env: await held(at) });
      await screen.waitFor("fake-model");
      await screen.say("hello");
      await screen.waitFor(/^ok$/m);
      await screen.say("/new");
      await screen.waitFor("Yes, and don't ask again");
      pid = await screen.pid();
    }
    const database = new DatabaseSync(at.at("state.db"), { readOnly: true, timeout: 10_000 });
    const reason = () => database.prepare("SELECT end_reason FROM sessions").get()?.end_reason;
    for (let tries = 0; reason() === null && tries < 1200; tries++) await pause(50);
    assert.equal(reason(), "cli_close");
    database.close();
    // Without a parent it may stay in the table of processes until somebody asks for its code.
    const running = () => /^[^Z]/.test(spawnSync("ps", ["-o", "stat=", "-p", `${pid}`], { encoding: "utf8" }).stdout);
    for (let tries = 0; running() && tries < 1200; tries++) await pause(50);
    assert.equal(running(), false);
  });

  test("a goodbye is the end, whatever still runs", async () => {
    await using at = await home();
    await using screen = await TerminalScreen.start([], { home: at, env: await held(at) });
    await screen.waitFor("fake-model");
    await screen.say("/quit");
    assert.equal(await screen.exitCode(), 0);
  });

  test("a signal and a crash both leave a usable terminal", async () => {
    await using at = await home();
    await writeFile(at.at("crash.mjs"), 'process.on("SIGUSR2", () => { throw new Error("a test crash"); });\n');
    const env = { NODE_OPTIONS: `--import ${at.at("crash.mjs")}` };
    for (const [signal, code] of [
      ["SIGTERM", 143],
      ["SIGHUP", 129],
      ["SIGINT", 130],
      ["SIGUSR2", 1],
    ] as const) {
      await using screen = await TerminalScreen.start([], { home: at, env });
      await screen.waitFor("fake-model");
      process.kill(await screen.pid(), signal);
      assert.equal(await screen.exitCode(), code);
      if (code !== 1) continue;
      const text = await screen.waitFor(/hermes: a test crash \(details: .*errors\.log\)/);
      assert.doesNotMatch(text, /\n +at /);
    }
  });
});
