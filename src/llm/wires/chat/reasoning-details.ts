import { asText, isRecord, type Json } from "../../../kit/moved-json.ts";

const GROWING = ["text", "summary", "data"] as const;

/** Structured thinking arrives in pieces that share type and index: texts grow, everything else is replaced. */
export function mergeReasoningDetails(known: readonly Json[], pieces: readonly unknown[]): Json[] {
  const merged = [...known];
  for (const piece of pieces) {
    if (!isRecord(piece)) continue;
    const at = merged.findIndex((entry) => entry.type === piece.type && entry.index === piece.index);
    const before = merged[at];
    if (!before || piece.index === undefined) {
      merged.push(piece);
      continue;
    }
    const grown = GROWING.filter((key) => typeof piece[key] === "string").map((key) => [
      key,
      asText(before[key]) + asText(piece[key]),
    ]);
    const set = Object.entries(piece).filter(([, value]) => value !== null && value !== undefined);
    merged[at] = { ...before, ...Object.fromEntries(set), ...Object.fromEntries(grown) };
  }
  return merged;
}
