// Looks back at the conversation behind the user's back: after an answer, when it is due, one at a time, never in anybody's way.
import { runWithSessionTag } from "../../home/log.ts";
import type { Conversation } from "../conversation.ts";
import type { AgentEventBody, TurnOutcome } from "../events.ts";

const MOST_MS = 10 * 60_000;
const FAREWELL_MS = 5_000;

interface Running {
  readonly controller: AbortController;
  readonly finished: Promise<void>;
}

/**
 * - Nothing here rejects or waits for the model on behalf of a turn.
 * - What falls due while one runs stays armed and is looked at after a later turn.
 */
export class BackgroundReview {
  readonly #conversation: Conversation;
  readonly #publish: (event: AgentEventBody) => void;
  readonly #mostMs: number;
  #running: Running | null = null;
  #reviewedTurn = 0;

  constructor(
    conversation: Conversation,
    publish: (event: AgentEventBody) => void,
    { mostMs = MOST_MS }: { readonly mostMs?: number } = {},
  ) {
    this.#conversation = conversation;
    this.#publish = publish;
    this.#mostMs = mostMs;
  }

  /** One runs, or has run since the user last said something: there is nothing left to save. */
  get isFresh(): boolean {
    return this.#running !== null || (this.#reviewedTurn > 0 && this.#reviewedTurn === this.#conversation.turns);
  }

  turnEnded(outcome: TurnOutcome): void {
    const { nudges, assembly, sent } = this.#conversation;
    const answered = outcome.finalText !== null && !outcome.interrupted && !outcome.failed;
    if (!assembly.session.reviews || !answered || this.#running || !sent) return;
    const triggers = nudges.due;
    if (triggers.length === 0) return;
    const controller = new AbortController();
    const review = async () => {
      const { runReview } = await import("./review.ts");
      const signal = AbortSignal.any([controller.signal, AbortSignal.timeout(this.#mostMs)]);
      return runReview(this.#conversation, { triggers, sent, signal });
    };
    this.#reviewedTurn = sent.turn;
    const finished = runWithSessionTag(sent.sessionId, () => this.#follow(review(), controller.signal));
    this.#running = { controller, finished };
  }

  /** Resolves when none runs any more. */
  async idle(): Promise<void> {
    await this.#running?.finished;
  }

  /** Stops the one that runs; a last write may still come to its end. */
  async stop(): Promise<void> {
    if (!this.#running) return;
    this.#running.controller.abort();
    const { promise: late, resolve } = Promise.withResolvers<void>();
    const timer = setTimeout(resolve, FAREWELL_MS);
    await Promise.race([this.#running.finished, late]);
    clearTimeout(timer);
  }

  async #follow(review: Promise<string | null>, stopped: AbortSignal): Promise<void> {
    const { nudges, assembly } = this.#conversation;
    const { log } = assembly;
    try {
      const line = await review;
      if (line !== null) this.#publish({ type: "notice", kind: "review", text: line });
    } catch (error) {
      log.warn("the review of the conversation failed", error);
    }
    try {
      await nudges.reviewEnds({ cut: stopped.aborted });
    } catch (error) {
      log.warn("the end of a review could not be noted", error);
    }
    this.#running = null;
  }
}
