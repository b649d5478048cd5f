// What a prompt is made from and what comes out. Readers fetch, the builder assembles; neither does the other's work.

import type { PrefixCause } from "../llm/gate.ts";
import type { HistoryMessage, UserInput } from "../llm/messages.ts";
import type { PromptLayout, Target } from "../llm/wire.ts";
import type { Finding } from "../safety/threats/scan.ts";
import type { Confinement } from "../sandbox/environment.ts";
import type { SkillCategory } from "../skills/visible.ts";
import type { HookedCall, RunContext } from "../tools/toolset/context.ts";
import type { PromptFingerprint } from "./fingerprint.ts";

/** Stable: equal for every session of one set-up. Context: of this folder and caller. Volatile: of this session. */
export type Layer = "stable" | "context" | "volatile";

export interface PromptBlock {
  readonly id: string;
  readonly layer: Layer;
  /** Stripped, never empty. */
  readonly text: string;
  /** The file it came from, where it came from one. */
  readonly source?: string;
}

export interface PromptBuild {
  readonly blocks: readonly PromptBlock[];
  readonly stable: string;
  readonly context: string;
  readonly volatile: string;
  readonly full: string;
  /** For the user, once per build. */
  readonly warnings: readonly string[];
  readonly contextFiles: readonly ContextFileReport[];
  readonly fingerprint: PromptFingerprint;
}

type ContextFileStatus =
  | "loaded"
  | "truncated"
  | "blocked"
  | "flagged"
  | "shadowed"
  | "empty"
  | "unreadable"
  | "skipped";

/** What became of one file that was looked at. */
export interface ContextFileReport {
  readonly path: string;
  /** `soul`, `hermes`, `agents`, `claude` or `cursor`. */
  readonly kind: string;
  readonly status: ContextFileStatus;
  /** In code points, of the text after reading; 0 where it was not read. */
  readonly chars: number;
  readonly keptChars: number;
  /** Roughly, of what was kept. */
  readonly tokens: number;
  readonly findings: readonly Finding[];
  readonly reason?: string;
}

/** Everything the prompt depends on, read beforehand. The builder fetches nothing. What is absent was not read and leaves no trace. */
export interface PromptInputs {
  /** The home's SOUL.md; null = the built-in identity. */
  readonly soul: SoulReading | null;
  readonly model: string;
  readonly provider: string;
  readonly platform: string;
  readonly toolNames: readonly string[];
  /** Hash of the tool array as it is sent, and of what the user chose; see `fingerprint.ts`. */
  readonly toolsHash?: string;
  readonly toolSelection?: string;
  readonly toolUseEnforcement: boolean | string | readonly unknown[];
  readonly taskCompletionGuidance: boolean;
  readonly parallelToolGuidance: boolean;
  /** What the dispatcher gave a board worker. Null or absent: nobody resolved any; empty: resolved to nothing. */
  readonly kanbanGuidance?: string | null;
  /** Skills the model may load, filtered and cleaned. */
  readonly skills?: readonly SkillCategory[];
  /** `Linux (6.1.0)`, `macOS (15.1)`, `Windows (11)`, `WSL (Windows Subsystem for Linux)`, `Termux (Android)`. */
  readonly hostName: string;
  /** Hosts that need a word of explanation. */
  readonly hostKind?: HostKind;
  readonly userHome: string;
  /** Where commands run; absent = on the host. */
  readonly backend?: Backend;
  readonly environmentHint: string;
  readonly coding?: CodingReading | null;
  /** The finished `Python toolchain: ...` line. */
  readonly pythonLine?: string | null;
  readonly profile: string;
  /** Root home and profile home, written with `~` where they lie below the user's home. */
  readonly rootHome: string;
  readonly profileHome: string;
  /** `platform_hints` of the settings. */
  readonly platformHints?: Readonly<Record<string, unknown>>;
  /** What a platform plugin says of itself; for platforms that are not built in. */
  readonly pluginHint?: string | null;
  /** Null for backends whose directory is not the host's. */
  readonly cwd: string | null;
  readonly systemMessage: string | null;
  readonly contextFiles?: ContextReading;
  readonly memoryText: string | null;
  readonly userText: string | null;
  readonly externalMemory?: string | null;
  /** The day the session began, and today if the prompt is rebuilt on a later one. */
  readonly startedOn: CalendarDay;
  readonly rebuiltOn: CalendarDay | null;
  /** Shown only when the caller asked for it. */
  readonly sessionId: string | null;
  /** Warnings of other readers, for the user. */
  readonly notes?: readonly string[];
}

