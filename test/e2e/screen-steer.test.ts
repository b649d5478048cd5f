// Steering the work on the screen: stop, work modes, own shell lines, a refusal with a reason, the queue.
import assert from "node:assert/strict";
import { access, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, beforeEach, describe, test } from "node:test";
import type { RecordedRequest } from "../support/model-server/script.ts";
import { ModelServer } from "../support/model-server/server.ts";
import { answerBy, askedWith, newest, SEEN } from "../support/screen-rig.ts";
import { modelConfig, tempHome } from "../support/temp-home.ts";
import { TerminalScreen, tmuxMissing } from "../support/terminal-screen.ts";

describe("steering the work on the screen", { skip: tmuxMissing() }, () => {
  let server: ModelServer;
  before(async () => {
    server = await ModelServer.start();
  });
  beforeEach(() => void server.clear());
  after(() => server.close());

  const answer = (replies: Parameters<typeof answerBy>[1]) => answerBy(server, replies);
  const asked = (words: string) => askedWith(server, words);
  const stays = async (request: RecordedRequest) => {
    await request.clientLeft;
    return { text: "" };
  };
  const call = (name: string, args: Record<string, unknown>) => ({ toolCalls: [{ name, arguments: args }] });

  test("Esc stops, ! runs a command, Shift+Tab plans, a refusal carries its reason", async () => {
    await using home = await tempHome({ "config.yaml": modelConfig(server) + SEEN });
    await writeFile(join(home.project, "marker-of-this-test.txt"), "");
    await using screen = await TerminalScreen.start([], { home, columns: 80, rows: 24 });
    await screen.waitFor("fake-model");
    answer({
      "plan mode is on": () => ({ text: "I only plan." }),
      "use the other file": () => ({ text: "I heard why." }),
      // A message that was stopped goes out again with the next one.
      "what did it print": () => ({ text: "It printed a number." }),
      "long work": stays,
      "write it": () => call("write_file", { path: "made.txt", content: "x" }),
      "open it up": () => call("terminal", { command: "chmod 666 marker-of-this-test.txt" }),
    });

    await screen.say("long work");
    await screen.waitFor("esc to stop");
    while (asked("long work").length === 0) await screen.text();
    await screen.press("Escape");
    await screen.waitForGone("esc to stop");
    await asked("long work")[0]?.clientLeft;

    await screen.say("!echo from-$((40+2)); exit 3");
    await screen.waitFor(/ {2}from-42\n {2}exit 3 · /);
    await screen.waitFor("📎 ! echo");
    assert.ok(server.requests.every(({ raw }) => !raw.includes("from-42")));
    await screen.say("what did it print?");
    await screen.waitFor("It printed a number.");
    assert.match(newest(asked("[exit code 3]")[0] ?? server.last), /from-42\n\[exit code 3\]\n\nwhat did it print\?/);
    await screen.waitForGone("📎 ! echo");

    await screen.press("BTab", "BTab");
    await screen.waitFor("◔ plan");
    await screen.say("write it");
    await screen.waitFor("I only plan.");
    await assert.rejects(access(join(home.project, "made.txt")));
    await screen.say("/mode ask");
    await screen.waitForGone("◔ plan");

    await screen.say("open it up");
    await screen.waitFor("tell the agent why");
    await screen.press("5");
    await screen.waitFor("what to do instead");
    await screen.say("use the other file");
    await screen.waitFor("I heard why.");
    await screen.waitFor("not allowed: chmod 666 marker-of-this-test.txt (use the other file)");
  });

  test("queued messages are edited, moved, deleted and sent; a paste comes back as its placeholder", async () => {
    const config = `${modelConfig(server)}${SEEN}display:\n  busy_input_mode: queue\n`;
    await using home = await tempHome({ "config.yaml": config });
    await using screen = await TerminalScreen.start([], { home, columns: 80, rows: 24 });
    await screen.waitFor("fake-model");
    answer({
      "the urgent one": () => ({ text: "At once." }),
      "the last one": () => ({ text: "All said." }),
      "long work": stays,
      "long paste": stays,
    });
    await screen.say("long work");
    await screen.waitFor("esc to stop");
    await screen.paste(`long paste\n${"line\n".repeat(40)}`);
    await screen.waitFor("[Pasted text #1");
    await screen.press("Enter");
    await screen.waitFor("▶ next: long paste");
    await screen.press("Up");
    await screen.waitForGone("▶ next:");
    assert.match(await screen.text(), /\[Pasted text #1: 4\d lines/);
    await screen.press("Enter");
    await screen.waitFor("▶ next: long paste");

    await screen.say("not this one");
    await screen.say("the urgent one");
    await screen.waitFor("▶ next: the urgent one");
    await screen.press("C-x");
    await screen.press("q");
    await screen.waitFor(/Queue \(3\)[\s\S]*❯ 3\. the urgent one/);
    await screen.press("Up");
    await screen.waitFor("❯ 2. not this one");
    await screen.press("d");
    await screen.waitFor(/Queue \(2\)[\s\S]*❯ 2\. the urgent one/);
    await screen.press("s");
    await screen.waitFor("At once.");
    while (asked("long paste").length === 0) await screen.text();
    assert.equal(asked("not this one").length, 0);

    // Two quick presses come as one sequence: the first closes the list, the second stops the work.
    await screen.say("the last one");
    await screen.waitFor("▶ next: the last one");
    await screen.press("C-x");
    await screen.press("q");
    await screen.waitFor("Queue (1)");
    await screen.press("Escape", "Escape");
    await screen.waitForGone("Queue (1)");
    await screen.waitFor("All said.");
  });
});
