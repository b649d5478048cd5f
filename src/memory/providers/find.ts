// Which external memories there are: ours, those of plugins, those in the home's plugin folder. A bundled name wins.
import { readdir } from "node:fs/promises";
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
  const factory = ours ?? registered.get(name) ?? (await fromHome(name, place));
  return factory ? checked(await factory(place), name) : null;
}

/** Names that may be chosen, ours first. */
export async function memoryProviderNames(place: Pick<ProviderPlace, "paths">): Promise<readonly string[]> {
  const folders = await readdir(place.paths.at("plugins", "memory"), { withFileTypes: true }).catch(() => []); // none there
  const found = folders.filter((entry) => entry.isDirectory() && NAME.test(entry.name)).map(({ name }) => name);
  return [...new Set([...Object.keys(BUNDLED), ...[...registered.keys(), ...found].sort()])];
}

async function bundled(name: string): Promise<ProviderFactory | null> {
  return Object.hasOwn(BUNDLED, name) ? ((await BUNDLED[name]?.()) ?? null) : null;
}

async function fromHome(name: string, { paths }: ProviderPlace): Promise<ProviderFactory | null> {
  const made = await importDefault([paths.at("plugins", "memory", name)], "a provider");
  return made as ProviderFactory | null; // what it makes is checked when it is made
}

function checked(provider: MemoryProvider, name: string): MemoryProvider {
  const missing = (["isAvailable", "initialize"] as const).filter((member) => typeof provider?.[member] !== "function");
  if (missing.length > 0) throw new Error(`the memory provider "${name}" lacks ${missing.join(", ")}`);
  return provider;
}
