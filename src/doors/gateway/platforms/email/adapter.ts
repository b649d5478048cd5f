// One mailbox. New mail is announced by the server (IDLE) or looked for; where it was read up to moves when the mail is stored.
//
// The chat is the address of the writer, so that a target is simply an address and access is one list of addresses; the thread is the thread
// of mails, so that two matters with one person are two conversations.
import { createHash } from "node:crypto";
import type { ImapFlow, ImapFlowOptions } from "imapflow";
import type { Attachment, Email } from "postal-mime";
import { joinSignals } from "../../../../kit/clock.ts";
import { codeOf, messageOf } from "../../../../kit/errors.ts";
import type { ChatSource } from "../../chat.ts";
import {
  type AdapterHost,
  type ChatMessage,
  type ChatTarget,
  type OutgoingFile,
  type PlatformAdapter,
  PlatformError,
  type ReceivedFile,
  type SendOptions,
} from "../../contract.ts";
import { channelSettings } from "../../groups.ts";
import { type MailSettings, mailSettings } from "./entry.ts";
import { type ReadMail, readMail } from "./incoming.ts";
import { Outgoing } from "./outgoing.ts";
import { messageIdFor } from "./threads.ts";

const MAX_MAIL_BYTES = 50 * 1024 * 1024;
/** Enough for the head and the text of a mail that is too large to be read whole. */
const BEGINNING_BYTES = 256 * 1024;
const CONNECT_SECONDS = 30;
/** Also where the server announces mail: a line that is dead looks like one where nothing happens. */
const LOOK_SECONDS = 120;
export async function openEmail(host: AdapterHost): Promise<PlatformAdapter> {
  return new EmailAdapter(host, mailSettings(host.option));
}

/** Where the mailbox was read up to: numbers of mails hold for one value of UIDVALIDITY. */
interface Position {
  readonly validity: string;
  readonly uid: number;
  /** When that mail arrived by the server's clock, in Unix seconds; mail is found by it after all numbers changed. */
  readonly at: number;
}

class EmailAdapter implements PlatformAdapter {
  readonly account: string;
  readonly #host: AdapterHost;
  readonly #settings: MailSettings;
  readonly #outgoing: Outgoing;
  readonly #over = new AbortController();
  #client: ImapFlow | null = null;
  #arrived = Promise.withResolvers<void>();
  #isLost = false;

  constructor(host: AdapterHost, settings: MailSettings) {
    this.#host = host;
    this.#settings = settings;
    this.account = settings.address;
    this.#outgoing = new Outgoing(host, settings);
  }

