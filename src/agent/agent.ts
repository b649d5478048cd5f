// One conversation, as every door sees it.

import { type Logger, runWithSessionTag } from "../home/log.ts";
import { joinSignals } from "../kit/clock.ts";
import { UserError } from "../kit/errors.ts";
import { EventChannel } from "../kit/event-channel.ts";
import type { AuxiliaryClient } from "../llm/auxiliary/contract.ts";
import type { UserInput } from "../llm/messages.ts";
import type { Usage } from "../llm/usage.ts";
import { refuse } from "../safety/decision.ts";
import type { Assembly, ModelChoice } from "./assembly.ts";
import type { ContextManager, Pins } from "./compression/context-manager.ts";
import type { CompressReport, CompressRequest } from "./compression/shortener.ts";
import { Conversation, inUseSentence } from "./conversation.ts";
import {
  type Activity,
  ActivityWatch,
  type AgentEvent,
  type AgentEventBody,
  type SessionTotals,
  type TurnOutcome,
} from "./events.ts";
import { type FlushReason, isFlushDue } from "./flush-memories.ts";
import type { ForeignText } from "./foreign-text.ts";
import { BackgroundReview } from "./nudges.ts";
import { withPendingSteer } from "./outcome.ts";
import { offerToKeep, withoutKeys } from "./pasted-keys.ts";
import { IterationBudget, obey } from "./steer.ts";
import type { TakenBack } from "./transcript.ts";
import { playTurn } from "./turn.ts";
import type { TurnRecord } from "./turn-kit.ts";
import type { KnownLimits } from "./usage-meter.ts";

export interface RunOptions {
  readonly signal?: AbortSignal;
  /** Overrides the agent's own limit for this turn. */
  readonly maxIterations?: number;
  /** Whether somebody can be asked in this turn; default: as the conversation was opened. */
  readonly interactive?: boolean;
  /** How the turn is kept; default: its rows are appended. */
  readonly record?: TurnRecord;
  /** The last turn was cut off by a crash and goes on, its message being stored; the model is told this. */
  readonly continues?: string;
}

interface RunningTurn {
  readonly controller: AbortController;
  readonly budget: IterationBudget;
  readonly finished: Promise<void>;
  interruptMessage?: string;
  over?: true;
}

/**
 * One conversation.
 *
 * - One turn at a time: `run` while a turn runs throws `AgentBusyError` on its first step.
 * - `run` yields events in order and always ends with exactly one `done`; it does not throw for what model, network or tools did.
 * - Events nobody reads do not stop the turn; leaving the loop early (`break`) interrupts it.
 * - What the user said is stored before it is acted on; calls and results are stored before the next model call.
 */
export class Agent {
  readonly #conversation: Conversation;
  readonly #notices = new EventChannel<AgentEvent>();
  readonly #review: BackgroundReview;
  #running: RunningTurn | null = null;
  #heldNotices: AgentEventBody[] = [];
  #lastOutcome: TurnOutcome | null = null;
  readonly #activity = new ActivityWatch();
  #seq = 0;
  #naming: { readonly controller: AbortController; readonly finished: Promise<void> } | null = null;
  #closing: Promise<void> | null = null;
  /** A compression asked for by hand, what a message points at, or the last look before the end. A turn waits for it. */
  #sideWork: { readonly controller: AbortController; readonly finished: Promise<void> } | null = null;

  constructor(options: Assembly) {
    this.#conversation = new Conversation(options);
    this.#conversation.onControl = (control) => obey(control, this);
    this.#review = new BackgroundReview(this.#conversation, (event) => this.publish(event));
  }

  get sessionId(): string {
    return this.#conversation.transcript.sessionId;
  }

  get busy(): boolean {
    return this.#running !== null || this.#sideWork !== null;
  }

  get lastOutcome(): TurnOutcome | null {
    return this.#lastOutcome;
  }

  get model(): ModelChoice {
    return this.#conversation.model;
  }

  /** Sub-agents at work for the running turn, those of sub-agents included. */
  get activeChildren(): number {
    return this.#activity.children;
  }

