/** The words of a command line with its quotes resolved; nothing else of a shell happens. Null when a quote stays open. */
export function splitWords(command: string): string[] | null {
  const words: string[] = [];
  let word = "";
  let inWord = false;
  let quote: '"' | "'" | null = null;
  for (let at = 0; at < command.length; at++) {
    const char = command.charAt(at);
    if (quote === null && /\s/.test(char)) {
      if (inWord) words.push(word);
      word = "";
      inWord = false;
      continue;
    }
    inWord = true;
    if (quote === null && (char === '"' || char === "'")) quote = char;
    else if (char === quote) quote = null;
    else if (char === "\\" && quote !== "'" && at + 1 < command.length) word += command.charAt(++at);
    else word += char;
  }
  if (quote !== null) return null;
  return inWord ? [...words, word] : words;
}
