// What is published about models, kept in the home once it was fetched. What came with this version serves until then, and whenever
// the network does not.

import { readFile } from "node:fs/promises";
import type { OpenHome } from "../../home/open.ts";
import { VERSION } from "../../home/paths.ts";
import { codeOf, messageOf } from "../../kit/errors.ts";
import { mapping, text } from "../providers/settings.ts";
import { addPublished, type Catalogue } from "./facts.ts";

type Home = Pick<OpenHome, "paths" | "config" | "log">;

const FRESH_MS = 60 * 60 * 1000;
const PATIENCE_MS = 15_000;
const read = new Set<string>();
const running = new Map<string, Promise<string | null>>();

/** From here on questions about models are answered from the kept copy too. Read once; most homes have none. */
export async function useKeptFacts(home: Home): Promise<void> {
  const path = fileOf(home);
  if (read.has(path)) return;
  read.add(path);
  const kept = await readKept(home);
  if (kept) addPublished(kept.models);
}

/** Fetches the lists anew when the kept copy is old, or whatever its age with `force`. A sentence about what went wrong, or null. */
export async function refreshFacts(
  home: Home,
  ports: { readonly fetch: typeof globalThis.fetch; now(): number; readonly signal?: AbortSignal },
  { force = false } = {},
): Promise<string | null> {
  const path = fileOf(home);
  const age = ports.now() - ((await readKept(home))?.fetchedAt ?? -Infinity);
  if (!force && age >= 0 && age < FRESH_MS) return null;
  const refreshing = running.get(path) ?? fetchAndKeep(home, ports).finally(() => running.delete(path));
  running.set(path, refreshing);
  return refreshing;
}

async function fetchAndKeep(
  home: Home,
  { fetch, now, signal }: Parameters<typeof refreshFacts>[1],
): Promise<string | null> {
  const limit = AbortSignal.timeout(PATIENCE_MS);
  try {
    const { fetchCatalogue, MODELS_DEV } = await import("./models-dev.ts");
    const { writeFileAtomic } = await import("../../kit/files.ts");
    const { mkdir } = await import("node:fs/promises");
    const url = text(mapping(home.config().model_catalog).models_dev_url) ?? MODELS_DEV;
    const models = await fetchCatalogue(url, { fetch, signal: signal ? AbortSignal.any([signal, limit]) : limit });
    await mkdir(home.paths.cacheDir, { recursive: true });
    await writeFileAtomic(fileOf(home), `${JSON.stringify({ version: VERSION, fetched_at: now(), models })}\n`);
    addPublished(models);
    return null;
  } catch (error) {
    if (signal?.aborted) return null;
    home.log.warn("the published list of models could not be fetched", error);
    const why = limit.aborted ? `no response within ${PATIENCE_MS / 1000} s` : reasonOf(error);
    return `The published list of models could not be fetched (${why}); using the stored one.`;
  }
}

/** Null: there is none, it is broken, or it was fetched by another version, which may have come with a newer one. */
async function readKept(home: Home): Promise<{ fetchedAt: number; models: Catalogue } | null> {
  try {
    const { version, fetched_at, models } = mapping(JSON.parse(await readFile(fileOf(home), "utf8")));
    const lists = Object.entries(mapping(models)).filter(
      (entry): entry is [string, string[]] =>
        Array.isArray(entry[1]) && entry[1].every((line) => typeof line === "string"),
    );
    if (version !== VERSION || typeof fetched_at !== "number") return null;
    return { fetchedAt: fetched_at, models: Object.fromEntries(lists) };
  } catch (error) {
    if (error instanceof SyntaxError || codeOf(error) === "ENOENT") return null;
    home.log.warn("the kept list of models cannot be read", error);
    return null;
  }
}

const fileOf = ({ paths }: Home) => paths.at("cache", "model_facts.json");
const reasonOf = (error: unknown) => {
  const cause = error instanceof Error ? mapping(error.cause).code : undefined;
  return typeof cause === "string" ? cause : messageOf(error);
};
