// The moment a provider names for its quota to be there again.
import type { ModelError } from "../wire.ts";
import { extractRetryDelaySeconds, parseAbsoluteTimestamp, parseRetryAfter } from "./details.ts";

const FIELDS = ["reset_at", "resets_at", "retry_until"] as const;

/** Unix seconds; null when the error says nothing. A field of the body wins over its text, the text over the header. `now` in milliseconds. */
export function namedReset(error: Pick<ModelError, "message" | "body" | "headers">, now: number): number | null {
  for (const source of [error.body, inner(error.body)]) {
    for (const field of FIELDS) {
      const time = parseAbsoluteTimestamp(fieldOf(source, field));
      if (time !== null) return time;
    }
  }
  const said = typeof error.body === "string" ? error.body : JSON.stringify(error.body ?? "");
  const delay =
    extractRetryDelaySeconds(`${error.message} ${said}`) ?? parseRetryAfter(error.headers?.["retry-after"], now);
  return delay === null ? null : now / 1000 + delay;
}

function inner(body: unknown): unknown {
  return fieldOf(body, "error");
}

function fieldOf(value: unknown, field: string): unknown {
  return typeof value === "object" && value !== null ? Reflect.get(value, field) : undefined;
}
