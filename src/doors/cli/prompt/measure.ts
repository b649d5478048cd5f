// Sizes of texts, as every view of the prompt tells them.
import { createHash } from "node:crypto";
import { countCodePoints } from "../../../kit/code-points.ts";
import { estimateTokens } from "../../../llm/catalogue/estimate.ts";

export interface TextSize {
  readonly chars: number;
  readonly bytes: number;
}

export interface MeasuredText extends TextSize {
  /** Rough. */
  readonly tokens: number;
  readonly sha256: string;
}

export function sizeOf(text: string): TextSize {
  return { chars: countCodePoints(text), bytes: Buffer.byteLength(text) };
}

export function measure(text: string): MeasuredText {
  return { ...sizeOf(text), tokens: estimateTokens(text), sha256: createHash("sha256").update(text).digest("hex") };
}

export const withCommas = (count: number) => count.toLocaleString("en-US");
