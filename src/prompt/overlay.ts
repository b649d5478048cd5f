// Texts that are added to every request and never stored with the prompt.

import { resolve } from "node:path";
import type { OpenHome } from "../home/open.ts";
import { messageOf } from "../kit/errors.ts";
import type { HistoryMessage } from "../llm/messages.ts";
import { expandPath } from "../safety/paths.ts";
import type { SessionStore } from "../sessions/store.ts";
import { decodeText } from "./files/read.ts";
import { type ReadableFiles, readBytes } from "./ports.ts";

const CLEARS = ["none", "default", "neutral"];

/** The first of them that says something; the order is the precedence. */
export function chooseEphemeral(...candidates: readonly (string | null | undefined)[]): string | undefined {
  return candidates.find((text) => text?.trim())?.trim();
}

type Personality =
  | { readonly type: "set"; readonly name: string; readonly text: string }
  | { readonly type: "clear" }
  | { readonly type: "unknown"; readonly known: readonly string[] };

/** What `/personality <name>` puts into `agent.system_prompt`. */
export function findPersonality(name: string, personalities: Readonly<Record<string, unknown>>): Personality {
  const wanted = name.trim().toLowerCase();
  if (CLEARS.includes(wanted)) return { type: "clear" };
  const key = Object.keys(personalities).find((known) => known.toLowerCase() === wanted);
  const text = key === undefined ? "" : personalityText(personalities[key]);
  if (key === undefined || text === "") return { type: "unknown", known: Object.keys(personalities).sort() };
  return { type: "set", name: key, text };
}

/** The name of the one that `agent.system_prompt` is; null for a text of the user's own. */
export function activePersonality(prompt: string, personalities: Readonly<Record<string, unknown>>): string | null {
  const text = prompt.trim();
  return Object.keys(personalities).find((name) => personalityText(personalities[name]) === text) ?? null;
}

function personalityText(value: unknown): string {
  if (typeof value === "string") return value.trim();
  if (typeof value !== "object" || value === null) return "";
  const { system_prompt, tone, style } = value as Record<string, unknown>; // each is checked in the next lines
  const line = (label: string, text: unknown) =>
    typeof text === "string" && text.trim() ? [`${label}${text.trim()}`] : [];
  return [...line("", system_prompt), ...line("Tone: ", tone), ...line("Style: ", style)].join("\n");
}

// Example messages in front of every conversation. All of them or none: half an example teaches the wrong thing.

const MAX_BYTES = 4 * 1024 * 1024;

interface Prefill {
  readonly messages: readonly HistoryMessage[];
  readonly warning: string | null;
}

interface PrefillOptions {
  /** HERMES_PREFILL_MESSAGES_FILE, `prefill_messages_file`, `agent.prefill_messages_file`: the first that is set counts. */
  readonly candidates: readonly (string | null | undefined)[];
  /** Relative paths start here. */
  readonly hermesHome: string;
  readonly userHome: string;
  readonly files: Pick<ReadableFiles, "facts" | "chunks">;
}

export async function readPrefill({ candidates, hermesHome, userHome, files }: PrefillOptions): Promise<Prefill> {
  const named = candidates.find((name) => name?.trim())?.trim();
  if (named === undefined) return { messages: [], warning: null };
  const path = expandPath(named, resolve(hermesHome), userHome);
  const read = await readBytes(files, path, MAX_BYTES);
  if (read.type !== "bytes")
    return none(path, read.type === "missing" ? "the file does not exist" : "the file cannot be read");
  return parsePrefill(decodeText(read.bytes) ?? "", path);
}

export function parsePrefill(text: string, path: string): Prefill {
  let entries: unknown;
  try {
    entries = JSON.parse(text);
  } catch (error) {
    return none(path, `it is not JSON (${messageOf(error)})`);
  }
  if (!Array.isArray(entries)) return none(path, "it is not a list of messages");
  const messages: HistoryMessage[] = [];
  for (const [index, entry] of entries.entries()) {
    const message = prefillMessage(entry);
    if (!message) return none(path, `entry ${index} is not {"role": "user" or "assistant", "content": text}`);
    messages.push(message);
  }
  if (messages.length > 0 && messages.at(-1)?.role !== "assistant")
    return none(path, `entry ${messages.length - 1} has to be the assistant's, because the user speaks next`);
  return { messages, warning: null };
}

function prefillMessage(entry: unknown): HistoryMessage | null {
  if (typeof entry !== "object" || entry === null || !("role" in entry) || !("content" in entry)) return null;
  const { role, content } = entry;
  if (typeof content !== "string" || (role !== "user" && role !== "assistant")) return null;
  return { role, content };
}

function none(path: string, reason: string): Prefill {
  return { messages: [], warning: `Prefill messages from ${path} are not used: ${reason}.` };
}

// Example messages in front of every request: read once per conversation, so that its requests keep beginning alike.

const KEY = "prefill";

export class PrefillOnce {
  readonly #home: OpenHome;
  readonly #store: Pick<SessionStore, "getValue" | "setValue">;
  #read: Promise<string | null> | null = null;
  #warned = false;
  #digest: string | null = null;
  messages: readonly HistoryMessage[] = [];

  constructor(home: OpenHome, store: Pick<SessionStore, "getValue" | "setValue">) {
    this.#home = home;
    this.#store = store;
  }

  /** Resolves to a warning for the user, once. */
  async load(): Promise<string | null> {
    this.#read ??= this.#load();
    const warning = await this.#read;
    const fresh = this.#warned ? null : warning;
    this.#warned = true;
    return fresh;
  }

  /** Whether an earlier process sent this session with other examples. What is sent now is remembered. */
  async hasChanged(sessionId: string, hasHistory: boolean): Promise<boolean> {
    try {
      const before = hasHistory ? await this.#store.getValue(sessionId, KEY) : null;
      if (before === this.#digest) return false;
      await this.#store.setValue(sessionId, KEY, this.#digest);
      return hasHistory;
    } catch (error) {
      this.#home.log.warn("which examples a session was sent with could not be stored", error);
      return false;
    }
  }

  async #load(): Promise<string | null> {
    const { prefill_messages_file: top, agent } = this.#home.config();
    const candidates = [top, agent.prefill_messages_file];
    if (candidates.every((name) => name.trim() === "")) return null;
    const { localFiles } = await import("../tools/files/access.ts");
    const { sha256 } = await import("./fingerprint.ts");
    const userHome = this.#home.environment().HOME ?? this.#home.osHome;
    const read = await readPrefill({ candidates, hermesHome: this.#home.paths.dir, userHome, files: localFiles });
    this.messages = read.messages;
    if (read.messages.length > 0) this.#digest = sha256(JSON.stringify(read.messages));
    return read.warning;
  }
}
