import { contextSize } from "../kit/formats.ts";
import type { CostStatus } from "../llm/gate.ts";
import { isLocalEndpoint } from "../llm/providers/hosts.ts";
import { estimateTokens, type RateLimits, type Usage } from "../llm/usage.ts";
import type { Target, ToolDefinition } from "../llm/wire.ts";
import { addTokens, COST_STATUSES, worse } from "../sessions/ledger.ts";
import type { Session } from "../sessions/store.ts";
import { isSmallWindow } from "../tools/toolset/search-split.ts";
import type { SessionTotals } from "./events.ts";
import { type Ending, failedEnding } from "./outcome.ts";

/** What a provider said is left of its allowance, and when. */
export interface KnownLimits {
  readonly limits: RateLimits;
  /** Milliseconds since the epoch. */
  readonly at: number;
}

type Price = { readonly usd: number | null; readonly status: CostStatus; readonly source?: string | null };

/** Tokens and money of a session, over all its turns. Unknown is never counted as 0: one unknown cost makes the sum's status unknown. */
export class UsageMeter {
  #totals: SessionTotals = {
    inputTokens: 0,
    outputTokens: 0,
    cacheReadTokens: 0,
    cacheWriteTokens: 0,
    reasoningTokens: 0,
    apiCalls: 0,
    costUsd: null,
    costStatus: "unknown",
  };
  #lastPromptTokens: number | null = null;
  #rateLimits: KnownLimits | null = null;

  get totals(): SessionTotals {
    return this.#totals;
  }

  /** Tokens of the newest request, as the provider counted them. */
  get lastPromptTokens(): number | null {
    return this.#lastPromptTokens;
  }

  /** Of the newest answer that said anything about it. */
  get rateLimits(): KnownLimits | null {
    return this.#rateLimits;
  }

  noteRateLimits(limits: RateLimits, at: number): void {
    this.#rateLimits = { limits, at };
  }

  /** Goes on from what a resumed session has used. */
  resume(session: Session): void {
    if (session.apiCallCount === 0) return;
    this.#totals = {
      inputTokens: session.inputTokens,
      outputTokens: session.outputTokens,
      cacheReadTokens: session.cacheReadTokens,
      cacheWriteTokens: session.cacheWriteTokens,
      reasoningTokens: session.reasoningTokens,
      apiCalls: session.apiCallCount,
      costUsd: session.actualCostUsd ?? session.estimatedCostUsd,
      costStatus: statusOf(session.costStatus),
      ...(session.costSource === null ? {} : { costSource: session.costSource }),
    };
  }

  /** Until the next request is counted: about what it will take. */
  assumePrompt(tokens: number): void {
    this.#lastPromptTokens = tokens;
  }

  add(usage: Usage, price: Price): void {
    this.#lastPromptTokens = usage.promptTokens ?? this.#lastPromptTokens;
    this.addSide(usage, price);
  }

  /** A side call costs too, but says nothing about the conversation's size. */
  addSide(usage: Usage, price: Price): void {
    this.addAll({
      inputTokens: usage.inputTokens ?? 0,
      outputTokens: usage.outputTokens ?? 0,
      cacheReadTokens: usage.cacheReadTokens ?? 0,
      cacheWriteTokens: usage.cacheWriteTokens ?? 0,
      reasoningTokens: usage.reasoningTokens ?? 0,
      apiCalls: 1,
      costUsd: price.usd,
      costStatus: price.status,
      costSource: price.source ?? undefined,
    });
  }

  /** What another conversation took on behalf of this one. */
  addAll(more: SessionTotals): void {
    if (more.apiCalls === 0) return;
    const before = this.#totals;
    const costSource = more.costSource ?? before.costSource;
    this.#totals = {
      ...addTokens(before, more),
      apiCalls: before.apiCalls + more.apiCalls,
      costUsd: more.costUsd === null ? before.costUsd : (before.costUsd ?? 0) + more.costUsd,
      costStatus: before.apiCalls === 0 ? more.costStatus : worse(before.costStatus, more.costStatus),
      ...(costSource === undefined ? {} : { costSource }),
    };
  }
}

function statusOf(text: string | null): CostStatus {
  return COST_STATUSES.find((status) => status === text) ?? "unknown";
}

// Models with little room: the user is warned, and a window that holds no conversation at all is refused before anything is sent.

/** Less than this is no conversation. */
const LEAST_TALK = 2_000;

/** `128K tokens`; says so where nobody knows. */
export function windowText({ contextLength, windowAssumed }: Pick<Target, "contextLength" | "windowAssumed">): string {
  return `${contextSize(contextLength)} tokens${windowAssumed ? " (assumed)" : ""}`;
}

/** For whoever begins a conversation with such a model; null when the window is large enough. */
export function smallWindowNote({ model, contextLength }: Pick<Target, "model" | "contextLength">): string | null {
  if (!isSmallWindow(contextLength)) return null;
  return (
    `${model} has a small context window (${count(contextLength)} tokens): conversations are compressed often, and tools of MCP servers and ` +
    "plugins wait behind tool search. If it is larger than that, set model.context_length."
  );
}

/** The end of a turn whose prompt and tools leave no room to talk; null when they do. */
export function noRoomToTalk(
  target: Pick<Target, "model" | "contextLength" | "baseUrl">,
  fixed: { readonly system: string; readonly tools: readonly ToolDefinition[] },
): Ending | null {
  const { model, contextLength, baseUrl } = target;
  if (!isSmallWindow(contextLength)) return null;
  const prompt = estimateTokens(fixed.system);
  const tools = fixed.tools.length > 0 ? estimateTokens(JSON.stringify(fixed.tools)) : 0;
  const needed = prompt + tools + LEAST_TALK;
  if (needed <= contextLength) return null;
  const local = isLocalEndpoint(baseUrl);
  const raise = local ? "Load the model with a larger context, or say" : "Say";
  return failedEnding(
    local ? "local_context_too_small" : "context_overflow_exhausted",
    `The context window of ${model} is too small: it holds ${count(contextLength)} tokens, and about ${count(needed)} are needed ` +
      `(system prompt ${count(prompt)}, tools ${count(tools)}, conversation ${count(LEAST_TALK)}). ${raise} how large it really is ` +
      "with model.context_length, give it fewer tools (--toolsets), or take another model.",
    `window too small: ${contextLength} of ${needed} tokens`,
  );
}

const count = (tokens: number) => tokens.toLocaleString("en-US");
