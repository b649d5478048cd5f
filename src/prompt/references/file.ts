import { extname } from "node:path";
import { estimateTokens } from "../../llm/catalogue/estimate.ts";
import { normaliseNewlines } from "../files/decode.ts";
import type { LineRange, Reference } from "./grammar.ts";
import { findPlace } from "./place.ts";
import { type Attachment, type ReferenceOptions, warning } from "./ports.ts";

const MOST_BYTES = 10 * 1024 * 1024;
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

export async function attachFile(reference: Reference, options: ReferenceOptions): Promise<Attachment> {
  const { raw, value, range } = reference;
  const place = await findPlace(value, options);
  if (place.type === "refused") return warning(place.reason);
  if (place.type === "missing") return warning("file not found");
  if (place.look.kind !== "file") return warning("path is not a file");
  const read = await options.files.read(place.path, MOST_BYTES);
  if (read.type === "too_big") return warning(`file is too large to attach (${readableSize(read.size)}, limit 10 MiB)`);
  if (read.type !== "bytes")
    return warning(read.type === "failed" ? `file cannot be read (${read.code})` : "file not found");
  const text = textOf(read.bytes);
  if (text === null) return { type: "block", text: binaryNote(raw, place.path, read.bytes.length) };
  const part = range ? linesIn(text, range) : { text };
  if ("problem" in part) return warning(part.problem);
  const language = LANGUAGES[extname(place.path).toLowerCase()] ?? "";
  return { type: "block", text: `📄 ${raw} (${estimateTokens(part.text)} tokens)\n${fence(part.text, language)}` };
}

/** The text; null for what is none, judged by its bytes alone. */
export function textOf(bytes: Uint8Array): string | null {
  if (bytes.subarray(0, LOOKED_AT).includes(0)) return null;
  try {
    return normaliseNewlines(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
  } catch {
    return null;
  }
}

export function countLines(text: string): number {
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
export function fence(text: string, language: string): string {
  let longest = 0;
  for (const [run] of text.matchAll(/`+/g)) longest = Math.max(longest, run.length);
  const marks = "`".repeat(Math.max(3, longest + 1));
  return `${marks}${language}\n${text}${text.endsWith("\n") ? "" : "\n"}${marks}`;
}

function binaryNote(raw: string, path: string, bytes: number): string {
  const mime = MIME_TYPES[extname(path).toLowerCase()] ?? "application/octet-stream";
  return `📎 ${raw} (${mime}, ${readableSize(bytes)})\nThis file is not text, so it is not shown here. It is at ${path}: work on it with your tools; do not call it unsupported.`;
}

function readableSize(bytes: number): string {
  if (bytes < 1024) return `${bytes} bytes`;
  return bytes < 1024 * 1024 ? `${(bytes / 1024).toFixed(1)} KiB` : `${(bytes / 1024 / 1024).toFixed(1)} MiB`;
}
