// What the bot writes. Discord keeps a nonce for some minutes, so a quick repeat is safe; whatever took longer is looked for in the channel.
import { createHash } from "node:crypto";
import { readFile, stat } from "node:fs/promises";
import { messageOf } from "../../../../kit/errors.ts";
import type { AdapterHost, ChatTarget, ChoiceButton, OutgoingFile, SendOptions, SendResult } from "../../contract.ts";
import { isYes } from "../../groups.ts";
import { CODES, type DiscordApi, sendFailure } from "./api.ts";
import { customId } from "./interactions.ts";
import type { Failure } from "./rest.ts";
import type { FilePart, Mentions, Message, Body as MessageBody } from "./shapes.ts";
import { threadName, timeOf } from "./text.ts";

type Body = MessageBody & { readonly files?: readonly FilePart[] };

const MAX_FILE = 100 * 1024 * 1024;
const BUTTONS_A_ROW = 5;
const MAX_BUTTONS = 25;
const REMEMBERED = 500;
const PAGES = 4;
const PAGE = 50;
/** Our clock and theirs may differ by so much. */
const SKEW_SECONDS = 30;
const DEFAULT_LOOK_SECONDS = 3600;
/** "A few minutes", says Discord. */
const NONCE_SECONDS = 120;
const BUTTON = { primary: 1, secondary: 2, danger: 4 } as const;

export class Sending {
  readonly #host: AdapterHost;
  readonly #discord: DiscordApi;
  /** Own messages as they came back, by their nonce, and the other way round. */
  readonly #arrived = new Map<string, string>();
  readonly #nonces = new Map<string, string>();
  /** Parts of which nobody knows whether they arrived, with the time of the first attempt in milliseconds. */
  readonly #doubts = new Map<string, number>();

  constructor(host: AdapterHost, discord: DiscordApi) {
    this.#host = host;
    this.#discord = discord;
  }

  send(target: ChatTarget, text: string, { key }: SendOptions): Promise<SendResult> {
    return this.#create(target, key, text, { content: text });
  }

  sendFile(target: ChatTarget, file: OutgoingFile, options: SendOptions): Promise<SendResult> {
    return this.sendAlbum(target, [file], options);
  }

  async sendAlbum(target: ChatTarget, files: readonly OutgoingFile[], { key }: SendOptions): Promise<SendResult> {
    let read = "";
    try {
      const parts = [];
      for (const { name, path } of files) {
        read = name;
        const { size } = await stat(path);
        if (size > MAX_FILE) return { failed: "refused", error: `${name} is larger than Discord takes (100 MB)` };
        parts.push({ name: cleanName(name), data: await readFile(path) });
      }
      const caption = files.flatMap((file) => file.caption ?? []).join("\n");
      const body = {
        ...(caption ? { content: caption } : {}),
        attachments: parts.map(({ name }, at) => ({ id: String(at), filename: name })),
        files: parts,
      };
      return await this.#create(target, key, fileText(files[0]?.name ?? ""), body);
    } catch (error) {
      return { failed: "refused", error: `${read} cannot be read: ${messageOf(error)}` };
    }
  }

  /** Without buttons, in plain text, when Discord cannot take them. */
  async ask(
    target: ChatTarget,
    text: string,
    question: { readonly id: string; readonly buttons: readonly ChoiceButton[] },
    { key }: SendOptions,
  ): Promise<SendResult> {
    const ids = question.buttons.map(({ choice }) => customId(question.id, choice));
    if (ids.length === 0 || ids.length > MAX_BUTTONS || ids.includes(null))
      return { failed: "format", error: "these choices do not fit on Discord's buttons" };
    const buttons = question.buttons.map(({ label, choice }, at) => ({
      type: 2 as const,
      style: /^(?:deny|cancel|no)$/i.test(choice) ? BUTTON.danger : at === 0 ? BUTTON.primary : BUTTON.secondary,
      label: [...label].slice(0, 80).join(""),
      custom_id: ids[at] ?? "", // as many as there are buttons
    }));
    const rows = Array.from({ length: Math.ceil(buttons.length / BUTTONS_A_ROW) }, (_, row) => ({
      type: 1 as const,
      components: buttons.slice(row * BUTTONS_A_ROW, (row + 1) * BUTTONS_A_ROW),
    }));
    return this.#create(target, key, text, { content: text, components: rows });
  }

