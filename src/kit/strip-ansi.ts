// What of foreign text must not reach a terminal: control sequences (ECMA-48), other control characters, turned direction.
// Hand-written: `util.stripVTControlCharacters` leaves the strings of DCS, APC and their kin, and a regular expression may take quadratic time.

const INTRODUCER = /[\x1b\x80-\x9f]/g;
const STRING_END = /\x1b\\|\x9c/g;
const STRING_END_OR_BELL = /\x1b\\|[\x9c\x07]/g;

/** Linear in the text's length. Newlines, tabs, other control characters and everything printable stay. */
export function stripAnsi(text: string): string {
  INTRODUCER.lastIndex = 0;
  let introducer = INTRODUCER.exec(text);
  if (!introducer) return text;
  const findStringEnd = endFinder(text, STRING_END);
  const findOscEnd = endFinder(text, STRING_END_OR_BELL);
  const kept: string[] = [];
  let position = 0;
  while (introducer) {
    kept.push(text.slice(position, introducer.index));
    position = sequenceEnd(text, introducer.index, findStringEnd, findOscEnd);
    INTRODUCER.lastIndex = position;
    introducer = INTRODUCER.exec(text);
  }
  kept.push(text.slice(position));
  return kept.join("");
}

const CONTROLS = /[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]/;
const LEFT_CONTROLS = new RegExp(CONTROLS, "g");

/**
 * Text that drives no terminal: of all control characters only newlines and tabs are left. A lone carriage return, which would write
 * over its line, begins a new one; what turns the direction of text (and shows a name or a command as another one) is gone.
 */
export function withoutControls(text: string): string {
  if (!CONTROLS.test(text)) return text;
  return stripAnsi(text).replace(/\r\n?/g, "\n").replace(LEFT_CONTROLS, "");
}

type FindEnd = (from: number) => number | null;

/** Where the sequence that starts at `start` ends. An unfinished string sequence loses its introducer alone. */
function sequenceEnd(text: string, start: number, findStringEnd: FindEnd, findOscEnd: FindEnd): number {
  const code = text.charCodeAt(start);
  const eightBit = code >= 0x80;
  const next = start + (eightBit ? 1 : 2);
  // The 8-bit introducer 0x80 + x is the same as ESC followed by 0x40 + x.
  const kind = eightBit ? code - 0x40 : text.charCodeAt(start + 1);
  switch (kind) {
    case 0x5b: // CSI
      return csiEnd(text, next);
    case 0x5d: // OSC
      return findOscEnd(next) ?? next;
    case 0x50: // DCS
    case 0x58: // SOS
    case 0x5e: // PM
    case 0x5f: // APC
      return findStringEnd(next) ?? next;
    default:
      return eightBit ? next : escapeEnd(text, start + 1);
  }
}

function csiEnd(text: string, from: number): number {
  let index = from;
  while (isBetween(text, index, 0x30, 0x3f)) index++;
  while (isBetween(text, index, 0x20, 0x2f)) index++;
  return isBetween(text, index, 0x40, 0x7e) ? index + 1 : index;
}

function escapeEnd(text: string, from: number): number {
  let index = from;
  while (isBetween(text, index, 0x20, 0x2f)) index++;
  return isBetween(text, index, 0x30, 0x7e) ? index + 1 : from;
}

function isBetween(text: string, index: number, low: number, high: number): boolean {
  const code = text.charCodeAt(index);
  return code >= low && code <= high;
}

/** Finds the next terminator; asked with rising positions it reads the text once. */
function endFinder(text: string, pattern: RegExp): FindEnd {
  let known: { start: number; end: number } | null | undefined;
  return (from) => {
    if (known === undefined || (known && known.start < from)) {
      pattern.lastIndex = from;
      const found = pattern.exec(text);
      known = found ? { start: found.index, end: pattern.lastIndex } : null;
    }
    return known ? known.end : null;
  };
}
