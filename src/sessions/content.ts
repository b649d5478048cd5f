// How content stands in the database. Parts (text and pictures) are stored as NUL + "json:" + JSON, as the original does. SQLite's text
// functions, and some versions of node:sqlite, stop at a NUL: such columns are read as BLOB and decoded here.
import type { Logger } from "../home/log.ts";
import { type ContentPart, textOf } from "../llm/messages.ts";

const PARTS_MARK = "\u0000json:";
const decoder = new TextDecoder("utf-8", { ignoreBOM: true });

export type Content = string | readonly ContentPart[] | null;

export function encodeContent(content: Content): string | null {
  return content === null || typeof content === "string" ? content : PARTS_MARK + JSON.stringify(content);
}

/** Text of a column that was selected as BLOB (or, in old callers, as text). */
export function decodeText(value: Uint8Array | string | null | undefined): string | null {
  if (value === null || value === undefined) return null;
  return typeof value === "string" ? value : decoder.decode(value);
}

export function decodeContent(value: Uint8Array | string | null, log: Logger): Content {
  const text = decodeText(value);
  if (text === null || !text.startsWith(PARTS_MARK)) return text;
  const parsed = parseJson(text.slice(PARTS_MARK.length));
  if (Array.isArray(parsed)) return parsed as readonly ContentPart[]; // written by encodeContent or by the original
  if (typeof parsed === "string") return parsed;
  log.warn("a stored message has unreadable parts; its raw text is used");
  return text.slice(PARTS_MARK.length);
}

/** What a person would read of it; pictures left out. */
export function plainText(value: Uint8Array | string | null, log: Logger): string {
  return textOf(decodeContent(value, log));
}

/** `undefined` when it is not JSON. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined; // the caller decides what a bad field means
  }
}
