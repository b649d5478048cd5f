// Names of folders and models are foreign text too: what they hold is never drawn as a sequence.
import assert from "node:assert/strict";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { describe, test } from "node:test";
import { tempHome } from "../support/temp-home.ts";
import { TerminalScreen, tmuxMissing } from "../support/terminal-screen.ts";

const NAME = "a\u001b[8mPWN";

describe("the start screen", { skip: tmuxMissing() }, () => {
  test("shows a folder and a model whose names hold sequences as words", async () => {
    await using home = await tempHome({
      "config.yaml": `model: {default: ${JSON.stringify(NAME)}, provider: custom, base_url: "http://127.0.0.1:9/v1", context_length: 128000}\n`,
    });
    const folder = join(home.project, NAME);
    await mkdir(folder);
    await using screen = await TerminalScreen.start([], { home, cwd: folder });
    await screen.waitFor(/folder +\S*aPWN/);
    await screen.waitFor(/⚕ aPWN/);
    assert.doesNotMatch(await screen.styled(), /\u001b\[(?:\d+;)*8m/);
    await screen.press("C-d");
  });
});
