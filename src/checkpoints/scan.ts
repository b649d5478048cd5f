// Brings an index up to the files as they are now.

import { constants } from "node:fs";
import { access, lstat, readdir, readFile, realpath } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { isWithin } from "../kit/files.ts";
import { type IgnoreRules, rulesAbove } from "../tools/files/search.ts";
import { type GitRepository, gitFields, gitText, runGit } from "./git.ts";

const AT_ONCE = 16;

interface ScanOptions {
  readonly root: string;
  /** The index file to work on; it may be missing. */
  readonly index: string;
  readonly maxFileBytes: number;
  /** Paths below the root that belong to it whatever a .gitignore says: what is about to be changed. */
  readonly include: readonly string[];
  /** Directories that belong to no checkpoint. */
  readonly except: readonly string[];
  /** Values that must not be copied. */
  readonly secrets: readonly string[];
  readonly signal: AbortSignal;
}

export interface Scan {
  readonly tree: string;
  readonly leftOut: readonly LeftOut[];
  /** Bytes of the files that had changed. */
  readonly changedBytes: number;
}

export async function scanProject(git: GitRepository, options: ScanOptions): Promise<Scan> {
  const { root, index, signal } = options;
  const at = { workTree: root, index, signal };
  const walked = await walkProject(root, options.except, signal);
  const wanted = new Set(walked);
  for (const path of options.include) if (await mayInclude(root, path)) wanted.add(path);
  const known = new Set(await gitFields(git, { ...at, args: ["ls-files", "-z"] }));
  // Only what looks touched is looked into: everything else is as the index has it.
  const touched = await gitFields(git, { ...at, args: ["diff-files", "-z", "--name-only", "--no-renames"] });
  const fresh = [...wanted].filter((path) => !known.has(path));
  const judged = await judgeAll([...new Set([...touched.filter((path) => wanted.has(path)), ...fresh])], options);

  const leftOut = judged.flatMap(({ path, why }) => (why === null ? [] : [{ path, why }]));
  const gone = [...known].filter((path) => !wanted.has(path)).concat(leftOut.map(({ path }) => path));
  await update(["--force-remove"], gone);
  await update(
    ["--add", "--remove", "--replace"],
    judged.flatMap(({ path, why }) => (why === null ? [path] : [])),
  );
  const tree = await gitText(git, { ...at, args: ["write-tree"] });
  return { tree, leftOut, changedBytes: judged.reduce((sum, { bytes }) => sum + bytes, 0) };

  async function update(how: readonly string[], paths: readonly string[]): Promise<void> {
    if (paths.length === 0) return;
    const stdin = paths.map((path) => `${path}\0`).join("");
    await runGit(git, { ...at, args: ["update-index", "-z", ...how, "--stdin"], stdin });
  }
}

/** Of what a walk passed by: only what really lies in the project, and no file that is known to hold secrets. */
async function mayInclude(root: string, path: string): Promise<boolean> {
  const parts = path.split("/");
  if (path === "" || parts.some((part) => part === "" || part === "." || part === ".." || isRepositoryName(part)))
    return false;
  if (isSecretFile(basename(path))) return false;
  const parent = await realpath(dirname(join(root, path))).catch(() => null);
  // Through a link the file would lie elsewhere; what is there is not this project's.
  if (parent === null || !isWithin(parent, root) || parent !== dirname(join(root, path))) return false;
  const facts = await lstat(join(root, path)).catch(() => null);
  return facts !== null && (facts.isFile() || facts.isSymbolicLink());
}

interface Judged {
  readonly path: string;
  readonly why: LeftOutReason | null;
  readonly bytes: number;
}

async function judgeAll(paths: readonly string[], options: ScanOptions): Promise<Judged[]> {
  const judged: Judged[] = [];
  const secrets = options.secrets.map((secret) => Buffer.from(secret));
  for (let at = 0; at < paths.length; at += AT_ONCE) {
    options.signal.throwIfAborted();
    const batch = paths.slice(at, at + AT_ONCE);
    judged.push(...(await Promise.all(batch.map((path) => judge(path, options, secrets)))));
  }
  return judged;
}

