// `hermes prompt trust`: the user's word for a file that looks suspicious. It is for these bytes and no others.
import { readFile, realpath } from "node:fs/promises";
import { resolve } from "node:path";
import {
  contextTrustFile,
  readContextTrust,
  trustContextFile,
  untrustContextFile,
} from "../../../home/context-trust.ts";
import { strip } from "../../../kit/strip.ts";
import { decodeText } from "../../../prompt/files/decode.ts";
import { sha256 } from "../../../prompt/fingerprint.ts";
import { scanForThreats } from "../../../safety/threats/scan.ts";
import { type CliContext, ExitError } from "../context.ts";
import { confirm, print, printJson, reasonOf } from "../session-command.ts";
import { findingLine } from "./files.ts";

export async function trust(file: string, flags: { yes?: true; json?: true }, ctx: CliContext): Promise<void> {
  const path = await realPath(file, ctx);
  const bytes = await readFile(path).catch((error) => {
    throw new ExitError(1, `Cannot read ${file}: ${reasonOf(error)}`);
  });
  const text = decodeText(bytes);
  if (text === null)
    throw new ExitError(1, `${file} is not UTF-8 text; it is never loaded, so there is nothing to trust.`);
  const findings = scanForThreats(strip(text), "context");
  if (!flags.json) for (const finding of findings) ctx.io.err(`${findingLine(finding).trimStart()}\n`);
  if (findings.length === 0 && !flags.json)
    ctx.io.err("The scan finds nothing in it; it is loaded without your word.\n");
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
    `Trusted until it changes. New conversations load it; ${ctx.home.display(contextTrustFile(ctx.home.paths))} has the record.`,
  );
}

export async function untrust(file: string, flags: { json?: true }, ctx: CliContext): Promise<void> {
  const { paths } = ctx.home;
  const given = resolve(ctx.cwd, file);
  // A file that is gone can still be on the list.
  const path = await realPath(file, ctx).catch(() => given);
  const removed = (await untrustContextFile(paths, path)) || (await untrustContextFile(paths, given));
  if (flags.json) return printJson(ctx, { path, removed });
  if (removed) return print(ctx, `${ctx.home.display(path)} is no longer trusted.`);
  const known = (await readContextTrust(paths)).map((entry) => `  ${ctx.home.display(entry.path)}`);
  throw new ExitError(
    1,
    [`${file} was not trusted.`, ...(known.length > 0 ? ["Trusted are:", ...known] : [])].join("\n"),
  );
}

async function realPath(file: string, ctx: CliContext): Promise<string> {
  return realpath(resolve(ctx.cwd, file)).catch((error) => {
    throw new ExitError(1, `Cannot read ${file}: ${reasonOf(error)}`);
  });
}
