// What an agent has seen and done with files, so that it neither reads in circles nor writes over what it does not know.
import type { StateKey, ToolState } from "./toolset/context.ts";

/** The notice that stands for content returned before; never to be written into a file. */
export const UNCHANGED_NOTICE = "File unchanged since it was last read; its content is above in this conversation.";

/** One agent's knowledge. Paths are real ones. */
export class FileActivity {
  #last: { key: string; count: number } | null = null;
  readonly #returned = new Map<string, { version: string; notices: number }>();
  readonly #seen = new Map<string, { version: string; partial: boolean }>();
  readonly #failedPatches = new Map<string, number>();

  /** Counts a call that reads; returns how many times in a row it was made just so. */
  repeat(key: string): number {
    this.#last = this.#last?.key === key ? { key, count: this.#last.count + 1 } : { key, count: 1 };
    return this.#last.count;
  }

  /** Another tool ran: what follows is no repetition. */
  breakRepetition(): void {
    this.#last = null;
  }

  /** How often this very content was asked for again since it was returned; 0 = it is new or has changed. */
  askedAgain(range: string, version: string): number {
    const returned = this.#returned.get(range);
    if (returned?.version !== version) return 0;
    return ++returned.notices;
  }

  returned(range: string, path: string, version: string, partial: boolean): void {
    this.#returned.set(range, { version, notices: 0 });
    const seen = this.#seen.get(path);
    this.#seen.set(path, { version, partial: partial && (seen?.version !== version || seen.partial) });
  }

  /** The version this agent last read or wrote. */
  seen(path: string): { readonly version: string; readonly partial: boolean } | undefined {
    return this.#seen.get(path);
  }

  wrote(path: string, version: string): void {
    this.#seen.set(path, { version, partial: false });
    this.#failedPatches.delete(path);
    this.breakRepetition();
    lastWriters.delete(path);
    lastWriters.set(path, { by: new WeakRef(this), version });
    const oldest = lastWriters.keys().next();
    if (lastWriters.size > MAX_WRITERS && !oldest.done) lastWriters.delete(oldest.value);
  }

  removed(path: string): void {
    this.#seen.delete(path);
    this.breakRepetition();
  }

  /** Counts failed patches of one file. */
  patchFailed(path: string): number {
    const count = (this.#failedPatches.get(path) ?? 0) + 1;
    this.#failedPatches.set(path, count);
    return count;
  }

  /** The conversation no longer holds what was returned (compression, a new session). */
  forget(): void {
    this.#returned.clear();
    this.breakRepetition();
  }

  /** Why writing now may undo somebody else's work; null when there is no reason to think so. */
  staleness(path: string, current: string): string | null {
    const seen = this.#seen.get(path);
    if (!seen || seen.version === current) return null;
    const writer = lastWriters.get(path);
    const other = writer?.version === current && writer.by.deref() !== this;
    return other
      ? "another agent changed this file after you read it; read it again to be sure nothing of theirs was lost"
      : "this file changed on disk after you read it; read it again to be sure nothing was lost";
  }
}

/** Agents of one process share its files: who wrote which version last. */
const lastWriters = new Map<string, { readonly by: WeakRef<FileActivity>; readonly version: string }>();
const MAX_WRITERS = 2000;

export const fileActivity: StateKey<FileActivity> = { name: "files", create: () => new FileActivity() };

/** The tool runner calls this for every call, so that only uninterrupted repetition counts as one. */
export function noteToolCall(state: ToolState, toolName: string): void {
  if (toolName !== "read_file" && toolName !== "search_files") state.of(fileActivity).breakRepetition();
}

/** To be called when earlier results left the conversation. */
export function forgetReads(state: ToolState): void {
  state.of(fileActivity).forget();
}