async function judge(path: string, options: ScanOptions, secrets: readonly Buffer[]): Promise<Judged> {
  const full = join(options.root, path);
  const facts = await lstat(full).catch(() => null);
  if (facts === null || !facts.isFile()) return { path, why: null, bytes: 0 }; // gone meanwhile, or a link, which is a few bytes
  if (facts.size > options.maxFileBytes) return { path, why: "too large", bytes: 0 };
  const readable = await access(full, constants.R_OK).then(
    () => true,
    () => false,
  );
  if (!readable) return { path, why: "cannot be read", bytes: 0 };
  if (secrets.length === 0) return { path, why: null, bytes: facts.size };
  const data = await readFile(full);
  const holds = secrets.some((secret) => data.includes(secret));
  return { path, why: holds ? "holds a secret" : null, bytes: facts.size };
}

// The files of a project that a checkpoint is about.

const MAX_FILES = 50_000;

/** More than a checkpoint is meant for. */
export class TooManyFilesError extends Error {
  override name = "TooManyFilesError";
  constructor(root: string) {
    super(`${root} contains more than ${MAX_FILES} files; no checkpoint was made`);
  }
}

/** Paths below `root`, with slashes; files and links. What a .gitignore names is left out, and so is everything below `except`. */
async function walkProject(root: string, except: readonly string[], signal: AbortSignal): Promise<string[]> {
  const found: string[] = [];
  const enter = async (directory: string, prefix: string, above: IgnoreRules): Promise<void> => {
    signal.throwIfAborted();
    const entries = await readdir(directory, { withFileTypes: true }).catch(() => null);
    if (entries === null) return; // gone meanwhile, or not ours to look into
    const names = entries.map(({ name }) => name);
    const rules = await above.enter(directory, names);
    const below: string[] = [];
    for (const entry of entries) {
      const { name } = entry;
      const path = join(directory, name);
      if (entry.isDirectory()) {
        if (!isSkippedFolder(name) && !except.includes(path) && !rules.ignores(path, true)) below.push(name);
      } else if (entry.isFile() || entry.isSymbolicLink()) {
        if (isRepositoryName(name) || isSecretFile(name) || rules.ignores(path, false)) continue;
        if (found.push(prefix + name) > MAX_FILES) throw new TooManyFilesError(root);
      }
    }
    for (const name of below) await enter(join(directory, name), `${prefix}${name}/`, rules);
  };
  await enter(root, "", await rulesAbove(root));
  return found;
}

// What is never copied: what can be made again, and what nobody should find a copy of.

/** Why a file that would belong to a checkpoint is not in it. */
type LeftOutReason = "too large" | "holds a secret" | "cannot be read";

export interface LeftOut {
  readonly path: string;
  readonly why: LeftOutReason;
}

const FOLDERS: ReadonlySet<string> = new Set([
  ".git",
  ".hg",
  ".svn",
  ".jj",
  "node_modules",
  "bower_components",
  ".venv",
  "venv",
  "__pycache__",
  ".mypy_cache",
  ".pytest_cache",
  ".ruff_cache",
  ".tox",
  ".nox",
  ".gradle",
  ".terraform",
  ".cache",
  ".parcel-cache",
  ".turbo",
  ".next",
  ".nuxt",
  ".svelte-kit",
  ".idea",
]);

function isSkippedFolder(name: string): boolean {
  return FOLDERS.has(name) || isRepositoryName(name);
}

/** git keeps nothing under this name, in whatever case. */
function isRepositoryName(name: string): boolean {
  return /^\.git$/i.test(name);
}

const SECRET_NAME =
  /^(?:\.env(?:\..+)?|\.envrc|.+\.(?:pem|key|p12|pfx|jks|keystore|kdbx)|id_(?:rsa|dsa|ecdsa|ed25519)(?:_sk)?|\.netrc|_netrc|\.pgpass|\.npmrc|\.pypirc|\.git-credentials|\.htpasswd|auth\.json|credentials(?:\.json)?|service[-_]account.*\.json)$/i;
const PATTERN_OF_ONE = /\.(?:example|sample|template|dist|defaults?)$/i;

/** A name that says "secret": such a file is not even opened. */
function isSecretFile(name: string): boolean {
  return SECRET_NAME.test(name) && !PATTERN_OF_ONE.test(name);
}
