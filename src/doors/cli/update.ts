// `hermes update`: how the program was installed, whether there is a newer one, and getting it with the user's yes.
import { mkdir, readdir, readFile, rm } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import type { Command } from "commander";
import type { OpenHome } from "../../home/open.ts";
import { installRoot, VERSION } from "../../home/paths.ts";
import { exists, writeFileAtomic } from "../../kit/files.ts";
import { plural } from "../../kit/formats.ts";
import { parseJson } from "../../kit/json.ts";
import { mapping } from "../../llm/providers/settings.ts";
import { programRunner } from "../../prompt/ports.ts";
import { writeBackup } from "../../sessions/home-archive.ts";
import { type CliContext, ExitError } from "./context.ts";
import { confirm, print } from "./present.ts";

const PACKAGE = "hermes-ts";
const LOOK_MS = 60_000;
const INSTALL_MS = 15 * 60_000;
const QUIET = ["--no-update-notifier", "--no-audit", "--no-fund"];

/** How this copy of the program came here. */
type Installation =
  /** `built`: a build lies next to the source, and is made anew. */
  | { readonly kind: "git"; readonly root: string; readonly built: boolean }
  /** `prefix` null: it is a package of a project, not of the whole machine. */
  | { readonly kind: "npm"; readonly root: string; readonly prefix: string | null }
  | { readonly kind: "unknown"; readonly root: string };

export async function installation(root: string): Promise<Installation> {
  if (await exists(join(root, ".git"))) {
    const built = await exists(join(root, "dist", "main.js"));
    return { kind: "git", root, built };
  }
  if (basename(dirname(root)) !== "node_modules") return { kind: "unknown", root };
  const above = dirname(dirname(root));
  const isGlobal = basename(above) === "lib" || !(await exists(join(above, "package.json")));
  return { kind: "npm", root, prefix: isGlobal ? (basename(above) === "lib" ? dirname(above) : above) : null };
}

interface UpdateState {
  /** What can be had: a version, or how many commits there are. */
  readonly available: string;
  readonly isBehind: boolean;
}

type Run = (program: string, args: readonly string[], cwd: string, ms?: number) => Promise<string>;

function runner(home: Pick<OpenHome, "environment">): Run {
  const run = programRunner(home.environment());
  return async (program, args, cwd, ms = LOOK_MS) => {
    const result = await run(program, args, { cwd, timeoutMs: ms, env: { GIT_TERMINAL_PROMPT: "0" } });
    if (result.exitCode === 0) return result.stdout.trim();
    const why = result.timedOut
      ? "no answer in time"
      : result.exitCode === null
        ? `${program} is not installed`
        : (result.stderr
            .trim()
            .split("\n")
            .find((line) => line.trim() !== "") ?? `exit code ${result.exitCode}`);
    throw new ExitError(2, `${program} ${args[0]}: ${why}`);
  };
}

/** Asks the registry that npm is set up with, or the remote of the clone. */
async function lookForUpdate(where: Installation, run: Run): Promise<UpdateState> {
  if (where.kind === "git") {
    await run("git", ["fetch", "--quiet"], where.root);
    const count = Number(await run("git", ["rev-list", "--count", "HEAD..@{upstream}"], where.root));
    return { available: `${plural(count, "new commit")}`, isBehind: count > 0 };
  }
  const answer = parseJson(await run("npm", ["view", PACKAGE, "version", "--json", ...QUIET], where.root));
  if (typeof answer !== "string" || !/^\d+\.\d+\.\d+/.test(answer))
    throw new ExitError(2, "npm view: the registry returned no version");
  return { available: answer, isBehind: isNewer(answer, VERSION) };
}

/** Of two versions; what stands behind a `-` comes before the version itself. */
export function isNewer(one: string, other: string): boolean {
  const parts = (text: string) => {
    const [numbers = "", early] = text.split("-", 2);
    return [...numbers.split(".").map(Number), early === undefined ? 1 : 0];
  };
  const [left, right] = [parts(one), parts(other)];
  const at = left.findIndex((part, index) => part !== right[index]);
  return at >= 0 && (left[at] ?? 0) > (right[at] ?? 0);
}

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
  const run = runner(home);
  const { available, isBehind } = await lookForUpdate(where, run);
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

// What the last look found, for `hermes version`: nobody is asked there.

const CACHE = ".update_check";

async function remember(state: UpdateState, { home, clock }: CliContext): Promise<void> {
  const text = JSON.stringify({ checked_at: clock.now() / 1000, version: VERSION, ...state });
  // A home that cannot be written forgets it, that is all.
  await writeFileAtomic(join(home.paths.root, CACHE), `${text}\n`, { mode: 0o600 }).catch(() => undefined);
}

/** One line, or null when nobody has looked with this version. */
export async function knownUpdate({ home }: CliContext): Promise<string | null> {
  const kept = mapping(parseJson(await readFile(join(home.paths.root, CACHE), "utf8").catch(() => "")));
  if (kept.version !== VERSION || typeof kept.checked_at !== "number") return null;
  const day = new Date(kept.checked_at * 1000).toISOString().slice(0, 10);
  return kept.isBehind === true
    ? `${kept.available} available (checked on ${day}); install it with: hermes update`
    : `up to date (checked on ${day})`;
}
