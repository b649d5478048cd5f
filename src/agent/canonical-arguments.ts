import { repairToolCallArguments } from "../llm/json-repair.ts";

/** The same arguments always give the same text (keys sorted, compact), so that a request repeats the bytes of the one before it. */
export function canonicalArguments(text: string): string {
  return canonicalJson(parse(text) ?? parse(repairToolCallArguments(text)));
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

// Written out by hand: an object rebuilt key by key would lose `__proto__`.
export function canonicalJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(",")}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value) ?? "null";
  const entries = Object.entries(value).filter(([, inner]) => inner !== undefined);
  entries.sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0));
  return `{${entries.map(([key, inner]) => `${JSON.stringify(key)}:${canonicalJson(inner)}`).join(",")}}`;
}
