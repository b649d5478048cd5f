// The one gate: caps, key check, wire, prefix check, metering, ledger. Events pass through; usage gains its cost.

import type { Clock } from "../../kit/clock.ts";
import { messageOf } from "../../kit/errors.ts";
import { type Cost, costOf, type Price } from "../catalogue/prices.ts";
import {
  type CallPurpose,
  type CallRecord,
  CallRefusedError,
  type Caps,
  type Ledger,
  type ModelGate,
  type PaidCall,
  type PaidUsage,
  type PrefixCause,
  type PrefixReport,
} from "../gate.ts";
import { type PrefixCheck, type PrefixMemory, PrefixWatch } from "../prefix/watch.ts";
import { assertKeyBelongs } from "../providers/keys.ts";
import { ProviderError } from "../providers/settings.ts";
import { estimateRequest, estimateTokens, type Usage } from "../usage.ts";
import type { ModelError, ModelEvent, ModelRequest, SentBody, Target, Wire } from "../wire.ts";
import { anyCap, anyMoneyCap, type CapLimit, capSentence, type Estimate, limitsOf, refusedAtOnce } from "./caps.ts";

interface GateOptions {
  readonly ledger: Ledger;
  /** Read anew for every call. */
  readonly caps: () => Caps;
  readonly priceOf: (target: Pick<Target, "model" | "provider" | "baseUrl">) => Price | Promise<Price>;
  readonly wireFor: (target: Target) => Wire;
  /** For calls that say nothing about cache markers themselves: off must be off for side calls too. */
  readonly cacheTtl?: () => NonNullable<ModelRequest["cacheTtl"]>;
  readonly clock: Clock;
  /** Carries the last requests of a session over to the next process; without it each process begins anew. */
  readonly prefixMemory?: PrefixMemory;
  /** Something of ours failed (ledger, wire); the call goes on or ends as a failure. */
  readonly onDefect: (what: string, error: unknown) => void;
  /** The provider's cache does not seem to work for a session; once for each. */
  readonly onColdCache?: (message: string) => void;
  /** Once per session: money caps cannot stop this model. */
  readonly onUnknownPrice?: (message: string, purpose: CallPurpose) => void;
}

const NOT_REMEMBERED = "what a session's last request began with could not be kept for the next process";
const NOTHING_LEFT: Cost = { usd: 0, status: "actual", source: "not_sent" };

function priced(event: Extract<ModelEvent, { type: "usage" }>, price: Price): ModelEvent {
  return { type: "usage", usage: { ...event.usage, cost: costOf(event.usage, price) } };
}

