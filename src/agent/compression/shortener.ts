// One compression from end to end: lease, last words, summary, child session, and everybody who has to follow.

import { withGrace } from "../../kit/clock.ts";
import { messageOf } from "../../kit/errors.ts";
import { tokenCount } from "../../kit/formats.ts";
import type { HistoryMessage } from "../../llm/messages.ts";
import type { CompressOptions, ContextEngine } from "../../plugins/context-engines.ts";
import type { CompressionLease } from "../../sessions/store.ts";
import { forgetReads } from "../../tools/files/workspace.ts";
import type { Conversation } from "../conversation.ts";
import type { AgentEventBody } from "../events.ts";
import { messagesCost } from "./boundaries.ts";
import type { CompressResult } from "./compressor.ts";
import { withoutTodos, withTodos } from "./summary-text.ts";

/** Who waits for it. */
export interface ContextRun {
  readonly signal: AbortSignal;
  readonly emit: (event: AgentEventBody) => void;
}

const LEASE_SECONDS = 900;
const GRACE_MS = 250;

/** All or nothing: what fails or is interrupted leaves history and store as they were. */
export class Shortener {
  readonly #conversation: Conversation;
  /** Whom a warning of the running compression reaches. */
  #listener: ContextRun["emit"] | null = null;

  constructor(conversation: Conversation) {
    this.#conversation = conversation;
  }

  /** Something about a compression that the user should know. */
  warn(message: string): void {
    this.#conversation.assembly.log.warn(message);
    this.#listener?.({ type: "status", kind: "warn", message });
  }

