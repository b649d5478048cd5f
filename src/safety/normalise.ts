import { stripAnsi } from "../kit/terminal-text.ts";
import type { Places } from "./places.ts";

const IFS = /\$IFS(?![A-Za-z0-9_])|\$\{IFS[^}]*\}/g;

/**
 * The spellings of a command that are looked at; a match in any counts. The written form comes first: removing control sequences
 * or folding look-alike characters could also swallow or forge a quote, so the cleaned form never stands alone.
 */
export function spellings(command: string): readonly string[] {
  const written = command.replaceAll("\0", "").replaceAll("\r\n", "\n").replace(IFS, " ");
  const cleaned = stripAnsi(command).replaceAll("\0", "").normalize("NFKC").replaceAll("\r\n", "\n").replace(IFS, " ");
  return written === cleaned ? [written] : [written, cleaned];
}

/** One flat text for the user's own globs: lines joined, escapes and empty quotes gone, both homes by their short names. */
export function flatten(command: string, places: Places): string {
  const joined = command.replaceAll("\\\n", "");
  return foldText(foldText(joined, places.home, "~/.hermes"), places.osHome, "~")
    .replace(/\\(?=\S)/g, "")
    .replace(/''|""/g, "")
    .replace(/\s+/g, " ")
    .trim();
}

function foldText(text: string, directory: string, name: string): string {
  const prefix = directory.replace(/[\\/]+$/, "");
  if (prefix.split(/[\\/]/).filter(Boolean).length < 2) return text;
  return text.replaceAll(new RegExp(`${prefix.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&")}(?![\\w.-])`, "gi"), () => name);
}

const MAX_CHARS = 128_000;
const MAX_CHARS_UNSEPARATED = 4096;
const MAX_SEPARATORS = 25_000;

/** Longer or denser than a command has reason to be; it is refused unread. */
export function exceedsLimits(command: string): boolean {
  if (command.length > MAX_CHARS) return true;
  let separators = 0;
  for (const char of command) {
    if (char === ";" || char === "&" || char === "|" || char === "\n") separators++;
  }
  return separators >= MAX_SEPARATORS || (separators === 0 && command.length > MAX_CHARS_UNSEPARATED);
}
