// Files the user has read and trusts although they look suspicious. Trust is for the bytes: a changed file is a stranger again.
import { readFile } from "node:fs/promises";
import { writeFileAtomic } from "../kit/files.ts";
import { kindNow } from "./looks.ts";
import type { HomePaths } from "./paths.ts";

interface TrustedFile {
  readonly path: string;
  /** Of the bytes. */
  readonly sha256: string;
  /** What was found in it when it was trusted. */
  readonly ids: readonly string[];
  /** ISO 8601. */
  readonly trusted_at: string;
}

export const contextTrustFile = (paths: Pick<HomePaths, "at">) => paths.at("context_trust.json");

/** Entries that do not fit are left out; a file that cannot be read trusts nobody. */
export async function readContextTrust(paths: Pick<HomePaths, "at">): Promise<readonly TrustedFile[]> {
  if (kindNow(contextTrustFile(paths)) === null) return [];
  try {
    const entries: unknown = JSON.parse(await readFile(contextTrustFile(paths), "utf8"));
    return Array.isArray(entries) ? entries.filter(isTrustedFile) : [];
  } catch {
    return []; // missing or damaged: nothing is trusted, which is the safe side
  }
}

export async function trustContextFile(paths: Pick<HomePaths, "at">, file: TrustedFile): Promise<void> {
  const others = (await readContextTrust(paths)).filter(({ path }) => path !== file.path);
  await write(paths, [...others, file]);
}

/** False when it was not trusted. */
export async function untrustContextFile(paths: Pick<HomePaths, "at">, path: string): Promise<boolean> {
  const before = await readContextTrust(paths);
  const after = before.filter((file) => file.path !== path);
  if (after.length === before.length) return false;
  await write(paths, after);
  return true;
}

async function write(paths: Pick<HomePaths, "at">, files: readonly TrustedFile[]): Promise<void> {
  const sorted = files.toSorted((a, b) => (a.path < b.path ? -1 : 1));
  await writeFileAtomic(contextTrustFile(paths), `${JSON.stringify(sorted, null, 2)}\n`, { mode: 0o600 });
}

function isTrustedFile(entry: unknown): entry is TrustedFile {
  if (typeof entry !== "object" || entry === null || !("path" in entry) || !("sha256" in entry)) return false;
  return typeof entry.path === "string" && typeof entry.sha256 === "string" && /^[0-9a-f]{64}$/.test(entry.sha256);
}
