// One goal as a door holds it: read, changed and judged here, for every door alike. What a door does differently is its `GoalDoor`.
import type { TurnOutcome } from "../agent/events.ts";
import type { OpenAgent } from "../agent/opened.ts";
import { isFailedResult } from "../agent/tool-runner.ts";
import type { Config } from "../home/config/schema.ts";
import { t } from "../home/language/words.ts";
import type { Clock } from "../kit/clock.ts";
import { isAlive } from "../kit/pid.ts";
import type { AuxiliaryClient } from "../llm/auxiliary/contract.ts";
import { GOAL_ACCOUNT } from "../llm/gate.ts";
import { type HistoryMessage, textOf } from "../llm/messages.ts";
import { withoutFence } from "../prompt/fence.ts";
import type { SessionStore } from "../sessions/store.ts";
import type { TrackedProcess } from "../tools/terminal/processes.ts";
import { afterJudging, beforeJudging, continued, type Outcome, type TurnEnd } from "./decide.ts";
import { askJudge, type CallMade, draftContract } from "./judge.ts";
import {
  cleared,
  continuationText,
  type GoalContract,
  type GoalState,
  isOpen,
  notWaiting,
  parseGoal,
  waitTargetOf,
} from "./state.ts";

const WATCH_MS = 1000;
const MOST_TRIES = 5;

/** One step of a goal, to be taken as a whole. */
export interface GoalStep {
  readonly meta: { readonly key: string; readonly value: string; readonly expected: string | null };
  readonly state: GoalState;
  /** The next message to the agent; null: none, and one that waits is dropped; absent: what waits stays. */
  readonly next?: NextMessage | null;
  /** For the user, behind everything that was said before. */
  readonly line: string | null;
  /** Not while a turn runs or a message of the user waits. */
  readonly unlessBusy: boolean;
}

interface NextMessage {
  readonly text: string;
  /** The user's own words, or a message of the program. */
  readonly from: "person" | "synthetic";
}

/** What a door does for the goal of one conversation. */
export interface GoalDoor {
  /** All of the step or nothing; `changed`: the stored goal is not the expected one any more. */
  take(step: GoalStep): Promise<"done" | "changed" | "busy">;
  /** A turn runs, or a message of the user waits. */
  isBusy(): boolean;
}

/** The conversation, as far as a goal has to do with it. */
interface GoalSubject {
  readonly sessionId: string;
  readonly store: SessionStore;
  readonly auxiliary: AuxiliaryClient;
  /** What it started in the background; those it does not know are over. */
  processes(): readonly Omit<TrackedProcess, "startTime" | "child" | "finishedAt" | "consumed" | "ended">[];
  /** Who pays for its calls from now on. */
  pays(account: string | null): void;
}

/** Of a conversation that stays open as long as its goal is looked after. */
export const subjectOf = (conversation: OpenAgent): GoalSubject => ({
  ...{ store: conversation.store, sessionId: conversation.agent.sessionId, auxiliary: conversation.agent.auxiliary },
  processes: () => conversation.processes.list(),
  pays(account) {
    conversation.account = account;
  },
});

interface GoalPorts {
  readonly door: GoalDoor;
  readonly clock: Clock;
  config(): Config;
  subject(): GoalSubject;
  onError(error: unknown): void;
}

interface Held {
  readonly state: GoalState | null;
  readonly key: string;
  /** As it is stored. */
  readonly raw: string | null;
}

type Change = { readonly state: GoalState } & Partial<Pick<GoalStep, "next" | "line" | "unlessBusy">>;

/** The agent is told by the program what comes next. */
export const following = ({ state, line, next }: Outcome): Change => ({
  ...{ state, line },
  next: next === null ? null : { text: next, from: "synthetic" },
});

export class Goals {
  readonly #ports: GoalPorts;
  #judging: AbortController | null = null;
  #watching: AbortController | null = null;
  #closed = false;
  #latest: GoalState | null = null;

  constructor(ports: GoalPorts) {
    this.#ports = ports;
  }

  /** Unix seconds. */
  get now(): number {
    return this.#ports.clock.now() / 1000;
  }

  get maxTurns(): number {
    return this.#ports.config().goals.max_turns;
  }

  /** As it was read or stored last. */
  get latest(): GoalState | null {
    return this.#latest;
  }

