// `hermes prompt refs`: a message with what it points at, as the model would get it.
import { readingPorts } from "../../../prompt/reading-ports.ts";
import { describeExpansion, expandReferences } from "../../../prompt/references/expand.ts";
import { rulesAbove } from "../../../tools/file-ignore.ts";
import { type CliContext, ExitError } from "../context.ts";
import { print, printJson } from "../session-command.ts";
import { folderOf } from "./folder.ts";

interface RefsFlags {
  readonly cwd?: string;
  readonly contextLength: number;
  readonly json?: true;
}

export async function refs(message: string, flags: RefsFlags, ctx: CliContext): Promise<void> {
  const { userHome, files, denyList, run } = await readingPorts(ctx.home);
  const expansion = await expandReferences(message, {
    ...{ userHome, files, denyList, run, contextLength: flags.contextLength },
    cwd: await folderOf(flags.cwd, ctx),
    ignoreRules: rulesAbove,
  });
  const { injectedTokens, ...rest } = expansion;
  if (flags.json) return printJson(ctx, { ...rest, injected_tokens: injectedTokens });
  if (expansion.blocked) throw new ExitError(1, expansion.warnings.join("\n"));
  print(ctx, expansion.message);
  if (expansion.references.length > 0) ctx.io.err(`${describeExpansion(expansion)}\n`);
}
