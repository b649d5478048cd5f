import { exactDuration } from "../kit/formats.ts";
import type { RateLimit, RateLimits } from "../llm/usage.ts";

const WINDOWS = [
  ["requestsMin", "requests per minute"],
  ["requestsHour", "requests per hour"],
  ["tokensMin", "tokens per minute"],
  ["tokensHour", "tokens per hour"],
] as const;

/** What is left of the provider's allowance, as its newest answer said. `ageSeconds` ago it said so. */
export function rateLimitLines(limits: RateLimits, ageSeconds: number): string[] {
  const lines = WINDOWS.flatMap(([window, label]) => {
    const limit = limits[window];
    return limit ? [`  ${label.padEnd(19)}  ${lineOf(limit, ageSeconds)}`] : [];
  });
  return [`Rate limits of ${limits.provider}, ${exactDuration(ageSeconds)} ago:`, ...lines];
}

function lineOf({ limit, remaining, usagePct, resetSeconds }: RateLimit, ageSeconds: number): string {
  const left = `${remaining.toLocaleString("en-US")} of ${limit.toLocaleString("en-US")} left (${Math.round(usagePct)}% used)`;
  if (resetSeconds === null) return left;
  const rest = resetSeconds - ageSeconds;
  return `${left}, ${rest > 0 ? `resets in ${exactDuration(Math.ceil(rest))}` : "reset since"}`;
}
