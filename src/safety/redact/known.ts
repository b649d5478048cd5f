// Secrets whose very value is known: masked wherever they occur.
import { isHarmless, type Marks } from "./marks.ts";

const MIN_LENGTH = 8;

/** Longest first, so that a secret inside another does not spoil the longer one; with the spellings JSON and URLs give them. */
export function prepareKnown(secrets: readonly string[]): readonly string[] {
  const spellings = new Set<string>();
  for (const secret of secrets) {
    if (
      secret.length < MIN_LENGTH ||
      isHarmless(secret) ||
      "[REDACTED PRIVATE KEY] «redacted private key»".includes(secret)
    )
      continue;
    spellings.add(secret);
    spellings.add(JSON.stringify(secret).slice(1, -1));
    spellings.add(encodeURIComponent(secret.toWellFormed()));
  }
  return [...spellings].sort((a, b) => b.length - a.length);
}

export function redactKnown(text: string, known: readonly string[], marks: Marks): string {
  let result = text;
  for (const secret of known)
    if (result.includes(secret)) result = result.replaceAll(secret, () => marks.token(secret, ""));
  return result;
}
