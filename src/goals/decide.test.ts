import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { afterJudging, beforeJudging, type Judgement, type TurnEnd } from "./decide.ts";
import { type GoalState, NO_CONTRACT, newGoal, waiting } from "./state.ts";

const NOW = 1_000;
const fresh = newGoal({ goal: "paint", contract: NO_CONTRACT }, { now: 1, maxTurns: 20 });
const goal = (change: Partial<GoalState> = {}): GoalState => ({ ...fresh, turns_used: 3, ...change });
const parked = (change: Partial<GoalState> = {}) => waiting(goal(change), { pid: 7 }, "the build", 990);

describe("before the judge is asked, the first that applies", () => {
  const ended = { interrupted: null, failed: null, answer: "I painted." };
  const moment = { now: NOW, userWaits: false, barrierHolds: false };
  interface Case {
    readonly state?: GoalState | null;
    readonly turn?: Partial<TurnEnd>;
    readonly at?: Partial<typeof moment>;
    readonly is: string;
  }
  const CASES: Readonly<Record<string, Case>> = {
    "no goal": { state: null, is: "nothing" },
    "a paused goal": { state: goal({ status: "paused" }), is: "nothing" },
    "a goal that was reached": { state: goal({ status: "done" }), is: "nothing" },
    "a goal that was cleared": { state: goal({ status: "cleared" }), is: "nothing" },
    "the user waits": { at: { userWaits: true }, is: "nothing" },
    "the user waits after an interrupted turn": {
      ...{ turn: { interrupted: "user-interrupted (Ctrl+C)" }, at: { userWaits: true }, is: "nothing" },
    },
    "the user waits after a failed turn": { turn: { failed: "no key" }, at: { userWaits: true }, is: "nothing" },
    "an interrupted turn": {
      turn: { interrupted: "user-interrupted (Ctrl+C)" },
      is: "paused user-interrupted (Ctrl+C) 3",
    },
    "an interrupted turn of a goal that waits": {
      ...{ state: parked(), turn: { interrupted: "by hand" }, at: { barrierHolds: true }, is: "paused by hand 3" },
    },
    "a failed turn": { turn: { failed: "no key" }, is: "paused no key 3" },
    "a turn that a spending cap stopped": { turn: { failed: "Nothing was sent" }, is: "paused Nothing was sent 3" },
    "a failed turn without an answer": { turn: { failed: "no key", answer: "" }, is: "paused no key 3" },
    "an empty answer": { turn: { answer: " \n" }, is: "nothing" },
    "a barrier that holds": { state: parked(), at: { barrierHolds: true }, is: "parked 3" },
    "a barrier that no longer holds": { state: parked(), is: "judge 4" },
    "an answer": { is: "judge 4" },
    "the last turn of the budget": { state: goal({ turns_used: 19 }), is: "judge 20" },
  };
  for (const [name, { state = goal(), turn = {}, at = {}, is }] of Object.entries(CASES))
    test(`${name}: ${is}`, () => {
      const before = beforeJudging(state, { ...ended, ...turn }, { ...moment, ...at });
      const after = before.type === "nothing" ? null : before.state;
      const what =
        before.type === "settled"
          ? after?.status === "paused"
            ? `paused ${after.paused_reason}`
            : "parked"
          : before.type;
      assert.equal(after === null ? what : `${what} ${after.turns_used}`, is);
      if (before.type === "settled") assert.equal(before.next, null);
      if (before.type === "judge") assert.deepEqual([after?.last_turn_at, after?.waiting_on_pid], [NOW, null]);
    });
});

describe("what the judge says", () => {
  const on: Judgement = { type: "continue", reason: "r" };
  const done: Judgement = { type: "done", reason: "r" };
  const unreadable: Judgement = { type: "unreadable", reason: "r" };
  const unreachable: Judgement = { type: "unreachable", reason: "r" };
  const unaskable: Judgement = { type: "unaskable", reason: "r" };
  const wait: Judgement = { type: "wait", target: { until: 1_060 }, reason: "r" };
  const failures = (parse: number, transport: number, turns_used = 4) =>
    goal({ turns_used, consecutive_parse_failures: parse, consecutive_transport_failures: transport });
  const CASES: readonly (readonly [GoalState, Judgement, string, (readonly [parse: number, transport: number])?])[] = [
    [failures(0, 0), on, "active, continued", [0, 0]],
    [failures(2, 0), on, "active, continued", [0, 0]],
    [failures(0, 4), on, "active, continued", [0, 0]],
    [failures(0, 0, 19), on, "active, continued"],
    [failures(0, 0, 20), on, "paused: turn budget exhausted (20/20)"],
    [failures(0, 0, 25), on, "paused: turn budget exhausted (25/20)"],
    [failures(0, 0), done, "done", [0, 0]],
    [failures(0, 0, 20), done, "done"],
    [failures(2, 4), done, "done", [0, 0]],
    [failures(0, 0), wait, "active, parked", [0, 0]],
    [failures(0, 0, 20), wait, "active, parked"],
    [failures(2, 0), wait, "active, parked", [0, 0]],
    [failures(0, 0), unreadable, "active, continued", [1, 0]],
    [failures(1, 0), unreadable, "active, continued", [2, 0]],
    [failures(2, 0), unreadable, "paused: judge model returned unparseable output 3 turns in a row", [3, 0]],
    [failures(1, 4), unreadable, "active, continued", [2, 0]],
    [failures(0, 0), unreachable, "active, continued", [0, 1]],
    [failures(2, 3), unreachable, "active, continued", [0, 4]],
    [failures(0, 4), unreachable, "paused: judge API unreachable 5 turns in a row", [0, 5]],
    [failures(0, 4, 20), unreachable, "paused: judge API unreachable 5 turns in a row"],
    [failures(0, 0, 20), unreadable, "paused: turn budget exhausted (20/20)"],
    [failures(0, 0), unaskable, "paused: r"],
    [failures(2, 4), unaskable, "paused: r", [0, 0]],
  ];
  for (const [state, judgement, is, counters] of CASES) {
    const { turns_used, consecutive_parse_failures: parse, consecutive_transport_failures: transport } = state;
    test(`${judgement.type} in turn ${turns_used} after ${parse} and ${transport} failures: ${is}`, () => {
      const { state: after, next, line } = afterJudging(state, judgement, NOW);
      const what =
        after.status === "paused"
          ? `paused: ${after.paused_reason}`
          : after.status === "done"
            ? "done"
            : next === null
              ? "active, parked"
              : "active, continued";
      assert.ok(what.startsWith(is), what);
      assert.equal(next !== null, is === "active, continued");
      assert.equal(after.turns_used, turns_used);
      assert.ok(line && /^[↻✓⏳⏸] /u.test(line), line ?? "no line");
      if (counters)
        assert.deepEqual([after.consecutive_parse_failures, after.consecutive_transport_failures], counters);
      if (/judge (?:API|model)/.test(what)) assert.match(line ?? "", /auxiliary\.goal_judge.*\/goal resume/);
    });
  }
});
