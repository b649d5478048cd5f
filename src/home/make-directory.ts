import { existsSync, mkdirSync } from "node:fs";
import { dirname } from "node:path";

/** With its parents, step by step: Node's own recursive mkdir never ends below a place like /proc, where every new name is "no such file". */
export function makeDirectory(dir: string, mode: number): void {
  const parent = dirname(dir);
  if (parent !== dir && !existsSync(parent)) makeDirectory(parent, mode);
  try {
    mkdirSync(dir, { mode });
  } catch (error) {
    const exists = error instanceof Error && "code" in error && error.code === "EEXIST"; // another process was faster
    if (!exists) throw error;
  }
}
