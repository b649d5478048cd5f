// What every door renders: the whole vocabulary of a turn, and of what happens outside of it.
import type { CostStatus, Task } from "../llm/gate.ts";
import type { HistoryMessage, UserInput } from "../llm/messages.ts";
import type { Usage } from "../llm/usage.ts";
import type { AnswerTo, Question } from "../safety/decision.ts";
import type { IterationBudget } from "./steer.ts";

export interface ToolCallView {
  readonly id: string;
  readonly name: string;
  readonly args: Readonly<Record<string, unknown>>;
  /** One line for a progress display. */
  readonly preview: string;
}

/** A question that waits for this door. Exactly one answer counts; later ones are ignored. */
export interface AskRequest<Q extends Question = Question> {
  readonly id: string;
  readonly question: Q;
  readonly signal: AbortSignal;
  /** When silence becomes the answer, in milliseconds since the epoch; null = never. */
  readonly expiresAt: number | null;
  answer(answer: AnswerTo<Q>): void;
}

export interface SessionTotals {
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly cacheReadTokens: number;
  readonly cacheWriteTokens: number;
  readonly reasoningTokens: number;
  readonly apiCalls: number;
  /** Known costs only; `costStatus` is `unknown` as soon as one call's cost is. */
  readonly costUsd: number | null;
  readonly costStatus: CostStatus;
  /** Where the price of the newest priced call came from. */
  readonly costSource?: string;
}

/** A child agent at work. Children of children are reported here too, by their own ids. */
export interface SubagentEvent {
  readonly type: "subagent";
  readonly phase: "spawn_requested" | "start" | "thinking" | "tool" | "progress" | "complete";
  readonly id: string;
  /** The child that started it; null for a child of this conversation. */
  readonly parentId: string | null;
  /** 1 for a child of this conversation. */
  readonly depth: number;
  readonly taskIndex: number;
  readonly taskCount: number;
  readonly goal: string;
  readonly model: string;
  /** What it is doing, or how it ended, in one line. */
  readonly text?: string;
  /** Its whole report; with phase `complete`, when there is one. */
  readonly summary?: string;
  /** The call it makes; with phase `tool`. */
  readonly call?: ToolCallView;
  /** How it ended; with phase `complete`. */
  readonly status?: "completed" | "failed" | "max_iterations" | "interrupted" | "timeout" | "error";
  readonly ms?: number;
}

type EventBody =
  | { readonly type: "turn_start"; readonly input: UserInput }
  | {
      readonly type: "step";
      readonly iteration: number;
      readonly max: number;
      readonly previousTools: readonly string[];
    }
  | { readonly type: "text"; readonly delta: string }
  | { readonly type: "text_end"; readonly text: string; readonly kind: "interim" | "final"; readonly streamed: boolean }
  | { readonly type: "thinking"; readonly delta: string }
  | { readonly type: "tool_pending"; readonly name: string }
  | { readonly type: "tool_start"; readonly call: ToolCallView }
  | {
      readonly type: "tool_progress";
      readonly call: ToolCallView;
      readonly seconds: number;
      readonly text?: string;
      /** The last lines of what a running command prints. For people: it is stored nowhere. */
      readonly output?: string;
    }
  | {
      readonly type: "tool_end";
      readonly call: ToolCallView;
      readonly result: string;
      readonly ms: number;
      readonly failed: boolean;
      /** What the call changed in files, as a unified diff. For people: the model does not get it from here. */
      readonly diff?: string;
    }
  | SubagentEvent
  | { readonly type: "ask"; readonly request: AskRequest }
  | {
      readonly type: "status";
      readonly kind: "lifecycle" | "warn" | "done" | "waiting" | "heartbeat";
      readonly message: string;
      /** Something failed and is being got over: worth a line that stays, not only one that passes. */
      readonly recovery?: true;
      /** What the user said was changed before it was stored: every door says so. */
      readonly changedInput?: true;
    }
  | {
      readonly type: "usage";
      readonly usage: Usage;
      readonly task: Task;
      readonly totals: SessionTotals;
      readonly contextUsed: number | null;
      readonly contextLength: number;
    }
  | {
      readonly type: "compressed";
      readonly kind: "summary" | "prune";
      /** Tokens of a whole request, about. */
      readonly before: number;
      readonly after: number;
      readonly messagesBefore: number;
      readonly messagesAfter: number;
      readonly ms: number;
      /** The conversation goes on under the new id; the same for a prune. */
      readonly oldSessionId: string;
      readonly newSessionId: string;
      /** Facts of the dropped part that are nowhere any more. */
      readonly missing: readonly string[];
    }
  | {
      readonly type: "session";
      readonly id: string;
      readonly title: string | null;
      readonly model: string;
      readonly provider: string;
      readonly reason: "compressed" | "switched" | "titled" | "undone" | "started";
    }
  | { readonly type: "notice"; readonly kind: "review" | "memory" | "background" | "process"; readonly text: string }
  | { readonly type: "done"; readonly outcome: TurnOutcome };

