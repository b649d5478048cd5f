// The conversation in memory, and its rows on disk. Memory is what a fresh load of the rows would give, at every moment.

import { sanitizeSurrogates } from "../kit/code-points.ts";
import {
  type ContentPart,
  type HistoryMessage,
  type ToolMessage,
  textOf,
  type UserInput,
  type UserMessage,
  userTextToSend,
} from "../llm/messages.ts";
import { withoutImageBytes, withoutPictureWords } from "../llm/pictures/fit.ts";
import { withRecall } from "../prompt/recall.ts";
import {
  type NewSession,
  SessionCompressedError,
  type SessionStore,
  type StoredMessage,
  StoreError,
} from "../sessions/store.ts";
import type { RunContext } from "../tools/toolset/context.ts";
import type { Assembly } from "./assembly.ts";
import { isSummaryAlone, summaryAbove, wordsOf } from "./compression/summary-text.ts";
import type { Conversation } from "./conversation.ts";
import { mergeUsers, repairCorruptArguments, repairMessageSequence, stubResult, unansweredCalls } from "./repair.ts";

/** A message, and what its row says when that differs (a picture has only its description on disk). */
export interface Entry {
  readonly message: HistoryMessage;
  readonly stored?: HistoryMessage;
}

/** Stores rows in another way than by appending them: together with what else happens in that step. All or nothing. */
type StoreRows = (sessionId: string, rows: readonly HistoryMessage[]) => Promise<readonly number[]>;

/** The user message of the running turn: how to amend it or take it back. */
export interface UserEntry {
  readonly message: UserMessage;
  /** Null without a store. */
  readonly rowId: number | null;
  readonly before: readonly HistoryMessage[];
}

/** What a row was sent as before it was shortened. */
export interface SentBefore {
  readonly id: number;
  readonly sent: string | null;
}

/** How long a message waits for the results of calls that only look. */
const HOLD_MS = 50;
const noop = () => undefined;

const PROCESS_ENDED =
  "[No result: the program ended while this call was running. It may or may not have taken effect; check before repeating it.]";

/**
 * - `append` resolves when the rows are committed. If the store fails, the messages stay in memory and their rows are written before any
 *   later one: nothing is skipped, nothing is written twice.
 * - A session that was compressed by another process goes on as its tip; `sessionId` changes and the next turn reloads.
 */
export class Transcript {
  readonly #store: SessionStore | null;
  readonly #describe: () => Omit<NewSession, "id">;
  #sessionId: string;
  #messages: readonly HistoryMessage[];
  #unwritten: HistoryMessage[] = [];
  #held: NodeJS.Timeout | null = null;
  #writing: Promise<void> | null = null;
  #loaded: boolean;
  /** Its client keeps the history; the store is not asked. */
  readonly #isClients: boolean;
  #ensured = false;

  constructor(options: {
    readonly sessionId: string;
    readonly store: SessionStore | null;
    /** What the session's row says when it has to be made. */
    readonly describe: () => Omit<NewSession, "id">;
    /** Taken instead of a look into the store. */
    readonly history?: readonly HistoryMessage[];
  }) {
    this.#sessionId = options.sessionId;
    this.#store = options.store;
    this.#describe = options.describe;
    this.#messages = options.history ? legal(options.history) : [];
    this.#isClients = options.history !== undefined;
    this.#loaded = options.history !== undefined || options.store === null;
  }

  get sessionId(): string {
    return this.#sessionId;
  }

  /** Legal: roles alternate, results follow their calls. A new list after every change; the old ones stay as they were. */
  get messages(): readonly HistoryMessage[] {
    return this.#messages;
  }

