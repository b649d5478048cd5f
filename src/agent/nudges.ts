// When a look back is due: every few turns of the user for memory, every few rounds of tool calls for skills. The counters live with the
// session, so that they outlast the process, a change of model and a compression.

import { runWithSessionTag } from "../home/log.ts";
import type { HistoryMessage, UserInput } from "../llm/messages.ts";
import type { Assembly } from "./assembly.ts";
import type { Conversation } from "./conversation.ts";
import type { AgentEventBody, TurnOutcome } from "./events.ts";
import type { Transcript } from "./transcript.ts";

const TRIGGERS = ["memory", "skills"] as const;
export type Trigger = (typeof TRIGGERS)[number];

interface Counters {
  turns_since_memory: number;
  iters_since_skill: number;
  user_turn_count: number;
  /** Due, and not looked at yet. */
  armed: readonly Trigger[];
}

const KEY = "nudge";

/**
 * - A counter goes back to 0 when a review really starts, or when the model saved something by itself.
 * - A trigger that could not start stays armed. One whose review is cut off by the end of the program is armed again.
 */
export class Nudges {
  readonly #assembly: () => Assembly;
  readonly #provider: () => string;
  readonly #transcript: Transcript;
  #counters: Counters | null = null;
  /** Looked at right now. On disk they stay armed until that is over. */
  #running: readonly Trigger[] = [];
  #counting = false;
  #turnsHere = 0;
  #saved = "";

  constructor(parts: {
    readonly assembly: () => Assembly;
    readonly provider: () => string;
    readonly transcript: Transcript;
  }) {
    this.#assembly = parts.assembly;
    this.#provider = parts.provider;
    this.#transcript = parts.transcript;
  }

  /** User turns of the whole session. */
  get userTurns(): number {
    return this.#counters?.user_turn_count ?? 0;
  }

  /** User turns since the conversation was opened here. */
  get userTurnsHere(): number {
    return this.#turnsHere;
  }

