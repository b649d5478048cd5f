import { readdir, stat } from "node:fs/promises";
import { homedir } from "node:os";
import { dirname, join, resolve } from "node:path";
import type { AutocompleteItem } from "@earendil-works/pi-tui";

const MOST = 30;

/** Entries on disk that continue a path as it was typed; directories first, with a slash. */
export async function completePath(typed: string, cwd: string): Promise<AutocompleteItem[]> {
  const slash = typed.lastIndexOf("/");
  const shown = typed.slice(0, slash + 1);
  const wanted = typed.slice(slash + 1).toLowerCase();
  const folder = resolve(cwd, shown.startsWith("~/") ? join(homedir(), shown.slice(2)) : shown || ".");
  try {
    const entries = await readdir(folder, { withFileTypes: true });
    const matching = entries.filter(
      (entry) => entry.name.toLowerCase().startsWith(wanted) && (wanted.startsWith(".") || !entry.name.startsWith(".")),
    );
    const items = await Promise.all(matching.slice(0, 300).map((entry) => describe(join(folder, entry.name), shown)));
    return items.sort((a, b) => Number(b.isFolder) - Number(a.isFolder) || (a.label < b.label ? -1 : 1)).slice(0, MOST);
  } catch {
    return []; // no such folder, or not ours to read
  }
}

async function describe(path: string, shown: string): Promise<AutocompleteItem & { readonly isFolder: boolean }> {
  const facts = await stat(path).catch(() => null); // a link that leads nowhere is still a name
  const isFolder = facts?.isDirectory() === true;
  const name = path.slice(dirname(path).length).replace(/^\//, "") + (isFolder ? "/" : "");
  return {
    value: shown + name,
    label: name,
    isFolder,
    ...(facts && !isFolder && { description: readableSize(facts.size) }),
  };
}

export function readableSize(bytes: number): string {
  if (bytes < 1024) return `${bytes} B`;
  const [size, unit] = bytes < 1024 ** 2 ? [bytes / 1024, "KB"] : [bytes / 1024 ** 2, "MB"];
  return `${size.toFixed(1)} ${unit}`;
}
