// What comes into a chat: files, kept in the cache of the home, and messages, made into what the model is told. Whatever others wrote is
// marked as theirs.
import { randomUUID } from "node:crypto";
import { createWriteStream } from "node:fs";
import { lstat, open, readdir, readFile, rename, rm } from "node:fs/promises";
import { basename, extname, join } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { OpenAgent } from "../../agent/opened.ts";
import type { Logger } from "../../home/log.ts";
import type { OpenHome } from "../../home/open.ts";
import type { Clock } from "../../kit/clock.ts";
import { messageOf, UserError } from "../../kit/errors.ts";
import type { UserInput } from "../../llm/messages.ts";
import { disarm, fenced } from "../../prompt/fence.ts";
import { WebError } from "../../safety/url-fetch.ts";
import { parseWebUrl, UrlRefusedError } from "../../safety/url-guard.ts";
import { cacheFolder } from "../../tools/media/endpoint.ts";
import { imageType } from "../../tools/media/pictures.ts";
import { type Picture, PictureError, pictureFile, withPaths } from "../../tools/media/user-pictures.ts";
import { openWebAccess } from "../../tools/web/access.ts";
import type { AdapterHost, ChatMessage, ReceivedFile } from "./contract.ts";
import type { Stickers } from "./stickers.ts";

// Files.

const MB = 1024 * 1024;
const MAX_BYTES = 128 * MB;
const TIMEOUT_MS = 30_000;
const TRIES = 3;
const MAX_REDIRECTS = 5;
const KEPT_MS = 24 * 3600 * 1000;
const KINDS = ["images", "audio", "videos", "documents"] as const;
type CacheKind = (typeof KINDS)[number];

/** A file that is not kept, in a sentence for the user. */
class FileError extends UserError {
  override name = "FileError";
}

interface ChatFiles extends Pick<AdapterHost, "keepFile" | "download"> {
  /** Removes what was kept for more than a day. */
  clean(): Promise<void>;
}

export function chatFiles(home: OpenHome, clock: Clock): ChatFiles {
  const keepFile: ChatFiles["keepFile"] = (bytes, about) => keep(bytes, about.name, home);
  return {
    keepFile,
    async download(url, { name, headers, ownHost, maxBytes = MAX_BYTES }) {
      const shown = shownUrl(url);
      for (let attempt = 1; ; attempt++) {
        const got = await fetchFile(url, { headers, ownHost, maxBytes, home, clock });
        if (Buffer.isBuffer(got)) return keep(got, name ?? basename(new URL(url).pathname), home);
        home.log.info(`${shown} was not fetched: ${got.why}`);
        if (!got.again || attempt === TRIES) throw new FileError(got.why);
        await clock.sleep(attempt * 1000);
      }
    },
    async clean() {
      for (const kind of KINDS) await cleanFolder(await cacheFolder(home.paths, kind), clock.now() - KEPT_MS);
    },
  };
}

interface FetchOptions {
  readonly headers: Readonly<Record<string, string>> | undefined;
  readonly ownHost: string | undefined;
  readonly maxBytes: number;
  readonly home: OpenHome;
  readonly clock: Clock;
}

/** `again`: it may go better the next time. */
type Fetched = Buffer | { readonly why: string; readonly again: boolean };

/** The platform's own host may be near; whatever it leads to elsewhere may not, and gets none of our headers. */
async function fetchFile(address: string, { headers, ownHost, maxBytes, home, clock }: FetchOptions): Promise<Fetched> {
  const late = AbortSignal.timeout(TIMEOUT_MS);
  const isOwn = (url: string) => ownHost !== undefined && parseWebUrl(url).host === ownHost.toLowerCase();
  const { paths, log, redact, env } = home;
  const run = { ...{ config: home.config(), home: paths, clock, log, redact, env }, signal: late };
  const access = openWebAccess(run, { allowPrivate: isOwn });
  const limit = Math.min(maxBytes, MAX_BYTES);
  try {
    let url = address;
    for (let hops = 0; hops <= MAX_REDIRECTS; hops++) {
      const same = hops === 0 || parseWebUrl(url).host === parseWebUrl(address).host;
      const options = {
        maxRedirects: 0,
        maxBytes: limit,
        timeoutMs: TIMEOUT_MS,
        ...(same && headers ? { headers } : {}),
      };
      const { status, location, body } = await access.fetch(url, options);
      if (status >= 300 && status < 400 && location !== undefined) {
        if (!URL.canParse(location, url)) return { why: "the redirect has no address", again: false };
        url = new URL(location, url).href;
        continue;
      }
      if (status === 200) return body;
      return { why: `the server answered ${status}`, again: status >= 500 || status === 429 };
    }
    return { why: "too many redirects", again: false };
  } catch (error) {
    if (late.aborted) return { why: `it did not arrive within ${TIMEOUT_MS / 1000} seconds`, again: true };
    if (error instanceof UrlRefusedError) return { why: error.message, again: false };
    if (!(error instanceof WebError)) throw error;
    if (error.message.includes("longer than")) return { why: tooLarge(limit), again: false };
    return { why: error.message, again: true };
  }
}

