// Keeps one conversation inside the model's window: measures, decides, has it shortened, and goes on in the child session.
import type { HistoryMessage } from "../../llm/messages.ts";
import type { Usage } from "../../llm/usage.ts";
import type { CompressionLease } from "../../sessions/store.ts";
import { forgetReads } from "../../tools/file-activity.ts";
import { orAbandon } from "../abandon.ts";
import type { Conversation } from "../conversation.ts";
import type { AgentEventBody } from "../events.ts";
import type { CompressPreview, CompressResult } from "./compressor.ts";
import { messagesCost } from "./cost.ts";
import type { CompressOptions, ContextEngine } from "./engine.ts";
import { WindowMeter } from "./measure.ts";
import { contextNumbers } from "./numbers.ts";
import { pruneOldToolResults } from "./prune.ts";
import {
  AGAIN_LINE,
  blockedLine,
  type CompressReport,
  type CompressWish,
  endLine,
  failedLine,
  type Size,
  startLine,
} from "./report.ts";
import { withoutTodos, withTodos } from "./summary-text.ts";

/** Who waits for it. */
export interface KeeperRun {
  readonly signal: AbortSignal;
  readonly emit: (event: AgentEventBody) => void;
}

const MOST_PASSES = 3;
/** A request this close to the window would not come back with an answer. */
const BRIM = 0.95;
const PRUNE_GAIN = 0.2;
const PRUNE_TARGET = 0.8;
const LEASE_SECONDS = 900;
const GRACE_MS = 250;
const PRUNED_KEY = "pruned";

/**
 * - What fails or is interrupted leaves history and store as they were; the turn goes on without.
 * - After a compression nothing is decided by an estimate until a request has shown what it really took.
 */
export class ContextKeeper {
  readonly #conversation: Conversation;
  readonly #window = new WindowMeter();
  /** Whom a warning of the running compression reaches. */
  #listener: KeeperRun["emit"] | null = null;
  #engine: ContextEngine | null = null;
  #lastUsage: Usage | null = null;
  #unread = false;
  #toldBlocked: string | null = null;

  constructor(conversation: Conversation) {
    this.#conversation = conversation;
  }

