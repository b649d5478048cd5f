// `hermes prompt files`: every file that could have spoken to the model, and why it did or did not.

import { readFile, realpath } from "node:fs/promises";
import { resolve } from "node:path";
import { createInterface } from "node:readline";
import { inspectPrompt } from "../../../agent/inspect-prompt.ts";
import {
  contextTrustFile,
  readContextTrust,
  trustContextFile,
  untrustContextFile,
} from "../../../home/context-trust.ts";
import { strip } from "../../../kit/code-points.ts";
import { messageOf } from "../../../kit/errors.ts";
import type { ContextFileReport } from "../../../prompt/contract.ts";
import { decodeText } from "../../../prompt/files/read.ts";
import { sha256 } from "../../../prompt/fingerprint.ts";
import { SubdirectoryHints } from "../../../prompt/hints.ts";
import { readingPorts } from "../../../prompt/reading-ports.ts";
import { describeExpansion, expandReferences } from "../../../prompt/references/expand.ts";
import { judgeFindings, scanForThreats, type ThreatScope } from "../../../safety/threats/scan.ts";
import { rulesAbove } from "../../../tools/files/search.ts";
import { type CliContext, ExitError, readAllBytes } from "../../cli-context.ts";
import { confirm, oneLine, print, printJson, table } from "../present.ts";
import { folderOf, withCommas } from "./tables.ts";

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

function findingLine(found: ContextFileReport["findings"][number]): string {
  const { id, line, column, excerpt, weight } = found;
  return `  line ${line}, column ${column}: ${id} (${weight})  ${oneLine(excerpt)}`;
}

// `hermes prompt hints`: which sub-directory rules a series of tool calls would load. One tracker, as in a conversation.

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

// `hermes prompt refs`: a message with what it points at, as the model would get it.

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
  const { injectedTokens, pictures: _, ...rest } = expansion;
  if (flags.json) return printJson(ctx, { ...rest, injected_tokens: injectedTokens });
  if (expansion.blocked) throw new ExitError(1, expansion.warnings.join("\n"));
  print(ctx, expansion.message);
  if (expansion.references.length > 0) ctx.io.err(`${describeExpansion(expansion)}\n`);
}

// `hermes prompt scan`: the threat scan on one text, for people who write context files.

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
  flagged: "Only one weak sign: as a context file it would be loaded with a warning.",
  blocked: "As a context file it would not be loaded. To load it anyway: hermes prompt trust FILE",
} as const;

async function bytesOf(file: string, ctx: CliContext): Promise<Uint8Array> {
  try {
    return file === "-" ? await readAllBytes(ctx.io.stdin) : await readFile(resolve(ctx.cwd, file));
  } catch (error) {
    throw new ExitError(2, `Cannot read ${file}: ${messageOf(error)}`);
  }
}

// `hermes prompt trust`: the user trusts a file that looks suspicious, for exactly these bytes.

export async function trust(file: string, flags: { yes?: true; json?: true }, ctx: CliContext): Promise<void> {
  const path = await realPath(file, ctx);
  const bytes = await readFile(path).catch((error) => {
    throw new ExitError(1, `Cannot read ${file}: ${messageOf(error)}`);
  });
  const text = decodeText(bytes);
  if (text === null)
    throw new ExitError(1, `${file} is not UTF-8 text; it is never loaded, so there is nothing to trust.`);
  const findings = scanForThreats(strip(text), "context");
  if (!flags.json) for (const finding of findings) ctx.io.err(`${findingLine(finding).trimStart()}\n`);
  if (findings.length === 0 && !flags.json)
    ctx.io.err("The scan found nothing; the file is loaded without your approval.\n");
  await confirm(ctx, `Trust ${ctx.home.display(path)} as it is now?`, flags);
  const entry = {
    path,
    sha256: sha256(bytes),
    ids: [...new Set(findings.map(({ id }) => id))],
    trusted_at: new Date(ctx.clock.now()).toISOString(),
  };
  await trustContextFile(ctx.home.paths, entry);
  if (flags.json) return printJson(ctx, entry);
  print(
    ctx,
    `Trusted until it changes. New conversations load it; ${ctx.home.display(contextTrustFile(ctx.home.paths))} records this.`,
  );
}

export async function untrust(file: string, flags: { json?: true }, ctx: CliContext): Promise<void> {
  const { paths } = ctx.home;
  const given = resolve(ctx.cwd, file);
  // A deleted file may still be listed.
  const path = await realPath(file, ctx).catch(() => given);
  const removed = (await untrustContextFile(paths, path)) || (await untrustContextFile(paths, given));
  if (flags.json) return printJson(ctx, { path, removed });
  if (removed) return print(ctx, `${ctx.home.display(path)} is no longer trusted.`);
  const known = (await readContextTrust(paths)).map((entry) => `  ${ctx.home.display(entry.path)}`);
  throw new ExitError(
    1,
    [`${file} was not trusted.`, ...(known.length > 0 ? ["Trusted files:", ...known] : [])].join("\n"),
  );
}

async function realPath(file: string, ctx: CliContext): Promise<string> {
  return realpath(resolve(ctx.cwd, file)).catch((error) => {
    throw new ExitError(1, `Cannot read ${file}: ${messageOf(error)}`);
  });
}
