// Example messages in front of every conversation. All of them or none: half an example teaches the wrong thing.
import { resolve } from "node:path";
import type { HistoryMessage } from "../../llm/messages.ts";
import { expandPath } from "../../safety/paths.ts";
import { decodeText } from "../files/decode.ts";
import type { FileAccess } from "../ports.ts";

const MOST_BYTES = 4 * 1024 * 1024;

export interface Prefill {
  readonly messages: readonly HistoryMessage[];
  readonly warning: string | null;
}

export interface PrefillOptions {
  /** HERMES_PREFILL_MESSAGES_FILE, `prefill_messages_file`, `agent.prefill_messages_file`: the first that is set counts. */
  readonly candidates: readonly (string | null | undefined)[];
  /** Relative paths start here. */
  readonly hermesHome: string;
  readonly userHome: string;
  readonly files: Pick<FileAccess, "read">;
}

export async function readPrefill({ candidates, hermesHome, userHome, files }: PrefillOptions): Promise<Prefill> {
  const named = candidates.find((name) => name?.trim())?.trim();
  if (named === undefined) return { messages: [], warning: null };
  const path = expandPath(named, resolve(hermesHome), userHome);
  const read = await files.read(path, MOST_BYTES);
  if (read.type !== "bytes")
    return none(path, read.type === "missing" ? "the file does not exist" : "the file cannot be read");
  return parsePrefill(decodeText(read.bytes) ?? "", path);
}

export function parsePrefill(text: string, path: string): Prefill {
  let entries: unknown;
  try {
    entries = JSON.parse(text);
  } catch (error) {
    return none(path, `it is not JSON (${error instanceof Error ? error.message : String(error)})`);
  }
  if (!Array.isArray(entries)) return none(path, "it is not a list of messages");
  const messages: HistoryMessage[] = [];
  for (const [index, entry] of entries.entries()) {
    const message = messageOf(entry);
    if (!message) return none(path, `entry ${index} is not {"role": "user" or "assistant", "content": text}`);
    messages.push(message);
  }
  if (messages.length > 0 && messages.at(-1)?.role !== "assistant")
    return none(path, `entry ${messages.length - 1} has to be the assistant's, because the user speaks next`);
  return { messages, warning: null };
}

function messageOf(entry: unknown): HistoryMessage | null {
  if (typeof entry !== "object" || entry === null || !("role" in entry) || !("content" in entry)) return null;
  const { role, content } = entry;
  if (typeof content !== "string" || (role !== "user" && role !== "assistant")) return null;
  return { role, content };
}

function none(path: string, reason: string): Prefill {
  return { messages: [], warning: `Prefill messages from ${path} are not used: ${reason}.` };
}
