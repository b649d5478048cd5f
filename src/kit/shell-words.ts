// A command line as its words.

/** Quotes and backslashes count as in a shell; nothing else of a shell happens. Null when a quote stays open. */
export function splitWords(line: string): string[] | null {
  const words: string[] = [];
  let word = "";
  let inWord = false;
  let quote: '"' | "'" | null = null;
  for (let at = 0; at < line.length; at++) {
    const char = line.charAt(at);
    if (quote === null && /\s/.test(char)) {
      if (inWord) words.push(word);
      word = "";
      inWord = false;
      continue;
    }
    inWord = true;
    if (quote === null && (char === '"' || char === "'")) quote = char;
    else if (char === quote) quote = null;
    else if (char === "\\" && quote !== "'" && at + 1 < line.length) word += line.charAt(++at);
    else word += char;
  }
  if (quote !== null) return null;
  return inWord ? [...words, word] : words;
}
