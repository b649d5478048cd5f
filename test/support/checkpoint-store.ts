// A project and a store of checkpoints in a temporary folder.
import { mkdir, mkdtemp, readdir, readFile, readlink, realpath, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import type { TestContext } from "node:test";
import { Rollback } from "../../src/checkpoints/rollback.ts";
import { type CheckpointLimits, CheckpointStore } from "../../src/checkpoints/store.ts";
import { systemClock } from "../../src/kit/clock.ts";

export interface CheckpointRig {
  readonly root: string;
  readonly home: string;
  readonly store: CheckpointStore;
  readonly files: Rollback;
  limits: CheckpointLimits;
  /** Milliseconds. */
  now: number;
  readonly secrets: string[];
  write(path: string, text: string | Buffer): Promise<void>;
  take(why?: string): Promise<string | null>;
  /** Every file and link below the project but the user's repository, with what is in it. */
  contents(): Promise<Record<string, string>>;
}

export async function checkpointRig(
  t: TestContext,
  files: Readonly<Record<string, string>> = {},
): Promise<CheckpointRig> {
  const base = await realpath(await mkdtemp(join(tmpdir(), "hermes-checkpoints-")));
  t.after(() => rm(base, { recursive: true, force: true }));
  const root = join(base, "project");
  await mkdir(root);
  const home = join(base, "home");
  const rig: CheckpointRig = {
    root,
    home,
    limits: {
      max_snapshots: 20,
      max_total_size_mb: 500,
      max_file_size_mb: 1,
      retention_days: 7,
      delete_orphans: true,
    },
    now: Date.parse("2026-03-30T12:00:00Z"),
    secrets: [],
    store: storeAt(home, () => rig),
    files: undefined as unknown as Rollback, // made in the next step
    async write(path, text) {
      await mkdir(dirname(join(root, path)), { recursive: true });
      await writeFile(join(root, path), text);
    },
    async take(why = "before a test") {
      rig.now += 1000;
      return (await rig.store.take(root, { why }))?.id ?? null;
    },
    contents: () => contentsOf(root),
  };
  Object.assign(rig, { files: new Rollback(rig.store, { root, sessionId: "session", on: true }) });
  for (const [path, text] of Object.entries(files)) await rig.write(path, text);
  return rig;
}

export function storeAt(home: string, rig: () => Pick<CheckpointRig, "limits" | "now" | "secrets">): CheckpointStore {
  return new CheckpointStore({
    directory: join(home, "checkpoints"),
    searchPath: process.env.PATH ?? "",
    clock: { ...systemClock, now: () => rig().now },
    limits: () => rig().limits,
    secrets: () => rig().secrets,
    except: [home],
  });
}

export async function contentsOf(root: string, skip = [".git"]): Promise<Record<string, string>> {
  const found: Record<string, string> = {};
  for (const entry of await readdir(root, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name);
    const name = path.slice(root.length + 1);
    if (name.split("/").some((part) => skip.includes(part))) continue;
    if (entry.isSymbolicLink()) found[name] = `-> ${await readlink(path)}`;
    else if (entry.isFile()) found[name] = await readFile(path, "latin1");
  }
  return found;
}
