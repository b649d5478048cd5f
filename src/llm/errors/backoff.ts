/** Seconds before the next attempt: d + U(0, d/2), d = min(base * 2^(attempt-1), max). `attempt` counts from 1. */
export function jitteredBackoff(
  attempt: number,
  { base, max, random = Math.random }: { readonly base: number; readonly max: number; readonly random?: () => number },
): number {
  const delay = Math.min(base * 2 ** (Math.max(1, attempt) - 1), max);
  return delay + (random() * delay) / 2;
}

/** Seconds. Errors of the request; answers that came but hold nothing. */
export const ERROR_BACKOFF = { base: 2, max: 60 } as const;
export const EMPTY_ANSWER_BACKOFF = { base: 5, max: 120 } as const;
/** What a server asks us to wait is honoured up to here. */
export const MAX_RETRY_AFTER = 120;
