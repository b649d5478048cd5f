// git, asked about a repository without running anything the repository names. Its configuration can name programs for almost everything
// (filters, monitors, hooks, pagers, signers, diff drivers, credential helpers, further files of configuration), and an unpacked archive
// may hold one. So git never reads it: it is given a directory of links to the data of the repository, with a configuration of ours.
// The same trick lets git's own `git-new-workdir` share a repository.

import { copyFile, lstat, mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { devNull, tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { gitPointer } from "../home/git-pointer.ts";
import { isDirectory } from "../kit/files.ts";
import type { RunProgram } from "./ports.ts";

interface Repository {
  /** A worktree of a repository that lies elsewhere. */
  readonly linkedWorktree: boolean;
  /** Never rejects: what cannot be run has no exit code. */
  git(...args: string[]): ReturnType<RunProgram>;
}

/** Data of one worktree, and data that all worktrees share. `HEAD` is copied: git does not take a link for it. */
const OWN =
  /^(?:index|sharedindex\..*|ORIG_HEAD|MERGE_HEAD|CHERRY_PICK_HEAD|REVERT_HEAD|rebase-merge|rebase-apply|BISECT_LOG)$/;
const SHARED = /^(?:objects|refs|packed-refs|reftable|shallow|logs)$/;
const SHARED_INFO = ["exclude", "sparse-checkout"];

/** Settings without which git misreads the data or the names in it. None of them names a program or another file. */
const KEPT = new RegExp(
  [
    "^core\\.(?:repositoryformatversion|filemode|ignorecase|precomposeunicode|symlinks|autocrlf|eol|sparsecheckout|sparsecheckoutcone)$",
    "^extensions\\.(?:objectformat|refstorage)$",
    "^index\\.sparse$",
    "^branch\\.[^\\n]+\\.(?:remote|merge)$",
    "^remote\\.[^\\n]+\\.fetch$",
  ].join("|"),
);

const ENVIRONMENT = {
  GIT_CONFIG_NOSYSTEM: "1",
  GIT_CONFIG_GLOBAL: devNull,
  GIT_ATTR_NOSYSTEM: "1",
  GIT_NO_LAZY_FETCH: "1",
  GIT_OPTIONAL_LOCKS: "0",
  GIT_TERMINAL_PROMPT: "0",
  GIT_PAGER: "cat",
};

/** Null: the folder is no repository, or not one that can be read. */
export async function withRepository<T>(
  root: string,
  { run, timeoutMs }: { readonly run: RunProgram; readonly timeoutMs: number },
  use: (repository: Repository) => Promise<T>,
): Promise<T | null> {
  const own = await gitDirectory(root);
  if (own === null) return null;
  const shared = await sharedDirectory(own);
  const view = await mkdtemp(join(tmpdir(), "hermes-git-"));
  try {
    const options = { cwd: root, timeoutMs, env: ENVIRONMENT };
    const [settings, ignored] = await Promise.all([
      run("git", ["config", "--file", join(shared, "config"), "--no-includes", "--list", "-z"], options),
      // Of the user's own settings only this one changes what a repository looks like.
      run("git", ["config", "--global", "--path", "core.excludesFile"], {
        ...options,
        env: { ...ENVIRONMENT, GIT_CONFIG_GLOBAL: undefined },
      }),
      fill(view, own, shared),
    ]);
    const excludes = ignored.exitCode === 0 ? ignored.stdout.trim() : "";
    await writeFile(join(view, "config"), keptSettings(settings.stdout, excludes));
    const where = { ...options, env: { ...ENVIRONMENT, GIT_DIR: view, GIT_WORK_TREE: root } };
    return await use({
      linkedWorktree: own !== shared,
      git: (...args) => run("git", ["--no-pager", ...args], where),
    });
  } catch {
    return null; // half a repository, or one that changes under us
  } finally {
    await rm(view, { recursive: true, force: true });
  }
}

/** `.git` itself, or where the file of that name in a worktree or submodule leads. */
async function gitDirectory(root: string): Promise<string | null> {
  const entry = join(root, ".git");
  return (await isDirectory(entry)) ? entry : gitPointer(root);
}

async function sharedDirectory(own: string): Promise<string> {
  const path = (await readFile(join(own, "commondir"), "utf8").catch(() => "")).trim(); // only worktrees have one
  return path === "" ? own : resolve(own, path);
}

async function fill(view: string, own: string, shared: string): Promise<void> {
  await mkdir(join(view, "info"));
  const linked = async (from: string, names: RegExp) => {
    const present = (await readdir(from)).filter((name) => names.test(name));
    await Promise.all(present.map((name) => link(join(from, name), join(view, name))));
  };
  await Promise.all([
    copyFile(join(own, "HEAD"), join(view, "HEAD")),
    linked(own, OWN),
    linked(shared, SHARED),
    ...SHARED_INFO.map((name) => link(join(shared, "info", name), join(view, "info", name)).catch(() => undefined)),
  ]);
}

/** Not every Windows user may make links to files. */
async function link(target: string, path: string): Promise<void> {
  const directory = (await lstat(target)).isDirectory();
  await symlink(target, path, directory ? "junction" : "file").catch(async (error: NodeJS.ErrnoException) => {
    if (directory || error.code !== "EPERM") throw error;
    await copyFile(target, path);
  });
}

/** `listed`: NUL-separated, a key and its value on lines of their own. */
function keptSettings(listed: string, excludes: string): string {
  // Otherwise a diff would write the index of the repository anew, through the link.
  const lines = ["[diff]", "\tautoRefreshIndex = false", "[core]", "\tbare = false"];
  if (excludes !== "") lines.push(`\texcludesFile = ${quoted(excludes)}`);
  for (const entry of listed.split("\0")) {
    const end = entry.indexOf("\n");
    const key = end < 0 ? entry : entry.slice(0, end);
    if (!KEPT.test(key)) continue;
    const [section, name] = [key.slice(0, key.indexOf(".")), key.slice(key.lastIndexOf(".") + 1)];
    const middle = key.slice(section.length + 1, -name.length - 1);
    lines.push(middle === "" ? `[${section}]` : `[${section} ${quoted(middle)}]`);
    lines.push(end < 0 ? `\t${name}` : `\t${name} = ${quoted(entry.slice(end + 1))}`);
  }
  return `${lines.join("\n")}\n`;
}

const quoted = (text: string) => `"${text.replace(/[\\"]/g, "\\$&").replaceAll("\n", "\\n").replaceAll("\t", "\\t")}"`;
