// Whether this session is about code, decided once at its start.
import { dirname, join } from "node:path";
import { findGitRoot } from "./files/git-root.ts";
import type { FileAccess } from "./ports.ts";

export type CodingMode = "auto" | "focus" | "on" | "off";

const WORDS: Readonly<Record<string, CodingMode>> = {
  ...{ focus: "focus", strict: "focus", lean: "focus" },
  ...{ on: "on", true: "on", yes: "on", "1": "on", always: "on" },
  ...{ off: "off", false: "off", no: "off", "0": "off", never: "off" },
};
const PLATFORMS = ["cli", "tui", "acp", "desktop", ""];

export const MANIFESTS: readonly string[] = [
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
const MOST_ENTRIES = 500;

export function codingMode(setting: unknown): CodingMode {
  const word = String(setting ?? "")
    .trim()
    .toLowerCase();
  return Object.hasOwn(WORDS, word) ? (WORDS[word] ?? "auto") : "auto";
}

export interface WorkspaceSearch {
  readonly cwd: string;
  readonly userHome: string;
  readonly tempDir: string;
  readonly files: FileAccess;
}

export interface Posture {
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

async function findMarked(cwd: string, skipped: readonly string[], files: FileAccess): Promise<string | null> {
  let at = cwd;
  for (let level = 0; level <= PARENTS; level++) {
    if (!skipped.includes(at)) {
      const entries = await files.list(at);
      if (entries.some(({ name, kind }) => kind !== "directory" && MARKERS.has(name))) return at;
    }
    if (dirname(at) === at) return null;
    at = dirname(at);
  }
  return null;
}

async function holdsSource(root: string, files: FileAccess): Promise<boolean> {
  let left = MOST_ENTRIES;
  const look = async (directory: string): Promise<readonly string[] | "found"> => {
    const entries = (await files.list(directory)).slice(0, left);
    left -= entries.length;
    if (entries.some(({ name, kind }) => kind !== "directory" && SOURCE.test(name))) return "found";
    return entries
      .filter(({ name, kind }) => kind === "directory" && !name.startsWith(".") && !SKIPPED.has(name))
      .map(({ name }) => join(directory, name));
  };
  const below = await look(root);
  if (below === "found") return true;
  for (const directory of [...below].sort()) {
    if (left <= 0) return false;
    if ((await look(directory)) === "found") return true;
  }
  return false;
}
