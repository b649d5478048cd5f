// White space at both ends. `trim` would also take U+FEFF away, which the threat scanner has to see.

export function strip(text: string): string {
  let start = 0;
  let end = text.length;
  while (start < end && isSpace(text.charCodeAt(start))) start++;
  while (end > start && isSpace(text.charCodeAt(end - 1))) end--;
  return text.slice(start, end);
}

const OTHER_SPACES = /^[\s\x1c-\x1f\x85]$/;

function isSpace(unit: number): boolean {
  if (unit === 0x20 || (unit >= 0x09 && unit <= 0x0d)) return true;
  return unit > 0x1b && unit !== 0xfeff && OTHER_SPACES.test(String.fromCharCode(unit));
}
