// "Did you mean": names near a path that does not exist.
import { basename, dirname, join } from "node:path";
import { similarityTo } from "../kit/similarity.ts";
import type { FileAccess } from "./files/access.ts";

const MAX = 5;
const WORTH_NAMING = 0.5;

/** Up to five names in the same directory that are most like the missing one, spelled like the path that was asked for. */
export async function findSimilar(files: FileAccess, absolute: string, asked: string): Promise<string[]> {
  const wanted = basename(absolute);
  const names = await files.list(dirname(absolute)).catch((): string[] => []);
  const ratioOf = similarityTo(wanted.toLowerCase());
  return names
    .map((name) => ({ name, ratio: likeness(name, wanted, ratioOf) }))
    .filter(({ ratio }) => ratio >= WORTH_NAMING)
    .sort((a, b) => b.ratio - a.ratio || a.name.localeCompare(b.name))
    .slice(0, MAX)
    .map(({ name }) => join(dirname(asked), name));
}

function likeness(name: string, wanted: string, ratioOf: (other: string, floor: number) => number): number {
  const lower = name.toLowerCase();
  const target = wanted.toLowerCase();
  const stem = target.split(".")[0] ?? "";
  if (lower === target) return 1;
  if (stem.length >= 3 && lower.split(".")[0] === stem) return 0.95;
  if (stem.length >= 3 && lower.includes(stem)) return Math.max(0.7, ratioOf(lower, 0));
  return ratioOf(lower, WORTH_NAMING);
}
