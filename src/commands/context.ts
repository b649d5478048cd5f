import type { Agent } from "../agent/agent.ts";
import type { OpenHome } from "../home/open.ts";
import type { SessionListItem, SessionStore } from "../sessions/store.ts";

/**
 * What a slash command may do to its surface. Each door satisfies it once; commands never know which door they serve.
 *
 * - `say` shows text to the user only; nothing of it reaches the model.
 * - `submit` sends a text as the user's next message.
 */
export interface CommandContext {
  readonly home: OpenHome;
  readonly store: SessionStore;
  readonly agent: Agent;
  readonly surface: "terminal" | "gateway" | "api";
  say(text: string): void;
  warn(text: string): void;
  submit(text: string): void;
  /** Asks for one of several things; null = cancelled. Surfaces without a picker list them and return null. */
  pick<T>(
    title: string,
    items: readonly { readonly label: string; readonly hint?: string; readonly value: T }[],
  ): Promise<T | null>;
  confirm(title: string, detail: string): Promise<boolean>;
  /** Leaves the current conversation and starts or resumes another. */
  startSession(options?: { title?: string }): Promise<void>;
  resumeSession(session: SessionListItem | string): Promise<void>;
  quit(): void;
  clearScreen(): void;
}
