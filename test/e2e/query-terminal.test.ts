import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { missingBubblewrap } from "../support/engines/bubblewrap.ts";
import { ModelServer } from "../support/model-server/server.ts";
import { runHermes } from "../support/run-hermes.ts";
import { modelConfig, tempHome } from "../support/temp-home.ts";
import { TerminalScreen, tmuxMissing } from "../support/terminal-screen.ts";

describe("hermes chat -q at a terminal", { skip: tmuxMissing() }, () => {
  let server: ModelServer;
  before(async () => {
    server = await ModelServer.start();
  });
  after(() => server.close());

  test("Ctrl+C at a question ends the turn and the program, and the answer is not made up", async () => {
    await using home = await tempHome({ "config.yaml": modelConfig(server) });
    server.script({
      toolCalls: [{ name: "clarify", arguments: { question: "Tea or coffee?", choices: ["tea", "coffee"] } }],
    });
    await using screen = await TerminalScreen.start(["chat", "-q", "what shall I drink?"], { home });
    await screen.waitFor("2. coffee");
    await screen.press("C-c");
    assert.equal(await screen.exitCode(), 130);
    assert.equal(server.requests.length, 1);
    server.script({ text: "as you like" });
    await runHermes(["-z", "neither", "--continue"], { home });
    assert.match(server.last.raw, /ended the turn without an answer/);
  });

  test("a question that nobody answers in time keeps neither the turn nor the program", async () => {
    await using home = await tempHome({ "config.yaml": `clarify:\n  timeout: 1\n${modelConfig(server)}` });
    server.script({ toolCalls: [{ name: "clarify", arguments: { question: "Tea or coffee?" } }] }, { text: "Tea." });
    await using screen = await TerminalScreen.start(["chat", "-q", "what shall I drink?"], { home });
    await screen.waitFor("Tea.");
    assert.equal(await screen.exitCode(), 0);
  });

  test("what the model says is never translated, what the program says is", async () => {
    await using home = await tempHome({ "config.yaml": modelConfig(server) });
    const env = { HERMES_LANGUAGE: "zh" };
    server.script({ text: "Nothing changed." }, { text: "Nothing changed." });
    for (const args of [
      ["-z", "go"],
      ["chat", "-q", "go"],
    ]) {
      await using screen = await TerminalScreen.start(args, { home, env });
      await screen.waitFor("Nothing changed.");
      assert.equal(await screen.exitCode(), 0);
    }
    await using screen = await TerminalScreen.start(["sessions", "show", "nobody"], { home, env });
    await screen.waitFor("没有与“nobody”匹配的对话");
  });

  test("a question is worded by what a yes would do, and for this one run", async (t) => {
    if (await missingBubblewrap()) return t.skip("no bubblewrap");
    await using home = await tempHome({ "config.yaml": `terminal:\n  sandbox: on\n${modelConfig(server)}` });
    const outside = join(home.osHome, "outside.txt");
    const questions = [
      [
        { name: "terminal", arguments: { command: "ls", outside: true, reason: "it is there" } },
        /⚠ Run this command outside the sandbox\?\n {2}ls\nIt would run outside the sandbox\. The agent says why: it is there\nRun it outside\? \[o\]nce, \[r\]est of this run, \[a\]lways, anything else/,
      ],
      [
        { name: "write_file", arguments: { path: outside, content: "x" } },
        /⚠ Write outside the sandbox\?\n {2}write .*outside\.txt\n[\s\S]*Write it\? \[o\]nce/,
      ],
      [
        { name: "terminal", arguments: { command: "bash --norc -c 'echo x'" } },
        /⚠ Dangerous command: .*\n {2}bash --norc -c 'echo x'\nRun it\? \[o\]nce, \[r\]est/,
      ],
    ] as const;
    for (const [call, asked] of questions) {
      server.script({ toolCalls: [call] }, { text: "done" });
      await using screen = await TerminalScreen.start(["chat", "-q", "go"], { home, columns: 160 });
      await screen.waitFor(asked);
      await screen.say("n");
      assert.equal(await screen.exitCode(), 0);
    }
  });

  test("an option that needs a question is not ignored by the screen", async () => {
    await using home = await tempHome({ "config.yaml": modelConfig(server) });
    for (const args of [["--json"], ["-Q"]]) {
      await using screen = await TerminalScreen.start(args, { home });
      await screen.waitFor("needs a prompt: add -z PROMPT or -q TEXT.");
      assert.equal(await screen.exitCode(), 2);
    }
  });
});
