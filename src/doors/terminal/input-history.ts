// The input history of a home, in the original's file format:
// per entry an empty line, `# YYYY-MM-DD HH:MM:SS.ffffff`, then each input line with `+` in front.
import { appendFile, chmod, readFile } from "node:fs/promises";

const MAX_ENTRIES = 1000;

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

/** The newest entries, oldest first, consecutive duplicates dropped. A missing file is an empty history. */
export async function loadHistory(path: string): Promise<string[]> {
  try {
    const entries = parseHistory(await readFile(path, "utf8"));
    return entries.filter((entry, index) => entry !== entries[index - 1]).slice(-MAX_ENTRIES);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return [];
    throw error;
  }
}

export async function appendHistory(path: string, text: string, now: Date): Promise<void> {
  await appendFile(path, renderEntry(text, now), { mode: 0o600 });
  await chmod(path, 0o600);
}
