// Keeps one conversation inside the model's window: measures, decides, has it shortened, and goes on in the child session.

import { UserError } from "../../kit/errors.ts";
import type { HistoryMessage } from "../../llm/messages.ts";
import { estimateTokens, type Usage } from "../../llm/usage.ts";
import type { ToolDefinition } from "../../llm/wire.ts";
import { type CompressOptions, type ContextEngine, isStandard } from "../../plugins/context-engines.ts";
import type { SessionStore } from "../../sessions/store.ts";
import type { ForeignTools } from "../../tools/toolset/session-tools.ts";
import type { Conversation } from "../conversation.ts";
import type { Transcript } from "../transcript.ts";
import { contextNumbers, messagesCost, thresholdFor } from "./boundaries.ts";
import type { CompressPreview } from "./compressor.ts";
import { blockedLine, type CompressReport, type CompressRequest, type ContextRun, Shortener } from "./shortener.ts";

const MAX_PASSES = 3;
/** A request this close to the window would not come back with an answer. */
const BRIM = 0.95;

/**
 * - What fails or is interrupted leaves history and store as they were; the turn goes on without.
 * - After a compression nothing is decided by an estimate until a request has shown what it really took.
 */
export class ContextManager {
  readonly #conversation: Conversation;
  readonly #window = new WindowMeter();
  readonly #shortener: Shortener;
  #engine: ContextEngine | null = null;
  #complaint: string | null = null;
  #lastUsage: Usage | null = null;
  #unread = false;
  #warnedBlocked: string | null = null;

  constructor(conversation: Conversation) {
    this.#conversation = conversation;
    this.#shortener = new Shortener(conversation);
  }

