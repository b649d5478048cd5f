import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { ModelServer } from "../support/model-server/server.ts";
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
  });

  test("an option that needs a question is not ignored by the screen", async () => {
    await using home = await tempHome({ "config.yaml": modelConfig(server) });
    for (const args of [["--json"], ["-Q"], ["--image", "x.png"]]) {
      await using screen = await TerminalScreen.start(args, { home });
      await screen.waitFor("goes with a question: add -z PROMPT or -q TEXT.");
      assert.equal(await screen.exitCode(), 2);
    }
  });
});