export interface SoulReading {
  /** Checked and cut; null = the built-in identity serves. */
  readonly text: string | null;
  /** The file was withheld: its marker follows the built-in identity. */
  readonly blockedMarker: string | null;
  readonly report: ContextFileReport | null;
  readonly warnings: readonly string[];
}

export interface ContextReading {
  /** The whole block, heading included; empty when there is nothing. */
  readonly text: string;
  readonly reports: readonly ContextFileReport[];
  readonly warnings: readonly string[];
  /** SHA-256 of the stripped text of every file in it: sub-directory hints do not repeat them. */
  readonly hashes: readonly string[];
}

export type HostKind = "wsl" | "termux" | "windows";

export type Backend =
  | { readonly type: "local" }
  /** This machine, of which commands and file tools see a part. */
  | ({ readonly type: "sandbox" } & Pick<Confinement, "writable" | "network">)
  /** Null facts: the probe failed. */
  | { readonly type: "remote"; readonly name: string; readonly facts: BackendFacts | null };

export interface BackendFacts {
  readonly os: string;
  readonly kernel: string;
  readonly user: string;
  readonly home: string;
  readonly cwd: string;
}

export interface CodingReading {
  readonly active: boolean;
  /** Skills of everyday categories are listed by name only. */
  readonly focus: boolean;
  /** The finished workspace block; null when there is no workspace. */
  readonly workspace: string | null;
  /** `agent.coding_instructions`. */
  readonly instructions: string | readonly string[];
}

export interface CalendarDay {
  readonly year: number;
  /** 1 to 12. */
  readonly month: number;
  readonly day: number;
}

export interface PromptSource {
  /** The system prompt, byte for byte. Asked once per session and destination. */
  system(about: PromptQuestion): Promise<string | SystemPrompt>;
  /** Warnings of the last build for the user (files blocked, cut, not read), once. */
  takeWarnings?(): readonly string[];
  /** Built again because the user asked for it, and stored in place of the one before. */
  rebuild?(about: PromptQuestion): Promise<SystemPrompt>;
  /** The same prompt for a fallback model; never stored. */
  retarget?(system: SystemPrompt, to: Target): SystemPrompt;
  /** Appended to the system text of every request, never stored. */
  ephemeral?(): string | undefined;
  /** Right behind the system message of every request, never stored. */
  readonly prefill?: readonly HistoryMessage[];
  /** Blocks that are appended to the current user message as it is sent; the stored text stays what the user wrote. */
  recall?(text: string, run: RunContext, input?: UserInput): Promise<readonly string[]>;
}

export interface PromptQuestion {
  readonly sessionId: string;
  readonly target: Target;
  readonly hasHistory: boolean;
}

export interface SystemPrompt {
  readonly text: string;
  /** Absent when nothing is known of the text's inside. */
  readonly layout?: PromptLayout | undefined;
  /** Why it is not what this session sent before; absent when it is, or when nothing was sent. */
  readonly cause?: PrefixCause;
}

/**
 * Rules of the directory a call works in, for the model, behind its result.
 *
 * - Asked in the order of the calls, one after another, also for calls that ran side by side.
 * - `text` begins with its own blank line. It never rejects.
 */
export interface HintsPort {
  check(call: HookedCall, at: HintsAt): Promise<{ readonly text: string | null; readonly warnings: readonly string[] }>;
}

interface HintsAt {
  /** Where the terminal was when the call was made. */
  readonly cwd: string;
  /** The conversation before this answer's results. */
  readonly history: readonly HistoryMessage[];
}
