// Finding things on the screen: conversations, models, messages; and leaving without a trace when something is not there.
import assert from "node:assert/strict";
import { join } from "node:path";
import { describe, test } from "node:test";
import { pathToFileURL } from "node:url";
import { repository, runHermes } from "../support/run-hermes.ts";
import { tempHome } from "../support/temp-home.ts";
import { TerminalScreen, tmuxMissing } from "../support/terminal-screen.ts";

describe("a conversation that is not there", { skip: tmuxMissing() }, () => {
  test("is named before a screen is drawn or stdin is read", async () => {
    await using home = await tempHome({ "config.yaml": "model: demo\n" });
    const piped = await runHermes(["-r", "nosuch"], { home });
    assert.equal(piped.code, 1);
    assert.match(piped.stderr, /^hermes: No conversation has the id or title "nosuch"\./);
    await using screen = await TerminalScreen.start(["-c", "nosuch"], { home, columns: 80, rows: 24 });
    assert.equal(await screen.exitCode(), 1);
    const [first = ""] = (await screen.text({ history: true })).trim().split("\n");
    assert.match(first, /^hermes: No conversation has the id or title "nosuch"/);
  });

  test("an end right after the start leaves no answer of the terminal in the shell", async () => {
    await using home = await tempHome();
    const file = pathToFileURL(join(repository, "src", "doors", "terminal", "screen-terminal.ts")).href;
    const program = `const { ScreenTerminal, resetTerminal } = await import("${file}");
      const terminal = new ScreenTerminal({ unannouncedLines: () => 5 });
      terminal.start(() => undefined, () => undefined);
      await terminal.settled();
      terminal.stop();
      resetTerminal(process.stdout);
      process.exit(0);`;
    // The next program at this terminal reads what is left in its input.
    const shell = `"$0" --input-type=module -e "$1"; echo over; read line; printf 'read: %s' "$line" | cat -v; echo`;
    const command = ["sh", "-c", shell, process.execPath, program];
    await using screen = await TerminalScreen.start([], { home, command });
    await screen.waitFor("over");
    await screen.say("typed later");
    assert.match(await screen.waitFor("read:"), /^read: typed later$/m);
  });
});
