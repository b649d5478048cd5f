// Big pastes become a placeholder with a file behind it; on submit the text takes its place again.
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { displayPath } from "../../home/paths.ts";

export interface PasteLimits {
  /** Newlines from which on a paste is collapsed; 0 = never by lines. */
  readonly lines: number;
  /** Characters from which on a paste is collapsed; 0 = never by size. */
  readonly chars: number;
}

export function shouldCollapse(text: string, limits: PasteLimits, draft: string): boolean {
  if (draft.startsWith("/")) return false;
  const newlines = text.split("\n").length - 1;
  return (limits.lines > 0 && newlines >= limits.lines) || (limits.chars > 0 && text.length >= limits.chars);
}

/** Wrappers and reports that terminals leak into pasted text. Ordinary text that merely looks similar stays. */
export function cleanPaste(text: string): string {
  return text
    .replaceAll("\r\n", "\n")
    .replaceAll("\r", "\n")
    .replace(/(?:\u001b|\^\[)\[20[01]~/g, "")
    .replace(/^\[200~([\s\S]*)\[201~$/, "$1")
    .replace(/(?:\u001b|\^\[)\[\d+;\d+R/g, "")
    .replace(/(?:\u001b|\^\[)\[<\d+;\d+;\d+[Mm]/g, "")
    .toWellFormed();
}

const PLACEHOLDER = /\[Pasted text #(\d+): \d+ lines → [^\]]+\]/g;

export class Pastes {
  readonly #folder: string;
  readonly #files = new Map<number, string>();
  #count = 0;

  constructor(folder: string) {
    this.#folder = folder;
  }

  /** Stores the text (readable by the user only) and returns the placeholder for the input. */
  async store(text: string, now: Date): Promise<string> {
    const number = ++this.#count;
    const stamp = [now.getHours(), now.getMinutes(), now.getSeconds()]
      .map((part) => String(part).padStart(2, "0"))
      .join("");
    const path = join(this.#folder, `paste_${number}_${stamp}.txt`);
    await mkdir(this.#folder, { recursive: true, mode: 0o700 });
    await writeFile(path, text, { mode: 0o600 });
    this.#files.set(number, path);
    return `[Pasted text #${number}: ${text.split("\n").length} lines → ${displayPath(path)}]`;
  }

  /** The input with every placeholder replaced by its text. A placeholder whose file is gone stays and is reported. */
  async expand(input: string): Promise<{ readonly text: string; readonly missing: readonly string[] }> {
    const missing: string[] = [];
    const texts = new Map<string, string>();
    for (const match of input.matchAll(PLACEHOLDER)) {
      const path = this.#files.get(Number(match[1]));
      try {
        if (path) texts.set(match[0], await readFile(path, "utf8"));
      } catch {
        missing.push(match[0]);
      }
    }
    return { text: input.replace(PLACEHOLDER, (placeholder) => texts.get(placeholder) ?? placeholder), missing };
  }
}
