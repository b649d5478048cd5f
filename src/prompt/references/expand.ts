// A message with what it points at attached below it. The user's own text stays as typed.

import { basename, extname, join } from "node:path";
import { compareCodePoints } from "../../kit/code-points.ts";
import { messageOf } from "../../kit/errors.ts";
import { isWithin } from "../../kit/files.ts";
import type { ContentPart } from "../../llm/messages.ts";
import { estimateTokens } from "../../llm/usage.ts";
import { expandPath } from "../../safety/paths.ts";
import type { DirectoryEntry } from "../../sandbox/environment.ts";
import type { IgnoreRules } from "../../tools/files/search.ts";
import { type DenyList, findGitRoot, normaliseNewlines } from "../files/read.ts";
import { type FileLook, list, look, type ReadableFiles, type RunProgram, readBytes, realPath } from "../ports.ts";
import { withRepository } from "../repository.ts";
import { findReferences, type LineRange, type Reference } from "./grammar.ts";

const LOCAL_PLATFORMS = ["cli", "tui", "acp", "desktop", ""];
const ASSUMED_WINDOW = 128_000;

export interface Expansion {
  /** What to send; the message as typed when nothing was attached. */
  readonly message: string;
  readonly references: readonly Reference[];
  /** For the user as well; also part of `message`. */
  readonly warnings: readonly string[];
  readonly injectedTokens: number;
  /** To be sent beside `message`. */
  readonly pictures: readonly ContentPart[];
  readonly expanded: boolean;
  /** More than half of the window: the message must not be sent, `warnings` says why. */
  readonly blocked: boolean;
}

/** Messages from chats and the API are written by others: there references are text unless the user has allowed them. */
export function expandsReferences(platform: string, settings: { readonly remote: boolean }): boolean {
  return settings.remote || LOCAL_PLATFORMS.includes(platform.toLowerCase());
}

/** From a chat the working directory is the root, and never the user's home. */
export async function isFitForRemote({ cwd, userHome, files }: ReferenceOptions): Promise<boolean> {
  return ((await realPath(files, cwd)) ?? cwd) !== ((await realPath(files, userHome)) ?? userHome);
}

/** Never rejects for what a reference points at. */
export async function expandReferences(message: string, options: ReferenceOptions): Promise<Expansion> {
  const found = findReferences(message);
  const distinct = [...new Map(found.map((reference) => [reference.raw, reference])).values()];
  const attached = await Promise.all(distinct.map(async (one) => ({ raw: one.raw, ...(await attach(one, options)) })));
  const text = new Set(attached.flatMap(({ type, raw }) => (type === "text" ? [raw] : [])));
  const references = found.filter(({ raw }) => !text.has(raw));
  const plain = { message, references, warnings: [], injectedTokens: 0, pictures: [], expanded: false, blocked: false };
  if (references.length === 0) return plain;
  const blocks = attached.flatMap((one) => (one.type === "block" ? [one.text] : []));
  const pictures = attached.flatMap((one) => (one.type === "block" && one.picture ? [one.picture] : []));
  const warnings = attached.flatMap((one) => {
    const problem = one.type === "warning" ? one.text : one.type === "block" ? one.problem : undefined;
    return problem === undefined ? [] : [`${one.raw}: ${problem}`];
  });
  const tokens = blocks.reduce((sum, block) => sum + estimateTokens(block), 0);

  const window = options.contextLength > 0 ? options.contextLength : ASSUMED_WINDOW;
  const [soft, hard] = [Math.floor(window / 4), Math.floor(window / 2)];
  if (tokens > hard) {
    const refusal = `@ context injection refused: ${tokens} tokens exceeds the 50% hard limit (${hard}).`;
    return { ...plain, warnings: [...warnings, refusal], blocked: true };
  }
  if (tokens > soft)
    warnings.push(`@ context injection warning: ${tokens} tokens exceeds the 25% soft limit (${soft}).`);
  const parts = [
    message,
    ...(warnings.length > 0 ? [`--- Context Warnings ---\n${warnings.map((text) => `- ${text}`).join("\n")}`] : []),
    ...(blocks.length > 0 ? ["--- Attached Context ---", ...blocks] : []),
  ];
  return { ...plain, message: parts.join("\n\n"), warnings, injectedTokens: tokens, pictures, expanded: true };
}

/** The dim line under a message that attached something. */
export function describeExpansion({ references, injectedTokens }: Expansion): string {
  return `[@ context: ${references.length} ref(s), ${injectedTokens} tokens]`;
}

