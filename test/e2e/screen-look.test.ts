// How the screen looks: skins, light terminals, what the first screen tells.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, test } from "node:test";
import { launcher } from "../support/run-hermes.ts";
import { tempHome } from "../support/temp-home.ts";
import { TerminalScreen, tmuxMissing } from "../support/terminal-screen.ts";

describe("languages", { skip: tmuxMissing() }, () => {
  test("the screen, its replies and its questions speak Chinese", async () => {
    await using home = await tempHome({ "config.yaml": "model: demo\ndisplay:\n  language: zh_CN\n" });
    await using screen = await TerminalScreen.start([], { home, columns: 80, rows: 24 });
    await screen.waitFor("提示：");
    await screen.say("/help");
    await screen.waitFor("开始新的对话");
    await screen.say("run touch x && rm -rf x");
    await screen.waitFor("危险命令");
    await screen.waitFor("否，不运行");
    await screen.press("Escape");
    await screen.waitFor("未允许");
    await screen.say("/quit");
    await screen.waitFor("用以下命令继续本次对话");
    assert.equal(await screen.exitCode(), 0);
  });
});

describe("plain lines", { skip: tmuxMissing() }, () => {
  test("a dumb terminal gets no control sequence, numbered questions, and the same commands", async () => {
    await using home = await tempHome({ "config.yaml": "model: demo\n" });
    const seen = join(home.osHome, "seen");
    const line = `TERM=dumb '${process.execPath}' '${launcher}'`;
    const command = ["script", "-qec", line, seen];
    await using screen = await TerminalScreen.start([], { home, command, columns: 80, rows: 24 });
    await screen.waitFor(/^>/m);
    await screen.say("run mkdir x && rm -r x");
    await screen.waitFor(
      /1\. Run it once\n +2\. Allow for this session \(recursive delete\)[\s\S]+4\. No, don't run it/,
    );
    await screen.say("4");
    await screen.waitFor(/not allowed|refused|denied/i);
    await screen.say("/nosuch");
    await screen.waitFor("Unknown command /nosuch.");
    await screen.say("/statusbar");
    await screen.waitFor("this needs the full screen");
    await screen.say("/quit");
    assert.equal(await screen.exitCode(), 0);
    const text = await readFile(seen, "utf8");
    assert.match(text, /Resume this conversation with:/);
    assert.doesNotMatch(text, /\u001b/);
  });
});

describe("skins", { skip: tmuxMissing() }, () => {
  test("one is put on at once and saved, a file of one's own too; a broken one is named and changes nothing", async () => {
    await using home = await tempHome({
      "config.yaml": "model: demo\ndisplay:\n  skin: broken\n",
      "skins/broken.yaml": "colors: [",
      "skins/mine.yaml": 'branding:\n  prompt_symbol: "»"\n  goodbye: So long.\n',
    });
    await using screen = await TerminalScreen.start([], { home, columns: 140, rows: 40 });
    await screen.waitFor(/\d+ tools \+ \d+ on demand · \d+ skills? · \/help/);
    await screen.waitFor(/broken\.yaml cannot be used: [\s\S]+The default skin is used\./);
    await screen.waitFor(/^❯/m);
    await screen.say("/skin mine");
    await screen.waitFor("Skin: mine. Saved as display.skin.");
    await screen.waitFor(/^»/m);
    await screen.say("/skin posidon");
    await screen.waitFor('There is no skin "posidon". Did you mean poseidon? Still using mine.');
    assert.match(await readFile(home.at("config.yaml"), "utf8"), /skin: mine/);
    await screen.say("/quit");
    await screen.waitFor("So long.");
    assert.equal(await screen.exitCode(), 0);
  });

  test("a personality has faces, and its name stands at answers", async () => {
    await using home = await tempHome({ "config.yaml": "model: demo\n" });
    await using screen = await TerminalScreen.start([], { home, columns: 80, rows: 24 });
    await screen.waitFor("/help");
    await screen.say("/personality pirate");
    await screen.waitFor("Personality: pirate");
    await screen.say("run sleep 3");
    await screen.waitFor(/^\S .*\(x_o\)/m);
    await screen.waitFor("─ ⚕ Hermes (pirate) ─");
  });
});