  async connect(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    signal.addEventListener("abort", () => this.disconnect(), { once: true });
    const client = await this.#openImap();
    this.#client = client;
    try {
      await client.connect();
      await client.mailboxOpen("INBOX");
      client.on("exists", () => this.#arrived.resolve());
      await this.#catchUp(client);
    } catch (error) {
      client.close();
      throw this.#problem(error);
    }
    client.on("close", () => this.#lose(new Error("the server closed the connection")));
    this.#watch(client).catch((error) => this.#lose(error));
  }

  async disconnect(): Promise<void> {
    this.#over.abort();
    this.#client?.close();
  }

  send(target: ChatTarget, text: string, options: SendOptions) {
    return this.#outgoing.send(target, text, options);
  }

  sendFile(target: ChatTarget, file: OutgoingFile, options: SendOptions) {
    return this.#outgoing.send(target, file.caption ?? file.name, options, file);
  }

  /** Many servers put what is sent into a folder; that it is not there proves nothing. */
  async findSent(target: ChatTarget, key: string): Promise<string | undefined> {
    const messageId = messageIdFor(key, this.account, target.threadId);
    const client = await this.#openImap();
    try {
      await client.connect();
      const folders = (await client.list()).filter(({ specialUse = "" }) => ["\\Sent", "\\All"].includes(specialUse));
      for (const { path } of folders) {
        await client.mailboxOpen(path, { readOnly: true });
        const found = await client.search({ header: { "message-id": messageId } }, { uid: true });
        if (found && found.length > 0) return messageId;
      }
      return undefined;
    } finally {
      client.close();
    }
  }

  async #openImap(): Promise<ImapFlow> {
    const { ImapFlow: Client } = await this.#host.package("imapflow", () => import("imapflow"));
    const { imap, address, password } = this.#settings;
    const options: ImapFlowOptions = {
      ...{ host: imap.host, port: imap.port, secure: imap.security === "tls" },
      ...(imap.security === "tls" ? {} : { doSTARTTLS: imap.security === "starttls" }),
      auth: { user: address, pass: password },
      // Left to itself it waits before it listens.
      ...{ logger: false, disableAutoIdle: true },
      ...{ connectionTimeout: CONNECT_SECONDS * 1000, greetingTimeout: CONNECT_SECONDS * 1000 },
      maxLiteralSize: MAX_MAIL_BYTES * 2,
    };
    const client = new Client(options);
    // Without a listener it would end the process; the call that fails says the same.
    client.on("error", (error) => this.#host.log.debug("imap", error));
    return client;
  }

  async #watch(client: ImapFlow): Promise<void> {
    const { signal } = this.#over;
    while (!signal.aborted) {
      const announces = client.capabilities.has("IDLE");
      // Runs until the next command; what ends it otherwise ends the connection too.
      if (announces) client.idle().catch((error) => this.#host.log.debug("the server stopped announcing mail", error));
      const { pollSeconds } = this.#settings;
      await this.#pause(announces ? Math.max(LOOK_SECONDS, pollSeconds) : pollSeconds);
      // A server that announces nothing tells what is new when it is asked.
      if (!signal.aborted && !announces) await client.noop();
      if (!signal.aborted) await this.#catchUp(client);
    }
  }

  /** Until mail is announced, it is time to look, or all is over. */
  async #pause(seconds: number): Promise<void> {
    const pause = new AbortController();
    const over = joinSignals(pause.signal, this.#over.signal);
    const time = this.#host.clock.sleep(seconds * 1000, over.signal).catch(() => undefined);
    await Promise.race([this.#arrived.promise, time]);
    pause.abort();
    over.release();
  }

  /** Everything that came since the last look, in order. */
  async #catchUp(client: ImapFlow): Promise<void> {
    this.#arrived = Promise.withResolvers();
    const { mailbox } = client;
    if (!mailbox) throw new Error("the mailbox is not open");
    const validity = String(mailbox.uidValidity);
    const position = parsePosition(await this.#host.cursor());
    if (position === null) {
      await this.#store([], positionAt(validity, mailbox.uidNext - 1, this.#now));
      return;
    }
    const uids = await this.#newSince(client, position, validity);
    for (const uid of uids) {
      if (this.#over.signal.aborted) return;
      await this.#take(client, uid, validity);
    }
    if (uids.length === 0 && position.validity !== validity)
      await this.#store([], positionAt(validity, mailbox.uidNext - 1, this.#now));
  }

  async #newSince(client: ImapFlow, position: Position, validity: string): Promise<readonly number[]> {
    if (position.validity === validity) {
      const found = await client.search({ uid: `${position.uid + 1}:*` }, { uid: true });
      // `N:*` names the last mail also when its number is below N.
      return (found || []).filter((uid) => uid > position.uid).sort((a, b) => a - b);
    }
    this.#host.log.warn("the mailbox was renumbered; mail is looked for by its time once");
    const since = new Date(position.at * 1000);
    const found = await client.search({ since }, { uid: true });
    const recent: number[] = [];
    for (const uid of (found || []).sort((a, b) => a - b)) {
      const about = await client.fetchOne(String(uid), { internalDate: true }, { uid: true });
      if (about && new Date(about.internalDate ?? 0) >= since) recent.push(uid);
    }
    return recent;
  }

  /** One mail into the store, and the position with it. A mail that cannot be read does not stop those behind it. */
  async #take(client: ImapFlow, uid: number, validity: string): Promise<void> {
    const about = await client.fetchOne(String(uid), { size: true, internalDate: true }, { uid: true });
    if (!about) return; // deleted since it was found
    const { size = 0, internalDate } = about;
    const arrived = new Date(internalDate ?? "").getTime();
    const at = Number.isFinite(arrived) ? Math.floor(arrived / 1000) : this.#now;
    const isWhole = size <= MAX_MAIL_BYTES;
    const source = isWhole ? true : { start: 0, maxLength: BEGINNING_BYTES };
    const fetched = await client.fetchOne(String(uid), { source }, { uid: true });
    const bytes = fetched ? fetched.source : undefined;
    const message = bytes ? await this.#read(bytes, { uid, isWhole, size, at }) : null;
    await this.#store(message ? [message] : [], positionAt(validity, uid, at));
    if (!message) return;
    await client
      .messageFlagsAdd(String(uid), ["\\Seen"], { uid: true })
      .catch((error) => this.#host.log.debug("a mail could not be marked as read", error));
  }

  async #read(
    bytes: Buffer,
    about: { uid: number; isWhole: boolean; size: number; at: number },
  ): Promise<ChatMessage | null> {
    const { log, option } = this.#host;
    const { address, authServer } = this.#settings;
    let parsed: Email;
    let mail: ReadMail;
    try {
      const { default: PostalMime } = await this.#host.package("postal-mime", () => import("postal-mime"));
      parsed = await PostalMime.parse(bytes, { forceRfc822Attachments: true });
      mail = readMail(parsed, { address, authServer });
    } catch (error) {
      log.error(`mail ${about.uid} cannot be read and is left out`, error);
      return null;
    }
    if (mail.type === "skipped") {
      log.info(`mail ${about.uid} is left out: ${mail.reason}`);
      return null;
    }
    const { from, threadId, messageId, subject } = mail;
    const source: ChatSource = {
      ...{ platform: "email", chat_id: from, chat_type: "dm", user_id: from, user_name: mail.name ?? from },
      ...{ chat_name: mail.name ?? from, chat_topic: subject || undefined, thread_id: threadId },
      message_id: messageId ?? undefined,
    };
    const isKnown = (await this.#host.allows?.({ source, mentionsUs: true })) ?? true;
    const { files, notes } = about.isWhole
      ? await this.#keepFiles(isKnown ? parsed.attachments : [])
      : { files: [], notes: [`[the mail is ${megabytes(about.size)} MB; only its beginning was read]`] };
    const ids = messageId ? [...mail.references, messageId] : mail.references;
    this.#outgoing.remember(from, threadId, { subject, ids });
    const text = [mail.text, ...notes].filter((line) => line !== "").join("\n\n");
    const fallback = mail.context || files.length > 0 ? "" : "(the mail has no text)";
    return {
      ...{ text: text || subject || fallback, type: typeOf(files), source, mentionsUs: true, sentAt: about.at },
      updateId: createHash("sha256")
        .update(`${from}\n${messageId ?? `${about.at}\n${mail.text}`}`)
        .digest("hex"),
      messageId: messageId ?? undefined,
      ...(files.length > 0 ? { files } : {}),
      ...(mail.context ? { context: mail.context } : {}),
      ...channelSettings([from], option),
    };
  }

  async #keepFiles(attachments: readonly Attachment[]) {
    const files: ReceivedFile[] = [];
    const notes: string[] = [];
    for (const { filename, mimeType, content } of attachments) {
      const name = filename ?? (mimeType === "message/rfc822" ? "mail.eml" : undefined);
      const bytes = typeof content === "string" ? Buffer.from(content) : new Uint8Array(content);
      try {
        files.push(await this.#host.keepFile(bytes, name === undefined ? {} : { name }));
      } catch (error) {
        notes.push(`[${name ?? mimeType}, ${megabytes(bytes.length)} MB: ${messageOf(error)}]`);
      }
    }
    return { files, notes };
  }

  async #store(messages: readonly ChatMessage[], cursor: string): Promise<void> {
    try {
      await this.#host.receive(messages, cursor);
    } catch (error) {
      const about = { retryable: true, cause: error };
      throw new PlatformError("store", `a mail could not be stored: ${messageOf(error)}`, about);
    }
  }

  get #now(): number {
    return Math.floor(this.#host.clock.now() / 1000);
  }

  #lose(error: unknown): void {
    if (this.#isLost || this.#over.signal.aborted) return;
    this.#isLost = true;
    this.#over.abort();
    this.#client?.close();
    this.#host.lost(this.#problem(error));
  }

  #problem(error: unknown): PlatformError {
    if (error instanceof PlatformError) return error;
    const { host, port } = this.#settings.imap;
    const place = `${host}:${port}`;
    if (typeof error === "object" && error !== null && "authenticationFailed" in error && error.authenticationFailed)
      return new PlatformError(
        "auth",
        `${place} refused the login of ${this.account}; check EMAIL_ADDRESS and EMAIL_PASSWORD`,
        { retryable: false, cause: error },
      );
    if (/CERT|SELF_SIGNED|ERR_TLS/.test(codeOf(error) ?? ""))
      return new PlatformError(
        "tls",
        `${place} has a certificate that is not trusted (${codeOf(error)}); check EMAIL_IMAP_HOST, or add the certificate to NODE_EXTRA_CA_CERTS`,
        { retryable: false, cause: error },
      );
    return new PlatformError("connection", `${place} cannot be reached: ${messageOf(error)}`, {
      retryable: true,
      cause: error,
    });
  }
}

const positionAt = (validity: string, uid: number, at: number) => `${validity}:${Math.max(0, uid)}:${at}`;

function parsePosition(cursor: string | null): Position | null {
  const [, validity, uid, at] = /^(\d+):(\d+):(\d+)$/.exec(cursor ?? "") ?? [];
  return validity === undefined ? null : { validity, uid: Number(uid), at: Number(at) };
}

const megabytes = (bytes: number) => (bytes / 1024 / 1024).toFixed(1);

function typeOf([first]: readonly ReceivedFile[]): ChatMessage["type"] {
  if (!first) return "text";
  const [kind] = first.mediaType.split("/");
  return kind === "image" ? "photo" : kind === "video" || kind === "audio" ? kind : "document";
}