const tooLarge = (limit: number) => `it is larger than ${Math.round(limit / MB) || 1} MB`;

/** An address as logs show it: keys stand in paths and queries. */
export function shownUrl(url: string): string {
  if (!URL.canParse(url)) return "an address";
  const { protocol, host, pathname } = new URL(url);
  const last = pathname.split("/").at(-1) ?? "";
  return last === "" ? `${protocol}//${host}` : `${protocol}//${host}/.../${last}`;
}

async function keep(
  bytes: Uint8Array | AsyncIterable<Uint8Array>,
  given: string | undefined,
  { paths }: Pick<OpenHome, "paths">,
): Promise<ReceivedFile> {
  const waiting = join(await cacheFolder(paths, "documents"), `.${randomUUID()}.part`);
  let size = 0;
  async function* counted() {
    for await (const chunk of bytes instanceof Uint8Array ? [bytes] : bytes) {
      size += chunk.length;
      if (size > MAX_BYTES) throw new FileError(tooLarge(MAX_BYTES));
      yield chunk;
    }
  }
  try {
    await pipeline(Readable.from(counted()), createWriteStream(waiting, { flags: "wx", mode: 0o600 }));
    const name = given === undefined ? undefined : plainName(given);
    const { mediaType, kind, extension } = sniff(await headOf(waiting), name ?? "");
    const path = join(await cacheFolder(paths, kind), `${randomUUID().replaceAll("-", "")}${extension}`);
    await rename(waiting, path);
    return { path, mediaType, size, ...(name ? { name } : {}) };
  } catch (error) {
    await rm(waiting, { force: true });
    throw error;
  }
}

async function headOf(path: string): Promise<Buffer> {
  const file = await open(path);
  try {
    const { bytesRead, buffer } = await file.read(Buffer.alloc(4096), 0, 4096, 0);
    return buffer.subarray(0, bytesRead);
  } finally {
    await file.close();
  }
}

/** A name from outside: no folders, no control characters, not too long. */
function plainName(name: string): string {
  const last = name.split(/[\\/]/).at(-1) ?? "";
  const plain = last.replace(/[\p{C}\p{Zl}\p{Zp}]+/gu, " ").trim();
  return plain.length > 120 ? `${plain.slice(0, 100).toWellFormed()}${extname(plain).slice(0, 12)}` : plain;
}

async function cleanFolder(folder: string, before: number): Promise<void> {
  for (const name of await readdir(folder)) {
    const path = join(folder, name);
    const facts = await lstat(path).catch(() => null);
    if (facts?.isFile() && facts.mtimeMs < before) await rm(path, { force: true });
  }
}

// What a file is: by its first bytes. Its name decides only among kinds that look alike.

interface Sniffed {
  readonly mediaType: string;
  readonly kind: CacheKind;
  readonly extension: string;
}

