/** Finding the least change takes the square of its size; beyond this many lines one rough hunk has to do. */
const MAX_CHANGED_LINES = 2000;
/** Lines shown of either side of a rough hunk. */
const MAX_ROUGH_LINES = 500;

interface Side {
  readonly path: string;
  readonly text: string;
}

/** A unified diff with `a/` and `b/` in front of the names; null stands for a file that does not exist. Empty when nothing differs. */
export async function unifiedDiff(before: Side | null, after: Side | null, context = 3): Promise<string> {
  const { structuredPatch } = await import("diff");
  const oldName = before ? `a/${nameOf(before.path)}` : "/dev/null";
  const newName = after ? `b/${nameOf(after.path)}` : "/dev/null";
  const [oldText, newText] = [before?.text ?? "", after?.text ?? ""];
  if (oldText === newText) return "";
  // A new or removed file has but one difference, whatever its length.
  const options = { context, maxEditLength: oldText === "" || newText === "" ? Infinity : MAX_CHANGED_LINES };
  const patch = structuredPatch(oldName, newName, oldText, newText, "", "", options);
  if (patch?.hunks.length === 0) return "";
  const body = patch
    ? patch.hunks.map((hunk) => {
        // An empty side is named by the line before it.
        const start = (first: number, lines: number) => (lines === 0 ? first - 1 : first);
        const ranges = [
          start(hunk.oldStart, hunk.oldLines),
          hunk.oldLines,
          start(hunk.newStart, hunk.newLines),
          hunk.newLines,
        ] as const;
        return [header(...ranges), ...hunk.lines].join("\n");
      })
    : [roughHunk(linesOf(oldText), linesOf(newText))];
  return `--- ${oldName}\n+++ ${newName}\n${body.join("\n")}\n`;
}

function header(oldStart: number, oldLines: number, newStart: number, newLines: number): string {
  const range = (start: number, lines: number) => (lines === 1 ? `${start}` : `${start},${lines}`);
  return `@@ -${range(oldStart, oldLines)} +${range(newStart, newLines)} @@`;
}

/** From the first line that differs to the last: all of it removed, all of it added. */
function roughHunk(before: readonly string[], after: readonly string[]): string {
  const shorter = Math.min(before.length, after.length);
  let same = 0;
  while (same < shorter && before[same] === after[same]) same++;
  let end = 0;
  while (end < shorter - same && before.at(-1 - end) === after.at(-1 - end)) end++;
  const removed = before.slice(same, before.length - end);
  const added = after.slice(same, after.length - end);
  const start = (lines: readonly string[]) => (lines.length === 0 ? same : same + 1);
  return [
    header(start(removed), removed.length, start(added), added.length),
    ...shown(removed, "-"),
    ...shown(added, "+"),
  ].join("\n");
}

function shown(lines: readonly string[], sign: "-" | "+"): string[] {
  const some = lines.slice(0, MAX_ROUGH_LINES).map((line) => sign + line);
  const more = lines.length - some.length;
  return more > 0 ? [...some, `... [${more} more ${sign === "-" ? "removed" : "added"} lines]`] : some;
}

function linesOf(text: string): string[] {
  const lines = text.split("\n");
  if (lines.at(-1) === "") lines.pop();
  return lines;
}

function nameOf(path: string): string {
  return path.replace(/^\/+/, "");
}
