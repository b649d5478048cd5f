// What a platform owes the gateway, and what it is handed. A platform is a folder in platforms/ whose entry.ts exports one `PlatformEntry`;
// nothing outside its folder knows its name.
import type { Logger } from "../../home/log.ts";
import type { OpenHome } from "../../home/open.ts";
import type { Clock } from "../../kit/clock.ts";
import type { SessionStore } from "../../sessions/store.ts";
import type { ChatSource } from "./chat.ts";

type MessageType = "text" | "location" | "photo" | "video" | "audio" | "voice" | "document" | "sticker" | "command";

/** A file that came with a message, already in the cache of the home. */
export interface ReceivedFile {
  readonly path: string;
  /** By its first bytes, not by its name. */
  readonly mediaType: string;
  readonly name?: string | undefined;
  readonly size: number;
}

/** What somebody wrote, in the words of every platform. Plain data: it waits in the store as it is. */
export interface ChatMessage {
  readonly text: string;
  readonly type: MessageType;
  readonly source: ChatSource;
  /** What makes a repeated delivery a duplicate; where a platform has none, made from chat, sender, time and text. */
  readonly updateId: string;
  readonly messageId?: string | undefined;
  readonly files?: readonly ReceivedFile[] | undefined;
  /**
   * The picture among its files is a sticker: it reaches the model as a description, which is asked for once per `id`. `words` is the line
   * in `[...]` that names it in `text` or `context`; the description goes in there.
   */
  readonly sticker?: { readonly id: string; readonly words: string } | undefined;
  /** The same for all pictures of one album: they come as messages of their own. */
  readonly album?: string | undefined;
  readonly replyTo?: { readonly messageId: string; readonly text?: string | undefined } | undefined;
  /** Unix seconds by the platform's clock. */
  readonly sentAt: number;
  readonly isBot?: boolean | undefined;
  readonly mentionsUs?: boolean | undefined;
  /** Messages around it that are only context. Others wrote them. */
  readonly context?: string | undefined;
  /** Kept in the history of the conversation; nobody answers it. */
  readonly observed?: boolean | undefined;
  /** Skills to load with it, and instructions that the settings lay over this chat. */
  readonly skills?: readonly string[] | undefined;
  readonly channelPrompt?: string | undefined;
  /** Where the reply goes when that is not where it came from: a thread that was opened for it. */
  readonly replyIn?: ChatTarget | undefined;
  /** A role of the sender on the platform is on the list of those who may talk to us; false: none is. Absent: there is no such list. */
  readonly allowedByRole?: boolean | undefined;
  /** A target string (`telegram:123`) that the answer goes to instead, on whatever platform; the gateway resolves it. */
  readonly deliver?: string | undefined;
  /** Whose text besides the sender's is in it, in a few words, each already fenced where it stands: the rest of it is the owner's word. */
  readonly outside?: readonly string[] | undefined;
}

/** Somebody pressed a button under a question. */
export interface ButtonPress {
  readonly source: ChatSource;
  /** As it was handed to `ask`. */
  readonly choice: string;
  readonly questionId: string;
  readonly messageId?: string | undefined;
  /** As in a message. */
  readonly allowedByRole?: boolean | undefined;
  /** Tells the presser what came of it; a platform that shows nothing resolves at once. */
  answer(text: string): Promise<void>;
}

/** A place to send to. */
export interface ChatTarget {
  readonly chatId: string;
  readonly threadId?: string | undefined;
  readonly replyTo?: string | undefined;
}

/**
 * What came of sending one part.
 *
 * - `unknown`: the request left and its answer did not come. Never `unreachable` then: that promises nothing arrived.
 */
export type SendResult =
  | { readonly messageId: string | null }
  | {
      readonly failed: "rate_limited" | "format" | "thread_gone" | "unreachable" | "refused" | "unknown";
      readonly error: string;
      /** Seconds; with `rate_limited`. */
      readonly retryAfter?: number | undefined;
    };

