// Text of models, tools and files must not drive the terminal: what is no text is left out, or shown where hiding it could deceive.
import { stripAnsi } from "../../kit/terminal-text.ts";

const TAB = "    ";

/** For reading: control sequences are gone, tabs are blanks, lines end with a newline. */
export function printable(text: string): string {
  if (!/[\x00-\x09\x0b-\x1f\x7f-\x9f]/.test(text)) return text;
  return stripAnsi(text)
    .replaceAll("\r\n", "\n")
    .replaceAll("\r", "\n")
    .replaceAll("\t", TAB)
    .replace(/[\x00-\x09\x0b-\x1f\x7f-\x9f]/g, "");
}

// Direction marks and zero-width characters: they make a command look like another one.
const DECEIVING = /[\u00ad\u061c\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]/g;

/** For deciding: whatever would be invisible or reorder the text is spelled out. */
export function revealed(text: string): string {
  return text
    .replaceAll("\r\n", "\n")
    .replaceAll("\t", TAB)
    .replace(/[\x00-\x09\x0b-\x1f\x7f-\x9f]/g, (char) => codeOf(char))
    .replace(DECEIVING, (char) => codeOf(char));
}

const codeOf = (char: string) => `<U+${char.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0")}>`;
