// `hermes prompt scan`: the threat scan on one text, for people who write context files.
import { readFile } from "node:fs/promises";
import { resolve } from "node:path";
import { decodeText } from "../../../prompt/files/decode.ts";
import { judgeFindings, scanForThreats, type ThreatScope } from "../../../safety/threats/scan.ts";
import { type CliContext, ExitError } from "../context.ts";
import { readAllBytes } from "../io.ts";
import { print, printJson, reasonOf } from "../session-command.ts";
import { findingLine } from "./files.ts";

export async function scan(file: string, flags: { scope: ThreatScope; json?: true }, ctx: CliContext): Promise<void> {
  const bytes = await bytesOf(file, ctx);
  const text = decodeText(bytes);
  if (text === null) throw new ExitError(2, `${file} is not UTF-8 text; there is nothing to scan.`);
  const findings = scanForThreats(text, flags.scope);
  const verdict = judgeFindings(findings);
  if (flags.json) printJson(ctx, { file, scope: flags.scope, verdict, findings });
  else if (findings.length === 0) print(ctx, "Nothing found.");
  else {
    for (const finding of findings) print(ctx, findingLine(finding).trimStart());
    print(ctx, VERDICTS[verdict]);
  }
  if (findings.length > 0) throw new ExitError(1);
}

const VERDICTS = {
  clean: "",
  flagged: "One weak sign alone: as a context file it would be loaded, with a warning.",
  blocked: "As a context file it would be withheld. If it is fine: hermes prompt trust FILE",
} as const;

async function bytesOf(file: string, ctx: CliContext): Promise<Uint8Array> {
  try {
    return file === "-" ? await readAllBytes(ctx.io.stdin) : await readFile(resolve(ctx.cwd, file));
  } catch (error) {
    throw new ExitError(2, `Cannot read ${file}: ${reasonOf(error)}`);
  }
}
