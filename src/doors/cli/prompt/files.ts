// `hermes prompt files`: every file that could have spoken to the model, and why it did or did not.
import { inspectPrompt } from "../../../agent/inspect-prompt.ts";
import type { ContextFileReport } from "../../../prompt/contract.ts";
import type { CliContext } from "../context.ts";
import { print, printJson } from "../session-command.ts";
import { oneLine } from "../session-table.ts";
import { folderOf } from "./folder.ts";
import { withCommas } from "./measure.ts";
import { table } from "./table.ts";

export async function files(flags: { cwd?: string; json?: true }, ctx: CliContext): Promise<void> {
  const cwd = await folderOf(flags.cwd, ctx);
  const { build, notes } = await inspectPrompt({ home: ctx.home, clock: ctx.clock, cwd, platform: "cli" });
  const { contextFiles, warnings } = build;
  if (flags.json) return printJson(ctx, { cwd, files: contextFiles, warnings: [...warnings, ...notes] });
  for (const note of notes) ctx.io.err(`⚠ ${note}\n`);
  if (contextFiles.length === 0) return print(ctx, `No context files for ${ctx.home.display(cwd)}.`);
  const rows = contextFiles.map((file) => [
    ...[file.status, ctx.home.display(file.path), withCommas(file.chars), withCommas(file.keptChars)],
    ...[withCommas(file.tokens), about(file)],
  ]);
  print(ctx, table([["status", "file", "chars", "kept", "tokens", ""], ...rows], [2, 3, 4]));
  for (const file of contextFiles) for (const line of findings(file)) print(ctx, line);
}

const about = ({ reason, findings: found }: ContextFileReport) =>
  reason ?? [...new Set(found.map(({ id }) => id))].join(", ");

function findings({ path, findings: found }: ContextFileReport): readonly string[] {
  if (found.length === 0) return [];
  return ["", `${path}:`, ...found.map(findingLine)];
}

export function findingLine(found: ContextFileReport["findings"][number]): string {
  const { id, line, column, excerpt, weight } = found;
  return `  line ${line}, column ${column}: ${id} (${weight})  ${oneLine(excerpt)}`;
}
