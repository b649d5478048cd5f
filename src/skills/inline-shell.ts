// Commands inside skills run where the conversation's own commands run: a sandbox that holds the agent holds its skills too.

import { posix, relative } from "node:path";
import type { OpenHome } from "../home/open.ts";
import { messageOf } from "../kit/errors.ts";
import type { ApprovalOutcome } from "../safety/decision.ts";
import type { Environment } from "../sandbox/environment.ts";
import type { InlineShell } from "./preprocess.ts";

export function inlineShell(
  home: OpenHome,
  environment?: Environment,
  /** What commands see besides; an environment has it already. */
  handedOn: Readonly<Record<string, string>> = {},
): InlineShell {
  return async (command, options) => {
    const { decideUnattended } = await import("../safety/verdict.ts");
    const decide = (line: string) =>
      decideUnattended(line, {
        home: home.paths.dir,
        osHome: home.osHome,
        sudoPasswordSet: home.env("SUDO_PASSWORD") !== undefined,
        denyGlobs: home.config().approvals.deny,
      });
    if (environment && environment.kind !== "local") return runInside(environment, home, decide(command), options);
    const { bashSnippets } = await import("./preprocess.ts");
    const { childEnvironment } = await import("../sandbox/child-env.ts");
    return bashSnippets(childEnvironment({ ...handedOn, ...home.environment() }), decide)(command, options);
  };
}

async function runInside(
  environment: Environment,
  home: OpenHome,
  outcome: ApprovalOutcome,
  { cwd, timeoutMs }: Parameters<InlineShell>[1],
): ReturnType<InlineShell> {
  if (!outcome.approved) return { type: "failed", reason: `not run: ${outcome.message}` };
  try {
    const folder = await folderInside(environment, home, cwd);
    if (folder === null)
      return { type: "failed", reason: `not run: the skill's folder cannot be seen from inside (${environment.kind})` };
    const done = await environment.execute(outcome.cleared, {
      cwd: folder,
      timeoutMs,
      stateless: true,
      signal: AbortSignal.timeout(timeoutMs + 5_000),
    });
    if (done.timedOut || done.interrupted) return { type: "timeout" };
    if (done.exitCode !== 0 && done.output === "")
      return { type: "failed", reason: `the command ended with code ${done.exitCode}` };
    return { type: "done", stdout: done.output, stderr: "" };
  } catch (error) {
    return { type: "failed", reason: messageOf(error) };
  }
}

/** Some places show the home under its own path, others a copy of it in the home directory there. */
async function folderInside(environment: Environment, home: OpenHome, folder: string): Promise<string | null> {
  const { files } = environment;
  if (!files) return folder;
  const below = relative(home.paths.dir, folder);
  const copy = below.startsWith("..") ? [] : [posix.join(environment.home, ".hermes", ...below.split(/[\\/]/))];
  for (const path of [folder, ...copy]) if ((await files.facts(path))?.type === "directory") return path;
  return null;
}
