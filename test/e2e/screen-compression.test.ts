// Long conversations at the screen: shortened by itself, by hand, looked at and taken back.
import assert from "node:assert/strict";
import { after, before, beforeEach, describe, test } from "node:test";
import { ModelServer } from "../support/model-server/server.ts";
import { modelConfig, tempHome } from "../support/temp-home.ts";
import { TerminalScreen, tmuxMissing } from "../support/terminal-screen.ts";

const SEEN = "onboarding:\n  seen:\n    busy_input_prompt: true\n    tool_progress_prompt: true\n";

describe("a long conversation at the screen", { skip: tmuxMissing() }, () => {
  let server: ModelServer;
  before(async () => {
    server = await ModelServer.start();
  });
  beforeEach(() => void server.clear());
  after(() => server.close());

  const isSummary = (raw: string) => raw.includes("hand-over notes");

  test("is compressed by hand, with lost facts named, counted in /usage, and taken back by /undo", async () => {
    await using at = await tempHome({ "config.yaml": modelConfig(server) + SEEN });
    await using screen = await TerminalScreen.start([], { home: at, columns: 120, rows: 60 });
    await screen.waitFor("fake-model");
    server.otherwise(({ raw }) =>
      isSummary(raw) ? { text: "## Goal\nHerons." } : { text: `Answer, ${"and so on ".repeat(60)}end.` },
    );
    for (let turn = 1; turn <= 6; turn++) {
      await screen.say(`Question ${turn} about TICKET-77${turn}`);
      await screen.waitFor(new RegExp(`Question ${turn} about[\\s\\S]*end\\.`));
    }
    await screen.say("/pin The port is 8443");
    await screen.waitFor("1. The port is 8443");
    await screen.say("/compress --preview");
    await screen.waitFor("Nothing was changed.");
    assert.ok(!server.requests.some(({ raw }) => isSummary(raw)));
    await screen.say("/compress herons");
    const text = await screen.waitFor("/undo reverts it");
    assert.match(text, /🗜️ 12 messages, about [\d.]+K? tokens → \d+ messages/);
    assert.match(await screen.waitFor("Not in the summary"), /TICKET-77\d/);
    const asked = server.requests.find(({ raw }) => isSummary(raw));
    assert.match(asked?.raw ?? "", /focus on: \\"herons\\"/);
    await screen.say("/usage");
    const usage = await screen.waitFor("Compressions:");
    assert.match(usage, /Compressions: {3}1/);
    assert.match(usage, /Engine: {9}compressor, context length 128,000, threshold tokens 64,000/);
    assert.match(usage, /compression +1 /);
    await screen.say("/undo");
    await screen.waitFor("Compression undone");
    await screen.say("/compress here 2");
    await screen.waitFor(/\/undo reverts it[\s\S]*\/undo reverts it/);
    await screen.say("and now?");
    await screen.waitFor(/and now\?[\s\S]*end\./);
    assert.match(server.last.raw, /REFERENCE ONLY[\s\S]*Herons\.[\s\S]*## Pinned\\n- The port is 8443/);
    assert.match(server.last.raw, /Question 5 about[\s\S]*Question 6 about/);
    assert.doesNotMatch(server.last.raw, /Question 4 about/);
    await screen.say("/quit");
    assert.equal(await screen.exitCode(), 0);
  });

  test("is compressed by itself with a word about it, and goes on", async () => {
    const config = modelConfig(server).replace("context_length: 128000", "context_length: 20000");
    await using at = await tempHome({ "config.yaml": config + SEEN });
    await using screen = await TerminalScreen.start([], { home: at, columns: 120, rows: 60 });
    await screen.waitFor("fake-model");
    server.otherwise(({ raw }) =>
      isSummary(raw) ? { text: "## Goal\nHerons." } : { text: `${"Words and words. ".repeat(700)}The end.` },
    );
    for (let turn = 1; turn <= 8 && !server.requests.some(({ raw }) => isSummary(raw)); turn++) {
      await screen.say(`Question ${turn}?`);
      await screen.waitFor(new RegExp(`Question ${turn}\\?[\\s\\S]*The end\\.`));
    }
    assert.ok(
      server.requests.some(({ raw }) => isSummary(raw)),
      "it was compressed on the way",
    );
    await screen.waitFor(/context compressed: \d+ → \d+ tokens/);
    await screen.say("/quit");
    assert.equal(await screen.exitCode(), 0);
  });
});
