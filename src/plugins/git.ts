import { spawn } from "node:child_process";

/** Runs git without a shell and without ever asking for a password. Rejects with what it said. */
export function git(
  args: readonly string[],
  options: { readonly cwd: string; readonly env: Readonly<Record<string, string>> },
): Promise<string> {
  return new Promise((resolve, reject) => {
    // `ext::` and the like are programs in the shape of an address.
    const safe = ["-c", "protocol.ext.allow=never", "-c", "core.hooksPath=/dev/null", ...args];
    const env = { ...options.env, GIT_TERMINAL_PROMPT: "0" };
    const child = spawn("git", safe, { cwd: options.cwd, env, stdio: ["ignore", "pipe", "pipe"] });
    let out = "";
    let said = "";
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      out += text;
    });
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      said += text;
    });
    child.on("error", (error) => reject(new Error(`git could not be started: ${error.message}`)));
    child.on("close", (code) => {
      if (code === 0) resolve(out);
      else reject(new Error(reasonIn(said) ?? `git ended with code ${code}`));
    });
  });
}

/** What git calls fatal; advice for people at a terminal follows it. */
function reasonIn(said: string): string | null {
  const lines = said.split("\n").filter((line) => line.trim() !== "");
  return lines.find((line) => /^(?:fatal|error):/.test(line)) ?? lines.at(-1) ?? null;
}
