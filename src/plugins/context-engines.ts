// Which engine keeps a conversation short: the default one, or the one that `context.engine` names. Installing one chooses nothing.
import { join } from "node:path";
import type { Logger } from "../home/log.ts";
import type { Clock } from "../kit/clock.ts";
import { importDefault } from "../kit/lazy.ts";
import { within } from "../kit/within.ts";
import type { ContextEngine, EngineModel } from "./engine.ts";
import { isStandard } from "./engine-name.ts";
import { guardEngine } from "./guarded-engine.ts";

export type EngineFactory = (model: EngineModel) => ContextEngine | Promise<ContextEngine>;

export interface EngineSearch {
  /** `context.engine`. */
  readonly name: string;
  readonly model: EngineModel;
  /** Folders that may hold `context_engine/<name>/`, the package's first, then the home's. */
  readonly pluginFolders: readonly string[];
  /** The default engine. */
  readonly standard: () => ContextEngine | Promise<ContextEngine>;
  readonly log: Pick<Logger, "warn">;
  readonly clock: Clock;
}

const LOADS_WITHIN_MS = 10_000;

const registered = new Map<string, EngineFactory>();

/** For plugins. It is used when `context.engine` names it. Returns how to take it back. */
export function registerContextEngine(name: string, factory: EngineFactory): () => void {
  registered.set(name, factory);
  return () => {
    if (registered.get(name) === factory) registered.delete(name);
  };
}

export interface OpenedEngine {
  readonly engine: ContextEngine;
  /** Why it is not the one that was named, for the user; null when it is. */
  readonly complaint: string | null;
}

/** Never fails: where the named engine is unknown or broken, the default one serves. */
export async function openContextEngine(search: EngineSearch): Promise<OpenedEngine> {
  const { name, log } = search;
  if (isStandard(name)) return { engine: await search.standard(), complaint: null };
  let complaint = `There is no context engine "${name}"`;
  let cause: unknown;
  try {
    const engine = await within(() => load(search), LOADS_WITHIN_MS, search.clock);
    if (engine) return { engine: guardEngine(checked(engine, name), log), complaint: null };
  } catch (error) {
    cause = error;
    complaint = `The context engine "${name}" could not be loaded (${error instanceof Error ? error.message : error})`;
  }
  complaint += "; the default one is used. context.engine in config.yaml names it.";
  log.warn(complaint, ...(cause === undefined ? [] : [cause]));
  return { engine: await search.standard(), complaint };
}

async function load(search: EngineSearch): Promise<ContextEngine | null> {
  const factory = registered.get(search.name) ?? (await findFactory(search));
  return (await factory?.(search.model)) ?? null;
}

async function findFactory({ name, pluginFolders }: EngineSearch): Promise<EngineFactory | null> {
  if (!/^[\w-]+$/.test(name)) return null;
  const folders = pluginFolders.map((folder) => join(folder, "context_engine", name));
  return (await importDefault(folders, "an engine")) as EngineFactory | null; // what it makes is checked when it is made
}

function checked(engine: ContextEngine, name: string): ContextEngine {
  const missing = (["compress", "shouldCompress", "updateFromResponse"] as const).filter(
    (member) => typeof engine?.[member] !== "function",
  );
  if (missing.length > 0) throw new Error(`the engine "${name}" lacks ${missing.join(", ")}`);
  return engine;
}
