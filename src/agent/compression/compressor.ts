// The default context engine: the middle of a long conversation becomes a summary, its beginning and its recent part stay.

import type { Logger } from "../../home/log.ts";
import { messageOf } from "../../kit/errors.ts";
import type { ContentPart, Message, UserMessage } from "../../llm/messages.ts";
import { picturesToWords } from "../../llm/pictures/fit.ts";
import type { CompressOptions, ContextEngine, EngineModel, EngineUsage } from "../../plugins/context-engines.ts";
import {
  type Boundaries,
  type ContextNumbers,
  contextNumbers,
  findBoundaries,
  messagesCost,
  summaryBudget,
} from "./boundaries.ts";
import { localSummary, missingFacts } from "./facts.ts";
import { pruneOldToolResults } from "./prune.ts";
import { alternates, assemble, pairTools, renderSummary, takeSummary } from "./summary-text.ts";

export interface SummaryRequest {
  readonly turns: readonly Message[];
  readonly previousSummary: string | null;
  readonly focusTopic: string | null;
  readonly budgetTokens: number;
  readonly notes?: string | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** Null or a throw: there is no summary. A `SummaryError` says how long to leave it alone. */
export type Summarize = (request: SummaryRequest) => Promise<string | null>;

/** Why no summary came. Nobody to ask, nobody who answers, or an answer that is none. */
export class SummaryError extends Error {
  override name = "SummaryError";
  readonly kind: "no_provider" | "failed" | "malformed";
  constructor(kind: SummaryError["kind"], message: string) {
    super(message);
    this.kind = kind;
  }
}

const COOLDOWN_SECONDS = { no_provider: 600, failed: 60, malformed: 30 } as const;
const MAX_INEFFECTIVE = 2;

export interface CompressorOptions {
  readonly contextLength: number;
  readonly summarize: Summarize;
  readonly threshold?: number;
  /** Where models have thresholds of their own; asked when the model changes. */
  readonly thresholdFor?: (model: string) => number;
  readonly protectFirstN?: number;
  readonly protectLastN?: number;
  readonly targetRatio?: number;
  readonly abortOnSummaryFailure?: boolean;
  /** Milliseconds. */
  readonly now?: () => number;
  readonly log?: Pick<Logger, "info" | "warn">;
}

/** What the last `compress` did. */
export interface CompressResult {
  /** The summary failed or was interrupted; the messages are what they were. */
  readonly aborted: boolean;
  /** The summary was put together without a model. */
  readonly fallbackUsed: boolean;
  /** Messages that became part of the summary. */
  readonly dropped: number;
  /** The result was not smaller than what it replaces, or not legal, and was thrown away. */
  readonly rejected: boolean;
  /** Facts of the dropped part that are in neither the summary nor the rest. */
  readonly missing: readonly string[];
  /** Why there was no summary of a model. */
  readonly failure: string | null;
  /** A summary stood in the conversation already. */
  readonly again: boolean;
}

const NOTHING: CompressResult = {
  aborted: false,
  fallbackUsed: false,
  dropped: 0,
  rejected: false,
  missing: [],
  failure: null,
  again: false,
};

/** What a compression would keep and drop. */
export interface CompressPreview {
  readonly kept: readonly Message[];
  readonly dropped: readonly Message[];
  readonly keptTokens: number;
  readonly droppedTokens: number;
  readonly summaryTokens: number;
}

export class ContextCompressor implements ContextEngine {
  readonly name = "compressor";
  readonly protectFirstN: number;
  readonly protectLastN: number;
  readonly #options: CompressorOptions;
  readonly #now: () => number;
  #threshold: number;
  #numbers: ContextNumbers;
  #contextLength: number;
  #usage = { prompt: 0, completion: 0, total: 0 };
  #compressions = 0;
  #ineffective = 0;
  #cooldownUntil = 0;
  /** A compression whose effect no real reading has shown yet. */
  #unproven = false;
  #lastResult: CompressResult = NOTHING;

