// `hermes -w`: a conversation in a git worktree of its own. What is in it is the user's work: it is removed only when git says that nothing
// would be lost, now or at a later start, and never by age.
import {
  appendFile,
  copyFile,
  glob,
  lstat,
  mkdir,
  readFile,
  readlink,
  realpath,
  symlink,
  unlink,
} from "node:fs/promises";
import { hostname } from "node:os";
import { basename, dirname, isAbsolute, join, relative } from "node:path";
import { UserError } from "../../kit/errors.ts";
import { exists, isWithin } from "../../kit/files.ts";
import { isAlive } from "../../kit/pid.ts";
import { programRunner } from "../../prompt/ports.ts";

/** No worktree can be made, in words for the user. */
export class WorktreeError extends UserError {
  override name = "WorktreeError";
}

interface Worktree {
  /** Its top folder. */
  readonly path: string;
  /** The same place in it as the folder it was asked for from. */
  readonly cwd: string;
  readonly branch: string;
  /** What could not be done, such as an entry of `.worktreeinclude` that was refused. */
  readonly warnings: readonly string[];
  /** At the end of the conversation. Null when it was removed, else why it was kept. */
  leave(): Promise<string | null>;
}

interface WorktreePorts {
  readonly environment: Readonly<Record<string, string>>;
  /** Eight hex digits that nobody used yet. */
  newName(): string;
}

const FOLDER = ".worktrees";
const GIT_MS = 60_000;
/** Hooks and watchers of the repository do not run for this. */
const QUIET = ["-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false"];

type Git = (
  args: readonly string[],
  cwd: string,
) => Promise<{ readonly ok: boolean; readonly out: string; readonly err: string }>;

function gitIn(environment: Readonly<Record<string, string>>): Git {
  const run = programRunner(environment);
  return async (args, cwd) => {
    const result = await run("git", [...QUIET, ...args], { cwd, timeoutMs: GIT_MS, env: { GIT_TERMINAL_PROMPT: "0" } });
    return { ok: result.exitCode === 0, out: result.stdout.trimEnd(), err: result.stderr.trim() };
  };
}

/** Removes stale worktrees first, then makes a new one from HEAD. */
export async function openWorktree(cwd: string, { environment, newName }: WorktreePorts): Promise<Worktree> {
  const git = gitIn(environment);
  const top = await git(["rev-parse", "--show-toplevel"], cwd);
  if (!top.ok || top.out === "") throw new WorktreeError("-w needs a git repository; this folder is not in one.");
  const root = await realpath(top.out);
  await pruneWorktrees(root, git);
  const name = `hermes-${newName()}`;
  const path = join(root, FOLDER, name);
  const branch = `hermes/${name}`;
  const warnings = await ignoreFolder(root, git);
  const made = await git(["worktree", "add", "-b", branch, path, "HEAD"], root);
  if (!made.ok) throw new WorktreeError(`git could not create a worktree: ${made.err.split("\n").at(-1)}`);
  // Git itself then refuses to remove it while this process lives.
  await git(["worktree", "lock", "--reason", lockText(), path], root);
  const links = new Map<string, string>();
  warnings.push(...(await includeFiles(root, path, links)));
  const inside = join(path, relative(root, await realpath(cwd)));
  return {
    path,
    cwd: (await exists(inside)) ? inside : path,
    branch,
    warnings,
    leave: async () => {
      await git(["worktree", "unlock", path], root);
      // Our own links are no work, but git may take them for new files.
      const own = (await Promise.all([...links].map(async (link) => ((await isLink(link)) ? [link] : [])))).flat();
      for (const [link] of own) await unlink(link);
      const kept = await removeIfSafe({ path, branch }, root, git);
      if (kept !== null) for (const [link, to] of own) await symlink(to, link);
      return kept;
    },
  };
}

const isLink = async ([link, to]: readonly [string, string]) => (await readlink(link).catch(() => null)) === to;

const lockText = () => `hermes ${hostname()} ${process.pid}`;

interface Made {
  readonly path: string;
  readonly branch: string;
}

