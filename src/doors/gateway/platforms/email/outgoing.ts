// Mails that leave. What a failure says about the mail is kept apart: before its last byte nothing was accepted, after it nobody knows.
import type { Logger } from "nodemailer/lib/shared";
import { codeOf, messageOf } from "../../../../kit/errors.ts";
import {
  type AdapterHost,
  type ChatTarget,
  type OutgoingFile,
  PlatformError,
  type SendOptions,
  type SendResult,
} from "../../contract.ts";
import type { MailSettings } from "./entry.ts";
import { isMessageId, messageIdFor, replySubject, subjectFrom } from "./threads.ts";

/** What is known of a thread: enough to answer in it. */
interface MailThread {
  readonly subject: string;
  /** Oldest first; the last is what an answer answers. */
  readonly ids: readonly string[];
}

const KNOWN_THREADS = 1000;
const KEPT_IDS = 10;
const SECONDS = 30;

export class Outgoing {
  readonly #host: AdapterHost;
  readonly #settings: MailSettings;
  readonly #threads = new Map<string, MailThread>();

  constructor(host: AdapterHost, settings: MailSettings) {
    this.#host = host;
    this.#settings = settings;
  }

  /** A mail came in: answers to its thread begin behind it. */
  remember(chatId: string, threadId: string | undefined, thread: MailThread): void {
    const key = `${chatId} ${threadId}`;
    this.#threads.delete(key);
    this.#threads.set(key, thread);
    const [oldest] = this.#threads.keys();
    if (this.#threads.size > KNOWN_THREADS && oldest !== undefined) this.#threads.delete(oldest);
  }

  async send(target: ChatTarget, text: string, options: SendOptions, file?: OutgoingFile): Promise<SendResult> {
    const { address, name } = this.#settings;
    const messageId = messageIdFor(options.key, address, target.threadId);
    const thread = await this.#threadOf(target);
    const ids = [...new Set([...(thread?.ids ?? []), ...(isMessageId(target.replyTo) ? [target.replyTo] : [])])];
    const answered = isMessageId(target.replyTo) ? target.replyTo : ids.at(-1);
    const said = options.subject?.replace(/\s+/g, " ").trim();
    const subject = said || (thread ? replySubject(thread.subject || "(no subject)") : subjectFrom(text));
    const mail = {
      from: { name, address },
      to: { name: "", address: target.chatId },
      ...{ messageId, subject, text },
      ...(answered === undefined ? {} : { inReplyTo: answered, references: shortened(ids) }),
      // Programs that answer by themselves leave such a mail alone, and so do we.
      headers: { "Auto-Submitted": answered === undefined ? "auto-generated" : "auto-replied" },
      ...(file ? { attachments: [{ path: file.path, filename: file.name }] } : {}),
      disableUrlAccess: true,
    };
    let hasLeft = false;
    try {
      const { createTransport } = await this.#host.package("nodemailer", () => import("nodemailer"));
      // One for each mail: a connection serves one mail, and this one says when all of it was written.
      await createTransport({ ...connection(this.#settings), logger: onWritten(() => (hasLeft = true)) }).sendMail(
        mail,
      );
      return { messageId };
    } catch (error) {
      return failureOf(error, { host: this.#settings.smtp.host, hasLeft });
    }
  }

  /** From memory, or from what the store keeps of the conversation. */
  async #threadOf({ chatId, threadId }: ChatTarget): Promise<MailThread | undefined> {
    const known = this.#threads.get(`${chatId} ${threadId}`);
    if (known || threadId === undefined) return known;
    const chats = await this.#host.knownChats();
    const source = chats.find((one) => one.chat_id === chatId && one.thread_id === threadId);
    if (!source) return undefined;
    return { subject: source.chat_topic ?? "", ids: isMessageId(source.message_id) ? [source.message_id] : [] };
  }
}

/** Logs in where mail is handed in, and hands nothing in. Rejects with a `PlatformError`. */
export async function trySending(host: AdapterHost, settings: MailSettings): Promise<void> {
  const { createTransport } = await host.package("nodemailer", () => import("nodemailer"));
  const place = `${settings.smtp.host}:${settings.smtp.port}`;
  const isRefused = (error: unknown) => /^E(?:NO)?AUTH$/.test(codeOf(error) ?? "");
  await createTransport(connection(settings))
    .verify()
    .catch((error: unknown) => {
      const why = isRefused(error) ? "refused the login" : `cannot be reached: ${messageOf(error)}`;
      const hint = isRefused(error) ? "; check EMAIL_ADDRESS, EMAIL_PASSWORD and EMAIL_SMTP_HOST" : "";
      const about = { retryable: !isRefused(error), cause: error };
      throw new PlatformError(isRefused(error) ? "auth" : "connection", `${place} ${why}${hint}`, about);
    });
}

function connection({ smtp, address, password }: MailSettings) {
  const { host, port, security } = smtp;
  return {
    ...{ host, port },
    ...{ secure: security === "tls", requireTLS: security === "starttls", ignoreTLS: security === "none" },
    auth: { user: address, pass: password },
    ...{ connectionTimeout: SECONDS * 1000, greetingTimeout: SECONDS * 1000, socketTimeout: 2 * SECONDS * 1000 },
  };
}

/** nodemailer tells by its log alone that the last byte of a mail was handed to the socket. */
function onWritten(written: () => void): Logger {
  const ignore = () => undefined;
  const info = (entry: unknown) => {
    if (typeof entry === "object" && entry !== null && "tnx" in entry && entry.tnx === "message") written();
  };
  return { trace: ignore, debug: ignore, info, warn: ignore, error: ignore, fatal: ignore };
}

/** The first id names the thread, the last ones tell a reader's program where to hang the mail. */
const shortened = (ids: readonly string[]) =>
  ids.length <= KEPT_IDS ? [...ids] : [...ids.slice(0, 1), ...ids.slice(1 - KEPT_IDS)];

function failureOf(error: unknown, { host, hasLeft }: { host: string; hasLeft: boolean }): SendResult {
  const { responseCode = 0 } = error as { readonly responseCode?: number }; // what nodemailer adds to its errors
  const code = codeOf(error) ?? "";
  const text = `${host}: ${messageOf(error)}`;
  if (code === "EAUTH" || code === "ENOAUTH") return { failed: "unreachable", error: text };
  if (responseCode >= 500) return { failed: "refused", error: text };
  if (responseCode >= 400) return { failed: "unreachable", error: text };
  if (hasLeft) return { failed: "unknown", error: `${text}; the mail was handed over and its receipt did not come` };
  // A file that cannot be read, an address that is none, a mail larger than the server takes.
  if (UNSENDABLE.has(code)) return { failed: "refused", error: messageOf(error) };
  return { failed: "unreachable", error: text };
}

const UNSENDABLE = new Set("ENOENT EACCES EISDIR EFILEACCESS ESTREAM EENVELOPE EMESSAGE".split(" "));
