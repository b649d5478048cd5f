// The way to Discord's HTTP API: a time limit for every request, and what a failure means for what was asked.
import { messageOf } from "../../../../kit/errors.ts";
import type { AdapterHost, ChatTarget, SendResult } from "../../contract.ts";
import { PlatformError } from "../../contract.ts";
import { addressProblem } from "../../web-calls.ts";
import { apiUrlOf, tokenOf } from "./entry.ts";
import { type Failure, RequestError, Rest } from "./rest.ts";
import { type Limit, Routes } from "./routes.ts";

export const CODES = {
  unknownChannel: 10003,
  unknownMessage: 10008,
  unknownInteraction: 10062,
  notText: 50008,
  archivedThread: 50083,
  lockedThread: 160005,
  threadExists: 160004,
} as const;

const REQUEST_SECONDS = 15;
const FILE_SECONDS = 300;
const READ_TRIES = 3;

export class DiscordApi {
  readonly api: Routes;
  readonly #host: AdapterHost;
  readonly #seconds: number;
  #selfId: Promise<string> | null = null;
  /** Told when the token is refused. */
  onRefused: (error: PlatformError) => void = () => undefined;

  constructor(host: AdapterHost) {
    this.#host = host;
    this.#seconds = Number(host.option("request_timeout")) || REQUEST_SECONDS;
    const token = tokenOf(host.option);
    if (token === null)
      throw new PlatformError("no_token", "DISCORD_BOT_TOKEN is not set; run: hermes gateway setup", {
        retryable: false,
      });
    const address = apiUrlOf(host.option);
    const problem = addressProblem(address, "DISCORD_API_URL");
    if (problem !== null) throw new PlatformError("bad_address", problem, { retryable: false });
    this.api = new Routes(new Rest(host.clock, { token, address }));
  }

  /** One request that may take so long, and how it failed if it did. */
  async ask<T>(
    work: (limit: Limit) => Promise<T>,
    { withFile = false } = {},
  ): Promise<{ readonly value: T } | { readonly failure: Failure }> {
    try {
      return { value: await work(this.limit(withFile)) };
    } catch (error) {
      const failure = failureOf(error);
      if (failure.type === "answered" && failure.status === 401) this.onRefused(invalidToken());
      return { failure };
    }
  }

  /** Something that can be asked any number of times; rejects with a `PlatformError` when that did not help. */
  async read<T>(work: (limit: Limit) => Promise<T>, signal?: AbortSignal): Promise<T> {
    for (let attempt = 1; ; attempt++) {
      const result = await this.ask(work);
      if ("value" in result) return result.value;
      const { failure } = result;
      const isLasting = failure.type === "answered" && failure.status < 500;
      if (isLasting || attempt === READ_TRIES) throw errorOf(failure);
      const seconds = failure.type === "limited" ? failure.seconds : attempt;
      await this.#host.clock.sleep(seconds * 1000, signal);
    }
  }

  limit(withFile = false): Limit {
    return { signal: AbortSignal.timeout((withFile ? FILE_SECONDS : this.#seconds) * 1000) };
  }

  /** The bot's own id. */
  selfId(): Promise<string> {
    this.#selfId ??= this.read((limit) => this.api.me(limit)).then(({ id }) => id);
    this.#selfId.catch(() => {
      this.#selfId = null; // the next one asks again
    });
    return this.#selfId;
  }
}

function failureOf(error: unknown): Failure {
  return error instanceof RequestError ? error.failure : { type: "no_answer", message: messageOf(error) };
}

export function invalidToken(): PlatformError {
  const message = "Discord refused the token in DISCORD_BOT_TOKEN; set a new one: hermes gateway setup";
  return new PlatformError("invalid_token", message, { retryable: false });
}

function errorOf(failure: Failure): PlatformError {
  if (failure.type === "answered" && failure.status === 401) return invalidToken();
  const code = failure.type === "answered" ? String(failure.code || failure.status) : failure.type;
  const retryable = failure.type !== "answered" || failure.status >= 500;
  return new PlatformError(code, failure.message, { retryable });
}

/** The row of the table of sending that a failure belongs to. */
export function sendFailure(failure: Failure, target: ChatTarget): Extract<SendResult, { readonly failed: string }> {
  const { type, message: error } = failure;
  if (type === "limited") return { failed: "rate_limited", error, retryAfter: failure.seconds || undefined };
  if (type === "not_sent") return { failed: "unreachable", error };
  if (type === "no_answer") return { failed: "unknown", error };
  const { status, code } = failure;
  if (status >= 500 || status === 401) return { failed: "unreachable", error };
  const isGone: boolean = code === CODES.unknownChannel || code === CODES.archivedThread || code === CODES.lockedThread;
  if (isGone && target.threadId !== undefined) return { failed: "thread_gone", error };
  if (status === 400 && (code === 50035 || code === 50109)) return { failed: "format", error };
  return { failed: "refused", error };
}
