const SIMPLE: Readonly<Record<string, string>> = {
  a: "\x07",
  b: "\b",
  e: "\x1b",
  E: "\x1b",
  f: "\f",
  n: "\n",
  r: "\r",
  t: "\t",
  v: "\v",
};

const ESCAPE = /\\(?:x([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{1,4})|U([0-9a-fA-F]{1,8})|([0-7]{1,3})|c([\s\S])|([\s\S]))/g;

/** Undoes the escapes of `$'...'`. */
export function decodeAnsiC(body: string): string {
  return body.replace(ESCAPE, (_all, hex, short, long, octal, control, other) => {
    const code = hex ?? short ?? long;
    if (code !== undefined) return fromCode(Number.parseInt(code, 16));
    if (octal !== undefined) return fromCode(Number.parseInt(octal, 8) & 0xff);
    if (control !== undefined) return fromCode(control.charCodeAt(0) & 0x1f);
    return SIMPLE[other] ?? other;
  });
}

const fromCode = (code: number) => (code <= 0x10ffff ? String.fromCodePoint(code) : "\ufffd");
