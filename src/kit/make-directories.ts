import { mkdir, stat } from "node:fs/promises";
import { dirname } from "node:path";

/** A folder with all above it; false when it was there. Node's own recursive way never comes back from a place like /proc. */
export async function makeDirectories(path: string, mode = 0o777): Promise<boolean> {
  const made = await makeOne(path, mode);
  if (made !== null) return made;
  await makeDirectories(dirname(path), mode);
  const again = await makeOne(path, mode);
  if (again === null)
    throw Object.assign(new Error(`ENOENT: no such file or directory, mkdir '${path}'`), { code: "ENOENT" });
  return again;
}

/** Null when the folder above is missing. */
async function makeOne(path: string, mode: number): Promise<boolean | null> {
  try {
    await mkdir(path, { mode });
    return true;
  } catch (error) {
    const found = await stat(path).catch(() => null); // what mkdir said counts
    if (found?.isDirectory()) return false;
    const missing = error instanceof Error && "code" in error && error.code === "ENOENT" && dirname(path) !== path;
    if (missing) return null;
    throw error;
  }
}
