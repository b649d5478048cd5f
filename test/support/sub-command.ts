// One sub-command of `hermes`, run in this process on an opened home: what it printed, and its exit code.
import assert from "node:assert/strict";
import { Command } from "commander";
import { type CliContext, ExitError } from "../../src/doors/cli-context.ts";
import type { OpenHome } from "../../src/home/open.ts";
import { systemClock } from "../../src/kit/clock.ts";

interface Outcome {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

interface SubCommandOptions {
  readonly home: OpenHome;
  readonly cwd: string;
  /** What the user types when asked. Absent: standard input is no terminal. */
  readonly typed?: ((question: string) => string | null) | undefined;
  /** What a question gets where standard input is no terminal. */
  readonly answer?: string | null;
  readonly rerun?: CliContext["rerun"];
}

/** The home is closed at the end. */
export async function runSubCommand(
  define: (command: Command, ctx: CliContext) => void,
  args: readonly string[],
  { home, cwd, typed, answer = null, rerun }: SubCommandOptions,
): Promise<Outcome> {
  const out: string[] = [];
  const err: string[] = [];
  const unused = () => assert.fail("not needed here");
  const command = new Command("hermes").exitOverride();
  define(command, {
    home,
    io: {
      out: (text) => void out.push(text),
      err: (text) => void err.push(text),
      stdin: process.stdin,
      stdinIsTerminal: typed !== undefined,
      stdoutIsTerminal: false,
      stderrIsTerminal: false,
      color: false,
      columns: 80,
      question: async (question) => typed?.(question) ?? answer,
      secret: async (question) => typed?.(question) ?? null,
      choose: async () => null,
    },
    clock: systemClock,
    cwd,
    commands: new Set(),
    tree: async () => command,
    store: unused,
    conversationStore: unused,
    rerun: rerun ?? unused,
  });
  try {
    await command.parseAsync([...args], { from: "user" });
    return { code: 0, out: out.join(""), err: err.join("") };
  } catch (error) {
    if (!(error instanceof ExitError)) throw error;
    return { code: error.exitCode, out: out.join(""), err: `${err.join("")}${error.message}\n` };
  } finally {
    await home.close();
  }
}
