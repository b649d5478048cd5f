// Which external memories there are: ours, those of plugins, those in the plugin folders of the package and the home. A bundled name wins.
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { CodePins } from "../../home/code-pins.ts";
import { bundledPlugins, isSafeMode } from "../../home/paths.ts";
import { INDEX_FILES, importDefault } from "../../kit/lazy.ts";
import type { MemoryProvider, ProviderContext, ProviderFactory } from "./contract.ts";

const BUNDLED: Readonly<Record<string, () => Promise<ProviderFactory>>> = {
  local: async () => (await import("./local.ts")).localProvider,
};
const NAME = /^[\w-]+$/;
/** The one shape, in folders and from plugins. */
const SHAPE = "(context) => ({ name, isAvailable, initialize, ... })";

const registered = new Map<string, ProviderFactory>();

/** For plugins. Chosen by `memory.provider`, never by being there. Returns how to take it back. */
export function registerMemoryProvider(name: string, factory: ProviderFactory): () => void {
  registered.set(name, factory);
  return () => {
    if (registered.get(name) === factory) registered.delete(name);
  };
}

/** Null when there is none of this name. Rejects when it is there and broken. */
export async function findMemoryProvider(name: string, context: ProviderContext): Promise<MemoryProvider | null> {
  if (!NAME.test(name)) return null;
  const ours = await bundled(name);
  if (!ours && isSafeMode(context)) throw new Error("safe mode runs no plugins");
  const factory = ours ?? registered.get(name) ?? (await fromFolders(name, context));
  return factory ? checked(await factory(context), name) : null;
}

/** Names that may be chosen, ours first. */
export async function memoryProviderNames(
  context: Pick<ProviderContext, "paths" | "packagePlugins">,
): Promise<readonly string[]> {
  const lists = await Promise.all(foldersOf(context).map(providersIn));
  const found = lists.flat();
  return [...new Set([...Object.keys(BUNDLED), ...[...registered.keys(), ...found].sort()])];
}

/** Folders with code of ours in them; those of other programs are none. */
async function providersIn(folder: string): Promise<readonly string[]> {
  const entries = await readdir(folder, { withFileTypes: true }).catch(() => []); // none there
  const names = entries.filter((entry) => entry.isDirectory() && NAME.test(entry.name)).map(({ name }) => name);
  const files = await Promise.all(names.map((name) => readdir(join(folder, name)).catch(() => [])));
  return names.filter((_, at) => files[at]?.some((file) => INDEX_FILES.includes(file)));
}

/** Those of the package first: its names win. */
function foldersOf({ paths, packagePlugins }: Pick<ProviderContext, "paths" | "packagePlugins">): readonly string[] {
  return [join(packagePlugins ?? bundledPlugins(), "memory"), paths.at("plugins", "memory")];
}

async function bundled(name: string): Promise<ProviderFactory | null> {
  return Object.hasOwn(BUNDLED, name) ? ((await BUNDLED[name]?.()) ?? null) : null;
}

async function fromFolders(name: string, context: ProviderContext): Promise<ProviderFactory | null> {
  const folders = foldersOf(context).map((folder) => join(folder, name));
  const pins = new CodePins(context.paths);
  const own = context.paths.at("plugins", "memory", name);
  const verify = async (folder: string) =>
    folder === own ? pins.verify(folder, `hermes plugins enable memory/${name}`) : undefined;
  const made = (await importDefault(folders, `a memory provider, ${SHAPE}`, verify)) as ProviderFactory | null; // checked when it has made one
  return made && ((home) => makeFrom(made, home));
}

/** A plugin's `register(ctx)` in this folder finds nothing to register with. */
async function makeFrom(make: ProviderFactory, context: ProviderContext): Promise<MemoryProvider> {
  try {
    return await make(context);
  } catch (error) {
    if (!(error instanceof TypeError && /register/i.test(error.message))) throw error;
    throw new Error(`the default export is a plugin's register(ctx), but must make the provider itself: ${SHAPE}`, {
      cause: error,
    });
  }
}

function checked(provider: MemoryProvider, name: string): MemoryProvider {
  const missing = (["isAvailable", "initialize"] as const).filter((member) => typeof provider?.[member] !== "function");
  const lacks = [...(typeof provider?.name === "string" ? [] : ["name"]), ...missing];
  if (lacks.length > 0)
    throw new Error(`the memory provider made for "${name}" lacks ${lacks.join(", ")}; its function must be ${SHAPE}`);
  return provider;
}
