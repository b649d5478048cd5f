// The ways a process is ended from outside, and by its own mistakes. Whichever it is, the terminal is given back first.

const CODES = { SIGINT: 130, SIGTERM: 143, SIGHUP: 129 } as const;
export const HANGUP = CODES.SIGHUP;
type Watched = keyof typeof CODES;

export interface ProcessEnds {
  /** Ask the agent to stop and leave with this code. */
  onSignal(code: number): void;
  /** The terminal must be usable when this returns; the process ends right after. Resolves when the log is written. */
  onCrash(error: unknown): Promise<void>;
}

/** Returns how to stop watching. A second signal ends the process at once; a hang-up comes in many pieces and counts once. */
export function watchProcess({ onSignal, onCrash }: ProcessEnds): () => void {
  let asked = false;
  const end = (code: number) => {
    if (asked && code !== HANGUP) process.exit(code);
    if (!asked) onSignal(code);
    asked = true;
  };
  const onEnd = (signal: Watched) => end(CODES[signal]);
  const onHangup = () => end(HANGUP);
  const onUncaught = (error: unknown) => {
    // A terminal that is gone cannot be written to; that is a hang-up and no defect.
    if (isGone(error)) return onHangup();
    void onCrash(error).finally(() => process.exit(1));
  };
  const signals = Object.keys(CODES) as Watched[]; // the keys just written
  for (const signal of signals) process.on(signal, onEnd);
  process.stdin.on("end", onHangup);
  process.on("uncaughtException", onUncaught);
  return () => {
    for (const signal of signals) process.off(signal, onEnd);
    process.stdin.off("end", onHangup);
    process.off("uncaughtException", onUncaught);
  };
}

const isGone = (error: unknown) => {
  const { code, syscall } = (error ?? {}) as NodeJS.ErrnoException; // read only
  return code === "EIO" && (syscall === "read" || syscall === "write");
};