  /** What a call of the conversation really used. Called before its answer enters the history. */
  noteUsage(usage: Usage): void {
    this.#lastUsage = usage;
    this.#engine?.updateFromResponse(engineUsage(usage));
    if (usage.promptTokens === null) return;
    this.#window.read(usage.promptTokens, this.#messages.length);
    if (usage.promptTokens < this.#threshold) this.#toldBlocked = null;
  }

  /** A request was answered: estimates count again. */
  noteAnswer(): void {
    this.#unread = false;
  }

  /** Another model counts differently and has another window. */
  modelChanged(): void {
    this.#window.forget();
    const { model, contextLength, baseUrl, provider, apiMode } = this.#conversation.model.target;
    this.#engine?.updateModel?.({ model, contextLength, baseUrl, provider, apiMode });
  }

  /** Something about a compression that the user should know. */
  warn(message: string): void {
    this.#conversation.options.ports.log.warn(message);
    this.#listener?.({ type: "status", kind: "warn", message });
  }

  /** Tools of the engine, if it brings any. Only an engine that was chosen by name is asked. */
  async engineTools(): Promise<ContextEngine | null> {
    if (this.#config.context.engine === "compressor") return null;
    const engine = await this.#openEngine();
    return (engine.getToolSchemas?.() ?? []).length > 0 ? engine : null;
  }

  /** Turns were taken back. */
  historyChanged(): void {
    this.#window.forget();
  }

  /** Before the first request of a turn. */
  async beforeTurn(run: KeeperRun): Promise<void> {
    if (!this.#enabled) return;
    const { tokens, reading } = await this.#measure();
    const engine = await this.#engineAt(tokens);
    if (!engine) return;
    const asks = engine.shouldCompressPreflight?.(this.#messages) ?? false;
    if (asks || tokens >= engine.thresholdTokens)
      await this.#shortenIfDue(engine, tokens, { run, asks, real: reading !== null });
  }

  /** Behind the results of an answer's calls. */
  async afterTools(run: KeeperRun): Promise<void> {
    if (!this.#enabled || run.signal.aborted) return;
    const { tokens, reading } = await this.#measure();
    const brim = tokens >= BRIM * this.#conversation.model.target.contextLength;
    const decisive = brim ? tokens : (reading ?? tokens);
    const engine = await this.#engineAt(decisive);
    if (engine && decisive >= engine.thresholdTokens) {
      await this.#shortenIfDue(engine, decisive, { run, asks: false, real: reading !== null });
    }
  }

  /** A request was refused as too long, for the n-th time in a row. False when there is nothing left to shorten. */
  async onOverflow(attempt: number, run: KeeperRun): Promise<boolean> {
    if (!this.#enabled) return false;
    const { tokens } = await this.#measure();
    const abortOnSummaryFailure = this.#config.compression.abort_on_summary_failure;
    const report = await this.#shorten(tokens, { abortOnSummaryFailure, squeeze: attempt - 1 }, run);
    return report.type === "compressed" || report.type === "adopted";
  }

  /** The user asked for it. */
  async compress(wish: CompressWish, run: KeeperRun): Promise<CompressReport> {
    const { tokens } = await this.#measure();
    const options = { force: true, focusTopic: wish.focus, keepTurns: wish.here, abortOnSummaryFailure: true };
    if (wish.preview) return this.#preview(tokens, options);
    return this.#shorten(tokens, options, run, { quiet: true });
  }

  /** Takes the last compression or prune back, if nothing was said since. Null when there is none to take back. */
  async undo(): Promise<{ readonly kind: "summary" | "prune" } | null> {
    const { transcript, options } = this.#conversation;
    const { sessionId } = transcript;
    if (await transcript.undoCompression()) {
      options.ports.gate.expectNewPrefix(transcript.sessionId, "rewind");
      await this.#settle(sessionId);
      return { kind: "summary" };
    }
    const store = options.session.store;
    const pruned = store ? await store.getValue(sessionId, PRUNED_KEY) : null;
    if (!store || !isPruneRecord(pruned) || pruned.last !== (await transcript.lastRowId())) return null;
    await transcript.sendAsBefore(pruned.rows);
    await store.setValue(sessionId, PRUNED_KEY, null);
    options.ports.gate.expectNewPrefix(sessionId, "rewind");
    this.#window.forget();
    return { kind: "prune" };
  }

  // --- decisions

  get #enabled(): boolean {
    return this.#config.compression.enabled && this.#conversation.options.limits.compression !== false;
  }

  /** The engine, once there is something for it to do: most conversations never need it. */
  async #engineAt(tokens: number): Promise<ContextEngine | null> {
    const standard = this.#config.context.engine === "compressor";
    if (!this.#engine && standard && tokens < this.#threshold) return null;
    return this.#openEngine();
  }

  async #shortenIfDue(
    engine: ContextEngine,
    tokens: number,
    { run, asks, real }: { readonly run: KeeperRun; readonly asks: boolean; readonly real: boolean },
  ): Promise<void> {
    if (this.#unread && !real) return;
    const info = engine.shouldCompressInfo?.(tokens) ?? { compress: asks || engine.shouldCompress(tokens) };
    if (!info.compress) return this.#tellBlocked(info.reason, run);
    if (!(engine.hasContentToCompress?.(this.#messages) ?? true)) return;
    if (await this.#pruneAlone(engine, tokens, run)) return;
    let current = tokens;
    for (let pass = 1; pass <= MOST_PASSES; pass++) {
      const before = messagesCost(this.#messages);
      const report = await this.#shorten(current, { abortOnSummaryFailure: true }, run);
      const saved = before - messagesCost(this.#messages);
      current -= saved;
      // An estimate is good for one pass: only a real reading justifies more.
      if (report.type !== "compressed" || saved <= 0 || !real || current < engine.thresholdTokens) return;
      if (!(engine.hasContentToCompress?.(this.#messages) ?? true)) return;
    }
  }

  #tellBlocked(reason: string | undefined, { emit }: KeeperRun): void {
    const kind = reason?.split(":")[0];
    if (reason === undefined || kind === this.#toldBlocked) return;
    this.#toldBlocked = kind ?? null;
    emit({ type: "status", kind: "warn", message: blockedLine(reason) });
  }

  // --- the cheap way

  /** Old tool results are sent in one line each; no model is asked, the session stays the same. */
  async #pruneAlone(engine: ContextEngine, tokens: number, { emit }: KeeperRun): Promise<boolean> {
    if (!("tailTokenBudget" in engine) || typeof engine.tailTokenBudget !== "number") return false;
    const { transcript, options, meter } = this.#conversation;
    const before = this.#messages;
    const { messages, pruned } = pruneOldToolResults(before, {
      protectTailCount: engine.protectLastN,
      protectTailTokens: engine.tailTokenBudget,
      mode: "beside",
    });
    const saved = messagesCost(before) - messagesCost(messages);
    const after = tokens - saved;
    if (pruned === 0 || saved < PRUNE_GAIN * tokens || after >= PRUNE_TARGET * engine.thresholdTokens) return false;
    const began = options.ports.clock.now();
    const { sessionId } = transcript;
    try {
      const rows = await transcript.sendShorter(messages);
      await options.session.store?.setValue(sessionId, PRUNED_KEY, { rows, last: await transcript.lastRowId() });
    } catch (error) {
      options.ports.log.warn("old tool results could not be shortened; they are sent as before", error);
      return false;
    }
    options.ports.gate.expectNewPrefix(sessionId, "prune");
    this.#window.forget();
    this.#unread = true;
    meter.assumePrompt(after);
    await this.#forgetResults(sessionId);
    const ms = options.ports.clock.now() - began;
    const size = {
      messagesBefore: before.length,
      messagesAfter: before.length,
      oldSessionId: sessionId,
      newSessionId: sessionId,
    };
    emit({ type: "compressed", kind: "prune", before: tokens, after, ms, missing: [], ...size });
    return true;
  }

  // --- the whole way

  async #shorten(
    tokens: number,
    options: CompressOptions,
    run: KeeperRun,
    { quiet = false } = {},
  ): Promise<CompressReport> {
    const engine = await this.#openEngine();
    if (!(engine.hasContentToCompress?.(this.#messages) ?? true)) return { type: "nothing" };
    const { clock, log } = this.#conversation.options.ports;
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
      const why = error instanceof Error ? error.message : String(error);
      return this.#say({ type: "failed", why }, run, quiet);
    } finally {
      await lease?.release().catch((error) => log.warn("a compression lease could not be given back", error));
    }
  }

  async #leased(
    engine: ContextEngine,
    before: Size,
    options: CompressOptions,
    run: KeeperRun,
    began: number,
  ): Promise<CompressReport> {
    const { transcript, pins, options: made } = this.#conversation;
    const oldSessionId = transcript.sessionId;
    if (await transcript.followTip()) {
      await this.#settle(oldSessionId);
      return { type: "adopted", sessionId: transcript.sessionId };
    }
    const history = this.#messages;
    const notes = await this.#lastWords(history, run);
    const told = { ...options, currentTokens: before.tokens, pins: await pins.list(), notes, signal: run.signal };
    const shorter = (await this.#whilePaying(run, () => engine.compress(history, told))) as readonly HistoryMessage[]; // no system message went in
    if (run.signal.aborted) return { type: "interrupted" };
    if (shorter === history) return nothingCame(engine);
    const ours = await transcript.continueWith(await this.#withOpenTasks(shorter));
    if (!ours) {
      await this.#settle(oldSessionId);
      return { type: "adopted", sessionId: transcript.sessionId };
    }
    const after = before.tokens - (messagesCost(history) - messagesCost(this.#messages));
    this.#conversation.meter.assumePrompt(after);
    this.#unread = true;
    await this.#settle(oldSessionId);
    await engine.onSessionStart?.(transcript.sessionId, { boundaryReason: "compression", oldSessionId });
    const { missing, fallbackUsed, dropped, again } = resultOf(engine);
    return {
      type: "compressed",
      before,
      after: { tokens: after, messages: this.#messages.length },
      ms: made.ports.clock.now() - began,
      missing,
      fallbackUsed,
      dropped: dropped || history.length - this.#messages.length,
      again,
      oldSessionId,
      sessionId: transcript.sessionId,
    };
  }

  /** Memory is saved before what it could be learnt from is gone; a provider may want something kept. */
  async #lastWords(history: readonly HistoryMessage[], { signal }: KeeperRun): Promise<string | undefined> {
    const { ports } = this.#conversation.options;
    const { sessionId } = this.#conversation.transcript;
    const heard = async () => {
      await ports.compression?.flushMemories?.({ sessionId, messages: history, signal });
      return (await ports.compression?.preCompress?.(history)) ?? undefined;
    };
    try {
      const settled = await orAbandon(heard(), signal, GRACE_MS);
      return settled.done ? settled.value : undefined;
    } catch (error) {
      ports.log.warn("memories could not be saved before the compression", error);
      return undefined;
    }
  }

  async #withOpenTasks(messages: readonly HistoryMessage[]): Promise<readonly HistoryMessage[]> {
    const { tools } = this.#conversation.options;
    const clean = messages.map(withoutTodos);
    if (!tools.names.has("todo")) return clean;
    const { renderActiveTodos } = await import("../../tools/todo.ts");
    const snapshot = renderActiveTodos(tools.state);
    return snapshot === null ? clean : withTodos(clean, snapshot);
  }

  /** The conversation holds other messages now, maybe under another id: prompt, caches and readings follow. */
  async #settle(oldSessionId: string): Promise<void> {
    this.#window.forget();
    await this.#conversation.systemPrompt();
    await this.#forgetResults(oldSessionId);
  }

  async #forgetResults(oldSessionId: string): Promise<void> {
    const { transcript, options } = this.#conversation;
    forgetReads(options.tools.state);
    const change = { oldSessionId, newSessionId: transcript.sessionId, messages: transcript.messages };
    try {
      await options.ports.compression?.compressed?.(change);
    } catch (error) {
      options.ports.log.warn("somebody could not follow the compression", error);
    }
  }

  #say(report: CompressReport, { emit }: KeeperRun, quiet: boolean): CompressReport {
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

  async #preview(tokens: number, options: CompressOptions): Promise<CompressReport> {
    const engine = await this.#openEngine();
    const messages = this.#messages;
    const preview = hasPreview(engine) ? engine.preview(messages, { ...options, currentTokens: tokens }) : null;
    if (!preview) return { type: "nothing" };
    const { kept, dropped, keptTokens, droppedTokens, summaryTokens } = preview;
    return {
      type: "preview",
      before: { tokens, messages: messages.length },
      kept: { tokens: keptTokens, messages: kept.length },
      dropped: { tokens: droppedTokens, messages: dropped.length },
      summaryTokens,
    };
  }

  async #whilePaying<T>({ emit }: KeeperRun, work: () => Promise<T>): Promise<T> {
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

  // --- shared

  get #messages(): readonly HistoryMessage[] {
    return this.#conversation.transcript.messages;
  }

  get #config() {
    return this.#conversation.options.ports.config();
  }

  get #threshold(): number {
    if (this.#engine) return this.#engine.thresholdTokens;
    const { threshold, target_ratio } = this.#config.compression;
    return contextNumbers(this.#conversation.model.target.contextLength, threshold, target_ratio).thresholdTokens;
  }

  async #measure() {
    const { options } = this.#conversation;
    const system = await this.#conversation.systemPrompt();
    const ephemeral = options.prompt.ephemeral?.() ?? "";
    return this.#window.measure(`${system}${ephemeral}`, this.#messages, options.tools.definitions);
  }

  async #lease(): Promise<CompressionLease | null> {
    const { session } = this.#conversation.options;
    if (!session.store) return { release: async () => undefined };
    return session.store.leaseCompression(this.#conversation.transcript.sessionId, { seconds: LEASE_SECONDS });
  }

  async #openEngine(): Promise<ContextEngine> {
    if (this.#engine) return this.#engine;
    const { openEngineFor } = await import("./open-engine.ts");
    const engine = await openEngineFor(this.#conversation);
    if (this.#lastUsage) engine.updateFromResponse(engineUsage(this.#lastUsage));
    this.#engine ??= engine;
    return this.#engine;
  }
}

function engineUsage({ promptTokens, outputTokens, totalTokens }: Usage) {
  return { promptTokens, completionTokens: outputTokens, totalTokens };
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

function hasPreview(engine: ContextEngine): engine is ContextEngine & {
  preview(messages: readonly HistoryMessage[], options: CompressOptions): CompressPreview | null;
} {
  return "preview" in engine && typeof engine.preview === "function";
}

function isPruneRecord(value: unknown): value is { rows: { id: number; sent: string | null }[]; last: number | null } {
  return typeof value === "object" && value !== null && "rows" in value && Array.isArray(value.rows) && "last" in value;
}
