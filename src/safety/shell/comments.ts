import { parseCommandLine } from "./parse.ts";

/** The command without its comments; null when it cannot be read well enough to tell what is one. */
export function withoutComments(command: string): string | null {
  const { ok, comments } = parseCommandLine(command);
  if (!ok) return null;
  let text = "";
  let from = 0;
  for (const { start, end } of [...comments].sort((left, right) => left.start - right.start)) {
    if (start < from) continue;
    text += command.slice(from, start);
    from = end;
  }
  return (text + command.slice(from)).replace(/[ \t]+$/gm, "").trim();
}
