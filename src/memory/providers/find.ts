// Which external memories there are: ours, those of plugins, those in the plugin folders of the package and the home. A bundled name wins.
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { bundledPlugins } from "../../home/product.ts";
import { isSafeMode } from "../../home/safe-mode.ts";
import { importDefault } from "../../kit/import-default.ts";
import type { MemoryProvider, ProviderFactory, ProviderPlace } from "./contract.ts";

const BUNDLED: Readonly<Record<string, () => Promise<ProviderFactory>>> = {
  local: async () => (await import("./local/provider.ts")).localProvider,
};
const NAME = /^[\w-]+$/;

const registered = new Map<string, ProviderFactory>();

/** For plugins. Chosen by `memory.provider`, never by being there. Returns how to take it back. */
export function registerMemoryProvider(name: string, factory: ProviderFactory): () => void {
  registered.set(name, factory);
  return () => {
    if (registered.get(name) === factory) registered.delete(name);
  };
}

/** Null when there is none of this name. Rejects when it is there and broken. */
export async function findMemoryProvider(name: string, place: ProviderPlace): Promise<MemoryProvider | null> {
  if (!NAME.test(name)) return null;
  const ours = await bundled(name);
  if (!ours && isSafeMode(place)) throw new Error("safe mode runs no plugins");
  const factory = ours ?? registered.get(name) ?? (await fromFolders(name, place));
  return factory ? checked(await factory(place), name) : null;
}

/** Names that may be chosen, ours first. */
export async function memoryProviderNames(
  place: Pick<ProviderPlace, "paths" | "packagePlugins">,
): Promise<readonly string[]> {
  const lists = await Promise.all(
    foldersOf(place).map((folder) => readdir(folder, { withFileTypes: true }).catch(() => [])), // none there
  );
  const found = lists
    .flat()
    .filter((entry) => entry.isDirectory() && NAME.test(entry.name))
    .map(({ name }) => name);
  return [...new Set([...Object.keys(BUNDLED), ...[...registered.keys(), ...found].sort()])];
}

/** Those of the package first: its names win. */
function foldersOf({ paths, packagePlugins }: Pick<ProviderPlace, "paths" | "packagePlugins">): readonly string[] {
  return [join(packagePlugins ?? bundledPlugins(), "memory"), paths.at("plugins", "memory")];
}

async function bundled(name: string): Promise<ProviderFactory | null> {
  return Object.hasOwn(BUNDLED, name) ? ((await BUNDLED[name]?.()) ?? null) : null;
}

async function fromFolders(name: string, place: ProviderPlace): Promise<ProviderFactory | null> {
  const made = await importDefault(
    foldersOf(place).map((folder) => join(folder, name)),
    "a provider",
  );
  return made as ProviderFactory | null; // what it makes is checked when it is made
}

function checked(provider: MemoryProvider, name: string): MemoryProvider {
  const missing = (["isAvailable", "initialize"] as const).filter((member) => typeof provider?.[member] !== "function");
  if (missing.length > 0) throw new Error(`the memory provider "${name}" lacks ${missing.join(", ")}`);
  return provider;
}