  constructor(options: CompressorOptions) {
    this.#options = options;
    this.protectFirstN = options.protectFirstN ?? 3;
    this.protectLastN = options.protectLastN ?? 20;
    this.#now = options.now ?? Date.now;
    this.#contextLength = options.contextLength;
    this.#threshold = options.threshold ?? 0.5;
    this.#numbers = this.#numbersFor(options.contextLength);
  }

  get lastPromptTokens(): number {
    return this.#usage.prompt;
  }
  get lastCompletionTokens(): number {
    return this.#usage.completion;
  }
  get lastTotalTokens(): number {
    return this.#usage.total;
  }
  get thresholdTokens(): number {
    return this.#numbers.thresholdTokens;
  }
  get tailTokenBudget(): number {
    return this.#numbers.tailTokenBudget;
  }
  get maxSummaryTokens(): number {
    return this.#numbers.maxSummaryTokens;
  }
  get contextLength(): number {
    return this.#contextLength;
  }
  get compressionCount(): number {
    return this.#compressions;
  }
  get lastResult(): CompressResult {
    return this.#lastResult;
  }

  updateFromResponse({ promptTokens, completionTokens, totalTokens }: EngineUsage): void {
    this.#usage = {
      prompt: promptTokens ?? this.#usage.prompt,
      completion: completionTokens ?? this.#usage.completion,
      total: totalTokens ?? this.#usage.total,
    };
    if (promptTokens === null) return;
    if (promptTokens < this.thresholdTokens) this.#ineffective = 0;
    else if (this.#unproven) this.#ineffective++;
    this.#unproven = false;
  }

  shouldCompress(promptTokens: number = this.#usage.prompt): boolean {
    return this.shouldCompressInfo(promptTokens).compress;
  }

