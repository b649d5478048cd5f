// How long a model may be silent before its connection is given up.
import { isLocalEndpoint } from "./providers/hosts.ts";
import type { RequestLimits, Target } from "./wire.ts";

/** For every provider that has no settings of its own about it. */
export interface LivenessSettings {
  /** Seconds one request may take. */
  readonly totalSeconds?: number | undefined;
  /** Seconds without a byte. */
  readonly staleSeconds?: number | undefined;
  /** The same for an answer that comes whole. */
  readonly wholeStaleSeconds?: number | undefined;
}

const TOTAL_SECONDS = 1800;
/** Seconds of silence, for prompts from so many tokens on. */
const STREAMED: Steps = [
  [100_000, 300],
  [50_000, 240],
  [0, 180],
];
const WHOLE: Steps = [
  [100_000, 240],
  [50_000, 150],
  [0, 90],
];
type Steps = readonly (readonly [above: number, seconds: number])[];

/** A server on this machine may think as long as it likes; others get more patience the longer the prompt. */
export function requestLimits(
  target: Pick<Target, "baseUrl" | "model" | "patience">,
  promptTokens: number,
  settings: LivenessSettings = {},
  { stream = true }: { readonly stream?: boolean } = {},
): RequestLimits {
  const { patience = {} } = target;
  const totalMs = (patience.totalSeconds ?? settings.totalSeconds ?? TOTAL_SECONDS) * 1000;
  const stated = patience.staleSeconds ?? (stream ? settings.staleSeconds : settings.wholeStaleSeconds);
  if (stated !== undefined) return { totalMs, staleMs: stated * 1000 };
  if (isLocalEndpoint(target.baseUrl) || target.baseUrl.startsWith("demo:")) return { totalMs };
  const byLength = (stream ? STREAMED : WHOLE).find(([above]) => promptTokens > above)?.[1] ?? (stream ? 180 : 90);
  return { totalMs, staleMs: Math.max(byLength, reasoningFloorSeconds(target.model) ?? 0) * 1000 };
}

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
