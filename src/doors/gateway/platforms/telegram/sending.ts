// What goes out: texts, edits, files, questions with buttons, and the menu of commands.
import { stat } from "node:fs/promises";
import { extname } from "node:path";
import type {
  AdapterHost,
  ChatTarget,
  ChoiceButton,
  OutgoingFile,
  PlatformAdapter,
  SendOptions,
  SendResult,
} from "../../contract.ts";
import { isYes } from "../../groups.ts";
import { splitMessage } from "../../split.ts";
import { CallError, type Calls, failureOf, Upload } from "./calls.ts";
import { addressesOf } from "./entry.ts";
import { toMarkdownV2 } from "./markdown.ts";

/** The topic that every forum has. It is written to without a thread. */
export const GENERAL = "1";

const MAX_TEXT = 4096;
const MAX_CAPTION = 1024;
const MAX_PLAIN = 3500;
const MB = 1024 * 1024;
const MOST_BYTES = 50 * MB;
const MOST_BYTES_OWN = 2000 * MB;
const MOST_BYTES_PHOTO = 10 * MB;
const UPLOAD_SECONDS = 600;
const TYPING_SECONDS = 10;
/** A streamed text that has to wait longer than this is left for the next one. */
const EDIT_WAIT_SECONDS = 5;
const EDIT_TRIES = 3;

type Sending = Pick<
  PlatformAdapter,
  "send" | "edit" | "remove" | "sendFile" | "sendAlbum" | "ask" | "closeQuestion" | "typing" | "mark" | "setCommands"
>;
type Other = Readonly<Record<string, unknown>>;
/** A method and its parameters, but for the chat. */
type Sent = readonly [method: string, parameters: Other];
interface Arrived {
  readonly message_id: number;
}

export class Sender implements Sending {
  readonly #host: AdapterHost;
  readonly #calls: Calls;

  constructor(host: AdapterHost, calls: Calls) {
    this.#host = host;
    this.#calls = calls;
  }

  async send(target: ChatTarget, text: string, options: SendOptions): Promise<SendResult> {
    return this.#sendText(target, text, options, {});
  }

