// Whether this session is about code, decided once at its start.
import { dirname, join } from "node:path";
import { truncateCodePoints } from "../kit/code-points.ts";
import { findGitRoot, type Scan } from "./files/read.ts";
import { list, look, type ReadableFiles, type RunProgram, readBytes } from "./ports.ts";
import { withRepository } from "./repository.ts";

type CodingMode = "auto" | "focus" | "on" | "off";

const WORDS: Readonly<Record<string, CodingMode>> = {
  ...{ focus: "focus", strict: "focus", lean: "focus" },
  ...{ on: "on", true: "on", yes: "on", "1": "on", always: "on" },
  ...{ off: "off", false: "off", no: "off", "0": "off", never: "off" },
};
const PLATFORMS = ["cli", "tui", "acp", "desktop", ""];

const MANIFESTS: readonly string[] = [
  ...["pyproject.toml", "setup.py", "setup.cfg", "requirements.txt", "package.json", "tsconfig.json", "deno.json"],
  ...["Cargo.toml", "go.mod", "pom.xml", "build.gradle", "build.gradle.kts", "Gemfile", "composer.json", "mix.exs"],
  ...["pubspec.yaml", "CMakeLists.txt", "Makefile", "Dockerfile"],
];
const MARKERS = new Set([...MANIFESTS, "AGENTS.md", "CLAUDE.md", ".cursorrules"]);
const PARENTS = 6;

const SOURCE = new RegExp(
  `\\.(?:${[
    "py ipynb js jsx ts tsx mjs cjs go rs java kt scala rb php c h cc cpp hpp cs swift m mm dart ex exs lua sh bash zsh",
    "sql vue svelte r jl hs clj erl pl",
  ]
    .join(" ")
    .replaceAll(" ", "|")})$`,
  "i",
);
const SKIPPED = new Set("node_modules venv __pycache__ dist build target vendor".split(" "));
const MAX_ENTRIES = 500;

export function codingMode(setting: unknown): CodingMode {
  const word = String(setting ?? "")
    .trim()
    .toLowerCase();
  return Object.hasOwn(WORDS, word) ? (WORDS[word] ?? "auto") : "auto";
}

interface WorkspaceSearch {
  readonly cwd: string;
  readonly userHome: string;
  readonly tempDir: string;
  readonly files: ReadableFiles;
}

interface Posture {
  readonly active: boolean;
  readonly focus: boolean;
  /** Top of the code workspace; null when there is none. */
  readonly root: string | null;
}

/** Only terminals and editors take it on by themselves; elsewhere a folder of code says nothing about the conversation. */
export async function codingPosture(mode: CodingMode, platform: string, search: WorkspaceSearch): Promise<Posture> {
  const none = { active: false, focus: false, root: null };
  if (mode === "off" || (mode !== "on" && !PLATFORMS.includes(platform.toLowerCase()))) return none;
  const root = await findWorkspace(search);
  if (mode === "on") return { active: true, focus: false, root };
  return root === null ? none : { active: true, focus: mode === "focus", root };
}

export async function findWorkspace({ cwd, userHome, tempDir, files }: WorkspaceSearch): Promise<string | null> {
  const found = await findGitRoot(cwd, files);
  const gitRoot = found === userHome ? null : found;
  const marked = await findMarked(cwd, [userHome, tempDir], files);
  if (marked !== null) return gitRoot ?? marked;
  return gitRoot !== null && (await holdsSource(gitRoot, files)) ? gitRoot : null;
}

async function findMarked(cwd: string, skipped: readonly string[], files: ReadableFiles): Promise<string | null> {
  let at = cwd;
  for (let level = 0; level <= PARENTS; level++) {
    if (!skipped.includes(at)) {
      const entries = await list(files, at);
      if (entries.some(({ name, type }) => type !== "directory" && MARKERS.has(name))) return at;
    }
    if (dirname(at) === at) return null;
    at = dirname(at);
  }
  return null;
}

async function holdsSource(root: string, files: ReadableFiles): Promise<boolean> {
  let left = MAX_ENTRIES;
  const search = async (directory: string): Promise<readonly string[] | "found"> => {
    const entries = (await list(files, directory)).slice(0, left);
    left -= entries.length;
    if (entries.some(({ name, type }) => type !== "directory" && SOURCE.test(name))) return "found";
    return entries
      .filter(({ name, type }) => type === "directory" && !name.startsWith(".") && !SKIPPED.has(name))
      .map(({ name }) => join(directory, name));
  };
  const below = await search(root);
  if (below === "found") return true;
  for (const directory of [...below].sort()) {
    if (left <= 0) return false;
    if ((await search(directory)) === "found") return true;
  }
  return false;
}

// The workspace as it was when the session began. Never refreshed: its header tells the model to ask git.

