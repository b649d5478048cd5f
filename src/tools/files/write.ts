// Writing a text as the file it belongs to: line endings, byte order mark, syntax, and a look at what really arrived.

import { isUtf8 } from "node:buffer";
import { dirname } from "node:path";
import { messageOf } from "../../kit/errors.ts";
import { unifiedDiff } from "../../kit/unified-diff.ts";
import type { EnvironmentFiles } from "../../sandbox/environment.ts";
import { describeFileError } from "./access.ts";

const BOM = "\ufeff";

/** A text file as it is on disk. */
interface TextFile {
  readonly text: string;
  /** False: bytes that are no UTF-8 stand as replacement characters in `text`; written back, they would be lost. */
  readonly isUtf8: boolean;
  readonly version: string;
}

/** A larger file is not held in memory to be changed in a few places. */
const MAX_PATCHED_BYTES = 32 * 1024 * 1024;

/** Null, or why a file of this size is not patched. */
export function tooLarge(path: string, size: number): string | null {
  if (size <= MAX_PATCHED_BYTES) return null;
  return `${path} has ${size} bytes, too many to patch (limit ${MAX_PATCHED_BYTES}). Change it with a command such as sed in the terminal.`;
}

export const notUtf8 = (path: string) =>
  `${path} is not UTF-8 text (Latin-1, UTF-16 or binary): a patch would damage it. Convert it first, for example with iconv in the terminal.`;

/**
 * The text of a file, byte order mark included; null when there is none. Rejects for what is not a regular file. Of one that is too large to
 * be patched, only the beginning.
 */
export async function readTextFile(files: EnvironmentFiles, path: string): Promise<TextFile | null> {
  const facts = await files.facts(path);
  if (!facts) return null;
  if (facts.type === "directory") throw Object.assign(new Error(`${path} is a directory`), { code: "EISDIR" });
  if (facts.type === "other") throw Object.assign(new Error(`${path} is not a regular file`), { code: "ENXIO" });
  const data = facts.size > MAX_PATCHED_BYTES ? await beginning(files, path) : await files.read(path);
  return { text: data.toString("utf8"), isUtf8: isUtf8(data), version: facts.version };
}

async function beginning(files: EnvironmentFiles, path: string): Promise<Buffer> {
  for await (const chunk of files.chunks(path)) return chunk;
  return Buffer.alloc(0);
}

/** New content in the dress of the old: its byte order mark, and CRLF where every line had it. */
export function dressLike(content: string, old: string): string {
  let text = content;
  if (usesCrlf(old) && !text.includes("\r\n")) text = text.replaceAll("\n", "\r\n");
  if (old.startsWith(BOM) && !text.startsWith(BOM)) text = BOM + text;
  return text;
}

function usesCrlf(text: string): boolean {
  return text.includes("\r\n") && !/(?:^|[^\r])\n/.test(text);
}

interface SyntaxChange {
  /** The text was sound and would no longer be. */
  readonly breaks: boolean;
  /** A problem that was not there before. */
  readonly introduced: string | null;
}

export async function compareSyntax(path: string, before: string | null, after: string): Promise<SyntaxChange> {
  const problem = await findSyntaxProblem(path, after);
  if (problem === null) return { breaks: false, introduced: null };
  if (before === null) return { breaks: false, introduced: problem };
  const had = await findSyntaxProblem(path, before);
  return { breaks: had === null && before.trim() !== "", introduced: had === null ? problem : null };
}

interface Written {
  readonly bytes: number;
  readonly dirsCreated: boolean;
  readonly version: string;
}

/** Writes and reads back. Rejects with an error that names the file, never a temporary one. */
export async function writeTextFile(files: EnvironmentFiles, path: string, text: string): Promise<Written> {
  const dirsCreated = await files.makeDirectory(dirname(path)).catch((error: unknown) => {
    throw new Error(`Cannot create the directory of ${path}: ${describeFileError(error, dirname(path))}`);
  });
  await files.write(path, text);
  const wanted = Buffer.from(text, "utf8");
  if (!wanted.equals(await files.read(path)))
    throw new Error(
      `Cannot confirm the write of ${path}: it holds something else now. Another program may be writing it.`,
    );
  const facts = await files.facts(path);
  return { bytes: wanted.length, dirsCreated, version: facts?.version ?? "" };
}

// Whether a data file can still be read by the programs it is for.

/** The problem of a text in a format we can check (JSON, YAML, TOML), or null: fine, or a format we do not know. */
async function findSyntaxProblem(path: string, text: string): Promise<string | null> {
  if (/\.json$/i.test(path)) return jsonProblem(text);
  if (/\.ya?ml$/i.test(path)) return yamlProblem(text);
  if (/\.toml$/i.test(path)) return tomlProblem(text);
  return null;
}

function jsonProblem(text: string): string | null {
  if (text.trim() === "") return null;
  try {
    JSON.parse(text.replace(/^\ufeff/, ""));
    return null;
  } catch (error) {
    return `invalid JSON: ${messageOf(error)}`;
  }
}

async function yamlProblem(text: string): Promise<string | null> {
  const { parseAllDocuments } = await import("yaml");
  const documents = parseAllDocuments(text, { logLevel: "silent" });
  const problem = Array.isArray(documents) ? documents.flatMap((document) => document.errors)[0] : undefined;
  return problem === undefined ? null : `invalid YAML: ${problem.message.split("\n")[0]}`;
}

async function tomlProblem(text: string): Promise<string | null> {
  const { parse, TomlError } = await import("smol-toml");
  try {
    // Whole numbers of 64 bits are valid, though JavaScript has no room for them.
    parse(text.replace(/^\ufeff/, ""), { integersAsBigInt: true });
    return null;
  } catch (error) {
    if (!(error instanceof TomlError)) throw error;
    const reason = error.message.split("\n")[0]?.replace(/^Invalid TOML document: /, "");
    return `invalid TOML: ${reason} (line ${error.line}, column ${error.column})`;
  }
}

// The diff of a change as the model may see it.

type Side = Parameters<typeof unifiedDiff>[0];

/** Secrets are looked for in the lines themselves: behind the sign of a diff a number reads like a telephone number. */
export async function shownDiff(before: Side, after: Side, redact: (text: string) => string): Promise<string> {
  const diff = await unifiedDiff(before, after);
  if (diff === "") return "";
  const [oldName = "", newName = "", ...rows] = diff.split("\n");
  const rest = rows.map((row) =>
    row.startsWith("@@ ") ? { sign: row, text: "" } : { sign: row.slice(0, 1), text: row.slice(1) },
  );
  const texts = redact(rest.map(({ text }) => text).join("\n")).split("\n");
  return [oldName, newName, ...rest.map(({ sign }, index) => sign + (texts[index] ?? ""))].join("\n");
}
