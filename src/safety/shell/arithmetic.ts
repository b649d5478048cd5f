/**
 * The offset behind the `))` (or `]`) that ends an arithmetic expression whose inside starts at `from`; -1 when it is none, as in
 * `$((a) | b)`. Bash decides the same way: arithmetic first, commands when that does not close.
 */
export function findArithmeticEnd(text: string, from: number, close: "))" | "]"): number {
  let open = 0;
  for (let at = from; at < text.length; at++) {
    const char = text[at];
    if (char === "\\") at++;
    else if (char === "'" || char === '"') {
      const end = text.indexOf(char, at + 1);
      if (end < 0) return -1;
      at = end;
    } else if (close === "]") {
      if (char === "[") open++;
      else if (char === "]" && open-- === 0) return at + 1;
    } else if (char === "(") open++;
    else if (char === ")") {
      if (open > 0) open--;
      else return text[at + 1] === ")" ? at + 2 : -1;
    }
  }
  return -1;
}
