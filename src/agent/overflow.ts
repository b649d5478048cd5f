// A request was refused as too long: less room for the answer, a smaller window, or a shorter conversation.

import type { Failure } from "../llm/errors/classify.ts";
import { failureLine } from "../llm/errors/explain.ts";
import { parseAvailableOutputTokensFromError, parseContextLimitFromError } from "../llm/errors/overflow.ts";
import type { Conversation } from "./conversation.ts";

const MOST_ATTEMPTS = 3;
const PAUSE_MS = 2000;
const SPARE_TOKENS = 64;
const STANDARD_WINDOW = 200_000;

export type Rescue =
  /** Send it again; the answer may take so much room. */
  | { readonly type: "again"; readonly outputRoom?: number }
  /** Not about length. */
  | { readonly type: "fail" }
  /** About length, and nothing helps. */
  | { readonly type: "exhausted" }
  | { readonly type: "interrupted" };

export interface RescueMeans {
  readonly conversation: Conversation;
  /** The n-th try since a request was answered. */
  readonly attempt: number;
  /** False when the turn was interrupted meanwhile. */
  pause(ms: number): Promise<boolean>;
  /** One line for the user about what is done. */
  tell(message: string): void;
  /** False when nothing could be made shorter. */
  shorten(): Promise<boolean>;
}

export async function rescueFromOverflow({ error, classified }: Failure, means: RescueMeans): Promise<Rescue> {
  if (!classified.shouldCompress) return { type: "fail" };
  if (means.attempt > MOST_ATTEMPTS) return { type: "exhausted" };
  const { conversation } = means;
  const body = typeof error.body === "string" ? error.body : JSON.stringify(error.body ?? "");
  const text = `${error.message} ${body}`;
  const line = failureLine(classified, conversation.model.target.apiKey);
  const room = parseAvailableOutputTokensFromError(text);
  if (room !== null && room > SPARE_TOKENS) {
    means.tell(`${line} — asking again for an answer of at most ${room - SPARE_TOKENS} tokens`);
    return { type: "again", outputRoom: room - SPARE_TOKENS };
  }

  const { target } = conversation.model;
  const tier = classified.reason === "long_context_tier" ? STANDARD_WINDOW : null;
  const limit = tier ?? parseContextLimitFromError(text);
  if (limit !== null && limit < target.contextLength) {
    conversation.adoptWindow(limit);
    if (tier === null) await learn(conversation, limit);
  }
  if (means.attempt > 1 && !(await means.pause(PAUSE_MS))) return { type: "interrupted" };
  if (!(await means.shorten())) return { type: "exhausted" };
  means.tell(`${line} — the conversation was shortened; asking again`);
  return { type: "again" };
}

async function learn({ model, options }: Conversation, tokens: number): Promise<void> {
  try {
    await options.ports.learnWindow?.(model.target, tokens);
  } catch (error) {
    options.ports.log.warn("the window a server named could not be remembered", error);
  }
}
