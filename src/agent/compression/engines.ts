// Which engine keeps a conversation short: the default one, or the one that `context.engine` names. Installing one chooses nothing.
import { join } from "node:path";
import type { Logger } from "../../home/log.ts";
import { importDefault } from "../../kit/import-default.ts";
import type { ContextEngine, EngineModel } from "./engine.ts";

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
}

export const STANDARD_ENGINE = "compressor";

const registered = new Map<string, EngineFactory>();

/** For plugins. It is used when `context.engine` names it. Returns how to take it back. */
export function registerContextEngine(name: string, factory: EngineFactory): () => void {
  registered.set(name, factory);
  return () => {
    if (registered.get(name) === factory) registered.delete(name);
  };
}

/** Never fails: an engine that is unknown or broken is named in the log, and the default one serves. */
export async function openContextEngine(search: EngineSearch): Promise<ContextEngine> {
  const { name, log, model } = search;
  if (name === STANDARD_ENGINE || name === "") return search.standard();
  try {
    const factory = registered.get(name) ?? (await findFactory(search));
    if (factory) return checked(await factory(model), name);
    log.warn(`context.engine: there is no engine "${name}"; the default one is used`);
  } catch (error) {
    log.warn(`context.engine: the engine "${name}" could not be loaded; the default one is used`, error);
  }
  return search.standard();
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