/** Null when it is gone; else what would have been lost. */
async function removeIfSafe({ path, branch }: Made, root: string, git: Git): Promise<string | null> {
  if (!(await exists(path))) return null;
  const status = await git(["status", "--porcelain", "--untracked-files=all"], path);
  if (!status.ok) return "git cannot read its state";
  if (status.out !== "") return "it has changes that are not committed";
  // Everything that it and its branch hold must be in another branch, or on a server.
  const others = [`--exclude=${branch}`, "--branches", "--remotes"];
  const alone = await git(["rev-list", "--count", "HEAD", `refs/heads/${branch}`, "--not", ...others], path);
  if (!alone.ok) return "git cannot tell whether its commits exist elsewhere";
  if (alone.out !== "0") return `${alone.out === "1" ? "1 commit is" : `${alone.out} commits are`} in no other branch`;
  // Not forced: git looks for itself once more.
  const removed = await git(["worktree", "remove", path], root);
  if (!removed.ok) return removed.err.split("\n")[0] || "git could not remove it";
  await git(["branch", "-D", branch], root);
  return null;
}

/** Those of processes that are gone, by the same rule as at the end. Others are left alone, whoever made them. */
async function pruneWorktrees(root: string, git: Git): Promise<void> {
  const list = await git(["worktree", "list", "--porcelain"], root);
  for (const block of list.out.split("\n\n")) {
    const fact = (key: string) => new RegExp(`^${key}(?: (.*))?$`, "m").exec(block);
    const path = fact("worktree")?.[1] ?? "";
    const branch = fact("branch")?.[1]?.replace(/^refs\/heads\//, "") ?? "";
    const isOurs = dirname(path) === join(root, FOLDER) && /^hermes-[0-9a-f]{8}$/.test(basename(path));
    if (!isOurs || branch !== `hermes/${basename(path)}`) continue;
    const locked = fact("locked");
    if (locked && !isStale(locked[1] ?? "")) continue;
    if (locked) await git(["worktree", "unlock", path], root);
    await removeIfSafe({ path, branch }, root, git);
  }
}

/** Locked by a process of this machine that is gone. Whatever else a lock says, it is not ours to break. */
function isStale(reason: string): boolean {
  const match = /^hermes (\S+) (\d+)$/.exec(reason);
  return match !== null && match[1] === hostname() && !isAlive(Number(match[2]));
}

async function ignoreFolder(root: string, git: Git): Promise<string[]> {
  const ignored = await git(["check-ignore", "-q", `${FOLDER}/x`], root);
  if (ignored.ok) return [];
  const file = join(root, ".gitignore");
  try {
    const text = await readFile(file, "utf8").catch(() => "");
    await appendFile(file, `${text === "" || text.endsWith("\n") ? "" : "\n"}${FOLDER}/\n`);
    return [];
  } catch {
    return [`${file} could not be written: add ${FOLDER}/ to it.`];
  }
}

/** What git does not carry along: `.worktreeinclude` names files to copy and folders to link. */
async function includeFiles(root: string, path: string, links: Map<string, string>): Promise<string[]> {
  const text = await readFile(join(root, ".worktreeinclude"), "utf8").catch(() => "");
  const refused: string[] = [];
  for (const line of text.split("\n").map((entry) => entry.trim())) {
    if (line === "" || line.startsWith("#")) continue;
    const pattern = line.replace(/(?<!\/)\/+$/, "");
    if (isAbsolute(pattern) || pattern.split("/").includes("..")) refused.push(line);
    else
      for await (const name of glob(pattern, { cwd: root }))
        if (!(await include(name, root, path, links))) refused.push(name);
  }
  return refused.map((name) => `.worktreeinclude: ${name} points outside the repository and was skipped.`);
}

/** False when it is not a part of the repository. What git brought is left as it is. */
async function include(name: string, root: string, path: string, links: Map<string, string>): Promise<boolean> {
  const source = await realpath(join(root, name)).catch(() => null);
  const isPart = source !== null && isWithin(source, root) && source !== root;
  if (!isPart || isWithin(source, join(root, ".git")) || isWithin(source, join(root, FOLDER))) return false;
  const target = join(path, name);
  if (await lstat(target).catch(() => null)) return true;
  await mkdir(dirname(target), { recursive: true });
  // A folder of the worktree may be a link that git brought.
  if (!isWithin(await realpath(dirname(target)), path)) return false;
  if ((await lstat(source)).isDirectory()) {
    await symlink(source, target);
    links.set(target, source);
  } else await copyFile(source, target);
  return true;
}
