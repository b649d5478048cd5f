import { spawn } from "node:child_process";
import type { OpenHome } from "../home/open.ts";

const LIMIT_MS = 30_000;
const MOST_CHARS = 200_000;

export interface LineResult {
  readonly output: string;
  readonly errors: string;
  /** Null when it had to be stopped. */
  readonly code: number | null;
}

/** Runs a shell line of the user's own, for at most 30 seconds. */
export function runLine(
  line: string,
  { home, cwd }: { readonly home: Pick<OpenHome, "environment">; readonly cwd: string },
): Promise<LineResult> {
  const shell = process.platform === "win32" ? { shell: true } : { shell: "/bin/sh" };
  return new Promise((resolve, reject) => {
    const child = spawn(line, {
      ...shell,
      cwd,
      env: { ...home.environment() },
      stdio: ["ignore", "pipe", "pipe"],
      detached: process.platform !== "win32",
    });
    const stop = () => {
      // The shell's children too: they are a group of their own.
      if (child.pid !== undefined && process.platform !== "win32") process.kill(-child.pid, "SIGKILL");
      else child.kill("SIGKILL");
    };
    const timer = setTimeout(stop, LIMIT_MS);
    let output = "";
    let errors = "";
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      if (output.length < MOST_CHARS) output += text;
    });
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      if (errors.length < MOST_CHARS) errors += text;
    });
    child.on("error", reject);
    child.on("close", (code) => {
      clearTimeout(timer);
      resolve({ output, errors, code });
    });
  });
}