  async state(): Promise<GoalState | null> {
    return (await this.#held()).state;
  }

  /** Dollars; null where nothing is known. */
  async spent(state: GoalState): Promise<number | null> {
    const { store } = this.#ports.subject();
    return (await store.spent({ job: await this.#account(state) })).usd || null;
  }

  /**
   * Changes the goal: `edit` gets it as it is stored now and gives what it becomes, or a sentence that says why not. It is asked again when
   * somebody else was quicker. Resolves to the sentence, or null.
   */
  async change(edit: (state: GoalState | null) => Change | string): Promise<string | null> {
    for (let tries = 0; tries < MOST_TRIES; tries++) {
      const held = await this.#held();
      const change = edit(held.state);
      if (typeof change === "string") return change;
      const how = await this.#take(held, change);
      if (how === "done") return null;
      if (how === "busy") return t("A turn is running.");
    }
    return t("The goal was changed elsewhere at the same time. Try again.");
  }

  /** The contract that a model makes of an objective; null when it made none. */
  async draft(objective: string, signal: AbortSignal): Promise<GoalContract | null> {
    const { auxiliary, sessionId } = this.#ports.subject();
    const account = await this.#account({ created_at: this.now });
    return draftContract(objective, { ...{ auxiliary, sessionId, account, signal }, maxTokens: this.#maxTokens });
  }

  /**
   * The conversation is open: from here on its goal pays, and is woken when what it waits for happens. A goal that a crash of the original
   * left with the session before a compression is taken along.
   */
  async begin(): Promise<GoalState | null> {
    const held = await this.#held();
    const state = held.state?.status === "done" || isOpen(held.state) ? held.state : await this.#takeAlong(held);
    await this.#follow(state);
    return state;
  }

  /** A turn begins: a judgement that is under way is too late. */
  turnBegins(): void {
    this.#judging?.abort();
  }

  /** What the agent is told next, as the goal is now; null when it is no longer active. */
  async nextText(): Promise<string | null> {
    const { state } = await this.#held();
    return state?.status === "active" ? continuationText(state) : null;
  }

  /**
   * After each turn. `messages`: the conversation with this turn at its end. Resolves when the goal is judged and what follows is stored,
   * or when there is nothing to do.
   */
  async turnEnded(turn: Omit<TurnEnd, "answer">, messages: readonly HistoryMessage[]): Promise<void> {
    if (this.#closed) return;
    const { clock, door } = this.#ports;
    const held = await this.#held();
    await this.#follow(held.state);
    const { answer, calls } = lastTurn(messages);
    const before = beforeJudging(
      held.state,
      { ...turn, answer },
      { now: this.now, userWaits: door.isBusy(), barrierHolds: held.state !== null && this.#isWaiting(held.state) },
    );
    if (before.type === "nothing" || this.#closed) return;
    if (before.type === "settled") return void (await this.#take(held, { ...following(before), unlessBusy: true }));
    this.#judging?.abort();
    const judging = new AbortController();
    this.#judging = judging;
    try {
      const { auxiliary, sessionId } = this.#ports.subject();
      const judgement = await askJudge(
        before.state,
        { answer, calls, processes: this.#running(), now: clock.now() },
        {
          ...{ auxiliary, sessionId, maxTokens: this.#maxTokens, signal: judging.signal },
          account: await this.#account(before.state),
        },
      );
      if (judgement === null || judging.signal.aborted) return;
      // Somebody may have changed the goal meanwhile: then this verdict is about another one.
      await this.#take(held, { ...following(afterJudging(before.state, judgement, this.now)), unlessBusy: true });
    } finally {
      if (this.#judging === judging) this.#judging = null;
    }
  }

  /** Whether the last turn was ever judged: a process may have died before. */
  async isUnjudged(messages: readonly (HistoryMessage & { readonly timestamp: number })[]): Promise<boolean> {
    const { state } = await this.#held();
    const last = messages.at(-1);
    if (state?.status !== "active" || last?.role !== "assistant" || (last.tool_calls ?? []).length > 0) return false;
    return last.timestamp > Math.max(state.last_turn_at, state.created_at);
  }

  close(): void {
    this.#closed = true;
    this.#judging?.abort();
    this.#watching?.abort();
  }

  // --- storing

  async #held(): Promise<Held> {
    const { store, sessionId } = this.#ports.subject();
    const key = keyOf(sessionId);
    const raw = await store.getMeta(key);
    this.#latest = parseGoal(raw);
    return { state: this.#latest, key, raw };
  }

  async #takeAlong({ state, key, raw }: Held): Promise<GoalState | null> {
    const { store, sessionId } = this.#ports.subject();
    for (const before of (await store.conversation(sessionId)).slice(0, -1).toReversed()) {
      const value = await store.getMeta(keyOf(before));
      const left = parseGoal(value);
      if (!isOpen(left) || value === null || !(await store.setMeta(key, value, raw))) continue;
      await store.setMeta(keyOf(before), JSON.stringify(cleared(left)), value);
      return left;
    }
    return state;
  }

  async #take({ key, raw }: Held, change: Change): Promise<"done" | "changed" | "busy"> {
    const { state, next, line = null, unlessBusy = false } = change;
    if (!unlessBusy) this.#judging?.abort();
    const how = await this.#ports.door.take({
      ...{ meta: { key, value: JSON.stringify(state), expected: raw }, state, line, unlessBusy },
      ...(next === undefined ? {} : { next }),
    });
    if (how !== "done") return how;
    this.#latest = state;
    await this.#follow(state);
    return how;
  }

  /** First session and moment: no two goals have both, and a compression changes neither. */
  async #account({ created_at }: Pick<GoalState, "created_at">): Promise<string> {
    const { store, sessionId } = this.#ports.subject();
    const [root = sessionId] = await store.conversation(sessionId);
    return `${GOAL_ACCOUNT}${root}:${created_at}`;
  }

  get #maxTokens(): number {
    return this.#ports.config().auxiliary.goal_judge.max_tokens;
  }

  // --- waiting

  /** Who pays, and whether something has to be waited for. */
  async #follow(state: GoalState | null): Promise<void> {
    const isActive = state?.status === "active";
    this.#ports.subject().pays(isActive ? await this.#account(state) : null);
    this.#watching?.abort();
    this.#watching = null;
    if (!isActive || waitTargetOf(state) === null || this.#closed) return;
    const watching = new AbortController();
    this.#watching = watching;
    this.#watch(state, watching.signal).catch((error) => {
      if (!watching.signal.aborted) this.#ports.onError(error);
    });
  }

  async #watch(state: GoalState, signal: AbortSignal): Promise<void> {
    const { clock, door } = this.#ports;
    for (;;) {
      await clock.sleep(WATCH_MS, signal);
      if (this.#isWaiting(state) || door.isBusy()) continue;
      const held = await this.#held();
      if (signal.aborted || held.state?.status !== "active" || waitTargetOf(held.state) === null) return;
      const go = continued(notWaiting(held.state), t("the wait is over"));
      // Where a turn comes first, that one is judged.
      if ((await this.#take(held, { ...following(go), unlessBusy: true })) === "done") return;
    }
  }

  /** What it waits for has not happened. What nobody knows any more has. */
  #isWaiting(state: GoalState): boolean {
    const target = waitTargetOf(state);
    if (target === null) return false;
    if ("until" in target) return this.now < target.until;
    if ("pid" in target) return isAlive(target.pid);
    return this.#running().some(({ id, matched }) => id === target.process && !matched);
  }

  #running() {
    const { now } = this;
    return this.#ports
      .subject()
      .processes()
      .filter(({ exitCode }) => exitCode === null)
      .map((process) => ({ ...process, seconds: now - process.startedAt / 1000 }));
  }
}

export const keyOf = (sessionId: string) => `goal:${sessionId}`;

/** How a turn ended, from what the agent says about it; null: nothing happened that a goal has to do with. */
export function turnEndOf(outcome: TurnOutcome, how: string): Omit<TurnEnd, "answer"> | null {
  if (outcome.unsent) return null;
  const said = (outcome.error ?? outcome.finalText ?? outcome.exitReason).split("\n")[0] ?? "";
  return {
    interrupted: outcome.interrupted ? `user-interrupted (${how})` : null,
    failed: outcome.failed ? said.replace(/\.$/, "").slice(0, 300) : null,
  };
}

/** The answer at the end of a conversation, and the calls that led to it. */
function lastTurn(messages: readonly HistoryMessage[]): {
  readonly answer: string;
  readonly calls: readonly CallMade[];
} {
  const from = messages.findLastIndex(({ role }) => role === "user");
  const turn = messages.slice(from + 1);
  const last = turn.at(-1);
  const answer = last?.role === "assistant" && (last.tool_calls ?? []).length === 0 ? textOf(last.content) : "";
  const calls = turn.flatMap((message) => (message.role === "assistant" ? (message.tool_calls ?? []) : []));
  const results = new Map(
    turn.flatMap((message) =>
      message.role === "tool" ? [[message.tool_call_id, textOf(message.content)] as const] : [],
    ),
  );
  return {
    answer,
    calls: calls.map(({ id, function: { name, arguments: args } }) => ({
      what: `${name} ${args.replace(/\s+/g, " ").slice(0, 120)}`,
      failed: isFailedResult(name, withoutFence(results.get(id) ?? '{"error": "no result"}')),
    })),
  };
}
