// Keeps an eye on an idle connection: pings it, and closes it when it was not used for long.

import type { Clock } from "../kit/clock.ts";
import { failureText, McpError, type McpFailure, shortly, withoutSecrets } from "./errors.ts";
import type { Link } from "./link.ts";
import { needsLogin } from "./oauth-provider.ts";
import type { ServerSettings } from "./settings.ts";

const PING_MS = 10_000;

interface QuietWatchOptions {
  readonly keepaliveMs: number;
  /** Null = never closed for being idle. */
  readonly idleMs: number | null;
  /** The connection gave no sign of life. */
  onSilence(link: Link): void;
  /** No call for this long. */
  onIdle(link: Link): void;
}

export class QuietWatch {
  readonly #options: QuietWatchOptions;
  #link: Link | null = null;
  #keepalive: NodeJS.Timeout | undefined;
  #idle: NodeJS.Timeout | undefined;

  constructor(options: QuietWatchOptions) {
    this.#options = options;
  }

  /** From now on this connection, and no other. */
  begin(link: Link): void {
    this.end();
    this.#link = link;
    this.#keepalive = setInterval(() => void this.#ask(link), this.#options.keepaliveMs);
    this.#keepalive.unref();
    this.rest();
  }

  end(): void {
    this.#link = null;
    clearInterval(this.#keepalive);
    clearTimeout(this.#idle);
  }

  /** A call runs. */
  wake(): void {
    clearTimeout(this.#idle);
  }

  /** No call runs any more. */
  rest(): void {
    const { idleMs, onIdle } = this.#options;
    const link = this.#link;
    clearTimeout(this.#idle);
    if (idleMs === null || !link) return;
    this.#idle = setTimeout(() => onIdle(link), idleMs);
    this.#idle.unref();
  }

  async #ask(link: Link): Promise<void> {
    try {
      await link.client.ping({ timeout: PING_MS });
    } catch (error) {
      // An answer, even "I do not know this", is a sign of life.
      if (!isAnswer(error) && this.#link === link) this.#options.onSilence(link);
    }
  }
}

const FAILURES = 3;
const REFUSED_MS = 60_000;

/** Three failures in a row, and a server is left in peace for a minute: a model that insists would only wait. */
export class Breaker {
  readonly #clock: Clock;
  #failures = 0;
  #reason = "";
  #openUntil = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Why calls are refused right now, and for how many seconds; null = they are not. */
  refusal(): { readonly reason: string; readonly seconds: number } | null {
    const left = this.#openUntil - this.#clock.now();
    return left > 0 ? { reason: this.#reason, seconds: Math.ceil(left / 1000) } : null;
  }

  succeeded(): void {
    this.#failures = 0;
  }

  failed(reason: string): void {
    this.#reason = reason;
    if (++this.#failures < FAILURES) return;
    this.#openUntil = this.#clock.now() + REFUSED_MS;
    // The first call after the pause is a trial: if it fails, the pause begins anew.
    this.#failures = FAILURES - 1;
  }

  reset(): void {
    this.#failures = 0;
    this.#openUntil = 0;
  }
}

/** The promise, unless the time is over or the signal aborts first; then whatever comes of it is ignored. */
export function within<T>(promise: Promise<T>, ms: number, late: () => Error, signal?: AbortSignal): Promise<T> {
  promise.catch(() => undefined); // reported to the caller below, or too late to matter
  return new Promise<T>((resolve, reject) => {
    const timer = setTimeout(() => finish(() => reject(late())), ms);
    const stop = () => finish(() => reject(signal?.reason instanceof Error ? signal.reason : new Error("interrupted")));
    if (signal?.aborted) return stop();
    signal?.addEventListener("abort", stop, { once: true });
    promise.then(
      (value) => finish(() => resolve(value)),
      (error) => finish(() => reject(error)),
    );
    function finish(settle: () => void): void {
      clearTimeout(timer);
      signal?.removeEventListener("abort", stop);
      settle();
    }
  });
}

// From what the SDK, the system or a server said to a sentence for the user.

interface FailureFacts {
  readonly settings: ServerSettings;
  redact(text: string): string;
  /** How its process ended, if it has one and it did. */
  readonly ending: string | null;
}

const UNTRUSTED = /^(?:CERT_|ERR_TLS_CERT|SELF_SIGNED|DEPTH_ZERO|UNABLE_TO_(?:VERIFY|GET_ISSUER))/;
const LOGS = "What it wrote is in logs/mcp-stderr.log.";

export function explainFailure(error: unknown, { settings, redact, ending }: FailureFacts): McpError {
  const known = causesOf(error).find((cause) => cause instanceof McpError);
  if (known) return known;
  const { name, endpoint } = settings;
  const clean = (text: string) => shortly(withoutSecrets(text, redact));
  const failure = (kind: McpFailure, text: string) => new McpError(kind, `MCP server "${name}": ${text}`);
  const code = codeOfCause(error);
  const status = statusOf(error);

  if (endpoint.type === "stdio") {
    if (code === "ENOENT") {
      return failure(
        "missing",
        `the command "${endpoint.command}" was not found. Install it, or correct mcp_servers.${name}.command in config.yaml.`,
      );
    }
    if (code === "EACCES") return failure("missing", `"${endpoint.command}" is not executable. Check its permissions.`);
    if (ending !== null) return failure("unreachable", `${clean(ending)}. ${LOGS}`);
  }
  if (status === 401 || nameOf(error) === "UnauthorizedError") {
    if (endpoint.type !== "stdio" && endpoint.oauth) return needsLogin(name);
    return failure(
      "needs_reauth",
      `it refused the credentials (401). Check mcp_servers.${name}.headers, or set mcp_servers.${name}.auth to oauth and run: hermes mcp login ${name}`,
    );
  }
  if (status === 403) return failure("needs_reauth", `access denied (403). Check the permissions of your credentials.`);
  if (code !== null && UNTRUSTED.test(code))
    return failure(
      "unreachable",
      `its certificate is not accepted (${clean(failureText(deepest(error)))}). Set the CA file that signed it in mcp_servers.${name}.ssl_verify.`,
    );
  if (isExpired(error, status)) return failure("expired", "the session has expired.");
  if (code === "REQUEST_TIMEOUT")
    return failure(
      "unreachable",
      `it did not respond within ${settings.timeoutMs / 1000} s (mcp_servers.${name}.timeout).`,
    );
  if (nameOf(error) === "ProtocolError" || isAnswer(error)) return failure("refused", clean(failureText(error)));
  const where = endpoint.type === "stdio" ? LOGS : `Check mcp_servers.${name}.url and whether the server is running.`;
  return failure("unreachable", `${clean(failureText(error))}. ${where}`);
}

export function didNotConnect({ name, connectMs }: ServerSettings): McpError {
  return new McpError(
    "unreachable",
    `MCP server "${name}": no response within ${connectMs / 1000} s of starting. Raise mcp_servers.${name}.connect_timeout, or diagnose it: hermes mcp test ${name}`,
  );
}

function isExpired(error: unknown, status: number | null): boolean {
  if (status === 404) return true;
  return /session (?:not found|expired|terminated|is invalid)|(?:invalid|unknown|expired|no valid) session/i.test(
    failureText(error),
  );
}

/** The server answered, with an error of the protocol. */
export function isAnswer(error: unknown): boolean {
  return (
    typeof error === "object" && error !== null && "code" in error && typeof error.code === "number" && error.code < 0
  );
}

function statusOf(error: unknown): number | null {
  for (const one of causesOf(error)) {
    if ("status" in one && typeof one.status === "number") return one.status;
    // The SSE transport puts the status where others put their code.
    if ("code" in one && typeof one.code === "number" && one.code >= 400 && one.code < 600) return one.code;
  }
  return null;
}

function codeOfCause(error: unknown): string | null {
  for (const one of causesOf(error)) if ("code" in one && typeof one.code === "string") return one.code;
  return null;
}

function deepest(error: unknown): unknown {
  return causesOf(error).at(-1) ?? error;
}

function nameOf(error: unknown): string {
  return error instanceof Error ? error.constructor.name : "";
}

function causesOf(error: unknown): Error[] {
  const chain: Error[] = [];
  for (let one = error; one instanceof Error && chain.length < 5; one = one.cause) chain.push(one);
  return chain;
}
