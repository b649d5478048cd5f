// The memory as the system prompt shows it: frozen text, with a line in place of every entry that does not pass the threat scan.
import { scanForThreats } from "../safety/threats/scan.ts";
import { FILE_NAMES, lengthOf, type MemoryTarget, renderEntries } from "./format.ts";
import { longUsage } from "./usage.ts";

const RULE = "═".repeat(46);
const TITLES: Readonly<Record<MemoryTarget, string>> = {
  memory: "MEMORY (your personal notes)",
  user: "USER PROFILE (who the user is)",
};

/** Null when there is nothing to show. The count is that of the true entries, blocked ones included. */
export function renderBlock(target: MemoryTarget, entries: readonly string[], limit: number): string | null {
  if (entries.length === 0) return null;
  const title = `${TITLES[target]} [${longUsage(lengthOf(entries), limit)}]`;
  const shown = entries.map((entry) => presentable(entry, FILE_NAMES[target]));
  return `${RULE}\n${title}\n${RULE}\n${renderEntries(shown)}`;
}

function presentable(entry: string, file: string): string {
  const ids = scanForThreats(entry, "strict").map(({ id }) => id);
  if (ids.length === 0) return entry;
  return (
    `[BLOCKED: ${file} entry contained threat pattern(s): ${ids.join(", ")}. Removed from system prompt; ` +
    "the memory tool's remove action deletes it from the file.]"
  );
}