const MAGIC: readonly (readonly [at: number, bytes: string, mediaType: string, extension: string])[] = [
  [0, "OggS", "audio/ogg", ".ogg"],
  [0, "ID3", "audio/mpeg", ".mp3"],
  [0, "fLaC", "audio/flac", ".flac"],
  [0, "#!AMR", "audio/amr", ".amr"],
  [8, "WAVE", "audio/wav", ".wav"],
  [8, "AVI ", "video/x-msvideo", ".avi"],
  [4, "ftypM4A", "audio/mp4", ".m4a"],
  [4, "ftypqt", "video/quicktime", ".mov"],
  [4, "ftyp3g", "video/3gpp", ".3gp"],
  [4, "ftyphei", "image/heic", ".heic"],
  [4, "ftypmif1", "image/heic", ".heic"],
  [4, "ftypavif", "image/avif", ".avif"],
  [4, "ftyp", "video/mp4", ".mp4"],
  [0, "%PDF-", "application/pdf", ".pdf"],
  [0, "PK\x03\x04", "application/zip", ".zip"],
  [0, "\x1f\x8b", "application/gzip", ".gz"],
  [0, "BZh", "application/x-bzip2", ".bz2"],
  [0, "\xfd7zXZ", "application/x-xz", ".xz"],
  [0, "7z\xbc\xaf", "application/x-7z-compressed", ".7z"],
  [0, "Rar!", "application/vnd.rar", ".rar"],
];
const IMAGE_ENDINGS: Readonly<Record<string, string>> = {
  "image/jpeg": ".jpg",
  "image/svg+xml": ".svg",
  "image/x-icon": ".ico",
};
/** Files that are something else inside, and only their name says so. */
const INSIDE: Readonly<Record<string, string>> = {
  ".docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
  ".xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
  ".pptx": "application/vnd.openxmlformats-officedocument.presentationml.presentation",
  ".odt": "application/vnd.oasis.opendocument.text",
  ".ods": "application/vnd.oasis.opendocument.spreadsheet",
  ".odp": "application/vnd.oasis.opendocument.presentation",
  ".epub": "application/epub+zip",
  ".md": "text/markdown",
  ".csv": "text/csv",
  ".json": "application/json",
  ".xml": "application/xml",
  ".yaml": "application/yaml",
  ".yml": "application/yaml",
  ".html": "text/html",
};

export function sniff(head: Buffer, name: string): Sniffed {
  const picture = imageType(head);
  if (picture !== null)
    return { mediaType: picture, kind: "images", extension: IMAGE_ENDINGS[picture] ?? `.${picture.slice(6)}` };
  const ending = /^\.[a-z0-9]{1,8}$/.test(extname(name).toLowerCase()) ? extname(name).toLowerCase() : "";
  const found = MAGIC.find(([at, bytes]) => head.toString("latin1", at, at + bytes.length) === bytes);
  if (found) {
    const [, , mediaType, extension] = found;
    const inside = mediaType === "application/zip" ? INSIDE[ending] : undefined;
    if (inside?.startsWith("application/")) return { mediaType: inside, kind: "documents", extension: ending };
    return { mediaType, kind: kindOf(mediaType), extension };
  }
  if (head.length > 3 && head.readUInt32BE(0) === 0x1a45dfa3) {
    const isWebm = head.includes("webm");
    return {
      mediaType: isWebm ? "video/webm" : "video/x-matroska",
      kind: "videos",
      extension: isWebm ? ".webm" : ".mkv",
    };
  }
  const frame = soundFrame(head);
  if (frame) return frame;
  // What claims to be a picture, a sound or a film and is none keeps no name that says so.
  const claims = ending === "" || LOOKS.has(ending) ? "" : ending;
  if (!isText(head)) return { mediaType: "application/octet-stream", kind: "documents", extension: claims || ".bin" };
  return { mediaType: INSIDE[claims] ?? "text/plain", kind: "documents", extension: claims || ".txt" };
}

const LOOKS = new Set([
  ...MAGIC.map(([, , , extension]) => extension),
  ...".png .jpg .jpeg .gif .webp .bmp .tiff .tif .webm .mkv .opus .oga .aac .docx .xlsx .pptx .odt .ods .odp .epub".split(
    " ",
  ),
]);

/** Sound without a head: eleven bits that are set, then the layer. Two bytes of UTF-16 look like it, too. */
function soundFrame(head: Buffer): Sniffed | null {
  const [first = 0, second = 0] = head;
  if (first !== 0xff || (second & 0xe0) !== 0xe0 || second === 0xfe || second === 0xff) return null;
  if ((second & 0x06) !== 0) return { mediaType: "audio/mpeg", kind: "audio", extension: ".mp3" };
  return (second & 0xf0) === 0xf0 ? { mediaType: "audio/aac", kind: "audio", extension: ".aac" } : null;
}

function kindOf(mediaType: string): CacheKind {
  const [family] = mediaType.split("/");
  return family === "image" ? "images" : family === "audio" ? "audio" : family === "video" ? "videos" : "documents";
}

/** No control characters, and UTF-8 up to a character that the end may have cut. */
function isText(head: Buffer): boolean {
  if (head.includes(0)) return false;
  const text = head.toString("utf8");
  const broken = text.indexOf("\ufffd");
  return broken < 0 || (head.length === 4096 && broken >= text.length - 3);
}

// Messages.