  /** Whose text the conversation has read. */
  get foreignText(): ForeignText {
    return this.#conversation.foreign;
  }

  /** What the user is about to say comes with text of others. */
  async readOutside(from: readonly string[]): Promise<void> {
    if (from.length === 0) return;
    await this.#conversation.open();
    await this.foreignText.add(from.map((one) => ({ call: "", from: one })));
  }

  /** Tokens and money of the session so far. */
  get totals(): SessionTotals {
    return this.#conversation.meter.totals;
  }

  /** Side calls on this conversation's account. */
  get auxiliary(): AuxiliaryClient {
    return this.#conversation.auxiliary;
  }

  /** A model was asked outside the loop, on this conversation's account. */
  countSideCall(usage: Usage): void {
    this.#conversation.countSideCall(usage);
  }

  /** What the provider last said is left of its allowance; null when it never did. */
  get rateLimits(): KnownLimits | null {
    return this.#conversation.meter.rateLimits;
  }

  /** What happens outside of turns; never before the `done` it belongs to. For one reader. */
  get notices(): AsyncIterable<AgentEvent> {
    return this.#notices;
  }

  /** The simple call: the final text, empty when there is none. `onDelta` hears the visible text as it comes. */
  async chat(text: string, { onDelta }: { readonly onDelta?: (delta: string) => void } = {}): Promise<string> {
    let final: string | null = null;
    for await (const event of this.run({ text, from: "person" })) {
      if (event.type === "text") onDelta?.(event.delta);
      if (event.type === "done") final = event.outcome.finalText;
    }
    return final ?? "";
  }

