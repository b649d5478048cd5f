import assert from "node:assert/strict";
import { test } from "node:test";
import type { Component } from "@earendil-works/pi-tui";
import type { AgentEventBody, ToolCallView, TurnOutcome } from "../../agent/events.ts";
import { makeTheme } from "../terminal-text.ts";
import { Transcript, type TranscriptSettings } from "./transcript.ts";

const usual: TranscriptSettings = {
  answerStyle: "strip",
  toolProgress: "all",
  previewLength: 0,
  details: { tools: "collapsed", thinking: "hidden" },
  interimText: true,
  inlineDiffs: true,
  pictures: null,
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
  const details = (mode: "collapsed" | "expanded") => ({ details: { tools: "collapsed" as const, thinking: mode } });
  assert.equal(shown(details("expanded"), thinking), `─ thinking ${"─".repeat(29)}\nhmm`);
  assert.equal(shown(details("collapsed"), thinking, thinking), "┊ 💭 thinking  Ctrl+T shows it");
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
  assert.equal(feed, "┊ 💻 $         ls  0.1s\n  │ $ ls\n  │ file.txt");
  const expanded = shown({ details: { tools: "expanded", thinking: "hidden" } }, tool("todo", {}, '{"todos":[]}'));
  assert.match(expanded, /┊ 📋/);
  assert.equal(shown({ details: { tools: "hidden", thinking: "hidden" } }, tool("todo", {})), "");
});

test("a change of a file is shown as a diff, unless that is switched off", () => {
  const write = tool("write_file", { path: "a.txt" }, "{}", "--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-a\n+b\n");
  assert.match(shown({}, write), /write +a\.txt[\s\S]*-a\n\+b/);
  assert.doesNotMatch(shown({ inlineDiffs: false }, write), /\+b/);
});

test("a command that you refused is told once, by the question", () => {
  const result = JSON.stringify({
    exit_code: -1,
    error: "DENIED: the user refused this command (x). Do not try it again",
  });
  assert.equal(shown({}, tool("terminal", { command: "rm x" }, result)), "");
  const transcript = new Transcript(makeTheme(false), () => usual);
  transcript.dim("✗ not allowed: rm some/long/path another/path");
  assert.deepEqual(transcript.view.render(30), ["✗ not allowed: rm", "  some/long/path another/path"]);
});

test("a command stands dim above its answer", () => {
  const transcript = new Transcript({ ...makeTheme(false), dim: (text) => `(${text})` }, () => usual);
  transcript.command("/undo 2");
  transcript.info("done");
  assert.deepEqual(transcript.view.render(40), ["(❯ /undo 2)", "", "done"]);
});

test("what was taken back is struck out as far as it is on the screen; what stays and what follows is not", () => {
  const theme = { ...makeTheme(false), struck: (text: string) => `~${text}~` };
  const transcript = new Transcript(theme, () => usual);
  const say = (words: string, answer: string) => {
    transcript.user(words);
    transcript.show({ ...end(answer), sessionId: "s", turn: 1, seq: 1 });
    transcript.show({ type: "done", outcome: { finalText: "x" } as TurnOutcome, sessionId: "s", turn: 1, seq: 1 });
  };
  say("one", "first");
  say("two", "second\n\nthird");
  transcript.command("/undo");
  const gone = new Set([transcript.view.children.find((block) => block.render(40).includes("❯ two"))]);
  const firstLine = (block: Component) => (block.render(40).includes("third") ? 2 : 0);
  transcript.takeBack(1, (block) => (gone.has(block) ? Number.POSITIVE_INFINITY : firstLine(block)));
  const lines = transcript.view.render(40).filter((line) => line !== "" && !line.includes("─"));
  assert.deepEqual(lines, ["❯ one", "first", "❯ two", "second", "~third~", "❯ /undo"]);
  transcript.takeBack(1, () => 0);
  assert.ok(transcript.view.render(40).includes("~first~"), "the next one back is the turn before");
});

test("a turn that failed or was stopped says so", () => {
  const done = (outcome: Partial<TurnOutcome>): AgentEventBody => ({
    type: "done",
    outcome: { interrupted: false, failed: false, finalText: null, ...outcome } as TurnOutcome, // what a transcript looks at
  });
  assert.equal(shown({}, done({ failed: true, finalText: "The key was refused." })), "⚠ The key was refused.");
  assert.equal(shown({}, done({ interrupted: true, finalText: "Operation interrupted" })), "⏹ stopped");
  assert.equal(shown({}, done({ interrupted: true, unsent: true })), "⏹ stopped: nothing was sent");
  const cutOff = shown({}, text("| a | b |\n|---|---|\n| 1 | 2 |\n| 3"), done({ interrupted: true }));
  assert.match(cutOff, /\| a +\| b .*\n.*\n\| 1 +\| 2 /, "the rows that came stay to be read");
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