type QueuedMessage = ChatMessage & { readonly shownAs?: string; readonly ours?: boolean };

/** What a person said, and whose text came with it. */
type ReadInput = UserInput & { readonly outside: readonly string[] };

interface ReadOptions {
  readonly home: OpenHome;
  readonly clock: Clock;
  readonly log: Logger;
  /** Several people write in this conversation. */
  readonly shared: boolean;
  /** The messages are a stranger's word: payloads. */
  readonly foreign: boolean;
  readonly conversation: Pick<OpenAgent, "transcribe" | "describe">;
  readonly stickers: Pick<Stickers, "describe">;
  /** The quoted message is one of ours. Absent: not known, and in a group it may be anybody's. */
  isOurs?(message: ChatMessage): Promise<boolean>;
}

/** What becomes of a message on its way. */
interface Gathered {
  /** What was said, and our lines about files; stored. */
  readonly words: string[];
  readonly kept: string[];
  /** What others wrote; only the model sees it. */
  readonly contents: string[];
  readonly quotes: string[];
  readonly context: string[];
  readonly pictures: Picture[];
  readonly outside: string[];
}

const MOST_INLINED = 100 * 1024;
const MOST_QUOTED = 500;

/** Messages that are one turn, as the model gets them. Never rejects for what is in them: what cannot be used is named. */
export async function readUserInput(messages: readonly QueuedMessage[], options: ReadOptions): Promise<ReadInput> {
  const all: Gathered = { words: [], kept: [], contents: [], quotes: [], context: [], pictures: [], outside: [] };
  let sender: string | undefined;
  for (const message of messages) {
    const name = nameOf(message);
    const writer = options.shared && !message.ours ? { name, isNew: name !== sender } : null;
    await readMessage(message, { ...options, writer }, all);
    sender = name;
  }
  const said = joinLines(all.words);
  const text = [...all.quotes, ...all.contents, ...all.context, said].filter((part) => part !== "").join("\n\n");
  const kept = joinLines(all.kept);
  const parts = all.pictures.map(({ part }) => part);
  const input: UserInput = {
    text,
    from: "person",
    ...(kept === text ? {} : { persistText: kept }),
    ...(parts.length > 0 ? { parts } : {}),
  };
  return { ...withPaths(input, all.pictures), outside: [...new Set(all.outside)] };
}

const joinLines = (lines: readonly string[]) => lines.filter((line) => line !== "").join("\n");

async function readMessage(
  received: QueuedMessage,
  options: ReadOptions & { readonly writer: Writer | null },
  all: Gathered,
): Promise<void> {
  if (received.observed) return overhear(received, all);
  const message = received.sticker ? await withSticker(received, received.sticker, options) : received;
  const { source, text, shownAs = text, files = [], context } = message;
  const { foreign, writer } = options;
  if (context?.trim()) {
    all.context.push(`[Messages of others, for context:]\n${fenced("chat", context.trim())}`);
    all.outside.push(`messages in ${source.chat_name ?? source.platform}`);
  }
  const lines: string[] = [];
  for (const file of files) {
    const line = await readFileOf(message, file, options, all);
    if (line !== null) lines.push(line);
  }
  if (text.trim() === "" && files.length === 0) lines.push(`[unsupported: ${message.type}]`);
  // An adapter that names whose text is in it has fenced that itself: the rest is its owner's.
  const isFenced = message.outside !== undefined;
  if (isFenced) all.outside.push(...(message.outside ?? []));
  else if (foreign && text.trim() !== "") all.outside.push(`a message of ${source.platform}`);
  const told = foreign && !isFenced ? fenced(source.platform, text) : text;
  const joined = (own: string) =>
    [signed(own, writer), ...lines].filter((line) => line.trim() !== "").join("\n") || signed("", writer);
  all.words.push(joined(told));
  all.kept.push(joined(shownAs));
  await readQuote(message, options, all);
}

const isPicture = ({ mediaType }: ReceivedFile) => mediaType.startsWith("image/");

/** Its description takes the place of its picture. Where nobody can describe it, its words stay, and where the picture lies is said. */
async function withSticker(
  message: QueuedMessage,
  { id, words }: NonNullable<ChatMessage["sticker"]>,
  { stickers, conversation }: ReadOptions,
): Promise<QueuedMessage> {
  const { text, context, files = [] } = message;
  const picture = files.find(isPicture);
  const ask = picture ? (question: string) => conversation.describe(picture.path, question) : null;
  const description = await stickers.describe(id, ask);
  if (description === null && !picture) return message;
  const more = description === null ? `; its picture is saved at ${picture?.path}` : `: ${description}`;
  const told = (said: string) => said.replace(words, () => `${words.slice(0, -1)}${more}]`);
  return {
    ...{ ...message, text: told(text), files: files.filter((file) => !isPicture(file)) },
    ...(context === undefined ? {} : { context: told(context) }),
  };
}

