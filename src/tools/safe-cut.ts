// Where a text may be cut. A redactor knows a secret only while it is whole: half of one, left at a cut, would pass it.

/** Longer than any key block; as far as a cut is ever moved. */
const REACH = 8192;
/** So far it is looked at every place: most secrets are shorter. */
const CLOSE_BY = 64;

/**
 * The place nearest to `at`, before it (-1) or behind it (1), where the two sides redacted apart are the whole redacted.
 * Where there is none, the text within reach is given up.
 */
export function safeCut(text: string, at: number, direction: -1 | 1, redact: (text: string) => string): number {
  const from = Math.max(0, at - 2 * REACH);
  const to = Math.min(text.length, at + 2 * REACH);
  const whole = redact(text.slice(from, to));
  for (let step = 0; step < REACH; step = step < CLOSE_BY ? step + 1 : step * 2) {
    const place = wholeCharacter(text, clamp(at + direction * step, text.length));
    if (place <= from || place >= to) return place;
    if (redact(text.slice(from, place)) + redact(text.slice(place, to)) === whole) return place;
  }
  return wholeCharacter(text, clamp(at + direction * REACH, text.length));
}

/** A text in pieces of about this many characters that may be redacted one by one. */
export function* safePieces(text: string, size: number, redact: (text: string) => string): Generator<string> {
  let from = 0;
  while (text.length - from > size) {
    let to = wholeCharacter(text, from + Math.max(size, 2));
    while (to < text.length && !isSafe(text, to, redact)) to = wholeCharacter(text, clamp(to + CLOSE_BY, text.length));
    yield text.slice(from, to);
    from = to;
  }
  yield text.slice(from);
}

function isSafe(text: string, at: number, redact: (text: string) => string): boolean {
  const from = Math.max(0, at - 2 * REACH);
  const to = Math.min(text.length, at + 2 * REACH);
  return redact(text.slice(from, at)) + redact(text.slice(at, to)) === redact(text.slice(from, to));
}

/**
 * The same beside a gap whose text is gone, so that nobody can tell what was cut: the broken line beside it is given up.
 * `at` is where the text ends (-1) or begins (1).
 */
export function leaveBrokenLine(text: string, at: number, direction: -1 | 1): number {
  const far = clamp(at + direction * REACH, text.length);
  if (direction === 1) {
    const end = text.slice(at, far).indexOf("\n");
    return end === -1 ? wholeCharacter(text, far) : at + end + 1;
  }
  const end = text.slice(far, at).lastIndexOf("\n");
  return end === -1 ? wholeCharacter(text, far) : far + end + 1;
}

const clamp = (at: number, length: number) => Math.min(Math.max(at, 0), length);

/** The same place, or one before it when it lies inside a character of two code units. */
function wholeCharacter(text: string, at: number): number {
  return at > 0 && at < text.length && /[\uD800-\uDBFF]/.test(text.charAt(at - 1)) ? at - 1 : at;
}
