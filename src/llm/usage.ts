/**
 * Tokens of one model call, in disjoint buckets. `null` = the provider did not say; unknown is never 0.
 * promptTokens = input + cacheRead + cacheWrite; totalTokens = prompt + output.
 */
export interface Usage {
  readonly inputTokens: number | null;
  readonly outputTokens: number | null;
  readonly cacheReadTokens: number | null;
  readonly cacheWriteTokens: number | null;
  readonly reasoningTokens: number | null;
  readonly promptTokens: number | null;
  readonly totalTokens: number | null;
  /** Present when the provider itself reported what the call cost. */
  readonly reportedCostUsd?: number;
}
