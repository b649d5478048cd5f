// A folder of files for one test.
import { mkdir, mkdtemp, realpath, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import type { TestContext } from "node:test";

/** Text or bytes of a file, a link to somewhere, or a folder (null). */
export type TreeEntry = string | Uint8Array | { readonly link: string } | null;

export interface TempTree {
  readonly root: string;
  at(...parts: string[]): string;
  add(entries: Readonly<Record<string, TreeEntry>>): Promise<void>;
}

/** Gone when the test is over. */
export async function tempTree(t: TestContext, entries: Readonly<Record<string, TreeEntry>> = {}): Promise<TempTree> {
  const root = await realpath(await mkdtemp(join(tmpdir(), "hermes-tree-")));
  t.after(() => rm(root, { recursive: true, force: true, maxRetries: 3 }));
  const tree: TempTree = {
    root,
    at: (...parts) => join(root, ...parts),
    async add(more) {
      for (const [name, entry] of Object.entries(more)) await put(join(root, name), entry);
    },
  };
  await tree.add(entries);
  return tree;
}

async function put(path: string, entry: TreeEntry): Promise<void> {
  await mkdir(entry === null ? path : dirname(path), { recursive: true });
  if (entry === null) return;
  if (typeof entry === "object" && "link" in entry) await symlink(entry.link, path);
  else await writeFile(path, entry);
}
