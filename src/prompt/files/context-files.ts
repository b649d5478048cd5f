// The project's own instructions: one kind of file per session, read, screened and cut to size.

import { dirname, join, relative, sep } from "node:path";
import { compareCodePoints, countCodePoints } from "../../kit/code-points.ts";
import { isWithin } from "../../kit/files.ts";
import { estimateTokens } from "../../llm/usage.ts";
import { judgeFindings } from "../../safety/threats/scan.ts";
import type { ContextFileReport, ContextReading } from "../contract.ts";
import { sha256 } from "../fingerprint.ts";
import { type FileLook, list, look, type ReadableFiles } from "../ports.ts";
import {
  blockedMarker,
  describeScreened,
  type FileRules,
  findGitRoot,
  readTextFile,
  type ScreenOptions,
  screen,
  truncateFile,
} from "./read.ts";

const HEADING = "# Project Context\n\nThe following project context files have been loaded and should be followed:\n\n";

export interface ContextFilesOptions extends FileRules, ScreenOptions {
  /** Absolute. */
  readonly cwd: string;
  /** Characters of content; see `contextFileLimit`. */
  readonly limit: number;
  /** No project file at all (sub-agents, `--ignore-rules`). */
  readonly skip?: boolean | undefined;
  /** Nobody chose the directory: it is where the program was started. Its own folder then says nothing about the user's work. */
  readonly fallbackIn?: { readonly installRoot: string; readonly platform: string } | undefined;
  readonly agentsScope?: "cwd" | "git_root" | undefined;
  /** SOUL.md, for a caller that did not use it as the identity. */
  readonly soulText?: string | null | undefined;
}

/** Never rejects for what is in the files or on the disk. */
export async function readContextFiles(options: ContextFilesOptions): Promise<ContextReading> {
  const reader = new Reader(options);
  if (options.skip !== true && !reader.isOwnFolder()) await reader.readProject();
  const text = [reader.text, options.soulText ?? ""].filter((part) => part !== "").join("\n");
  return { text, reports: reader.reports, warnings: reader.warnings, hashes: reader.hashes };
}

interface Section {
  readonly candidate: Candidate;
  readonly content: string;
  /** Its index in `reports`. */
  readonly report: number;
}

class Reader {
  readonly reports: ContextFileReport[] = [];
  readonly warnings: string[] = [];
  readonly hashes: string[] = [];
  text = "";
  readonly #options: ContextFilesOptions;
  readonly #seen = new Set<string>();

  constructor(options: ContextFilesOptions) {
    this.#options = options;
  }

  isOwnFolder(): boolean {
    const { cwd, fallbackIn } = this.#options;
    if (!fallbackIn || ["cli", "tui"].includes(fallbackIn.platform) || !isWithin(cwd, fallbackIn.installRoot))
      return false;
    this.warnings.push(
      `No project files are loaded from ${cwd}: it is the program's own folder and nobody chose it. Set terminal.cwd in config.yaml to your project.`,
    );
    return true;
  }

  async readProject(): Promise<void> {
    const { cwd, files, agentsScope } = this.#options;
    const gitRoot = await findGitRoot(cwd, files);
    const kinds = await findCandidates({ cwd, gitRoot, agentsScope }, files);
    const looks = await this.#lookAtAll(kinds);
    let winner: Candidate | null = null;
    for (const kind of kinds) {
      if (winner) this.#shadow(kind.slots.flat(), kind, winner, looks);
      else winner = await this.#readKind(kind, gitRoot ?? cwd, looks);
    }
  }

