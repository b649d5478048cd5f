// What the skills room needs to know of the run that calls it. A tool's context satisfies it.
import type { Ask } from "../safety/decision.ts";

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
  /** Where text from outside in the conversation came from; null or absent: nothing of that kind is to be asked about. */
  foreignText?(): string | null;
}

/** What a tool answers, as data. */
export type SkillResult = Readonly<Record<string, unknown>> & { readonly success: boolean };

export function failure(code: string, error: string, extra: Readonly<Record<string, unknown>> = {}): SkillResult {
  return { success: false, code, error, ...extra };
}

// What this agent has already looked at. A second look at the same bytes is not paid for again.

/**
 * - A file counts as seen for the session it was shown in, in the version it had then.
 * - Reads are also kept per run: a review may only change what it has read itself.
 */
export class ViewMemory {
  #shown = new Map<string, string>();
  #read = new Map<string, Map<string, string>>();

  /** Whether this version was shown in this session before; from now on it counts as shown. */
  isRepeat(sessionId: string, file: string, version: string): boolean {
    const key = JSON.stringify([sessionId, file]);
    const repeat = this.#shown.get(key) === version;
    this.#shown.set(key, version);
    return repeat;
  }

  noteRead(taskId: string, file: string, version: string): void {
    const files = this.#read.get(taskId) ?? new Map<string, string>();
    this.#read.delete(taskId);
    this.#read.set(taskId, files.set(file, version));
    // Runs come and go; only the last few can still ask.
    for (const oldest of this.#read.keys()) {
      if (this.#read.size <= 16) break;
      this.#read.delete(oldest);
    }
  }

  wasRead(taskId: string, file: string): boolean {
    return this.#read.get(taskId)?.has(file) === true;
  }

  /** The texts are gone from the conversation (compression, undo): show them again when asked. */
  forget(): void {
    this.#shown.clear();
  }
}

/** The answer to a second look. */
export function unchanged(what: Readonly<Record<string, unknown>>): SkillResult {
  return {
    success: true,
    ...what,
    status: "unchanged",
    dedup: true,
    content_returned: false,
    message: "Unchanged since you loaded it earlier in this conversation: use the text you already have.",
  };
}
