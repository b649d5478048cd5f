// How long a model may be silent before its connection is given up.
import { reasoningFloorSeconds } from "./errors/reasoning-models.ts";
import { isLocalEndpoint } from "./providers/hosts.ts";
import type { RequestLimits, Target } from "./wire.ts";

export interface LivenessSettings {
  /** Seconds one request may take. */
  readonly totalSeconds?: number | undefined;
  /** Seconds without a byte. */
  readonly staleSeconds?: number | undefined;
}

const TOTAL_SECONDS = 1800;

/** A server on this machine may think as long as it likes; others get more patience the longer the prompt. */
export function requestLimits(
  target: Pick<Target, "baseUrl" | "model">,
  promptTokens: number,
  settings: LivenessSettings = {},
): RequestLimits {
  const totalMs = (settings.totalSeconds ?? TOTAL_SECONDS) * 1000;
  if (settings.staleSeconds !== undefined) return { totalMs, staleMs: settings.staleSeconds * 1000 };
  if (isLocalEndpoint(target.baseUrl) || target.baseUrl.startsWith("demo:")) return { totalMs };
  const byLength = promptTokens > 100_000 ? 300 : promptTokens > 50_000 ? 240 : 180;
  return { totalMs, staleMs: Math.max(byLength, reasoningFloorSeconds(target.model) ?? 0) * 1000 };
}
