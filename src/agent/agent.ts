import type { AgentEvent, TurnOutcome, UserInput } from "./events.ts";

/**
 * One conversation.
 *
 * - One turn at a time: `run` while a turn runs throws `AgentBusyError` on its first step.
 * - `run` yields events in order and always ends with exactly one `done`; it does not throw for what model, network or tools did.
 * - Events nobody reads do not stop the turn; leaving the loop early (`break`) interrupts it.
 * - What the user said is stored before it is acted on; calls and results are stored before the next model call.
 */
export interface AgentFace {
  readonly sessionId: string;
  chat(text: string): Promise<string>;
  run(input: UserInput, options?: { signal?: AbortSignal; maxIterations?: number }): AsyncIterable<AgentEvent>;
  interrupt(reason?: string): void;
  /** False for blank text. */
  steer(text: string): boolean;
  readonly busy: boolean;
  readonly notices: AsyncIterable<AgentEvent>;
  readonly lastOutcome: TurnOutcome | null;
  /** Ends children, background processes and environments. Idempotent. */
  close(): Promise<void>;
}

export type Agent = AgentFace;

export class AgentBusyError extends Error {
  override name = "AgentBusyError";
}
