// Paths at the beginning of a line, as terminals write the files that are dropped on them: in quotes, with `\ ` for blanks, from `~`, as
// file:// addresses, several in a row.
import { stat } from "node:fs/promises";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

interface PathPlaces {
  readonly cwd: string;
  readonly userHome: string;
}

interface DroppedFile {
  /** Absolute. */
  readonly path: string;
  /** For a message: readable by whoever gets it, in backticks when there are blanks in it. */
  readonly reference: string;
  /** By its name, one of the kinds of pictures. */
  readonly isPicture: boolean;
}

interface Dropped {
  readonly files: readonly DroppedFile[];
  /** What follows them. */
  readonly rest: string;
}

const PICTURES = "png|jpe?g|gif|webp|bmp|tiff?|svg|ico";
const IS_PICTURE = new RegExp(`\\.(?:${PICTURES})$`, "i");
export const isPictureName = (name: string) => IS_PICTURE.test(name);
const PICTURE_ENDS = new RegExp(`\\.(?:${PICTURES})(?=[ \\t\\r\\n]|$)`, "gi");
/** A name with bare blanks is looked for up to its so manieth possible end. */
const MOST_ENDS = 5;
/** Only this part of a long text may be a path. */
const LONGEST = 4096;

/**
 * The existing files that a line begins with. Words are paths only if they are written as such (`/x`, `~/x`, `./x`, `file://x`), unless
 * `anyName`: then a bare name counts as well.
 */
export async function readDropped(
  text: string,
  places: PathPlaces,
  { anyName = false }: { readonly anyName?: boolean } = {},
): Promise<Dropped> {
  const files: DroppedFile[] = [];
  let at = afterBlanks(text, 0);
  for (;;) {
    const found = await fileAt(text, at, places, anyName);
    if (found === null) return { files, rest: text.slice(at) };
    files.push(found.file);
    at = afterBlanks(text, found.end);
  }
}

async function fileAt(
  text: string,
  at: number,
  places: PathPlaces,
  anyName: boolean,
): Promise<{ readonly file: DroppedFile; readonly end: number } | null> {
  for (const { written, end } of candidates(text, at)) {
    if (!anyName && !/^(?:[/~]|\.{1,2}\/|file:|[A-Za-z]:\\)/.test(written)) continue;
    const plain = plainPath(written, places);
    if (plain === null) continue;
    const path = resolve(places.cwd, plain);
    const facts = await stat(path).catch(() => null); // no such file: another reading, or just words
    if (facts === null) continue;
    const reference = /[ \t\r\n]/.test(plain) ? `\`${plain}\`` : plain;
    return { file: { path, reference, isPicture: facts.isFile() && isPictureName(path) }, end };
  }
  return null;
}

interface Candidate {
  readonly written: string;
  readonly end: number;
}

function* candidates(text: string, at: number): Generator<Candidate> {
  const first = text[at];
  if (first === undefined) return;
  if (first === "'" || first === '"') {
    const close = text.slice(0, at + LONGEST).indexOf(first, at + 1);
    if (close > at + 1) yield { written: text.slice(at + 1, close), end: close + 1 };
    return;
  }
  const word = wordAt(text, at);
  yield word;
  // Some terminals write blanks as they are.
  const part = text.slice(at, at + LONGEST);
  let tries = 0;
  for (const { 0: ending, index } of part.matchAll(PICTURE_ENDS)) {
    const end = at + index + ending.length;
    if (end === word.end) continue;
    yield { written: text.slice(at, end), end };
    if (++tries === MOST_ENDS) return;
  }
}

/** Up to a blank; a backslash takes the meaning from the character behind it, except in paths of Windows. */
function wordAt(text: string, at: number): Candidate {
  const escapes = !/^[A-Za-z]:\\/.test(text.slice(at, at + 3)) && process.platform !== "win32";
  let written = "";
  let end = at;
  for (; end < text.length && end - at < LONGEST && !isBlank(text[end]); end++) {
    if (escapes && text[end] === "\\" && end + 1 < text.length) end++;
    written += text[end];
  }
  return { written, end };
}

function plainPath(written: string, { userHome }: PathPlaces): string | null {
  if (written.includes("\0")) return null;
  if (/^file:/i.test(written)) {
    try {
      return fileURLToPath(written);
    } catch {
      return null; // of another machine, or no address at all
    }
  }
  if (written === "~" || written.startsWith("~/")) return join(userHome, written.slice(1));
  const drive = process.platform === "win32" ? null : /^([A-Za-z]):\\(.*)$/s.exec(written);
  // Windows below WSL hands over its own names.
  return drive ? `/mnt/${(drive[1] ?? "").toLowerCase()}/${(drive[2] ?? "").replaceAll("\\", "/")}` : written;
}

// Other white space may be part of a name: macOS puts a narrow one into those of its screenshots.
const isBlank = (char: string | undefined) => char === " " || char === "\t" || char === "\n" || char === "\r";

function afterBlanks(text: string, at: number): number {
  let end = at;
  while (end < text.length && isBlank(text[end])) end++;
  return end;
}
