// Where the project's context files may be. Order is everything: the first kind with a usable file is the only one loaded.
import { dirname, join, relative, sep } from "node:path";
import { compareCodePoints } from "../../kit/compare.ts";
import type { FileAccess } from "../ports.ts";

export interface Candidate {
  readonly path: string;
  /** As the heading shows it. */
  readonly name: string;
  readonly frontMatter: "strip" | "keep";
}

export interface CandidateKind {
  readonly kind: "hermes" | "agents" | "claude" | "cursor";
  /** Each holds names for one and the same thing; the first usable one counts. */
  readonly slots: readonly (readonly Candidate[])[];
  /** `first`: one slot is enough. `all`: every slot, together one text under `label`. */
  readonly take: "first" | "all";
  readonly label: string;
  /** Files of this kind beyond the number that is looked at. */
  readonly dropped: number;
}

export interface Search {
  readonly cwd: string;
  readonly gitRoot: string | null;
  /** `context_files.agents_scope`. */
  readonly agentsScope?: "cwd" | "git_root" | undefined;
}

const MOST_RULE_FILES = 100;

export async function findCandidates(search: Search, files: FileAccess): Promise<readonly CandidateKind[]> {
  const { cwd, gitRoot } = search;
  const upwards = directoriesUpTo(cwd, gitRoot ?? cwd);
  const rules = await ruleFiles(cwd, files);
  const inCwd = (names: readonly string[]) => [names.map((name) => candidate(cwd, name))];
  return [
    {
      kind: "hermes",
      slots: upwards.map((directory) => [".hermes.md", "HERMES.md"].map((name) => candidate(directory, name))),
      take: "first",
      label: ".hermes.md",
      dropped: 0,
    },
    agents(search, upwards),
    { kind: "claude", slots: inCwd(["CLAUDE.md", "claude.md"]), take: "first", label: "CLAUDE.md", dropped: 0 },
    {
      kind: "cursor",
      slots: [...inCwd([".cursorrules"]), ...rules.slice(0, MOST_RULE_FILES).map((rule) => [rule])],
      take: "all",
      label: ".cursorrules",
      dropped: Math.max(0, rules.length - MOST_RULE_FILES),
    },
  ];
}

function agents({ cwd, gitRoot, agentsScope }: Search, upwards: readonly string[]): CandidateKind {
  const names = ["AGENTS.md", "agents.md"];
  const kind = { kind: "agents", label: "AGENTS.md", dropped: 0 } as const;
  if (agentsScope !== "git_root" || gitRoot === null)
    return { ...kind, slots: [names.map((name) => candidate(cwd, name))], take: "first" };
  const slots = [...upwards].reverse().map((directory) => {
    const below = relative(gitRoot, directory).split(sep).join("/");
    return names.map((name) => ({ ...candidate(directory, name), name: below === "" ? name : `${below}/${name}` }));
  });
  return { ...kind, slots, take: "all" };
}

function candidate(directory: string, name: string): Candidate {
  const strips = name.toLowerCase().endsWith("hermes.md") || name.endsWith(".mdc");
  return { path: join(directory, name), name, frontMatter: strips ? "strip" : "keep" };
}

async function ruleFiles(cwd: string, files: FileAccess): Promise<readonly Candidate[]> {
  const entries = await files.list(join(cwd, ".cursor", "rules"));
  return entries
    .filter(({ name, kind }) => name.endsWith(".mdc") && kind !== "directory")
    .map(({ name }) => `.cursor/rules/${name}`)
    .sort(compareCodePoints)
    .map((name) => candidate(cwd, name));
}

/** From a directory up to one above it, both included, nearest first. */
function directoriesUpTo(from: string, top: string): readonly string[] {
  const found = [from];
  for (let at = from; at !== top && dirname(at) !== at; ) {
    at = dirname(at);
    found.push(at);
  }
  return found;
}
