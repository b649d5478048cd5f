// Secrets whose very value is known: masked wherever they occur.
import { isHarmless, type Marks } from "./redact/marks.ts";
import { redactWrapped } from "./redact/wrapped.ts";

const MIN_LENGTH = 8;
const MIN_ENCODED = 10;
/** A line of a secret of several lines that is nothing but key: it is told by itself too, where the text was cut. */
const KEY_LINE = /^[A-Za-z0-9+/=_-]{24,}$/;

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
    for (const line of secret.split(/\r?\n/)) if (KEY_LINE.test(line)) spellings.add(line);
    spellings.add(JSON.stringify(secret).slice(1, -1));
    spellings.add(encodeURIComponent(secret.toWellFormed()));
    for (const encoded of encodings(secret)) spellings.add(encoded);
  }
  return [...spellings].sort((a, b) => b.length - a.length);
}

/** As `base64` and `xxd -p` print it, wherever in the encoded text it begins: only the characters that it alone decides. */
function* encodings(secret: string): Generator<string> {
  const bytes = Buffer.from(secret);
  yield bytes.toString("hex");
  yield bytes.toString("hex").toUpperCase();
  for (const before of [0, 1, 2]) {
    const whole = Buffer.concat([Buffer.alloc(before), bytes]);
    const first = Math.ceil((before * 8) / 6);
    const core = whole.toString("base64").slice(first, Math.floor((whole.length * 8) / 6));
    if (core.length < MIN_ENCODED) continue;
    yield core;
    yield core.replaceAll("+", "-").replaceAll("/", "_");
  }
}

export function redactKnown(text: string, known: readonly string[], marks: Marks): string {
  let result = text;
  for (const secret of known)
    if (result.includes(secret)) result = result.replaceAll(secret, () => marks.token(secret, ""));
  return redactWrapped(result, known, marks);
}
