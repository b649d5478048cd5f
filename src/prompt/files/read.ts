// One context file from disk to text: which files are taken at all, and how their bytes are read.

import { basename, dirname, join } from "node:path";
import { countCodePoints, sliceCodePoints, strip } from "../../kit/code-points.ts";
import { isWithin } from "../../kit/files.ts";
import type { FileGuard } from "../../safety/file-guard.ts";
import { followLinks, resolveLinks } from "../../safety/paths.ts";
import { type Finding, judgeFindings } from "../../safety/threats/scan.ts";
import { quote } from "../../sandbox/shell-script.ts";
import { sha256 } from "../fingerprint.ts";
import { look, type ReadableFiles, readBytes, realPath } from "../ports.ts";

const MAX_BYTES = 4 * 1024 * 1024;
const CONTEXT_NAME = /\.mdc?$|^\.cursorrules$/i;

export interface FileRules {
  readonly files: ReadableFiles;
  /** The read deny list: credentials and the program's own secrets. Rejecting counts as "denied". */
  isDenied(path: string): Promise<boolean>;
}

type TextFile =
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
  const real = await realPath(files, path);
  if (real === null) return { type: "missing" };
  const inside = isWithin(real, (await realPath(files, boundary)) ?? boundary);
  if (!inside && !CONTEXT_NAME.test(basename(real)))
    return { type: "skipped", reason: `it is a link that leads out of ${boundary}, to ${real}` };
  if (await isDenied(real, rules)) return { type: "skipped", reason: `it leads to ${real}, which may hold secrets` };
  const read = await readBytes(files, real, MAX_BYTES);
  switch (read.type) {
    case "missing":
      return read;
    case "not_a_file":
      return { type: "skipped", reason: "it is not a regular file" };
    case "too_big":
      return { type: "skipped", reason: `it has ${read.size} bytes; files over ${MAX_BYTES} are not read` };
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

// Bytes of a text file. UTF-8, or UTF-16 where its mark says so; anything else is not guessed at.

/** With LF line ends and without the mark at its beginning; null when it is no text we can be sure of. */
export function decodeText(bytes: Uint8Array): string | null {
  const encoding =
    bytes[0] === 0xff && bytes[1] === 0xfe ? "utf-16le" : bytes[0] === 0xfe && bytes[1] === 0xff ? "utf-16be" : "utf-8";
  try {
    // The mark is kept by the decoder and removed here, once: a second one is for the scanner to see.
    const text = new TextDecoder(encoding, { fatal: true, ignoreBOM: true }).decode(bytes);
    return normaliseNewlines(text.startsWith("\ufeff") ? text.slice(1) : text);
  } catch {
    return null;
  }
}

export function normaliseNewlines(text: string): string {
  return text.includes("\r") ? text.replace(/\r\n?/g, "\n") : text;
}

// The check every text from a file passes before it reaches the prompt.

/** Scope `context`; handed in. */
export type Scan = (text: string) => readonly Finding[];

export interface ScreenOptions {
  readonly scan: Scan;
  /** SHA-256 of the bytes of files the user has read and trusted. */
  readonly trusted?: ReadonlySet<string> | undefined;
  /** `security.context_scan`. */
  readonly reaction?: "block" | "warn" | undefined;
}

export interface Screened {
  readonly verdict: "clean" | "flagged" | "blocked";
  readonly findings: readonly Finding[];
}

export function screen(text: string, hash: string, { scan, trusted, reaction }: ScreenOptions): Screened {
  const findings = scan(text);
  const verdict = judgeFindings(findings);
  const lets = reaction === "warn" || trusted?.has(hash) === true;
  return { verdict: verdict === "blocked" && lets ? "flagged" : verdict, findings };
}

/** What stands in the prompt instead of a withheld text. */
export function blockedMarker(name: string, findings: readonly Finding[]): string {
  const ids = [...new Set(findings.map(({ id }) => id))].join(", ");
  return `[BLOCKED: ${name} contained potential prompt injection (${ids}). Content not loaded.]`;
}

/** For the user: what was seen, where, and what to do about it. */
export function describeScreened(file: string, { verdict, findings }: Screened): string {
  const path = printable(file);
  const seen = findings
    .slice(0, 3)
    .map(({ id, line, excerpt }) => `line ${line}: ${id} "${printable(excerpt)}"`)
    .join("; ");
  const more = findings.length > 3 ? ` and ${findings.length - 3} more` : "";
  if (verdict !== "blocked") return `${path} was loaded although it looks suspicious (${seen}${more}).`;
  return `${path} was not loaded, it looks like prompt injection (${seen}${more}). Read it; if it is fine, run: hermes prompt trust ${shellWord(path)}`;
}

const printable = (text: string) => text.replace(/\p{Cc}/gu, " ");
const shellWord = (path: string) => (/^[\w@%+=:,./~-]+$/.test(path) ? path : quote(path));

// How much of one context file the prompt carries.

const DEFAULT_LIMIT = 20_000;
const HIGHEST_LIMIT = 500_000;

interface Limit {
  /** In code points. */
  readonly chars: number;
  readonly warning: string | null;
}

/** The user's own number, else 15 % of the model's window within bounds. Whole numbers throughout: `90 * 0.7` is 62.99... */
export function contextFileLimit(contextWindow: unknown, setting: unknown): Limit {
  if (typeof setting === "number" && Number.isFinite(setting) && Math.floor(setting) > 0)
    return { chars: Math.floor(setting), warning: null };
  const warning =
    setting === null || setting === undefined
      ? null
      : `context_file_max_chars in config.yaml is ignored: ${JSON.stringify(setting)} is not a positive number.`;
  const window = typeof contextWindow === "number" && Number.isSafeInteger(contextWindow) ? contextWindow : 0;
  const share = Math.floor((window * 15) / 100);
  return { chars: Math.max(DEFAULT_LIMIT, Math.min(share, HIGHEST_LIMIT)), warning };
}

interface Cut {
  readonly text: string;
  /** Characters of the file that are in it. */
  readonly kept: number;
  readonly total: number;
}

/** First 70 % and last 20 % of the limit, with a marker between; a text within the limit as it is. */
export function truncateFile(text: string, limit: number, label: string): Cut {
  const total = countCodePoints(text);
  if (total <= limit) return { text, kept: total, total };
  const head = Math.floor((limit * 7) / 10);
  const tail = Math.floor((limit * 2) / 10);
  const marker = `\n\n[...truncated ${label}: kept ${head}+${tail} of ${total} chars. Use file tools to read the full file.]\n\n`;
  const end = tail === 0 ? "" : sliceCodePoints(text, -tail);
  return { text: sliceCodePoints(text, 0, head) + marker + end, kept: head + tail, total };
}

/** The nearest directory at or above with an entry `.git`: a directory, or a file in worktrees and submodules. */
export async function findGitRoot(directory: string, files: Pick<ReadableFiles, "facts">): Promise<string | null> {
  for (let at = directory; ; at = dirname(at)) {
    if (await look(files, join(at, ".git"))) return at;
    if (dirname(at) === at) return null;
  }
}

// Files that are never put into a prompt or a message: what the file tools may not read, and the user's personal set-up besides.

const DIRECTORIES = [".ssh", ".aws", ".gnupg", ".kube", ".docker", ".azure", ".config/gh"];
const FILES = [
  ...[".bashrc", ".zshrc", ".profile", ".bash_profile", ".zprofile"],
  ...[".netrc", ".pgpass", ".npmrc", ".pypirc"],
];

export interface DenyList {
  /** Follows links: neither the path nor anything on its way may be on the list. */
  isDenied(path: string): Promise<boolean>;
  /** For listings: a path whose directory is real already. */
  isHidden(path: string): boolean;
}

export async function createDenyList(
  guard: Pick<FileGuard, "canRead" | "isUnreadable">,
  userHome: string,
): Promise<DenyList> {
  const homes = [...new Set([userHome, await resolveLinks(userHome)])];
  const isPersonal = (path: string) =>
    homes.some(
      (home) =>
        FILES.some((name) => path === join(home, name)) || DIRECTORIES.some((name) => isWithin(path, join(home, name))),
    );
  return {
    isHidden: (path) => isPersonal(path) || guard.isUnreadable(path),
    async isDenied(path) {
      if ((await followLinks(path)).some(isPersonal)) return true;
      return (await guard.canRead(path)).type !== "allow";
    },
  };
}
