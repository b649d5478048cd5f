// Whose text a conversation has read. From the first text of a stranger on, what changes the agent or sends data out is asked about.
import type { HistoryMessage } from "../llm/messages.ts";
import type { SessionStore } from "../sessions/store.ts";
import type { Transcript } from "./transcript.ts";

/** One text from outside. */
interface ForeignEntry {
  /** The call whose result it was. Empty: it stays, whatever is taken back (it came with a task, or stands in a summary). */
  readonly call: string;
  /** Who it is from, in a few words. */
  readonly from: string;
}

/** Kept with the session; compressions and branches take it along. */
export const FOREIGN_TEXT_KEY = "foreign_text";
const MAX_ENTRIES = 100;
const MAX_CHARS = 80;
const NAMED = 3;

/**
 * - Written before the text itself is: a crash in between leaves a conversation that is asked about once too often.
 * - Never shorter by itself: only `/undo` takes entries out, those whose results it took back.
 */
export class ForeignText {
  readonly #transcript: Pick<Transcript, "sessionId">;
  readonly #store: SessionStore | null;
  #entries: readonly ForeignEntry[];

  /** `handed`: what whoever started this conversation had read. */
  constructor(transcript: Pick<Transcript, "sessionId">, store: SessionStore | null, handed: readonly string[] = []) {
    this.#transcript = transcript;
    this.#store = store;
    this.#entries = handed.map((from) => ({ call: "", from }));
  }

  /** What is stored with the session, and what its messages say of themselves. */
  async load(messages: readonly HistoryMessage[]): Promise<void> {
    const stored = await this.#stored();
    const known = new Set(stored.map(({ call }) => call));
    const unknown = messages.flatMap((message) =>
      message.role === "tool" && isForeign(message.text_origin) && !known.has(message.tool_call_id)
        ? [{ call: message.tool_call_id, from: inWords(message.tool_name ?? message.name ?? "a tool") }]
        : [],
    );
    const handed = this.#entries.filter(({ call, from }) => call === "" && !stored.some((one) => one.from === from));
    this.#entries = [...handed, ...unknown, ...stored];
  }

  /** A record that cannot be read may name anybody: then it is asked once too often. */
  async #stored(): Promise<readonly ForeignEntry[]> {
    try {
      return readForeign(await this.#store?.getValue(this.#transcript.sessionId, FOREIGN_TEXT_KEY));
    } catch {
      return [{ call: "", from: "somebody (the record of it cannot be read)" }];
    }
  }

  /** Newest last, each once. */
  get sources(): readonly string[] {
    return [...new Set(this.#entries.map(({ from }) => from).reverse())].reverse();
  }

  /** The newest sources in words for a person; null when everything was written by the user and by us. */
  get words(): string | null {
    const all = this.sources;
    const newest = all.slice(-NAMED).reverse();
    if (newest.length === 0) return null;
    return newest.join(", ") + (all.length > NAMED ? ` and ${all.length - NAMED} more` : "");
  }

  /** What was read while this call ran; null: nothing. */
  during(call: string): string | null {
    return this.#entries.findLast((entry) => entry.call === call)?.from ?? null;
  }

  async add(found: readonly ForeignEntry[]): Promise<void> {
    if (found.length === 0) return;
    const all = [...this.#entries, ...found.map(({ call, from }) => ({ call, from: inWords(from) }))];
    const kept = all.slice(-MAX_ENTRIES);
    // What is not listed any more is still there: the oldest that is listed stands for it.
    this.#entries =
      all.length > kept.length ? kept.map((one, index) => (index === 0 ? { ...one, call: "" } : one)) : kept;
    await this.#save();
  }

  /** These messages were taken back, those are left. */
  async undone(before: readonly HistoryMessage[], after: readonly HistoryMessage[]): Promise<void> {
    const left = new Set(callsOf(after));
    const gone = new Set(callsOf(before).filter((call) => !left.has(call)));
    const kept = this.#entries.filter(({ call }) => !gone.has(call));
    if (kept.length === this.#entries.length) return;
    this.#entries = kept;
    await this.#save();
  }

  async #save(): Promise<void> {
    await this.#store?.setValue(this.#transcript.sessionId, FOREIGN_TEXT_KEY, this.#entries);
  }
}

/** The entries as they are stored; what does not fit is left out. */
export function readForeign(value: unknown): readonly ForeignEntry[] {
  if (!Array.isArray(value)) return [];
  return value.flatMap((entry: unknown) => {
    if (typeof entry !== "object" || entry === null || !("call" in entry) || !("from" in entry)) return [];
    const { call, from } = entry;
    return typeof call === "string" && typeof from === "string" ? [{ call, from: inWords(from) }] : [];
  });
}

const isForeign = (origin: string | undefined) => origin === "web" || origin === "mcp" || origin === "file";

const callsOf = (messages: readonly HistoryMessage[]) =>
  messages.flatMap((message) => (message.role === "tool" ? [message.tool_call_id] : []));

/** A host or a file name is a stranger's text too: one short line of it is shown. */
function inWords(from: string): string {
  const line = from.replace(/[\p{C}\p{Z}]+/gu, " ").trim();
  return line.length > MAX_CHARS ? `${line.slice(0, MAX_CHARS - 1).toWellFormed()}…` : line;
}
