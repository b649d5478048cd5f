import type { BackgroundTask } from "../agent/background.ts";
import type { OpenAgent } from "../agent/opened.ts";
import type { OpenHome } from "../home/open.ts";
import type { Clock } from "../kit/clock.ts";
import type { SessionListItem, SessionStore } from "../sessions/store.ts";
import type { MenuSkill } from "./skill-menu.ts";

/**
 * What a slash command may do to its surface. Each door satisfies it once; commands never know which door they serve.
 *
 * - `say` and `warn` show text to the user only; nothing of it reaches the model.
 * - `submit` sends a text as the user's next message, `queue` after everything that waits already.
 */
export interface CommandContext {
  readonly home: OpenHome;
  readonly store: SessionStore;
  readonly clock: Clock;
  /** Where the user stands. */
  readonly cwd: string;
  /** The platform whose tools are in force, such as `cli`. */
  readonly platform: string;
  /** The conversation right now; another one after `startSession` or `resumeSession`. */
  readonly conversation: OpenAgent;
  readonly busy: boolean;
  /** What waits to be said after the running turn. */
  readonly waiting: readonly string[];
  /** Unix seconds. */
  now(): number;
  say(text: string): void;
  warn(text: string): void;
  submit(text: string): void;
  /** `shownAs` is what is stored and shown when the model gets something longer. */
  queue(text: string, options?: { readonly shownAs?: string }): void;
  /** Puts a text where the user can change and send it; surfaces without an input line show it. */
  offerInput(text: string): void;
  /** Asks for one of several things; null = cancelled. Surfaces without a picker list them and return null. */
  pick<T>(title: string, items: readonly PickItem<T>[]): Promise<T | null>;
  confirm(title: string, detail: string): Promise<"once" | "always" | "cancel">;
  /** Leaves the current conversation and starts another. */
  startSession(options: { readonly title?: string }): Promise<void>;
  resumeSession(id: string): Promise<void>;
  /** The list that numbers of `/resume N` refer to. */
  lastListed: readonly SessionListItem[];
  commands(): string;
  /** Skills and bundles that can be typed as commands here. */
  skillCommands(): Promise<readonly MenuSkill[]>;
  /** Prompts that run beside the conversation. Absent where nobody could be shown their answers. */
  readonly background?: BackgroundPort;
  quit(options: { readonly deleteSession: boolean }): void;
  /** Absent where there is none: commands that need it are offered in the terminal alone. */
  readonly terminal?: TerminalSurface;
}

export interface BackgroundPort {
  readonly running: readonly BackgroundTask[];
  start(prompt: string): BackgroundTask;
  /** False when no such task runs. */
  stop(id: string): boolean;
}

export interface TerminalSurface {
  clearScreen(): void;
  redraw(): void;
  /** Resolves to how it was done. */
  copy(text: string): Promise<string>;
  /** The next message in the user's editor. */
  compose(): Promise<void>;
  /** Returns whether the status line is shown now. */
  toggleStatusLine(): boolean;
}

export interface PickItem<T> {
  readonly label: string;
  readonly hint?: string;
  readonly value: T;
}
