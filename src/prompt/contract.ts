/** Stable: equal for every session of one set-up. Context: of this folder and caller. Volatile: of this session. */
export type Layer = "stable" | "context" | "volatile";

export interface PromptBlock {
  readonly id: string;
  readonly layer: Layer;
  /** Stripped, never empty. */
  readonly text: string;
}

export interface PromptBuild {
  readonly blocks: readonly PromptBlock[];
  readonly stable: string;
  readonly context: string;
  readonly volatile: string;
  readonly full: string;
  readonly warnings: readonly string[];
}

/** Everything the prompt depends on, read beforehand. The builder fetches nothing. */
export interface PromptInputs {
  /** Text of the home's SOUL.md, checked; null = the built-in identity. */
  readonly soul: string | null;
  readonly model: string;
  readonly provider: string;
  readonly platform: string;
  readonly toolNames: readonly string[];
  readonly toolUseEnforcement: boolean | string | readonly unknown[];
  readonly taskCompletionGuidance: boolean;
  readonly parallelToolGuidance: boolean;
  /** `Linux (6.1.0)`, `macOS (15.1)`, `Windows (11)`. */
  readonly hostName: string;
  readonly userHome: string;
  readonly environmentHint: string;
  readonly profile: string;
  /** Root home and profile home, written with `~` where they lie below the user's home. */
  readonly rootHome: string;
  readonly profileHome: string;
  /** Null for backends whose directory is not the host's. */
  readonly cwd: string | null;
  readonly systemMessage: string | null;
  readonly memoryText: string | null;
  readonly userText: string | null;
  /** The day the session began, and today if the prompt is rebuilt on a later one. */
  readonly startedOn: CalendarDay;
  readonly rebuiltOn: CalendarDay | null;
  /** Shown only when the caller asked for it. */
  readonly sessionId: string | null;
}

export interface CalendarDay {
  readonly year: number;
  /** 1 to 12. */
  readonly month: number;
  readonly day: number;
}
