// What a test tells the fake model to do, one step per request.
import type { FinishReason } from "../../../src/llm/messages.ts";

export interface ScriptedCall {
  readonly id?: string;
  readonly name: string;
  /** An object is written as JSON; a string goes out as it is, valid or not. */
  readonly arguments: string | Readonly<Record<string, unknown>>;
}

export interface ScriptedUsage {
  readonly input: number;
  readonly output: number;
  readonly cacheRead?: number;
  readonly cacheWrite?: number;
  readonly reasoning?: number;
  /** What the server says that the call cost, in dollars. */
  readonly cost?: number;
}

/** A normal answer. */
export interface Answer {
  readonly text?: string;
  readonly thinking?: string;
  readonly toolCalls?: readonly ScriptedCall[];
  /** Default: `tool_calls` when there are calls, else `stop`. */
  readonly finish?: FinishReason;
  /** Default: measured from the request, with the simulated prefix cache. `null` = the server reports none. */
  readonly usage?: ScriptedUsage | null;
  /** Characters per text delta; default 5. */
  readonly chunk?: number;
  /** Milliseconds before the first byte. */
  readonly delay?: number;
  /** Milliseconds between events. */
  readonly pace?: number;
}

/** Something that goes wrong. */
export type Fault =
  | {
      readonly fault: "status";
      readonly status: number;
      readonly body?: unknown;
      readonly headers?: Readonly<Record<string, string>>;
    }
  /** The connection breaks after so many events of the answer. */
  | { readonly fault: "cut"; readonly after: number; readonly answer: Answer }
  /** Nothing more comes after so many events; the socket stays open until the client leaves. */
  | { readonly fault: "stall"; readonly after: number; readonly answer: Answer }
  /** The stream ends properly, but its last events (finish reason, end marker) never come. */
  | { readonly fault: "unfinished"; readonly answer: Answer }
  /** Status 200 and a body that is no protocol. */
  | { readonly fault: "garbage"; readonly text: string }
  /** The connection is reset before any answer. */
  | { readonly fault: "reset" };

export type Reply = Answer | Fault;
export type Step = Reply | ((request: RecordedRequest) => Reply | Promise<Reply>);

export type WireName = "chat" | "responses" | "anthropic";

export interface RecordedRequest {
  readonly wire: WireName;
  readonly path: string;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  /** The body as it came. */
  readonly raw: string;
  // biome-ignore lint/suspicious/noExplicitAny: tests look into bodies of three protocols
  readonly body: any;
  /** How many characters of this request's prefix an earlier request had sent already. */
  readonly cachedChars: number;
  /** Characters of tools, system and messages together. */
  readonly promptChars: number;
  /** Resolves when the client closed the connection before the answer was complete. */
  readonly clientLeft: Promise<void>;
}

export const isFault = (reply: Reply): reply is Fault => "fault" in reply;
