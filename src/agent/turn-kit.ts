// What a turn works with: who it runs for, who judges the answers, who runs the tools.

import { randomUUID } from "node:crypto";
import type { PastedKey } from "../home/open.ts";
import type { Clock } from "../kit/clock.ts";
import type { AuxiliaryClient } from "../llm/auxiliary/contract.ts";
import type { PaidCost, PaidUsage } from "../llm/gate.ts";
import type { HistoryMessage } from "../llm/messages.ts";
import { fenced } from "../prompt/fence.ts";
import { type AnswerTo, type Ask, type Question, refuse, toldToPeople } from "../safety/decision.ts";
import type { LaneToken } from "../sessions/store.ts";
import { pathsOfBatch } from "../tools/toolset/batch-plan.ts";
import type { HookedCall, RunContext, ToolContext } from "../tools/toolset/context.ts";
import type { Assembly, ParentCall } from "./assembly.ts";
import type { Conversation } from "./conversation.ts";
import type { AgentEventBody, SessionTotals } from "./events.ts";
import type { ForeignText } from "./foreign-text.ts";
import { guardedHooks, ToolLoopGuard } from "./guardrails.ts";
import { AnswerJudge } from "./judge.ts";
import type { Ending } from "./outcome.ts";
import type { IterationBudget } from "./steer.ts";
import { ToolRunner } from "./tool-runner.ts";

/**
 * How a turn is kept by a door whose messages wait in the store (sessions/work.ts). Absent: its rows are appended.
 *
 * - Each call is one step of the store under the lease of the turn; what it rejects with ends the turn, and nothing of it is kept.
 * - `finish` is called once for a turn that came to an end in this process, whatever end that is; not after a crash or a lost lane.
 */
export interface TurnRecord {
  /** Stores what the user said. Rejects with `WithdrawnError` when it no longer waits. */
  begin(sessionId: string, rows: readonly HistoryMessage[], lease: LaneToken): Promise<readonly number[]>;
  /** Before the first request leaves. */
  asked(lease: LaneToken): Promise<void>;
  /** Stores the last rows of the turn, with what is promised because of them. */
  finish(
    sessionId: string,
    rows: readonly HistoryMessage[],
    end: TurnEnd,
    lease: LaneToken,
  ): Promise<readonly number[]>;
}

/** What a door says about the end of a turn. */
type TurnEnd = Pick<Ending, "kind" | "finalText" | "exitReason" | "failure">;

/** What the user said was taken back before the turn began, or its turn is put off: nothing more of it is kept. */
export class WithdrawnError extends Error {
  override name = "WithdrawnError";
}

export interface TurnOptions {
  readonly signal: AbortSignal;
  /** A user is there to answer questions. */
  readonly interactive: boolean;
  readonly budget: IterationBudget;
  readonly emit: (event: AgentEventBody) => void;
  readonly notify: (text: string) => void;
  /** What the interrupt said, if there was one. */
  readonly interruptMessage: () => string | undefined;
  /** What was taken out of the message before the turn began. */
  readonly pastedKeys?: readonly PastedKey[];
  readonly record?: TurnRecord | undefined;
  /** The turn was cut off and goes on: its message is stored. The model is told this. */
  readonly continues?: string | undefined;
  /** Of the conversation, while the turn runs; absent where nothing is stored. */
  readonly lease?: LaneToken | undefined;
}

export interface TurnKit {
  readonly run: RunContext;
  readonly ask: Ask;
  readonly judge: AnswerJudge;
  readonly tools: ToolRunner;
  readonly mutations: FileMutations;
  readonly guard: ToolLoopGuard;
}

