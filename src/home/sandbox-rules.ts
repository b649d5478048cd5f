// Rule files of projects (`AGENTS.md` and the like) that a program in the sandbox wrote. They are read as text from outside, until the user
// trusts them or they change: a program must not give orders to the next conversation in the user's name.
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { dirname, join, sep } from "node:path";
import { writeFileAtomic } from "../kit/files.ts";

interface WrittenRules {
  /** A real path. */
  readonly path: string;
  /** Of the bytes. */
  readonly sha256: string;
}

const MAX_ENTRIES = 500;
const fileIn = (home: string) => join(home, "sandbox_rules.json");
const hashOf = (bytes: Uint8Array) => createHash("sha256").update(bytes).digest("hex");

/** Notes these files as they are now; resolves to those that were not noted before. */
export async function noteWrittenRules(home: string, paths: readonly string[]): Promise<readonly string[]> {
  const before = entriesOf(await readFile(fileIn(home), "utf8").catch(() => ""));
  const fresh: WrittenRules[] = [];
  for (const path of paths) {
    const bytes = await readFile(path).catch(() => null); // gone again
    const sha256 = bytes && hashOf(bytes);
    if (sha256 !== null && !before.some((one) => one.path === path && one.sha256 === sha256))
      fresh.push({ path, sha256 });
  }
  if (fresh.length === 0) return [];
  const all = [...before, ...fresh].slice(-MAX_ENTRIES);
  await writeFileAtomic(fileIn(home), `${JSON.stringify(all, null, 2)}\n`, { mode: 0o600 });
  return fresh.map(({ path }) => path);
}

/** Of the files that a conversation in `folder` may take its rules from: those that are as a program in the sandbox left them. */
export function writtenRules(home: string, folder: string): readonly string[] {
  const trusted = new Set(entriesOf(textOf(join(home, "context_trust.json"))).map(({ sha256 }) => sha256));
  const noted = entriesOf(textOf(fileIn(home))).filter(({ path, sha256 }) => {
    const own = dirname(path).replace(/\/\.cursor\/rules$/, "");
    return !trusted.has(sha256) && (folder === own || folder.startsWith(own === sep ? sep : own + sep));
  });
  const now = noted.filter(({ path, sha256 }) => {
    try {
      return hashOf(readFileSync(path)) === sha256;
    } catch {
      return false; // it is gone, and with it what it said
    }
  });
  return [...new Set(now.map(({ path }) => path))];
}

function textOf(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return ""; // nothing was noted
  }
}

function entriesOf(text: string): WrittenRules[] {
  try {
    const entries: unknown = JSON.parse(text);
    return Array.isArray(entries) ? entries.filter(isEntry) : [];
  } catch {
    return []; // missing or damaged
  }
}

function isEntry(entry: unknown): entry is WrittenRules {
  if (typeof entry !== "object" || entry === null || !("path" in entry) || !("sha256" in entry)) return false;
  return typeof entry.path === "string" && typeof entry.sha256 === "string";
}
