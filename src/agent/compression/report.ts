// What came of a wish to shorten a conversation, and the words for it.
import { tokenCount } from "../../kit/formats.ts";

export interface Size {
  /** Of a whole request, prompt and tools included. */
  readonly tokens: number;
  readonly messages: number;
}

export interface CompressWish {
  readonly focus?: string | undefined;
  /** Keep exactly the last so many user turns. */
  readonly here?: number | undefined;
  /** Say what would happen, do nothing. */
  readonly preview?: boolean | undefined;
}

export type CompressReport =
  | {
      readonly type: "compressed";
      readonly before: Size;
      readonly after: Size;
      readonly ms: number;
      /** Facts of the dropped part that are nowhere any more. */
      readonly missing: readonly string[];
      /** The summary was put together without a model. */
      readonly fallbackUsed: boolean;
      readonly dropped: number;
      /** A summary of earlier turns went into it. */
      readonly again: boolean;
      readonly oldSessionId: string;
      readonly sessionId: string;
    }
  | {
      readonly type: "preview";
      readonly before: Size;
      readonly kept: Size;
      readonly dropped: Size;
      readonly summaryTokens: number;
    }
  | { readonly type: "nothing" }
  /** Another process compressed the same conversation; it goes on there. */
  | { readonly type: "adopted"; readonly sessionId: string }
  /** Everything is as it was. */
  | { readonly type: "failed"; readonly why: string }
  | { readonly type: "interrupted" };

export type Compressed = Extract<CompressReport, { type: "compressed" }>;

export function startLine(size: Size): string {
  return `Compressing the conversation (${size.messages} messages, about ${tokenCount(size.tokens)} tokens) ...`;
}

export function endLine({ before, after, ms, fallbackUsed, dropped }: Compressed): string {
  const how = fallbackUsed ? `; no model gave a summary, ${dropped} messages were noted down without one` : "";
  return `Compressed: about ${tokenCount(before.tokens)} → ${tokenCount(after.tokens)} tokens in ${(ms / 1000).toFixed(1)} s${how}.`;
}

export const AGAIN_LINE =
  "This conversation has been compressed more than once; details may be lost. /new starts afresh, /pin keeps what must not be lost.";

/** Why nothing was done though the conversation is long, for a person. */
export function blockedLine(reason: string): string {
  const seconds = /^cooldown:(\d+)$/.exec(reason)?.[1];
  if (seconds)
    return `The conversation is long, but the last summary failed; the next try is in ${seconds} s. /compress tries at once.`;
  return "The conversation is long, but compressing it no longer helps. /new starts afresh; /compress tries all the same.";
}

export const failedLine = (why: string) => `The conversation was not compressed and stays as it is: ${why}.`;
