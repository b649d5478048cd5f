// One file of a skill, text or not.
import { open, stat } from "node:fs/promises";
import { extname } from "node:path";
import { sliceCodePoints } from "../kit/code-points.ts";
import type { Skill } from "./catalogue.ts";
import { safePath, skillFiles } from "./files.ts";
import { reason } from "./open-skill.ts";
import { failure, type SkillResult, type SkillRun } from "./run.ts";
import { unchanged, type ViewMemory } from "./view-memory.ts";

const LARGE_BYTES = 256 * 1024;
const SHOWN_CHARS = 100_000;

export async function viewFile(skill: Skill, filePath: string, run: SkillRun, views: ViewMemory): Promise<SkillResult> {
  const safe = await safePath(skill.dir, filePath);
  if (safe.type === "refused") return failure("traversal", `${safe.reason}.`);
  const { path, absolute } = safe;
  const facts = await stat(absolute, { bigint: true }).catch(() => null);
  if (!facts?.isFile()) {
    const available_files = await skillFiles(skill.dir);
    return failure("file_not_found", `Skill '${skill.name}' has no file '${path}'.`, { available_files });
  }
  const version = `${facts.mtimeNs}:${facts.size}`;
  views.noteRead(run.taskId, absolute, version);
  const about = { name: skill.name, file: path };
  if (views.isRepeat(run.sessionId, absolute, version)) return unchanged(about);
  try {
    return { success: true, ...about, ...(await readContent(absolute, Number(facts.size))), file_type: extname(path) };
  } catch (error) {
    return failure("unreadable", `'${path}' of skill '${skill.name}' cannot be read: ${reason(error)}`);
  }
}

async function readContent(path: string, size: number): Promise<Readonly<Record<string, unknown>>> {
  // Four bytes are the most one code point takes.
  const bytes = await readStart(path, size > LARGE_BYTES ? SHOWN_CHARS * 4 : size);
  const text = decode(bytes, size > bytes.length);
  if (text === null) return { content: `[binary file, ${size} bytes]`, is_binary: true };
  if (size <= LARGE_BYTES) return { content: text };
  return {
    content: sliceCodePoints(text, 0, SHOWN_CHARS),
    truncated: true,
    message: `Only the first ${SHOWN_CHARS} characters of ${size} bytes. Read the rest with the file tool: ${path}`,
  };
}

async function readStart(path: string, length: number): Promise<Uint8Array> {
  const file = await open(path, "r");
  try {
    const buffer = Buffer.alloc(length);
    let filled = 0;
    while (filled < length) {
      const { bytesRead } = await file.read(buffer, filled, length - filled, filled);
      if (bytesRead === 0) break;
      filled += bytesRead;
    }
    return buffer.subarray(0, filled);
  } finally {
    await file.close();
  }
}

/** Null for what is not UTF-8 text. `cut`: the last character may be incomplete. */
function decode(bytes: Uint8Array, cut: boolean): string | null {
  if (bytes.includes(0)) return null;
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes, { stream: cut });
  } catch {
    return null;
  }
}
