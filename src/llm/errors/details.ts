// When to try again, in the many ways servers say it. All results in seconds.

/** A `Retry-After` header: seconds or an HTTP date; past or negative = 0; anything else = null. `now` in milliseconds. */
export function parseRetryAfter(value: string | number | null | undefined, now: number = Date.now()): number | null {
  const text = String(value ?? "").trim();
  if (text === "") return null;
  if (/^[+-]?(\d+\.?\d*|\.\d+)$/.test(text)) return Math.max(0, Number(text));
  if (!/[a-z]{3}/i.test(text)) return null;
  const date = Date.parse(text);
  return Number.isNaN(date) ? null : Math.max(0, (date - now) / 1000);
}

const UNITS: Readonly<Record<string, number>> = { ms: 0.001, s: 1, m: 60, h: 3600, d: 86_400 };

/** `Resets in 4hr 5min`, `retry after 20 s`, `retry 5s`, `quotaResetDelay: 1500ms`, `try again in 1m30s`; null when nothing is said. */
export function extractRetryDelaySeconds(text: string): number | null {
  const lead =
    /(?<named>resets?\s+in|retry\s+(?:after|in)|try\s+again\s+(?:after|in)|(?:quota)?reset_?delay|retry_?delay|retry[-_]after)["'\s:=]*|\b(?:retry|try\s+again|wait)(?:ing)?["'\s:=]+/gi;
  for (const { index, 0: found, groups } of text.matchAll(lead)) {
    // "retry 3 times" is no delay: a number behind the bare word needs its unit.
    const seconds = readDuration(text.slice(index + found.length), { needsUnit: groups?.named === undefined });
    if (seconds !== null) return seconds;
  }
  return null;
}

function readDuration(text: string, { needsUnit }: { readonly needsUnit: boolean }): number | null {
  const part =
    /^[\s,]*(?:and\s+)?(\d+(?:\.\d+)?)\s*(milliseconds?|msecs?|ms|seconds?|secs?|s|minutes?|mins?|m|hours?|hrs?|hr|h|days?|d)?(?![a-z])/i;
  let rest = text;
  let total: number | null = null;
  for (let match = part.exec(rest); match; match = part.exec(rest)) {
    const unit = match[2]?.toLowerCase();
    // A second bare number is no part of the duration.
    if (!unit && (total !== null || needsUnit)) break;
    total = (total ?? 0) + Number(match[1]) * (UNITS[unitKey(unit ?? "s")] ?? 1);
    rest = rest.slice(match[0].length);
    if (!unit) break;
  }
  return total;
}

function unitKey(unit: string): string {
  return unit.startsWith("ms") || unit.startsWith("milli") ? "ms" : unit.charAt(0);
}

/** Epoch seconds, epoch milliseconds or ISO text -> epoch seconds; null when it is none of them. */
export function parseAbsoluteTimestamp(value: unknown): number | null {
  if (typeof value === "number") return fromEpoch(value);
  if (typeof value !== "string" || value.trim() === "") return null;
  const text = value.trim();
  if (/^\d+(\.\d+)?$/.test(text)) return fromEpoch(Number(text));
  const date = Date.parse(text);
  return Number.isNaN(date) ? null : date / 1000;
}

function fromEpoch(value: number): number | null {
  if (!Number.isFinite(value) || value <= 0) return null;
  return value > 1e11 ? value / 1000 : value;
}