export interface SendOptions {
  /** The same for every repeat of a part: what a platform's own protection against doubles is given. */
  readonly key: string;
  /** Worth a sound: the end of an answer, a question. */
  readonly important?: boolean | undefined;
  /** As plain text: the format was refused. */
  readonly plain?: boolean | undefined;
  /** For platforms whose messages have one, such as e-mail. */
  readonly subject?: string | undefined;
}

export interface ChoiceButton {
  readonly label: string;
  readonly choice: string;
}

/** A file to send. */
export interface OutgoingFile {
  readonly path: string;
  readonly kind: "image" | "audio" | "voice" | "video" | "document";
  readonly name: string;
  readonly caption?: string | undefined;
}

/**
 * One bot of one platform.
 *
 * - `connect` resolves when messages come in, and rejects with a `PlatformError` otherwise. After `signal` aborts or `disconnect`, nothing is
 *   received or sent any more; an adapter is not connected twice.
 * - What comes in goes to `host.receive`, which resolves when it is stored: only then the platform is told that it arrived.
 * - `send` never throws for what network or platform did, and ends by itself; after five minutes its outcome is `unknown`. Text is Markdown of one part that fits; the adapter formats it.
 * - Optional methods degrade: without `edit` nothing is streamed, without `sendFile` a file is named by a line of text.
 */
export interface PlatformAdapter {
  /** How the platform calls this bot, for people; known when `connect` has resolved. */
  readonly account: string;
  /** Where it listens, if it does: `http://HOST:PORT`. */
  readonly listening?: string | undefined;
  connect(signal: AbortSignal): Promise<void>;
  disconnect(): Promise<void>;
  send(target: ChatTarget, text: string, options: SendOptions): Promise<SendResult>;
  edit?(
    target: ChatTarget,
    messageId: string,
    text: string,
    options: SendOptions & { final: boolean },
  ): Promise<SendResult>;
  remove?(target: ChatTarget, messageId: string): Promise<void>;
  sendFile?(target: ChatTarget, file: OutgoingFile, options: SendOptions): Promise<SendResult>;
  /** Two to ten pictures as one message. Where it is missing they come one by one. */
  sendAlbum?(target: ChatTarget, pictures: readonly OutgoingFile[], options: SendOptions): Promise<SendResult>;
  /** A question with buttons below it. */
  ask?(
    target: ChatTarget,
    text: string,
    question: { readonly id: string; readonly buttons: readonly ChoiceButton[] },
    options: SendOptions,
  ): Promise<SendResult>;
  /** The question was answered or is over: its buttons go, and the text says what came of it. */
  closeQuestion?(target: ChatTarget, messageId: string, text: string): Promise<void>;
  /** Shows that somebody is at work, for a few seconds. */
  typing?(target: ChatTarget): Promise<void>;
  /** Work on a message begins and ends, for a mark beside it where the settings want one. */
  mark?(target: ChatTarget, messageId: string, state: "working" | "done" | "failed"): Promise<void>;
  /**
   * Whether a part arrived, by the history of the platform; null when it did not, undefined when that cannot be told. `since`: Unix seconds
   * before which it was not sent, for histories that know no key and hold the same text twice.
   */
  findSent?(target: ChatTarget, key: string, text: string, since?: number): Promise<string | null | undefined>;
  /** Chats it could write to, for the directory. */
  chats?(): Promise<readonly KnownChat[]>;
  /** The commands of the registry, for menus. */
  setCommands?(commands: readonly { readonly name: string; readonly description: string }[]): Promise<void>;
}

/** A row of the channel directory. */
export interface KnownChat {
  readonly id: string;
  readonly name: string;
  readonly type: string;
  readonly guild?: string | undefined;
  readonly thread_id?: string | undefined;
}

/** A platform that cannot be reached or refuses us. */
export class PlatformError extends Error {
  override name = "PlatformError";
  readonly code: string;
  /** Trying again may help. */
  readonly retryable: boolean;
  constructor(code: string, message: string, { retryable, cause }: { retryable: boolean; cause?: unknown }) {
    super(message, { cause });
    this.code = code;
    this.retryable = retryable;
  }
}