  async *run(input: UserInput, options: RunOptions = {}): AsyncGenerator<AgentEvent, void, undefined> {
    while (this.#sideWork) await this.#sideWork.finished;
    if (this.#closing) throw new AgentBusyError("this agent is closed; open a new one");
    if (this.#running)
      throw new AgentBusyError("a turn is already running in this conversation; interrupt it or wait for it to end");
    const channel = new EventChannel<AgentEvent>({ join: joinDeltas });
    const running = this.#start(input, options, channel);
    try {
      yield* channel;
    } finally {
      // Still running: the reader left early, nobody wants the rest.
      if (!running.over) running.controller.abort();
      await running.finished;
    }
  }

  /** Stops the running turn; without one it does nothing. `reason` comes back as the outcome's `interruptMessage`. */
  interrupt(reason?: string): void {
    this.#sideWork?.controller.abort();
    if (!this.#running || this.#running.controller.signal.aborted) return;
    if (reason !== undefined) this.#running.interruptMessage = reason;
    this.#running.controller.abort();
  }

  /** Says something to the running turn without stopping it. False for blank text, and when no turn runs: then it is a message. */
  steer(text: string, row?: number): boolean {
    if (this.#running === null) return false;
    const { input, keys } = withoutKeys({ text }, this.#conversation.assembly);
    // Nobody is asked in mid-turn.
    void offerToKeep(keys, this.#conversation.assembly, {
      ask: async (question) => refuse(question),
      emit: (event) => this.publish(event),
    });
    return this.#conversation.steer.put(input.text, row);
  }

  /** Tokens of the last request, as the server counted them; null before the first. */
  get lastPromptTokens(): number | null {
    return this.#conversation.meter.lastPromptTokens;
  }

  /** Something was said with `steer` that the model has not read yet. */
  get isSteered(): boolean {
    return !this.#conversation.steer.empty;
  }

  /** One model call beyond the turn's limit; false when no turn runs or it had one. */
  grantGraceCall(): boolean {
    return this.#running?.budget.grantGrace() ?? false;
  }

  /** All or nothing: on any error the old model stays. Refused while a turn runs. */
  async switchModel(model: ModelChoice): Promise<void> {
    if (this.busy) throw new AgentBusyError("the model cannot be switched while a turn is running; interrupt it first");
    await this.#conversation.switchModel(model);
    const { target } = model;
    this.publish({
      type: "session",
      id: this.sessionId,
      title: null,
      model: target.model,
      provider: target.provider,
      reason: "switched",
    });
  }

  /**
   * Takes the last user turns back with their replies, in the store as in memory. Resolves to what the user had said, oldest first; refused
   * while a turn runs.
   */
  async undo(turns = 1): Promise<readonly TakenBack[]> {
    if (this.busy) throw new AgentBusyError("nothing can be undone while a turn is running; interrupt it first");
    const said = await this.exclusively(() => this.#conversation.undo(turns));
    if (said.length === 0) return said;
    this.#lastOutcome = null;
    this.#conversation.assembly.follower?.rewound?.(this.sessionId);
    return said;
  }

  /**
   * Shortens the conversation now, whatever its size; says what came of it. A turn that is begun meanwhile waits; `interrupt` stops it and
   * leaves everything as it was. Refused while a turn runs.
   */
  async compress(request: CompressRequest = {}): Promise<CompressReport> {
    if (this.busy)
      throw new AgentBusyError("the conversation cannot be compressed while a turn is running; interrupt it first");
    return this.exclusively(async (signal) => {
      await this.#conversation.open();
      const emit = (event: AgentEventBody) => {
        if (event.type === "status" && event.kind === "warn") this.publish(event);
      };
      const report = await this.#conversation.context.compress(request, { signal, emit });
      if (report.type === "compressed" || report.type === "adopted")
        this.publish(await this.#conversation.describeSession("compressed"));
      return report;
    });
  }

  /**
   * The last look before the conversation is left: the model may save what it would lose. Resolves to one line per save; `interrupt` puts
   * it off until the conversation goes on. Without a reason to look it does nothing.
   */
  async saveMemories(): Promise<readonly string[]> {
    if (!this.wantsToSave) return [];
    return this.betweenTurns(async (signal) => {
      const lines = await this.flushMemories("closing", signal);
      if (signal.aborted) await this.#conversation.nudges.postpone("memory");
      return lines;
    });
  }

  /** `saveMemories` would ask the model. */
  get wantsToSave(): boolean {
    return !this.busy && !this.#closing && !this.#review.isFresh && isFlushDue(this.#conversation, "closing");
  }

  /** For whoever is about to shorten the history. */
  async flushMemories(why: FlushReason, signal: AbortSignal): Promise<readonly string[]> {
    if (this.#review.isFresh || !isFlushDue(this.#conversation, why)) return [];
    const { flushMemories } = await import("./flush-memories.ts");
    return flushMemories(this.#conversation, { why, signal });
  }

  /** Resolves when nothing runs behind the turns any more (a review). */
  settled(): Promise<void> {
    return this.#review.idle();
  }

  /** Takes the last compression back, if nothing was said since; null when there is none. */
  async undoCompression(): Promise<{ readonly kind: "summary" | "prune" } | null> {
    if (this.busy) throw new AgentBusyError("nothing can be undone while a turn is running; interrupt it first");
    const undone = await this.exclusively(async () => {
      await this.#conversation.open();
      return this.#conversation.context.undo();
    });
    if (undone?.kind === "summary") this.publish(await this.#conversation.describeSession("undone"));
    return undone;
  }

  /** Builds the system prompt anew from what is on disk now. Refused while a turn runs. */
  async reloadPrompt(): Promise<{ readonly changed: boolean; readonly warnings: readonly string[] }> {
    if (this.busy) throw new AgentBusyError("the prompt cannot be rebuilt while a turn is running; interrupt it first");
    const changed = await this.exclusively(() => this.#conversation.reloadPrompt());
    return { changed, warnings: this.#conversation.assembly.prompt.takeWarnings?.() ?? [] };
  }

  /** Opens the context engine that the settings name; resolves to what is wrong with it, if anything is. */
  prepareEngine(): Promise<string | null> {
    return this.#conversation.context.prepare();
  }

  /** What the context engine says about itself; null as long as it was not needed. */
  get engineStatus(): ContextManager["status"] {
    return this.#conversation.context.status;
  }

  /** Lines that every compression keeps word for word. */
  get pins(): Pins {
    return this.#conversation.pins;
  }

  /** Sends something to `notices`; during a turn it waits for the turn's end. */
  publish(event: AgentEventBody): void {
    if (this.#running) this.#heldNotices.push(event);
    else this.#notices.push(this.#seal(event));
  }

  /** For watchdogs: when the agent last showed life, and what it was doing. Derived from the newest event. */
  activity(): Activity {
    const { assembly } = this.#conversation;
    const { limits } = assembly;
    return this.#activity.describe(assembly.clock.now(), this.#running?.budget ?? null, limits.maxIterations);
  }

  /**
   * Ends the turn, tool state and environment. A review that runs is stopped too, unless it may finish: then a second `close` stops it.
   * `afresh`: a new conversation takes its place. Idempotent.
   */
  async close({ finishReview = false, afresh = false }: CloseOptions = {}): Promise<void> {
    this.#closing ??= this.#shutDown(afresh);
    if (!finishReview) await this.#review.stop();
    await this.#closing;
  }

  async #shutDown(afresh: boolean): Promise<void> {
    const { assembly } = this.#conversation;
    const { tools } = assembly;
    this.interrupt();
    await this.#sideWork?.finished;
    await this.#running?.finished;
    this.#naming?.controller.abort();
    await this.#naming?.finished;
    await this.#conversation.context.close({ afresh });
    void this.#review.idle().then(() => this.#notices.close());
    await tools.state.dispose();
    await assembly.environment.cleanup();
  }

  #start(said: UserInput, options: RunOptions, channel: EventChannel<AgentEvent>): RunningTurn {
    const controller = new AbortController();
    const { assembly } = this.#conversation;
    const { input, keys } = withoutKeys(said, assembly);
    const { limits } = assembly;
    const budget = new IterationBudget(options.maxIterations ?? limits.maxIterations);
    const outer = () => controller.abort();
    if (options.signal?.aborted) controller.abort();
    options.signal?.addEventListener("abort", outer, { once: true });
    const { promise: finished, resolve } = Promise.withResolvers<void>();
    const running: RunningTurn = { controller, budget, finished };
    this.#running = running;
    const emit = (event: AgentEventBody) => {
      runWithSessionTag(this.sessionId, () => logEvent(assembly.log, event));
      channel.push(this.#seal(event));
    };
    const parts = {
      signal: controller.signal,
      interactive: options.interactive ?? assembly.session.interactive,
      budget,
      emit,
      notify: (text: string) => this.publish({ type: "notice", kind: "process", text }),
      interruptMessage: () => running.interruptMessage,
      record: options.record,
      continues: options.continues,
      ...(said.from === "synthetic" ? {} : { pastedKeys: keys }),
    };
    const served = assembly.working?.();
    const turn = runWithSessionTag(this.sessionId, () => playTurn(this.#conversation, input, parts));
    void turn.then((ended) => {
      // In one step: from here on `steer` refuses, so nothing can slip in between unseen.
      const outcome = withPendingSteer(ended, this.#conversation.steer);
      options.signal?.removeEventListener("abort", outer);
      this.#lastOutcome = outcome;
      running.over = true;
      this.#running = null;
      emit({ type: "done", outcome });
      assembly.follower?.turnEnded?.({ input, outcome });
      this.#nameAfter(input, outcome);
      channel.close();
      for (const held of this.#heldNotices.splice(0)) this.#notices.push(this.#seal(held));
      if (!this.#closing) this.#review.turnEnded(outcome);
      resolve();
      served?.();
    });
    return running;
  }

  /** Work between two turns: an interrupt reaches it, and a turn waits for it. */
  async betweenTurns<T>(work: (signal: AbortSignal) => Promise<T>): Promise<T> {
    while (this.#sideWork) await this.#sideWork.finished;
    const controller = new AbortController();
    const { promise: finished, resolve } = Promise.withResolvers<void>();
    this.#sideWork = { controller, finished };
    try {
      return await work(controller.signal);
    } finally {
      this.#sideWork = null;
      resolve();
    }
  }

  /** Work between two turns that changes what is stored: nobody else writes the conversation meanwhile. */
  exclusively<T>(work: (signal: AbortSignal) => Promise<T>): Promise<T> {
    return this.betweenTurns(async (signal) => {
      const lane = await this.#conversation.hold();
      if (lane.type !== "taken") throw new AgentBusyError(inUseSentence(lane, "changed"));
      const joined = joinSignals(signal, lane.lost);
      try {
        return await work(joined.signal);
      } finally {
        joined.release();
        await lane.release();
      }
    });
  }

  /** Nothing waits for it, and nothing of it is ever an error. */
  #nameAfter(input: UserInput, outcome: TurnOutcome): void {
    const { assembly } = this.#conversation;
    const { session } = assembly;
    const { store } = session;
    if (!session.titles || store === null || this.#naming || this.#closing) return;
    const controller = new AbortController();
    const finished = import("./titles.ts")
      .then(async ({ isWorthNaming, nameSession }) => {
        if (!isWorthNaming(input, outcome)) return;
        const { auxiliary, transcript, turns: turn, model } = this.#conversation;
        const { messages } = outcome;
        const sessionId = () => transcript.sessionId;
        const title = await nameSession({ store, auxiliary, sessionId, messages, turn, signal: controller.signal });
        if (title === null) return;
        const { model: name, provider } = model.target;
        this.publish({ type: "session", id: this.sessionId, title, model: name, provider, reason: "titled" });
      })
      .catch((error) => assembly.log.warn("the conversation got no title", error))
      .finally(() => {
        this.#naming = null;
      });
    this.#naming = { controller, finished };
  }

  #seal(event: AgentEventBody): AgentEvent {
    const sealed = { ...event, sessionId: this.sessionId, turn: this.#conversation.turns, seq: ++this.#seq };
    this.#activity.note(event, this.#conversation.assembly.clock.now());
    return sealed;
  }
}

interface CloseOptions {
  readonly finishReview?: boolean;
  readonly afresh?: boolean;
}

export class AgentBusyError extends UserError {
  override name = "AgentBusyError";
}

/** Unread pieces of one text become one event; the reader misses nothing but the joints. */
function joinDeltas(unread: AgentEvent, next: AgentEvent): AgentEvent | undefined {
  if (unread.type === "text" && next.type === "text") return { ...next, delta: unread.delta + next.delta };
  if (unread.type === "thinking" && next.type === "thinking") return { ...next, delta: unread.delta + next.delta };
  if (unread.type === "tool_progress" && next.type === "tool_progress" && unread.call.id === next.call.id)
    return { ...unread, ...next };
  return undefined;
}

// What the log keeps of a turn: that it ran, what it cost, what went wrong. Never what was said.

function logEvent(log: Logger, event: AgentEventBody): void {
  switch (event.type) {
    case "tool_end":
      return log.debug(`tool ${event.call.name} ${event.failed ? "failed" : "ended"} after ${Math.round(event.ms)} ms`);
    case "usage": {
      const { inputTokens, outputTokens, cacheReadTokens } = event.usage;
      return log.debug(`${event.task} call: ${inputTokens} tokens in, ${cacheReadTokens} cached, ${outputTokens} out`);
    }
    case "compressed":
      return log.info(`compressed (${event.kind}): ${event.before} tokens before, ${event.after} now`);
    case "status":
      if (event.kind === "warn") log.warn(event.message);
      if (event.kind === "lifecycle") log.info(event.message);
      return;
    case "done": {
      const { outcome } = event;
      const { exitReason, apiCalls, error, finalText, model, provider } = outcome;
      const line = `turn ended: ${exitReason}, ${apiCalls} model calls to ${model} at ${provider}`;
      return outcome.failed ? log.warn(`${line}: ${error ?? finalText ?? "no reason given"}`) : log.info(line);
    }
  }
}
