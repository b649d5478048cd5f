// What a conversation is made of. `open.ts` puts it together once; the loop reads no settings of its own.
import type { Config } from "../home/config/schema.ts";
import type { Logger } from "../home/log.ts";
import type { PastedText } from "../home/open.ts";
import type { HomePaths } from "../home/paths.ts";
import type { Clock } from "../kit/clock.ts";
import type { AuxiliaryClient, ModelSpec } from "../llm/auxiliary/contract.ts";
import type { ModelGate, Task } from "../llm/gate.ts";
import type { KeyPort } from "../llm/keys/ring.ts";
import type { LivenessSettings } from "../llm/liveness.ts";
import type { HistoryMessage, UserInput } from "../llm/messages.ts";
import type { ModelError, ModelRequest, Target } from "../llm/wire.ts";
import type { Memory } from "../memory/open.ts";
import type { HintsPort, PromptSource } from "../prompt/contract.ts";
import type { Ask, CommandGuard, Question } from "../safety/decision.ts";
import type { Environment } from "../sandbox/environment.ts";
import type { Lane } from "../sessions/lanes.ts";
import type { NewSession, SessionStore } from "../sessions/store.ts";
import type {
  ChildrenAnswer,
  ChildTask,
  HookedCall,
  HookedResult,
  RunContext,
  RunOrigin,
  ToolContext,
} from "../tools/toolset/context.ts";
import type { SessionTools } from "../tools/toolset/session-tools.ts";
import type { ModeGate } from "../tools/toolset/work-mode.ts";
import type { AgentEventBody, SessionTotals, TurnOutcome } from "./events.ts";
import type { ForeignText } from "./foreign-text.ts";

interface PastedKeys {
  find(text: string): PastedText;
  /** Whether the home has a variable of this name. */
  has(name: string): boolean;
  /** Keeps it in .env; from then on it is a known value. Resolves to what else was done, if anything. */
  keep(name: string, value: string): Promise<string | null>;
  /** As messages name it. */
  readonly file: string;
}

/** The opened parts of one conversation. Agent, turns, plugins and reviews take it as it is; absent parts are not there in this conversation. */
export interface Assembly {
  readonly session: SessionOptions;
  readonly model: ModelChoice;
  readonly prompt: PromptSource;
  readonly tools: SessionTools;
  readonly limits: Limits;
  readonly gate: ModelGate;
  readonly clock: Clock;
  readonly log: Logger;
  readonly paths: HomePaths;
  config(): Config;
  readonly environment: Environment;
  /** The check in front of commands, for one run. `ask` reaches the person at the door, `auxiliary` a model that may judge first. */
  guardFor(run: RunContext, ask: Ask, auxiliary: AuxiliaryClient): CommandGuard;
  /** How far the agent may go by itself right now. Absent: nothing is held back beyond the guard. */
  readonly mode?: Pick<ModeGate, "takeNote" | "refuses">;
  /** How long a question waits for its answer; undefined = for ever. */
  askTimeoutMs?(question: Question, run: RunContext): number | undefined;
  /** A turn begins; what it returns is called at its end. For processes that go on: they may tidy up while nobody waits. */
  working?(): () => void;
  /** The user trusts the folder, or the folder of the file. Absent: every folder is trusted. */
  isTrusted?(path: string): boolean;
  /** Rules of a folder that is not trusted are in the prompt: whose they are, in words. Absent or null: there are none. */
  untrustedRules?(): string | null;
  /** False: nothing is asked about because a stranger's text was read. Absent: it is. */
  asksAfterForeignText?(): boolean;
  /** Masks secrets; the one redactor. */
  redact(text: string): string;
  /** Masks what no memory or skill may hold. Absent: nothing. */
  redactKept?(text: string): string;
  /** Keys in what the user says. Absent: nothing is taken out. */
  readonly pasted?: PastedKeys;
  readonly memory?: Memory;
  readonly hooks?: ToolHooks;
  /** Copies what a call may change before it runs; a text is for the user. Absent: no checkpoints here. */
  checkpoint?(call: HookedCall, run: RunContext): Promise<string | null>;
  /** Where plugins and hooks look into a turn. */
  readonly events?: LoopEvents;
  /** Loaded with the first tool result. Absent: nothing is discovered. */
  hints?(): Promise<HintsPort>;
  /** Between turns: what changed outside (tools of MCP servers) is taken over. Must not wait. */
  beforeTurn?(): void;
  readonly compression?: CompressionPorts;
  readonly follower?: ConversationFollower;
  /** Starts child agents. Absent: this conversation may have none. */
  readonly delegation?: DelegationPort;
  /** Models for side tasks, besides the main one. Rejects with `ProviderError` for one that cannot be asked. */
  resolveSpec?(spec: ModelSpec): Promise<Target>;
  /** What the user should know about the last model calls, once. */
  takeWarnings?(): readonly string[];
  /** Other keys of the provider in use. */
  readonly keys?: KeyPort;
  /** Idle connections are closed: the next request opens a new one. */
  renewConnections?(): void;
  /** Keeps a request that was refused for good, for whoever looks into it; resolves to where. */
  keepRefused?(refused: RefusedRequest): Promise<string>;
  /** A server named a smaller window than was known; later conversations shall know it. */
  learnWindow?(target: Target, tokens: number): Promise<void>;
  /** What tools get of the home besides the paths: variables, the file redactor, write limits. */
  readonly toolPorts?: Pick<
    ToolContext,
    | "env"
    | "acceptsEdit"
    | "redactFile"
    | "writeSafeRoots"
    | "skills"
    | "conversation"
    | "transformOutput"
    | "emitHook"
    | "deliver"
    | "schedule"
    | "reviewEdits"
    | "editorFiles"
  >;
}

