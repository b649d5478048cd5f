// Side calls to a model: summaries, titles, judgements. Each task may have a model of its own.
import { UserError } from "../../kit/errors.ts";
import type { Task } from "../gate.ts";
import type { AssistantMessage, FinishReason, Message } from "../messages.ts";
import type { ModelRequest, Target, ToolDefinition } from "../wire.ts";

/** Tasks with settings of their own. */
export type AuxTask = Exclude<
  Task,
  "main" | "subagent" | "plugin" | "image_generation" | "text_to_speech" | "transcription"
>;

/** Which model to call, as far as the settings say; resolved to a `Target`. */
export interface ModelSpec {
  readonly provider: string;
  readonly model?: string | undefined;
  readonly baseUrl?: string | undefined;
  readonly apiKey?: string | undefined;
  /** The variable that holds the key, when `apiKey` does not. */
  readonly keyEnv?: string | undefined;
  /** The wire, where the address leaves it open. */
  readonly apiMode?: string | undefined;
  readonly contextLength?: number | undefined;
}

export interface AuxCall {
  readonly task: AuxTask;
  readonly messages: readonly Message[];
  readonly maxTokens?: number | undefined;
  readonly temperature?: number | undefined;
  readonly tools?: readonly ToolDefinition[] | undefined;
  /** The JSON that is wanted. Hosts that cannot be held to it are only asked for it in words. */
  readonly answerSchema?: ModelRequest["answerSchema"];
  /** Seconds; default: the task's own. */
  readonly timeout?: number | undefined;
  readonly signal: AbortSignal;
  /** Exactly there and nowhere else. */
  readonly target?: Target | undefined;
  /** A call that replays a conversation is sent as that one was, so that its prefix is known. */
  readonly like?: Pick<ModelRequest, "promptLayout" | "reasoning" | "cacheTtl" | "overrides"> | undefined;
  /** Explicit choices of the caller; they win over the settings. */
  readonly provider?: string | undefined;
  readonly model?: string | undefined;
  /** Who pays. */
  readonly sessionId: string | null;
  readonly turn?: number | undefined;
  readonly jobId?: string | undefined;
}

export interface AuxAnswer {
  /** What the model said; its reasoning when it said nothing else. */
  readonly text: string;
  readonly message: AssistantMessage;
  readonly finishReason: FinishReason;
  readonly target: Target;
}

export interface AuxChoice {
  readonly target: Target;
  /** It is the conversation's own model. */
  readonly main: boolean;
}

/**
 * - `callAux` rejects with `AuxiliaryError` alone. Every call passes the gate under its task's name and ends with the signal.
 * - `resolveAux` says where a call would go now; null when no model is available. It sends nothing.
 */
export interface AuxiliaryClient {
  callAux(call: AuxCall): Promise<AuxAnswer>;
  resolveAux(
    task: AuxTask,
    request?: { readonly provider?: string; readonly model?: string },
  ): Promise<AuxChoice | null>;
}

/** `no_provider`: no model is available. `over_budget`: a spending limit forbids the call. `overflow`: what was sent does not fit. */
export class AuxiliaryError extends UserError {
  override name = "AuxiliaryError";
  readonly kind: "no_provider" | "over_budget" | "failed" | "overflow" | "aborted";
  constructor(kind: AuxiliaryError["kind"], message: string) {
    super(message);
    this.kind = kind;
  }
}
