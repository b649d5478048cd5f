// What a tool gets besides its arguments: the run it belongs to, and what it may use.

import type { Config } from "../../home/config/schema.ts";
import type { Logger } from "../../home/log.ts";
import type { HomePaths } from "../../home/paths.ts";
import type { Clock } from "../../kit/clock.ts";
import type { PaidAnswer, PaidCall } from "../../llm/gate.ts";
import type { Message, TextOrigin } from "../../llm/messages.ts";
import type { Memory } from "../../memory/open.ts";
import type { Ask, CommandGuard } from "../../safety/decision.ts";
import type { Environment } from "../../sandbox/environment.ts";
import type { SessionStore } from "../../sessions/store.ts";
import type { AgentSkills } from "../../skills/open.ts";

export type RunOrigin =
  | "foreground"
  | "background_review"
  | "flush"
  | "curator"
  | "cron"
  | "webhook"
  | "kanban"
  | "subagent"
  | "background";

/** One read-only object per turn, made by the loop. No field can be set by tool arguments. */
/** A person at a door that serves more than one. */
export interface Sender {
  readonly userId: string;
  /** The same person under another name of the platform. */
  readonly userIdAlt?: string;
  readonly userName?: string;
}

export interface RunContext {
  readonly home: HomePaths;
  readonly config: Config;
  readonly profile: string;
  readonly sessionId: string;
  readonly sessionKey?: string;
  /** n-th user turn of the session. */
  readonly turn: number;
  readonly taskId: string;
  readonly platform: string;
  readonly source: string;
  readonly chat?: {
    readonly chatId: string;
    readonly chatName?: string;
    readonly threadId?: string;
  };
  readonly sender?: Sender;
  readonly origin: RunOrigin;
  /** A user can be asked. */
  readonly interactive: boolean;
  readonly signal: AbortSignal;
  readonly clock: Clock;
  readonly log: Logger;
}

/** A message to a chat that is not the one of the conversation. */
export interface DeliverRequest {
  /** `origin`, a platform, `platform:chat[:thread]`, `platform:#name`. */
  readonly target: string;
  readonly message: string;
  /** A first line; where messages have a subject, that. */
  readonly subject?: string | undefined;
  /** What makes a repeat the same message. */
  readonly cause: string;
  /** Where the conversation is held, if it is held in a chat. */
  readonly origin?: ChatOrigin | undefined;
}

/** Who wrote where, as stored with conversations of chats. */
interface ChatOrigin {
  readonly platform: string;
  readonly chat_type: "dm" | "group" | "channel" | "thread" | "webhook" | "forum";
  readonly chat_id?: string | undefined;
  readonly thread_id?: string | undefined;
}

export type Delivered =
  | {
      readonly success: true;
      readonly platform?: string;
      readonly chat_id?: string;
      readonly thread_id?: string;
      readonly message_id?: string | null;
      /** It waits to be sent. */
      readonly queued?: true;
      readonly outbox_id?: number;
      readonly note?: string;
      /** It is part of the conversation of the chat it went to. */
      readonly mirrored?: true;
      readonly skipped?: true;
      readonly reason?: string;
    }
  | {
      readonly error: string;
      readonly code: "no_target" | "unknown_platform" | "not_configured" | "refused" | "unreachable";
    };

export interface DeliverPort {
  deliver(request: Omit<DeliverRequest, "origin">): Promise<Delivered>;
  /** Chats by platform. */
  list(platform?: string): Promise<Readonly<Record<string, readonly unknown[]>>>;
}

/** For tools that schedule. */
interface SchedulePort {
  /** Starts what was asked for by hand, where nothing runs the schedule. */
  startQueued(): Promise<void>;
}

