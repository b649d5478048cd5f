// Backslashes that only the serialisation of a tool call put there.

/** The escape that `old` and `replacement` hold and the file does not: writing it would damage the code. */
export function findEscapeDrift(old: string, replacement: string, region: string): string | null {
  for (const sequence of ["\\'", '\\"'])
    if (old.includes(sequence) && replacement.includes(sequence) && !region.includes(sequence)) return sequence;
  return null;
}

/**
 * `\t` and `\r` written as two characters become the real one where the region holds it. Inside a line only if the region has one inside
 * a line too: tabs that merely indent say nothing about a string literal. `\n` is never touched, it is too often meant literally.
 */
export function unescapeLikeRegion(replacement: string, region: string): string {
  let text = replacement;
  if (region.includes("\t") && !region.includes("\\t")) {
    text = /\S[^\S\n]*\t/.test(region)
      ? text.replaceAll("\\t", "\t")
      : text.replace(/^(?:[ \t]|\\t)+/gm, (indent) => indent.replaceAll("\\t", "\t"));
  }
  return region.includes("\r") && !region.includes("\\r") ? text.replaceAll("\\r", "\r") : text;
}
