// Has a model write the summary: masked input, a window that may be too small for it, and an answer that is checked.
import { headUnits } from "../../kit/code-points.ts";
import { type AuxAnswer, type AuxiliaryClient, AuxiliaryError } from "../../llm/auxiliary/contract.ts";
import { estimateTokens } from "../../llm/catalogue/estimate.ts";
import { stripThinkBlocks } from "../../llm/scrub.ts";
import type { Target } from "../../llm/wire.ts";
import { type Summarize, SummaryError, type SummaryRequest } from "./compressor.ts";
import { summaryCallCap } from "./numbers.ts";
import { renderTurns } from "./summary-input.ts";
import { summaryPrompt } from "./summary-prompt.ts";

export interface SummarizerPorts {
  readonly auxiliary: AuxiliaryClient;
  /** The conversation's own model. */
  main(): Target;
  /** Masks secrets. */
  redact(text: string): string;
  /** Who pays. */
  purpose(): { readonly sessionId: string | null; readonly turn?: number; readonly jobId?: string };
  /** A line for the user. */
  warn(message: string): void;
}

/** A summary model with less than this is not worth its name while the main model has more. */
const LEAST_WINDOW = 64_000;
const LEAST_ROOM = 500;
const MOST_SHRINKS = 3;

export function createSummarizer(ports: SummarizerPorts): Summarize {
  const told = new Set<string>();
  const warnOnce = (message: string) => {
    if (told.has(message)) return;
    told.add(message);
    ports.warn(message);
  };
  return async (request) => {
    const chosen = await chooseModel(ports, warnOnce);
    const work = new Work(request, ports, (by) => {
      if (by.model === chosen.target.model) return;
      warnOnce(`The summary model ${chosen.target.model} failed; the summary is made with ${by.model}.`);
    });
    try {
      return await work.summarize(chosen);
    } catch (error) {
      // An answer that is none: the main model gets one try.
      if (!(error instanceof SummaryError) || !chosen.own || request.signal?.aborted) throw asSummaryError(error);
      const main = { target: ports.main(), own: false, exactly: true };
      return work.summarize(main).catch((second) => Promise.reject(asSummaryError(second)));
    }
  };
}

interface Chosen {
  readonly target: Target;
  /** It is not the main model. */
  readonly own: boolean;
  /** Nobody else is to be asked when it fails. */
  readonly exactly: boolean;
}

async function chooseModel({ auxiliary, main }: SummarizerPorts, warn: (message: string) => void): Promise<Chosen> {
  const choice = await auxiliary.resolveAux("compression");
  if (!choice) throw new SummaryError("no_provider", "no model can be asked for a summary");
  const big = main();
  const { target } = choice;
  if (choice.main || target.contextLength >= LEAST_WINDOW || target.contextLength >= big.contextLength) {
    return { target, own: !choice.main, exactly: false };
  }
  warn(
    `The summary model ${target.model} has a window of only ${target.contextLength} tokens; ${big.model} is used instead. Set auxiliary.compression.model to one with at least ${LEAST_WINDOW}.`,
  );
  return { target: big, own: false, exactly: true };
}

/** One summary in the making. */
class Work {
  readonly #request: SummaryRequest;
  readonly #ports: SummarizerPorts;
  readonly #answered: (by: Target) => void;
  readonly #turns: readonly string[];

  constructor(request: SummaryRequest, ports: SummarizerPorts, answered: (by: Target) => void) {
    this.#request = request;
    this.#ports = ports;
    this.#answered = answered;
    this.#turns = renderTurns(request.turns).map((turn) => ports.redact(turn));
  }

  /** A window that turns out smaller than it was said to be is tried with half, a few times. */
  async summarize(chosen: Chosen): Promise<string> {
    for (let shrink = 0; ; shrink++) {
      try {
        return await this.#fold(chosen, Math.floor(chosen.target.contextLength / 2 ** shrink));
      } catch (error) {
        const tooLong = error instanceof AuxiliaryError && error.kind === "overflow";
        if (!tooLong || shrink >= MOST_SHRINKS) throw error;
      }
    }
  }

  /** Everything at once if it fits; else piece by piece, each piece bringing the notes up to date. */
  async #fold(chosen: Chosen, window: number): Promise<string> {
    const { focusTopic, notes = null, previousSummary } = this.#request;
    const budgetTokens = Math.min(this.#request.budgetTokens, Math.max(LEAST_ROOM, Math.floor(window / 5)));
    let written = previousSummary === null ? null : this.#ports.redact(previousSummary);
    let left = this.#turns;
    do {
      const wish = { previousSummary: clip(written, Math.floor(window / 4)), focusTopic, budgetTokens, notes };
      const fixed = estimateTokens(summaryPrompt({ ...wish, turns: "" })) + summaryCallCap(budgetTokens);
      // Our count is rough: a fifth stays free.
      const room = Math.max(LEAST_ROOM, Math.floor((window - fixed) * 0.8));
      const count = piecesWithin(left, room);
      const turns = left.slice(0, count).map((turn) => clip(turn, room));
      left = left.slice(count);
      written = await this.#ask(chosen, summaryPrompt({ ...wish, turns: turns.join("\n\n") }), budgetTokens);
    } while (left.length > 0);
    return written;
  }

  async #ask(chosen: Chosen, prompt: string, budgetTokens: number): Promise<string> {
    const answer = await this.#ports.auxiliary.callAux({
      task: "compression",
      messages: [{ role: "user", content: prompt }],
      maxTokens: summaryCallCap(budgetTokens),
      signal: this.#request.signal ?? new AbortController().signal,
      ...(chosen.exactly ? { target: chosen.target } : {}),
      ...this.#ports.purpose(),
    });
    this.#answered(answer.target);
    return this.#ports.redact(notesIn(answer));
  }
}

function notesIn({ text, finishReason, target }: AuxAnswer): string {
  const notes = stripThinkBlocks(text).trim();
  if (finishReason === "length") throw new SummaryError("malformed", `the summary of ${target.model} was cut off`);
  if (notes === "") throw new SummaryError("malformed", `${target.model} gave an empty summary`);
  return notes;
}

/** How many of the texts fit, at least one. */
function piecesWithin(texts: readonly string[], room: number): number {
  let left = room;
  let count = 0;
  for (const text of texts) {
    left -= estimateTokens(text);
    if (left < 0 && count > 0) break;
    count++;
  }
  return count;
}

function clip<T extends string | null>(text: T, tokens: number): T | string {
  if (text === null || estimateTokens(text) <= tokens) return text;
  return `${headUnits(text, tokens * 3)}\n...[cut]...`;
}

function asSummaryError(error: unknown): unknown {
  if (!(error instanceof AuxiliaryError)) return error;
  return new SummaryError(error.kind === "no_provider" ? "no_provider" : "failed", error.message);
}
