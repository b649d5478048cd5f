// Failures inside a wire travel as exceptions; at its edge they become values of the stream.

import { asRecord, asText, isRecord } from "../../kit/moved-json.ts";
import type { ModelError } from "../wire.ts";

export class WireFailure extends Error {
  override name = "WireFailure";
  readonly error: ModelError;

  constructor(error: ModelError) {
    super(error.message);
    this.error = error;
  }
}

/** The failure that an error object of a server describes, wherever it came (body of a 4xx, a chunk, an event). */
export function failureFrom(
  body: unknown,
  more: Omit<ModelError, "message" | "body"> & { fallback: string },
): WireFailure {
  const { fallback, ...rest } = more;
  const outer = asRecord(body);
  const inner = isRecord(outer.error) ? outer.error : outer;
  const message =
    asText(inner.message) || asText(outer.error) || asText(outer.message) || asText(outer.detail) || fallback;
  const status = rest.status ?? httpStatus(inner.code) ?? httpStatus(inner.status);
  const code = rest.code ?? word(inner.code) ?? word(inner.type);
  return new WireFailure({
    ...rest,
    message,
    ...(status === undefined ? {} : { status }),
    ...(code === undefined ? {} : { code }),
    ...(body === undefined || body === "" ? {} : { body }),
  });
}

/** An error of `fetch` or of a socket; the code is often two or three causes deep. */
export function failureFromThrown(thrown: unknown, where: string): WireFailure {
  if (thrown instanceof WireFailure) return thrown;
  const chain = causes(thrown);
  const code = chain.map((error) => word(error.code)).find((found) => found !== undefined);
  const deepest = chain.map((error) => asText(error.message)).findLast((message) => message !== "");
  const name = asText(chain[0]?.name);
  const message = [asText(chain[0]?.message) || String(thrown), deepest].filter(Boolean);
  return new WireFailure({
    message: `${where}: ${[...new Set(message)].join(": ")}${code ? ` (${code})` : ""}`,
    ...(code === undefined ? {} : { code }),
    ...(name === "" ? {} : { name }),
  });
}

function causes(thrown: unknown): { code?: unknown; message?: unknown; name?: unknown }[] {
  const chain: { code?: unknown; message?: unknown; name?: unknown }[] = [];
  let next: unknown = thrown;
  while (typeof next === "object" && next !== null && chain.length < 5) {
    const error: { code?: unknown; message?: unknown; name?: unknown; cause?: unknown; errors?: unknown } = next;
    chain.push(error);
    next = error.cause ?? (Array.isArray(error.errors) ? error.errors[0] : undefined);
  }
  return chain;
}

function word(value: unknown): string | undefined {
  return typeof value === "string" && value !== "" ? value : undefined;
}

function httpStatus(value: unknown): number | undefined {
  return typeof value === "number" && Number.isInteger(value) && value >= 400 && value < 600 ? value : undefined;
}