  shouldCompressInfo(promptTokens: number = this.#usage.prompt): { compress: boolean; reason?: string } {
    if (promptTokens < this.thresholdTokens) return { compress: false };
    const left = this.cooldownSeconds;
    if (left > 0) return { compress: false, reason: `cooldown:${left}` };
    if (this.#ineffective >= MAX_INEFFECTIVE) return { compress: false, reason: "ineffective" };
    return { compress: true };
  }

  /** Seconds for which no summary is asked for after one failed. */
  get cooldownSeconds(): number {
    return Math.max(0, Math.ceil((this.#cooldownUntil - this.#now()) / 1000));
  }

  hasContentToCompress(messages: readonly Message[]): boolean {
    return this.#boundaries(messages, this.#prune(messages), {}) !== null;
  }

  async compress(messages: readonly Message[], options: CompressOptions = {}): Promise<readonly Message[]> {
    this.#lastResult = NOTHING;
    if (options.force) this.#forgive();
    const pruned = this.#prune(messages);
    const at = this.#boundaries(messages, pruned, options);
    if (!at) return messages;
    const parts = this.#parts(messages, at);
    const written = await this.#write(parts, options);
    if (written === null) return messages;
    const shorter = this.#assemble(pruned, at, renderSummary(written.text, options.pins));
    const done = { ...NOTHING, dropped: at.cut - at.head, failure: written.failure, again: parts.previous !== null };
    if (!alternates(shorter) || messagesCost(shorter) >= messagesCost(messages)) {
      this.#ineffective++;
      this.#lastResult = { ...done, dropped: 0, rejected: true };
      return messages;
    }
    this.#compressions++;
    this.#unproven = true;
    this.#lastResult = {
      ...done,
      fallbackUsed: written.failure !== null,
      missing: missingFacts(parts.turns, written.text, shorter),
    };
    return shorter;
  }

  /** What `compress` would do, without doing it; null when there is nothing to do. */
  preview(messages: readonly Message[], options: CompressOptions = {}): CompressPreview | null {
    const pruned = this.#prune(messages);
    const at = this.#boundaries(messages, pruned, options);
    if (!at) return null;
    const dropped = messages.slice(at.head, at.cut).filter((_, index) => at.head + index !== at.carried);
    const kept = [...pruned.slice(0, at.head), ...this.#carried(pruned, at), ...pruned.slice(at.cut)];
    const droppedTokens = messagesCost(dropped);
    const summaryTokens = summaryBudget(droppedTokens, this.maxSummaryTokens);
    return { kept, dropped, keptTokens: messagesCost(kept), droppedTokens, summaryTokens };
  }

  onSessionReset(): void {
    this.#usage = { prompt: 0, completion: 0, total: 0 };
    this.#compressions = 0;
    this.#lastResult = NOTHING;
    this.#forgive();
  }

  updateModel({ contextLength, model }: Pick<EngineModel, "contextLength"> & Partial<EngineModel>): void {
    this.#contextLength = contextLength;
    if (model !== undefined) this.#threshold = this.#options.thresholdFor?.(model) ?? this.#threshold;
    this.#numbers = this.#numbersFor(contextLength);
    this.#forgive();
  }

  getStatus(): Readonly<Record<string, unknown>> {
    return {
      engine: this.name,
      contextLength: this.contextLength,
      thresholdTokens: this.thresholdTokens,
      lastPromptTokens: this.lastPromptTokens,
      compressionCount: this.compressionCount,
      cooldownSeconds: this.cooldownSeconds,
      ineffective: this.#ineffective,
    };
  }

  #forgive(): void {
    this.#ineffective = 0;
    this.#cooldownUntil = 0;
    this.#unproven = false;
  }

  #numbersFor(contextLength: number): ContextNumbers {
    return contextNumbers(contextLength, this.#threshold, this.#options.targetRatio ?? 0.2);
  }

  #boundaries(
    messages: readonly Message[],
    pruned: readonly Message[],
    { currentTokens, keepTurns, squeeze = 0 }: CompressOptions,
  ): Boundaries | null {
    const tailTokenBudget = Math.floor(this.tailTokenBudget / 2 ** squeeze);
    // By what the messages show, not by a count: a compression may have been taken back.
    const first = !messages.some((message) => takeSummary(message) !== null);
    // Prompt and tools stay whatever happens to the messages.
    const fixed = currentTokens === undefined ? 0 : Math.max(0, currentTokens - messagesCost(messages));
    return findBoundaries(pruned, {
      protectFirstN: first ? this.protectFirstN : 0,
      protectLastN: this.protectLastN,
      tailTokenBudget,
      tailLimit: squeeze > 0 ? 1.5 * tailTokenBudget : Math.max(1.5 * tailTokenBudget, this.thresholdTokens - fixed),
      keepTurns,
    });
  }

  #prune(messages: readonly Message[]): readonly Message[] {
    const options = { protectTailCount: this.protectLastN, protectTailTokens: this.tailTokenBudget };
    return pruneOldToolResults(messages, options).messages;
  }

  /** What the summary is made of: the whole texts, not the shortened ones, and the summary that stood there. */
  #parts(messages: readonly Message[], { head, cut, carried }: Boundaries) {
    let previous: string | null = null;
    const turns = messages.slice(head, cut).flatMap((message, index) => {
      const found = takeSummary(message);
      if (found) previous = found.body;
      if (head + index === carried) return [];
      return found ? (found.rest ?? []) : message;
    });
    if (previous === null)
      previous =
        messages
          .slice(cut)
          .map(takeSummary)
          .findLast((found) => found !== null)?.body ?? null;
    return { turns, previous };
  }