  /** The cursor of a stream and half a mark would be refused as formatting: only the last edit is formatted. */
  async edit(
    target: ChatTarget,
    messageId: string,
    text: string,
    options: SendOptions & { final: boolean },
  ): Promise<SendResult> {
    const { body, mode } = written(text, !options.final || options.plain === true);
    const about = { message_id: Number(messageId), text: body, ...mode, ...this.#previews() };
    for (let tries = 1; ; tries++) {
      const result = await this.#attempt(target, ["editMessageText", about]);
      if (!("failed" in result)) return { messageId };
      if (/message is not modified/i.test(result.error)) return { messageId };
      const { failed, retryAfter = 0 } = result;
      if (failed !== "rate_limited" || retryAfter > EDIT_WAIT_SECONDS || tries === EDIT_TRIES) return result;
      await this.#host.clock.sleep(retryAfter * 1000);
    }
  }

  async remove(target: ChatTarget, messageId: string): Promise<void> {
    const result = await this.#attempt(target, ["deleteMessage", { message_id: Number(messageId) }]);
    if ("failed" in result && !/message to delete not found/i.test(result.error))
      throw new Error(`a message was not deleted: ${result.error}`);
  }

  async sendFile(target: ChatTarget, file: OutgoingFile, options: SendOptions): Promise<SendResult> {
    const size = await stat(file.path).then(
      (found) => found.size,
      () => null,
    );
    if (size === null) return { failed: "refused", error: `${file.name} is missing` };
    const most = addressesOf(this.#host.option).isOwn ? MOST_BYTES_OWN : MOST_BYTES;
    if (size > most) return { failed: "refused", error: `${file.name} is larger than ${most / MB} MB` };
    const way = wayOf(file, size);
    const result = await this.#upload(way, target, file, options);
    // A picture of strange proportions, a sound that is none: as a file everything goes.
    const isUnfit = "failed" in result && /photo_|image_process|video_|voice_|wrong (?:type|file)/i.test(result.error);
    return isUnfit && way !== "document" ? this.#upload("document", target, file, options) : result;
  }

  /** One by one, where a picture is none that Telegram groups. */
  async sendAlbum(target: ChatTarget, files: readonly OutgoingFile[], options: SendOptions): Promise<SendResult> {
    const sizes = await Promise.all(
      files.map(({ path }) =>
        stat(path)
          .then(({ size }) => size)
          .catch(() => null),
      ),
    );
    const arePhotos = files.every((file, at) => sizes[at] != null && wayOf(file, sizes[at]) === "photo");
    if (!arePhotos) return this.#oneByOne(target, files, options);
    const media = files.map(({ path, name }) => ({ type: "photo", media: new Upload(path, name) }));
    const sent: Sent = ["sendMediaGroup", { media, ...this.#place(target, options) }];
    const result = await this.#attempt(target, sent, UPLOAD_SECONDS);
    const isUnfit = "failed" in result && /photo_|image_process|wrong (?:type|file)/i.test(result.error);
    return isUnfit ? this.#oneByOne(target, files, options) : result;
  }

  async #oneByOne(target: ChatTarget, files: readonly OutgoingFile[], options: SendOptions): Promise<SendResult> {
    let last: SendResult = { failed: "refused", error: "there is no file" };
    for (const [at, file] of files.entries()) {
      last = await this.sendFile(target, file, options);
      // What came before is there: a repeat would bring it twice.
      if ("failed" in last) return at === 0 ? last : { ...last, failed: "refused" };
    }
    return last;
  }

  async #upload(way: Way, target: ChatTarget, file: OutgoingFile, options: SendOptions): Promise<SendResult> {
    const caption = file.caption ? written(file.caption, options.plain === true) : null;
    const fits = caption !== null && caption.body.length <= MAX_CAPTION;
    const other = {
      ...this.#place(target, options),
      ...(fits ? { caption: caption.body, ...caption.mode } : {}),
    };
    const sent: Sent = [METHODS[way], { [way]: new Upload(file.path, file.name), ...other }];
    const result = await this.#attempt(target, sent, UPLOAD_SECONDS);
    if ("failed" in result || !file.caption || fits) return result;
    const below = { ...target, ...(result.messageId ? { replyTo: result.messageId } : {}) };
    const said = await this.send(below, file.caption, options);
    if ("failed" in said) this.#host.log.warn(`the text below a file was not sent: ${said.error}`);
    return result;
  }

  async ask(
    target: ChatTarget,
    text: string,
    question: { readonly id: string; readonly buttons: readonly ChoiceButton[] },
    options: SendOptions,
  ): Promise<SendResult> {
    const keyboard = keyboardFor(question.id, question.buttons);
    const parts = inParts(text);
    for (const part of parts.slice(0, -1)) {
      const result = await this.send(target, part, options);
      if ("failed" in result) return result;
    }
    // Without buttons it is a question that is answered in words.
    const extra = keyboard === null ? {} : { reply_markup: keyboard };
    return this.#sendText(target, parts.at(-1) ?? text, { ...options, important: true }, extra);
  }

  async closeQuestion(target: ChatTarget, messageId: string, text: string): Promise<void> {
    const options = { key: "", final: true };
    const shown = inParts(text).at(-1) ?? text;
    const result = await this.edit(target, messageId, shown, options);
    const plain =
      "failed" in result && result.failed === "format"
        ? await this.edit(target, messageId, shown, { ...options, plain: true })
        : result;
    if ("failed" in plain) this.#host.log.debug(`the buttons of a question stay: ${plain.error}`);
  }

  async typing({ chatId, threadId }: ChatTarget): Promise<void> {
    const other = threadId === undefined || threadId === GENERAL ? {} : { message_thread_id: Number(threadId) };
    await this.#calls
      .call("sendChatAction", { chat_id: chatId, action: "typing", ...other }, { seconds: TYPING_SECONDS })
      .catch((error) => this.#host.log.debug("typing was not shown", error));
  }

  /** Telegram takes reactions of a short list only; a check mark and a cross are not on it. */
  async mark({ chatId }: ChatTarget, messageId: string, state: "working" | "done" | "failed"): Promise<void> {
    if (!isYes(this.#host.option("reactions", "TELEGRAM_REACTIONS"), false)) return;
    const emoji = ({ working: "👀", done: "👍", failed: "👎" } as const)[state];
    const reaction = [{ type: "emoji", emoji }];
    await this.#calls
      .call("setMessageReaction", { chat_id: chatId, message_id: Number(messageId), reaction })
      .catch((error) => this.#host.log.debug("a reaction was not set", error));
  }

  /** Rejects when Telegram does not take it. */
  async setCommands(commands: readonly { readonly name: string; readonly description: string }[]): Promise<void> {
    const { shown, hidden } = menuOf(commands);
    if (shown.length === 0) return;
    for (const type of ["default", "all_private_chats", "all_group_chats"] as const)
      await this.#calls.call("setMyCommands", { commands: shown, scope: { type } });
    if (hidden > 0) this.#host.log.info(`${hidden} commands are not in the menu; /commands lists them`);
  }

  async #sendText(target: ChatTarget, text: string, options: SendOptions, extra: Other): Promise<SendResult> {
    const { body, mode } = written(text, options.plain === true);
    const other: Other = { ...this.#place(target, options), ...this.#previews(), ...mode, ...extra };
    return this.#attempt(target, ["sendMessage", { text: body, ...other }]);
  }

  async #attempt(target: ChatTarget, [method, parameters]: Sent, seconds?: number): Promise<SendResult> {
    const limit = seconds === undefined ? {} : { seconds };
    const call = (chat: string | number) =>
      this.#calls.call<Arrived | readonly Arrived[] | true>(method, { chat_id: chat, ...parameters }, limit);
    try {
      return answered(await call(target.chatId));
    } catch (error) {
      const movedTo = error instanceof CallError ? error.movedTo : undefined;
      if (movedTo === undefined) return failureOf(error);
      // The group has become a supergroup, under another id.
      return call(movedTo).then(answered, (again: unknown) => failureOf(again));
    }
  }

  #place({ threadId, replyTo }: ChatTarget, { important }: SendOptions): Other {
    const isLoud = important === true || this.#host.option("notifications", "TELEGRAM_NOTIFICATIONS") === "all";
    return {
      ...(threadId === undefined || threadId === GENERAL ? {} : { message_thread_id: Number(threadId) }),
      ...(replyTo === undefined
        ? {}
        : { reply_parameters: { message_id: Number(replyTo), allow_sending_without_reply: true } }),
      ...(isLoud ? {} : { disable_notification: true }),
    };
  }

  #previews(): { readonly link_preview_options?: { readonly is_disabled: true } } {
    const isOff = isYes(this.#host.option("disable_link_previews", "TELEGRAM_DISABLE_LINK_PREVIEWS"), false);
    return isOff ? { link_preview_options: { is_disabled: true } } : {};
  }
}

/** Of an album the first message. */
function answered(sent: Arrived | readonly Arrived[] | true): SendResult {
  const first = [sent].flat()[0];
  return { messageId: typeof first === "object" ? String(first.message_id) : null };
}

function written(
  text: string,
  plain: boolean,
): { readonly body: string; readonly mode: { parse_mode?: "MarkdownV2" } } {
  if (!plain) return { body: toMarkdownV2(text), mode: { parse_mode: "MarkdownV2" } };
  const body = text.toWellFormed();
  return { body: body.length <= MAX_TEXT ? body : `${body.slice(0, MAX_PLAIN).toWellFormed()}…`, mode: {} };
}

/** What is asked about may be longer than a message: the buttons are below its last part. */
const inParts = (text: string) => splitMessage(text, { max: MAX_TEXT, format: toMarkdownV2 });

// Files.

/** By the parameter that takes the file. */
const METHODS = {
  ...{ photo: "sendPhoto", animation: "sendAnimation", video: "sendVideo" },
  ...{ audio: "sendAudio", voice: "sendVoice", document: "sendDocument" },
} as const;
type Way = keyof typeof METHODS;

/** What Telegram shows as something else than a file to save. */
function wayOf({ kind, path }: OutgoingFile, size: number): Way {
  const type = extname(path).toLowerCase();
  if (kind === "image" && type === ".gif") return "animation";
  if (kind === "image" && /^\.(?:jpe?g|png|webp)$/.test(type)) return size <= MOST_BYTES_PHOTO ? "photo" : "document";
  if (kind === "video" && type === ".mp4") return "video";
  if (kind === "voice" && /^\.(?:ogg|opus)$/.test(type)) return "voice";
  if ((kind === "audio" || kind === "voice") && /^\.(?:mp3|m4a)$/.test(type)) return "audio";
  return "document";
}

// Buttons. What is pressed comes back as the 64 bytes that were sent along, also after a restart: they say everything.

const MOST_DATA = 64;
const LONG_LABEL = 18;
const MOST_LABEL = 60;

/** Null: there are none, or they do not fit. */
function keyboardFor(id: string, buttons: readonly ChoiceButton[]) {
  const isApproval = buttons.some(({ choice }) => choice === "deny");
  const isConfirm = buttons.some(({ choice }) => choice === "cancel");
  const kind = isApproval ? "ea" : isConfirm ? "sc" : "cl";
  const keys = buttons.map(({ label, choice }) => ({
    text: [...label].length > MOST_LABEL ? `${[...label].slice(0, MOST_LABEL - 1).join("")}…` : label,
    callback_data: `${kind}:${encodeURIComponent(choice)}:${id}`,
  }));
  if (keys.length === 0 || keys.some(({ callback_data: data }) => Buffer.byteLength(data) > MOST_DATA)) return null;
  const width = keys.some(({ text }) => [...text].length > LONG_LABEL) ? 1 : 2;
  const rows = Array.from({ length: Math.ceil(keys.length / width) }, (_, row) =>
    keys.slice(row * width, (row + 1) * width),
  );
  return { inline_keyboard: rows };
}

/** Null: not a button of ours. */
export function parsePress(data: string): { readonly choice: string; readonly questionId: string } | null {
  const [, choice = "", questionId] = /^(?:ea|sc|cl):([^:]{1,60}):(.{1,60})$/.exec(data) ?? [];
  if (questionId === undefined) return null;
  try {
    return { choice: decodeURIComponent(choice), questionId };
  } catch {
    return null;
  }
}

// The menu of commands.

const SHOWN = 30;
const LISTED = 100;
const MAX_NAME = 32;
const MAX_ABOUT = 256;
const FIRST = "help new stop status resume sessions model retry undo compress usage approve deny queue steer".split(
  " ",
);

/** The first of the list are shown: what everybody needs, then the order that was given. */
export function menuOf(commands: readonly { readonly name: string; readonly description: string }[]) {
  const rank = ({ name }: { readonly name: string }) => (FIRST.includes(name) ? FIRST.indexOf(name) : FIRST.length);
  const sorted = [...commands].sort((a, b) => rank(a) - rank(b));
  const taken = new Set<string>();
  const listed = sorted.flatMap(({ name, description }) => {
    const command = menuName(name, taken);
    if (command === null) return [];
    taken.add(command);
    const about = [...(description.trim() || name)].slice(0, MAX_ABOUT).join("");
    return [{ command, description: about }];
  });
  const shown = listed.slice(0, LISTED).slice(0, SHOWN);
  return { shown, hidden: commands.length - shown.length };
}

/** Null: nothing of the name is left, or it is taken. */
function menuName(name: string, taken: ReadonlySet<string>): string | null {
  const words = name
    .toLowerCase()
    .replaceAll("-", "_")
    .replace(/[^a-z0-9_]/g, "")
    .split("_");
  const whole = words.filter((word) => word !== "").join("_");
  if (whole === "") return null;
  if (whole.length <= MAX_NAME) return taken.has(whole) ? null : whole;
  const cut = whole.slice(0, MAX_NAME);
  if (!taken.has(cut)) return cut;
  const numbered = Array.from({ length: 10 }, (_, digit) => `${whole.slice(0, MAX_NAME - 1)}${digit}`);
  return numbered.find((one) => !taken.has(one)) ?? null;
}
