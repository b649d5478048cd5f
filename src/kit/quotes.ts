/** Without one pair of outer quotes. */
export function unquote(text: string): string {
  const quoted = /^(["'])(.*)\1$/s.exec(text);
  return quoted ? (quoted[2] ?? "") : text;
}
