/** The verdict on one command line, before anything runs. */
export interface CommandVerdict {
  readonly verdict: "allow" | "ask" | "block";
  /** The exact key of the hardline or danger table; allowlists store it. Null when nothing was found. */
  readonly category: string | null;
  readonly reason: string;
  /** Blocked for good: no mode, flag or answer lifts it. */
  readonly hardline: boolean;
}

declare const decided: unique symbol;

/**
 * A command line that may run, because a decision was made about exactly this text.
 *
 * - Only this room makes them (`clearCommand` is for safety/ alone; the house rules see to it): the guard for what it approved, the
 *   rewriters for what they made of one, `own-commands.ts` for fixed errands of the program.
 * - An environment runs nothing else. A value that merely looks like one is refused there too.
 */
export interface ClearedCommand {
  readonly text: string;
  readonly [decided]: true;
}

const issued = new WeakSet<object>();

export function clearCommand(text: string): ClearedCommand {
  const cleared = Object.freeze({ text });
  issued.add(cleared);
  return cleared as ClearedCommand; // the brand exists in types alone; `issued` is what counts at run time
}

/** The text to run. Throws for anything that was not cleared, so that a cast opens no way around the decision. */
export function clearedText(command: ClearedCommand): string {
  if (typeof command !== "object" || !issued.has(command))
    throw new TypeError("a command reached an environment without a decision about it; ask the guard first");
  return command.text;
}

interface OutcomeFacts {
  readonly description: string | null;
  readonly patternKey: string | null;
}

export interface ApprovedCommand extends OutcomeFacts {
  readonly approved: true;
  /** What an environment takes. */
  readonly cleared: ClearedCommand;
  /** Something worth knowing all the same, or empty. */
  readonly message: string;
  readonly userApproved?: boolean;
  /** The approving model said yes, to this command only. */
  readonly smartApproved?: boolean;
}

export interface RefusedCommand extends OutcomeFacts {
  readonly approved: false;
  /** For the model: what, why, and not to retry or rephrase. */
  readonly message: string;
  readonly hardline?: boolean;
  readonly userDeny?: boolean;
  readonly outcome?: "denied" | "timeout";
  /** Nobody could be asked yet: the question stays open, and the model is told to wait for the user. */
  readonly pending?: boolean;
}

/** What the decision flow answered for one command in one run. */
export type ApprovalOutcome = ApprovedCommand | RefusedCommand;

/** The one check in front of every command. Tools hold it through their context. */
export interface CommandGuard {
  /** `cwd`: where it would begin, if that is known; `rm -r *` is one thing in a project and another in `/`. */
  decide(command: string, signal: AbortSignal, cwd?: string): Promise<ApprovalOutcome>;
  /** The same for a script. What is cleared is the command that runs it, given the script on its input. Absent: no scripts here. */
  decideCode?(code: string, signal: AbortSignal): Promise<ApprovalOutcome>;
}
