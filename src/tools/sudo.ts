// Lets a command use sudo with the user's password, which only ever travels through the command's standard input.
import type { ClearedCommand } from "../safety/decision.ts";
import { SUDO_PROBE } from "../safety/own-commands.ts";
import { readSudoPasswords } from "../safety/rewrite.ts";
import type { ExecuteResult } from "../sandbox/environment.ts";
import type { StateKey, ToolContext } from "./toolset/context.ts";

const PROBE_MS = 3000;
const ASK_MS = 45_000;
const REFUSED = /sorry, try again|incorrect password|no password was provided/i;
const NEEDS_PASSWORD = /sudo: (a password is required|a terminal is required|no tty present)/i;

const remembered: StateKey<{ password: string | null }> = {
  name: "sudo",
  create: () => ({ password: null }),
};

export interface SudoCommand {
  readonly command: ClearedCommand;
  /** One password line for each sudo. */
  readonly stdin?: string;
  /** A sudo that had a valid ticket reads no password and leaves it to the command, which may print it. */
  mask?(output: string): string;
  /** One line for the model when sudo could not work. */
  tip(result: ExecuteResult): string;
}

export async function prepareSudo(command: ClearedCommand, ctx: ToolContext): Promise<SudoCommand> {
  const { command: rewritten, count } = readSudoPasswords(command);
  if (count === 0) return { command, tip: () => "" };
  const known = ctx.state.of(remembered);
  const password = (await worksWithoutPassword(ctx)) ? null : await findPassword(known, ctx);
  const tip = (result: ExecuteResult) => {
    if (REFUSED.test(result.output)) known.password = null;
    if (!NEEDS_PASSWORD.test(result.output)) return "";
    return "\nTip: sudo needs a password here. Ask the user to run `hermes config set SUDO_PASSWORD ...`, or do without sudo.";
  };
  if (password === null) return { command, tip };
  return {
    command: rewritten,
    stdin: `${password}\n`.repeat(count),
    ...(password !== "" && { mask: (output: string) => output.replaceAll(password, "***") }),
    tip,
  };
}

/** Also true where there is no sudo at all: the command itself will say so. */
async function worksWithoutPassword({ environment, signal }: ToolContext): Promise<boolean> {
  if (environment.kind !== "local") return false;
  const { exitCode } = await environment.execute(SUDO_PROBE, { timeoutMs: PROBE_MS, signal, stateless: true });
  return exitCode === 0 || exitCode === 127;
}

async function findPassword(known: { password: string | null }, ctx: ToolContext): Promise<string | null> {
  const fromEnvironment = ctx.env?.("SUDO_PASSWORD");
  if (fromEnvironment !== undefined) return fromEnvironment;
  if (known.password === null && ctx.interactive) {
    const signal = AbortSignal.any([ctx.signal, AbortSignal.timeout(ASK_MS)]);
    known.password = (await ctx.ask({ kind: "sudo" }, signal)).text;
  }
  return known.password;
}
