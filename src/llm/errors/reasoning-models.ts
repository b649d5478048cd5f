// Models that may think in silence for minutes: their connections are not called dead early.

const FLOORS: readonly (readonly [RegExp, number])[] = [
  [/^(o3-mini|o4-mini|qwq)/, 300],
  [/^grok-.*reasoning/, 300],
  [/^(o1|o3|deepseek-r1|deepseek-reasoner|deepseek-v4|nemotron-3)/, 600],
  [/^claude-opus-[45]/, 240],
  [/^claude-sonnet-(4[.-][5-9]|5)|^qwen3/, 180],
];

/** Seconds without a byte that such a model is allowed at least; null for all others. */
export function reasoningFloorSeconds(model: string): number | null {
  const slug = model.slice(model.lastIndexOf("/") + 1).toLowerCase();
  return FLOORS.find(([pattern]) => pattern.test(slug))?.[1] ?? null;
}
