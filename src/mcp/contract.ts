// What the MCP room is handed, and what it gives back.
import type { Logger } from "../home/log.ts";
import type { Clock } from "../kit/clock.ts";
import type { FinishReason, Message, ToolCall } from "../llm/messages.ts";
import type { JsonSchema, ToolDefinition } from "../llm/wire.ts";
import type { Ask } from "../safety/decision.ts";

/** The run a call belongs to: who pays for what the server asks of a model, and whom it may ask something. */
export interface McpCaller {
  readonly sessionId: string;
  readonly signal: AbortSignal;
  readonly interactive: boolean;
  readonly ask: Ask;
  progress(text?: string): void;
}

/** One tool of a server as the model sees it. `call` rejects with `McpError` alone; its text may be shown as it is. */
export interface McpTool {
  readonly name: string;
  readonly server: string;
  /** As the server calls it; utilities of ours have no such name on the server. */
  readonly tool: string;
  readonly description: string;
  readonly parameters: JsonSchema;
  /** The server says that its calls may run side by side. */
  readonly parallel: boolean;
  readonly timeoutMs: number;
  call(args: Readonly<Record<string, unknown>>, caller: McpCaller): Promise<string>;
}

/** What a server asks of a model, within the limits of its settings. */
export interface SamplingCall {
  readonly server: string;
  readonly messages: readonly Message[];
  readonly maxTokens: number;
  readonly temperature?: number;
  readonly tools: readonly ToolDefinition[];
  readonly model: string | null;
  readonly timeoutSeconds: number;
  /** The conversation whose call made the server ask; null when none was running. */
  readonly sessionId: string | null;
  readonly signal: AbortSignal;
}

export interface SamplingAnswer {
  readonly text: string;
  readonly toolCalls: readonly ToolCall[];
  readonly finishReason: FinishReason;
  readonly model: string;
}

export interface McpPorts {
  readonly clock: Clock;
  readonly log: Logger;
  /** The environment servers' processes start from; only a few harmless names of it reach them. */
  readonly environment: () => Readonly<Record<string, string>>;
  readonly cwd: string;
  /** What `~` stands for. */
  readonly osHome: string;
  /** HERMES_HOME/mcp-tokens. */
  readonly tokensDir: string;
  readonly mediaDir: string;
  /** What servers write to their standard error goes there, never to the terminal. */
  stderr(server: string, line: string): void;
  redact(text: string): string;
  /** May this command line be started? Null = yes, else why not and what to do. */
  checkCommand(commandLine: string, server: string): Promise<string | null>;
  /** Absent: servers get no answers from a model. */
  sample?(call: SamplingCall): Promise<SamplingAnswer>;
  readonly osvUrl?: string;
}

export type ServerState =
  | "waiting"
  | "connecting"
  | "connected"
  | "idle"
  | "reconnecting"
  | "parked"
  | "needs_reauth"
  | "blocked"
  | "failed"
  | "disabled"
  | "closed";

export interface ServerStatus {
  readonly name: string;
  readonly state: ServerState;
  /** Why it is not connected; null when there is nothing to say. */
  readonly reason: string | null;
  readonly tools: number;
  /** Things the user should look at: suspicious descriptions, skipped tools. */
  readonly warnings: readonly string[];
  /** Those of them that wait for the user: what tools say of themselves changed, or was withheld. */
  readonly changes: readonly string[];
}
