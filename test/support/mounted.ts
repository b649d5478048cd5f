// A folder on a file system of its own, for what only a small or a write-protected disk can show. Needs Linux and the right to mount.
import { execFile } from "node:child_process";
import { mkdtemp, realpath, rmdir } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";

const run = promisify(execFile);

export interface Mounted extends AsyncDisposable {
  readonly dir: string;
  /** From now on nothing can be written. */
  protect(): Promise<void>;
}

/** Null when this machine does not let us mount; the test says so and is skipped. */
export async function mountSmallDisk(kilobytes: number): Promise<Mounted | null> {
  if (process.platform !== "linux") return null;
  const dir = await realpath(await mkdtemp(join(tmpdir(), "hermes-disk-")));
  try {
    await run("mount", ["-t", "tmpfs", "-o", `size=${kilobytes}k,mode=0755`, "tmpfs", dir]);
  } catch {
    await rmdir(dir);
    return null;
  }
  return {
    dir,
    protect: async () => void (await run("mount", ["-o", "remount,ro", dir])),
    [Symbol.asyncDispose]: async () => {
      await run("umount", [dir]);
      await rmdir(dir);
    },
  };
}
