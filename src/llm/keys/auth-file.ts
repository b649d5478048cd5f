// `auth.json`: keys and logins of providers. Written by several processes, so every change is made under its lock, and whole.
import { readFile } from "node:fs/promises";
import { withLock } from "../../home/lock.ts";
import type { OpenHome } from "../../home/open.ts";
import { UserError } from "../../kit/errors.ts";
import { writeFileAtomic } from "../../kit/files.ts";
import { mapping, text } from "../providers/settings.ts";
import type { PoolEntry } from "./pool.ts";

type Home = Pick<OpenHome, "paths" | "log">;
export type AuthFile = Readonly<Record<string, unknown>>;

/** Null where there is none, or none that can be read. */
export async function readAuth(home: Home): Promise<AuthFile | null> {
  try {
    return mapping(JSON.parse(await readFile(home.paths.at("auth.json"), "utf8")));
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return null;
    home.log.warn("auth.json cannot be read; its keys are not used", error);
    return null;
  }
}

/** Empty where there is none. Rejects with a `UserError` where the file is there and cannot be read. */
export async function openAuth(home: Pick<Home, "paths">): Promise<AuthFile> {
  try {
    return mapping(JSON.parse(await readFile(home.paths.at("auth.json"), "utf8")));
  } catch (error) {
    const code = error instanceof Error && "code" in error ? String(error.code) : null;
    if (code === "ENOENT") return {};
    // The words of a parser quote the file, and with it keys.
    throw new UserError(
      `${home.paths.at("auth.json")} cannot be read (${code ?? "it is not JSON"}); its keys are not used. Mend or remove it.`,
    );
  }
}

/** Rejects like `openAuth`: a file that cannot be read is not written over. */
export async function editAuth(home: Home, change: (file: AuthFile) => AuthFile): Promise<void> {
  await withLock(home.paths.at("auth.lock"), async () => writeAuth(home, change(await openAuth(home))));
}

/** To be called under the lock. */
export async function writeAuth(home: Home, file: AuthFile): Promise<void> {
  await writeFileAtomic(home.paths.at("auth.json"), `${JSON.stringify(file, null, 2)}\n`, { mode: 0o600 });
}

export function entriesIn(file: AuthFile, provider: string): readonly PoolEntry[] {
  const list = mapping(file.credential_pool)[provider];
  if (!Array.isArray(list)) return [];
  return list.filter((entry): entry is PoolEntry => text(mapping(entry).id) !== undefined);
}

export function withPool(file: AuthFile, provider: string, entries: readonly PoolEntry[]): AuthFile {
  return { ...file, credential_pool: { ...mapping(file.credential_pool), [provider]: entries } };
}
