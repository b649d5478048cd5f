import { currentKey } from "./approval-keys.ts";
import { matchGlob } from "./glob.ts";
import { parseCommandLine } from "./shell/parse.ts";

/**
 * An entry is a danger category, or a glob of whole commands. A glob never covers a line with shell operators: `git push *` must
 * not let `git push x; something else` through.
 */
export function isAllowlisted(command: string, category: string | null, entries: readonly string[]): boolean {
  if (category !== null && entries.some((entry) => currentKey(entry) === category)) return true;
  const text = command.trim();
  return isSinglePlainCommand(text) && entries.some((entry) => entry.trim() !== "" && matchGlob(entry.trim(), text));
}

function isSinglePlainCommand(command: string): boolean {
  const { script, ok } = parseCommandLine(command);
  const [pipeline] = script.pipelines;
  const [simple] = pipeline?.commands ?? [];
  if (!ok || script.pipelines.length !== 1 || pipeline?.joiner !== "" || pipeline.commands.length !== 1) return false;
  if (simple?.type !== "simple" || simple.keywords.length > 0) return false;
  if (simple.assignments.length > 0 || simple.redirections.length > 0) return false;
  return simple.words.every(({ parts }) => parts.every(({ type }) => type === "literal" || type === "variable"));
}
