// What the API server is handed by whoever runs it, what a call is, and how it is answered.
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from "node:http";
import type { OpenHome } from "../../home/open.ts";
import type { Clock } from "../../kit/clock.ts";
import type { SessionStore } from "../../sessions/store.ts";

/**
 * What the server stands on. It runs in the process of the gateway, or alone.
 *
 * - `status` is the object of `hermes gateway status --json`.
 * - The store outlives the server; the server closes nothing it was handed.
 */
export interface ApiParts {
  readonly home: OpenHome;
  readonly store: SessionStore;
  readonly clock: Clock;
  /** Where conversations work that have no folder of their own. */
  readonly cwd: string;
  status(): Promise<object>;
}

/** One request, after it was let in. */
export interface Call {
  readonly incoming: IncomingMessage;
  readonly outgoing: ServerResponse;
  readonly headers: IncomingHttpHeaders;
  readonly query: URLSearchParams;
  /** A part of the path, decoded. */
  param(name: string): string;
  /** The body: a JSON object. Rejects with an `ApiError`. */
  body(): Promise<Readonly<Record<string, unknown>>>;
  /** Aborts when the client hangs up before it has its answer. */
  readonly gone: AbortSignal;
}

export interface Reply {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>> | undefined;
  readonly body: object;
}

/** What a route does. `undefined`: it has written its answer itself, as a stream. */
type Handler = (call: Call) => Promise<Reply | undefined>;

/** One line of the table of routes. `:name` in a path is a parameter. */
export interface Route {
  readonly method: "GET" | "POST" | "PATCH" | "DELETE";
  readonly path: string;
  readonly handle: Handler;
}

interface ErrorFacts {
  readonly type?: "invalid_request_error" | "rate_limit_error" | "server_error";
  readonly code?: string;
  /** The field that is wrong. */
  readonly param?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** More of the error object. */
  readonly more?: Readonly<Record<string, unknown>>;
}

/** A call that is refused, in the words of the OpenAI API. */
export class ApiError extends Error {
  override name = "ApiError";
  readonly status: number;
  readonly facts: ErrorFacts;
  constructor(status: number, message: string, facts: ErrorFacts = {}) {
    super(message);
    this.status = status;
    this.facts = facts;
  }

  get reply(): Reply {
    const { type, code = null, param = null, headers, more } = this.facts;
    const kind = type ?? (this.status >= 500 ? "server_error" : "invalid_request_error");
    return {
      status: this.status,
      headers,
      body: { error: { message: this.message, type: kind, param, code, ...more } },
    };
  }
}

/** A 400 that names the field. */
export const badField = (param: string, message: string, code?: string) =>
  new ApiError(400, message, { param, ...(code === undefined ? {} : { code }) });

export const notFound = (what: string, code: string) => new ApiError(404, what, { code });

/** Nothing of ours is told to a client. */
export const INTERNAL_ERROR = "internal error; see logs/errors.log of the home";

/** Interrupt reasons: control signals that no model reads. */
export const CLIENT_GONE = "SSE client disconnected";
export const STOP_ASKED = "Stop requested";
export const SHUTTING_DOWN = "Gateway shutting down";
export const TIMED_OUT = "Execution timed out (inactivity)";
