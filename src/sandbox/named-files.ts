// Files that the settings of a repository name and that git reads or runs: other settings, hooks, programs. Who may write them may as well
// write the settings.

import { readdir, readFile } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import { ownKindNow } from "../home/looks.ts";
import { isDirectory, isWithin } from "../kit/files.ts";
import { type GitSetting, namedFiles, readSettings } from "./git-settings.ts";
import type { FoundRepository } from "./repository-walk.ts";

const MAX_INCLUDES = 20;
const HOOKS = (
  "applypatch-msg pre-applypatch post-applypatch pre-commit pre-merge-commit prepare-commit-msg commit-msg post-commit pre-rebase post-checkout " +
  "post-merge pre-push pre-auto-gc post-rewrite sendemail-validate fsmonitor-watchman post-index-change reference-transaction push-to-checkout"
).split(" ");

/** Absolute paths, there or not, for repositories whose settings are believed and for the user's own settings. */
export async function filesOfSettings(repositories: readonly FoundRepository[], userHome: string): Promise<string[]> {
  const files = new Set<string>();
  const users = await settingsIn([join(userHome, ".gitconfig"), join(userHome, ".config/git/config")], userHome, files);
  for (const { type, path } of repositories) {
    if (type !== "git") continue;
    const own = await settingsIn([join(path, "config"), join(path, "config.worktree")], userHome, files);
    const top = topOf(path, own);
    const { hooks, words } = namedFiles([...users, ...own]);
    const folders = [join(path, "hooks"), ...hooks.map((name) => expanded(name, top, userHome)).map(withoutStubs)];
    for (const folder of folders.slice(1)) {
      files.add(folder);
      // The project itself cannot be read-only.
      if (isWithin(top, folder)) for (const name of HOOKS) files.add(join(folder, name));
    }
    for (const folder of folders) for (const target of await linksIn(folder)) files.add(target);
    for (const word of words) {
      const file = expanded(word, top, userHome);
      // A word without a slash is a program of PATH, or no program at all.
      if (!word.includes("/")) continue;
      const kind = ownKindNow(file);
      if (kind === "link" || (kind === "file" && !(await isDirectory(file)))) files.add(file);
      else if (kind === null && /^\.{0,2}\/|^~\//.test(word)) files.add(file);
    }
  }
  return [...files];
}

/** What stands in these files and in those that they include; the included ones are added to `files`. */
async function settingsIn(paths: readonly string[], userHome: string, files: Set<string>): Promise<GitSetting[]> {
  const all: GitSetting[] = [];
  const seen = new Set<string>();
  const pending = [...paths];
  for (let path = pending.shift(); path !== undefined && seen.size < MAX_INCLUDES; path = pending.shift()) {
    if (seen.has(path)) continue;
    seen.add(path);
    const text = await readFile(path, "utf8").catch(() => null); // named and not there, or not ours to read
    if (text === null) continue;
    const { settings } = readSettings(text);
    all.push(...settings);
    for (const name of namedFiles(settings).includes) {
      const included = expanded(name, dirname(path), userHome);
      files.add(included);
      pending.push(included);
    }
  }
  return all;
}

const expanded = (name: string, from: string, userHome: string) =>
  name.startsWith("~/") ? join(userHome, name.slice(2)) : resolve(from, name);

/** husky's hooks lie in `.husky/_` and run what lies above. */
const withoutStubs = (folder: string) => (basename(folder) === "_" ? dirname(folder) : folder);

/** Where hooks run, which is what a relative name starts from. */
function topOf(directory: string, settings: readonly GitSetting[]): string {
  const worktree = settings.find(({ name }) => name === "core.worktree")?.value;
  if (worktree) return resolve(directory, worktree);
  return basename(directory) === ".git" ? dirname(directory) : directory;
}

async function linksIn(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { withFileTypes: true }).catch(() => []);
  return entries.filter((entry) => entry.isSymbolicLink()).map(({ name }) => join(folder, name));
}
