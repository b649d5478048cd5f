import { similarity } from "../kit/similarity.ts";
import { fromDoubleUnderscores } from "../mcp/names.ts";

const CLOSE_ENOUGH = 0.7;

/** The tool a model most likely meant by a name that does not exist, or null. */
export function repairToolName(name: string, validNames: readonly string[]): string | null {
  const byLowerName = new Map(validNames.map((valid) => [valid.toLowerCase(), valid]));
  for (const candidate of candidates(name)) {
    const found = byLowerName.get(candidate);
    if (found !== undefined) return found;
  }
  const wanted = name.trim().toLowerCase();
  if (wanted === "") return null;
  let best: { readonly name: string; readonly score: number } | null = null;
  for (const [lower, valid] of byLowerName) {
    const score = similarity(wanted, lower);
    if (score >= CLOSE_ENOUGH && score > (best?.score ?? 0)) best = { name: valid, score };
  }
  return best?.name ?? null;
}

function* candidates(name: string): Generator<string> {
  const trimmed = name.trim();
  const plain = [underscored(trimmed.toLowerCase()), underscored(snakeCase(trimmed))];
  yield trimmed.toLowerCase();
  const elsewhere = fromDoubleUnderscores(trimmed);
  if (elsewhere !== null) yield elsewhere.toLowerCase();
  yield* plain;
  for (const spelling of plain) {
    const once = withoutToolSuffix(spelling);
    yield once;
    yield withoutToolSuffix(once);
  }
}

function underscored(name: string): string {
  return name.replace(/[-\s]+/g, "_");
}

function snakeCase(name: string): string {
  return name
    .replace(/([a-z0-9])([A-Z])/g, "$1_$2")
    .replace(/([A-Z]+)([A-Z][a-z])/g, "$1_$2")
    .toLowerCase();
}

function withoutToolSuffix(name: string): string {
  return name.replace(/[_-]?tool$/, "");
}
