// What the MCP server stands on, what one of its tools is, and how a call is refused.
import type { z } from "zod";
import type { OpenHome } from "../../home/open.ts";
import type { Clock } from "../../kit/clock.ts";
import type { SessionStore } from "../../sessions/store.ts";

export interface McpParts {
  readonly home: OpenHome;
  readonly store: SessionStore;
  readonly clock: Clock;
  /** Where conversations work that have no folder of their own. */
  readonly cwd: string;
}

/** What a client may do, decided by how it came in. */
export interface Admission {
  /** It may send, answer approvals and ask the agent, not only read. */
  readonly acts: boolean;
  /** It has proved who it is: over HTTP with a key, over stdio by having started us. */
  readonly isKnown: boolean;
}

/** One call of a tool. */
export interface ToolCall {
  /** Aborts when the client cancels the call or is gone. */
  readonly signal: AbortSignal;
  readonly admission: Admission;
  /** A line for a client that shows progress. */
  progress(message: string): void;
}

/**
 * One tool, whole.
 *
 * - `args` is the JSON Schema that clients see and the check of what they send; whole numbers out of range are moved into it.
 * - `run` resolves to what the client reads as JSON, and rejects with a `ToolError` for what it can set right.
 */
export interface ServerTool<S extends z.ZodObject = z.ZodObject> {
  readonly name: string;
  readonly title: string;
  readonly description: string;
  readonly args: S;
  /** It does something: not offered to clients that may only read. */
  readonly acts?: true;
  run(args: z.infer<S>, call: ToolCall): Promise<object>;
}

/** Keeps the types of the arguments together; a list of tools has none. */
export const tool = <S extends z.ZodObject>(one: ServerTool<S>): ServerTool => one as unknown as ServerTool; // `run` only ever gets what `args` let through

/** A call that cannot be done, in words for the client. */
export class ToolError extends Error {
  override name = "ToolError";
  readonly code: string;
  constructor(code: string, message: string) {
    super(message);
    this.code = code;
  }
}
