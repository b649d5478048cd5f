// Looks at a whole skill, files and structure, without running or changing anything.
import type { Stats } from "node:fs";
import { lstat, open, readdir, readFile, stat } from "node:fs/promises";
import { extname, join } from "node:path";
import { isWithin, resolveLinks } from "../../safety/paths.ts";
import { compare } from "../tree.ts";
import type { Severity } from "./pattern.ts";
import { type SkillFinding, scanText } from "./text.ts";

export type Verdict = "safe" | "caution" | "dangerous";

export interface SkillScan {
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
  const total = files.reduce((sum, { facts }) => sum + facts.size, 0);
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
