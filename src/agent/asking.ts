import { randomUUID } from "node:crypto";
import type { Clock } from "../kit/clock.ts";
import type { AnswerTo, Ask, Question } from "../safety/questions.ts";
import { refuse } from "../safety/refusal.ts";
import type { AgentEventBody } from "./events.ts";

export interface AskingOptions {
  readonly interactive: boolean;
  readonly signal: AbortSignal;
  readonly clock: Clock;
  readonly timeoutMs: (question: Question) => number | undefined;
  readonly emit: (event: AgentEventBody) => void;
}

/** Questions travel as events; the door answers through the request. Silence, an interrupt and an empty room all mean no. */
export function createAsk(options: AskingOptions): Ask {
  return async <Q extends Question>(question: Q, signal?: AbortSignal): Promise<AnswerTo<Q>> => {
    if (!options.interactive) return refuse(question);
    const closed = new AbortController();
    const ends = [options.signal, closed.signal, ...(signal ? [signal] : [])];
    const over = AbortSignal.any(ends);
    if (over.aborted) return refuse(question);
    const { promise, resolve } = Promise.withResolvers<AnswerTo<Q>>();
    over.addEventListener("abort", () => resolve(refuse(question)), { once: true });
    const timeout = options.timeoutMs(question);
    if (timeout !== undefined) {
      options.clock.sleep(timeout, over).then(
        () => resolve(refuse(question, { timedOut: true })),
        () => undefined, // the question was settled before its time was up
      );
    }
    options.emit({
      type: "ask",
      // Whoever gets the request narrows on `question.kind` and answers in kind.
      request: {
        id: randomUUID(),
        question,
        signal: over,
        expiresAt: timeout === undefined ? null : options.clock.now() + timeout,
        answer: (given) => resolve(given as AnswerTo<Q>),
      },
    });
    try {
      return await promise;
    } finally {
      closed.abort();
    }
  };
}