  /** What a call of the conversation really used. Called before its answer enters the history. */
  noteUsage(usage: Usage): void {
    this.#lastUsage = usage;
    this.#engine?.updateFromResponse(engineUsage(usage));
    if (usage.promptTokens === null) return;
    this.#window.read(usage.promptTokens, this.#messages.length);
    if (usage.promptTokens < this.#threshold) this.#warnedBlocked = null;
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
    this.#shortener.warn(message);
  }

  /** Opens an engine that was chosen by name; the default one waits until it is needed. Resolves to what is wrong with it, if anything is. */
  async prepare(): Promise<string | null> {
    const { limits } = this.#conversation.assembly;
    if (isStandard(this.#config.context.engine) || limits.compression === false) return null;
    await this.#openEngine();
    return this.#complaint;
  }

  /** Tools of the engine, if it has any. */
  async engineTools(): Promise<ContextEngine | null> {
    await this.prepare();
    return (this.#engine?.getToolSchemas?.() ?? []).length > 0 ? this.#engine : null;
  }

  /** What the engine says about itself; null as long as it was not needed. */
  get status(): { readonly name: string; readonly facts: Readonly<Record<string, unknown>> } | null {
    return this.#engine && { name: this.#engine.name, facts: this.#engine.getStatus?.() ?? {} };
  }

  /** The conversation is left; with `afresh` a new one takes its place, and what the engine gathered is out of date. */
  async close({ afresh = false } = {}): Promise<void> {
    const { sessionId, messages } = this.#conversation.transcript;
    const engine = this.#engine;
    if (!engine) return;
    const { notifyBound } = await import("../../plugins/context-engines.ts");
    const { assembly } = this.#conversation;
    await notifyBound(assembly, () => engine.onSessionEnd?.(sessionId, messages));
    if (afresh) await notifyBound(assembly, () => engine.onSessionReset?.());
  }

  /** Turns were taken back. */
  historyChanged(): void {
    this.#window.forget();
  }

  /** Before the first request of a turn. */
  async beforeTurn(run: ContextRun): Promise<void> {
    if (!this.#enabled) return;
    const { tokens, reading } = await this.#measure();
    const engine = await this.#engineAt(tokens);
    if (!engine) return;
    const asks = engine.shouldCompressPreflight?.(this.#messages) ?? false;
    if (asks || tokens >= engine.thresholdTokens)
      await this.#shortenIfDue(engine, tokens, { run, asks, real: reading !== null });
  }

  /** Behind the results of an answer's calls. */
  async afterTools(run: ContextRun): Promise<void> {
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
  async onOverflow(attempt: number, run: ContextRun): Promise<boolean> {
    if (!this.#enabled) return false;
    const { tokens } = await this.#measure();
    const abortOnSummaryFailure = this.#config.compression.abort_on_summary_failure;
    const report = await this.#shorten(tokens, { abortOnSummaryFailure, squeeze: attempt - 1 }, run);
    return report.type === "compressed" || report.type === "adopted";
  }

  /** The user asked for it. */
  async compress(request: CompressRequest, run: ContextRun): Promise<CompressReport> {
    const { tokens } = await this.#measure();
    const options = { force: true, focusTopic: request.focus, keepTurns: request.here, abortOnSummaryFailure: true };
    if (request.preview) return this.#preview(tokens, options);
    return this.#shorten(tokens, options, run, { quiet: true });
  }

  /** Takes the last compression or prune back, if nothing was said since. Null when there is none to take back. */
  async undo(): Promise<{ readonly kind: "summary" | "prune" } | null> {
    const { transcript, assembly } = this.#conversation;
    const { sessionId } = transcript;
    if (await transcript.undoCompression()) {
      assembly.gate.expectNewPrefix(transcript.sessionId, "rewind");
      this.#window.forget();
      await this.#shortener.settle(sessionId);
      return { kind: "summary" };
    }
    const { undoPrune } = await import("./prune.ts");
    if (!(await undoPrune(this.#conversation))) return null;
    this.#window.forget();
    return { kind: "prune" };
  }

  // --- decisions

  get #enabled(): boolean {
    return this.#config.compression.enabled && this.#conversation.assembly.limits.compression !== false;
  }

  /** The engine, once there is something for it to do: most conversations never need it. */
  async #engineAt(tokens: number): Promise<ContextEngine | null> {
    if (!this.#engine && isStandard(this.#config.context.engine) && tokens < this.#threshold) return null;
    return this.#openEngine();
  }

  async #shortenIfDue(
    engine: ContextEngine,
    tokens: number,
    { run, asks, real }: { readonly run: ContextRun; readonly asks: boolean; readonly real: boolean },
  ): Promise<void> {
    if (this.#unread && !real) return;
    const info = engine.shouldCompressInfo?.(tokens) ?? { compress: asks || engine.shouldCompress(tokens) };
    if (!info.compress) return this.#warnBlocked(info.reason, run);
    if (!(engine.hasContentToCompress?.(this.#messages) ?? true)) return;
    if (await this.#pruneAlone(engine, tokens, run)) return;
    let current = tokens;
    for (let pass = 1; pass <= MAX_PASSES; pass++) {
      const before = messagesCost(this.#messages);
      const report = await this.#shorten(current, { abortOnSummaryFailure: true }, run);
      const saved = before - messagesCost(this.#messages);
      current -= saved;
      // An estimate is good for one pass: only a real reading justifies more.
      if (report.type !== "compressed" || saved <= 0 || !real || current < engine.thresholdTokens) return;
      if (!(engine.hasContentToCompress?.(this.#messages) ?? true)) return;
    }
  }

  #warnBlocked(reason: string | undefined, { emit }: ContextRun): void {
    const kind = reason?.split(":")[0];
    if (reason === undefined || kind === this.#warnedBlocked) return;
    this.#warnedBlocked = kind ?? null;
    emit({ type: "status", kind: "warn", message: blockedLine(reason) });
  }

  // --- the cheap way

  /** Old tool results are sent in one line each; no model is asked, the session stays the same. */
  async #pruneAlone(engine: ContextEngine, tokens: number, { emit }: ContextRun): Promise<boolean> {
    const { transcript, assembly, meter } = this.#conversation;
    const began = assembly.clock.now();
    const { pruneResults } = await import("./prune.ts");
    const after = await pruneResults(this.#conversation, engine, tokens);
    if (after === null) return false;
    this.#window.forget();
    this.#unread = true;
    meter.assumePrompt(after);
    const { sessionId } = transcript;
    await this.#shortener.forgetResults(sessionId);
    emit({
      type: "compressed",
      kind: "prune",
      before: tokens,
      after,
      ms: assembly.clock.now() - began,
      missing: [],
      messagesBefore: this.#messages.length,
      messagesAfter: this.#messages.length,
      oldSessionId: sessionId,
      newSessionId: sessionId,
    });
    return true;
  }

  async #preview(tokens: number, options: CompressOptions): Promise<CompressReport> {
    const engine = await this.#openEngine();
    const messages = this.#messages;
    if (!hasPreview(engine)) return { type: "failed", why: `the context engine "${engine.name}" shows no previews` };
    const preview = engine.preview(messages, { ...options, currentTokens: tokens });
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

  /** Readings of the old messages say nothing about the new ones. */
  async #shorten(
    tokens: number,
    options: CompressOptions,
    run: ContextRun,
    more?: { readonly quiet: boolean },
  ): Promise<CompressReport> {
    const before = this.#messages;
    const report = await this.#shortener.run(await this.#openEngine(), tokens, options, run, more);
    if (this.#messages === before) return report;
    this.#window.forget();
    this.#unread = report.type === "compressed";
    return report;
  }

  // --- shared

  get #messages(): readonly HistoryMessage[] {
    return this.#conversation.transcript.messages;
  }

  get #config() {
    return this.#conversation.assembly.config();
  }

  get #threshold(): number {
    if (this.#engine) return this.#engine.thresholdTokens;
    const { compression } = this.#config;
    const { contextLength, model } = this.#conversation.model.target;
    return contextNumbers(contextLength, thresholdFor(model, compression), compression.target_ratio).thresholdTokens;
  }

  async #measure() {
    const { assembly } = this.#conversation;
    const system = await this.#conversation.systemPrompt();
    const ephemeral = assembly.prompt.ephemeral?.() ?? "";
    return this.#window.measure(`${system}${ephemeral}`, this.#messages, assembly.tools.definitions);
  }

  async #openEngine(): Promise<ContextEngine> {
    if (this.#engine) return this.#engine;
    const { openEngineFor } = await import("./summarizer.ts");
    const { engine, complaint } = await openEngineFor(this.#conversation);
    if (this.#engine) return this.#engine;
    this.#complaint = complaint;
    if (this.#lastUsage) engine.updateFromResponse(engineUsage(this.#lastUsage));
    this.#engine = engine;
    const { notifyBound } = await import("../../plugins/context-engines.ts");
    const { assembly, transcript } = this.#conversation;
    await notifyBound(assembly, () => engine.onSessionStart?.(transcript.sessionId, {}));
    return engine;
  }
}

function engineUsage({ promptTokens, outputTokens, totalTokens }: Usage) {
  return { promptTokens, completionTokens: outputTokens, totalTokens };
}

function hasPreview(engine: ContextEngine): engine is ContextEngine & {
  preview(messages: readonly HistoryMessage[], options: CompressOptions): CompressPreview | null;
} {
  return "preview" in engine && typeof engine.preview === "function";
}

// How full the window is: what the provider counted, as soon as it has, and an estimate of what was added since.

interface Measured {
  /** The next request as a whole. */
  readonly tokens: number;
  /** What the newest request really took; null when nobody counted. */
  readonly reading: number | null;
}

class WindowMeter {
  #reading: { readonly tokens: number; readonly upTo: number } | null = null;
  #fixed: { readonly system: string; readonly tools: readonly ToolDefinition[]; readonly tokens: number } | null = null;

  /** A request with the first `upTo` messages took so many tokens. */
  read(tokens: number, upTo: number): void {
    this.#reading = { tokens, upTo };
  }

  /** What was counted no longer says anything about the next request. */
  forget(): void {
    this.#reading = null;
  }

  measure(system: string, messages: readonly HistoryMessage[], tools: readonly ToolDefinition[]): Measured {
    const reading = this.#reading && this.#reading.upTo <= messages.length ? this.#reading : null;
    if (!reading) return { tokens: this.#fixedCost(system, tools) + messagesCost(messages), reading: null };
    return { tokens: reading.tokens + messagesCost(messages.slice(reading.upTo)), reading: reading.tokens };
  }

  #fixedCost(system: string, tools: readonly ToolDefinition[]): number {
    if (this.#fixed?.system === system && this.#fixed.tools === tools) return this.#fixed.tokens;
    const tokens = estimateTokens(system) + (tools.length > 0 ? estimateTokens(JSON.stringify(tools)) : 0);
    this.#fixed = { system, tools, tokens };
    return tokens;
  }
}

/** The tools of a conversation and those its context engine brings along. A name that is taken stays with whoever had it. */

/** The tools of a context engine, behind the list. */
export function engineTools(engine: ContextEngine): ForeignTools {
  return {
    definitions: engine.handleToolCall ? (engine.getToolSchemas?.() ?? []) : [],
    call: async (name, args) => (await engine.handleToolCall?.(name, args)) ?? "",
  };
}

// Lines that every compression keeps word for word. They live with the session and go with it into its continuations.

const KEY = "pins";
const MAX_LINES = 100;
const MAX_CHARS = 8000;

export class Pins {
  readonly #transcript: Transcript;
  readonly #store: SessionStore | null;
  /** Without a store they live as long as the conversation. */
  #kept: readonly string[] = [];

  constructor(transcript: Transcript, store: SessionStore | null) {
    this.#transcript = transcript;
    this.#store = store;
  }

  async list(): Promise<readonly string[]> {
    if (!this.#store) return this.#kept;
    const value = await this.#store.getValue(this.#transcript.sessionId, KEY);
    return Array.isArray(value) ? value.filter((line) => typeof line === "string") : [];
  }

  /** Resolves to all pinned lines; throws `UserError` when there is no room. */
  async add(text: string): Promise<readonly string[]> {
    const lines = text.split("\n").flatMap((line) => line.trim() || []);
    const pins = [...(await this.list()), ...lines];
    const chars = pins.reduce((sum, line) => sum + line.length, 0);
    if (pins.length > MAX_LINES || chars > MAX_CHARS) {
      throw new UserError(
        `That is too much to pin: at most ${MAX_LINES} lines and ${MAX_CHARS} characters together. /pin remove N makes room.`,
      );
    }
    return this.#save(pins);
  }

  /** By its number in the list, from 1. Resolves to the removed line; null when there is none of that number. */
  async remove(number: number): Promise<string | null> {
    const pins = await this.list();
    const line = pins[number - 1];
    if (line === undefined) return null;
    await this.#save(pins.toSpliced(number - 1, 1));
    return line;
  }

  async #save(pins: readonly string[]): Promise<readonly string[]> {
    this.#kept = pins;
    if (!this.#store) return pins;
    await this.#transcript.open();
    await this.#store.setValue(this.#transcript.sessionId, KEY, pins);
    return pins;
  }
}
