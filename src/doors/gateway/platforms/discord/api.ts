// The way to Discord's HTTP API: one client, a time limit for every request, and what a failure means for what was asked.
import type { API } from "@discordjs/core";
import type { REST } from "@discordjs/rest";
import { codeOf, messageOf } from "../../../../kit/errors.ts";
import type { AdapterHost, ChatTarget, SendResult } from "../../contract.ts";
import { PlatformError } from "../../contract.ts";
import { addressProblem } from "../../web-calls.ts";
import { apiUrlOf, tokenOf } from "./entry.ts";

/** What became of a request. */
export type Failure =
  | { readonly type: "limited"; readonly seconds: number; readonly message: string }
  /** Discord said no, in its own words and with its own code. */
  | { readonly type: "answered"; readonly status: number; readonly code: number; readonly message: string }
  /** Nothing left this machine. */
  | { readonly type: "not_sent"; readonly message: string }
  /** It left, and no answer came. */
  | { readonly type: "no_answer"; readonly message: string };

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
  readonly api: API;
  readonly rest: REST;
  readonly #host: AdapterHost;
  readonly #seconds: number;
  #selfId: Promise<string> | null = null;
  /** Told when the token is refused. */
  onRefused: (error: PlatformError) => void = () => undefined;

  private constructor(host: AdapterHost, api: API, rest: REST) {
    this.#host = host;
    this.api = api;
    this.rest = rest;
    this.#seconds = Number(host.option("request_timeout")) || REQUEST_SECONDS;
  }

  static async open(host: AdapterHost): Promise<DiscordApi> {
    const token = tokenOf(host.option);
    if (token === null)
      throw new PlatformError("no_token", "DISCORD_BOT_TOKEN is not set; run: hermes gateway setup", {
        retryable: false,
      });
    const address = apiUrlOf(host.option);
    const problem = addressProblem(address, "DISCORD_API_URL");
    if (problem !== null) throw new PlatformError("bad_address", problem, { retryable: false });
    const [{ REST }, { API }] = await Promise.all([
      host.package("@discordjs/rest", () => import("@discordjs/rest")),
      host.package("@discordjs/core", () => import("@discordjs/core")),
    ]);
    // No retries of its own: whether a repeat is safe is for the delivery to say. Its time limit is our signal's.
    const rest = new REST({ api: address, version: "10", retries: 0, timeout: FILE_SECONDS * 1000, rejectOnRateLimit });
    rest.setToken(token);
    return new DiscordApi(host, new API(rest), rest);
  }

  /** One request that may take so long, and how it failed if it did. */
  async ask<T>(
    work: (options: { readonly signal: AbortSignal }) => Promise<T>,
    { withFile = false } = {},
  ): Promise<{ readonly value: T } | { readonly failure: Failure }> {
    try {
      return { value: await work(this.limit(withFile)) };
    } catch (error) {
      const failure = failureFrom(error);
      if (failure.type === "answered" && failure.status === 401) this.onRefused(invalidToken());
      return { failure };
    }
  }

  /** Something that can be asked any number of times; rejects with a `PlatformError` when that did not help. */
  async read<T>(work: (options: { readonly signal: AbortSignal }) => Promise<T>, signal?: AbortSignal): Promise<T> {
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

  limit(withFile = false): { readonly signal: AbortSignal } {
    return { signal: AbortSignal.timeout((withFile ? FILE_SECONDS : this.#seconds) * 1000) };
  }

  /** The bot's own id. */
  selfId(): Promise<string> {
    this.#selfId ??= this.read((options) => this.api.users.getCurrent(options)).then(({ id }) => id);
    this.#selfId.catch(() => {
      this.#selfId = null; // the next one asks again
    });
    return this.#selfId;
  }

  close(): void {
    this.rest.clearHashSweeper();
    this.rest.clearHandlerSweeper();
  }
}

/** The client waits out short limits; what somebody else repeats, or would wait for too long, comes back. */
function rejectOnRateLimit({ route, method, timeToReset, retryAfter }: RateLimit): boolean {
  if (Math.max(timeToReset, retryAfter) > 10_000) return true;
  if (route === "/channels/:id/typing") return true;
  return /^\/channels\/:id\/messages(?:\/:id)?$/.test(route) && (method === "POST" || method === "PATCH");
}

interface RateLimit {
  readonly route: string;
  readonly method: string;
  readonly timeToReset: number;
  readonly retryAfter: number;
}

/** Read by shape: the classes come with a package that is loaded later. */
export function failureFrom(error: unknown): Failure {
  const message = messageOf(error);
  if (!(error instanceof Error)) return { type: "no_answer", message };
  if ("timeToReset" in error && "retryAfter" in error) {
    const milliseconds = Number(error.retryAfter) || Number(error.timeToReset) || 0;
    return { type: "limited", seconds: Math.max(0, milliseconds / 1000), message: "rate limited by Discord" };
  }
  if ("status" in error && typeof error.status === "number") {
    const code = "code" in error && typeof error.code === "number" ? error.code : 0;
    const said = message.split("\n").slice(0, 3).join("; ");
    return { type: "answered", status: error.status, code, message: `Discord: ${said} (${code || error.status})` };
  }
  // The client forgets its token when it was refused once.
  if (message.startsWith("Expected token to be set"))
    return { type: "answered", status: 401, code: 0, message: "Discord refused the token" };
  if (isBeforeSending(error)) return { type: "not_sent", message: `Discord is not reached: ${codeOf(error)}` };
  const isLate = error.name === "AbortError" || error.name === "TimeoutError";
  return {
    type: "no_answer",
    message: isLate ? "Discord did not answer in time" : `no answer from Discord: ${message}`,
  };
}

/** The connection was never made: no name, no route, nobody there, a certificate that is not theirs. */
function isBeforeSending(error: Error): boolean {
  const code = codeOf(error) ?? "";
  if (/^(?:ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|ENETDOWN|UND_ERR_CONNECT_TIMEOUT)$/.test(code))
    return true;
  return /^(?:CERT_|ERR_TLS_|ERR_SSL_|DEPTH_ZERO_|SELF_SIGNED_|UNABLE_TO_)/.test(code);
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
