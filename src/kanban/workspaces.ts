// Where a worker works: a scratch folder of its card, a folder, or a git worktree. Only scratch folders are ever removed.
import { execFile } from "node:child_process";
import { appendFile, lstat, mkdir, readFile, readlink, realpath, rm, stat } from "node:fs/promises";
import { basename, dirname, isAbsolute, join, resolve } from "node:path";
import { linkedWorktree } from "../home/git-pointer.ts";
import { isDirectory } from "../kit/files.ts";
import { BoardError } from "./cards.ts";
import type { Card } from "./schema.ts";

interface Workspace {
  readonly path: string;
  /** Of a worktree. */
  readonly branch: string | null;
}

interface WorkspaceOptions {
  /** Where scratch folders lie. */
  readonly workspaces: string;
  /** For cards that name no folder; null where the board has none. */
  readonly defaultFolder: string | null;
  /** PATH of the home's environment: where git is looked for. */
  readonly searchPath: string;
}

const FOLDER = ".worktrees";

/** Makes what is missing, and finds again what is there. Rejects with a `BoardError` where there can be no such place. */
export async function openWorkspace(
  card: Pick<Card, "id" | "workspace_kind" | "workspace_path" | "branch_name">,
  options: WorkspaceOptions,
): Promise<Workspace> {
  const { id, workspace_kind: kind } = card;
  if (kind === "scratch") return { path: await scratch(options.workspaces, id), branch: null };
  const path = card.workspace_path ?? options.defaultFolder;
  if (path === null)
    throw new BoardError(
      `${id}: its workspace names no folder, and the board has none. Set one: hermes kanban boards set-default-workdir SLUG PATH`,
    );
  if (!isAbsolute(path)) throw new BoardError(`${id}: the path of its workspace does not begin with "/": ${path}`);
  return kind === "dir" ? { path: await made(path), branch: null } : worktree(card, path, options);
}

async function scratch(workspaces: string, id: string): Promise<string> {
  const path = await made(join(workspaces, id), 0o700);
  // A link that lies there leads to what is not the card's.
  if ((await lstat(path)).isSymbolicLink()) throw new BoardError(`${id}: ${path} is a link; remove it.`);
  return path;
}

const MOST_LINKS = 40;

/** Where a path leads, whether or not something is there yet. */
export async function realPlace(path: string, links = MOST_LINKS): Promise<string> {
  const whole = resolve(path);
  if (links === 0) throw new BoardError(`${path} leads from link to link without an end.`);
  const found = await realpath(whole).catch(() => null); // not there yet
  if (found !== null) return found;
  // A link to nowhere is one too: whatever comes to be there lies where it leads.
  const target = await readlink(whole).catch(() => null); // no link
  if (target !== null) return realPlace(resolve(dirname(whole), target), links - 1);
  return join(await realPlace(dirname(whole), links), basename(whole));
}

async function made(path: string, mode?: number): Promise<string> {
  await mkdir(path, { recursive: true, ...(mode === undefined ? {} : { mode }) }).catch((error: unknown) => {
    throw new BoardError(`The folder ${path} cannot be made: ${error instanceof Error ? error.message : error}`);
  });
  return path;
}

async function worktree(
  card: Pick<Card, "id" | "branch_name">,
  given: string,
  { searchPath }: WorkspaceOptions,
): Promise<Workspace> {
  const git = (args: readonly string[], cwd: string) => runGit(args, { cwd, searchPath });
  const branchOf = async (path: string) => (await git(["branch", "--show-current"], path)).out || null;
  const real = (await isDirectory(given)) ? await realpath(given) : null;
  // One that is there already is worked in as it is.
  if (real !== null && linkedWorktree(real)) return { path: real, branch: await branchOf(real) };
  const near = real ?? (await nearestFolder(given));
  const top = await git(["rev-parse", "--show-toplevel"], near);
  if (!top.ok || top.out === "")
    throw new BoardError(`${card.id}: ${given} is not in a git repository, so it has no worktrees.`);
  const repository = await realpath(top.out);
  const path = real === repository ? join(repository, FOLDER, card.id) : given;
  if (real !== null && real !== repository)
    throw new BoardError(`${card.id}: ${given} is a folder in a repository; name the repository itself: ${repository}`);
  // Whoever works in the repository could have it lead to the folder of somebody else.
  if (path !== given && (await realPlace(path)) !== path)
    throw new BoardError(`${card.id}: ${path} leads elsewhere, by a link; remove it.`);
  if (await isDirectory(path)) {
    const there = await realpath(path);
    if (linkedWorktree(there)) return { path: there, branch: await branchOf(there) };
    throw new BoardError(`${card.id}: ${path} is there already, and no worktree.`);
  }
  const branch = card.branch_name ?? `wt/${card.id}`;
  await ignore(repository, git);
  await git(["worktree", "prune"], repository); // one that somebody deleted by hand is still on its list
  const known = await git(["rev-parse", "--verify", "--quiet", `refs/heads/${branch}`], repository);
  const added = await git(
    ["worktree", "add", ...(known.ok ? [path, branch] : ["-b", branch, path, "HEAD"])],
    repository,
  );
  if (!added.ok) throw new BoardError(`${card.id}: git could not make a worktree: ${added.err.split("\n").at(-1)}`);
  return { path: await realpath(path), branch };
}

async function nearestFolder(path: string): Promise<string> {
  const above = dirname(path);
  return above === path || (await isDirectory(above)) ? above : nearestFolder(above);
}

type Git = (args: readonly string[], cwd: string) => Promise<GitAnswer>;

/** Not in the way of whoever looks at the repository; nothing that is committed is changed for it. */
async function ignore(repository: string, git: Git): Promise<void> {
  if ((await git(["check-ignore", "-q", `${FOLDER}/x`], repository)).ok) return;
  const found = await git(["rev-parse", "--path-format=absolute", "--git-path", "info/exclude"], repository);
  if (!found.ok) return;
  const text = await readFile(found.out, "utf8").catch(() => ""); // there is none yet
  await mkdir(dirname(found.out), { recursive: true });
  await appendFile(found.out, `${text === "" || text.endsWith("\n") ? "" : "\n"}/${FOLDER}/\n`);
}

interface GitAnswer {
  readonly ok: boolean;
  readonly out: string;
  readonly err: string;
}

const GIT_MS = 60_000;
/** Hooks and watchers of the repository do not run for this. */
const QUIET = ["-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false"];

function runGit(
  args: readonly string[],
  { cwd, searchPath }: { readonly cwd: string; readonly searchPath: string },
): Promise<GitAnswer> {
  const env = { PATH: searchPath, LC_ALL: "C", GIT_TERMINAL_PROMPT: "0" };
  return new Promise((resolve) => {
    execFile("git", [...QUIET, ...args], { cwd, env, timeout: GIT_MS }, (error, out, err) =>
      resolve({ ok: error === null, out: out.trimEnd(), err: err.trim() || (error?.message ?? "") }),
    );
  });
}

/** The scratch folder of a card, and nothing else. False: what lies there is none. */
export async function removeScratch(workspaces: string, id: string): Promise<boolean> {
  const path = join(workspaces, id);
  if (!/^t_[0-9a-f]{8}$/.test(id)) return false;
  const found = await stat(path).catch(() => null); // gone already
  const [real, root] = await Promise.all([path, workspaces].map((one) => realpath(one).catch(() => null))); // likewise
  // A link at its place leads to what is not ours.
  if (!found?.isDirectory() || !real || !root || dirname(real) !== root || basename(real) !== id) return false;
  await rm(real, { recursive: true, force: true });
  return true;
}
