// How much a conversation may hold before it is shortened, and how much of it stays.
import type { Config } from "../../home/config/schema.ts";

export interface ContextNumbers {
  /** Tokens of a request at which the conversation is shortened. */
  readonly thresholdTokens: number;
  /** Tokens of recent messages that stay as they are. */
  readonly tailTokenBudget: number;
  /** Most tokens of a summary. */
  readonly maxSummaryTokens: number;
}

const SMALL_WINDOW_SHARE = 0.75;
const SMALL_WINDOW_CAP = 64_000;
const LEAST_SUMMARY_TOKENS = 2000;

/** Half of the window by default; small windows wait longer, or the fixed part of a request alone would trigger it. */
export function contextNumbers(contextLength: number, threshold: number, targetRatio: number): ContextNumbers {
  const floor = Math.min(SMALL_WINDOW_CAP, Math.floor(contextLength * SMALL_WINDOW_SHARE));
  const thresholdTokens = Math.max(Math.floor(contextLength * threshold), floor);
  return {
    thresholdTokens,
    tailTokenBudget: Math.floor(thresholdTokens * clamp(targetRatio, 0.1, 0.8)),
    maxSummaryTokens: Math.min(Math.floor(contextLength * 0.05), 12_000),
  };
}

/** The share of the window for a model: what `compression.model_thresholds` says for the longest part of its name, else `threshold`. */
export function thresholdFor(
  model: string,
  { threshold, model_thresholds }: Pick<Config["compression"], "threshold" | "model_thresholds">,
): number {
  const name = model.toLowerCase();
  const fitting = Object.entries(model_thresholds).filter(
    (entry): entry is [string, number] => isShare(entry[1]) && name.includes(entry[0].toLowerCase()),
  );
  return fitting.toSorted(([one], [other]) => other.length - one.length)[0]?.[1] ?? threshold;
}

const isShare = (value: unknown) => typeof value === "number" && value > 0 && value <= 1;

/** What a summary of that many tokens may take. */
export function summaryBudget(tokens: number, maxSummaryTokens: number): number {
  return Math.max(LEAST_SUMMARY_TOKENS, Math.floor(Math.min(0.2 * tokens, maxSummaryTokens)));
}

/** The output cap of the call: models count differently from us, and a summary that is cut off is lost. */
export function summaryCallCap(budgetTokens: number): number {
  return Math.floor(budgetTokens * 1.3);
}

/** Newest messages that stay in any case. */
export function tailFloor(protectLastN: number): number {
  return clamp(protectLastN, 3, 8);
}

function clamp(value: number, least: number, most: number): number {
  return Math.min(most, Math.max(least, value));
}
