// Looks at a whole skill, files and structure, without running or changing anything.

import type { Stats } from "node:fs";
import { lstat, open, readdir, readFile, stat } from "node:fs/promises";
import { extname, join } from "node:path";
import { sliceCodePoints } from "../../kit/code-points.ts";
import { isWithin } from "../../kit/files.ts";
import { plural } from "../../kit/formats.ts";
import { resolveLinks } from "../../safety/paths.ts";
import { findInvisible, showInvisible } from "../../safety/threats/scan.ts";
import { compare } from "../files.ts";
import { EVERYDAY, LANGUAGES } from "./everyday.ts";
import {
  CREDENTIALS,
  DESTRUCTIVE,
  EVASION,
  EXECUTION,
  EXFILTRATION,
  type FileKind,
  INJECTION,
  type Lines,
  MINING,
  NETWORK,
  OBFUSCATION,
  PERSISTENCE,
  PRIVILEGES,
  type Severity,
  type SkillPattern,
  SUPPLY_CHAIN,
  TALK,
  TRAVERSAL,
} from "./patterns.ts";

type Verdict = "safe" | "caution" | "dangerous";

interface SkillScan {
  readonly verdict: Verdict;
  readonly findings: readonly SkillFinding[];
  readonly files: number;
}

const MAX_FILES = 50;
const MAX_TOTAL = 1024 * 1024;
const MAX_FILE = 256 * 1024;
/** Beyond this a file is not read; it has been reported as oversized. */
const MAX_SCANNED = 5 * 1024 * 1024;
const BINARIES = new Set(".exe .dll .so .dylib .bin .dat .com .msi .dmg .app .deb .rpm".split(" "));
const TEXTS = new Set(
  ".md .txt .py .sh .bash .js .mjs .cjs .ts .rb .yaml .yml .json .toml .cfg .ini .conf .html .css .xml .tex .r .jl .pl .php .ps1 .bat".split(
    " ",
  ),
);
/** Pictures, fonts and sound are large by nature, and nothing in them is read or run. */
const MEDIA = new Set(".png .jpg .jpeg .gif .webp .ico .ttf .otf .woff .woff2 .mp3 .wav .ogg .mp4 .webm".split(" "));
const SCRIPTS = new Set(".sh .bash .py .js .mjs .cjs .ts .rb .pl .php .ps1 .bat .r .jl".split(" "));

/** Throws only when the directory cannot be read. */
export async function scanSkill(dir: string): Promise<SkillScan> {
  const items = await everything(dir);
  const files = items.filter(({ facts }) => facts.isFile());
  const findings = [
    ...sizeFindings(files),
    ...(await Promise.all(items.map((item) => structureFindings(dir, item)))).flat(),
    ...(await Promise.all(files.map(({ path, facts }) => fileFindings(dir, path, facts)))).flat(),
  ];
  return { verdict: verdictOf(findings), findings, files: files.length };
}

export function verdictOf(findings: readonly { readonly severity: Severity }[]): Verdict {
  if (findings.some(({ severity }) => severity === "critical")) return "dangerous";
  return findings.some(({ severity }) => severity === "high") ? "caution" : "safe";
}

interface Item {
  readonly path: string;
  readonly facts: Stats;
}

async function everything(dir: string): Promise<readonly Item[]> {
  const found: Item[] = [];
  await visit("");
  return found.sort((a, b) => compare(a.path, b.path));

  async function visit(path: string): Promise<void> {
    for (const name of await readdir(join(dir, path))) {
      const below = path === "" ? name : `${path}/${name}`;
      const facts = await lstat(join(dir, below));
      if (facts.isDirectory()) await visit(below);
      else found.push({ path: below, facts });
    }
  }
}

function structural(id: string, severity: Severity, file: string, match: string): SkillFinding {
  return { id, severity, category: "structure", file, line: 0, match };
}

function sizeFindings(files: readonly Item[]): SkillFinding[] {
  const total = files.reduce(
    (sum, { path, facts }) => sum + (MEDIA.has(extname(path).toLowerCase()) ? 0 : facts.size),
    0,
  );
  return [
    ...(files.length > MAX_FILES ? [structural("too_many_files", "medium", "", `${files.length} files`)] : []),
    ...(total > MAX_TOTAL ? [structural("oversized_skill", "high", "", `${total} bytes`)] : []),
  ];
}

async function structureFindings(dir: string, { path, facts }: Item): Promise<SkillFinding[]> {
  if (facts.isSymbolicLink()) return linkFindings(dir, path);
  const extension = extname(path).toLowerCase();
  const findings: SkillFinding[] = [];
  if (facts.size > MAX_FILE) findings.push(structural("oversized_file", "medium", path, `${facts.size} bytes`));
  if (BINARIES.has(extension)) findings.push(structural("binary_file", "critical", path, extension));
  else if ((facts.mode & 0o111) !== 0 && process.platform !== "win32" && !SCRIPTS.has(extension)) {
    const script = extension === "" && (await hasShebang(join(dir, path)));
    if (!script) findings.push(structural("unexpected_executable", "medium", path, "executable"));
  }
  return findings;
}