/** Who writes, where several people do; `isNew`: somebody else wrote before. */
interface Writer {
  readonly name: string;
  readonly isNew: boolean;
}

/** Says who wrote a text, and again in front of each line that looks like the beginning of somebody else's. */
function signed(text: string, writer: Writer | null): string {
  if (writer === null) return text;
  const mark = `[${writer.name}] `;
  const whole = writer.isNew || /^\s*[[［【]/.test(text) ? mark + text : text;
  return whole.replace(/(?<=[\n\r\v\f\x85\u2028\u2029])(?=[^\S\n]{0,20}[[［【])/g, mark);
}

/** Nobody said it to us: others talked. */
function overhear(message: QueuedMessage, all: Gathered): void {
  const { source, text } = message;
  if (text.trim() === "") return;
  all.context.push(`[Said in the chat before, not to you:]\n${fenced("chat", `${nameOf(message)}: ${text.trim()}`)}`);
  all.outside.push(`messages in ${source.chat_name ?? source.platform}`);
}

async function readQuote(message: ChatMessage, { isOurs }: ReadOptions, all: Gathered): Promise<void> {
  const quoted = message.replyTo?.text?.trim();
  if (!quoted) return;
  const points = [...quoted];
  const short = points.length > MOST_QUOTED ? `${points.slice(0, MOST_QUOTED).join("")}…` : quoted;
  const line = `[Replying to: "${short}"]`;
  // In a direct chat there are only the two of us; what was forwarded there came in its own fence.
  const isKnown = message.source.chat_type === "dm" || ((await isOurs?.(message).catch(() => false)) ?? false);
  all.quotes.push(isKnown ? disarm(line) : fenced("chat", line));
  if (!isKnown) all.outside.push("a quoted message");
}

/** The line about a file; null for a picture that is shown. */
async function readFileOf(
  message: ChatMessage,
  file: ReceivedFile,
  options: ReadOptions,
  all: Gathered,
): Promise<string | null> {
  const { mediaType, path, size } = file;
  const name = file.name ?? basename(path);
  const [family] = mediaType.split("/");
  const place = `${name.replace(/[[\]]/g, "_")} (${mediaType}, ${sizeOf(size)}), saved at ${path}`;
  if (message.type === "voice" && (family === "audio" || family === "video")) return hear(file, options);
  if (family === "audio") return `[Audio file: ${place}]`;
  if (family === "video") return `[Video: ${place}]`;
  if (family === "image") {
    try {
      all.pictures.push(await pictureFile(path));
      return null;
    } catch (error) {
      if (!(error instanceof PictureError)) throw error;
      return `[Picture: ${place}; it cannot be shown: ${error.message.replace(`${path} `, "")}]`;
    }
  }
  if (/\.(?:md|txt)$/i.test(name) && size <= MOST_INLINED && mediaType.startsWith("text/")) {
    const content = await readFile(path, "utf8").catch(() => "");
    if (content.trim() !== "")
      all.contents.push(`[Content of ${name.replace(/[[\]]/g, "_")}]:\n${fenced("file", content.trim())}`);
    all.outside.push(`file ${name}`);
  }
  return `[Document: ${place}]`;
}

async function hear({ path }: ReceivedFile, { conversation, log }: ReadOptions): Promise<string> {
  try {
    return `[Voice message] ${await conversation.transcribe(path)}`;
  } catch (error) {
    log.warn("a voice message was not transcribed", error);
    return `[A voice message that could not be transcribed (${messageOf(error)}) is saved at ${path}]`;
  }
}

/** One line that cannot pass for the end of the brackets around it. */
function nameOf({ source }: ChatMessage): string {
  const name = (source.user_name ?? source.user_id ?? "somebody").replace(/[[\]\s\p{C}]+/gu, " ").trim();
  return [...(name || "somebody")].slice(0, 60).join("");
}

const sizeOf = (bytes: number) =>
  bytes >= MB ? `${(bytes / MB).toFixed(1)} MB` : `${Math.max(1, Math.round(bytes / 1024))} KB`;
