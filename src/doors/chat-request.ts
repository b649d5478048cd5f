// What a user asked for on the command line, for any door that holds a conversation.
import type { AgentWish } from "../agent/wish.ts";

export interface ChatRequest extends AgentWish {
  readonly verbose: boolean;
  /** The terminal takes colour. */
  readonly color: boolean;
}

export type { ResumeWish } from "../agent/wish.ts";