async function linkFindings(dir: string, path: string): Promise<SkillFinding[]> {
  try {
    const [real, root] = await Promise.all([resolveLinks(join(dir, path)), resolveLinks(dir)]);
    if (!isWithin(real, root)) return [structural("symlink_escape", "critical", path, real)];
    await stat(real);
    return [];
  } catch {
    return [structural("broken_symlink", "medium", path, "leads nowhere")];
  }
}

async function fileFindings(dir: string, path: string, facts: Stats): Promise<readonly SkillFinding[]> {
  const extension = extname(path).toLowerCase();
  const file = join(dir, path);
  if (facts.size > MAX_SCANNED) return [];
  if (!TEXTS.has(extension) && extension !== "" && !(await hasShebang(file))) return [];
  return scanText(decode(await readFile(file)), path);
}

/** Bytes that are no UTF-8 are read as Latin-1: an odd byte must not keep the rest from being seen. */
function decode(bytes: Uint8Array): string {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return Buffer.from(bytes).toString("latin1");
  }
}

async function hasShebang(path: string): Promise<boolean> {
  const file = await open(path, "r");
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(2), 0, 2, 0);
    return bytesRead === 2 && buffer.toString("latin1") === "#!";
  } finally {
    await file.close();
  }
}

// The findings in one text.

interface SkillFinding {
  readonly id: string;
  readonly severity: Severity;
  readonly category: string;
  readonly file: string;
  /** From 1; 0 for what is not about a line. */
  readonly line: number;
  /** At most 120 characters. */
  readonly match: string;
}

const PATTERNS: readonly SkillPattern[] = [
  ...EXFILTRATION,
  ...TALK,
  ...INJECTION,
  ...DESTRUCTIVE,
  ...PERSISTENCE,
  ...NETWORK,
  ...OBFUSCATION,
  ...EXECUTION,
  ...TRAVERSAL,
  ...MINING,
  ...SUPPLY_CHAIN,
  ...PRIVILEGES,
  ...CREDENTIALS,
  ...EVASION,
];

/** A report nobody reads helps nobody, and every further match costs another pass. */
const MATCHES_PER_PATTERN = 20;
/** Characters that are looked at to see everyday work for what it is. Whoever needs more of it is taken at his word. */
const TRUSTED_WORK = 20_000_000;
/** Longer lines are nobody's everyday work. */
const TRUSTED_LINE = 4_000;
const RANK: readonly (Severity | "nothing")[] = ["nothing", "low", "medium", "high", "critical"];
const JOINED = "\u2028"; // a line break the shell does not see; white space for patterns, a line for counting

const EXTENSIONS: Readonly<Record<string, FileKind>> = Object.fromEntries(
  (
    [
      ["document", ".md .txt .tex"],
      ["page", ".html .css .xml"],
      ["python", ".py"],
      ["javascript", ".js .mjs .cjs .ts"],
      ["shell", ".sh .bash"],
      ["ruby", ".rb"],
      ["data", ".yaml .yml .json .toml .cfg .ini .conf"],
      ["other", ".r .jl .pl .php .ps1 .bat"],
    ] as const
  ).flatMap(([kind, extensions]) => extensions.split(" ").map((extension) => [extension, kind])),
);

export function scanText(text: string, file: string): readonly SkillFinding[] {
  const plain = text.replaceAll("\r\n", "\n").replaceAll(JOINED, " ");
  const folded = plain
    .replaceAll("\\\n", JOINED)
    .normalize("NFKC")
    .replace(/[A-Z]+/g, (capitals) => capitals.toLowerCase());
  const kind = kindOf(file);
  const texts = { folded, raw: plain.split("\n"), kind };
  const found = PATTERNS.filter(({ id }) => isFor(id, kind)).flatMap((pattern) => placesOf(pattern, texts, file));
  const written = new Set(found.filter(({ id }) => /^(agent|hermes)_config_mod$/.test(id)).map(({ line }) => line));
  return [
    ...found.filter(({ id, line }) => id !== "agent_config_mention" || !written.has(line)),
    ...invisible(plain, file),
  ];
}

interface Texts {
  readonly folded: string;
  readonly raw: readonly string[];
  readonly kind: FileKind;
}

/** Each line at most once. */
function placesOf(pattern: SkillPattern, { folded: text, raw, kind }: Texts, file: string): SkillFinding[] {
  const { id, category, severity, find } = pattern;
  const found: SkillFinding[] = [];
  const counts = { full: 0, lowered: 0 };
  let work = 0;
  let offset = 0;
  let line = 1;
  while (counts.full < MATCHES_PER_PATTERN && offset < text.length) {
    const rest = offset === 0 ? text : text.slice(offset);
    const span = find(rest);
    if (!span) break;
    work += rest.length;
    line += countBreaks(rest, span.index);
    const newline = rest.indexOf("\n", Math.max(span.index, span.end - 1));
    const around = (): Lines => {
      const start = rest.lastIndexOf("\n", span.index - 1) + 1;
      const folded = rest.slice(start, newline === -1 ? undefined : newline);
      const first = line - 1 - countBreaks(folded, span.index - start);
      return {
        folded: folded.replaceAll(JOINED, " "),
        raw: raw.slice(first, first + 1 + countBreaks(folded, folded.length)).join("\n"),
        file: raw,
        depth: file.split("/").length - 1,
        behind: rest.slice(span.end, span.end + 2000),
      };
    };
    const weight = work > TRUSTED_WORK ? severity : weigh(pattern, kind, around);
    const isReported = weight !== "nothing" && counts[weight === severity ? "full" : "lowered"]++ < MATCHES_PER_PATTERN;
    if (isReported) {
      const match = sliceCodePoints(showInvisible(rest.slice(span.index, span.end).replace(/\s+/g, " ")), 0, 120);
      found.push({ id, severity: weight, category, file, line, match });
    }
    if (newline === -1) break;
    line += countBreaks(rest.slice(span.index), newline + 1 - span.index);
    offset += newline + 1;
  }
  return found;
}

