// A program run for its output: git, python3. Never a shell.
import { execFile } from "node:child_process";

export interface ProgramResult {
  /** Null when it did not run to its end. */
  readonly exitCode: number | null;
  readonly stdout: string;
  readonly stderr: string;
  readonly timedOut: boolean;
}

/** Never rejects: a program that is not there has no exit code. */
export type RunProgram = (
  program: string,
  args: readonly string[],
  options: { readonly cwd: string; readonly timeoutMs: number },
) => Promise<ProgramResult>;

const MOST_BYTES = 16 * 1024 * 1024;

export function programRunner(environment: Readonly<Record<string, string | undefined>>): RunProgram {
  return (program, args, { cwd, timeoutMs }) =>
    new Promise((resolve) => {
      const settings = {
        cwd,
        env: { ...environment },
        timeout: timeoutMs,
        killSignal: "SIGKILL",
        maxBuffer: MOST_BYTES,
        encoding: "utf8",
        windowsHide: true,
      } as const;
      try {
        execFile(program, args, settings, (error, stdout, stderr) => {
          const exitCode = error === null ? 0 : typeof error.code === "number" ? error.code : null;
          resolve({ exitCode, stdout, stderr, timedOut: error?.killed === true && error.signal === "SIGKILL" });
        }).stdin?.end();
      } catch (error) {
        // A NUL byte in an argument is refused before anything starts.
        resolve({ exitCode: null, stdout: "", stderr: String(error), timedOut: false });
      }
    });
}
