// Big pastes become a placeholder with a file behind it; on submit the text takes its place again.
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";

export interface PasteLimits {
  /** Newlines from which on a paste is collapsed; 0 = never by lines. */
  readonly lines: number;
  /** Characters from which on a paste is collapsed; 0 = never by size. */
  readonly chars: number;
}

/** More than an editor line is made for, whatever the limits say. */
const ALWAYS_COLLAPSED_CHARS = 200_000;

export function shouldCollapse(text: string, limits: PasteLimits, draft: string): boolean {
  if (text.length >= ALWAYS_COLLAPSED_CHARS) return true;
  if (draft.startsWith("/")) return false;
  return (limits.lines > 0 && newlinesIn(text) >= limits.lines) || (limits.chars > 0 && text.length >= limits.chars);
}

/** Wrappers and reports that terminals leak into pasted text. Ordinary text that merely looks similar stays. */
export function cleanPaste(text: string): string {
  const lines = text.includes("\r") ? text.replaceAll("\r\n", "\n").replaceAll("\r", "\n") : text;
  const plain = /\u001b|\^\[/.test(lines)
    ? lines
        .replace(/(?:\u001b|\^\[)\[20[01]~/g, "")
        .replace(/(?:\u001b|\^\[)\[\d+;\d+R/g, "")
        .replace(/(?:\u001b|\^\[)\[<\d+;\d+;\d+[Mm]/g, "")
    : lines;
  return withoutEdges(withoutEdges(plain, "[200~", "[201~"), "00~", "01~").toWellFormed();
}

// Remnants of the paste marks go only in pairs at the edges: `value 2001~` is somebody's text.
function withoutEdges(text: string, open: string, close: string): string {
  return text.startsWith(open) && text.endsWith(close) ? text.slice(open.length, -close.length) : text;
}

function newlinesIn(text: string): number {
  let count = 0;
  for (let at = text.indexOf("\n"); at !== -1; at = text.indexOf("\n", at + 1)) count++;
  return count;
}

const PLACEHOLDER = /\[Pasted text #(\d+): \d+ lines → (?:(?!\[Pasted text #)[^\]])+\]/g;

interface PastesOptions {
  readonly folder: string;
  /** A path as messages show it. */
  display(path: string): string;
  /** What the file holds of a text: keys in it stay in memory. */
  withoutKeys(text: string): string;
  onTrouble(error: unknown): void;
}

export class Pastes {
  readonly #options: PastesOptions;
  readonly #files = new Map<number, string>();
  /** Texts whose file is not written yet, could not be, or is without their keys. */
  readonly #unwritten = new Map<number, string>();
  #count = 0;

  constructor(options: PastesOptions) {
    this.#options = options;
  }

  /** Returns the placeholder for the input at once; the text is written (readable by the user only) meanwhile. */
  store(text: string, now: Date): string {
    const number = ++this.#count;
    const stamp = [now.getHours(), now.getMinutes(), now.getSeconds()]
      .map((part) => String(part).padStart(2, "0"))
      .join("");
    const path = join(this.#options.folder, `paste_${number}_${stamp}.txt`);
    this.#files.set(number, path);
    this.#unwritten.set(number, text);
    void this.#write(number, path, text);
    return `[Pasted text #${number}: ${newlinesIn(text) + 1} lines → ${this.#options.display(path)}]`;
  }

  /** The input with every placeholder replaced by its text. A placeholder whose file is gone stays and is reported. */
  async expand(input: string): Promise<{ readonly text: string; readonly missing: readonly string[] }> {
    const missing: string[] = [];
    const texts = new Map<string, string>();
    for (const [placeholder, number] of input.matchAll(PLACEHOLDER)) {
      const text = await this.#read(Number(number), placeholder);
      if (text === null) missing.push(placeholder);
      else texts.set(placeholder, text);
    }
    return { text: input.replace(PLACEHOLDER, (placeholder) => texts.get(placeholder) ?? placeholder), missing };
  }

  async #write(number: number, path: string, text: string): Promise<void> {
    try {
      await mkdir(this.#options.folder, { recursive: true, mode: 0o700 });
      const kept = this.#options.withoutKeys(text);
      await writeFile(path, kept, { mode: 0o600 });
      if (kept === text) this.#unwritten.delete(number);
    } catch (error) {
      this.#options.onTrouble(error);
    }
  }

  async #read(number: number, placeholder: string): Promise<string | null> {
    const path = this.#files.get(number) ?? this.#fromHistory(placeholder);
    const held = this.#unwritten.get(number);
    if (held !== undefined && path === this.#files.get(number)) return held;
    try {
      return path === null ? null : await readFile(path, "utf8");
    } catch {
      return null; // gone: the caller reports it
    }
  }

  /** A placeholder of an earlier run, taken from the history, names its file; only files of our folder count. */
  #fromHistory(placeholder: string): string | null {
    const name = /paste_\d+_\d{6}\.txt(?=\]$)/.exec(placeholder)?.[0];
    return name ? join(this.#options.folder, name) : null;
  }
}

// Separates pastes from keys in what the terminal sends. Every piece is looked at once, so that 10 MB cost no more than their length.

const OPEN = "\u001b[200~";
const CLOSE = "\u001b[201~";
const GIVE_UP_MS = 2000;

interface PasteReaderOptions {
  onKeys(data: string): void;
  onPaste(text: string): void;
  /** Newlines in one read from which on unannounced text counts as a paste; 0 = never. */
  unannouncedLines(): number;
}

export class PasteReader {
  readonly #options: PasteReaderOptions;
  #pieces: string[] | null = null;
  /** The end of what was read, in case the closing mark is split over two reads. */
  #end = "";
  #timer: NodeJS.Timeout | undefined;
  #isFirst = true;

  constructor(options: PasteReaderOptions) {
    this.#options = options;
  }

  feed(data: string): void {
    if (this.#pieces !== null) return this.#collect(data);
    const open = data.indexOf(OPEN);
    const keys = this.#typedEarly(open === -1 ? data : data.slice(0, open));
    if (open === -1) return this.#unmarked(keys);
    if (open > 0) this.#options.onKeys(keys);
    this.#pieces = [];
    this.#end = "";
    this.#collect(data.slice(open + OPEN.length));
  }

  /** Stops waiting for a closing mark; what came of an open paste is delivered. */
  finish(): void {
    clearTimeout(this.#timer);
    const pieces = this.#pieces;
    this.#pieces = null;
    if (pieces && pieces.length > 0) this.#options.onPaste(pieces.join(""));
  }

  #collect(data: string): void {
    clearTimeout(this.#timer);
    const pieces = this.#pieces ?? [];
    const seam = this.#end + data;
    const close = seam.indexOf(CLOSE);
    if (close === -1) {
      pieces.push(data);
      this.#end = seam.slice(-(CLOSE.length - 1));
      this.#timer = setTimeout(() => this.finish(), GIVE_UP_MS);
      return;
    }
    const whole = pieces.join("") + data;
    const rest = seam.slice(close + CLOSE.length);
    this.#pieces = null;
    this.#options.onPaste(whole.slice(0, whole.length - rest.length - CLOSE.length));
    if (rest !== "") this.feed(rest);
  }

  /**
   * The first read holds what was typed before the terminal gave keys one by one, and there it wrote a line feed for Enter. A line feed
   * that comes alone, or behind a carriage return, is a key: Ctrl+J.
   */
  #typedEarly(keys: string): string {
    const isFirst = this.#isFirst;
    this.#isFirst = false;
    if (!isFirst || keys.length === 1) return keys;
    const [early = "", ...later] = keys.split("\r");
    return [early.replaceAll("\n", "\r"), ...later].join("\r");
  }

  #unmarked(data: string): void {
    const limit = this.#options.unannouncedLines();
    if (limit > 0 && !data.includes("\u001b")) {
      const breaks = data.match(/\r\n|\r|\n/g)?.length ?? 0;
      // Held-down Enter is many newlines and nothing else.
      if (breaks >= limit && data.replace(/[\r\n]/g, "").length > breaks) return this.#options.onPaste(data);
    }
    this.#options.onKeys(data);
  }
}
