// Finding things on the screen: conversations, models, messages; and leaving without a trace when something is not there.
import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { pathToFileURL } from "node:url";
import { ModelServer } from "../support/model-server/server.ts";
import { repository, runHermes } from "../support/run-hermes.ts";
import { modelConfig, tempHome } from "../support/temp-home.ts";
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

describe("pickers on the screen", { skip: tmuxMissing() }, () => {
  let server: ModelServer;
  before(async () => {
    server = await ModelServer.start();
    server.models = ["fake-model", ...Array.from({ length: 40 }, (_, n) => `vendor/model-${n}`)];
    server.window = 65_536;
    server.otherwise((request) => ({ text: `Answer ${request.body.messages.length}` }));
  });
  after(() => server.close());

  test("models, messages and conversations are found by typing, with one key after Ctrl+X", async () => {
    await using home = await tempHome({ "config.yaml": modelConfig(server) });
    const earlier = await runHermes(["-z", "the narwhal question"], { home });
    assert.equal(earlier.code, 0, earlier.stderr);
    await using screen = await TerminalScreen.start([], { home, columns: 80, rows: 19 });
    await screen.waitFor("fake-model");
    await screen.type("a draft");
    await screen.press("C-x");
    await screen.press("m");
    await screen.waitFor(/❯ +1\. ● fake-model +65\.5K +included +127[\d.:]+\n/);
    await screen.type("model-37");
    await screen.waitFor(/filter: model-37\n❯ 39\. {3}vendor\/model-37 +65\.5K/);
    await screen.press("Enter");
    await screen.waitFor(/Now using vendor\/model-37 \(127[\d.:]+\), 65\.5K tokens/);
    // What the list covered is back, with nothing empty below.
    await screen.waitFor(/Model: fake-model[\s\S]*Now using vendor\/model-37[\s\S]*❯ a draft\n─+\n⚕ .*\n$/, {
      history: false,
    });
    await screen.waitFor(/❯ a draft/, { history: false });
    await screen.press("C-c");
    await screen.say("/model vendor/model-99");
    await screen.waitFor(/The server does not list "vendor\/model-99"\. Which model\?\n❯ 1\. vendor\/model-/);
    await screen.press("Escape");
    await screen.waitFor(/Still using vendor\/model-37 \(127[\d.:]+\)\./);

    await screen.say("first of mine");
    await screen.waitFor(/^ *Answer 2$/m);
    await screen.say("second of mine");
    await screen.waitFor(/^ *Answer 4$/m);
    await screen.press("C-x");
    await screen.press("f");
    await screen.waitFor(/1\. \(after the last answer: copy the whole conversation\)/);
    await screen.type("second");
    await screen.waitFor(/filter: second\n❯ 2\. second of mine[\s\S]*⚕ Answer 4/);
    await screen.press("Enter");
    await screen.waitFor("This is a branch of");
    await screen.waitFor(/❯ second of mine\n/, { history: false });
    await screen.press("C-c");
    await screen.say("another second");
    await screen.waitFor("another second");
    await screen.waitFor(/another second[\s\S]*Answer 4/);
    const sent = server.last.body.messages.filter((message: { role: string }) => message.role === "user");
    assert.deepEqual(
      sent.map((message: { content: string }) => message.content),
      ["first of mine", "another second"],
    );

    await screen.press("C-x");
    await screen.press("s");
    await screen.waitFor(/type to search\n[\s\S]*└ [\s\S]*the narwhal question +\S+ \S+ +\d{8}_\d{6}_\w{6}/);
    await screen.type("narwhal");
    await screen.waitFor(/filter: narwhal\n❯ \d\. +the narwhal question[\s\S]*❯ the narwhal question\n +⚕ Answer 2/);
    await screen.press("Enter");
    await screen.waitFor(/resumed .*, 2 messages/);
    await screen.type("/tools disable ter");
    await screen.waitFor(/→ terminal +\S/);
    await screen.press("Tab");
    await screen.waitFor(/❯ \/tools disable terminal/, { history: false });
    await screen.press("C-c");
    await screen.say("/quit");
    assert.equal(await screen.exitCode(), 0);
  });
});
