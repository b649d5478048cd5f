// `hermes update`: how the program was installed, whether there is a newer one, and getting it with the user's yes.
import { mkdir, readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import type { Command } from "commander";
import { installRoot, VERSION } from "../../home/paths.ts";
import { messageOf } from "../../kit/errors.ts";
import { writeBackup } from "../../sessions/home-archive.ts";
import { type CliContext, ExitError } from "../cli-context.ts";
import {
  type Installation,
  installation,
  lookForUpdate,
  PACKAGE,
  QUIET,
  type Run,
  remember,
  runner,
} from "../update-check.ts";
import { confirm, print } from "./present.ts";

const INSTALL_MS = 15 * 60_000;

/** The programs that an update runs, in order. */
export function updateSteps(where: Installation): readonly (readonly string[])[] {
  if (where.kind === "git") return [["git", "pull", "--ff-only"], ...(where.built ? [["npm", "run", "build"]] : [])];
  const into = where.kind === "npm" && where.prefix !== null ? ["-g", "--prefix", where.prefix] : [];
  return [["npm", "install", ...into, `${PACKAGE}@latest`, ...QUIET]];
}

interface UpdateFlags {
  readonly check?: true;
  readonly yes?: true;
  readonly backup: boolean;
}

export function define(command: Command, ctx: CliContext, root = installRoot()): void {
  command
    .description("Install the latest version the same way this one was installed: from npm, or from git in a clone.")
    .option("--check", "only check; exit code 0 up to date, 1 update available, 2 unknown")
    .option("-y, --yes", "do not ask for confirmation")
    .option("--no-backup", "skip the backup, even if updates.pre_update_backup is set")
    .action((flags: UpdateFlags) => update(flags, ctx, root));
}

async function update(flags: UpdateFlags, ctx: CliContext, root: string): Promise<void> {
  const { home } = ctx;
  const code = flags.check ? 2 : 1;
  if (home.managed)
    throw new ExitError(code, `This installation is managed by ${home.managed.manager}: ${home.managed.how}.`);
  const where = await installation(root);
  if (where.kind === "unknown")
    throw new ExitError(
      code,
      `${home.display(where.root)} is not an npm package or a git clone: update it the way you installed it.`,
    );
  const run = orExit(runner(home));
  const { available, isBehind } = await lookForUpdate(where, run).catch(cannotTell);
  await remember({ available, isBehind }, ctx);
  if (!isBehind) return print(ctx, `✓ ${VERSION} is up to date.`);
  print(ctx, `Update available: ${available} (installed: ${VERSION}).`);
  if (flags.check) throw new ExitError(1);
  await refuseDirty(where, run);
  const steps = updateSteps(where);
  const isKept = flags.backup && home.config().updates.pre_update_backup;
  print(ctx, `In ${home.display(where.root)}:`);
  for (const step of [...(isKept ? [["hermes", "backup"]] : []), ...steps]) print(ctx, `  ${step.join(" ")}`);
  await confirm(ctx, "Run this now?", flags.yes ? { yes: true } : {});
  if (isKept) await keepBackup(ctx);
  for (const [program = "", ...args] of steps) await run(program, args, where.root, INSTALL_MS);
  await remember({ available: "", isBehind: false }, ctx);
  print(ctx, "✓ Updated. hermes version shows what is installed, CHANGELOG.md what is new.");
}

const cannotTell = (error: unknown): never => {
  throw new ExitError(2, messageOf(error));
};

const orExit =
  (run: Run): Run =>
  (...args) =>
    run(...args).catch(cannotTell);

/** Changes of the user's own are not touched, nor mixed with an update. */
async function refuseDirty(where: Installation, run: Run): Promise<void> {
  if (where.kind !== "git") return;
  const changed = await run("git", ["status", "--porcelain", "--untracked-files=no"], where.root);
  if (changed !== "")
    throw new ExitError(1, "The clone has changes that are not committed. Commit or stash them first.");
}

async function keepBackup(ctx: CliContext): Promise<void> {
  const { root } = ctx.home.paths;
  const folder = join(root, "backups");
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const stamp = new Date(ctx.clock.now()).toISOString().slice(0, 19).replace(/[-:]/g, "").replace("T", "-");
  const { path } = await writeBackup(root, join(folder, `pre-update-${stamp}.zip`));
  print(ctx, `✓ Backup: ${ctx.home.display(path)}`);
  const kept = (await readdir(folder)).filter((name) => /^pre-update-.*\.zip$/.test(name)).sort();
  const most = Math.max(1, ctx.home.config().updates.backup_keep);
  for (const name of kept.slice(0, -most)) await rm(join(folder, name));
}