export function createGate(options: GateOptions): ModelGate {
  const { clock, onDefect } = options;
  const prefixes = new PrefixWatch({ memory: options.prefixMemory });
  const reported = new Set<string>();
  const shares = new CacheShare();

  async function* stream(given: ModelRequest, purpose: CallPurpose, signal: AbortSignal): AsyncGenerator<ModelEvent> {
    const request = given.cacheTtl || !options.cacheTtl ? given : { ...given, cacheTtl: options.cacheTtl() };
    const { target } = request;
    const meter = new Meter(clock.now());
    let booked: Promise<void> | null = null;
    let reservation: number | undefined;
    const prefix: { check: PrefixCheck | null; kept: Promise<void> | null } = { check: null, kept: null };
    const book = (outcome: CallRecord["outcome"], cost: Cost) => {
      const { startedAt, usage } = meter;
      const report = prefix.check?.report ?? {};
      if (!booked && outcome === "ok" && usage) noteCacheShare(purpose, usage, report);
      booked ??= record({ target, purpose, startedAt, usage, outcome, cost, prefix: report }, reservation);
      return booked;
    };
    let price: Price = { type: "unknown" };
    try {
      price = await options.priceOf(target);
      const estimate = () => estimateOf(request, price);
      const checked = await check({ target, purpose, startedAt: meter.startedAt }, estimate, price);
      if ("error" in checked) {
        book("refused", NOTHING_LEFT);
        yield { type: "failed", error: checked.error };
        return;
      }
      reservation = checked.reservation;
      await prefixes.recall(purpose.sessionId).catch((error) => onDefect(NOT_REMEMBERED, error));
      const onSend = (sent: SentBody) => {
        prefix.check = checkPrefix(request, purpose, sent);
      };
      for await (const event of options.wireFor(target).stream(request, signal, onSend)) {
        meter.see(event);
        // The row is under way before the last event is handed out: a reader that stops there must not lose it.
        if (event.type === "done") {
          prefix.kept = remember(prefix.check, { goesOn: (event.message.tool_calls?.length ?? 0) > 0 });
          book("ok", meter.cost(request, price, "ok"));
        }
        if (event.type === "failed") {
          const outcome = event.error.code === "aborted" ? "aborted" : "error";
          book(outcome, meter.cost(request, price, outcome, event.error));
        }
        yield event.type === "usage" ? priced(event, price) : event;
      }
      if (!booked) throw new Error(`the ${target.apiMode} wire ended without an answer or a failure`);
    } catch (error) {
      onDefect("a model call broke inside the program", error);
      if (booked) return;
      book("error", meter.cost(request, price, "error"));
      const message = messageOf(error);
      yield { type: "failed", error: { message, code: "internal" } };
    } finally {
      // Still open only when the reader left early. An answer that is there is not held up: its rows are under way, before whatever is
      // written of it next, and share a transaction with that.
      const row = booked ?? book("aborted", meter.cost(request, price, "aborted"));
      if (prefix.kept === null) await row;
    }
  }

  const pay: ModelGate["pay"] = async (call, purpose, send, signal) => {
    const startedAt = clock.now();
    const price = await options.priceOf(call);
    const estimate = () => estimateFor(estimateTokens(call.input), 0, price);
    const checked = await check({ target: call, purpose, startedAt }, estimate, price);
    const book = (outcome: CallRecord["outcome"], cost: Cost, usage: PaidUsage | null) =>
      record(
        { target: call, purpose, startedAt, usage, outcome, cost, prefix: {} },
        "error" in checked ? undefined : checked.reservation,
      );
    if ("error" in checked) {
      await book("refused", NOTHING_LEFT, null);
      throw new CallRefusedError(checked.error.message);
    }
    try {
      const { value, usage } = await send();
      const cost = costOf(usage && { ...usage, cacheReadTokens: null, cacheWriteTokens: null }, price);
      await book("ok", cost, usage);
      return { value, usage, cost };
    } catch (error) {
      await book(signal.aborted ? "aborted" : "error", costOf(null, price), null);
      throw error;
    }
  };

  async function check(
    { target, purpose, startedAt }: Pick<Booking, "purpose" | "startedAt"> & { readonly target: PaidCall | Target },
    expected: () => Estimate,
    price: Price,
  ): Promise<{ error: ModelError } | { reservation: number | undefined }> {
    try {
      assertKeyBelongs(target);
    } catch (error) {
      if (error instanceof ProviderError) return { error: { message: error.message, code: error.code } };
      throw error;
    }
    const caps = options.caps();
    if (!anyCap(caps)) return { reservation: undefined };
    if (price.type === "unknown" && anyMoneyCap(caps)) reportOnce(target, purpose);
    const estimate = expected();
    const refusal = refusedAtOnce(purpose, estimate, caps);
    if (refusal !== null) return { error: { message: refusal, code: "budget_exceeded" } };
    const limits = limitsOf(purpose, caps, new Date(clock.now()));
    if (limits.length === 0) return { reservation: undefined };
    try {
      const usage = { ...NO_TOKENS, inputTokens: estimate.tokens };
      const cost = {
        usd: estimate.usd,
        status: estimate.usd === null ? "unknown" : "estimated",
        source: null,
      } as const;
      const row = rowOf({ target, purpose, startedAt, usage, outcome: "reserved", cost, prefix: {} });
      const decision = await options.ledger.reserveCall(row, limits);
      if ("reservation" in decision) return decision;
      const { exceeded, unit, spent } = decision;
      const { cap, [unit]: most } = limits[exceeded] as CapLimit; // an index into the list that was handed over
      const message = capSentence(cap, unit, { spent, next: estimate[unit] ?? 0, cap: most ?? 0 });
      return { error: { message, code: "budget_exceeded" } };
    } catch (error) {
      onDefect("the ledger could not be read or written", error);
      const message =
        "Nothing was sent: the spending record could not be read or written, so the caps under `budget` in config.yaml cannot be enforced. Run `hermes doctor`, or remove the caps.";
      return { error: { message, code: "budget_exceeded" } };
    }
  }

  function reportOnce(target: PaidCall | Target, purpose: CallPurpose): void {
    const key = purpose.sessionId ?? "";
    if (reported.has(key)) return;
    reported.add(key);
    options.onUnknownPrice?.(
      `The price of ${target.model} at ${target.provider} is unknown: caps in dollars cannot stop it, only caps in tokens (budget.*.tokens).`,
      purpose,
    );
  }

  function checkPrefix(request: ModelRequest, purpose: CallPurpose, sent: SentBody): PrefixCheck | null {
    try {
      const check = prefixes.check(request, purpose, sent);
      if (check.defect) onDefect(check.defect, undefined);
      return check;
    } catch (error) {
      onDefect("the prefix of a request could not be checked", error);
      return null;
    }
  }

  async function remember(check: PrefixCheck | null, turn: { readonly goesOn: boolean }): Promise<void> {
    await check?.answered(turn).catch((error) => onDefect(NOT_REMEMBERED, error));
  }

  function noteCacheShare({ task, sessionId }: CallPurpose, usage: Usage, prefix: PrefixReport): void {
    if (task !== "main" || sessionId === null) return;
    const cold = shares.note(sessionId, usage, prefix);
    if (cold !== null) options.onColdCache?.(cold);
  }

  async function record(booking: Booking, reservation: number | undefined): Promise<void> {
    try {
      await options.ledger.recordCall(rowOf(booking), reservation);
    } catch (error) {
      onDefect("a model call could not be written to the ledger", error);
    }
  }

  function rowOf(booking: Booking): CallRecord {
    const { target, purpose, startedAt, outcome, cost, prefix } = booking;
    const usage = outcome === "refused" ? NO_TOKENS : booking.usage;
    return {
      ...purpose,
      model: target.model,
      provider: target.provider,
      baseUrl: target.baseUrl,
      apiMode: target.apiMode,
      startedAt: startedAt / 1000,
      ms: clock.now() - startedAt,
      outcome,
      inputTokens: usage?.inputTokens ?? null,
      outputTokens: usage?.outputTokens ?? null,
      cacheReadTokens: usage?.cacheReadTokens ?? null,
      cacheWriteTokens: usage?.cacheWriteTokens ?? null,
      reasoningTokens: usage?.reasoningTokens ?? null,
      costUsd: cost.usd,
      costStatus: cost.status,
      costSource: cost.source,
      ...prefix,
    };
  }

  function expectNewPrefix(sessionId: string, cause: PrefixCause): void {
    prefixes.expect(sessionId, cause).catch((error) => onDefect(NOT_REMEMBERED, error));
  }

  return { stream, pay, expectNewPrefix };
}