function kindOf(file: string): FileKind {
  return EXTENSIONS[extname(file).toLowerCase()] ?? "unknown";
}

/** Whether files of this kind can hold what a pattern is about. */
function isFor(id: string, kind: FileKind): boolean {
  return LANGUAGES.every(([ids, kinds]) => !ids.test(id) || kinds.includes(kind));
}

/** Less where nothing is left of the finding without the everyday forms on its lines; "nothing" when it is none at all. */
function weigh(pattern: SkillPattern, kind: FileKind, around: () => Lines): Severity | "nothing" {
  const forms = (EVERYDAY.get(pattern.id) ?? []).filter(({ kinds }) => kinds?.includes(kind) ?? kind !== "unknown");
  if (forms.length === 0) return pattern.severity;
  const lines = around();
  if (lines.folded.length > TRUSTED_LINE) return pattern.severity;
  let rest = lines.folded;
  let weight: Severity | "nothing" = "nothing";
  for (const { then, form } of forms) {
    const left = form(rest, lines);
    if (left === rest) continue;
    rest = left;
    if (RANK.indexOf(then) > RANK.indexOf(weight)) weight = then;
  }
  return rest === lines.folded || pattern.find(rest) ? pattern.severity : weight;
}

function countBreaks(text: string, end: number): number {
  let count = 0;
  for (let at = 0; at < end; at++) {
    const char = text.charCodeAt(at);
    if (char === 0x0a || char === 0x2028) count++;
  }
  return count;
}

function invisible(text: string, file: string): SkillFinding[] {
  const found: SkillFinding[] = [];
  if (findInvisible(text.startsWith("\ufeff") ? text.slice(1) : text).length === 0) return found;
  text.split("\n").forEach((line, index) => {
    const first = findInvisible(index === 0 && line.startsWith("\ufeff") ? line.slice(1) : line)[0];
    if (!first || found.length >= MATCHES_PER_PATTERN) return;
    const match = sliceCodePoints(showInvisible(line.slice(Math.max(0, first.index - 20), first.index + 60)), 0, 120);
    found.push({ id: "invisible_unicode", severity: "high", category: "injection", file, line: index + 1, match });
  });
  return found;
}

// What follows from a scan: who is trusted how far.

type Trust = "builtin" | "trusted" | "community" | "agent-created";
type Ruling = "allow" | "ask" | "block" | "force";

/** `force`: blocked unless the user insists. */
const POLICY: Readonly<Record<Trust, Readonly<Record<Verdict, Ruling>>>> = {
  builtin: { safe: "allow", caution: "allow", dangerous: "allow" },
  trusted: { safe: "allow", caution: "allow", dangerous: "block" },
  community: { safe: "allow", caution: "force", dangerous: "block" },
  "agent-created": { safe: "allow", caution: "allow", dangerous: "ask" },
};

export function rule(trust: Trust, verdict: Verdict): Ruling {
  return POLICY[trust][verdict];
}

/** The check behind `skills.guard_agent_created`. Nobody can be asked inside a tool call, so a question is a no. */
export async function guardAgentSkill(
  dir: string,
): Promise<{ readonly allowed: true } | { readonly allowed: false; readonly reason: string; readonly report: string }> {
  const scan = await scanSkill(dir);
  if (rule("agent-created", scan.verdict) === "allow") return { allowed: true };
  const worst = scan.findings.filter(({ severity }) => severity === "critical").length;
  const reason = `agent-created, verdict ${scan.verdict}, ${worst} critical finding${worst === 1 ? "" : "s"}`;
  return { allowed: false, reason, report: formatScan(scan) };
}

const GuardRANK = { critical: 0, high: 1, medium: 2, low: 3 } as const;

/** One line per finding, worst first. */
export function formatScan({ verdict, findings, files }: SkillScan): string {
  const lines = [...findings]
    .sort((a, b) => GuardRANK[a.severity] - GuardRANK[b.severity])
    .map(({ severity, id, file, line, match }) => {
      const where = line > 0 ? `${file}:${line}` : file;
      return `  ${severity.padEnd(8)} ${id}${where === "" ? "" : `  ${where}`}  ${match}`;
    });
  return [`verdict: ${verdict} (${plural(files, "file")}, ${plural(findings.length, "finding")})`, ...lines].join("\n");
}
