import assert from "node:assert/strict";
import { test } from "node:test";
import { visibleWidth } from "@earendil-works/pi-tui";
import { makeTheme } from "../terminal-text.ts";
import { type BannerFacts, banner } from "./opening.ts";

const facts: BannerFacts = {
  profile: "work",
  cwd: "/home/someone/项目/with/a/long/name",
  compact: false,
  rows: 40,
  opened: {
    model: "some/model",
    provider: "openrouter",
    contextLength: 131_072,
    sessionId: "20260101_000000_abcdef",
    runs: "on this machine, look only",
    tools: new Map(Array.from({ length: 10 }, (_, i) => [`set${i}`, ["one", "two"]])),
    onDemand: 3,
    servers: [
      { name: "files", tools: 2 },
      { name: "mail", tools: 0 },
    ],
  },
  skills: 12,
};
const text = (width: number, given = facts) => banner(given, width, makeTheme(false)).join("\n");

test("each width has its own banner", () => {
  assert.match(text(100), /╠═╣/);
  assert.match(text(100), /set0: one, two/);
  assert.match(text(100), /2 more toolsets/);
  assert.match(text(100), /20 tools \+ 3 on demand · 12 skills · \/help/);
  assert.doesNotMatch(text(90), /╠═╣/);
  assert.match(text(90), /set0/);
  assert.doesNotMatch(text(60), /set0/);
  assert.match(text(60), /131\.1K/);
  assert.ok(text(60).includes("work"));
  assert.equal(text(20).split("\n").length, 1);
  assert.doesNotMatch(text(120, { ...facts, compact: true }), /set0/);
});

test("a low terminal gets a short banner: the first screen holds it whole", () => {
  for (const width of [80, 120]) {
    const low = text(width, { ...facts, rows: 24 });
    assert.match(low, /set1: one, two[\s\S]*8 more toolsets/);
    assert.ok(low.split("\n").length <= 12, low);
    assert.doesNotMatch(low, /╠═╣/);
  }
});

test("toolsets with most tools come first, those without a set of their own last", () => {
  const tools = new Map([
    ["other", ["a", "b", "c", "d"]],
    ["clarify", ["clarify"]],
    ["file", ["patch", "read_file", "search_files"]],
  ]);
  const opened = facts.opened && { ...facts.opened, tools };
  assert.match(text(120, { ...facts, opened }), /file: patch[\s\S]*clarify: clarify[\s\S]*other: a/);
});

test("the banner says where commands run, wide or narrow", () => {
  for (const width of [100, 90, 60, 45]) assert.match(text(width), /runs +on this machine, look only/);
});

test("before the conversation is open the banner says so", () => {
  assert.match(text(100, { ...facts, opened: null }), /connecting/);
});

test("no width is ever exceeded", () => {
  for (let width = 1; width < 130; width++)
    for (const line of banner(facts, width, makeTheme(true)))
      assert.ok(visibleWidth(line) <= width, `width ${width}: ${JSON.stringify(line)}`);
});

test("servers are counted by what they offer, and those that are not connected are named as such", () => {
  assert.match(text(100), /mcp: files \(2 tools\)/);
  assert.match(text(100), /mcp: mail \(not connected\)/);
  assert.match(text(40), /20 tools \+ 3 on demand +│\n│ 12 skills · \/help/);
  assert.match(text(60), /20 tools \+ 3 on demand · 12 skills · \/help/);
});
