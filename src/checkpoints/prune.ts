// What is old, too much or of a directory that is gone leaves the store.

import { readdir, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { isDirectory } from "../kit/files.ts";
import { gitText, runGit } from "./git.ts";
import { type Checkpoint, type CheckpointStore, readCheckpoints } from "./store.ts";

const MB = 1024 * 1024;
const DAY = 24 * 3600;
/** Files of a process that died in the middle. */
const ABANDONED_MS = 3600 * 1000;

interface StoredProject {
  readonly hash: string;
  /** Null when its record is lost. */
  readonly workdir: string | null;
  readonly checkpoints: readonly Checkpoint[];
}

interface PruneReport {
  readonly checkpoints: number;
  readonly projects: number;
  readonly bytesBefore: number;
  readonly bytesAfter: number;
}

/** Every project of the store, the one touched last first. */
export async function readProjects(store: CheckpointStore): Promise<StoredProject[]> {
  if (!(await store.exists())) return [];
  const refs = await gitText(store.git, { args: ["for-each-ref", "--format=%(refname)", "refs/hermes/"] });
  const projects: StoredProject[] = [];
  for (const ref of refs.split("\n").filter((line) => line !== "")) {
    const hash = ref.slice("refs/hermes/".length);
    const record = await store.readProject(hash);
    projects.push({ hash, workdir: record?.workdir ?? null, checkpoints: await readCheckpoints(store.git, ref) });
  }
  const newest = ({ checkpoints }: StoredProject) => checkpoints[0]?.at ?? 0;
  return projects.sort((a, b) => newest(b) - newest(a));
}

/** Bytes of the contents, loose and packed. */
export async function storedBytes(store: CheckpointStore): Promise<number> {
  const report = await gitText(store.git, { args: ["count-objects", "-v"] });
  const figure = (name: string) => Number(new RegExp(`^${name}: (\\d+)$`, "m").exec(report)?.[1] ?? 0);
  return (figure("size") + figure("size-pack") + figure("size-garbage")) * 1024;
}

export async function prune(store: CheckpointStore): Promise<PruneReport> {
  return store.exclusively(
    async () => {
      const { limits, clock } = store.options;
      const { retention_days, max_snapshots, max_total_size_mb, delete_orphans } = limits();
      const bytesBefore = await storedBytes(store);
      const oldest = clock.now() / 1000 - retention_days * DAY;
      const projects = await readProjects(store);
      const dropped = { checkpoints: 0, projects: 0 };
      let left: StoredProject[] = [];
      for (const project of projects) {
        const orphan = delete_orphans && (project.workdir === null || !(await isDirectory(project.workdir)));
        const kept = orphan ? [] : project.checkpoints.slice(0, max_snapshots).filter(({ at }) => at >= oldest);
        left.push(await keepOnly(store, project, kept, dropped));
      }
      await collectGarbage(store);
      left = left.filter(({ checkpoints }) => checkpoints.length > 0);
      // A quarter at a time, the oldest first: what one checkpoint alone takes cannot be known.
      while (left.length > 0 && (await storedBytes(store)) > max_total_size_mb * MB) {
        const cut = quarterOf(left.flatMap(({ checkpoints }) => checkpoints.map(({ at }) => at)));
        const next: StoredProject[] = [];
        for (const project of left) {
          const kept = project.checkpoints.filter(({ at }) => at > cut);
          next.push(await keepOnly(store, project, kept, dropped));
        }
        await collectGarbage(store);
        left = next.filter(({ checkpoints }) => checkpoints.length > 0);
      }
      return { ...dropped, bytesBefore, bytesAfter: await storedBytes(store) };
    },
    { patient: true },
  );
}

async function keepOnly(
  store: CheckpointStore,
  project: StoredProject,
  kept: readonly Checkpoint[],
  dropped: { checkpoints: number; projects: number },
): Promise<StoredProject> {
  const gone = project.checkpoints.length - kept.length;
  dropped.checkpoints += gone;
  const ref = `refs/hermes/${project.hash}`;
  if (kept.length === 0) {
    dropped.projects++;
    await store.setRef(ref, null);
    await rm(store.indexFile(project.hash), { force: true });
    await rm(store.projectFile(project.hash), { force: true });
  } else if (gone > 0) await store.rewrite(ref, kept);
  return { ...project, checkpoints: kept };
}

/** Requires the lock. */
async function collectGarbage(store: CheckpointStore): Promise<void> {
  await runGit(store.git, { args: ["repack", "-a", "-d", "-q"] });
  await runGit(store.git, { args: ["prune", "--expire=now"] });
  const indexes = join(store.git.store, "indexes");
  for (const name of await readdir(indexes).catch(() => [])) {
    if (!name.includes(".")) continue;
    const facts = await stat(join(indexes, name)).catch(() => null);
    if (facts && Date.now() - facts.mtimeMs > ABANDONED_MS) await rm(join(indexes, name), { force: true });
  }
}

function quarterOf(times: readonly number[]): number {
  const sorted = times.toSorted((a, b) => a - b);
  return sorted[Math.floor((sorted.length - 1) / 4)] ?? 0;
}
