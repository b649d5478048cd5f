import assert from "node:assert/strict";
import { test } from "node:test";
import { type CardFacts, closesCircle, firstStatus, judge, type Move, promotes } from "./rules.ts";

const card = (status: CardFacts["status"], more: Partial<CardFacts> = {}): CardFacts => ({
  ...{ status, openParents: [], isForced: false, blockKinds: [], ...more },
});
const parents = { openParents: ["t_1"] };

const rows: readonly (readonly [string, CardFacts, Move, string, string?])[] = [
  ["work that runs is completed", card("running"), { type: "complete" }, "done", "completed"],
  ["work that was done before it was taken, too", card("ready"), { type: "complete" }, "done", "completed"],
  ["nothing that waits for others is completed", card("running", parents), { type: "complete" }, "t_1"],
  [
    "unless a person started it all the same",
    card("running", { ...parents, isForced: true }),
    { type: "complete" },
    "done",
    "completed",
  ],
  ["what is done is not done again", card("done"), { type: "complete" }, "it is done"],
  ["an idea is not done", card("triage"), { type: "complete" }, "it is triage"],
  ["a first block puts it aside", card("running"), { type: "block", kind: "needs_input" }, "blocked", "blocked"],
  [
    "another kind too",
    card("running", { blockKinds: ["transient"] }),
    { type: "block", kind: "needs_input" },
    "blocked",
    "blocked",
  ],
  [
    "the second of a kind is a loop",
    card("running", { blockKinds: ["needs_input", "transient"] }),
    { type: "block", kind: "needs_input" },
    "triage",
    "block_loop_detected",
  ],
  [
    "blocks without a kind are none",
    card("ready", { blockKinds: [null, null] }),
    { type: "block", kind: null },
    "blocked",
    "blocked",
  ],
  [
    "waiting for a card that is open",
    card("running", parents),
    { type: "block", kind: "dependency" },
    "todo",
    "dependency_wait",
  ],
  [
    "waiting for nobody is refused",
    card("running"),
    { type: "block", kind: "dependency" },
    "link the card it waits for first",
  ],
  ["what waits is not blocked", card("todo"), { type: "block", kind: null }, "it is todo"],
  ["it goes on", card("blocked"), { type: "unblock" }, "ready", "unblocked"],
  ["it goes on to wait", card("scheduled", parents), { type: "unblock" }, "todo", "unblocked"],
  ["by hand", card("todo"), { type: "promote", force: false }, "ready", "promoted_manual"],
  ["by hand, not past its parents", card("todo", parents), { type: "promote", force: false }, "--force"],
  ["by force", card("blocked", parents), { type: "promote", force: true }, "ready", "promoted_manual"],
  ["what is ready is not promoted", card("ready"), { type: "promote", force: true }, "it is ready"],
  ["for later", card("running"), { type: "schedule" }, "scheduled", "scheduled"],
  ["an idea is not put aside", card("triage"), { type: "schedule" }, "it is triage"],
  ["away with it", card("done"), { type: "archive" }, "archived", "archived"],
  ["once only", card("archived"), { type: "archive" }, "it is archived"],
  ["an idea becomes work", card("triage"), { type: "specify" }, "todo", "specified"],
];
for (const [name, facts, move, outcome, event] of rows)
  test(`${move.type}: ${name}`, () => {
    const verdict = judge(facts, move);
    if ("refused" in verdict) assert.ok(event === undefined && verdict.refused.includes(outcome), verdict.refused);
    else assert.deepEqual([verdict.to, verdict.event], [outcome, event]);
  });

test("a card begins where its parents and its maker put it", () => {
  const start = { triage: false, blocked: false, openParents: [] };
  assert.equal(firstStatus(start), "ready");
  assert.equal(firstStatus({ ...start, ...parents }), "todo");
  assert.equal(firstStatus({ ...start, blocked: true }), "blocked");
  assert.equal(firstStatus({ ...start, ...parents, triage: true }), "triage");
});

test("nothing becomes ready by itself that somebody put aside or that waits", () => {
  const todo = { status: "todo" as const, openParents: [], isHeld: false };
  assert.equal(promotes(todo), true);
  assert.equal(promotes({ ...todo, ...parents }), false);
  assert.equal(promotes({ ...todo, status: "blocked" }), true);
  assert.equal(promotes({ ...todo, status: "blocked", isHeld: true }), false);
  assert.equal(promotes({ ...todo, status: "scheduled" }), false);
});

test("a circle is seen over any number of cards, and one that is there already is no trap", () => {
  const of: Readonly<Record<string, readonly string[]>> = { c: ["b"], b: ["a"], x: ["y"], y: ["x"] };
  const look = (id: string) => of[id] ?? [];
  assert.equal(closesCircle("c", "a", look), true);
  assert.equal(closesCircle("a", "c", look), false);
  assert.equal(closesCircle("x", "z", look), false);
});
