// `auth.json`: keys and logins of providers. Written by several processes, so every change is made under its lock, and whole.
import { readFile } from "node:fs/promises";
import { withLock } from "../../home/lock.ts";
import type { OpenHome } from "../../home/open.ts";
import { writeFileAtomic } from "../../kit/atomic-file.ts";
import { UserError } from "../../kit/user-error.ts";
import type { PoolEntry } from "../../llm/providers/credential-pool.ts";
import { mapping, text } from "../../llm/providers/settings.ts";

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

/** Rejects with a `UserError` where the file is there and cannot be read: it is not written over. */
export async function editAuth(home: Home, change: (file: AuthFile) => AuthFile): Promise<void> {
  await withLock(home.paths.at("auth.lock"), async () => {
    let file: AuthFile = {};
    try {
      file = mapping(JSON.parse(await readFile(home.paths.at("auth.json"), "utf8")));
    } catch (error) {
      if (!(error instanceof Error && "code" in error && error.code === "ENOENT"))
        throw new UserError(`${home.paths.at("auth.json")} cannot be read (${String(error)}). Mend or remove it.`);
    }
    await writeAuth(home, change(file));
  });
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
