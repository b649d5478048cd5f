import assert from "node:assert/strict";
import { test } from "node:test";
import type { AgentEvent } from "../../agent/events.ts";
import type { UserInput } from "../../llm/messages.ts";
import { makeTheme } from "../terminal-text.ts";
import { QueuePanel, queueLines } from "./queue-panel.ts";
import { Turns } from "./turns.ts";

const theme = makeTheme(false);
const UP = "\u001b[A";
const DOWN = "\u001b[B";
const SHIFT_UP = "\u001b[1;2A";
const SHIFT_DOWN = "\u001b[1;2B";

/** A turn runs until it is interrupted; four messages wait behind it. */
function busy() {
  const heard: string[] = [];
  let end: () => void = () => undefined;
  const turns = new Turns({
    speaker: () => ({
      async *run(input: UserInput): AsyncGenerator<AgentEvent> {
        heard.push(input.text);
        await new Promise<void>((resolve) => {
          end = resolve;
        });
      },
      interrupt: () => end(),
      steer: () => false,
    }),
    busyMode: () => "queue",
    onEvent: () => undefined,
    onChange: () => undefined,
    onError: (error) => assert.fail(String(error)),
    onUnsent: () => undefined,
  });
  for (const text of ["running", "one", "two", "three"]) turns.queue({ text });
  turns.queue({ text: "a process ended", from: "synthetic" });
  const edited: string[] = [];
  let open = true;
  const panel = new QueuePanel({
    turns,
    theme,
    edit: ({ text }) => void edited.push(text),
    close: () => {
      open = false;
    },
  });
  return {
    turns,
    edited,
    heard,
    panel,
    isOpen: () => open,
    press: (...keys: string[]) => {
      for (const key of keys) panel.handleInput(key);
    },
    waiting: () => turns.queued.map(({ text }) => text).join(", "),
    text: () => panel.render(80).join("\n"),
  };
}

test("messages are moved, and the selection goes with them", () => {
  const { press, waiting, text } = busy();
  press(UP, SHIFT_UP, SHIFT_UP, SHIFT_UP);
  assert.equal(waiting(), "three, one, two, a process ended");
  assert.match(text(), /^Queue \(4\)\n❯ 1\. three\n {2}2\. one\n {2}3\. two\n {2}4\. ⚙ a process ended\n/);
  press(DOWN, SHIFT_DOWN);
  assert.equal(waiting(), "three, two, one, a process ended");
});

test("a message is deleted, the last one closes the panel", () => {
  const { press, waiting, isOpen } = busy();
  press("d", "d");
  assert.equal(waiting(), "one, two");
  press("\u001b[3~", "\u007f");
  assert.equal(waiting(), "");
  assert.equal(isOpen(), false);
});

test("a message is taken back to be edited; what the program queued is not", () => {
  const { press, waiting, edited, isOpen } = busy();
  press("\r");
  assert.equal(isOpen(), true);
  press(UP, UP, "\r");
  assert.deepEqual(edited, ["two"]);
  assert.equal(waiting(), "one, three, a process ended");
  assert.equal(isOpen(), false);
});

test("a message is sent now: it stops the running turn and comes before the others", async () => {
  const { press, heard, turns, isOpen } = busy();
  press(UP, "s");
  assert.equal(isOpen(), false);
  while (heard.length < 2) await new Promise((resolve) => setImmediate(resolve));
  assert.deepEqual(heard, ["running", "three"]);
  turns.dropQueue();
});

test("what is sent while the panel is open is gone from it", async () => {
  const { press, turns, heard, edited, text } = busy();
  press(UP, UP, UP);
  const first = turns.queued[0];
  assert.ok(first);
  turns.sendNow(first);
  while (heard.length < 2) await new Promise((resolve) => setImmediate(resolve));
  assert.match(text(), /^Queue \(3\)\n❯ 1\. two/);
  press("\u001b");
  assert.deepEqual(edited, []);
  turns.dropQueue();
});

test("the lines above the input name the first five and count the rest", () => {
  assert.deepEqual(queueLines([], 80, theme), []);
  const lines = queueLines(["a\u001b[2J\nb", "2", "3", "4", "5", "6", "7"], 30, theme);
  assert.deepEqual([lines[0], lines.at(-2)], ["▶ next: a b", "▶ and 2 more"]);
  assert.ok(lines.every((line) => line.length <= 30));
  assert.equal(queueLines(["1", "2", "3", "4", "5", "6"], 80, theme).at(-2), "▶ and 1 more");
});

test("Esc leaves the queue as it is; behind a deleted message the next one is selected", () => {
  const { press, waiting, text, isOpen } = busy();
  press(UP, UP, "d");
  assert.match(text(), /\n❯ 2\. three\n/);
  press("\u001b");
  assert.equal(isOpen(), false);
  assert.equal(waiting(), "one, three, a process ended");
});

test("a long queue shows the rows around the selected one, each cut to the width", () => {
  const { turns, panel, press } = busy();
  for (let n = 0; n < 20; n++) turns.queue({ text: `message ${n} ${"and more ".repeat(20)}` });
  press(...new Array<string>(15).fill(DOWN));
  assert.equal(panel.render(80).length, 10);
  const lines = panel.render(30);
  assert.match(lines.at(-1) ?? "", /Esc close$/);
  assert.match(lines.join("\n"), /^❯ 19\. message 14 and more/m);
  assert.ok(
    lines.every((line) => line.length <= 30),
    lines.join("\n"),
  );
  turns.dropQueue();
});
