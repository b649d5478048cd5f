import { basename } from "node:path";

/** How well a project file fits what was typed after `@`; 0 = not at all. */
export function scoreFile(path: string, query: string): number {
  if (query === "") return 1;
  const wanted = query.toLowerCase();
  const name = basename(path).toLowerCase();
  const whole = path.toLowerCase();
  if (name === wanted) return 100;
  if (name.startsWith(wanted)) return 80;
  if (name.includes(wanted)) return 60;
  if (whole.includes(wanted)) return 40;
  if (isSubsequence(wanted, initialsOf(path))) return 35;
  return isSubsequence(wanted, whole) ? 25 : 0;
}

/** Best first; of two that fit equally the shorter path. */
export function rankFiles(paths: readonly string[], query: string, limit: number): string[] {
  return paths
    .map((path) => ({ path, score: scoreFile(path, query) }))
    .filter(({ score }) => score > 0)
    .sort((a, b) => b.score - a.score || a.path.length - b.path.length || (a.path < b.path ? -1 : 1))
    .slice(0, limit)
    .map(({ path }) => path);
}

/** First letters of the words of a path: `src/doors/plain-table.ts` and `InputLine.ts` have `s d p t t` and `I L t`. */
function initialsOf(path: string): string {
  return [...path.matchAll(/(?<![\p{L}\p{N}])[\p{L}\p{N}]|(?<=\p{Ll})\p{Lu}/gu)]
    .map(([letter]) => letter.toLowerCase())
    .join("");
}

function isSubsequence(wanted: string, text: string): boolean {
  let at = 0;
  for (const char of text) if (char === wanted[at]) at++;
  return at >= wanted.length;
}
