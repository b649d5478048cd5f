// What stands where a secret stood.
import { countCodePoints, sliceCodePoints } from "../../kit/code-points.ts";

export interface Marks {
  /** For a value whose kind is known by its first characters. */
  token(value: string, prefix: string): string;
  /** For a value of which nothing may be shown. */
  readonly hidden: string;
  privateKey(block: string): string;
}

const SHORT = 18;

export const screenMarks: Marks = {
  token: (value) =>
    countCodePoints(value) < SHORT ? "***" : `${sliceCodePoints(value, 0, 6)}...${sliceCodePoints(value, -4)}`,
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

/** The first file mark in a text that somebody wants to write, if there is one. */
export function findFileMark(text: string): string | null {
  return FILE_MARK.exec(text)?.[0] ?? null;
}

export function isMarked(value: string): boolean {
  if (value === "***" || value.startsWith("«redacted")) return true;
  return countCodePoints(value) === 13 && sliceCodePoints(value, 6, 9) === "...";
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