export type AgentEvent = EventBody & { readonly sessionId: string; readonly turn: number; readonly seq: number };
export type AgentEventBody = EventBody;

/** How a turn ended. `finalText` is null only after an interrupt; every failing exit carries a sentence for a person. */
export interface TurnOutcome {
  readonly finalText: string | null;
  readonly messages: readonly HistoryMessage[];
  readonly apiCalls: number;
  readonly completed: boolean;
  readonly failed: boolean;
  readonly partial: boolean;
  readonly interrupted: boolean;
  /** One of the values of the exit table, e.g. `text_response(finish_reason=stop)`. */
  readonly exitReason: string;
  readonly lastReasoning: string | null;
  readonly model: string;
  readonly provider: string;
  readonly baseUrl: string;
  readonly sessionId: string;
  readonly totals: SessionTotals;
  readonly lastPromptTokens: number | null;
  /** The whole final text was already shown while it came. */
  readonly responsePreviewed?: true;
  /** A hook gave another final text than the model. */
  readonly responseTransformed?: true;
  readonly error?: string;
  /** Steering text that found no tool result to ride on; the door sends it as the next message. */
  readonly pendingSteer?: string;
  readonly interruptMessage?: string;
  /** The turn never began: the user's message is not part of the conversation. */
  readonly unsent?: true;
  /** The provider has no quota left for it, or a spending limit is reached, and no other model stood in. */
  readonly stoppedByQuota?: true;
  /** The conversation does not fit into the window, and there is nothing left to shorten. */
  readonly compressionExhausted?: true;
  /** Which tool went in circles until the turn was ended. */
  readonly guardrail?: { readonly tool: string; readonly code: string; readonly count: number };
}

// What an agent is doing, derived from its events alone.

export interface Activity {
  /** Milliseconds since the epoch. */
  readonly lastActivityTs: number;
  readonly lastActivityDesc: string;
  readonly secondsSinceActivity: number;
  /** The newest call that still runs. */
  readonly currentTool: string | null;
  /** Model calls of the running turn. */
  readonly apiCallCount: number;
  readonly maxIterations: number;
  /** Of the running turn's limit; what was given back does not count. */
  readonly budgetUsed: number;
  readonly budgetMax: number;
}

export class ActivityWatch {
  #newest: { readonly what: string; readonly at: number } | null = null;
  /** Names of running calls by their ids, in the order of their start. */
  readonly #calls = new Map<string, string>();
  readonly #children = new Set<string>();
  #apiCalls = 0;

  note(event: AgentEventBody, at: number): void {
    this.#newest = { what: event.type, at };
    switch (event.type) {
      case "turn_start":
        this.#apiCalls = 0;
        break;
      case "step":
        this.#apiCalls = event.iteration;
        break;
      case "tool_start":
        this.#calls.set(event.call.id, event.call.name);
        break;
      case "tool_end":
        this.#calls.delete(event.call.id);
        break;
      case "subagent":
        if (event.phase === "start") this.#children.add(event.id);
        if (event.phase === "complete") this.#children.delete(event.id);
        break;
      case "done":
        this.#calls.clear();
        this.#children.clear();
        break;
    }
  }

  /** Sub-agents at work for the running turn. */
  get children(): number {
    return this.#children.size;
  }

  /** `budget` is that of the running turn; without one nothing of the limit is used. */
  describe(now: number, budget: IterationBudget | null, limit: number): Activity {
    const at = this.#newest?.at ?? now;
    return {
      lastActivityTs: at,
      lastActivityDesc: this.#newest?.what ?? "idle",
      secondsSinceActivity: (now - at) / 1000,
      currentTool: [...this.#calls.values()].at(-1) ?? null,
      apiCallCount: budget ? this.#apiCalls : 0,
      maxIterations: budget?.max ?? limit,
      budgetUsed: budget?.used ?? 0,
      budgetMax: budget?.max ?? limit,
    };
  }
}
