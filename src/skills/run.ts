// What the skills room needs to know of the run that calls it. A tool's context satisfies it.
import type { Ask } from "../safety/questions.ts";

export interface SkillRun {
  readonly sessionId: string;
  readonly taskId: string;
  readonly platform: string;
  /** Who acts: reviews and the curator may change less than the agent its user talks to. */
  readonly origin: string;
  readonly interactive: boolean;
  /** Present when the user sits in a chat app, where no secret may be typed. */
  readonly chat?: unknown;
  readonly ask: Ask;
  readonly signal: AbortSignal;
}

/** What a tool answers, as data. */
export type SkillResult = Readonly<Record<string, unknown>> & { readonly success: boolean };

export function failure(code: string, error: string, extra: Readonly<Record<string, unknown>> = {}): SkillResult {
  return { success: false, code, error, ...extra };
}
