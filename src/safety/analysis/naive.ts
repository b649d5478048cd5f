/**
 * A line that did not parse, cut at everything that might begin a command. Quotes count for nothing here: better to see a command
 * in a text than to miss one.
 */
export function splitNaively(text: string): readonly { words: readonly string[]; targets: readonly string[] }[] {
  return text
    .replaceAll("\\\n", "")
    .split(/[;&|\n`"'(){}]+/)
    .map((fragment) => {
      const targets = [...fragment.matchAll(/>+\s*([^\s<>]+)/g)].map((match) => match[1] ?? "");
      const words = fragment
        .replace(/[0-9]*[<>]+\s*[^\s<>]*/g, " ")
        .replaceAll("\\", "")
        .split(/\s+/)
        .filter((word) => word !== "" && word !== "$" && !KEYWORDS.has(word) && !/^[A-Za-z_]\w*=/.test(word));
      return { words, targets };
    })
    .filter(({ words, targets }) => words.length > 0 || targets.length > 0);
}

const KEYWORDS = new Set(["if", "then", "elif", "else", "while", "until", "do", "!", "fi", "done", "esac"]);