interface WorkspaceOptions {
  readonly root: string;
  readonly files: ReadableFiles;
  readonly run: RunProgram;
  readonly scan: Scan;
}

export async function readWorkspace({ root, files, run, scan }: WorkspaceOptions): Promise<string> {
  const isRepository = (await look(files, `${root}/.git`)) !== null;
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

// What kind of project a folder holds and how its work is verified, from the files at its top.

const MAX_BYTES = 256 * 1024;
const MAX_MANIFESTS = 6;
const MAX_COMMANDS = 8;
const TARGETS = ["test", "tests", "lint", "typecheck", "check", "build", "fmt", "format"];
const CONTEXT_FILES = [".hermes.md", "HERMES.md", "AGENTS.md", "agents.md", "CLAUDE.md", "claude.md", ".cursorrules"];

const LOCKFILES: readonly (readonly [file: string, manager: string])[] = [
  ["uv.lock", "uv"],
  ["poetry.lock", "poetry"],
  ["Pipfile.lock", "pipenv"],
  ["pnpm-lock.yaml", "pnpm"],
  ["bun.lockb", "bun"],
  ["bun.lock", "bun"],
  ["yarn.lock", "yarn"],
  ["package-lock.json", "npm"],
];
const SCRIPT_RUNNERS = ["pnpm", "bun", "yarn", "npm"];

interface Project {
  readonly manifests: readonly string[];
  readonly managers: readonly string[];
  readonly verify: readonly string[];
  readonly contextFiles: readonly string[];
}

export async function readProject(root: string, files: ReadableFiles): Promise<Project> {
  const names = new Set((await list(files, root)).flatMap(({ name, type }) => (type === "directory" ? [] : [name])));
  const read = async (name: string) => (names.has(name) ? readText(join(root, name), files) : "");
  const [packageJson, pyproject, makefile, hasScript] = await Promise.all([
    read("package.json"),
    read("pyproject.toml"),
    read("Makefile"),
    look(files, join(root, "scripts", "run_tests.sh")),
  ]);
  const managers = [...new Set(LOCKFILES.flatMap(([file, manager]) => (names.has(file) ? [manager] : [])))];
  const runner = managers.find((manager) => SCRIPT_RUNNERS.includes(manager)) ?? "npm";
  const commands = [
    ...(hasScript?.type === "file" ? ["scripts/run_tests.sh"] : []),
    ...scriptsOf(packageJson).map((target) => `${runner} run ${target}`),
    ...(names.has("pytest.ini") || pyproject.includes("[tool.pytest") ? ["pytest"] : []),
    ...TARGETS.filter((target) => new RegExp(`^${target}[ \\t]*:(?!=)`, "m").test(makefile)).map(
      (name) => `make ${name}`,
    ),
  ];
  return {
    manifests: MANIFESTS.filter((name) => names.has(name)).slice(0, MAX_MANIFESTS),
    managers,
    verify: [...new Set(commands)].slice(0, MAX_COMMANDS),
    contextFiles: CONTEXT_FILES.filter((name) => names.has(name)),
  };
}

function scriptsOf(text: string): readonly string[] {
  try {
    const scripts: unknown = JSON.parse(text === "" ? "{}" : text)?.scripts;
    if (typeof scripts !== "object" || scripts === null) return [];
    return TARGETS.filter((target) => Object.hasOwn(scripts, target));
  } catch {
    return []; // not JSON: then nothing is known of its scripts
  }
}

async function readText(path: string, files: ReadableFiles): Promise<string> {
  const read = await readBytes(files, path, MAX_BYTES);
  return read.type === "bytes" ? new TextDecoder().decode(read.bytes) : "";
}

// The state of a repository at one moment. Everything it prints is repository content: cleaned here, screened by the caller.

const CALL_MS = 2_500;
const LONGEST = 120;

interface GitState {
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

interface GitReading {
  readonly state: GitState | null;
  readonly linkedWorktree: boolean;
  /** Short hash and subject, newest first. */
  readonly commits: readonly string[];
}

function readGit(root: string, run: RunProgram): Promise<GitReading | null> {
  return withRepository(root, { run, timeoutMs: CALL_MS }, async ({ git, linkedWorktree }) => {
    const [status, log] = await Promise.all([
      // Looking into submodules would start a git in each, with the configuration that lies there.
      git("status", "--porcelain=2", "--branch", "--ignore-submodules=dirty"),
      git("log", "-3", "--no-decorate", "--format=%h %s"),
    ]);
    return {
      state: status.exitCode === 0 ? parseStatus(status.stdout) : null,
      linkedWorktree,
      commits: (log.exitCode === 0 ? log.stdout : "")
        .split("\n")
        .map(clean)
        .filter((line) => line !== "")
        .slice(0, 3),
    };
  });
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

export const WORKSPACE_HEADER = "Workspace (snapshot at session start — re-check with `git` before acting on it):";
