// `hermes prompt hints`: which sub-directory rules a series of tool calls would bring up. One tracker, as in a conversation.
import { createInterface } from "node:readline";
import { inspectPrompt } from "../../../agent/inspect-prompt.ts";
import { SubdirectoryHints } from "../../../prompt/hints.ts";
import { readingPorts } from "../../../prompt/reading-ports.ts";
import { type CliContext, ExitError } from "../context.ts";
import { print } from "../session-command.ts";
import { folderOf } from "./folder.ts";

export async function hints(flags: { cwd?: string }, ctx: CliContext): Promise<void> {
  const { home, clock } = ctx;
  const cwd = await folderOf(flags.cwd, ctx);
  const { userHome, files, isDenied, scan, trusted } = await readingPorts(ctx.home);
  const { build } = await inspectPrompt({ home, clock, cwd, platform: "cli" });
  const tracker = new SubdirectoryHints({
    ...{ cwd, userHome, hermesHome: home.paths.dir, files, isDenied, scan, trusted },
    reaction: home.config().security.context_scan,
    knownHashes: build.contextHashes,
    onWarning: (warning) => ctx.io.err(`⚠ ${warning}\n`),
  });
  for await (const line of createInterface({ input: ctx.io.stdin })) {
    if (line.trim() === "") continue;
    const { tool, args } = readCall(line);
    print(ctx, JSON.stringify(await tracker.check(tool, args)));
  }
}

function readCall(line: string): { tool: string; args: Readonly<Record<string, unknown>> } {
  const wrong = () =>
    new ExitError(
      2,
      `Not a call: ${line.slice(0, 80)}\nOne JSON object per line: {"tool": "read_file", "args": {"path": "a/b"}}`,
    );
  let call: unknown;
  try {
    call = JSON.parse(line);
  } catch {
    throw wrong();
  }
  if (typeof call !== "object" || call === null || !("tool" in call) || typeof call.tool !== "string") throw wrong();
  const args = "args" in call && typeof call.args === "object" && call.args !== null ? call.args : {};
  return { tool: call.tool, args: { ...args } };
}
