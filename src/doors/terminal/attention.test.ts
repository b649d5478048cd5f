import assert from "node:assert/strict";
import { test } from "node:test";
import type { Question } from "../../safety/decision.ts";
import { Attention } from "./attention.ts";

const approval: Question = {
  kind: "approval",
  command: "rm -r build;\u001b]0;x\u0007 now",
  description: "recursive delete",
  patternKey: "recursive delete",
  allowAlways: true,
};

function bell(env: Record<string, string>, off: Partial<Record<"bell" | "notice" | "title", true>> = {}) {
  const written: string[] = [];
  const attention = new Attention({
    write: (data) => void written.push(data),
    settings: () => ({ bell_on_question: !off.bell, notify_on_question: !off.notice, window_title: !off.title }),
    env: (name) => env[name],
  });
  return { attention, take: () => written.splice(0).join("") };
}

test("a question rings, notifies and sets the window title, which is given back afterwards", () => {
  const { attention, take } = bell({ TERM: "xterm-256color" });
  attention.call(approval);
  const notice = "\u001b]9;hermes needs approval: rm -r build now\u0007\u0007";
  assert.equal(take(), `\u001b[22;2t\u001b]2;⚠ hermes – needs approval\u0007${notice}`);
  attention.call({ kind: "clarify", question: "Which one?", choices: null, multiSelect: false });
  assert.equal(
    take(),
    "\u001b]2;⚠ hermes – has a question\u0007\u001b]9;hermes has a question: Which one?\u0007\u0007",
  );
  attention.settle();
  assert.equal(take(), "\u001b]2;hermes\u0007\u001b[23;2t");
  attention.settle();
  assert.equal(take(), "");
});

const cases: [string, Record<string, string>, string][] = [
  ["foot shows OSC 777", { TERM: "foot" }, "\u001b]777;notify;hermes has a question;\u0007\u0007"],
  [
    "tmux gets it wrapped",
    { TERM: "tmux-256color", TMUX: "/tmp/x" },
    "\u001bPtmux;\u001b\u001b]9;hermes has a question\u0007\u001b\\\u0007",
  ],
  [
    "terminals built on VTE show OSC 777",
    { TERM: "xterm-256color", VTE_VERSION: "7600" },
    "\u001b]777;notify;hermes has a question;\u0007\u0007",
  ],
  ["the console of Linux only rings", { TERM: "linux" }, "\u0007"],
  ["a dumb terminal gets nothing", { TERM: "dumb" }, ""],
  ["no terminal gets nothing", {}, ""],
];
for (const [name, env, expected] of cases)
  test(name, () => {
    const { attention, take } = bell(env, { title: true });
    attention.call({ kind: "sudo" });
    assert.equal(take(), expected);
  });

test("each part is a setting of its own", () => {
  const { attention, take } = bell({ TERM: "xterm" }, { bell: true, notice: true, title: true });
  attention.call(approval);
  attention.settle();
  assert.equal(take(), "");
});

test("a long command is cut in the notification", () => {
  const { attention, take } = bell({ TERM: "xterm" }, { bell: true, title: true });
  attention.call({ ...approval, command: "x".repeat(5000) });
  assert.equal(take(), `\u001b]9;hermes needs approval: ${"x".repeat(120)}\u0007`);
});
