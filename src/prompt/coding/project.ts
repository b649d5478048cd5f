// What kind of project a folder holds and how its work is verified, from the files at its top.
import { join } from "node:path";
import { MANIFESTS } from "../coding.ts";
import type { FileAccess } from "../ports.ts";

const MOST_BYTES = 256 * 1024;
const MOST_MANIFESTS = 6;
const MOST_COMMANDS = 8;
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

export interface Project {
  readonly manifests: readonly string[];
  readonly managers: readonly string[];
  readonly verify: readonly string[];
  readonly contextFiles: readonly string[];
}

export async function readProject(root: string, files: FileAccess): Promise<Project> {
  const names = new Set((await files.list(root)).flatMap(({ name, kind }) => (kind === "directory" ? [] : [name])));
  const read = async (name: string) => (names.has(name) ? readText(join(root, name), files) : "");
  const [packageJson, pyproject, makefile, hasScript] = await Promise.all([
    read("package.json"),
    read("pyproject.toml"),
    read("Makefile"),
    files.look(join(root, "scripts", "run_tests.sh")),
  ]);
  const managers = [...new Set(LOCKFILES.flatMap(([file, manager]) => (names.has(file) ? [manager] : [])))];
  const runner = managers.find((manager) => SCRIPT_RUNNERS.includes(manager)) ?? "npm";
  const commands = [
    ...(hasScript?.kind === "file" ? ["scripts/run_tests.sh"] : []),
    ...scriptsOf(packageJson).map((target) => `${runner} run ${target}`),
    ...(names.has("pytest.ini") || pyproject.includes("[tool.pytest") ? ["pytest"] : []),
    ...TARGETS.filter((target) => new RegExp(`^${target}[ \\t]*:(?!=)`, "m").test(makefile)).map(
      (name) => `make ${name}`,
    ),
  ];
  return {
    manifests: MANIFESTS.filter((name) => names.has(name)).slice(0, MOST_MANIFESTS),
    managers,
    verify: [...new Set(commands)].slice(0, MOST_COMMANDS),
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

async function readText(path: string, files: FileAccess): Promise<string> {
  const read = await files.read(path, MOST_BYTES);
  return read.type === "bytes" ? new TextDecoder().decode(read.bytes) : "";
}
