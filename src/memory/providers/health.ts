// What went wrong with a provider lately, kept in the home so that `hermes memory status` can tell.
import { mkdir, readFile } from "node:fs/promises";
import type { HomePaths } from "../../home/paths.ts";
import { writeFileAtomic } from "../../kit/files.ts";

export interface ProviderHealth {
  readonly provider: string;
  /** Recalls that took too long and were done without. */
  readonly timeouts: number;
  readonly errors: number;
  /** Unix seconds. */
  readonly last_at: number;
  readonly last: string;
}

const fileOf = (paths: HomePaths) => paths.at("cache", "memory-provider.json");

/** Null when nothing went wrong, or nobody knows. */
export async function readHealth(paths: HomePaths): Promise<ProviderHealth | null> {
  try {
    const value: Partial<ProviderHealth> = JSON.parse(await readFile(fileOf(paths), "utf8"));
    const { provider, timeouts, errors, last_at, last } = value;
    if (typeof provider !== "string" || typeof last !== "string") return null;
    return { provider, timeouts: Number(timeouts), errors: Number(errors), last_at: Number(last_at), last };
  } catch {
    return null; // not there, or not ours
  }
}

export async function noteTrouble(
  paths: HomePaths,
  trouble: {
    readonly provider: string;
    readonly kind: "timeouts" | "errors";
    readonly text: string;
    readonly at: number;
  },
): Promise<void> {
  const known = await readHealth(paths);
  const before = known?.provider === trouble.provider ? known : { timeouts: 0, errors: 0 };
  const health: ProviderHealth = {
    provider: trouble.provider,
    timeouts: before.timeouts + (trouble.kind === "timeouts" ? 1 : 0),
    errors: before.errors + (trouble.kind === "errors" ? 1 : 0),
    last_at: trouble.at,
    last: trouble.text,
  };
  await mkdir(paths.cacheDir, { recursive: true, mode: 0o700 });
  await writeFileAtomic(fileOf(paths), `${JSON.stringify(health, null, 2)}\n`);
}
