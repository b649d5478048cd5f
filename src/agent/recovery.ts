// Whether a question that failed is worth asking again: attempts, pauses, and the repairs that a refusal teaches.
import type { Failure, FailureReason } from "../llm/errors/classify.ts";
import { failureLine } from "../llm/errors/explain.ts";
import type { KeyStep } from "../llm/keys/ring.ts";
import { hostBelongs, hostOf } from "../llm/providers/hosts.ts";
import type { ModelRequest, Target } from "../llm/wire.ts";
import type { Asking } from "./ask-model.ts";
import { retryDelayMs } from "./failure.ts";

/** A sign of life while a model or a pause is waited for. */
export const HEARTBEAT_MS = 30_000;
const STREAM_RETRIES = 2;
/** So often in a row a provider may fall silent before somebody else is asked. */
const MOST_SILENCES = 5;

const BREAKS: ReadonlySet<string> = new Set(["ECONNRESET", "EPIPE", "UND_ERR_SOCKET", "stream_cut", "stream_ended"]);

/** Refusals that waiting does not mend soon: with somebody to stand in, nobody waits. */
const GIVES_WAY = new Set<FailureReason>(["rate_limit", "upstream_rate_limit", "billing"]);

/** What one question has cost so far, and whether it is worth asking again. */
export class Tries {
  readonly #asking: Asking;
  #attempt = 1;
  #reconnected = 0;
  /** A fresh connection was tried, or cannot be had. */
  #renewed: boolean;

  constructor(asking: Asking) {
    this.#asking = asking;
    this.#renewed = asking.conversation.options.ports.renewConnections === undefined;
  }

  get made(): number {
    return this.#attempt;
  }

  async after(failure: Failure, request: ModelRequest): Promise<"again" | "failed" | "interrupted"> {
    // These cost no attempt: there are only so many lessons, breaks in a row, and keys.
    if (this.#learns(failure, request) || this.#reconnects(failure)) return "again";
    const { conversation } = this.#asking;
    const key = await conversation.keys.afterFailure(conversation.model.target, failure);
    if (key.type === "next" || key.type === "renewed") {
      this.#adopt(key, failure);
      return "again";
    }
    return this.#waitFor(failure, key);
  }

  #learns({ error, classified }: Failure, request: ModelRequest): boolean {
    const { conversation, emit } = this.#asking;
    const { lessons, transcript, options } = conversation;
    const lesson = lessons.learn(error, classified, request);
    if (lesson === null) return false;
    options.ports.gate.expectNewPrefix(transcript.sessionId, "repair");
    emit({ type: "status", kind: "warn", message: lesson });
    return true;
  }

  #reconnects(failure: Failure): boolean {
    const most = this.#asking.conversation.options.limits.streamRetries ?? STREAM_RETRIES;
    const again = this.#reconnected < most && brokeOff(failure);
    this.#reconnected = again ? this.#reconnected + 1 : 0;
    if (again) this.#tell(`${this.#line(failure)} — connecting again`);
    return again;
  }

  #adopt({ type, target }: Extract<KeyStep, { target: Target }>, failure: Failure): void {
    const what =
      type === "renewed"
        ? `the login to ${target.provider} was renewed.`
        : `going on with the next key of ${target.provider}.`;
    const message = `${this.#line(failure)} — ${what}`;
    this.#asking.conversation.adoptTarget(target);
    this.#asking.emit({ type: "status", kind: "warn", message });
  }

  async #waitFor(failure: Failure, key: KeyStep): Promise<"again" | "failed" | "interrupted"> {
    const { fallback, model, options } = this.#asking.conversation;
    const { error, classified, worthRetrying } = failure;
    const attempts = Math.max(1, options.limits.apiMaxRetries);
    const used = this.#attempt >= attempts && key.type !== "same";
    if (!worthRetrying) return "failed";
    const silences = error.code === "stale_stream" ? fallback.noteSilence() : 0;
    if (silences >= MOST_SILENCES && (await fallback.available())) return "failed";
    if (key.type === "none" && GIVES_WAY.has(classified.reason) && (await fallback.available())) return "failed";
    if (used && (this.#renewed || !mayBeStale(failure, model.target))) return "failed";
    const delay = used
      ? Math.min(3 + this.#attempt, 8) * 1000
      : retryDelayMs(failure, this.#attempt, options.ports.clock);
    const next = used ? "with a new connection" : `attempt ${this.#attempt + 1} of ${attempts}`;
    this.#tell(`${this.#line(failure)} — trying again in ${Math.round(delay / 100) / 10} s (${next})`);
    if (!(await pause(this.#asking, delay))) return "interrupted";
    if (used) {
      this.#renewed = true;
      options.ports.renewConnections?.();
    }
    if (key.type !== "same") this.#attempt = used ? 1 : this.#attempt + 1;
    return "again";
  }

  #line({ classified }: Failure): string {
    return failureLine(classified, this.#asking.conversation.model.target.apiKey);
  }

  #tell(message: string): void {
    this.#asking.emit({ type: "status", kind: "lifecycle", message, recovery: true });
  }
}

/** The connection broke before anything came: most often the next one holds, and nobody has to wait for it. */
function brokeOff({ error, classified }: Failure): boolean {
  if (classified.reason !== "timeout" || classified.statusCode !== undefined) return false;
  return BREAKS.has(error.code ?? "");
}

/** The connection itself may be what is broken: a fresh one is worth one more round. Relays break for other reasons. */
function mayBeStale({ error, classified }: Failure, { provider, baseUrl }: Target): boolean {
  if (classified.reason !== "timeout" || classified.statusCode !== undefined) return false;
  if (error.code === "ECONNREFUSED" || error.code === "ENOTFOUND") return false;
  return provider !== "openrouter" && provider !== "nous" && !hostBelongs(hostOf(baseUrl), "openrouter.ai");
}

/** Waits, with a sign of life every half minute. False when the turn was interrupted meanwhile. */
export async function pause({ conversation, signal, emit }: Asking, ms: number): Promise<boolean> {
  const { clock } = conversation.options.ports;
  for (let left = ms; left > 0 && !signal.aborted; left -= HEARTBEAT_MS) {
    try {
      await clock.sleep(Math.min(left, HEARTBEAT_MS), signal);
    } catch (error) {
      if (!signal.aborted) throw error;
    }
    if (left > HEARTBEAT_MS) emit({ type: "status", kind: "heartbeat", message: "waiting to try again" });
  }
  return !signal.aborted;
}
