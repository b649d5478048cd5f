import assert from "node:assert/strict";
import { describe, test } from "node:test";
import {
  continuationText,
  contractLines,
  goalGauge,
  NO_CONTRACT,
  newGoal,
  parseGoal,
  paused,
  readContract,
  resumed,
  statusLine,
  waiting,
} from "./state.ts";

const goal = newGoal({ goal: "paint", contract: NO_CONTRACT }, { now: 100, maxTurns: 20 });

describe("a contract is read from the lines of a goal", () => {
  const CASES: readonly (readonly [string, string, Partial<typeof NO_CONTRACT>])[] = [
    ["paint the wall", "paint the wall", {}],
    ["paint\nverify: it is red", "paint", { verification: "it is red" }],
    [
      "goal: a red wall\nproof: a photo",
      "goal: a red wall\nproof: a photo",
      { outcome: "a red wall", verification: "a photo" },
    ],
    ["paint\n\nthe wall\nmust not: drip\ninside", "paint the wall inside", { constraints: "drip" }],
    ["x\nDONE WHEN: dry\nStop_When: no paint", "x", { outcome: "dry", stop_when: "no paint" }],
    ["x\noutcome: a\ndone: b", "x", { outcome: "a b" }],
    ["x\nverified by: v\nevidence: e", "x", { verification: "v e" }],
    ["x\nconstraint: a\nconstraints: b\npreserve: c\ndo not change: d", "x", { constraints: "a b c d" }],
    ["x\nscope: s\nboundary: b\nboundaries: c\nallowed: a\nfiles: src/", "x", { boundaries: "s b c a src/" }],
    ["x\nstop when: a\nblocked: b\nstop if blocked: c\ngive up when: d", "x", { stop_when: "a b c d" }],
    ["Fix bug: it crashes", "Fix bug: it crashes", {}],
    ["x\nverify:", "x verify:", {}],
    ["x\nverify:   ", "x verify:", {}],
    ["see https://example.com/done: yes", "see https://example.com/done: yes", {}],
  ];
  for (const [text, headline, contract] of CASES)
    test(JSON.stringify(text), () =>
      assert.deepEqual(readContract(text), { goal: headline, contract: { ...NO_CONTRACT, ...contract } }),
    );

  test("only what says something is shown, under its label", () => {
    const { contract } = readContract("x\nscope: src/\nblocked: no net");
    assert.deepEqual(contractLines(contract), ["- Boundaries: src/", "- Stop when blocked: no net"]);
  });
});

describe("a stored goal", () => {
  test("is read back as it was written", () => {
    const state = waiting({ ...goal, subgoals: ["door"], last_verdict: "wait" }, { process: "proc_1" }, "why", 7);
    assert.deepEqual(parseGoal(JSON.stringify(state)), state);
  });

  test("of version 0.15.1 has no counter of transport failures, and loads with defaults for all that it lacks", () => {
    const old =
      '{"goal": "paint", "status": "active", "turns_used": 3, "max_turns": 20, "created_at": 1750000000.5, "last_turn_at": 0.0, "last_verdict": null, "last_reason": null, "paused_reason": null, "consecutive_parse_failures": 1, "subgoals": ["door"]}';
    const state = parseGoal(old);
    assert.deepEqual(
      [state?.turns_used, state?.consecutive_parse_failures, state?.consecutive_transport_failures, state?.subgoals],
      [3, 1, 0, ["door"]],
    );
    assert.deepEqual([state?.contract, state?.waiting_until], [NO_CONTRACT, 0]);
    assert.deepEqual(parseGoal('{"goal": "x", "status": "paused"}')?.max_turns, 20);
  });

  test("keeps what another version wrote beside it", () => {
    const state = parseGoal('{"goal": "x", "status": "active", "novel": [1]}');
    assert.deepEqual((JSON.parse(JSON.stringify(state)) as { novel: unknown }).novel, [1]);
  });

  for (const text of [
    null,
    "",
    "{",
    "[]",
    '{"goal": "", "status": "active"}',
    '{"goal": "x", "status": "odd"}',
    '{"status": "active"}',
  ])
    test(`${JSON.stringify(text)} is none`, () => assert.equal(parseGoal(text), null));
});

test("a goal that is resumed has its whole budget again, and no failure counts any more", () => {
  const worn = { ...goal, turns_used: 20, consecutive_parse_failures: 2, consecutive_transport_failures: 4 };
  const { turns_used, consecutive_parse_failures, consecutive_transport_failures, status, paused_reason } = resumed(
    paused(worn, "spent"),
  );
  assert.deepEqual(
    [turns_used, consecutive_parse_failures, consecutive_transport_failures, status, paused_reason],
    [0, 0, 0, "active", null],
  );
});

test("the next message names itself and the goal in its first two lines, then what is required", () => {
  const { contract } = readContract("x\nverify: a photo");
  const lines = continuationText({ ...goal, contract, subgoals: ["door"] }).split("\n");
  assert.deepEqual(lines.slice(0, 8), [
    ...["[Continuing toward your standing goal]", "Goal: paint", "", "Contract:", "- Verification: a photo", ""],
    ...["Also required:", "1. door"],
  ]);
  assert.match(lines.join("\n"), /show the evidence/);
  assert.doesNotMatch(continuationText(goal), /evidence|Contract|Also/);
});

test("the gauge of a goal is its state and its turns, and nothing once it is over", () => {
  const used = { ...goal, turns_used: 3 };
  for (const [state, gauge] of [
    [used, "⊙ 3/20"],
    [waiting(used, { pid: 7 }, "", 90), "⏳ 3/20"],
    [paused(used, "by you"), "⏸ 3/20"],
    [{ ...used, status: "done" as const }, null],
    [null, null],
  ] as const)
    assert.equal(goalGauge(state), gauge);
});

test("the status says where a goal stands", () => {
  const { contract } = readContract("x\nverify: a photo");
  assert.equal(statusLine(goal, 100), "⊙ Goal active (0/20 turns): paint");
  assert.equal(
    statusLine({ ...goal, turns_used: 3, subgoals: ["a", "b"], contract }, 100, 0.25),
    "⊙ Goal active (3/20 turns, 2 subgoals, contract, $0.25): paint",
  );
  assert.equal(statusLine(paused(goal, "by you"), 100), "⏸ Goal paused, by you (0/20 turns): paint");
  assert.equal(statusLine({ ...goal, status: "done" }, 100), "✓ Goal achieved (0/20 turns): paint");
  assert.match(
    statusLine(waiting(goal, { until: 160 }, "oven", 90), 100),
    /^⏳ Goal parked for another (?:60s|1m|1 min)[^:]*: oven \(/,
  );
  assert.match(
    statusLine(waiting(goal, { pid: 7 }, "", 90), 100),
    /^⏳ Goal parked until process 7 ends, since 10s \(/,
  );
});
