// Ctrl+Z: the terminal is given back, the program stops, and `fg` brings everything as it was.

export interface Suspended {
  /** Gives the terminal back to the shell. */
  release(): void;
  /** Takes it again. */
  reclaim(): void;
}

/** The whole process group stops, so that a launcher in front of us does not keep the shell waiting; tools run in groups of their own. */
export function suspend({ release, reclaim }: Suspended): boolean {
  if (process.platform === "win32") return false;
  let back = false;
  const resume = () => {
    if (back) return;
    back = true;
    process.off("SIGCONT", resume);
    clearTimeout(timer);
    reclaim();
  };
  release();
  process.once("SIGCONT", resume);
  process.kill(0, "SIGTSTP");
  // Without a shell that does job control the stop has no effect; then the screen simply comes back.
  const timer = setTimeout(resume, 300);
  return true;
}
