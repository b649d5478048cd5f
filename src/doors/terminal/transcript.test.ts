import assert from "node:assert/strict";
import { test } from "node:test";
import type { AgentEventBody, ToolCallView, TurnOutcome } from "../../agent/events.ts";
import { makeTheme } from "../terminal-text.ts";
import { Transcript, type TranscriptSettings } from "./transcript.ts";

const usual: TranscriptSettings = {
  answerStyle: "strip",
  toolProgress: "all",
  previewLength: 0,
  showReasoning: false,
  interimText: true,
  inlineDiffs: true,
  streaming: true,
  timestamp: null,
  echo: { first_lines: 2, last_lines: 2 },
};

function shown(settings: Partial<TranscriptSettings>, ...events: AgentEventBody[]): string {
  const transcript = new Transcript(makeTheme(false), () => ({ ...usual, ...settings }));
  for (const event of events) transcript.show({ ...event, sessionId: "s", turn: 1, seq: 1 });
  return transcript.view.render(40).join("\n");
}

const call = (name: string, args: Record<string, unknown>): ToolCallView => ({ id: "c", name, args, preview: "" });
const tool = (name: string, args: Record<string, unknown>, result = "{}", diff?: string): AgentEventBody => ({
  type: "tool_end",
  call: call(name, args),
  result,
  ms: 100,
  failed: false,
  ...(diff && { diff }),
});
const text = (delta: string): AgentEventBody => ({ type: "text", delta });
const end = (whole: string, kind: "interim" | "final" = "final"): AgentEventBody => ({
  type: "text_end",
  text: whole,
  kind,
  streamed: true,
});
const rule = `─ ⚕ Hermes ${"─".repeat(29)}`;

test("an answer grows under its rule and is shown once", () => {
  assert.equal(shown({}, text("**Hel"), text("lo**"), end("**Hello**")), `${rule}\nHello`);
  assert.equal(shown({ answerStyle: "raw" }, text("**Hello**"), end("**Hello**")), `${rule}\n**Hello**`);
});

test("without streaming the whole answer comes at its end", () => {
  assert.equal(shown({ streaming: false }, text("Hel")), "");
  assert.equal(shown({ streaming: false }, text("Hello"), end("Hello")), `${rule}\nHello`);
});

test("what is said between tool calls can be left out", () => {
  assert.equal(shown({}, text("Let me look."), end("Let me look.", "interim")), `${rule}\nLet me look.`);
  assert.equal(shown({ interimText: false }, text("Let me look."), end("Let me look.", "interim")).trim(), "");
});

test("thinking is shown only when it is wanted", () => {
  const thinking: AgentEventBody = { type: "thinking", delta: "hmm" };
  assert.equal(shown({}, thinking), "");
  assert.equal(shown({ showReasoning: true }, thinking), `─ thinking ${"─".repeat(29)}\nhmm`);
});

const modes: [TranscriptSettings["toolProgress"], number][] = [
  ["off", 0],
  ["log", 0],
  ["new", 2],
  ["all", 3],
];
for (const [toolProgress, lines] of modes) {
  test(`the feed in mode ${toolProgress} has ${lines} lines for three calls of two tools`, () => {
    const calls = [tool("todo", {}), tool("todo", {}), tool("terminal", { command: "ls" })];
    assert.equal(shown({ toolProgress }, ...calls).match(/┊/g)?.length ?? 0, lines);
  });
}

test("the verbose feed shows arguments and results", () => {
  const feed = shown({ toolProgress: "verbose" }, tool("terminal", { command: "ls" }, '{"output":"file.txt"}'));
  assert.match(feed, /"command":"ls"[\s\S]*file\.txt/);
});

test("a change of a file is shown as a diff, unless that is switched off", () => {
  const write = tool("write_file", { path: "a.txt" }, "{}", "--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-a\n+b\n");
  assert.match(shown({}, write), /write +a\.txt[\s\S]*-a\n\+b/);
  assert.doesNotMatch(shown({ inlineDiffs: false }, write), /\+b/);
});

test("a turn that failed or was stopped says so", () => {
  const done = (outcome: Partial<TurnOutcome>): AgentEventBody => ({
    type: "done",
    outcome: { interrupted: false, failed: false, finalText: null, ...outcome } as TurnOutcome, // what a transcript looks at
  });
  assert.equal(shown({}, done({ failed: true, finalText: "The key was refused." })), "⚠ The key was refused.");
  assert.equal(shown({}, done({ interrupted: true, finalText: "Operation interrupted" })), "⏹ stopped");
  assert.equal(shown({}, done({ interrupted: true, unsent: true })), "⏹ stopped: nothing was sent");
  const moved = { interrupted: true, exitReason: "conversation_moved", finalText: "In use by process 7." };
  assert.equal(shown({}, done(moved)), "⚠ In use by process 7.");
  assert.equal(shown({}, done({ finalText: "fine" })), "");
});

test("warnings and notices have their own lines", () => {
  const lines = shown(
    {},
    { type: "status", kind: "warn", message: "careful" },
    { type: "notice", kind: "review", text: "💾 remembered" },
  );
  assert.equal(lines, "⚠ careful\n  💾 remembered");
});