async function attach(reference: Reference, options: ReferenceOptions): Promise<Attachment> {
  try {
    switch (reference.kind) {
      case "file":
        return await attachFile(reference, options);
      case "folder":
        return await attachFolder(reference, options);
      case "url":
        return await attachPage(reference, options);
      default:
        return await attachGit(reference, options);
    }
  } catch (error) {
    return warning(messageOf(error));
  }
}

async function attachPage({ raw, value }: Reference, { readPage }: ReferenceOptions): Promise<Attachment> {
  if (!readPage) return warning("pages cannot be fetched here");
  const text = (await readPage(value)).trim();
  if (text === "") return warning("no content extracted");
  return { type: "block", text: `🌐 ${raw} (${estimateTokens(text)} tokens)\n${text}` };
}

const MAX_BYTES = 10 * 1024 * 1024;
const LOOKED_AT = 8 * 1024;

const LANGUAGES: Readonly<Record<string, string>> = {
  ...{ ".py": "python", ".js": "javascript", ".mjs": "javascript", ".cjs": "javascript", ".ts": "typescript" },
  ...{
    ".tsx": "tsx",
    ".jsx": "jsx",
    ".json": "json",
    ".md": "markdown",
    ".sh": "bash",
    ".bash": "bash",
    ".zsh": "bash",
  },
  ...{ ".yml": "yaml", ".yaml": "yaml", ".toml": "toml", ".html": "html", ".css": "css", ".sql": "sql", ".go": "go" },
  ...{ ".rs": "rust", ".java": "java", ".kt": "kotlin", ".rb": "ruby", ".php": "php", ".c": "c", ".h": "c" },
  ...{ ".cpp": "cpp", ".hpp": "cpp", ".cc": "cpp", ".cs": "csharp", ".swift": "swift", ".lua": "lua", ".xml": "xml" },
  ...{ ".vue": "vue", ".svelte": "svelte", ".ini": "ini", ".diff": "diff", ".patch": "diff" },
};

