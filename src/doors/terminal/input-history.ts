// The input history of a home, in the original's file format:
// per entry an empty line, `# YYYY-MM-DD HH:MM:SS.ffffff`, then each input line with `+` in front.
import { appendFile, chmod, readFile } from "node:fs/promises";

const MAX_ENTRIES = 1000;

/** What was typed before, and a place in it while somebody walks through it. */
export class InputHistory {
  readonly #entries: string[];
  /** How far back the walk is; 0 = at the draft. */
  #back = 0;
  #draft = "";

  constructor(entries: readonly string[] = []) {
    this.#entries = entries.filter((entry, index) => entry !== entries[index - 1]).slice(-MAX_ENTRIES);
  }

  /** False for a repetition of the newest entry. */
  add(entry: string): boolean {
    this.#back = 0;
    if (entry === this.#entries.at(-1)) return false;
    this.#entries.push(entry);
    if (this.#entries.length > MAX_ENTRIES) this.#entries.shift();
    return true;
  }

  /** The entry before the shown text; null when there is none. The draft is kept for the way back. */
  older(shown: string): string | null {
    if (this.#back === 0 || shown !== this.#shown()) this.#back = 0;
    if (this.#back >= this.#entries.length) return null;
    if (this.#back === 0) this.#draft = shown;
    this.#back++;
    return this.#shown();
  }

  /** The entry after the shown text, at last the draft; null when nobody walks. */
  newer(shown: string): string | null {
    if (this.#back === 0 || shown !== this.#shown()) return null;
    this.#back--;
    return this.#shown();
  }

  /** Newest first, each text once. */
  matching(query: string): readonly string[] {
    const wanted = query.toLowerCase();
    return [...new Set(this.#entries.filter((entry) => entry.toLowerCase().includes(wanted)).reverse())];
  }

  /** The rest of the newest entry that begins like this text. */
  continuation(text: string): string {
    if (text === "") return "";
    return this.#entries.findLast((entry) => entry !== text && entry.startsWith(text))?.slice(text.length) ?? "";
  }

  #shown(): string {
    return this.#back === 0 ? this.#draft : (this.#entries.at(-this.#back) ?? "");
  }
}

export function parseHistory(text: string): string[] {
  const entries: string[] = [];
  let lines: string[] = [];
  const close = () => {
    if (lines.length > 0) entries.push(lines.join("\n"));
    lines = [];
  };
  for (const line of text.split("\n")) {
    if (line.startsWith("+")) lines.push(line.slice(1));
    else close();
  }
  close();
  return entries;
}

export function renderEntry(text: string, now: Date): string {
  const pad = (value: number, width = 2) => String(value).padStart(width, "0");
  const date = `${now.getFullYear()}-${pad(now.getMonth() + 1)}-${pad(now.getDate())}`;
  const time = `${pad(now.getHours())}:${pad(now.getMinutes())}:${pad(now.getSeconds())}.${pad(now.getMilliseconds(), 3)}000`;
  const lines = text.split("\n").map((line) => `+${line}`);
  return `\n# ${date} ${time}\n${lines.join("\n")}\n`;
}

/** Oldest first. A missing file is an empty history. */
export async function loadHistory(path: string): Promise<string[]> {
  try {
    return parseHistory(await readFile(path, "utf8"));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return [];
    throw error;
  }
}

export async function appendHistory(path: string, text: string, now: Date): Promise<void> {
  await appendFile(path, renderEntry(text, now), { mode: 0o600 });
  await chmod(path, 0o600);
}
