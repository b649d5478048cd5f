import assert from "node:assert/strict";
import { test } from "node:test";
import { visibleWidth } from "@earendil-works/pi-tui";
import type { SessionTotals } from "../../agent/events.ts";
import { cut, makeTheme } from "../terminal-text.ts";
import { type StatusFacts, statusLine } from "./status.ts";

const totals = {
  inputTokens: 10,
  outputTokens: 5,
  cacheReadTokens: 0,
  cacheWriteTokens: 0,
  reasoningTokens: 0,
  apiCalls: 1,
  costUsd: 0.5,
  costStatus: "estimated" as const,
};
const facts: StatusFacts = {
  model: "vendor/some-model",
  contextUsed: 62_000,
  contextLength: 100_000,
  totals,
  showCost: true,
  sessionSeconds: 90,
  turnSeconds: 61,
  busy: true,
  compressions: 0,
  processes: 0,
  queued: 0,
  yolo: false,
};
const plain = makeTheme(false);

test("a wide terminal shows everything", () => {
  assert.equal(statusLine(facts, 120, plain), "⚕ some-model │ 62K/100K │ [██████░░░░] 62% │ $0.50 │ 1m │ ⏱ 1m 1s");
});

test("a middling terminal shows the percentage", () => {
  assert.equal(statusLine(facts, 60, plain), "⚕ some-model · 62% · 1m · $0.50");
});

test("a goal is shown before the counters, with the turns that it took", () => {
  const goal = { ...facts, goal: "⊙ 3/20", processes: 2 };
  assert.equal(statusLine(goal, 60, plain), "⚕ some-model · 62% · ⊙ 3/20 · ⚙ 2 · 1m · $0.50");
  assert.match(statusLine(goal, 120, plain), /62% │ ⊙ 3\/20 │ ⚙ 2 │/);
});

test("a narrow terminal shows model and duration", () => {
  assert.equal(statusLine(facts, 40, plain), "⚕ some-model · 1m");
});

test("folder and branch take the room that is left, the branch first", () => {
  const here = { ...facts, folder: "~/code/projects/some-library", branch: "main" };
  const place = (width: number) => statusLine(here, width, plain).split("⏱ 1m 1s")[1];
  assert.equal(place(120), " │ ~/code/projects/some-library ⎇ main");
  assert.equal(place(90), " │ ...some-library ⎇ main");
  assert.equal(place(76), " │ ⎇ main");
  assert.equal(statusLine(here, 66, plain), "⚕ some-model · 62% · 1m · $0.50 · .../projects/some-library ⎇ main");
  assert.equal(statusLine(here, 40, plain), "⚕ some-model · 1m");
  assert.match(statusLine({ ...here, branch: null }, 120, plain), /some-library$/);
});

test("no width is ever exceeded", () => {
  const place = { folder: "~/项目/很长的名字/of/a/folder", branch: "feature/分支" };
  const long = { ...facts, ...place, model: "模型".repeat(20), yolo: true, queued: 3 };
  for (let width = 1; width < 300; width++) {
    const line = statusLine(long, width, makeTheme(true));
    assert.ok(visibleWidth(line) <= width, `width ${width}: ${visibleWidth(line)}`);
  }
});

test("text is cut by cells", () => {
  assert.equal(cut("你好世界你好", 7), "你好...");
  assert.equal(cut("abcdef", 2), "..");
});

test("an unknown cost is shown as unknown, never as zero", () => {
  const shown = (cost: Partial<SessionTotals>) =>
    statusLine({ ...facts, totals: { ...totals, ...cost } }, 120, plain).split(" │ ")[3];
  assert.equal(shown({ costUsd: null, costStatus: "unknown" }), "cost unknown");
  assert.equal(shown({ costUsd: 0.5, costStatus: "unknown" }), "≥ $0.50 (partly unknown)");
  assert.equal(shown({ costUsd: 0, costStatus: "included" }), "included");
  assert.equal(shown({ apiCalls: 0, costUsd: null, costStatus: "unknown" }), "$0.00");
});
