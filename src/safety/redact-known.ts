// Secrets whose very value is known: masked wherever they occur.
import { countCodePoints } from "../kit/code-points.ts";

const MIN_LENGTH = 8;
const MIN_ENCODED = 10;
/** A line of a secret of several lines that is nothing but key: it is found by itself too, where the text was cut. */
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
    for (const escaped of escapes(secret)) {
      spellings.add(escaped);
      spellings.add(JSON.stringify(escaped).slice(1, -1));
    }
    for (const encoded of encodings(secret)) spellings.add(encoded);
  }
  return [...spellings].sort((a, b) => b.length - a.length);
}

/** As URLs, HTML and shells spell what means something to them. */
function* escapes(secret: string): Generator<string> {
  const inUrl = encodeURIComponent(secret.toWellFormed());
  yield inUrl;
  yield inUrl.replace(/%../g, (code) => code.toLowerCase());
  yield inUrl.replaceAll("%20", "+");
  for (const apostrophe of ["#39", "#x27", "apos"])
    yield secret.replace(/[&<>"']/g, (sign) => `&${ENTITIES[sign] ?? apostrophe};`);
  yield secret.replaceAll("'", String.raw`'\''`);
}

const ENTITIES: Readonly<Record<string, string>> = { "&": "amp", "<": "lt", ">": "gt", '"': "quot" };

/** As `base64` and `xxd -p` print it, wherever in the encoded text it begins: only the characters that it alone decides. */
function* encodings(secret: string): Generator<string> {
  const bytes = Buffer.from(secret);
  yield bytes.toString("hex");
  yield bytes.toString("hex").toUpperCase();
  const pairs = [...bytes].map((byte) => byte.toString(16).padStart(2, "0"));
  for (const between of [" ", ":", "\\x", "%", "\\\\x"]) {
    yield pairs.join(between);
    yield pairs.join(between).toUpperCase().replaceAll("X", "x");
  }
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

// A secret that `base64` or `xxd -p` printed over two lines: the lines are read as one, and what is found is masked in both.

/** Shorter lines are words of some text, not a piece of an encoding. */
const SHORTEST_LINE = 32;
const LINE_END = /(\r?\n|(?:\\r)?\\n)/;

function redactWrapped(text: string, known: readonly string[], marks: Marks): string {
  if (known.length === 0 || !(text.includes("\n") || text.includes("\\n"))) return text;
  // Lines at even places, what parts them between.
  const parts = text.split(LINE_END);
  let changed = false;
  for (let first = 0; first + 2 < parts.length; ) {
    const line = parts[first] ?? "";
    const from = tailStart(line);
    let last = first + 2;
    if (line.length - from >= SHORTEST_LINE) {
      while (last + 2 < parts.length && isWhole(parts[last] ?? "")) last += 2;
      if (maskAcross(parts, { first, last, from }, known, marks)) changed = true;
    }
    first = last;
  }
  return changed ? parts.join("") : text;
}

interface Block {
  readonly first: number;
  readonly last: number;
  /** Where in the first line it begins. */
  readonly from: number;
}

function maskAcross(parts: string[], { first, last, from }: Block, known: readonly string[], marks: Marks): boolean {
  const pieces: { readonly at: number; readonly before: string; readonly text: string; readonly after: string }[] = [];
  for (let at = first; at <= last; at += 2) {
    const line = parts[at] ?? "";
    const start = at === first ? from : 0;
    const end = at === last ? headEnd(line) : line.length;
    pieces.push({ at, before: line.slice(0, start), text: line.slice(start, end), after: line.slice(end) });
  }
  const joined = pieces.map(({ text }) => text).join("");
  const found = known.filter((secret) => joined.includes(secret));
  if (found.length === 0) return false;
  const cells = [...joined];
  for (const secret of found) {
    for (let at = joined.indexOf(secret); at >= 0; at = joined.indexOf(secret, at + secret.length)) {
      if (cells.slice(at, at + secret.length).some((cell) => cell.length !== 1)) continue;
      cells.fill("", at, at + secret.length);
      cells[at] = marks.token(secret, "");
    }
  }
  let offset = 0;
  for (const { at, before, text, after } of pieces) {
    parts[at] = before + cells.slice(offset, offset + text.length).join("") + after;
    offset += text.length;
  }
  return true;
}

/** Letters, digits and the signs that encodings use. */
function isEncoded(code: number): boolean {
  return (
    (code >= 0x61 && code <= 0x7a) ||
    (code >= 0x41 && code <= 0x5a) ||
    (code >= 0x2f && code <= 0x39) ||
    code === 0x2b ||
    code === 0x2d ||
    code === 0x3d ||
    code === 0x5f
  );
}

function tailStart(line: string): number {
  let at = line.length;
  while (at > 0 && isEncoded(line.charCodeAt(at - 1))) at--;
  return at;
}

function headEnd(line: string): number {
  let at = 0;
  while (at < line.length && isEncoded(line.charCodeAt(at))) at++;
  return at;
}

const isWhole = (line: string) => line.length >= SHORTEST_LINE && headEnd(line) === line.length;

// What stands where a secret stood.

export interface Marks {
  /** For a value whose kind is known by its first characters. */
  token(value: string, prefix: string): string;
  /** For a value of which nothing may be shown. */
  readonly hidden: string;
  privateKey(block: string): string;
}

const SHORT = 18;

export const screenMarks: Marks = {
  // Of its ends only what no other step could take for a name with a value, an address or a number.
  token: (value) =>
    countCodePoints(value) < SHORT
      ? "***"
      : `${/^[\w.-]{0,6}/.exec(value)?.[0] ?? ""}...${/[\w.-]{0,4}$/.exec(value)?.[0] ?? ""}`,
  hidden: "***",
  privateKey: () => "[REDACTED PRIVATE KEY]",
};

/** Guillemets occur in no key, so a mark that is written back is recognised and breaks nothing silently. */
export const fileMarks: Marks = {
  token: (_value, prefix) => (prefix === "" ? "«redacted»" : `«redacted:${prefix}…»`),
  hidden: "«redacted»",
  privateKey: (block) => block.replace(/[^\n\r]+/g, "«redacted private key»"),
};

const FILE_MARK = /«redacted(?: private key|:[A-Za-z0-9_.-]{1,16}…)?»/;

/** The first file mark in a text that is to be written, if there is one. */
export function findFileMark(text: string): string | null {
  return FILE_MARK.exec(text)?.[0] ?? null;
}

export function isMarked(value: string): boolean {
  return value === "***" || value.startsWith("«redacted") || /^[\w.-]{0,6}\.\.\.[\w.-]{0,4}$/.test(value);
}

/** A telephone number is a number too, but is masked by itself; masked before and after, it must look the same. */
const PHONE = /^\+[1-9]\d{6,14}$/;

/** Numbers, switches, references to variables and commands are not secrets; a question about a command must show the command. */
export function isHarmless(value: string): boolean {
  if (value.includes("$(") || value.includes("`")) return true;
  if (PHONE.test(value)) return false;
  return /^(?:[+-]?\d+(?:[._]\d+)*|true|false|yes|no|on|off|null|none|undefined|\$(?:\w.*)?|\$\{.*|\{\{.*|<[^>]*>?|%\w+%)$/i.test(
    value,
  );
}
