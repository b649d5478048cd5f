// `hermes backup` and `hermes import`: a home as one file, and back.
import { mkdir, readFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import type { Command } from "commander";
import { NEW_CONFIG } from "../../home/config/schema.ts";
import { runningGateway } from "../../home/profiles.ts";
import { exists, isDirectory } from "../../kit/files.ts";
import { plural } from "../../kit/formats.ts";
import { checkBackup, restoreBackup, takeSnapshot, writeBackup } from "../../sessions/home-archive.ts";
import { type CliContext, ExitError } from "../cli-context.ts";
import { print } from "./present.ts";

interface BackupFlags {
  readonly output?: string;
  readonly quick?: true;
  readonly label?: string;
}

export function define(command: Command, ctx: CliContext): void {
  command
    .description("Back up the home and all profiles to one zip file. It contains your keys: keep it private.")
    .option("-o, --output <FILE>", "output file (default: ~/hermes-backup-DATE-TIME.zip)")
    .option("-q, --quick", "only conversations, settings and keys, as a folder in state-snapshots/")
    .option("-l, --label <TEXT>", "with --quick: a name for the snapshot")
    .addHelpText(
      "after",
      "\nNot included: database logs, git and npm caches, backups, checkpoints, snapshots, symlinks.\nTo restore: hermes import FILE",
    )
    .action((flags: BackupFlags) => backUp(flags, ctx));
}

async function backUp({ output, quick, label }: BackupFlags, ctx: CliContext): Promise<void> {
  const { home } = ctx;
  if (label !== undefined && !quick) throw new ExitError(2, "--label requires --quick.");
  if (label !== undefined && !/^[\w.-]{1,40}$/.test(label))
    throw new ExitError(2, 'A label may contain letters, digits, "-", "_" and ".", at most 40 characters.');
  if (quick) {
    if (output !== undefined) throw new ExitError(2, "--output cannot be used with --quick.");
    return snapshot(label, ctx);
  }
  const path = await targetOf(output, ctx);
  const report = await writeBackup(home.paths.root, path);
  for (const name of report.failed) ctx.io.err(`⚠ not in the backup: ${name}\n`);
  const databases = plural(report.databases, "database");
  print(ctx, `✓ ${plural(report.files, "file")} (${databases}), ${sizeText(report.bytes)}: ${home.display(path)}`);
  print(ctx, "It contains your keys and conversations. To restore it: hermes import FILE");
  if (report.failed.length > 0) throw new ExitError(1, `${plural(report.failed.length, "file")} could not be read.`);
}

const sizeText = (bytes: number) => (bytes < 1e6 ? `${Math.ceil(bytes / 1000)} KB` : `${(bytes / 1e6).toFixed(1)} MB`);

async function snapshot(label: string | undefined, ctx: CliContext): Promise<void> {
  const id = `${stamp(ctx, "")}${label === undefined ? "" : `-${label}`}`;
  const { path, files } = await takeSnapshot(ctx.home.paths.dir, id, label);
  print(ctx, `✓ ${plural(Object.keys(files).length, "file")} copied to ${ctx.home.display(path)}`);
}

async function targetOf(output: string | undefined, ctx: CliContext): Promise<string> {
  const name = `hermes-backup-${stamp(ctx, "-")}.zip`;
  if (output === undefined) return join(ctx.home.osHome, name);
  const path = resolve(ctx.cwd, output);
  if (/[\\/]$/.test(output)) await mkdir(path, { recursive: true });
  return (await isDirectory(path)) ? join(path, name) : path;
}

/** Local time: `2026-01-31-235959`, or `20260131-235959`. */
function stamp({ clock }: CliContext, between: string): string {
  const now = new Date(clock.now());
  const two = (part: number) => String(part).padStart(2, "0");
  const day = [now.getFullYear(), two(now.getMonth() + 1), two(now.getDate())].join(between);
  return `${day}-${[now.getHours(), now.getMinutes(), now.getSeconds()].map(two).join("")}`;
}

export function defineImport(command: Command, ctx: CliContext): void {
  command
    .description("Restore a home from a backup. Files in the backup replace those in the home; other files are kept.")
    .argument("<ZIP>", "a zip file from hermes backup")
    .option("-f, --force", "do not ask for confirmation")
    .action((file: string, flags: { force?: true }) => restore(resolve(ctx.cwd, file), flags, ctx));
}

/** A home that was made by this very start holds nothing to lose. */
async function isInUse(root: string): Promise<boolean> {
  const config = await readFile(join(root, "config.yaml"), "utf8").catch(() => NEW_CONFIG);
  return config !== NEW_CONFIG || (await exists(join(root, "state.db"))) || (await exists(join(root, ".env")));
}

async function restore(path: string, { force }: { readonly force?: true }, ctx: CliContext): Promise<void> {
  const { home, io } = ctx;
  const { root } = home.paths;
  const pid = await runningGateway(root);
  if (pid !== null) throw new ExitError(1, `A gateway is running (pid ${pid}) and is using this home. Stop it first.`);
  const backup = await checkBackup(path);
  if (!force && (await isInUse(root))) {
    const question = `Replace what is in ${home.display(root)} with ${plural(backup.entries.length, "file")} of ${home.display(path)}?`;
    const answer = await io.question(`${question} [y/N] `);
    if (answer === null) throw new ExitError(1, `${question} Not a terminal; pass --force to confirm.`);
    if (!/^y(?:es)?$/i.test(answer.trim())) throw new ExitError(1, "Nothing was changed.");
  }
  const before = await takeSnapshot(root, `${stamp(ctx, "")}-before-import`, "before-import");
  const { files, databases } = await restoreBackup(backup, root, { log: home.log.child("sessions"), clock: ctx.clock });
  print(ctx, `✓ Restored ${plural(files, "file")} (${plural(databases, "database")}) to ${home.display(root)}`);
  if (Object.keys(before.files).length > 0) print(ctx, `Previous content: ${home.display(before.path)}`);
  if (backup.refused.length > 0) {
    const some = backup.refused.slice(0, 3).map((name) => JSON.stringify(name));
    const more = backup.refused.length > 3 ? ", …" : "";
    io.err(`⚠ skipped ${plural(backup.refused.length, "file")} of the archive: ${some.join(", ")}${more}\n`);
  }
}
