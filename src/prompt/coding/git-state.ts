// The state of a repository at one moment. Everything it prints is repository content: cleaned here, screened by the caller.
import { truncateCodePoints } from "../../kit/code-points.ts";
import type { RunProgram } from "../ports/run-program.ts";

const CALL_MS = 2_500;
const LONGEST = 120;

// A repository's own configuration can name programs to run; an archive may bring one along.
export const SAFE_GIT: readonly string[] = [
  ...["--no-optional-locks", "--no-pager"],
  ...["-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c", "log.showSignature=false"],
];

export interface GitState {
  /** Null on a detached head. */
  readonly branch: string | null;
  readonly upstream: string | null;
  readonly ahead: number;
  readonly behind: number;
  readonly staged: number;
  readonly modified: number;
  readonly untracked: number;
  readonly conflicts: number;
}

export interface GitReading {
  readonly state: GitState | null;
  readonly linkedWorktree: boolean;
  /** Short hash and subject, newest first. */
  readonly commits: readonly string[];
}

export async function readGit(root: string, run: RunProgram): Promise<GitReading> {
  const git = async (...args: string[]) => {
    const result = await run("git", [...SAFE_GIT, ...args], { cwd: root, timeoutMs: CALL_MS });
    return result.exitCode === 0 ? result.stdout : null;
  };
  const [status, directories, log] = await Promise.all([
    git("status", "--porcelain=2", "--branch"),
    git("rev-parse", "--path-format=absolute", "--git-dir", "--git-common-dir"),
    git("log", "-3", "--no-decorate", "--format=%h %s"),
  ]);
  const [own, common] = directories?.trim().split("\n") ?? [];
  return {
    state: status === null ? null : parseStatus(status),
    linkedWorktree: own !== undefined && common !== undefined && own !== common,
    commits: (log ?? "")
      .split("\n")
      .map(clean)
      .filter((line) => line !== "")
      .slice(0, 3),
  };
}

export function parseStatus(output: string): GitState {
  const counts = { staged: 0, modified: 0, untracked: 0, conflicts: 0 };
  let branch: string | null = null;
  let upstream: string | null = null;
  let [ahead, behind] = [0, 0];
  for (const line of output.split("\n")) {
    const [kind, word = "", ...rest] = line.split(" ");
    if (kind === "#" && word === "branch.head") branch = rest[0] === "(detached)" ? null : clean(rest.join(" "));
    else if (kind === "#" && word === "branch.upstream") upstream = clean(rest.join(" "));
    else if (kind === "#" && word === "branch.ab")
      [ahead, behind] = [Math.abs(Number(rest[0])), Math.abs(Number(rest[1]))];
    else if (kind === "1" || kind === "2") {
      if (word[0] !== ".") counts.staged++;
      if (word[1] !== ".") counts.modified++;
    } else if (kind === "u") counts.conflicts++;
    else if (kind === "?") counts.untracked++;
  }
  return { branch, upstream, ahead, behind, ...counts };
}

const clean = (text: string) => truncateCodePoints(text.replace(/\p{Cc}/gu, "").trim(), LONGEST);