export function equipTurn(conversation: Conversation, { signal, interactive, emit, notify }: TurnOptions): TurnKit {
  const { assembly } = conversation;
  const { tools, limits, session } = assembly;
  const { target, maxTokens } = conversation.model;
  const { transcript } = conversation;
  const turn = session.turn ?? conversation.turns;
  const facts = {
    get sessionId() {
      return transcript.sessionId;
    },
    turn,
    signal,
    interactive,
  };
  const run = makeRunContext(conversation.assembly, facts);
  const ask = createAsk({
    interactive,
    signal,
    clock: assembly.clock,
    timeoutMs: (question) => assembly.askTimeoutMs?.(question, run),
    emit,
  });
  const mutations = new FileMutations(assembly.environment);
  const guard = new ToolLoopGuard(run.config.tool_loop_guardrails);
  return {
    run,
    ask,
    mutations,
    guard,
    judge: new AnswerJudge({
      names: tools.names,
      requestedCap: maxTokens,
      maxChildren: limits.maxConcurrentChildren ?? 3,
      redact: (text) => assembly.redact(text),
    }),
    tools: new ToolRunner({
      tools,
      assembly: { ...assembly, hooks: guardedHooks(guard, assembly.hooks) },
      run,
      ...(limits.toolTimes ? { times: limits.toolTimes } : {}),
      images: conversation.takesImages,
      history: () => transcript.messages,
      origins: conversation.origins,
      foreign: conversation.foreign,
      emit,
      onFinished(call, result, failed) {
        mutations.record(call, result, failed);
        if (!failed) conversation.nudges.toolSucceeded(call.name);
      },
      contextFor: toolContexts(conversation.assembly, run, {
        ask,
        contextLength: target.contextLength,
        seesImages: conversation.takesImages,
        notify,
        emit,
        used: (totals) => conversation.meter.addAll(totals),
        auxiliary: conversation.auxiliary,
        foreign: conversation.foreign,
      }),
    }),
  };
}

interface AskingOptions {
  readonly interactive: boolean;
  readonly signal: AbortSignal;
  readonly clock: Clock;
  readonly timeoutMs: (question: Question) => number | undefined;
  readonly emit: (event: AgentEventBody) => void;
}

/** Questions travel as events; the door answers through the request. Silence, an interrupt and an empty room all mean no. */
function createAsk(options: AskingOptions): Ask {
  return async <Q extends Question>(question: Q, signal?: AbortSignal): Promise<AnswerTo<Q>> => {
    if (!options.interactive) return refuse(question);
    const closed = new AbortController();
    const ends = [options.signal, closed.signal, ...(signal ? [signal] : [])];
    const over = AbortSignal.any(ends);
    if (over.aborted) return refuse(question);
    const { promise, resolve } = Promise.withResolvers<AnswerTo<Q>>();
    over.addEventListener("abort", () => resolve(refuse(question)), { once: true });
    const timeout = options.timeoutMs(question);
    if (timeout !== undefined) {
      options.clock.sleep(timeout, over).then(
        () => resolve(refuse(question, { timedOut: true })),
        () => undefined, // the question was settled before its time was up
      );
    }
    options.emit({
      type: "ask",
      // Whoever gets the request narrows on `question.kind` and answers in kind.
      request: {
        id: randomUUID(),
        question,
        signal: over,
        expiresAt: timeout === undefined ? null : options.clock.now() + timeout,
        answer: (given) => resolve(given as AnswerTo<Q>),
      },
    });
    try {
      return await promise;
    } finally {
      closed.abort();
    }
  };
}

// Models like to say that a file was written when it was not. What failed and was never made good is said at the end of the answer.

const MAX_LISTED = 10;
const PREVIEW = 180;

class FileMutations {
  readonly #failed = new Map<string, string>();
  readonly #environment: { readonly cwd: string; readonly home: string };

  /** `environment` is asked with every call: its directory moves. */
  constructor(environment: { readonly cwd: string; readonly home: string }) {
    this.#environment = environment;
  }

  record({ name, args }: HookedCall, result: string, failed: boolean): void {
    if (name !== "write_file" && name !== "patch") return;
    const { cwd, home } = this.#environment;
    for (const path of pathsOfBatch([{ name, arguments: JSON.stringify(args) }], cwd, { home })) {
      if (failed) this.#failed.set(path, preview(result));
      else this.#failed.delete(path);
    }
  }

