// The diff of a change as the model may see it.
import { unifiedDiff } from "../kit/unified-diff.ts";

type Side = Parameters<typeof unifiedDiff>[0];

/** Secrets are looked for in the lines themselves: behind the sign of a diff a number reads like a telephone number. */
export async function shownDiff(before: Side, after: Side, redact: (text: string) => string): Promise<string> {
  const diff = await unifiedDiff(before, after);
  if (diff === "") return "";
  const [oldName = "", newName = "", ...rows] = diff.split("\n");
  const rest = rows.map((row) =>
    row.startsWith("@@ ") ? { sign: row, text: "" } : { sign: row.slice(0, 1), text: row.slice(1) },
  );
  const texts = redact(rest.map(({ text }) => text).join("\n")).split("\n");
  return [oldName, newName, ...rest.map(({ sign }, index) => sign + (texts[index] ?? ""))].join("\n");
}
