const LONG_LINE = 400;

/** A long message as the transcript repeats it: its first and last lines, and how many are between. */
export function userEcho(text: string, shown: { readonly first_lines: number; readonly last_lines: number }): string {
  const head = text.slice(0, (shown.first_lines + 1) * LONG_LINE * 4).split("\n");
  const lines = text.length < 100_000 ? text.split("\n") : null;
  const count = lines?.length ?? countLines(text);
  const most = shown.first_lines + shown.last_lines + 1;
  if (lines && count <= most) return lines.map(shorten).join("\n");
  const tail = text.slice(-(shown.last_lines + 1) * LONG_LINE * 4).split("\n");
  const last = shown.last_lines > 0 && count > shown.first_lines ? tail.slice(-shown.last_lines) : [];
  const between = count - shown.first_lines - last.length;
  return [
    ...head.slice(0, shown.first_lines).map(shorten),
    ...(between > 0 ? [`... ${between} more line${between === 1 ? "" : "s"} ...`] : []),
    ...last.map(shorten),
  ].join("\n");
}

function shorten(line: string): string {
  return line.length > LONG_LINE * 4 ? `${line.slice(0, LONG_LINE * 4)}... (${line.length} characters)` : line;
}

function countLines(text: string): number {
  let count = 1;
  for (let at = text.indexOf("\n"); at !== -1; at = text.indexOf("\n", at + 1)) count++;
  return count;
}
