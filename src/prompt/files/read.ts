// One context file from disk to text: which files are taken at all, and how their bytes are read.
import { basename } from "node:path";
import { strip } from "../../kit/strip.ts";
import { isWithin } from "../../safety/paths.ts";
import { sha256 } from "../fingerprint.ts";
import type { FileAccess } from "../ports.ts";
import { decodeText } from "./decode.ts";

const MOST_BYTES = 4 * 1024 * 1024;
const CONTEXT_NAME = /\.mdc?$|^\.cursorrules$/i;

export interface FileRules {
  readonly files: FileAccess;
  /** The read deny list: credentials and the program's own secrets. Rejecting counts as "denied". */
  isDenied(path: string): Promise<boolean>;
}

export type TextFile =
  | { readonly type: "missing" }
  | { readonly type: "empty" }
  | { readonly type: "unreadable" | "skipped"; readonly reason: string }
  | {
      readonly type: "text";
      /** Stripped, LF, no mark at its beginning. */
      readonly text: string;
      /** SHA-256 of the bytes: what the user trusts. */
      readonly hash: string;
    };

/**
 * `boundary` is the repository (or folder) the file belongs to. A link may lead out of it only to another context file, so that a cloned
 * repository cannot have a key file sent to the model.
 */
export async function readTextFile(path: string, boundary: string, rules: FileRules): Promise<TextFile> {
  const { files } = rules;
  const real = await files.real(path);
  if (real === null) return { type: "missing" };
  const inside = isWithin(real, (await files.real(boundary)) ?? boundary);
  if (!inside && !CONTEXT_NAME.test(basename(real)))
    return { type: "skipped", reason: `it is a link that leads out of ${boundary}, to ${real}` };
  if (await isDenied(real, rules)) return { type: "skipped", reason: `it leads to ${real}, which may hold secrets` };
  const read = await files.read(real, MOST_BYTES);
  switch (read.type) {
    case "missing":
      return read;
    case "not_a_file":
      return { type: "skipped", reason: "it is not a regular file" };
    case "too_big":
      return { type: "skipped", reason: `it has ${read.size} bytes; files over ${MOST_BYTES} are not read` };
    case "failed":
      return { type: "unreadable", reason: `it cannot be read (${read.code})` };
    case "bytes":
      return toText(read.bytes);
  }
}

function toText(bytes: Uint8Array): TextFile {
  const decoded = decodeText(bytes);
  if (decoded === null) return { type: "unreadable", reason: "it is not UTF-8 text" };
  const text = strip(decoded);
  return text === "" ? { type: "empty" } : { type: "text", text, hash: sha256(bytes) };
}

async function isDenied(path: string, rules: FileRules): Promise<boolean> {
  try {
    return await rules.isDenied(path);
  } catch {
    return true; // a list that cannot be consulted allows nothing
  }
}