  async #lookAtAll(kinds: readonly CandidateKind[]): Promise<ReadonlyMap<string, FileLook>> {
    const paths = kinds.flatMap(({ slots }) => slots.flat().map(({ path }) => path));
    const looks = await Promise.all(paths.map(async (path) => [path, await look(this.#options.files, path)] as const));
    return new Map(looks.flatMap(([path, look]) => (look ? [[path, look] as const] : [])));
  }

  /** The first file that was used, or null when none of this kind can be. */
  async #readKind(
    kind: CandidateKind,
    boundary: string,
    looks: ReadonlyMap<string, FileLook>,
  ): Promise<Candidate | null> {
    const sections: Section[] = [];
    for (const slot of kind.slots) {
      const winner = sections[0]?.candidate;
      if (winner && kind.take === "first") {
        this.#shadow(slot, kind, winner, looks);
        continue;
      }
      const section = await this.#readSlot(slot, kind, boundary, looks);
      if (section) sections.push(section);
    }
    if (sections.length > 0) this.#render(kind, sections);
    if (kind.dropped > 0)
      this.warnings.push(`${this.#options.cwd}: ${kind.dropped} more rule files in .cursor/rules were not read.`);
    return sections[0]?.candidate ?? null;
  }

  async #readSlot(
    slot: readonly Candidate[],
    kind: CandidateKind,
    boundary: string,
    looks: ReadonlyMap<string, FileLook>,
  ): Promise<Section | null> {
    for (const [index, candidate] of slot.entries()) {
      const look = looks.get(candidate.path);
      if (!look || !this.#isNew(candidate, look)) continue;
      const section = await this.#readCandidate(candidate, kind, boundary);
      if (!section) continue;
      this.#shadow(slot.slice(index + 1), kind, candidate, looks);
      return section;
    }
    return null;
  }

  async #readCandidate(candidate: Candidate, { kind }: CandidateKind, boundary: string): Promise<Section | null> {
    const { path, name } = candidate;
    const file = await readTextFile(path, boundary, this.#options);
    if (file.type === "missing") return null;
    if (file.type !== "text") {
      this.reports.push(unread(path, kind, file.type, file.type === "empty" ? undefined : file.reason));
      if (file.type !== "empty") this.warnings.push(`${path} was not loaded: ${file.reason}.`);
      return null;
    }
    const body = candidate.frontMatter === "strip" ? await withoutFrontMatter(file.text) : file.text;
    const screened = screen(body, file.hash, this.#options);
    if (screened.verdict !== "clean") this.warnings.push(describeScreened(path, screened));
    this.hashes.push(sha256(file.text));
    const blocked = screened.verdict === "blocked";
    const content = blocked ? blockedMarker(name, screened.findings) : body;
    const chars = countCodePoints(body);
    const report = this.reports.push({
      path,
      kind,
      status: blocked ? "blocked" : screened.verdict === "flagged" ? "flagged" : "loaded",
      chars,
      keptChars: blocked ? 0 : chars,
      tokens: estimateTokens(content),
      findings: screened.findings,
    });
    return { candidate, content, report: report - 1 };
  }

  /** The sections as one text within the limit. Only the very first heading is not counted. */
  #render(kind: CandidateKind, sections: readonly Section[]): void {
    const [first] = sections;
    if (!first) return;
    const texts = sections.map(({ candidate, content }, index) =>
      index === 0 ? content : `## ${candidate.name}\n\n${content}`,
    );
    const whole = texts.join("\n\n");
    const inCwd = first.candidate.path === join(this.#options.cwd, first.candidate.name);
    const label = kind.take === "all" ? kind.label : inCwd ? first.candidate.name : first.candidate.path;
    const cut = truncateFile(whole, this.#options.limit, label);
    let content = cut.text;
    if (cut.kept < cut.total) content = this.#noteCut(first, sections, cut);
    this.text = `${HEADING}## ${first.candidate.name}\n\n${content}`;
  }

  #noteCut(first: Section, sections: readonly Section[], cut: ReturnType<typeof truncateFile>): string {
    const { limit, scan, reaction } = this.#options;
    const head = Math.floor((limit * 7) / 10);
    this.warnings.push(
      `${first.candidate.path}: only ${head}+${cut.kept - head} of ${cut.total} characters are in the prompt, the limit is ${limit}. Set context_file_max_chars in config.yaml to change it.`,
    );
    // Cutting can put words side by side that were far apart.
    const known = new Set(sections.flatMap(({ report }) => this.reports[report]?.findings.map(({ id }) => id) ?? []));
    const fresh = scan(cut.text).filter(({ id }) => !known.has(id));
    const blocked = reaction !== "warn" && judgeFindings(fresh) === "blocked";
    if (blocked) this.warnings.push(describeScreened(first.candidate.path, { verdict: "blocked", findings: fresh }));
    let start = 0;
    for (const [index, { candidate, content, report }] of sections.entries()) {
      const old = this.reports[report];
      if (index > 0) start += countCodePoints(`\n\n## ${candidate.name}\n\n`);
      const length = countCodePoints(content);
      const kept = blocked || old?.status === "blocked" ? 0 : overlap(start, start + length, head, cut);
      start += length;
      if (!old || (kept === old.keptChars && !blocked)) continue;
      const status = blocked ? "blocked" : old.status === "loaded" ? "truncated" : old.status;
      const tokens = old.keptChars === 0 ? 0 : Math.ceil((old.tokens * kept) / old.keptChars);
      this.reports[report] = {
        ...old,
        status,
        keptChars: kept,
        tokens,
        findings: [...old.findings, ...(blocked ? fresh : [])],
      };
    }
    return blocked ? blockedMarker(first.candidate.name, fresh) : cut.text;
  }

  /** On file systems that ignore letter case, two names can be one file. */
  #isNew({ path }: Candidate, { version }: FileLook): boolean {
    const key = `${version} ${path.toLowerCase()}`;
    if (this.#seen.has(key)) return false;
    this.#seen.add(key);
    return true;
  }

  #shadow(
    candidates: readonly Candidate[],
    { kind }: CandidateKind,
    winner: Candidate,
    looks: ReadonlyMap<string, FileLook>,
  ): void {
    for (const candidate of candidates) {
      const found = looks.get(candidate.path);
      if (found?.type !== "file" || !this.#isNew(candidate, found)) continue;
      this.reports.push(unread(candidate.path, kind, "shadowed", `by ${winner.path}`));
    }
  }
}

function unread(path: string, kind: string, status: ContextFileReport["status"], reason?: string): ContextFileReport {
  const nothing = { chars: 0, keptChars: 0, tokens: 0, findings: [] };
  return { path, kind, status, ...nothing, reason };
}

/** How much of a stretch of the whole text lies in its kept head and tail. */
function overlap(start: number, end: number, head: number, { kept, total }: { kept: number; total: number }): number {
  const tailStart = total - (kept - head);
  return Math.max(0, Math.min(end, head) - start) + Math.max(0, end - Math.max(start, tailStart));
}

// Where the project's context files may be. Order is everything: the first kind with a usable file is the only one loaded.

interface Candidate {
  readonly path: string;
  /** As the heading shows it. */
  readonly name: string;
  readonly frontMatter: "strip" | "keep";
}

interface CandidateKind {
  readonly kind: "hermes" | "agents" | "claude" | "cursor";
  /** Each holds names for one and the same thing; the first usable one counts. */
  readonly slots: readonly (readonly Candidate[])[];
  /** `first`: one slot is enough. `all`: every slot, together one text under `label`. */
  readonly take: "first" | "all";
  readonly label: string;
  /** Files of this kind beyond the number that is looked at. */
  readonly dropped: number;
}

interface Search {
  readonly cwd: string;
  readonly gitRoot: string | null;
  /** `context_files.agents_scope`. */
  readonly agentsScope?: "cwd" | "git_root" | undefined;
}

const MAX_RULE_FILES = 100;

async function findCandidates(search: Search, files: ReadableFiles): Promise<readonly CandidateKind[]> {
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
      slots: [...inCwd([".cursorrules"]), ...rules.slice(0, MAX_RULE_FILES).map((rule) => [rule])],
      take: "all",
      label: ".cursorrules",
      dropped: Math.max(0, rules.length - MAX_RULE_FILES),
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

async function ruleFiles(cwd: string, files: ReadableFiles): Promise<readonly Candidate[]> {
  const entries = await list(files, join(cwd, ".cursor", "rules"));
  return entries
    .filter(({ name, type }) => name.endsWith(".mdc") && type !== "directory")
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

/**
 * The text without its front matter. What stands between two lines `---` at the top counts as such only if it is YAML of keys and
 * values: a document that merely opens with a horizontal rule keeps its beginning.
 */
export async function withoutFrontMatter(text: string): Promise<string> {
  if (!/^\ufeff?---/.test(text)) return text;
  const { parseFrontMatter } = await import("../../kit/front-matter.ts"); // loads the YAML parser
  const { present, problem, body } = parseFrontMatter(text);
  if (!present || (problem !== null && !looksLikeKeys(text))) return text;
  const rest = body.replace(/^\n+/, "");
  return rest === "" ? text : rest;
}

function looksLikeKeys(text: string): boolean {
  const [, first = ""] = text.split("\n").filter((line) => line.trim() !== "");
  return /^[A-Za-z_][\w .-]*:(?:\s|$)/.test(first);
}
