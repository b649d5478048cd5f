// Copying homes: which parts go along, and how.
import { chmod, copyFile, lstat, mkdir, readdir, readlink, symlink } from "node:fs/promises";
import { basename, join } from "node:path";
import { ProfileError } from "./profiles.ts";

/** Decides about one entry; `path` is relative to the home, with forward slashes. */
export type TreeFilter = (path: string) => boolean;

const history = new Set(["sessions", "backups", "state-snapshots", "checkpoints"]);
const caches = new Set(
  `cache image_cache audio_cache video_cache document_cache browser_screenshots temp_vision_images models_dev_cache.json
  provider_models_cache.json context_length_cache.yaml .update_check .skills_prompt_snapshot.json`.split(/\s+/),
);
const runtime = new Set(["gateway.pid", "gateway.lock", "gateway_state.json", "processes.json", "auth.lock"]);
const program = new Set(["hermes-agent", ".worktrees", "profiles", "bin", "node_modules", "active_profile"]);

/** What belongs to a running process or is a leftover: never copied. */
function isTransient(path: string): boolean {
  return (
    runtime.has(path) || /(?:\.sock|\.tmp|\.lock\.db|-wal|-shm|-journal)$/.test(path) || basename(path) === ".lock.db"
  );
}

const top = (path: string) => path.split("/", 1)[0] ?? path;

/** A full copy for a new profile: everything but history, caches and what only the default home has. */
export function cloneFilter(source: { readonly isDefault: boolean }): TreeFilter {
  return (path) => {
    const name = top(path);
    if (isTransient(path) || history.has(name) || caches.has(name) || name.startsWith("state.db")) return false;
    return !(source.isDefault && program.has(name));
  };
}

/** An export: no secrets; of the default home also no databases, logs, caches, history or other profiles. */
export function exportFilter(source: { readonly isDefault: boolean }): TreeFilter {
  return (path) => {
    const name = top(path);
    if (isTransient(path) || /^(?:\.env|auth\.json|config\.yaml\.)/.test(name) || name === "mcp-tokens") return false;
    if (!source.isDefault) return true;
    return !(
      program.has(name) ||
      history.has(name) ||
      caches.has(name) ||
      name === "logs" ||
      name === ".hermes_history" ||
      /\.db$/.test(path)
    );
  };
}

const secretFiles = new Set([".env", "auth.json"]);

/** Copies a tree. Databases go through SQLite, so that one in use arrives whole; secrets arrive private whatever they were. */
export async function copyTree(
  from: string,
  to: string,
  filter: TreeFilter,
  links: "keep" | "skip",
  below = "",
): Promise<void> {
  await mkdir(to, { recursive: true, mode: 0o700 });
  for (const entry of await readdir(from, { withFileTypes: true })) {
    const path = below === "" ? entry.name : `${below}/${entry.name}`;
    if (!filter(path)) continue;
    const source = join(from, entry.name);
    const target = join(to, entry.name);
    if (entry.isDirectory()) await copyTree(source, target, filter, links, path);
    else if (entry.isSymbolicLink()) {
      if (links === "keep") await symlink(await readlink(source), target);
    } else if (entry.isFile()) {
      await copyOne(source, target);
      if (secretFiles.has(path)) await chmod(target, 0o600);
    }
  }
}

async function copyOne(source: string, target: string): Promise<void> {
  if (source.endsWith(".db") && (await lstat(source)).size > 0) {
    const { DatabaseSync, backup } = await import("node:sqlite");
    const database = new DatabaseSync(source, { readOnly: true });
    try {
      await backup(database, target);
    } catch (error) {
      throw new ProfileError(`Cannot copy ${source}: ${error instanceof Error ? error.message : error}`);
    } finally {
      database.close();
    }
    return;
  }
  await copyFile(source, target);
}
