import type { AssistantMessage, FinishReason, Message, ToolCall } from "./messages.ts";
import type { RateLimits, Usage } from "./usage.ts";

export const API_MODES = ["chat_completions", "codex_responses", "anthropic_messages"] as const;
export type ApiMode = (typeof API_MODES)[number];

export type JsonSchema = Readonly<Record<string, unknown>>;

export interface ToolDefinition {
  readonly type: "function";
  readonly function: { readonly name: string; readonly description: string; readonly parameters: JsonSchema };
}

type ReasoningEffort = "none" | "minimal" | "low" | "medium" | "high" | "xhigh" | "max";

/** Where a request goes, with all that is known about it. Resolved once; swapped as a whole on a model switch or a fallback. */
export interface Target {
  readonly provider: string;
  /** Who serves it, for people, where `provider` is only "custom". */
  readonly place?: string;
  readonly model: string;
  readonly baseUrl: string;
  readonly apiKey: string;
  /** The hosts (and their subdomains) this key was issued for; the gate refuses to send it anywhere else. */
  readonly keyHosts?: readonly string[];
  readonly apiMode: ApiMode;
  readonly contextLength: number;
  /** The size of the window is unknown: `contextLength` is assumed. */
  readonly windowAssumed?: boolean;
  /** How this host differs from the plain protocol. */
  readonly profile: ProviderProfile;
  readonly headers?: Readonly<Record<string, string>>;
  readonly extraBody?: Readonly<Record<string, unknown>>;
  /** How long its provider may take, in seconds, where the settings of that provider say so. */
  readonly patience?: { readonly totalSeconds?: number; readonly staleSeconds?: number };
}

/** Who serves the model, for people. */
export const placeOf = ({ place, provider }: Pick<Target, "place" | "provider">) => place ?? provider;

/** The differences of one provider or host, as data. A new OpenAI-compatible provider is one such record. */
export interface ProviderProfile {
  readonly maxTokensField: "max_tokens" | "max_completion_tokens";
  readonly defaultMaxTokens?: number;
  readonly developerRole: boolean;
  readonly reasoningStyle: "none" | "openrouter" | "kimi" | "deepseek" | "ollama" | "openai";
  /** The server wants `reasoning_content` on every assistant message (a single blank when there is none). */
  readonly echoReasoning: boolean;
  readonly streamUsage: boolean;
  readonly images: boolean;
  readonly cacheLayout: "none" | "envelope" | "native";
  /** `prompt_cache_key` is sent on the chat wire. Default: to OpenAI's own host alone. */
  readonly supportsPromptCacheKey?: boolean;
  /** Anthropic wire: what happens to thinking blocks that are sent back. */
  readonly thinkingReplay: "native" | "strip" | "keep" | "unsigned-only";
}

export interface ModelRequest {
  readonly target: Target;
  /** The API copy: a system message first, then the history, already sanitised. */
  readonly messages: readonly Message[];
  readonly tools: readonly ToolDefinition[];
  readonly toolChoice?: "auto" | "none" | "required";
  readonly maxTokens?: number;
  readonly temperature?: number;
  /** The JSON that the answer has to be, for hosts that are known to hold a model to it. */
  readonly answerSchema?: Readonly<Record<string, unknown>> | undefined;
  readonly reasoning?: {
    readonly enabled: boolean;
    readonly effort?: ReasoningEffort;
    /** Responses wire: `false` after the server refused to sum up what was thought. */
    readonly summary?: false;
  };
  /** Anthropic wire: `false` after the account was refused the long window. */
  readonly longContext?: false;
  /** How quickly the answer is wanted, where the host sells that. */
  readonly serviceTier?: string;
  /** Default true; false only for servers that cannot stream. */
  readonly stream?: boolean;
  readonly sessionId?: string;
  /** How long to wait for what; nothing = for ever. */
  readonly limits?: RequestLimits;
  /** Cache markers for hosts whose profile wants them. Default `5m`. */
  readonly cacheTtl?: "5m" | "1h" | "off";
  /** What is known of the system text's inside; nothing for texts that others made. */
  readonly promptLayout?: PromptLayout;
  /** It carries notes of the loop that no later request repeats: the next one need not begin with it. */
  readonly scaffolded?: boolean;
  /** What of the history's provider state is sent back. Default: all of it, so that a session never rewrites what it sent. */
  readonly replay?: ReplayPolicy;
  /** Merged last into the body; a field that is `undefined` here is left out of it. */
  readonly overrides?: Readonly<Record<string, unknown>>;
}