  /** A turn begins; its user message is not in the history yet. */
  async turnStarts({ from }: Pick<UserInput, "from">): Promise<void> {
    const counters = await this.#load();
    this.#counting = from !== "synthetic" && this.#isForeground;
    if (!this.#counting) return;
    const { memory } = this.#intervals;
    this.#turnsHere++;
    counters.user_turn_count++;
    if (memory === 0) return;
    counters.turns_since_memory++;
    if (counters.turns_since_memory >= memory) counters.armed = union(counters.armed, ["memory"]);
  }

  /** The model answered with tool calls. */
  toolRound(): void {
    if (this.#counters && this.#counting && this.#intervals.skills > 0) this.#counters.iters_since_skill++;
  }

  /** What the model saves by itself needs no review. */
  toolSucceeded(name: string): void {
    const counters = this.#counters;
    if (!counters) return;
    if (name === "memory") counters.turns_since_memory = 0;
    if (name === "skill_manage") counters.iters_since_skill = 0;
    const done: Trigger | null = name === "memory" ? "memory" : name === "skill_manage" ? "skills" : null;
    counters.armed = counters.armed.filter((trigger) => trigger !== done);
  }

  /** The turn is over, however it ended. */
  async turnEnds(): Promise<void> {
    const counters = await this.#load();
    const { skills } = this.#intervals;
    if (skills > 0 && counters.iters_since_skill >= skills) counters.armed = union(counters.armed, ["skills"]);
    await this.#save();
  }

  /** What a review should look at now; empty when nothing is due or one is running. */
  get due(): readonly Trigger[] {
    if (this.#running.length > 0 || !this.#isForeground) return [];
    const intervals = this.#intervals;
    return (this.#counters?.armed ?? []).filter((trigger) => intervals[trigger] > 0);
  }

  async reviewStarts(triggers: readonly Trigger[]): Promise<void> {
    const counters = await this.#load();
    this.#running = triggers;
    counters.armed = counters.armed.filter((trigger) => !triggers.includes(trigger));
    if (triggers.includes("memory")) counters.turns_since_memory = 0;
    if (triggers.includes("skills")) counters.iters_since_skill = 0;
    await this.#save();
  }

  /** `cut`: it was stopped before it came to an end. */
  async reviewEnds({ cut }: { readonly cut: boolean }): Promise<void> {
    const counters = await this.#load();
    if (cut) counters.armed = union(counters.armed, this.#running);
    this.#running = [];
    await this.#save();
  }

  /** There was no time for it: it is due when the conversation goes on. */
  async postpone(trigger: Trigger): Promise<void> {
    const counters = await this.#load();
    counters.armed = union(counters.armed, [trigger]);
    await this.#save();
  }

  // --- shared

  async #load(): Promise<Counters> {
    if (this.#counters) return this.#counters;
    const { store } = this.#assembly().session;
    const { messages, sessionId } = this.#transcript;
    const isNew = messages.length === 0 || !store || !this.#isForeground;
    const stored = isNew ? null : await this.#read(sessionId);
    this.#counters ??= stored ?? countersOf(messages, this.#intervals);
    return this.#counters;
  }

  async #read(sessionId: string): Promise<Counters | null> {
    const assembly = this.#assembly();
    const { session } = assembly;
    try {
      return parseCounters(await session.store?.getValue(sessionId, KEY));
    } catch (error) {
      assembly.log.warn("the counters of the reviews could not be read; they are taken from the history", error);
      return null;
    }
  }

  async #save(): Promise<void> {
    const assembly = this.#assembly();
    const { session } = assembly;
    if (!session.store || !this.#counters || !this.#isForeground) return;
    const { sessionId } = this.#transcript;
    const value = { ...this.#counters, armed: union(this.#counters.armed, this.#running) };
    const text = `${sessionId} ${JSON.stringify(value)}`;
    if (text === this.#saved) return;
    try {
      await session.store.setValue(sessionId, KEY, value);
      this.#saved = text;
    } catch (error) {
      assembly.log.warn("the counters of the reviews could not be stored", error);
    }
  }

  get #isForeground(): boolean {
    return (this.#assembly().session.origin ?? "foreground") === "foreground";
  }

  get #intervals(): Readonly<Record<Trigger, number>> {
    const assembly = this.#assembly();
    const { tools } = assembly;
    const { memory, skills, auxiliary } = assembly.config();
    // The demo is no AI: what it would learn is worth nothing.
    const off = !auxiliary.background_review.enabled || this.#provider() === "demo";
    return {
      memory: !off && assembly.memory && tools.names.has("memory") ? memory.nudge_interval : 0,
      skills: !off && tools.names.has("skill_manage") ? skills.creation_nudge_interval : 0,
    };
  }
}

/** A conversation from before there were counters: as if they had been kept all along. */
function countersOf(history: readonly HistoryMessage[], intervals: Readonly<Record<Trigger, number>>): Counters {
  const turns = history.filter((message) => message.role === "user").length;
  const names = history.flatMap((message) =>
    message.role === "assistant" && message.tool_calls?.length
      ? [message.tool_calls.map((call) => call.function.name)]
      : [],
  );
  const rounds = names.length - 1 - names.findLastIndex((round) => round.includes("skill_manage"));
  return {
    turns_since_memory: intervals.memory > 0 ? turns % intervals.memory : 0,
    iters_since_skill: Math.max(0, Math.min(rounds, intervals.skills - 1)),
    user_turn_count: turns,
    armed: [],
  };
}

function parseCounters(value: unknown): Counters | null {
  if (typeof value !== "object" || value === null) return null;
  const { turns_since_memory, iters_since_skill, user_turn_count, armed } = value as Record<string, unknown>; // looked at below
  const whole = (given: unknown) => (Number.isSafeInteger(given) && Number(given) > 0 ? Number(given) : 0);
  return {
    turns_since_memory: whole(turns_since_memory),
    iters_since_skill: whole(iters_since_skill),
    user_turn_count: whole(user_turn_count),
    armed: TRIGGERS.filter((trigger) => Array.isArray(armed) && armed.includes(trigger)),
  };
}

function union(some: readonly Trigger[], more: readonly Trigger[]): readonly Trigger[] {
  return TRIGGERS.filter((trigger) => some.includes(trigger) || more.includes(trigger));
}

// Looks back at the conversation behind the user's back: after an answer, when it is due, one at a time, never in anybody's way.

const MAX_MS = 10 * 60_000;
const FAREWELL_MS = 5_000;

interface Running {
  readonly controller: AbortController;
  readonly finished: Promise<void>;
}

/**
 * - Nothing here rejects or waits for the model on behalf of a turn.
 * - What falls due while one runs stays armed and is looked at after a later turn.
 */
export class BackgroundReview {
  readonly #conversation: Conversation;
  readonly #publish: (event: AgentEventBody) => void;
  readonly #maxMs: number;
  #running: Running | null = null;
  #reviewedTurn = 0;

  constructor(
    conversation: Conversation,
    publish: (event: AgentEventBody) => void,
    { maxMs = MAX_MS }: { readonly maxMs?: number } = {},
  ) {
    this.#conversation = conversation;
    this.#publish = publish;
    this.#maxMs = maxMs;
  }

  /** One runs, or has run since the user last said something: there is nothing left to save. */
  get isFresh(): boolean {
    return this.#running !== null || (this.#reviewedTurn > 0 && this.#reviewedTurn === this.#conversation.turns);
  }

  turnEnded(outcome: TurnOutcome): void {
    const { nudges, assembly, sent } = this.#conversation;
    const answered = outcome.finalText !== null && !outcome.interrupted && !outcome.failed;
    if (!assembly.session.reviews || !answered || this.#running || !sent) return;
    const triggers = nudges.due;
    if (triggers.length === 0) return;
    const controller = new AbortController();
    const review = async () => {
      const { runReview } = await import("./review/review.ts");
      const signal = AbortSignal.any([controller.signal, AbortSignal.timeout(this.#maxMs)]);
      return runReview(this.#conversation, { triggers, sent, signal });
    };
    this.#reviewedTurn = sent.turn;
    const finished = runWithSessionTag(sent.sessionId, () => this.#follow(review(), controller.signal));
    this.#running = { controller, finished };
  }

  /** Resolves when none runs any more. */
  async idle(): Promise<void> {
    await this.#running?.finished;
  }

  /** Stops the one that runs; a last write may still come to its end. */
  async stop(): Promise<void> {
    if (!this.#running) return;
    this.#running.controller.abort();
    const { promise: late, resolve } = Promise.withResolvers<void>();
    const timer = setTimeout(resolve, FAREWELL_MS);
    await Promise.race([this.#running.finished, late]);
    clearTimeout(timer);
  }

  async #follow(review: Promise<string | null>, stopped: AbortSignal): Promise<void> {
    const { nudges, assembly } = this.#conversation;
    const { log } = assembly;
    try {
      const line = await review;
      if (line !== null) this.#publish({ type: "notice", kind: "review", text: line });
    } catch (error) {
      log.warn("the review of the conversation failed", error);
    }
    try {
      await nudges.reviewEnds({ cut: stopped.aborted });
    } catch (error) {
      log.warn("the end of a review could not be noted", error);
    }
    this.#running = null;
  }
}
