// What becomes of a goal after a turn. Pure: who asks the judge, stores the state and queues the next turn is in keeper.ts.
import {
  achievedLine,
  continuationText,
  continuingLine,
  type GoalState,
  notWaiting,
  parkedLine,
  paused,
  pausedLine,
  type WaitTarget,
  waiting,
} from "./state.ts";

const MOST_TRANSPORT_FAILURES = 5;
const MOST_PARSE_FAILURES = 3;

/** How a turn ended, as far as a goal has to do with it. */
export interface TurnEnd {
  /** The user stopped it: how, in words. */
  readonly interrupted: string | null;
  /** It failed: why. A spending cap is one reason. */
  readonly failed: string | null;
  /** Empty: there is none. */
  readonly answer: string;
}

/** What a change of the goal brings with it. */
export interface Outcome {
  readonly state: GoalState;
  /** For the user. */
  readonly line: string | null;
  /** The next message to the agent; null: none, and one that waits is dropped. */
  readonly next: string | null;
}

type BeforeJudging =
  | { readonly type: "nothing" }
  | ({ readonly type: "settled" } & Outcome)
  /** With the turn counted. */
  | { readonly type: "judge"; readonly state: GoalState };

interface Moment {
  readonly now: number;
  /** A message of the user waits: that turn is judged instead. */
  readonly userWaits: boolean;
  /** What the goal waits for has not happened yet. */
  readonly barrierHolds: boolean;
}

/** The first that applies. */
export function beforeJudging(
  state: GoalState | null,
  turn: TurnEnd,
  { now, userWaits, barrierHolds }: Moment,
): BeforeJudging {
  if (state?.status !== "active" || userWaits) return { type: "nothing" };
  if (turn.interrupted !== null) return pause(state, turn.interrupted);
  if (turn.failed !== null) return pause(state, turn.failed);
  if (turn.answer.trim() === "") return { type: "nothing" };
  if (barrierHolds) {
    const parked = { ...state, last_turn_at: now };
    return { type: "settled", state: parked, line: parkedLine(parked, now), next: null };
  }
  return { type: "judge", state: { ...notWaiting(state), turns_used: state.turns_used + 1, last_turn_at: now } };
}

const pause = (state: GoalState, reason: string): BeforeJudging => ({ type: "settled", ...pausedFor(state, reason) });

function pausedFor(state: GoalState, reason: string): Outcome {
  const next = paused(state, reason);
  return { state: next, line: pausedLine(next), next: null };
}

export type Judgement =
  | { readonly type: "done" | "continue"; readonly reason: string }
  | { readonly type: "wait"; readonly target: WaitTarget; readonly reason: string }
  /** The judge answered, but not in a way that could be read. */
  | { readonly type: "unreadable"; readonly reason: string }
  /** It could not be asked. */
  | { readonly type: "unreachable"; readonly reason: string }
  /** No model is set to judge, or a spending limit forbade to ask it: another turn changes nothing about that. */
  | { readonly type: "unaskable"; readonly reason: string };

/** `counted`: with the turn in it. */
export function afterJudging(counted: GoalState, judgement: Judgement, now: number): Outcome {
  const { type, reason } = judgement;
  const state: GoalState = {
    ...counted,
    last_verdict: type === "done" || type === "wait" ? type : "continue",
    last_reason: reason,
    consecutive_parse_failures: type === "unreadable" ? counted.consecutive_parse_failures + 1 : 0,
    consecutive_transport_failures: type === "unreachable" ? counted.consecutive_transport_failures + 1 : 0,
  };
  switch (type) {
    case "wait": {
      const parked = waiting(state, judgement.target, reason, now);
      return { state: parked, line: parkedLine(parked, now), next: null };
    }
    case "done":
      return { state: { ...state, status: "done" }, line: achievedLine(reason), next: null };
    case "unaskable":
      return pausedFor(state, reason);
    default:
      return orContinue(state, reason);
  }
}

const SET_JUDGE = "set auxiliary.goal_judge.provider and auxiliary.goal_judge.model to another one";

function orContinue(state: GoalState, reason: string): Outcome {
  const { consecutive_transport_failures: transport, consecutive_parse_failures: parse } = state;
  if (transport >= MOST_TRANSPORT_FAILURES)
    return pausedFor(state, `judge API unreachable ${transport} turns in a row; ${SET_JUDGE}`);
  if (parse >= MOST_PARSE_FAILURES)
    return pausedFor(state, `judge model returned unparseable output ${parse} turns in a row; ${SET_JUDGE}`);
  if (state.turns_used >= state.max_turns)
    return pausedFor(state, `turn budget exhausted (${state.turns_used}/${state.max_turns})`);
  return continued(state, reason);
}

/** The next turn toward the goal. */
export const continued = (state: GoalState, reason: string): Outcome => ({
  state,
  line: continuingLine(state, reason),
  next: continuationText(state),
});