/** What an adapter is handed. */
export interface AdapterHost {
  readonly clock: Clock;
  readonly log: Logger;
  /** A setting of `platforms.<name>.extra`, or the variable that wins over it. */
  option(key: string, variable?: string): unknown;
  /**
   * Stores messages and where the stream of updates is read up to. Resolves when that is on disk, with false for each message that was there
   * before; a duplicate costs nothing.
   */
  receive(messages: readonly ChatMessage[], cursor?: string): Promise<readonly boolean[]>;
  /**
   * Sends a text to a target string of any platform, at once and without a turn. The same update id is sent once: a repeat
   * resolves to `duplicate`. After a failure nothing is kept, so that it may be tried again.
   */
  deliverTo?(
    target: string,
    text: string,
    options: { readonly updateId: string },
  ): Promise<SendResult | { readonly duplicate: true }>;
  /** A part that `send` handed over could not be delivered after all. */
  undelivered?(key: string, error: string): void;
  /** Where a file of the home lies: `webhook_subscriptions.json`. */
  homePath?(name: string): string;
  /** A message was changed or deleted where it was written; null: deleted. It is named by its update, or by its chat and its own id. */
  changed(which: string | { readonly chatId: string; readonly messageId: string }, text: string | null): Promise<void>;
  pressed(press: ButtonPress): Promise<void>;
  /**
   * Where the stream was read up to; null at the first connect ever: nothing old is read then. An adapter stores where it begins with
   * `receive([], cursor)` before it reads on: a crash must not make the first messages old ones.
   */
  cursor(): Promise<string | null>;
  /** Chats that have a conversation, for reading what was missed in them. */
  knownChats(): Promise<readonly ChatSource[]>;
  /** Whether somebody may talk to us, asked before a file of theirs is fetched: a stranger leaves no trace. Absent: not known here. */
  allows?(sender: Pick<ChatMessage, "source" | "isBot" | "mentionsUs" | "allowedByRole">): Promise<boolean>;
  /** What a sticker shows is known in words, so that its file is not needed. */
  knowsSticker?(id: string): Promise<boolean>;
  /** Puts bytes of a message into the cache of the home. Rejects with a sentence when there are too many of them. */
  keepFile(bytes: Uint8Array | AsyncIterable<Uint8Array>, about: { readonly name?: string }): Promise<ReceivedFile>;
  /**
   * Downloads a file of a message into the cache. The configured host of the platform (`ownHost`, as in a URL) may lie in a private network,
   * no other and no redirect may. Rejects with a sentence: too large, not reached, refused.
   */
  download(
    url: string,
    about: {
      readonly name?: string;
      readonly headers?: Readonly<Record<string, string>>;
      readonly ownHost?: string;
      readonly maxBytes?: number;
    },
  ): Promise<ReceivedFile>;
  /**
   * A package of the entry's list: `host.package("imapflow", () => import("imapflow"))`. Where it is not beside the program it comes from the
   * home, where `hermes gateway setup` installs it; rejects with a `PlatformError` that says so when it is in neither.
   */
  package<T>(name: string, load: () => Promise<T>): Promise<T>;
  /** For a platform that holds conversations itself, as the API server does: what an agent is opened with. Absent: no agent runs here. */
  readonly program?: { readonly home: OpenHome; readonly store: SessionStore; readonly cwd: string };
  /** The connection is lost; the gateway opens a new adapter after a while. */
  lost(error: PlatformError): void;
}

/** A variable that a person sets up. */
export interface SetupVariable {
  readonly name: string;
  readonly about: string;
  readonly secret?: boolean;
  readonly optional?: boolean;
}

/** How answers look by default, where the settings say nothing. */
export interface DisplayDefaults {
  readonly tool_progress: "off" | "new" | "all" | "verbose";
  readonly streaming: boolean;
  readonly interim_assistant_messages: boolean;
  readonly long_running_notifications: boolean;
  readonly busy_ack_detail: boolean;
}

