// The same scripted model without sockets: a `fetch` that answers in the words of each wire and breaks on demand, for tests of thousands of calls.
import type { Clock } from "../../../src/kit/clock.ts";
import type { FetchLike, ResponseLike } from "../../../src/llm/wires/transport.ts";
import { render } from "./render.ts";
import type { Answer, ScriptedUsage, WireName } from "./script.ts";

export type Fault =
  | {
      readonly fault: "status";
      readonly status: number;
      readonly body?: unknown;
      readonly headers?: Record<string, string>;
    }
  /** The connection is never there. */
  | { readonly fault: "connect"; readonly code: string }
  /** The connection breaks after so many events. */
  | { readonly fault: "cut"; readonly after: number; readonly answer: Answer }
  /** The body ends as if all were well, after so many events. */
  | { readonly fault: "end"; readonly after: number; readonly answer: Answer }
  /** Nothing comes any more after so many events; the clock of the wires runs until somebody gives up. */
  | { readonly fault: "stall"; readonly after: number; readonly answer: Answer }
  | { readonly fault: "garbage"; readonly text: string; readonly type?: string }
  /** After so many events something else comes, and the body ends. */
  | { readonly fault: "then"; readonly after: number; readonly answer: Answer; readonly text: string }
  /** The connection is there and not a word comes, not even a status. */
  | { readonly fault: "mute" }
  /** Events are changed on their way. */
  | { readonly fault: "twist"; readonly answer: Answer; readonly twist: (event: string) => string };

export type Reply = Answer | Fault;

export interface MemoryRequest {
  readonly wire: WireName;
  readonly url: string;
  readonly raw: string;
  // biome-ignore lint/suspicious/noExplicitAny: tests look into bodies of three protocols
  readonly body: any;
  readonly headers: Readonly<Record<string, string>>;
}

/** Time that runs only while a connection is silent. */
export interface PatientClock extends Clock {
  run(ms: number): void;
}

export function patientClock(start = Date.UTC(2026, 0, 2, 12)): PatientClock {
  let now = start;
  const sleepers = new Set<{ readonly at: number; wake(): void }>();
  return {
    now: () => now,
    random: () => 0.5,
    sleep: (ms, signal) =>
      new Promise((resolve, reject) => {
        if (signal?.aborted) return reject(signal.reason);
        const sleeper = { at: now + ms, wake: () => leave(resolve) };
        const leave = (settle: () => void) => {
          sleepers.delete(sleeper);
          settle();
        };
        sleepers.add(sleeper);
        signal?.addEventListener("abort", () => leave(() => reject(signal.reason)), { once: true });
      }),
    run(ms) {
      now += ms;
      for (const sleeper of [...sleepers].filter(({ at }) => at <= now)) sleeper.wake();
    },
  };
}

export class MemoryModel {
  readonly requests: MemoryRequest[] = [];
  /** What every answer that was delivered whole said it used. */
  readonly handedOut: { readonly usage: ScriptedUsage; readonly request: MemoryRequest }[] = [];
  /** Ids of the calls in answers that came whole. */
  readonly offeredCalls: string[] = [];
  readonly #answerTo: (request: MemoryRequest, index: number) => Reply;
  readonly #clock: PatientClock;
  #serial = 0;

  constructor(clock: PatientClock, answerTo: (request: MemoryRequest, index: number) => Reply) {
    this.#clock = clock;
    this.#answerTo = answerTo;
  }

  readonly fetch: FetchLike = async (url, init) => {
    const raw = init.body ?? "";
    const request = { wire: wireOf(url), url, raw, body: JSON.parse(raw), headers: init.headers ?? {} };
    const index = this.requests.push(request) - 1;
    const reply = this.#answerTo(request, index);
    if (!("fault" in reply)) return this.#stream(request, reply, Number.POSITIVE_INFINITY, "end");
    switch (reply.fault) {
      case "status":
        return response(
          reply.status,
          { "content-type": "application/json", ...reply.headers },
          body([JSON.stringify(reply.body ?? { error: { message: `status ${reply.status}` } })], "end"),
        );
      case "connect":
        throw Object.assign(new TypeError("fetch failed"), {
          cause: Object.assign(new Error(reply.code), { code: reply.code }),
        });
      case "garbage":
        return response(200, { "content-type": reply.type ?? "text/event-stream" }, body([reply.text], "end"));
      case "then":
        return this.#stream(request, reply.answer, reply.after, "end", { last: reply.text });
      case "mute":
        setImmediate(() => this.#clock.run(3_600_000));
        return new Promise((_, reject) => init.signal?.addEventListener("abort", () => reject(init.signal?.reason)));
      case "twist":
        return this.#stream(request, reply.answer, Number.POSITIVE_INFINITY, "end", { twist: reply.twist });
      default:
        return this.#stream(request, reply.answer, reply.after, reply.fault);
    }
  };

  #stream(
    request: MemoryRequest,
    answer: Answer,
    limit: number,
    how: "end" | "cut" | "stall",
    { twist = (event) => event, last }: { twist?: (event: string) => string; last?: string } = {},
  ): ResponseLike {
    const serial = ++this.#serial;
    const usage = answer.usage === undefined ? usageOf(request, serial) : answer.usage;
    const { events, closing } = render(request.wire, String(request.body.model), answer, usage, serial);
    if (limit >= events.length && usage) this.handedOut.push({ usage, request });
    // Whole once the reason for its end is said; the Responses wire says it with each item.
    if (limit >= events.length - closing + (request.wire === "responses" ? 0 : 1)) {
      (answer.toolCalls ?? []).forEach((call, index) => {
        const made = request.wire === "anthropic" ? `toolu_${serial}_${index}` : `call_${serial}_${index}`;
        this.offeredCalls.push(call.id ?? made);
      });
    }
    const sent = [...events.slice(0, Math.min(limit, events.length)).map(twist), ...(last === undefined ? [] : [last])];
    return response(200, { "content-type": "text/event-stream" }, body(sent, how, this.#clock));
  }
}

/** How many events an answer has on a wire. */
export function eventCount(wire: WireName, answer: Answer): number {
  return render(wire, "m", answer, { input: 1, output: 1 }, 1).events.length;
}

function usageOf(request: MemoryRequest, serial: number): ScriptedUsage {
  return { input: Math.ceil(request.raw.length / 4), output: 3 + (serial % 5), cacheRead: serial % 7, reasoning: 0 };
}

function wireOf(url: string): WireName {
  if (url.endsWith("/chat/completions")) return "chat";
  return url.endsWith("/responses") ? "responses" : "anthropic";
}

function response(status: number, headers: Record<string, string>, content: ResponseLike["body"]): ResponseLike {
  return { status, ok: status >= 200 && status < 300, statusText: "", headers: Object.entries(headers), body: content };
}

function body(chunks: readonly string[], how: "end" | "cut" | "stall", clock?: PatientClock): ResponseLike["body"] {
  let next = 0;
  return {
    getReader: () => ({
      async read() {
        const chunk = chunks[next++];
        if (chunk !== undefined) return { done: false, value: Buffer.from(chunk) };
        if (how === "end") return { done: true };
        if (how === "cut") throw Object.assign(new Error("the connection was closed"), { code: "ECONNRESET" });
        // The watch over the silence starts in the same breath; it has to be there before time runs.
        setImmediate(() => clock?.run(3_600_000));
        return new Promise<never>(() => undefined);
      },
      cancel: async () => undefined,
    }),
  };
}
