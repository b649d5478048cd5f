// What is sent to the Cloud API, within its limits, and what its refusals mean.
import { extname } from "node:path";
import { headUnits } from "../../../../kit/code-points.ts";
import { asRecord, asText, type Json } from "../../../../kit/json.ts";
import type { ChatTarget, ChoiceButton, OutgoingFile, SendResult } from "../../contract.ts";
import { retryAfter, type WebReply } from "../../web-calls.ts";

const BUTTONS = { most: 3, title: 20, body: 1024 };
const ROWS = { most: 10, title: 24, id: 200, body: 1024 };
const CAPTION = 1024;
const MB = 1024 * 1024;
const KEY = 512;

/** Around every kind of message. */
export function envelope({ chatId, replyTo }: ChatTarget, key: string, content: Json): Json {
  return {
    messaging_product: "whatsapp",
    recipient_type: "individual",
    to: chatId,
    ...(replyTo ? { context: { message_id: replyTo } } : {}),
    ...content,
    biz_opaque_callback_data: headUnits(key, KEY),
  };
}

export const textContent = (body: string): Json => ({ type: "text", text: { preview_url: false, body } });

// Questions.

const MARK = "q|";
const buttonId = (question: string, choice: string) => `${MARK}${question}|${choice}`;

/** Null for a button that no question of ours had. */
export function readButton(id: string): { readonly questionId: string; readonly choice: string } | null {
  const [, questionId, choice] = /^q\|([^|]+)\|(.+)$/s.exec(id) ?? [];
  return questionId && choice ? { questionId, choice } : null;
}

/** Up to three buttons, beyond that a list; null when there are too many for either, or their ids are too long. */
export function questionContent(
  text: string,
  question: { readonly id: string; readonly buttons: readonly ChoiceButton[] },
): Json | null {
  const rows = question.buttons.map(({ label, choice }) => ({ id: buttonId(question.id, choice), title: label }));
  if (rows.length === 0 || rows.length > ROWS.most || rows.some(({ id }) => id.length > ROWS.id)) return null;
  const body = { text: fitsQuestion(text) ? text : "Your choice:" };
  if (rows.length <= BUTTONS.most && areDistinct(rows, BUTTONS.title)) {
    const buttons = rows.map(({ id, title }) => ({ type: "reply", reply: { id, title: short(title, BUTTONS.title) } }));
    return { type: "interactive", interactive: { type: "button", body, action: { buttons } } };
  }
  const titled = rows.map(({ id, title }) => ({
    ...{ id, title: short(title, ROWS.title) },
    ...(title.length > ROWS.title ? { description: short(title, 72) } : {}),
  }));
  const action = { button: "Choose", sections: [{ title: "Choices", rows: titled }] };
  return { type: "interactive", interactive: { type: "list", body, action } };
}

/** A longer text goes in front of its buttons: nobody should approve what is cut off. */
export const fitsQuestion = (text: string) => text.trim() !== "" && text.length <= Math.min(BUTTONS.body, ROWS.body);

const short = (text: string, max: number) => (text.length <= max ? text : `${headUnits(text, max - 1)}…`);

const areDistinct = (rows: readonly { readonly title: string }[], max: number) =>
  new Set(rows.map(({ title }) => short(title, max))).size === rows.length;

// Files.

const TYPES: Readonly<Record<string, string>> = {
  ".jpg": "image/jpeg",
  ".jpeg": "image/jpeg",
  ".png": "image/png",
  ".mp4": "video/mp4",
  ".3gp": "video/3gpp",
  ".aac": "audio/aac",
  ".m4a": "audio/mp4",
  ".mp3": "audio/mpeg",
  ".amr": "audio/amr",
  ".ogg": "audio/ogg",
  ".opus": "audio/ogg",
  ".pdf": "application/pdf",
  ".doc": "application/msword",
  ".docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
  ".xls": "application/vnd.ms-excel",
  ".xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
  ".ppt": "application/vnd.ms-powerpoint",
  ".pptx": "application/vnd.openxmlformats-officedocument.presentationml.presentation",
};
/** Text by another name: it is taken as plain text. */
const TEXTS = new Set(
  ".txt .md .csv .tsv .json .xml .yaml .yml .toml .ini .cfg .log .html .htm .py .ts .js .sh .sql .kml .gpx .geojson".split(
    " ",
  ),
);
const MOST_BYTES = { image: 5 * MB, audio: 16 * MB, video: 16 * MB, document: 100 * MB };
type Kind = keyof typeof MOST_BYTES;

/** How a file is sent; a string says why it cannot be. What is too large for its kind goes as a document. */
export function planFile(
  { name, path, caption = "" }: OutgoingFile,
  size: number,
): { readonly kind: Kind; readonly mediaType: string; readonly content: (id: string) => Json } | string {
  const extension = extname(name || path).toLowerCase();
  const mediaType = TYPES[extension] ?? (TEXTS.has(extension) ? "text/plain" : undefined);
  if (mediaType === undefined) return `WhatsApp does not take files of the kind ${extension || "without an extension"}`;
  const [family = ""] = mediaType.split("/");
  const natural: Kind = family === "image" || family === "audio" || family === "video" ? family : "document";
  const kind = size > MOST_BYTES[natural] ? "document" : natural;
  if (size > MOST_BYTES[kind]) return `${name} is larger than the 100 MB that WhatsApp takes`;
  const content = (id: string): Json => ({
    type: kind,
    [kind]: {
      id,
      ...(kind === "document" ? { filename: name } : {}),
      ...(kind !== "audio" && caption !== "" ? { caption: headUnits(caption, CAPTION) } : {}),
    },
  });
  return { kind, mediaType, content };
}

// Refusals.

const RATE = new Set([4, 80007, 130429, 131048, 131056, 133016]);
const PASSING = new Set([1, 2, 131000, 131016, 131057, 133004]);
const NOT_LOGGED_IN = new Set([0, 190]);

const WINDOW =
  "WhatsApp only lets us write within 24 hours of the other person's last message; outside of that only templates. They have to write first";

/** A reason that people can do something about. */
export function reasonOf(code: number, words: string, to: string): string {
  switch (code) {
    case 131047:
      return `${WINDOW} (${to}, error 131047)`;
    case 131026:
      return `${to} cannot receive this message: no WhatsApp account, an old version, or its terms were not accepted (error 131026)`;
    case 131030:
      return `${to} is not on the list of numbers that this test number may write to (error 131030)`;
    case 190:
      return "WHATSAPP_CLOUD_ACCESS_TOKEN has expired or is not valid; create a new one (error 190)";
    default:
      return `WhatsApp answered ${words || "without a reason"} (error ${code})`;
  }
}

export function refusal(reply: WebReply, to: string, now: number): Extract<SendResult, { failed: string }> {
  const problem = asRecord(asRecord(reply.json).error);
  const code = Number(problem.code ?? -1);
  const words = asText(asRecord(problem.error_data).details) || asText(problem.message) || `status ${reply.status}`;
  const error = reasonOf(code, words.slice(0, 300), to);
  if (RATE.has(code) || reply.status === 429)
    return { failed: "rate_limited", error, retryAfter: retryAfter(reply.headers, now) ?? (code === 131056 ? 6 : 30) };
  if (PASSING.has(code) || NOT_LOGGED_IN.has(code) || reply.status >= 500 || reply.status === 401)
    return { failed: "unreachable", error };
  return { failed: "refused", error };
}
