import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { describe, test } from "node:test";
import { tempHome } from "../support/temp-home.ts";
import { TerminalScreen, tmuxMissing } from "../support/terminal-screen.ts";

describe("lists that fill the terminal", { skip: tmuxMissing() }, () => {
  test("toolsets are found by typing, switched and saved, and the terminal is given back", async () => {
    await using home = await tempHome({ "config.yaml": "model: demo\n" });
    await using screen = await TerminalScreen.start(["tools"], { home });
    await screen.waitFor("Toolsets of which platform?");
    await screen.press("Enter");
    await screen.waitFor("Toolsets on cli");
    await screen.type("term");
    await screen.waitFor(/filter: term\n❯ +\d+\. \[x\] terminal/);
    await screen.resize(60, 12);
    await screen.press("Space");
    await screen.waitFor(/\[ \] terminal/);
    await screen.press("Enter");
    await screen.waitFor("Toolsets of which platform?");
    await screen.type("q");
    assert.equal(await screen.exitCode(), 0);
    assert.match(await screen.text(), /^Disabled on cli: terminal$/m);
    const config = await readFile(home.at("config.yaml"), "utf8");
    assert.doesNotMatch(config, /^ +- terminal$/m);
  });

  test("Ctrl+C leaves a list like q, and nothing is resumed", async () => {
    await using home = await tempHome({ "config.yaml": "model: demo\n" });
    await using chat = await TerminalScreen.start(["-z", "hello from here"], { home });
    assert.equal(await chat.exitCode(), 0);
    await using screen = await TerminalScreen.start(["sessions", "browse", "--source", "cli"], { home });
    await screen.waitFor(/Sessions \(1\)\n\n +type to search\n❯ hello from here +just now +\d{8}_\d{6}_\w{6} +cli/);
    await screen.press("C-c");
    assert.equal(await screen.exitCode(), 0);
    assert.doesNotMatch(await screen.text(), /Sessions/);
  });
});