const MIME_TYPES: Readonly<Record<string, string>> = {
  ...{ ".png": "image/png", ".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".gif": "image/gif", ".webp": "image/webp" },
  ...{ ".pdf": "application/pdf", ".zip": "application/zip", ".gz": "application/gzip", ".tar": "application/x-tar" },
  ...{ ".mp3": "audio/mpeg", ".wav": "audio/wav", ".ogg": "audio/ogg", ".mp4": "video/mp4", ".mov": "video/quicktime" },
  ...{ ".sqlite": "application/vnd.sqlite3", ".db": "application/vnd.sqlite3", ".wasm": "application/wasm" },
  ".docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
  ".xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
  ".pptx": "application/vnd.openxmlformats-officedocument.presentationml.presentation",
};

async function attachFile(reference: Reference, options: ReferenceOptions): Promise<Attachment> {
  const { raw, value, range } = reference;
  const resolved = await resolveReference(value, options);
  if (resolved.type === "refused") return warning(resolved.reason);
  if (resolved.type === "missing") return reference.ifExists ? { type: "text" } : warning("file not found");
  if (resolved.look.type !== "file") return warning("path is not a file");
  const read = await readBytes(options.files, resolved.path, MAX_BYTES);
  if (read.type === "too_big") return warning(`file is too large to attach (${readableSize(read.size)}, limit 10 MiB)`);
  if (read.type !== "bytes")
    return warning(read.type === "failed" ? `file cannot be read (${read.code})` : "file not found");
  const text = textOf(read.bytes);
  if (text === null) return attachBinary(raw, resolved.path, Buffer.from(read.bytes));
  const part = range ? linesIn(text, range) : { text };
  if ("problem" in part) return warning(part.problem);
  const language = LANGUAGES[extname(resolved.path).toLowerCase()] ?? "";
  return { type: "block", text: `📄 ${raw} (${estimateTokens(part.text)} tokens)\n${fence(part.text, language)}` };
}

/** The text; null for what is none, judged by its bytes alone. */
function textOf(bytes: Uint8Array): string | null {
  if (bytes.subarray(0, LOOKED_AT).includes(0)) return null;
  try {
    return normaliseNewlines(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
  } catch {
    return null;
  }
}

function countLines(text: string): number {
  return text === "" ? 0 : text.split("\n").length - (text.endsWith("\n") ? 1 : 0);
}

function linesIn(text: string, { from, to }: LineRange): { readonly text: string } | { readonly problem: string } {
  const total = countLines(text);
  if (from < 1 || to < from || to > total)
    return { problem: `line range ${from}-${to} is outside the file (${total} lines)` };
  return {
    text: text
      .split("\n")
      .slice(from - 1, to)
      .join("\n"),
  };
}

/** A fence that the text cannot close. */
function fence(text: string, language: string): string {
  let longest = 0;
  for (const [run] of text.matchAll(/`+/g)) longest = Math.max(longest, run.length);
  const marks = "`".repeat(Math.max(3, longest + 1));
  return `${marks}${language}\n${text}${text.endsWith("\n") ? "" : "\n"}${marks}`;
}

/** A picture that models take goes along; anything else is named. */
async function attachBinary(raw: string, path: string, bytes: Buffer): Promise<Attachment> {
  const { PictureError, pictureOf } = await import("../../tools/media/user-pictures.ts");
  const mime = MIME_TYPES[extname(path).toLowerCase()] ?? "";
  const named = { type: "block", text: binaryNote(raw, path, bytes.length) } as const;
  if (!mime.startsWith("image/")) return named;
  try {
    const { part } = await pictureOf(bytes, { name: basename(path), shownAs: basename(path) });
    const facts = `${mime}, ${readableSize(bytes.length)}`;
    return { type: "block", text: `📎 ${raw} (${facts})\nThe picture is attached. Its file: ${path}`, picture: part };
  } catch (error) {
    if (!(error instanceof PictureError)) throw error;
    return { ...named, problem: error.message };
  }
}

function binaryNote(raw: string, path: string, bytes: number): string {
  const mime = MIME_TYPES[extname(path).toLowerCase()] ?? "application/octet-stream";
  return `📎 ${raw} (${mime}, ${readableSize(bytes)})\nThis file is not text, so it is not shown here. It is at ${path}: work on it with your tools; do not call it unsupported.`;
}

function readableSize(bytes: number): string {
  if (bytes < 1024) return `${bytes} bytes`;
  return bytes < 1024 * 1024 ? `${(bytes / 1024).toFixed(1)} KiB` : `${(bytes / 1024 / 1024).toFixed(1)} MiB`;
}

const MAX_ENTRIES = 200;
const COUNTED_BYTES = 1024 * 1024;

async function attachFolder({ raw, value }: Reference, options: ReferenceOptions): Promise<Attachment> {
  const resolved = await resolveReference(value, options);
  if (resolved.type === "refused") return warning(resolved.reason);
  if (resolved.type === "missing") return warning("folder not found");
  if (resolved.look.type !== "directory") return warning("path is not a folder");
  const tree = await drawTree(resolved.path, options);
  return { type: "block", text: `📁 ${raw} (${estimateTokens(tree)} tokens)\n${tree}` };
}

async function drawTree(root: string, options: ReferenceOptions): Promise<string> {
  const lines = [`${basename(root) || root}/`];
  let left = MAX_ENTRIES;
  const draw = async (directory: string, indent: string, above: IgnoreRules | null): Promise<void> => {
    const entries = await list(options.files, directory);
    const rules =
      (await above?.enter(
        directory,
        entries.map(({ name }) => name),
      )) ?? null;
    for (const entry of visible(directory, entries, rules, options)) {
      if (left-- <= 0) {
        if (left === -1) lines.push(`${indent}- ...`);
        return;
      }
      const path = join(directory, entry.name);
      lines.push(`${indent}- ${entry.name.replace(/\p{Cc}/gu, "?")}${await describe(path, entry, options)}`);
      if (entry.type === "directory") await draw(path, `${indent}  `, rules);
    }
  };
  await draw(root, "", (await options.ignoreRules?.(root)) ?? null);
  return lines.join("\n");
}

/** Directories first, each sort by name. A link is shown and not followed. */
function visible(
  directory: string,
  entries: readonly DirectoryEntry[],
  rules: IgnoreRules | null,
  { denyList }: ReferenceOptions,
): readonly DirectoryEntry[] {
  return entries
    .filter(({ name, type }) => {
      const path = join(directory, name);
      return !name.startsWith(".") && !denyList.isHidden(path) && rules?.ignores(path, type === "directory") !== true;
    })
    .toSorted(
      (a, b) => Number(b.type === "directory") - Number(a.type === "directory") || compareCodePoints(a.name, b.name),
    );
}

async function describe(path: string, { type }: DirectoryEntry, { files }: ReferenceOptions): Promise<string> {
  if (type === "directory") return "/";
  if (type === "other") return (await files.resolve(path).catch(() => null)) === path ? "" : " (link)";
  const read = await readBytes(files, path, COUNTED_BYTES);
  if (read.type === "too_big") return ` (${read.size} bytes)`;
  if (read.type !== "bytes") return "";
  const text = textOf(read.bytes);
  return text === null ? ` (${read.bytes.length} bytes)` : ` (${countLines(text)} lines)`;
}

const LIMIT_SECONDS = 30;
const SHOWN_BY_GIT = ["--no-color", "--no-ext-diff", "--no-textconv", "--ignore-submodules=dirty"];

async function attachGit(reference: Reference, { run, cwd, files }: ReferenceOptions): Promise<Attachment> {
  const command = commandOf(reference);
  if (!command) return warning("expected a number from 1 to 10");
  const [verb = "", ...rest] = command;
  const root = await findGitRoot(cwd, files);
  const result =
    root &&
    (await withRepository(root, { run, timeoutMs: LIMIT_SECONDS * 1000 }, ({ git }) =>
      git("-C", cwd, verb, ...SHOWN_BY_GIT, ...rest),
    ));
  if (!result) return warning("not a git repository");
  if (result.timedOut) return warning(`git command timed out (${LIMIT_SECONDS}s)`);
  if (result.exitCode !== 0) return warning(result.stderr.trim().split("\n")[0] || "git could not be run");
  const output = result.stdout.trim() === "" ? "(no output)" : result.stdout.replaceAll("\r\n", "\n").trimEnd();
  const title = `🧾 git ${command.join(" ")} (${estimateTokens(output)} tokens)`;
  return { type: "block", text: `${title}\n${fence(output, "diff")}` };
}

function commandOf({ kind, value }: Reference): readonly string[] | null {
  if (kind === "diff") return ["diff"];
  if (kind === "staged") return ["diff", "--staged"];
  if (!/^\d{1,9}$/.test(value)) return null;
  return ["log", `-${Math.min(10, Math.max(1, Number(value)))}`, "-p"];
}

// Where a reference leads, if it may lead there.

const OUTSIDE = "path is outside the allowed workspace";
const SENSITIVE = "path is a sensitive credential or internal Hermes path and cannot be attached";

type Resolved =
  | { readonly type: "found"; readonly path: string; readonly look: FileLook }
  | { readonly type: "missing" }
  | { readonly type: "refused"; readonly reason: string };

/** Real paths are compared: a link does not lead out of the workspace. Outside of it nothing is said about what exists. */
async function resolveReference(value: string, options: ReferenceOptions): Promise<Resolved> {
  const { cwd, userHome, files, denyList } = options;
  if (value.includes("\0")) return { type: "missing" };
  const written = expandPath(value, cwd, userHome);
  const root = (await realPath(files, cwd)) ?? cwd;
  const real = await realPath(files, written);
  if (real === null) return isWithin(written, cwd) || isWithin(written, root) ? { type: "missing" } : refused(OUTSIDE);
  if (!isWithin(real, root)) return refused(OUTSIDE);
  try {
    if ((await denyList.isDenied(written)) || (await denyList.isDenied(real))) return refused(SENSITIVE);
  } catch {
    return refused(SENSITIVE); // a list that cannot be consulted allows nothing
  }
  const found = await look(files, real);
  return found ? { type: "found", path: real, look: found } : { type: "missing" };
}

const refused = (reason: string): Resolved => ({ type: "refused", reason });

export interface ReferenceOptions {
  /** References lead nowhere else. */
  readonly cwd: string;
  readonly userHome: string;
  /** The model's window in tokens; 0 when it is not known. */
  readonly contextLength: number;
  readonly files: ReadableFiles;
  readonly run: RunProgram;
  readonly denyList: DenyList;
  /** The rules in force at a folder, those above it included. Absent: nothing is ignored. */
  ignoreRules?(folder: string): Promise<IgnoreRules>;
  /** The text of a page, fenced as untrusted. Absent: pages cannot be fetched here. */
  readPage?(url: string): Promise<string>;
}

/** One thing attached, or why it is not. */
type Attachment =
  | { readonly type: "block"; readonly text: string; readonly picture?: ContentPart; readonly problem?: string }
  | { readonly type: "warning"; readonly text: string }
  /** It is no reference after all. */
  | { readonly type: "text" };

export const warning = (text: string): Attachment => ({ type: "warning", text });
