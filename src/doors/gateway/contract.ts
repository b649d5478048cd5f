// What a platform owes the gateway, and what it is handed. A platform is a folder in platforms/ with one entry that registers itself; nothing
// outside its folder knows its name.
import type { Logger } from "../../home/log.ts";
import type { Clock } from "../../kit/clock.ts";
import type { ChatSource } from "./chat.ts";

type MessageType = "text" | "location" | "photo" | "video" | "audio" | "voice" | "document" | "sticker" | "command";

/** A file that came with a message, already in the cache of the home. */
interface ReceivedFile {
  readonly path: string;
  /** By its first bytes, not by its name. */
  readonly mediaType: string;
  readonly name?: string | undefined;
}

/** What somebody wrote, in the words of every platform. Plain data: it waits in the store as it is. */
interface ChatMessage {
  readonly text: string;
  readonly type: MessageType;
  readonly source: ChatSource;
  /** What makes a repeated delivery a duplicate; where a platform has none, made from chat, sender, time and text. */
  readonly updateId: string;
  readonly messageId?: string | undefined;
  readonly files?: readonly ReceivedFile[] | undefined;
  readonly replyTo?: { readonly messageId: string; readonly text?: string | undefined } | undefined;
  /** Unix seconds by the platform's clock. */
  readonly sentAt: number;
  readonly isBot?: boolean | undefined;
  readonly mentionsUs?: boolean | undefined;
  /** Messages around it that are only context. */
  readonly context?: string | undefined;
}

/** Somebody pressed a button under a question. */
interface ButtonPress {
  readonly source: ChatSource;
  /** As it was handed to `ask`. */
  readonly choice: string;
  readonly questionId: string;
  readonly messageId?: string | undefined;
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

interface SendOptions {
  /** The same for every repeat of a part: what a platform's own protection against doubles is given. */
  readonly key: string;
  /** Worth a sound: the end of an answer, a question. */
  readonly important?: boolean | undefined;
  /** As plain text: the format was refused. */
  readonly plain?: boolean | undefined;
}

interface ChoiceButton {
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
 *   received or sent any more.
 * - What comes in goes to `host.receive`, which resolves when it is stored: only then the platform is told that it arrived.
 * - `send` never throws for what network or platform did. Text is Markdown of one part that fits; the adapter formats it.
 * - Optional methods degrade: without `edit` nothing is streamed, without `sendFile` a file is named by a line of text.
 */
export interface PlatformAdapter {
  /** How the platform calls this bot, for people. */
  readonly account: string;
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
  /** A question with buttons below it. */
  ask?(
    target: ChatTarget,
    text: string,
    question: { readonly id: string; readonly buttons: readonly ChoiceButton[] },
    options: SendOptions,
  ): Promise<SendResult>;
  /** Shows that somebody is at work, for a few seconds. */
  typing?(target: ChatTarget): Promise<void>;
  /** Whether a part arrived, by the history of the platform; null when it did not, undefined when that cannot be told. */
  findSent?(target: ChatTarget, key: string, text: string): Promise<string | null | undefined>;
  /** Chats it could write to, for the directory. */
  chats?(): Promise<readonly { readonly id: string; readonly name: string; readonly type: string }[]>;
  /** The commands of the registry, for menus. */
  setCommands?(commands: readonly { readonly name: string; readonly description: string }[]): Promise<void>;
}

/** A platform that cannot be reached or refuses us. */
class PlatformError extends Error {
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
interface AdapterHost {
  readonly clock: Clock;
  readonly log: Logger;
  /** A setting of `platforms.<name>.extra`, or the variable that wins over it. */
  option(key: string, variable?: string): unknown;
  /** Stores messages and where the stream of updates is read up to. Resolves when that is on disk; a duplicate costs nothing. */
  receive(messages: readonly ChatMessage[], cursor?: string): Promise<void>;
  /** A message was changed or deleted where it was written; null: deleted. */
  changed(updateId: string, text: string | null): Promise<void>;
  pressed(press: ButtonPress): Promise<void>;
  /** Where the stream was read up to; null at the first connect ever: nothing old is read then. */
  cursor(): Promise<string | null>;
  /** A place in the cache for something to download. */
  cacheFile(kind: "images" | "audio" | "videos" | "documents", extension: string): Promise<string>;
  /** The connection is lost; the gateway connects again. */
  lost(error: PlatformError): void;
}

/** A platform as the gateway knows it. */
export interface PlatformEntry {
  readonly name: string;
  /** In console lines and lists. */
  readonly label: string;
  readonly maxLength: number;
  readonly lengthUnit: "utf16" | "codepoint" | "bytes";
  /** What tells two bots apart, for locks and leases: the token. Null: it is not set up. */
  identity(option: AdapterHost["option"]): string | null;
  /** What has to be set, for `gateway setup` and errors. */
  readonly requires: readonly string[];
  /** How the text of a part is measured: as it is sent. */
  format?(markdown: string): string;
  /** Names what is wrong with the settings; null: nothing. */
  check?(option: AdapterHost["option"]): string | null;
  /** A repeat of the same part cannot arrive twice. */
  readonly repeatIsSafe: boolean;
  readonly canEdit: boolean;
  readonly trustsTransport?: boolean;
  /** One line about the platform for the prompt of a conversation there. */
  readonly hint?: string;
  /** Loads packages of its own: a missing one rejects with a `PlatformError` that says how to install it. */
  open(host: AdapterHost): Promise<PlatformAdapter>;
}
