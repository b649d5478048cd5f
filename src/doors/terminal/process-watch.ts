// The ways a process is ended from outside, and by its own mistakes. Whichever it is, the terminal is given back first.

const CODES = { SIGTERM: 143, SIGHUP: 129 } as const;

export interface ProcessEnds {
  /** Ask the agent to stop and leave with this code. */
  onSignal(code: number): void;
  /** The terminal must be usable when this returns; the process ends right after. Resolves when the log is written. */
  onCrash(error: unknown): Promise<void>;
}

/** Returns how to stop watching. A second signal ends the process at once. */
export function watchProcess({ onSignal, onCrash }: ProcessEnds): () => void {
  let asked = false;
  const end = (code: number) => {
    if (asked) process.exit(code);
    asked = true;
    onSignal(code);
  };
  const onTerm = () => end(CODES.SIGTERM);
  const onHangup = () => end(CODES.SIGHUP);
  const onUncaught = (error: unknown) => {
    // A terminal that is gone cannot be written to; that is a hang-up and no defect.
    if (isGone(error)) return end(CODES.SIGHUP);
    void onCrash(error).finally(() => process.exit(1));
  };
  process.on("SIGTERM", onTerm);
  process.on("SIGHUP", onHangup);
  process.stdin.on("end", onHangup);
  process.on("uncaughtException", onUncaught);
  return () => {
    process.off("SIGTERM", onTerm);
    process.off("SIGHUP", onHangup);
    process.stdin.off("end", onHangup);
    process.off("uncaughtException", onUncaught);
  };
}

const isGone = (error: unknown) => {
  const { code, syscall } = (error ?? {}) as NodeJS.ErrnoException; // read only
  return code === "EIO" && (syscall === "read" || syscall === "write");
};
