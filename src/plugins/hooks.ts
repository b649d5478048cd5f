// The listeners of the agent's events. One that throws or hangs does not affect the others.

import type { Logger } from "../home/log.ts";
import type { Clock } from "../kit/clock.ts";
import { messageOf } from "../kit/errors.ts";

/** Every event there is. `tool`: its payload names a tool, so matchers apply. */
export const HOOKS: Readonly<Record<string, { readonly tool?: true }>> = {
  pre_tool_call: { tool: true },
  post_tool_call: { tool: true },
  transform_tool_result: { tool: true },
  transform_terminal_output: {},
  pre_llm_call: {},
  post_llm_call: {},
  transform_llm_output: {},
  pre_api_request: {},
  post_api_request: {},
  api_request_error: {},
  on_session_start: {},
  on_session_end: {},
  on_session_finalize: {},
  on_session_reset: {},
  subagent_start: {},
  subagent_stop: {},
  pre_gateway_dispatch: {},
  pre_approval_request: {},
  post_approval_response: {},
  kanban_task_claimed: {},
  kanban_task_completed: {},
  kanban_task_blocked: {},
};

export type Payload = Readonly<Record<string, unknown>>;
export type HookCallback = (payload: Payload) => unknown;

interface Listener {
  /** As messages name it, e.g. `plugin "notes"`. */
  readonly owner: string;
  /** `signal` aborts when the answer is no longer needed. */
  call(payload: Payload, signal?: AbortSignal): unknown;
  /** Its own time limit; without one the common limit holds. */
  readonly limitMs?: number;
}

interface HookBusOptions {
  readonly clock: Clock;
  readonly log: Logger;
  readonly limitMs: number;
  /** One line for the user. */
  report(line: string): void;
}

/**
 * - `emit` calls the listeners of an event one after the other, in the order in which they were added, and resolves to what those gave
 *   that gave something. It never rejects.
 * - A listener that hangs is left alone after its time limit, and not called again until it has come back.
 * - Once `signal` aborts, the one that is being asked gets half a second more; those behind it are not asked.
 * - Each listener gets a copy, so that it cannot change what others, or the agent, work with.
 */
export class HookBus {
  readonly #options: HookBusOptions;
  readonly #listeners = new Map<string, Listener[]>();
  readonly #stuck = new Set<Listener>();
  readonly #reported = new Set<string>();

  constructor(options: HookBusOptions) {
    this.#options = options;
  }

  /** Returns how to take it back. */
  add(event: string, listener: Listener): () => void {
    const list = this.#listeners.get(event) ?? [];
    this.#listeners.set(event, [...list, listener]);
    return () => {
      const left = (this.#listeners.get(event) ?? []).filter((one) => one !== listener);
      if (left.length > 0) this.#listeners.set(event, left);
      else this.#listeners.delete(event);
    };
  }

  hasListeners(event: string): boolean {
    return this.#listeners.has(event);
  }

  async emit(event: string, payload: Payload, signal?: AbortSignal): Promise<readonly unknown[]> {
    const answers: unknown[] = [];
    for (const listener of this.#listeners.get(event) ?? []) {
      if (this.#stuck.has(listener)) continue;
      const answer = await this.#ask(event, listener, payload, signal);
      if (answer === INTERRUPTED) break;
      if (answer !== undefined && answer !== null) answers.push(answer);
    }
    return answers;
  }

  async #ask(event: string, listener: Listener, payload: Payload, signal?: AbortSignal): Promise<unknown> {
    const { clock, limitMs } = this.#options;
    const limit = listener.limitMs ?? limitMs;
    const settled = new AbortController();
    const work = Promise.resolve().then(() => listener.call(structuredClone(payload), settled.signal));
    const after = (ms: number, then: symbol) =>
      clock.sleep(ms, settled.signal).then(
        () => then,
        () => then, // the listener was quicker
      );
    const interrupted = signal ? [abortOf(signal, settled.signal).then(() => after(GRACE_MS, INTERRUPTED))] : [];
    try {
      const answer = await Promise.race([work, after(limit, LATE), ...interrupted]);
      if (answer !== LATE && answer !== INTERRUPTED) return answer;
      this.#stuck.add(listener);
      const back = () => void this.#stuck.delete(listener);
      work.then(back, back);
      if (answer === INTERRUPTED) return answer;
      this.#trouble(event, listener, `did not respond within ${limit / 1000} s; it is skipped until it does`);
    } catch (error) {
      this.#trouble(event, listener, `failed and is ignored: ${messageOf(error)}`, error);
    } finally {
      settled.abort();
    }
    return undefined;
  }

  /** The log has it every time, the user once. */
  #trouble(event: string, { owner }: Listener, what: string, error?: unknown): void {
    const line = `${owner}: hook ${event} ${what}`;
    this.#options.log.warn(line, error);
    const key = `${owner}\n${event}`;
    if (this.#reported.has(key)) return;
    this.#reported.add(key);
    this.#options.report(`${line}. Details are in the log.`);
  }
}

const LATE = Symbol("late");
const INTERRUPTED = Symbol("interrupted");
const GRACE_MS = 500;

/** Resolves when the signal aborts; never, once `over` did. */
function abortOf(signal: AbortSignal, over: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve(), { once: true, signal: over });
  });
}