interface Booking {
  readonly target: Pick<PaidCall, "model" | "provider" | "baseUrl" | "apiMode">;
  readonly purpose: CallPurpose;
  /** Milliseconds since the epoch. */
  readonly startedAt: number;
  readonly usage: Partial<Usage> | null;
  readonly outcome: CallRecord["outcome"];
  readonly cost: Cost;
  readonly prefix: PrefixReport;
}

const NO_TOKENS = {
  inputTokens: 0,
  outputTokens: 0,
  cacheReadTokens: 0,
  cacheWriteTokens: 0,
  reasoningTokens: 0,
} as const;

/** Watches one call. */
class Meter {
  readonly startedAt: number;
  usage: Usage | null = null;
  #chars = "";
  #began = false;

  constructor(startedAt: number) {
    this.startedAt = startedAt;
  }

  see(event: ModelEvent): void {
    if (event.type === "usage") this.usage = event.usage;
    if (event.type === "text" || event.type === "thinking") this.#chars += event.delta;
    if (event.type === "tool_call") this.#chars += event.call.function.arguments;
    if (event.type !== "failed") this.#began = true;
  }

  cost(request: ModelRequest, price: Price, outcome: "ok" | "error" | "aborted", error?: ModelError): Cost {
    if (this.usage || price.type !== "per_token" || outcome === "ok") return costOf(this.usage, price);
    // Refused by the server or never reached: providers do not bill that.
    if (!this.#began && outcome === "error" && !error?.partial)
      return { usd: 0, status: "estimated", source: "failed" };
    const tokens = {
      inputTokens: estimateRequest(request.messages, request.tools),
      outputTokens: estimateTokens(this.#chars),
      cacheReadTokens: null,
      cacheWriteTokens: null,
    };
    return { ...costOf(tokens, price), source: "rough_estimate" };
  }
}

/** Input estimate plus the output cap the caller chose, at the known price. A provider's default cap is no forecast: it would stop everything. */
function estimateOf({ messages, tools, maxTokens }: ModelRequest, price: Price): Estimate {
  return estimateFor(estimateRequest(messages, tools), maxTokens ?? 0, price);
}

function estimateFor(inputTokens: number, outputTokens: number, price: Price): Estimate {
  const tokens = { inputTokens, outputTokens, cacheReadTokens: null, cacheWriteTokens: null };
  return { usd: costOf(tokens, price).usd, tokens: inputTokens + outputTokens };
}

// A provider's cache that stopped working shows in the figures long before it shows on the bill.

const LARGE_PROMPT = 8_000;
const LEAST_SHARE = 0.2;
const IN_A_ROW = 2;

export class CacheShare {
  readonly #low = new Map<string, number>();
  readonly #reported = new Set<string>();

  /** A sentence for the log when two large requests in a row read next to nothing from the cache; once per session. */
  note(sessionId: string, usage: Usage, { commonBytes, brokeOwner, brokeOffset }: PrefixReport): string | null {
    const { promptTokens, cacheReadTokens } = usage;
    // A first request finds nothing, and a provider that reports nothing proves nothing.
    if (promptTokens === null || cacheReadTokens === null || promptTokens <= LARGE_PROMPT || !commonBytes) return null;
    if (cacheReadTokens >= LEAST_SHARE * promptTokens) {
      this.#low.delete(sessionId);
      return null;
    }
    const times = (this.#low.get(sessionId) ?? 0) + 1;
    this.#low.set(sessionId, times);
    if (times < IN_A_ROW || this.#reported.has(sessionId)) return null;
    this.#reported.add(sessionId);
    const where =
      brokeOwner === undefined
        ? "the requests themselves begin alike: the provider does not cache them, or forgot them"
        : `the first difference to the request before is in ${brokeOwner}, at byte ${brokeOffset ?? 0}`;
    return `Session ${sessionId}: ${IN_A_ROW} large requests in a row read less than ${LEAST_SHARE * 100} % of their prompt from the provider's cache (${cacheReadTokens} of ${promptTokens} tokens); ${where}. "hermes prompt blame ${sessionId}" shows all of them.`;
  }
}