/** Whose conversation this is and where it is kept. */
interface SessionOptions {
  readonly id: string;
  readonly source: string;
  readonly platform: string;
  readonly profile: string;
  /** Null: nothing is kept. */
  readonly store: SessionStore | null;
  /** The right to write it; `store` is its store. Null without a store, and where whoever started this conversation holds it. */
  readonly lane: Lane | null;
  /** Taken as the conversation so far instead of what the store holds. Copied, never changed, not stored again. */
  readonly history?: readonly HistoryMessage[] | undefined;
  /** It is what was there after the last turn, and more: requests begin as they did before. */
  readonly historyGoesOn?: boolean | undefined;
  /** Rides in front of the first message as it is sent: skills that are active for the whole conversation. */
  readonly opening?: string;
  /** More columns of the session's row, for when it has to be made. */
  readonly row?: Pick<NewSession, "parentSessionId" | "userId" | "cwd" | "gitBranch" | "gitRepoRoot" | "modelConfig">;
  readonly sessionKey?: string | undefined;
  /** What whoever started this conversation had read from outside. */
  readonly foreign?: readonly string[] | undefined;
  readonly chat?: RunContext["chat"] | undefined;
  readonly sender?: RunContext["sender"] | undefined;
  readonly origin?: RunOrigin | undefined;
  /** A user is there to answer questions. */
  readonly interactive: boolean;
  /** Who pays for the model calls; default `main`. */
  readonly task?: Task;
  readonly jobId?: string;
  /** A due review follows a turn; otherwise it waits until the session is held where it may. */
  readonly reviews?: boolean;
  /** The turn this run belongs to, when it is not counted here. */
  readonly turn?: number;
  /** A conversation that has just begun is given a title. */
  readonly titles?: boolean;
  /** What its tools know the run by; default: a new name for every turn. */
  readonly taskId?: string;
}

export interface ModelChoice {
  readonly target: Target;
  readonly reasoning?: ModelRequest["reasoning"];
  /** Who stands in when this model cannot answer; default: `fallback_providers` of the settings. */
  readonly fallbacks?: readonly unknown[];
  /** Output cap of one call. */
  readonly maxTokens?: number;
  /** How long a request may be silent or last, where the user said so. */
  readonly liveness?: LivenessSettings;
  readonly cacheTtl?: ModelRequest["cacheTtl"];
  readonly serviceTier?: ModelRequest["serviceTier"];
  /** Merged last into the request body. */
  readonly overrides?: ModelRequest["overrides"];
}