  async edit(
    target: ChatTarget,
    messageId: string,
    text: string,
    options: SendOptions & { final: boolean },
  ): Promise<SendResult> {
    const channel = channelOf(target);
    const body = { content: text, allowed_mentions: this.#mentions() };
    const result = await this.#discord.ask((limit) => this.#discord.api.editMessage(channel, messageId, body, limit));
    if ("value" in result) return { messageId };
    const { failure } = result;
    // Somebody deleted the half answer; its end would be lost with it.
    if (isCode(failure, CODES.unknownMessage) && options.final) return this.send(target, text, options);
    return sendFailure(failure, target);
  }

  async closeQuestion(target: ChatTarget, messageId: string, text: string): Promise<void> {
    const body = { content: text, components: [], allowed_mentions: this.#mentions() };
    await this.#discord.ask((limit) => this.#discord.api.editMessage(channelOf(target), messageId, body, limit));
  }

  /** A message of ours came back over the socket: it arrived, whatever the answer to the request was. */
  echoed({ id, nonce }: Pick<Message, "id" | "nonce">): void {
    if (nonce !== undefined) this.#remember(String(nonce), id);
  }

  async findSent(target: ChatTarget, key: string, text: string, since?: number): Promise<string | null | undefined> {
    const channel = channelOf(target);
    const nonce = nonceOf(channel, key, text);
    const echoed = this.#arrived.get(nonce);
    if (echoed !== undefined) return echoed;
    const now = this.#host.clock.now() / 1000;
    const first = this.#doubts.get(nonce);
    const from = (first === undefined ? (since ?? now - DEFAULT_LOOK_SECONDS) : first / 1000) - SKEW_SECONDS;
    try {
      const self = await this.#discord.selfId();
      for await (const message of this.#history(channel, from)) {
        const isOther = (this.#nonces.get(message.id) ?? nonce) !== nonce;
        if (message.author.id === self && !isOther && isSame(message, text)) return message.id;
      }
      return null;
    } catch (error) {
      this.#host.log.warn(`cannot look for a sent message in the channel ${channel}: ${messageOf(error)}`);
      // While Discord remembers the nonce a repeat is as good as a look.
      return now - from < NONCE_SECONDS ? null : undefined;
    }
  }

  /** Newest first, as far back as the time. */
  async *#history(channel: string, from: number): AsyncGenerator<Message> {
    let before: string | undefined;
    for (let page = 0; page < PAGES; page++) {
      const query = { limit: PAGE, ...(before === undefined ? {} : { before }) };
      const messages = await this.#discord.read((limit) => this.#discord.api.messages(channel, query, limit));
      for (const message of messages) {
        if (timeOf(message.id) / 1000 < from) return;
        yield message;
      }
      before = messages.at(-1)?.id;
      if (messages.length < PAGE) return;
    }
  }

  async #create(target: ChatTarget, key: string, text: string, body: Body): Promise<SendResult> {
    const channel = channelOf(target);
    const nonce = nonceOf(channel, key, text);
    if (this.#doubts.has(nonce)) {
      const found = await this.findSent(target, key, text);
      if (typeof found === "string") return this.#settled(nonce, found);
      if (found === undefined) return { failed: "unreachable", error: "the channel cannot be read" };
    }
    const request = {
      ...body,
      nonce,
      enforce_nonce: true,
      allowed_mentions: this.#mentions(),
      ...replyReference(target),
    };
    const began = this.#host.clock.now();
    const result = await this.#discord.ask((limit) => this.#discord.api.createMessage(channel, request, limit), {
      withFile: body.files !== undefined,
    });
    if ("value" in result) return this.#settled(nonce, result.value.id);
    const { failure } = result;
    if (isCode(failure, CODES.notText) && target.threadId === undefined) return this.#post(target, text, body);
    // A 502 is an answer of somebody in between: behind it the message may have arrived.
    const isOpen = failure.type === "no_answer" || (failure.type === "answered" && failure.status >= 500);
    if (isOpen && !this.#doubts.has(nonce)) keepNewest(this.#doubts.set(nonce, began));
    return sendFailure(failure, target);
  }

