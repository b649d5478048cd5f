// git, run against the shadow store alone: no settings of the user or the system, no hooks, no questions, no repository but this one.

import { spawn } from "node:child_process";
import { stat } from "node:fs/promises";
import { devNull } from "node:os";
import { isMissing, UserError } from "../kit/errors.ts";

export interface GitRepository {
  /** The shadow repository. */
  readonly store: string;
  /** PATH of the home's environment: where git is looked for. */
  readonly searchPath: string;
}

interface GitRun {
  readonly args: readonly string[];
  readonly stdin?: string;
  /** The index file; for everything that reads or writes one. */
  readonly index?: string;
  /** The project; for everything that looks at its files. */
  readonly workTree?: string;
  /** Unix seconds a commit is dated with. */
  readonly at?: number;
  /** More output than this is not waited for. */
  readonly most?: number;
  readonly signal?: AbortSignal | undefined;
}

/** There is no git on this machine. */
export class GitMissingError extends UserError {
  override name = "GitMissingError";
  constructor() {
    super("git is not installed; checkpoints need it. Install it and they work from the next turn.");
  }
}

export class GitError extends Error {
  override name = "GitError";
}

/** Nothing of a project decides how its files are kept: no line-end conversion, no filters, no re-encoding. */
export const ATTRIBUTES = "* -text -filter -ident !eol !working-tree-encoding -export-subst -export-ignore\n";

const SETTINGS = [
  "core.autocrlf=false",
  "core.bare=false",
  "core.fsmonitor=false",
  `core.hooksPath=${devNull}`,
  "core.ignoreCase=false",
  "core.logAllRefUpdates=false",
  "core.precomposeUnicode=false",
  // Names that another system could not hold are still the user's files here.
  "core.protectHFS=false",
  "core.protectNTFS=false",
  "core.quotePath=false",
  "commit.gpgSign=false",
  "gc.auto=0",
  "maintenance.auto=false",
].flatMap((setting) => ["-c", setting]);

const ERROR_CHARS = 500;

/** Resolves to what it printed. Rejects with `GitError`, or with `GitMissingError` when there is none. */
export async function runGit(repository: GitRepository, run: GitRun): Promise<Buffer> {
  const cwd = run.workTree ?? repository.store;
  const child = spawn("git", [...SETTINGS, ...run.args], {
    cwd,
    env: environmentOf(repository, run),
    stdio: ["pipe", "pipe", "pipe"],
    windowsHide: true,
    signal: run.signal,
  });
  const out: Buffer[] = [];
  let room = run.most ?? Number.POSITIVE_INFINITY;
  let errors = "";
  child.stdout.on("data", (bytes: Buffer) => {
    out.push(bytes);
    room -= bytes.length;
    if (room < 0) child.kill();
  });
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    errors = (errors + text).slice(-ERROR_CHARS);
  });
  child.stdin.on("error", () => undefined); // git may end before it has read everything; its exit code says why
  child.stdin.end(run.stdin ?? "");
  const code = await new Promise<number | null>((resolve, reject) => {
    child.on("error", reject);
    child.on("close", resolve);
  }).catch(async (error: unknown) => {
    run.signal?.throwIfAborted();
    // The same code is given for a folder that is gone.
    if (isMissing(error) && (await stat(cwd).catch(() => null))) throw new GitMissingError();
    throw error;
  });
  if (code === 0 || room < 0) return Buffer.concat(out);
  run.signal?.throwIfAborted();
  throw new GitError(`git ${run.args[0]} failed (${code}): ${errors.trim()}`);
}

export async function gitText(repository: GitRepository, run: GitRun): Promise<string> {
  return (await runGit(repository, run)).toString("utf8").trim();
}

/** What stands between NUL bytes. */
export async function gitFields(repository: GitRepository, run: GitRun): Promise<string[]> {
  const fields = (await runGit(repository, run)).toString("utf8").split("\0");
  return fields.filter((field) => field !== "");
}

function environmentOf({ store, searchPath }: GitRepository, { index, workTree, at }: GitRun): NodeJS.ProcessEnv {
  const who = { NAME: "Hermes", EMAIL: "hermes@localhost" };
  const date = `@${at} +0000`;
  return {
    PATH: searchPath,
    LC_ALL: "C",
    // Settings are looked for below these.
    HOME: store,
    XDG_CONFIG_HOME: store,
    GIT_CONFIG_NOSYSTEM: "1",
    GIT_CONFIG_GLOBAL: devNull,
    GIT_ATTR_NOSYSTEM: "1",
    GIT_NO_REPLACE_OBJECTS: "1",
    GIT_LITERAL_PATHSPECS: "1",
    GIT_TERMINAL_PROMPT: "0",
    GIT_AUTHOR_NAME: who.NAME,
    GIT_AUTHOR_EMAIL: who.EMAIL,
    GIT_COMMITTER_NAME: who.NAME,
    GIT_COMMITTER_EMAIL: who.EMAIL,
    ...(at === undefined ? {} : { GIT_AUTHOR_DATE: date, GIT_COMMITTER_DATE: date }),
    GIT_DIR: store,
    GIT_WORK_TREE: workTree,
    GIT_INDEX_FILE: index,
  };
}