export interface Limits {
  /** Model calls per turn. */
  readonly maxIterations: number;
  /** Attempts per model call, at least 1. */
  readonly apiMaxRetries: number;
  /** How often an attempt is repeated at once when the connection breaks before anything of the answer came. Default 2. */
  readonly streamRetries?: number;
  readonly maxConcurrentChildren?: number;
  /** False: this conversation is too short-lived to be compressed. */
  readonly compression?: false;
  /** False: at the limit the turn just ends; nobody waits for its answer. */
  readonly lastAnswer?: false;
  readonly toolTimes?: ToolTimes;
}

export interface ToolTimes {
  /** How often a running tool shows a sign of life. */
  readonly heartbeatMs: number;
  /** How long an interrupted tool may still answer; then its result is not waited for. */
  readonly graceMs: number;
  /** How long beyond a tool's own time limit it is still waited for. */
  readonly overtimeMs: number;
}

export interface RefusedRequest {
  readonly sessionId: string;
  readonly request: ModelRequest;
  readonly error: ModelError;
}

/** Who follows a conversation from outside, such as an external memory. Notified after the fact; nothing waits for it, nothing may throw. */
export interface ConversationFollower {
  turnEnded?(turn: { readonly input: UserInput; readonly outcome: TurnOutcome }): void;
  /** The last turns were taken back. */
  rewound?(sessionId: string): void;
  delegated?(task: string, result: string, childSessionId: string): void;
}

/** Runs child agents for one call of a turn. Never rejects for what a child did. */
interface DelegationPort {
  spawn(tasks: readonly ChildTask[], call: ParentCall): Promise<ChildrenAnswer>;
}

/** The call that asked for children, as far as they have to do with it. */
export interface ParentCall {
  readonly sessionId: string;
  readonly callId: string;
  readonly signal: AbortSignal;
  emit(event: AgentEventBody): void;
  /** A sign of life. */
  progress(text?: string): void;
  /** What a child took in all, to be counted with the parent's own. */
  used(totals: SessionTotals): void;
  /** What the parent has read from outside; children begin with it, and add what they read. */
  readonly foreign?: ForeignText;
}

/** Who takes part when a conversation is shortened. What fails here is logged and ignored. */
export interface CompressionPorts {
  /** Saves what matters before what it could be learnt from is gone. */
  flushMemories?(about: {
    readonly sessionId: string;
    readonly messages: readonly HistoryMessage[];
    readonly signal: AbortSignal;
  }): Promise<void>;
  /** A text that the summary has to keep. */
  preCompress?(messages: readonly HistoryMessage[]): Promise<string | null>;
  /** The conversation holds these messages now, maybe under another id: caches of what was said before are out of date. */
  compressed?(change: {
    readonly oldSessionId: string;
    readonly newSessionId: string;
    readonly messages: readonly HistoryMessage[];
  }): Promise<void>;
  /** The package's own folder of plugins; default: the one of the installed program. */
  readonly packagePlugins?: string;
}

/** Where others look into a call. A hook that throws is logged and ignored. */
export interface ToolHooks {
  /** A returned text blocks the call; the model reads it as the error. */
  before?(call: HookedCall, run: RunContext): Promise<string | null>;
  after?(call: HookedCall, result: HookedResult, run: RunContext): Promise<void>;
  /** A returned text takes the place of the result. */
  transform?(call: HookedCall, result: HookedResult, run: RunContext): Promise<string | null>;
  /** Appended behind the result, outside any fence (warnings, hints). */
  appendix?(call: HookedCall, result: HookedResult, run: RunContext): Promise<string | null>;
}

/**
 * What happens in a turn, for whoever listens.
 *
 * - Nothing here rejects, and nothing waits without a limit.
 * - `notify` resolves to what the listeners gave back, in their order. Whoever notifies decides what counts.
 */
export interface LoopEvents {
  /** False: the loop spares itself the facts. */
  hasListeners(event: string): boolean;
  notify(event: string, facts: Readonly<Record<string, unknown>>): Promise<readonly unknown[]>;
  /** First thing in a turn, with the user's message stored: there is somebody to ask, and tools may be called while it lasts. */
  turnStarts?(turn: TurnPorts): Promise<void>;
}

export interface TurnPorts {
  readonly run: RunContext;
  readonly ask: Ask;
  /** What the user said. */
  readonly text: string;
  readonly history: readonly HistoryMessage[];
  /** Runs a tool on the one path of all calls; resolves to its result as the model would read it. */
  callTool(name: string, args: Readonly<Record<string, unknown>>): Promise<string>;
}