  /** Makes sure that the row exists and memory holds what the rows say. */
  async open(): Promise<void> {
    if (!this.#store) return;
    if (!this.#ensured) await this.#store.ensure({ ...this.#describe(), id: this.#sessionId });
    this.#ensured = true;
    if (this.#loaded) return;
    if (this.#unwritten.length > 0) await this.#write([]);
    this.#messages = legal((await this.#load()).map(withoutRow));
  }

  /** Somebody else wrote the conversation since: `open` loads it anew, and what never came to disk is dropped. `root`: its first session. */
  async forget(root: string): Promise<void> {
    if (!this.#store || this.#isClients) return;
    this.#unwritten = [];
    this.#loaded = false;
    this.#sessionId = await this.#store.tip(root);
  }

  /** Answers calls that a crash left open, so that every later request shows the same history. */
  async closeCrashedCalls(): Promise<void> {
    const open = unansweredCalls(this.#messages);
    if (open.length > 0) await this.append(open.map((call) => ({ message: stubResult(call, PROCESS_ENDED) })));
  }

  async append(entries: readonly Entry[], through?: StoreRows): Promise<readonly number[]> {
    const before = this.#messages;
    return this.#write(this.#take(entries), through && { through, before });
  }

  /** More of the turn follows. */
  async appendMidTurn(entries: readonly Entry[]): Promise<readonly number[]> {
    return this.#write(this.#take(entries), { midTurn: true });
  }

  /** Rows that go to disk with the next ones, or very soon: for calls that do nothing but look. */
  appendWithNext(entries: readonly Entry[]): void {
    this.#unwritten.push(...this.#take(entries));
    this.#held ??= setTimeout(() => {
      this.#held = null;
      // What fails stays, and is written with the next rows.
      this.#writing = this.#write([], { midTurn: true }).then(noop, noop);
    }, HOLD_MS);
  }

  /** Nothing waits for company any more. */
  async writeHeld(): Promise<void> {
    if (this.#held) await this.#write([], { midTurn: true });
    await this.#writing;
  }

  /** Into memory; as rows. */
  #take(entries: readonly Entry[]): readonly HistoryMessage[] {
    this.#messages = [...this.#messages, ...entries.map((entry) => entry.message)];
    return entries.map((entry) => withoutImageBytes(entry.stored ?? entry.message));
  }

  /** A user message right behind an unanswered one is a row of its own, and one message with it in memory. */
  async appendUser(message: UserMessage, through?: StoreRows): Promise<UserEntry> {
    const before = this.#messages;
    this.#messages = joinUser(before, message);
    const rowId = (await this.#write([withoutImageBytes(message)], through && { through, before })).at(-1) ?? null;
    if (this.#loaded) return { message, rowId, before };
    // The session went on elsewhere: what stands before this message is the tip's history.
    const rows = await this.#load();
    const tip = legal(rows.filter((row) => row.id !== rowId).map(withoutRow));
    this.#messages = joinUser(tip, message);
    return { message, rowId, before: tip };
  }

  /**
   * The turn that was cut off goes on: its user message is a row already. `note` rides on the newest row, which no answered request has
   * carried. Null when there is nothing to go on with.
   */
  async continueTurn(note: string): Promise<UserEntry | null> {
    const rows = await this.#load();
    const at = rows.findLastIndex(({ role }) => role === "user");
    const user = rows[at];
    const newest = rows.at(-1);
    if (user?.role !== "user" || !newest) return null;
    const before = legal(rows.slice(0, at).map(withoutRow));
    const entry = { message: withoutRow(user) as UserMessage, rowId: user.id, before }; // its role says so
    if (newest === user) return this.amendUser(entry, withRecall(userTextToSend(entry.message), [note]));
    const last = this.#messages.at(-1);
    if (last?.role !== "tool" || typeof last.content !== "string") return null;
    await this.amendLast(newest.id, { ...last, api_content: `${last.api_content ?? last.content}\n\n${note}` });
    return entry;
  }

  /** Says what was really sent for the user message of this turn. */
  async amendUser(entry: UserEntry, apiContent: string): Promise<UserEntry> {
    const message = { ...entry.message, api_content: apiContent };
    this.#messages = joinUser(entry.before, message);
    const row = withoutImageBytes(message);
    const sent = row.role === "user" ? row.api_content : apiContent;
    if (this.#store && entry.rowId !== null) await this.#store.setApiContent(entry.rowId, sent ?? apiContent);
    return { ...entry, message };
  }

  /** Takes the user message of this turn out of the history; its row is hidden, not deleted. */
  async takeBackUser(entry: UserEntry): Promise<void> {
    this.#messages = entry.before;
    if (this.#store && entry.rowId !== null) await this.#store.rewind(this.#sessionId, entry.rowId);
  }

  /**
   * Takes the last user turns back with everything that followed them: rows are hidden, not deleted. Resolves to what the user had said,
   * oldest first.
   */
  async dropTurns(count: number): Promise<readonly TakenBack[]> {
    await this.open();
    if (this.#unwritten.length > 0) await this.#write([]);
    const rows: readonly (HistoryMessage & { readonly id?: number })[] = this.#store
      ? await this.#load()
      : this.#messages;
    const users = rows
      .flatMap((row, index) => (row.role === "user" && !isSummaryAlone(row) ? [index] : []))
      .slice(-count);
    const first = users[0];
    if (count < 1 || first === undefined) return [];
    const rowId = rows[first]?.id;
    if (this.#store && rowId !== undefined) await this.#store.rewind(this.#sessionId, rowId);
    // A summary that stands above what is taken back stays.
    const summary = summaryAbove(rows[first]);
    if (summary) await this.#write([summary]);
    const kept = [...legal(rows.slice(0, first).map(withoutRow)), ...(summary ? [summary] : [])];
    const before = this.#messages;
    // What memory already holds stays the same object, pictures included; only a last user message may have been joined with a later one.
    this.#messages = kept.map((message, index) =>
      index < kept.length - 1 || message.role !== "user" ? (this.#messages[index] ?? message) : message,
    );
    return users.map((index) => takenBack(rows[index] ?? { role: "user", content: "" }, before));
  }

  /** Exchanges the newest message for one that also carries `api_content`. */
  async amendLast(rowId: number | null, message: HistoryMessage & { readonly api_content: string }): Promise<void> {
    this.#messages = [...this.#messages.slice(0, -1), message];
    if (this.#store && rowId !== null) await this.#store.setApiContent(rowId, message.api_content);
  }

  /**
   * Goes on in a child session that holds these messages; false when another process was quicker and its continuation was taken instead.
   * All or nothing: what fails leaves session and messages as they are.
   */
  async continueWith(messages: readonly HistoryMessage[]): Promise<boolean> {
    if (!this.#store) {
      this.#messages = messages;
      return true;
    }
    if (this.#unwritten.length > 0) await this.#write([]);
    const rows = messages.map(withoutImageBytes);
    this.#sessionId = await this.#store.continueAfterCompression(this.#sessionId, rows);
    return this.#adopt(messages);
  }

  /** Another process compressed this session: its continuation becomes ours. False when nobody did. */
  async followTip(): Promise<boolean> {
    const tip = (await this.#store?.tip(this.#sessionId)) ?? this.#sessionId;
    if (tip === this.#sessionId) return false;
    this.#sessionId = tip;
    await this.#adopt([]);
    return true;
  }

  /** Takes the last compression back, if nothing was said since. */
  async undoCompression(): Promise<boolean> {
    await this.open();
    const parent = await this.#store?.undoCompression(this.#sessionId);
    if (!parent) return false;
    this.#sessionId = parent;
    await this.#adopt([]);
    return true;
  }

  /** Results that are sent shorter from now on; what is stored of them stays. */
  async sendShorter(messages: readonly HistoryMessage[]): Promise<readonly SentBefore[]> {
    if (!this.#store) {
      this.#messages = messages;
      return [];
    }
    if (this.#unwritten.length > 0) await this.#write([]);
    const changes = pairRows(this.#messages, messages, await this.#load());
    const done: SentBefore[] = [];
    try {
      for (const { row, after } of changes) {
        await this.#store.setApiContent(row.id, after.api_content ?? null);
        done.push({ id: row.id, sent: (row.role === "tool" ? row.api_content : undefined) ?? null });
      }
    } catch (error) {
      await this.sendAsBefore(done);
      throw error;
    }
    const changed = new Set<HistoryMessage>(changes.map(({ after }) => after));
    // Only what has a row: memory is what a fresh load would give.
    this.#messages = this.#messages.map((before, index) => {
      const after = messages[index];
      return after && changed.has(after) ? after : before;
    });
    return done;
  }

  async sendAsBefore(rows: readonly SentBefore[]): Promise<void> {
    for (const { id, sent } of rows) await this.#store?.setApiContent(id, sent);
    if (this.#store) this.#messages = legal((await this.#load()).map(withoutRow));
  }

  /** The newest row; null without a store or a row. */
  async lastRowId(): Promise<number | null> {
    return (await this.#load()).at(-1)?.id ?? null;
  }

  /** Memory becomes what the session holds; messages that are the same there stay the same objects, pictures included. */
  async #adopt(messages: readonly HistoryMessage[]): Promise<boolean> {
    this.#ensured = true;
    const rows = (await this.#load()).map(withoutRow);
    const ours =
      rows.length === messages.length &&
      messages.every((message, index) => {
        const row = rows[index];
        return row?.role === message.role && textOf(row.content) === textOf(withoutImageBytes(message).content);
      });
    this.#messages = ours ? messages : legal(rows);
    return ours;
  }

  async #load(): Promise<readonly StoredMessage[]> {
    const rows = (await this.#store?.load(this.#sessionId)) ?? [];
    this.#loaded = true;
    return rows;
  }

  /** What another way refuses leaves nothing behind: memory is `before` again. */
  async #write(
    rows: readonly HistoryMessage[],
    how: {
      readonly through?: StoreRows;
      readonly before?: readonly HistoryMessage[];
      readonly midTurn?: boolean;
    } = {},
  ): Promise<readonly number[]> {
    if (!this.#store) return [];
    const store = this.#store;
    const { midTurn = false, before } = how;
    clearTimeout(this.#held ?? undefined);
    this.#held = null;
    const other = this.#writing;
    if (other) await other;
    if (this.#writing === other) this.#writing = null;
    const write: StoreRows = how.through ?? ((sessionId, batch) => store.append(sessionId, batch, { midTurn }));
    this.#unwritten.push(...rows);
    for (;;) {
      const batch = [...this.#unwritten];
      try {
        const ids = await write(this.#sessionId, batch);
        this.#unwritten.splice(0, batch.length);
        return rows.length === 0 ? [] : ids.slice(-rows.length);
      } catch (error) {
        const isElsewhere = error instanceof SessionCompressedError && error.tipId !== this.#sessionId;
        if (!isElsewhere) {
          if (!before) throw error;
          this.#messages = before;
          this.#unwritten.splice(this.#unwritten.length - rows.length);
          throw error;
        }
        this.#sessionId = error.tipId;
        this.#loaded = false;
      }
    }
  }
}

/** The rows of the tool results that changed. Ids may repeat in a conversation, so both are walked in order. */
function pairRows(
  before: readonly HistoryMessage[],
  after: readonly HistoryMessage[],
  rows: readonly StoredMessage[],
): readonly { readonly row: StoredMessage; readonly after: ToolMessage }[] {
  const pairs: { row: StoredMessage; after: ToolMessage }[] = [];
  let next = 0;
  before.forEach((message, index) => {
    const changed = after[index];
    if (message.role !== "tool") return;
    const at = rows.findIndex(
      (row, place) => place >= next && row.role === "tool" && row.tool_call_id === message.tool_call_id,
    );
    const row = rows[at];
    if (!row) return;
    next = at + 1;
    if (changed?.role === "tool" && changed !== message) pairs.push({ row, after: changed });
  });
  return pairs;
}

function joinUser(before: readonly HistoryMessage[], message: UserMessage): readonly HistoryMessage[] {
  const last = before.at(-1);
  return last?.role === "user" ? [...before.slice(0, -1), mergeUsers(last, message)] : [...before, message];
}

function legal(messages: readonly HistoryMessage[]): readonly HistoryMessage[] {
  return repairMessageSequence(repairCorruptArguments(messages).messages).messages;
}

function withoutRow(row: HistoryMessage & Partial<Pick<StoredMessage, "id" | "timestamp">>): HistoryMessage {
  const { id: _, timestamp: __, ...message } = row;
  // The database has one column for both names of a tool.
  if (message.role !== "tool" || message.tool_name === undefined) return message;
  return { ...message, name: message.tool_name };
}

/** A message that is the user's again. */
export interface TakenBack {
  readonly text: string;
  /** Its pictures, as long as this process has them. */
  readonly parts: readonly ContentPart[];
  /** It had pictures of which nothing is left. */
  readonly picturesLost: boolean;
}

function takenBack(row: HistoryMessage, memory: readonly HistoryMessage[]): TakenBack {
  const { text, pictures } = withoutPictureWords(wordsOf(row));
  const isRow = (message: HistoryMessage) =>
    message.role === "user" && textOf(withoutImageBytes(message).content) === textOf(row.content);
  const content = memory.findLast(isRow)?.content;
  const parts = Array.isArray(content) ? content.filter(({ type }) => type === "image_url") : [];
  return { text, parts, picturesLost: pictures > parts.length };
}

const NO_TEXT = "[empty message]";

/** Puts what the user said on disk, behind whatever a crash left open. */
export async function storeUserMessage(
  conversation: Conversation,
  input: UserInput,
  through?: StoreRows,
): Promise<UserEntry> {
  const { transcript, assembly } = conversation;
  await transcript.closeCrashedCalls();
  const note = [assembly.mode?.takeNote(), input.note].filter((part) => part?.trim()).join("\n\n");
  const said = userMessage(note === "" ? input : { ...input, note });
  return transcript.appendUser(withOpening(said, conversation.takeOpening()), through);
}

function withOpening(message: UserMessage, opening: string | null): UserMessage {
  if (opening === null) return message;
  return { ...message, api_content: withRecall(opening, [userTextToSend(message)]) };
}

/** Blocks that only the model sees ride on the user message as it is sent; the stored text stays what the user wrote. */
export async function recallFor(
  { transcript, assembly }: Conversation,
  entry: UserEntry,
  input: UserInput,
  { run, pictures }: { readonly run: RunContext; readonly pictures: readonly string[] },
): Promise<UserEntry> {
  return describedUser(transcript, entry, [...pictures, ...(await recall(assembly, input, run))]);
}

/** The message with blocks behind it that only the model sees. */
export async function describedUser(
  transcript: Transcript,
  entry: UserEntry,
  blocks: readonly string[],
): Promise<UserEntry> {
  if (blocks.length === 0) return entry;
  const sent = userTextToSend(entry.message);
  return transcript.amendUser(entry, sent === "" ? blocks.join("\n\n") : withRecall(sent, blocks));
}

async function recall(assembly: Assembly, input: UserInput, run: RunContext): Promise<readonly string[]> {
  try {
    return (await assembly.prompt.recall?.(input.persistText ?? input.text, run, input)) ?? [];
  } catch (error) {
    if (error instanceof StoreError) throw error;
    assembly.log.warn("recall failed; the message is sent without it", error);
    return [];
  }
}

function userMessage(input: UserInput): UserMessage {
  const said = sanitizeSurrogates(input.text);
  const note = sanitizeSurrogates(input.note ?? "");
  const text = [note, said].filter((part) => part.trim() !== "").join("\n\n") || said;
  const kept = sanitizeSurrogates(input.persistText ?? said);
  const parts = input.parts ?? [];
  if (parts.length === 0) return withSent({ role: "user", content: kept }, text.trim() === "" ? NO_TEXT : text);
  const spoken = kept.trim() === "" ? [] : [{ type: "text", text: kept } as const];
  return withSent({ role: "user", content: [...spoken, ...parts] }, text === kept ? undefined : text);
}

function withSent(message: UserMessage, sent: string | undefined): UserMessage {
  return sent === undefined || sent === message.content ? message : { ...message, api_content: sent };
}