  /** Null when every change that was tried has landed. */
  footer(): string | null {
    if (this.#failed.size === 0) return null;
    const listed = [...this.#failed].slice(0, MAX_LISTED).map(([path, error]) => `- ${path}: ${error}`);
    const more = this.#failed.size - listed.length;
    return ["⚠ Not written in this turn:", ...listed, ...(more > 0 ? [`- and ${more} more`] : [])].join("\n");
  }
}

function preview(result: string): string {
  const points = [
    ...toldToPeople(errorOf(result) ?? result)
      .replace(/\s+/g, " ")
      .trim(),
  ];
  return points.length <= PREVIEW ? points.join("") : `${points.slice(0, PREVIEW - 1).join("")}…`;
}

function errorOf(result: string): string | null {
  try {
    const { error } = JSON.parse(result) as { error?: unknown }; // read only if it is a text
    return typeof error === "string" ? error : null;
  } catch {
    return null;
  }
}

// What tools, hooks and guards know about the run they belong to. Made by the loop; no tool argument can change it.

interface RunFacts {
  readonly sessionId: string;
  readonly turn: number;
  readonly signal: AbortSignal;
  readonly interactive: boolean;
}

function makeRunContext(assembly: Assembly, facts: RunFacts): RunContext {
  const { session } = assembly;
  return {
    // A compression in mid-turn goes on under another id.
    get sessionId() {
      return facts.sessionId;
    },
    turn: facts.turn,
    signal: facts.signal,
    home: assembly.paths,
    config: assembly.config(),
    profile: session.profile,
    ...(session.sessionKey === undefined ? {} : { sessionKey: session.sessionKey }),
    taskId: session.taskId ?? randomUUID(),
    platform: session.platform,
    source: session.source,
    ...(session.chat === undefined ? {} : { chat: session.chat }),
    ...(session.sender === undefined ? {} : { sender: session.sender }),
    origin: session.origin ?? "foreground",
    interactive: facts.interactive,
    clock: assembly.clock,
    log: assembly.log,
  };
}

export interface CallFacts {
  readonly callId: string;
  readonly signal: AbortSignal;
  readonly progress: (text?: string) => void;
  readonly showDiff?: (diff: string) => void;
  readonly showOutput?: (lastLines: string) => void;
  readonly callTool?: ToolContext["callTool"];
  readonly forScript?: boolean;
}

/** Makes the contexts of one turn's calls. */
function toolContexts(
  assembly: Assembly,
  run: RunContext,
  shared: {
    readonly ask: Ask;
    readonly contextLength: number;
    readonly seesImages?: boolean;
    readonly notify: (text: string) => void;
    readonly auxiliary: AuxiliaryClient;
    readonly foreign: ForeignText;
  } & Pick<ParentCall, "emit" | "used">,
): (call: CallFacts) => ToolContext {
  const guard = assembly.guardFor(run, shared.ask, shared.auxiliary);
  const { session, tools, delegation } = assembly;
  const { emit, used } = shared;
  return (call) => ({
    ...run,
    ...call,
    environment: assembly.environment,
    guard,
    ask: shared.ask,
    sessions: session.store,
    state: tools.state,
    contextLength: shared.contextLength,
    ...(shared.seesImages === undefined ? {} : { seesImages: shared.seesImages }),
    async askAuxiliary(question) {
      const { sessionId, turn } = run;
      return (await shared.auxiliary.callAux({ ...question, signal: call.signal, sessionId, turn })).text;
    },
    async pay(task, paid, send) {
      const { sessionId, turn } = run;
      const { jobId } = session;
      const purpose = { task, sessionId, turn, ...(jobId === undefined ? {} : { jobId }) };
      const { value, usage, cost } = await assembly.gate.pay(paid, purpose, send, call.signal);
      used(oneCall(usage, cost));
      return value;
    },
    toolNames: tools.names,
    redact: (text) => assembly.redact(text),
    notify: shared.notify,
    asData: (text) => fenced("process", text),
    foreignText: () => (assembly.asksAfterForeignText?.() === false ? null : shared.foreign.words),
    ...assembly.toolPorts,
    ...(assembly.memory ? { memory: assembly.memory } : {}),
    ...(delegation
      ? {
          spawnChildren: (tasks) =>
            delegation.spawn(tasks, { ...call, sessionId: run.sessionId, emit, used, foreign: shared.foreign }),
        }
      : {}),
  });
}

function oneCall(usage: PaidUsage | null, { usd, status }: PaidCost): SessionTotals {
  return {
    inputTokens: usage?.inputTokens ?? 0,
    outputTokens: usage?.outputTokens ?? 0,
    cacheReadTokens: 0,
    cacheWriteTokens: 0,
    reasoningTokens: 0,
    apiCalls: 1,
    costUsd: usd,
    costStatus: status,
  };
}