  /** Null: there is no summary, and none may be made up. */
  async #write(
    { turns, previous }: { readonly turns: readonly Message[]; readonly previous: string | null },
    options: CompressOptions,
  ): Promise<{ readonly text: string; readonly failure: string | null } | null> {
    const { focusTopic = null, notes, signal } = options;
    const budgetTokens = summaryBudget(messagesCost(turns), this.maxSummaryTokens);
    const failure = await this.#summarize({
      turns,
      previousSummary: previous,
      focusTopic,
      budgetTokens,
      notes,
      signal,
    });
    if (failure.type === "summary") return { text: failure.text, failure: null };
    const abort = options.abortOnSummaryFailure ?? this.#options.abortOnSummaryFailure ?? false;
    if (abort || signal?.aborted) {
      this.#lastResult = { ...NOTHING, aborted: true, failure: failure.why };
      return null;
    }
    return { text: localSummary(turns, previous), failure: failure.why };
  }

  async #summarize(request: SummaryRequest): Promise<Summarized> {
    if (this.cooldownSeconds > 0)
      return { type: "none", why: `no summary is asked for during the next ${this.cooldownSeconds} s` };
    try {
      const text = (await this.#options.summarize(request))?.trim();
      if (request.signal?.aborted) return { type: "none", why: "interrupted" };
      if (text) return { type: "summary", text };
      return this.#coolDown("failed", "the model gave no summary");
    } catch (error) {
      if (request.signal?.aborted) return { type: "none", why: "interrupted" };
      const kind = error instanceof SummaryError ? error.kind : "failed";
      return this.#coolDown(kind, messageOf(error));
    }
  }

  #coolDown(kind: SummaryError["kind"], why: string): Summarized {
    this.#cooldownUntil = this.#now() + COOLDOWN_SECONDS[kind] * 1000;
    this.#options.log?.warn(`no summary of the conversation: ${why}`);
    return { type: "none", why };
  }

  #assemble(pruned: readonly Message[], at: Boundaries, summary: string): readonly Message[] {
    const joined = assemble({
      head: pruned.slice(0, at.head),
      summary,
      carried: this.#carried(pruned, at)[0] ?? null,
      // One summary at a time: one that stands in the tail goes into the new one.
      tail: withoutSummaries(pruned.slice(at.cut)),
    });
    const { messages, removed, stubbed } = pairTools(joined);
    if (removed + stubbed > 0) {
      this.#options.log?.info(
        `compression repaired tool pairs: ${removed} orphan results removed, ${stubbed} missing results stubbed`,
      );
    }
    return stripHistoricalMedia(messages);
  }

  #carried(messages: readonly Message[], { carried }: Boundaries): readonly UserMessage[] {
    const message = carried === null ? undefined : messages[carried];
    if (message?.role !== "user") return [];
    const found = takeSummary(message);
    return found ? (found.rest ? [found.rest] : []) : [message];
  }
}

type Summarized = { readonly type: "summary"; readonly text: string } | { readonly type: "none"; readonly why: string };

function withoutSummaries(messages: readonly Message[]): readonly Message[] {
  return messages.flatMap((message) => {
    const found = takeSummary(message);
    return found ? (found.rest ?? []) : message;
  });
}

const STRIPPED = "[Attached image — stripped after compression]";

/** Pictures older than the newest user message that has one become a word. */
export function stripHistoricalMedia<M extends Message>(messages: readonly M[]): readonly M[] {
  const newest = messages.findLastIndex((message) => message.role === "user" && hasImage(message));
  if (newest <= 0) return messages;
  const kept = messages.map((message, index) =>
    index < newest && hasImage(message) ? withoutImages(message) : message,
  );
  return kept.some((message, index) => message !== messages[index]) ? kept : messages;
}

function hasImage({ content }: Message): boolean {
  return Array.isArray(content) && content.some((part: ContentPart) => part.type === "image_url");
}

function withoutImages<M extends Message>(message: M): M {
  if (message.role !== "user" && message.role !== "tool") return message;
  return picturesToWords(message, (part) => part.type === "image_url", STRIPPED) as M; // the role stays
}
