// The workspace as it was when the session began. Never refreshed: its header tells the model to ask git.
import type { Scan } from "../files/screen.ts";
import type { RunProgram } from "../ports/run-program.ts";
import type { FileAccess } from "../ports.ts";
import { type GitReading, readGit } from "./git-state.ts";
import { type Project, readProject } from "./project.ts";
import { WORKSPACE_HEADER } from "./workspace-header.ts";

export interface WorkspaceOptions {
  readonly root: string;
  readonly files: FileAccess;
  readonly run: RunProgram;
  readonly scan: Scan;
}

export async function readWorkspace({ root, files, run, scan }: WorkspaceOptions): Promise<string> {
  const isRepository = (await files.look(`${root}/.git`)) !== null;
  const [git, project] = await Promise.all([isRepository ? readGit(root, run) : null, readProject(root, files)]);
  return screenLines(workspaceLines(root, git, project), scan);
}

export function workspaceLines(root: string, git: GitReading | null, project: Project): readonly string[] {
  const { manifests, managers, verify, contextFiles } = project;
  const tools = managers.length > 0 ? ` (${managers.join("/")})` : "";
  return [
    WORKSPACE_HEADER,
    `- Root: ${root.replace(/\p{Cc}/gu, " ")}`,
    ...(git ? gitLines(git) : []),
    ...(manifests.length > 0 ? [`- Project: ${manifests.join(", ")}${tools}`] : []),
    ...(verify.length > 0 ? [`- Verify: ${verify.join("; ")}`] : []),
    ...(contextFiles.length > 0 ? [`- Context files: ${contextFiles.join(", ")}`] : []),
  ];
}

function gitLines({ state, linkedWorktree, commits }: GitReading): readonly string[] {
  return [
    ...(state ? [branchLine(state)] : []),
    ...(linkedWorktree ? ["- Worktree: linked (git state shared with primary tree)"] : []),
    ...(state ? [statusLine(state)] : []),
    ...(commits.length > 0 ? ["- Recent commits:", ...commits.map((commit) => `    ${commit}`)] : []),
  ];
}

type State = NonNullable<GitReading["state"]>;

function branchLine({ branch, upstream, ahead, behind }: State): string {
  if (branch === null) return "- Branch: (detached HEAD)";
  const remote = upstream === null ? "" : ` → ${upstream}`;
  return `- Branch: ${branch}${remote}${ahead > 0 || behind > 0 ? ` (ahead ${ahead}, behind ${behind})` : ""}`;
}

function statusLine(state: State): string {
  const parts = (["staged", "modified", "untracked", "conflicts"] as const).flatMap((kind) =>
    state[kind] > 0 ? [`${state[kind]} ${kind}`] : [],
  );
  return `- Status: ${parts.length > 0 ? parts.join(", ") : "clean"}`;
}

/** Branch names and commit titles are written by others. A line that looks like an order is replaced; all of them, if they only do together. */
export function screenLines(lines: readonly string[], scan: Scan): string {
  const whole = scan(lines.join("\n"));
  if (whole.length === 0) return lines.join("\n");
  const screened = lines.map((line) => {
    const findings = scan(line);
    return findings.length === 0 ? line : marker(findings.map(({ id }) => id));
  });
  const left = scan(screened.join("\n"));
  return left.length === 0 ? screened.join("\n") : [WORKSPACE_HEADER, marker(left.map(({ id }) => id))].join("\n");
}

function marker(ids: readonly string[]): string {
  return `[BLOCKED: git metadata contained potential prompt injection (${[...new Set(ids)].join(", ")}). Content not loaded.]`;
}