/** The ports. A tool whose port is absent answers with an error, it never guesses. */
export interface ToolContext extends RunContext {
  readonly callId: string;
  readonly environment: Environment;
  readonly guard: CommandGuard;
  readonly ask: Ask;
  readonly sessions: SessionStore | null;
  /** State that lives as long as the agent: todo list, read tracker, process table. A tool family keeps its own under its own key. */
  readonly state: ToolState;
  /** The model's window, for limits that scale with it. */
  readonly contextLength: number;
  readonly toolNames: ReadonlySet<string>;
  /** The conversation's model takes pictures. */
  readonly seesImages?: boolean;
  /** HERMES_WRITE_SAFE_ROOT, split: outside these directories no tool writes. Absent or empty: no such limit. */
  readonly writeSafeRoots?: readonly string[];
  /** One variable of the home's environment; absent where a tool must not look at it. */
  env?(name: string): string | undefined;
  /** Where text from outside that is in the conversation came from; null: there is none, or nobody is to be asked because of it. */
  foreignText?(): string | null;
  /** Masks secrets; the one redactor. */
  redact(text: string): string;
  /** The user lets file tools write here unasked; a path whose links were followed. Absent: nowhere. */
  acceptsEdit?(path: string): boolean;
  /** The same for text of a file that may be written back: marks that never pass for a key, line count kept. Absent: `redact` serves. */
  redactFile?(text: string, path: string): string;
  /** Somebody looks at edits before they are made. Resolves to whether they may be. Absent: nobody does. */
  reviewEdits?(edits: readonly FileEdit[], call: ReviewedCall): Promise<EditVerdict>;
  /** Files that are open in the user's editor: what it holds counts, saved or not. Absent: there is no editor. */
  readonly editorFiles?: EditorFiles | undefined;
  /** A sign of life of a long call, with an optional line for the screen. */
  progress(text?: string): void;
  /** The newest lines that a running command printed, masked; absent where nobody watches. */
  showOutput?(lastLines: string): void;
  /** Shows the user what a call changed in files, as a unified diff. The model does not see it. */
  showDiff?(diff: string): void;
  /** Puts a text in front of the user as a turn of its own when the agent is idle (process notices). */
  notify?(text: string): void;
  /** A text of others for a place where the user's words stand: marked so that it cannot speak for them. Absent: it stays as it is. */
  asData?(text: string): string;
  /** Asks the auxiliary model of a task and resolves to its answer. Rejects with a message to show. Absent: there is no such model. */
  askAuxiliary?(question: AuxiliaryQuestion): Promise<string>;
  /**
   * Sends what is paid for and is no question to a chat model, under the caps and with a row in the ledger. Rejects with `CallRefusedError`
   * when it may not leave, else with what `send` threw. Absent: nobody keeps the books, so nothing is sent.
   */
  pay?<T>(
    task: "image_generation" | "text_to_speech" | "transcription",
    call: PaidCall,
    send: () => Promise<PaidAnswer<T>>,
  ): Promise<T>;
  /**
   * Calls another tool of the session on behalf of this call: hooks, guards and redaction as for any call. The result is the tool's own
   * text, whole. Never rejects for what the tool did; absent where no tool may be called.
   */
  callTool?:
    | ((name: string, args: Readonly<Record<string, unknown>>, signal?: AbortSignal) => Promise<string>)
    | undefined;
  /** Sends messages to chats. Absent: no gateway stands behind the conversation. */
  readonly deliver?: DeliverPort | undefined;
  /** Absent in runs that nobody began by hand: they schedule nothing. */
  readonly schedule?: SchedulePort | undefined;
  /** The result goes to a script, which has not seen what the conversation has seen. */
  readonly forScript?: boolean;
  readonly memory?: Memory;
  readonly skills?: AgentSkills;
  /** The conversation as plugins know it; for callers that run their code. */
  readonly conversation?: object;
  /** Tells hooks of plugins what happened on the board. Absent: nobody listens. */
  emitHook?(
    event: "kanban_task_completed" | "kanban_task_blocked",
    facts: Readonly<Record<string, unknown>>,
  ): Promise<unknown>;
  /** Hooks may replace what a command printed. Null: none did. */
  transformOutput?(facts: CommandOutputFacts): Promise<string | null>;
  /** Hands tasks to agents of their own and waits for all of them. Absent where a run may start none. */
  spawnChildren?(tasks: readonly ChildTask[]): Promise<ChildrenAnswer>;
}

/** One file before and after a change that is about to be made, both sides whole; null where there is no file. */
export interface FileEdit {
  readonly path: string;
  readonly before: string | null;
  readonly after: string | null;
}

export type EditVerdict = "yes" | "no" | "silence";

interface ReviewedCall {
  readonly callId: string;
  readonly signal: AbortSignal;
  /** The user was asked about these files already, and said yes. */
  readonly confirmed: boolean;
}

/**
 * The files of a project as the user's editor holds them.
 *
 * - `covers` says which paths it may be asked about; `read` gives null for what it cannot show.
 * - `write` changes the file in the editor and on disk, or rejects and changes nothing.
 */
export interface EditorFiles {
  covers(path: string): boolean;
  read(path: string): Promise<string | null>;
  write(path: string, text: string): Promise<void>;
}

export interface AuxiliaryQuestion {
  readonly task: "vision" | "web_extract";
  readonly messages: readonly Message[];
  readonly maxTokens?: number;
}

interface CommandOutputFacts {
  readonly command: string;
  readonly output: string;
  readonly returncode: number | null;
  readonly task_id: string;
  readonly session_id: string;
  readonly env_type: string;
}

/** What a child agent is given. It knows nothing else of the conversation. */
export interface ChildTask {
  readonly goal: string;
  readonly context?: string | undefined;
  readonly toolsets?: readonly string[] | undefined;
  /** An orchestrator may start children of its own, as deep as the settings allow. */
  readonly role?: "leaf" | "orchestrator" | undefined;
}

/** What the model reads: why nothing was started, or one report per task in the order of the tasks. */
export type ChildrenAnswer =
  | { readonly error: string }
  | { readonly results: readonly ChildReport[]; readonly total_duration_seconds: number; readonly note?: string };

export interface ChildReport {
  readonly task_index: number;
  readonly status: "completed" | "failed" | "max_iterations" | "interrupted" | "timeout" | "error";
  readonly summary: string | null;
  readonly api_calls: number;
  readonly duration_seconds: number;
  readonly model: string;
  readonly exit_reason: "completed" | "max_iterations" | "interrupted" | "timeout" | "error";
  readonly tokens: { readonly input: number; readonly output: number };
  readonly cost_usd?: number;
  readonly tool_trace: readonly {
    readonly tool: string;
    readonly args_bytes: number;
    readonly result_bytes: number;
    readonly status: "ok" | "error";
  }[];
  readonly error?: string;
}

/** Per-agent state of tool families, made on first use. */
export interface ToolState {
  of<T>(key: StateKey<T>): T;
}

export interface StateKey<T> {
  readonly name: string;
  create(): T;
  dispose?(value: T): void | Promise<void>;
}

export type { TextOrigin };

export interface HookedCall {
  readonly id: string;
  readonly name: string;
  readonly args: Readonly<Record<string, unknown>>;
}

export interface HookedResult {
  readonly text: string;
  readonly status: "ok" | "failed" | "blocked";
  readonly ms: number;
}