/** A platform as the gateway knows it. Plain data and small functions: it is loaded for lists and set-up too, so it imports no package. */
export interface PlatformEntry {
  readonly name: string;
  /** In console lines and lists. */
  readonly label: string;
  readonly emoji?: string;
  readonly maxLength: number;
  readonly lengthUnit: "utf16" | "codepoint" | "bytes";
  /** What tells two bots apart, for locks and leases: the token. Null: it is not set up. */
  identity(option: AdapterHost["option"]): string | null;
  /** What has to be set, for `gateway setup` and errors. */
  readonly variables: readonly SetupVariable[];
  /** Where a person gets those: a few lines for `gateway setup`. */
  readonly guide: string;
  /** Keys of `platforms.<name>.extra` that it reads; others are named in a warning. */
  readonly options: readonly string[];
  /** npm packages that `open` imports, with their versions. Absent: none. */
  readonly packages?: Readonly<Record<string, string>>;
  /** Text of a part as it is sent, for measuring: the limit holds for that. */
  format?(markdown: string): string;
  /** Names what is wrong with the settings; null: nothing. */
  check?(option: AdapterHost["option"]): string | null;
  /**
   * Asks the platform who the bot is, before what was typed is kept; null: it cannot be asked without being connected. Rejects with a
   * `PlatformError`: a retryable one says that nobody could be asked. It must not disturb a bot that is connected elsewhere.
   */
  verify?(host: AdapterHost): Promise<string | null>;
  /** A repeat of the same part cannot arrive twice. */
  readonly repeatIsSafe: boolean;
  readonly canEdit: boolean;
  /** While a text is streamed it is shown without a cursor: every edit stays in the history of the platform. */
  readonly withoutCursor?: boolean;
  /** Edits make no sound here: an answer that was streamed for long comes as a new message, and the streamed one goes. */
  readonly freshFinal?: boolean;
  /** False: nothing that is written here can wait for an answer by the person (webhooks). Default true. */
  readonly interactive?: boolean;
  /** Its messages have a subject of their own. */
  readonly hasSubject?: boolean;
  /** It is called and calls nobody: the console names the address alone. */
  readonly listensOnly?: boolean;
  /** Its port is all that it holds: no lock on this machine, the system itself gives a port to one process. */
  readonly ownsPort?: boolean;
  /** What people should know of the settings it is about to start with, a line each. */
  warnings?(option: AdapterHost["option"]): readonly string[];
  /** Its own transport says who writes: signatures, keys. */
  readonly trustsTransport?: boolean;
  /** What is written in a message is a stranger's word, not the user's: a payload. */
  readonly foreignText?: boolean;
  /** Ids of people are masked in the prompt with `privacy.redact_pii`. */
  readonly piiSafe?: boolean;
  readonly display?: Partial<DisplayDefaults>;
  /** How long a text waits for what belongs to it, in seconds: clients split long texts, albums come one by one. Default 0. */
  batchSeconds?(message: ChatMessage): number;
  /** A message that follows so soon after the start of a turn does not interrupt it, in seconds. Default 0. */
  followUpSeconds?(option: AdapterHost["option"]): number;
  /** An explicit id of a chat, as it is written in a target; null: not one of this platform. */
  parseTarget(text: string): ChatTarget | null;
  /** The variable of the home channel; default `<NAME>_HOME_CHANNEL`. */
  readonly homeVariable?: string;
  /** `send` works on an adapter that never connected, so `hermes send` needs no gateway. */
  readonly sendsAlone: boolean;
  /** How a command is typed here, where that is not `/NAME`. */
  commandWord?(name: string): string;
  /** One line about the platform for the prompt of a conversation there, where the prompt has none of its own. */
  readonly hint?: string;
  /** Imports its packages: a missing one rejects with a `PlatformError` that says how to install it. */
  open(host: AdapterHost): Promise<PlatformAdapter>;
}
