import { access, constants } from "node:fs/promises";
import { isAbsolute, join } from "node:path";

/** The absolute path of a program on PATH; null when there is none that we may run. */
export async function findProgram(name: string, path: string): Promise<string | null> {
  const candidates = isAbsolute(name)
    ? [name]
    : path
        .split(":")
        .filter(isAbsolute)
        .map((directory) => join(directory, name));
  for (const candidate of candidates) {
    const usable = await access(candidate, constants.X_OK).then(
      () => true,
      () => false,
    );
    if (usable) return candidate;
  }
  return null;
}