export interface PromptLayout {
  /** The beginning that is equal for every session of one set-up: cached apart from the rest. Empty = unknown. */
  readonly stable: string;
  /** Named pieces in order, with their length in UTF-16 units, the gap behind each included. What follows them was laid over for this request. */
  readonly blocks: readonly { readonly id: string; readonly length: number }[];
}

/** In milliseconds. The time to open a connection is a matter of the `fetch` handed to the wire. */
export interface RequestLimits {
  /** From sending until the response begins; default `staleMs`. */
  readonly firstByteMs?: number;
  /** Without a single byte. A breach is `failed` with code `stale_stream`. */
  readonly staleMs?: number;
  /** The whole call. A breach is `failed` with code `request_timeout`. */
  readonly totalMs?: number;
}

interface ReplayPolicy {
  /** Anthropic wire: `latest` for a history met for the first time. Default `all`. */
  readonly keepThinking?: "all" | "latest";
  /** Anthropic wire: images of the newest N image-bearing tool results. Default all. */
  readonly keepImages?: number;
  /** Responses wire: `false` after the server refused the encrypted items. Default true. */
  readonly codexItems?: boolean;
}

export type ModelEvent =
  | { readonly type: "text"; readonly delta: string }
  | { readonly type: "thinking"; readonly delta: string }
  /** A remark the model made on its way, whole. It belongs to the thinking, where it stood already, not to the answer. */
  | { readonly type: "remark"; readonly text: string }
  | { readonly type: "tool_pending"; readonly name: string }
  | { readonly type: "tool_call"; readonly call: ToolCall }
  | { readonly type: "usage"; readonly usage: Usage }
  | {
      readonly type: "done";
      readonly finishReason: FinishReason;
      readonly message: AssistantMessage;
      readonly rateLimits?: RateLimits;
      /** Tools whose arguments were not valid JSON and were mended; for the log. */
      readonly repaired?: readonly string[];
    }
  | { readonly type: "failed"; readonly error: ModelError };

/** What went wrong on the way to or inside the model. A value, not an exception: it travels in the stream. */
export interface ModelError {
  readonly message: string;
  readonly status?: number;
  /** A machine word: the provider's code, a socket code (`ECONNREFUSED`), or one of ours (`budget_exceeded`, `stale_stream`, `stream_cut`, `aborted`). */
  readonly code?: string;
  readonly name?: string;
  /** The response body, parsed if it was JSON. */
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  /** The stream broke off after it had begun: what had arrived by then. Half a tool call is only a name. */
  readonly partial?: { readonly text: string; readonly pendingTools: readonly string[] };
}

/**
 * One way of talking to a model.
 *
 * - `stream` never throws for what the network or the model did: it yields `{ type: "failed", error }` and ends.
 * - The last event is always exactly one of `done` and `failed`; `usage`, if the provider gave any, comes before it.
 * - After `signal` aborts it ends within 100 ms with `failed` (code `aborted`) and closes the socket.
 * - Tool calls are yielded whole, never in halves; `tool_pending` announces a name as soon as it is seen.
 * - `text` is the model's raw visible text; think tags are scrubbed by the loop, not here.
 * - It never retries and keeps no state between calls.
 * - `onSend` is called once, right before the body leaves; a request that never leaves never calls it.
 */
export interface Wire {
  stream(request: ModelRequest, signal: AbortSignal, onSend?: (sent: SentBody) => void): AsyncIterable<ModelEvent>;
}

/** What goes out for a request: the same request always gives the same three. */
export interface RenderedRequest {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Readonly<Record<string, unknown>>;
}

/** A body as it leaves: its text, and apart from it what a provider may still hold from the request before. Cache markers are taken out. */
export interface SentBody {
  readonly text: string;
  /** The system text itself, not its JSON. */
  readonly system: string;
  /** JSON of the tool list; empty without tools. */
  readonly tools: string;
  /** JSON of the messages or items behind the system text, in the shape of the wire, with commas between them. */
  readonly messages: string;
}
