/** The verdict on one command line, before anything runs. */
export interface CommandVerdict {
  readonly verdict: "allow" | "ask" | "block";
  /** The exact key of the hardline or danger table; allowlists store it. Null when nothing was found. */
  readonly category: string | null;
  readonly reason: string;
  /** Blocked for good: no mode, flag or answer lifts it. */
  readonly hardline: boolean;
}

/** What the decision flow answered for one command in one run. Field names are the format that models see. */
export interface ApprovalOutcome {
  readonly approved: boolean;
  /** For the model when refused: what, why, and not to retry or rephrase. */
  readonly message: string;
  readonly description: string | null;
  readonly patternKey: string | null;
  readonly hardline?: boolean;
  readonly userDeny?: boolean;
  readonly userApproved?: boolean;
  /** The approving model said yes, to this command only. */
  readonly smartApproved?: boolean;
  readonly outcome?: "denied" | "timeout";
  /** Nobody could be asked yet: the question stays open, and the model is told to wait for the user. */
  readonly pending?: boolean;
}

/** The one check in front of every command. Tools hold it through their context. */
export interface CommandGuard {
  decide(command: string, signal: AbortSignal): Promise<ApprovalOutcome>;
}
