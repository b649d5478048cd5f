import type { Haystack, Match } from "./strategies.ts";

/** Every occurrence; after one the search goes on behind it. */
export function findExact(haystack: Haystack, old: string): Match[] {
  return occurrences(haystack.text, old).map((start) => ({ start, end: start + old.length }));
}

/** `\n`, `\t` and `\r` written as two characters are read as the characters they name. */
export function findEscaped(haystack: Haystack, old: string): Match[] {
  const unescaped = unescapeControls(old);
  return unescaped === old ? [] : findExact(haystack, unescaped);
}

export function unescapeControls(text: string): string {
  return text.replaceAll("\\n", "\n").replaceAll("\\t", "\t").replaceAll("\\r", "\r");
}

export function occurrences(text: string, part: string): number[] {
  const found: number[] = [];
  if (part === "") return found;
  for (let at = text.indexOf(part); at !== -1; at = text.indexOf(part, at + part.length)) found.push(at);
  return found;
}
