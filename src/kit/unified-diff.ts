/** A unified diff with `a/` and `b/` in front of the names; null stands for a file that does not exist. Empty when nothing differs. */
export async function unifiedDiff(
  before: { readonly path: string; readonly text: string } | null,
  after: { readonly path: string; readonly text: string } | null,
  context = 3,
): Promise<string> {
  const { structuredPatch } = await import("diff");
  const oldName = before ? `a/${nameOf(before.path)}` : "/dev/null";
  const newName = after ? `b/${nameOf(after.path)}` : "/dev/null";
  const { hunks } = structuredPatch(oldName, newName, before?.text ?? "", after?.text ?? "", "", "", { context });
  if (hunks.length === 0) return "";
  const body = hunks.map((hunk) => {
    // An empty side is named by the line before it.
    const range = (start: number, lines: number) =>
      lines === 1 ? `${start}` : `${lines === 0 ? start - 1 : start},${lines}`;
    return [
      `@@ -${range(hunk.oldStart, hunk.oldLines)} +${range(hunk.newStart, hunk.newLines)} @@`,
      ...hunk.lines,
    ].join("\n");
  });
  return `--- ${oldName}\n+++ ${newName}\n${body.join("\n")}\n`;
}

function nameOf(path: string): string {
  return path.replace(/^\/+/, "");
}