  /** `quiet`: whoever asked renders the report. */
  async run(
    engine: ContextEngine,
    tokens: number,
    options: CompressOptions,
    run: ContextRun,
    { quiet = false } = {},
  ): Promise<CompressReport> {
    if (!(engine.hasContentToCompress?.(this.#messages) ?? true)) return { type: "nothing" };
    const { clock, log } = this.#conversation.assembly;
    const began = clock.now();
    const before: Size = { tokens, messages: this.#messages.length };
    run.emit({ type: "status", kind: "lifecycle", message: startLine(before) });
    let lease: CompressionLease | null = null;
    try {
      lease = await this.#lease();
      if (!lease) return this.#say({ type: "failed", why: "another process is compressing it" }, run, quiet);
      return this.#say(await this.#leased(engine, before, options, run, began), run, quiet);
    } catch (error) {
      log.error("the conversation could not be compressed", error);
      const why = messageOf(error);
      return this.#say({ type: "failed", why }, run, quiet);
    } finally {
      await lease?.release().catch((error) => log.warn("a compression lease could not be given back", error));
    }
  }

  /** The conversation holds other messages now, maybe under another id: prompt, caches and readings follow. */
  async settle(oldSessionId: string): Promise<void> {
    await this.#conversation.systemPrompt();
    await this.forgetResults(oldSessionId);
  }

  async forgetResults(oldSessionId: string): Promise<void> {
    const { transcript, assembly } = this.#conversation;
    forgetReads(assembly.tools.state);
    const change = { oldSessionId, newSessionId: transcript.sessionId, messages: transcript.messages };
    try {
      await assembly.compression?.compressed?.(change);
    } catch (error) {
      assembly.log.warn("somebody could not follow the compression", error);
    }
  }

  async #leased(
    engine: ContextEngine,
    before: Size,
    options: CompressOptions,
    run: ContextRun,
    began: number,
  ): Promise<CompressReport> {
    const { transcript, pins, assembly: made } = this.#conversation;
    const oldSessionId = transcript.sessionId;
    if (await transcript.followTip()) {
      await this.settle(oldSessionId);
      return { type: "adopted", sessionId: transcript.sessionId };
    }
    const history = this.#messages;
    const notes = await this.#lastWords(history, run);
    const given = { ...options, currentTokens: before.tokens, pins: await pins.list(), notes, signal: run.signal };
    const settled = await this.#whilePaying(run, () =>
      withGrace(engine.compress(history, given), run.signal, GRACE_MS),
    );
    if (!settled.done || run.signal.aborted) return { type: "interrupted" };
    const shorter = settled.value as readonly HistoryMessage[]; // no system message went in
    if (shorter === history) return nothingCame(engine);
    const ours = await transcript.continueWith(await this.#withOpenTasks(shorter));
    if (!ours) {
      await this.settle(oldSessionId);
      return { type: "adopted", sessionId: transcript.sessionId };
    }
    const after = before.tokens - (messagesCost(history) - messagesCost(this.#messages));
    this.#conversation.meter.assumePrompt(after);
    await this.settle(oldSessionId);
    const child = transcript.sessionId;
    const { notifyBound } = await import("../../plugins/context-engines.ts");
    await notifyBound(made, () => engine.onSessionStart?.(child, { boundaryReason: "compression", oldSessionId }));
    const { missing, fallbackUsed, dropped, again } = resultOf(engine);
    return {
      type: "compressed",
      before,
      after: { tokens: after, messages: this.#messages.length },
      ms: made.clock.now() - began,
      missing,
      fallbackUsed,
      dropped: dropped || history.length - this.#messages.length,
      again,
      oldSessionId,
      sessionId: transcript.sessionId,
    };
  }

  /** Memory is saved before what it could be learnt from is gone; a provider may want something kept. */
  async #lastWords(history: readonly HistoryMessage[], { signal }: ContextRun): Promise<string | undefined> {
    const { assembly } = this.#conversation;
    const { sessionId } = this.#conversation.transcript;
    const listening = async () => {
      await assembly.compression?.flushMemories?.({ sessionId, messages: history, signal });
      return (await assembly.compression?.preCompress?.(history)) ?? undefined;
    };
    try {
      const settled = await withGrace(listening(), signal, GRACE_MS);
      return settled.done ? settled.value : undefined;
    } catch (error) {
      assembly.log.warn("memories could not be saved before the compression", error);
      return undefined;
    }
  }

  async #withOpenTasks(messages: readonly HistoryMessage[]): Promise<readonly HistoryMessage[]> {
    const { tools } = this.#conversation.assembly;
    const clean = messages.map(withoutTodos);
    if (!tools.names.has("todo")) return clean;
    const { renderActiveTodos } = await import("../../tools/todo.ts");
    const snapshot = renderActiveTodos(tools.state);
    return snapshot === null ? clean : withTodos(clean, snapshot);
  }

  #say(report: CompressReport, { emit }: ContextRun, quiet: boolean): CompressReport {
    if (report.type === "failed" && !quiet) emit({ type: "status", kind: "warn", message: failedLine(report.why) });
    if (report.type !== "compressed") return report;
    emit({ type: "status", kind: "lifecycle", message: endLine(report) });
    const { before, after, ms, missing, oldSessionId, sessionId } = report;
    emit({
      type: "compressed",
      kind: "summary",
      before: before.tokens,
      after: after.tokens,
      ms,
      missing,
      messagesBefore: before.messages,
      messagesAfter: after.messages,
      oldSessionId,
      newSessionId: sessionId,
    });
    if (report.again && !quiet) emit({ type: "status", kind: "warn", message: AGAIN_LINE });
    return report;
  }

  async #whilePaying<T>({ emit }: ContextRun, work: () => Promise<T>): Promise<T> {
    const { meter, model } = this.#conversation;
    this.#listener = emit;
    this.#conversation.onSideCall = (usage, task) =>
      emit({
        type: "usage",
        usage,
        task,
        totals: meter.totals,
        contextUsed: meter.lastPromptTokens,
        contextLength: model.target.contextLength,
      });
    try {
      return await work();
    } finally {
      this.#conversation.onSideCall = null;
      this.#listener = null;
    }
  }

  async #lease(): Promise<CompressionLease | null> {
    const { session } = this.#conversation.assembly;
    if (!session.store) return { release: async () => undefined };
    return session.store.leaseCompression(this.#conversation.transcript.sessionId, { seconds: LEASE_SECONDS });
  }

  get #messages(): readonly HistoryMessage[] {
    return this.#conversation.transcript.messages;
  }
}

function nothingCame(engine: ContextEngine): CompressReport {
  const { aborted, rejected, failure } = resultOf(engine);
  if (aborted) return { type: "failed", why: `the summary failed (${failure ?? "no answer"})` };
  return rejected
    ? { type: "failed", why: "the summary was no shorter than what it would replace" }
    : { type: "nothing" };
}

const NO_RESULT: CompressResult = {
  aborted: false,
  rejected: false,
  failure: null,
  missing: [],
  fallbackUsed: false,
  dropped: 0,
  again: false,
};

/** Other engines need not say how it went. */
function resultOf(engine: ContextEngine): CompressResult {
  return "lastResult" in engine ? { ...NO_RESULT, ...(engine.lastResult as CompressResult) } : NO_RESULT; // the standard engine's
}

// What came of a request to shorten a conversation, and the words for it.

interface Size {
  /** Of a whole request, prompt and tools included. */
  readonly tokens: number;
  readonly messages: number;
}

export interface CompressRequest {
  readonly focus?: string | undefined;
  /** Keep exactly the last so many user turns. */
  readonly here?: number | undefined;
  /** Say what would happen, do nothing. */
  readonly preview?: boolean | undefined;
}

export type CompressReport =
  | {
      readonly type: "compressed";
      readonly before: Size;
      readonly after: Size;
      readonly ms: number;
      /** Facts of the dropped part that are nowhere any more. */
      readonly missing: readonly string[];
      /** The summary was put together without a model. */
      readonly fallbackUsed: boolean;
      readonly dropped: number;
      /** A summary of earlier turns went into it. */
      readonly again: boolean;
      readonly oldSessionId: string;
      readonly sessionId: string;
    }
  | {
      readonly type: "preview";
      readonly before: Size;
      readonly kept: Size;
      readonly dropped: Size;
      readonly summaryTokens: number;
    }
  | { readonly type: "nothing" }
  /** Another process compressed the same conversation; it goes on there. */
  | { readonly type: "adopted"; readonly sessionId: string }
  /** Everything is as it was. */
  | { readonly type: "failed"; readonly why: string }
  | { readonly type: "interrupted" };

type Compressed = Extract<CompressReport, { type: "compressed" }>;

function startLine(size: Size): string {
  return `Compressing the conversation (${size.messages} messages, about ${tokenCount(size.tokens)} tokens) ...`;
}

function endLine({ before, after, ms, fallbackUsed, dropped }: Compressed): string {
  const how = fallbackUsed ? `; no model gave a summary, ${dropped} messages were noted down without one` : "";
  return `Compressed: about ${tokenCount(before.tokens)} → ${tokenCount(after.tokens)} tokens in ${(ms / 1000).toFixed(1)} s${how}.`;
}

const AGAIN_LINE =
  "This conversation has been compressed more than once; details may be lost. /new starts over, /pin keeps important lines.";

/** Why nothing was done though the conversation is long, for a person. */
export function blockedLine(reason: string): string {
  const seconds = /^cooldown:(\d+)$/.exec(reason)?.[1];
  if (seconds)
    return `The conversation is long, but the last summary failed; the next try is in ${seconds} s. /compress tries at once.`;
  return "The conversation is long, but compressing it no longer helps. /new starts over; /compress tries anyway.";
}

const failedLine = (why: string) => `The conversation was not compressed: ${why}.`;