  /** A forum holds no messages of its own: a text becomes a post. */
  async #post(target: ChatTarget, text: string, body: Body): Promise<SendResult> {
    const message = { ...body, allowed_mentions: this.#mentions() };
    const result = await this.#discord.ask(
      (limit) => this.#discord.api.openPost(target.chatId, threadName(text, "Hermes"), message, limit),
      { withFile: body.files !== undefined },
    );
    return "value" in result ? { messageId: result.value.id } : sendFailure(result.failure, target);
  }

  #settled(nonce: string, messageId: string): SendResult {
    this.#doubts.delete(nonce);
    this.#remember(nonce, messageId);
    return { messageId };
  }

  #remember(nonce: string, messageId: string): void {
    keepNewest(this.#arrived.set(nonce, messageId));
    keepNewest(this.#nonces.set(messageId, nonce));
  }

  /** Who may be notified by what the agent writes. Read each time: the settings may have changed. */
  #mentions(): Mentions {
    const may = (what: string, fallback: boolean) =>
      isYes(this.#host.option(`allow_mention_${what}`, `DISCORD_ALLOW_MENTION_${what.toUpperCase()}`), fallback);
    const parse = [
      ...(may("everyone", false) ? (["everyone"] as const) : []),
      ...(may("roles", false) ? (["roles"] as const) : []),
      ...(may("users", true) ? (["users"] as const) : []),
    ];
    return { parse, replied_user: may("replied_user", true) };
  }
}

function keepNewest(map: Map<string, unknown>): void {
  const [oldest] = map.keys();
  if (map.size > REMEMBERED && oldest !== undefined) map.delete(oldest);
}

export const channelOf = ({ chatId, threadId }: ChatTarget) => threadId ?? chatId;

/** A thread that was opened below a message has its id; the message itself lies in the channel above and cannot be answered from inside. */
function replyReference({ replyTo, threadId }: ChatTarget): Pick<Body, "message_reference"> {
  if (replyTo === undefined || replyTo === threadId || !/^\d{1,20}$/.test(replyTo)) return {};
  return { message_reference: { message_id: replyTo, fail_if_not_exists: false } };
}

/** Made from the text too: the key of another home must not meet ours. */
export function nonceOf(channel: string, key: string, text: string): string {
  return createHash("sha256")
    .update(JSON.stringify([channel, key, text]))
    .digest("base64url")
    .slice(0, 25);
}

const fileText = (name: string) => `[file: ${name}]`;

/** The history has no nonces: the text tells, of a file its name. Discord trims texts. */
function isSame({ content, attachments }: Message, text: string): boolean {
  const wanted = text.trim();
  if (content === wanted || content === `(recovered) ${wanted}`) return true;
  return attachments.some(({ filename }) => fileText(filename) === fileText(fileNameIn(wanted)));
}

const fileNameIn = (text: string) => (text.startsWith("[file: ") ? cleanName(text.slice("[file: ".length, -1)) : "");

/** As Discord would write it, so that it is found again under the name it was sent with. */
const cleanName = (name: string) => name.replace(/[^\p{L}\p{N}._-]/gu, "_");

const isCode = (failure: Failure, code: number) => failure.type === "answered" && failure.code === code;
