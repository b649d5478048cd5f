// The final text of a turn on its way to a chat: what is said, in which parts, and which files go with it.
import { randomUUID } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { join, relative } from "node:path";
import type { ModelFailure } from "../../agent/outcome.ts";
import { said as inLanguage, t } from "../../home/language/words.ts";
import type { OpenHome } from "../../home/open.ts";
import { type Clock, systemClock } from "../../kit/clock.ts";
import { isWithin } from "../../kit/files.ts";
import type { FailureReason } from "../../llm/errors/classify.ts";
import { holdsSecret } from "../../safety/url-guard.ts";
import { cacheFolder } from "../../tools/media/endpoint.ts";
import type { AdapterHost, OutgoingFile, PlatformEntry } from "./contract.ts";
import type { Payload } from "./delivery.ts";
import {
  barePaths,
  checkedFile,
  imageLinks,
  leadsToFile,
  outgoing,
  pathsToCheck,
  takeDirectives,
} from "./media-out.ts";
import { asTable, type GatewaySettings } from "./settings.ts";
import { codePoints, splitMessage, utf8Bytes, utf16, withoutCounter } from "./split.ts";

interface AnswerOptions {
  readonly home: OpenHome;
  readonly settings: GatewaySettings;
  readonly entry: PlatformEntry;
  /** Messages that a stream has written, in order: they get the first parts. */
  readonly streamed?: readonly string[];
  /** `unattended`: nobody asked just now (schedules, webhooks). */
  readonly origin: "chat" | "unattended";
  /** The turn failed: its sentence is said whatever it looks like. */
  readonly failed?: boolean;
  /** Why, when the model could not be asked: the chat reads the sentence for that in place of the text. */
  readonly failure?: ModelFailure | undefined;
  /** Files that tools of this turn want sent. */
  readonly mediaFromTools?: readonly string[];
  /** A sound file that speaks the answer: it goes first. */
  readonly asVoice?: string | null;
  /** What the model thought, for `show_reasoning`. */
  readonly reasoning?: string | null;
  readonly footer?: FooterFacts;
  /** The platform takes files; default: it does. */
  readonly sendsFiles?: boolean;
  /** Several pictures go as one message. */
  readonly sendsAlbums?: boolean;
  /** Fetches pictures that the answer shows by their address. Absent: their links stay in the text. */
  download?: AdapterHost["download"];
  readonly clock?: Clock;
}

interface FooterFacts {
  readonly model?: string | undefined;
  readonly contextUsed?: number | null | undefined;
  readonly contextLength?: number | undefined;
  readonly cwd?: string | undefined;
}

interface Answer {
  /** Empty: the answer is silence. */
  readonly payloads: readonly Payload[];
  /** Lines for the log. */
  readonly notes: readonly string[];
  /** Messages of the stream that no part was left for: to be removed. */
  readonly unused: readonly string[];
}

const EMPTY = "The model gave no answer. Ask again, or rephrase it.";
const REASONING_LINES = 15;
const IN_FILE = "(the whole answer is in the file below)";

/** Never rejects for what the answer names: a file that cannot be sent is told in a word. */
export async function composeAnswer(text: string, options: AnswerOptions): Promise<Answer> {
  const { home, origin, streamed = [], failed = false } = options;
  const notes: string[] = [];
  const said = options.failure === undefined ? plainFailure(text) : failureWords(options.failure);
  if (said !== text) notes.push(`a model's error was told in other words: ${home.redact(text)}`);
  if (!failed && isSilence(said, origin)) return { payloads: [], notes, unused: streamed };
  const { body, files } = await filesOf(said.trim(), options, notes);
  const isSilent = !failed && isSilence(body, origin);
  const nothing = body === "" && files.length === 0 && origin === "chat";
  const words = isSilent ? "" : nothing ? t(EMPTY) : body;
  const shown = words === "" ? "" : masked(dressed(words, options), home.redact);
  const parts = shown === "" ? [] : splitMessage(shown, splitFor(options.entry));
  const most = Math.max(1, home.config().gateway.max_parts);
  const asFile = parts.length > most && options.sendsFiles !== false;
  const texts = asFile ? [firstPart(shown, options.entry)] : parts;
  const whole = asFile ? [await keepText(shown, home)] : [];
  const payloads: Payload[] = [
    ...spokenFirst(options, files).map((file): Payload => ({ type: "file", file })),
    ...texts.map((text, index): Payload => {
      const important = index === texts.length - 1 ? { important: true } : {};
      const messageId = streamed[index];
      return messageId === undefined
        ? { type: "text", text, ...important }
        : { type: "edit", text, messageId, ...important };
    }),
    ...whole.map((file): Payload => ({ type: "file", file })),
    ...inAlbums(inOrder(files), options.sendsAlbums === true),
  ];
  return { payloads, notes, unused: streamed.slice(texts.length) };
}

/** How long a part of a platform may be, and how that is measured. */
export function splitFor(entry: Pick<PlatformEntry, "maxLength" | "lengthUnit" | "format">) {
  const length = { utf16, codepoint: codePoints, bytes: utf8Bytes }[entry.lengthUnit];
  const format = entry.format?.bind(entry);
  return { max: entry.maxLength, length, ...(format ? { format } : {}) };
}

const BEARER = /\b(Bearer[ \t]{1,4})(?=[A-Za-z_.~+/=-]{0,60}\d)[\w.~+/=-]{12,}/gi;

/** Secrets are masked; a phone number in an answer is not one, though the redactor masks those in logs. */
export function masked(text: string, redact: (text: string) => string): string {
  const kept = text.replace(/(?<![\w+])\+(?=[1-9]\d{6,14}(?!\w))/g, "\ue000");
  return redact(kept).replaceAll("\ue000", "+").replace(BEARER, "$1***");
}

// Files.

async function filesOf(
  text: string,
  options: AnswerOptions,
  notes: string[],
): Promise<{ readonly body: string; readonly files: readonly OutgoingFile[] }> {
  const { home, mediaFromTools = [], clock = systemClock } = options;
  const there = new Set<string>();
  for (const path of pathsToCheck(text)) if (await leadsToFile(path, home.osHome)) there.add(path);
  const directives = takeDirectives(text, (path) => there.has(path));
  const pictures = await fetchPictures(directives.text, options, notes);
  const files = new Map<string, OutgoingFile>();
  const refused: string[] = [];
  const add = async (path: string, ordered: boolean) => {
    const checked = await checkedFile(path, { home, now: clock.now() });
    if ("path" in checked) {
      if (!files.has(checked.path)) files.set(checked.path, outgoing(checked.path, directives));
      return;
    }
    if (!ordered) return;
    notes.push(`a file was not sent: ${path}: ${checked.refused}`);
    refused.push(`(not sent: ${shortName(path)}: ${checked.refused})`);
  };
  for (const path of directives.paths) await add(path, true);
  for (const path of mediaFromTools) await add(path, true);
  for (const path of barePaths(directives.text)) await add(path, false);
  const body = [pictures.text, ...refused].filter((part) => part !== "").join("\n");
  return { body, files: [...files.values(), ...pictures.files.map((path) => outgoing(path, directives))] };
}

const shortName = (path: string) => path.split(/[\\/]/).at(-1)?.slice(0, 80) || "a file";

const MOST_PICTURES = 10;

/** Pictures that were fetched leave the text; the link of one that was not stays. */
async function fetchPictures(
  text: string,
  { download, sendsFiles, home }: AnswerOptions,
  notes: string[],
): Promise<{ readonly text: string; readonly files: readonly string[] }> {
  const links = download && sendsFiles !== false ? imageLinks(text).slice(0, MOST_PICTURES) : [];
  const fetched = new Map<string, string | null>();
  await Promise.all(
    [...new Set(links.map(({ url }) => url))].map(async (url) => {
      if (holdsSecret(url, home.redact)) {
        notes.push("a picture of the answer was not fetched: its address holds a key or password");
        return;
      }
      const file = await download?.(url, {}).catch((error: unknown) => {
        notes.push(`a picture of the answer was not fetched: ${error instanceof Error ? error.message : error}`);
        return null;
      });
      fetched.set(url, file?.mediaType.startsWith("image/") ? file.path : null);
    }),
  );
  let rest = "";
  let from = 0;
  for (const { start, end, url } of links) {
    if (!fetched.get(url)) continue;
    rest += text.slice(from, start);
    from = end;
  }
  if (from === 0) return { text, files: [] };
  const left = (rest + text.slice(from)).replace(/[ \t]{1,80}\n/g, "\n").replace(/\n{3,}/g, "\n\n");
  return { text: left.trim(), files: [...fetched.values()].filter((path) => path !== null) };
}

const ORDER: readonly OutgoingFile["kind"][] = ["image", "voice", "audio", "video", "document"];

const inOrder = (files: readonly OutgoingFile[]) =>
  [...files].sort((one, other) => ORDER.indexOf(one.kind) - ORDER.indexOf(other.kind));

const ALBUM = 10;

/** Files as they are sent: pictures that stand side by side as albums, where there are any. */
function inAlbums(files: readonly OutgoingFile[], hasAlbums: boolean): readonly Payload[] {
  const single = (file: OutgoingFile): Payload => ({ type: "file", file });
  const pictures = hasAlbums ? files.filter(isStill) : [];
  if (pictures.length < 2) return files.map(single);
  const groups = Array.from({ length: Math.ceil(pictures.length / ALBUM) }, (_, at) =>
    pictures.slice(at * ALBUM, (at + 1) * ALBUM),
  );
  const albums = groups.map(
    (some): Payload => (some[1] ? { type: "album", files: some } : single(some[0] as OutgoingFile)),
  ); // none is empty
  return [...albums, ...files.filter((file) => !pictures.includes(file)).map(single)];
}

const isStill = ({ kind, path }: OutgoingFile) => kind === "image" && /\.(?:jpe?g|png|webp)$/i.test(path);

/** The spoken answer, unless the agent has made a sound of its own. */
function spokenFirst({ asVoice }: AnswerOptions, files: readonly OutgoingFile[]): OutgoingFile[] {
  const hasSound = files.some(({ kind }) => kind === "audio" || kind === "voice");
  return asVoice && !hasSound ? [outgoing(asVoice, { asVoice: true })] : [];
}

// Very long answers: their beginning, and all of it in a file.

function firstPart(text: string, entry: PlatformEntry): string {
  const limits = splitFor(entry);
  const room = limits.max - limits.length(t(IN_FILE)) - 2;
  const parts = splitMessage(text, { ...limits, max: room });
  return `${withoutCounter(parts[0] ?? "", 1, parts.length)}\n\n${t(IN_FILE)}`;
}

async function keepText(text: string, { paths }: OpenHome): Promise<OutgoingFile> {
  const path = join(await cacheFolder(paths, "documents"), `answer-${randomUUID().slice(0, 8)}.md`);
  await writeFile(path, text, { mode: 0o600 });
  return { path, kind: "document", name: "answer.md" };
}

// What stands above and below an answer, by the settings.

function dressed(text: string, { home, settings, entry, reasoning, footer = {} }: AnswerOptions): string {
  const { runtime_footer: settled } = home.config().display;
  const own = asTable(asTable(home.config().display.platforms[entry.name]).runtime_footer);
  const enabled = typeof own.enabled === "boolean" ? own.enabled : settled.enabled;
  const fields = Array.isArray(own.fields) ? own.fields.map(String) : settled.fields;
  const below = enabled ? footerLine(fields, footer, home.osHome) : "";
  const above = isOn("show_reasoning", settings, entry) ? reasoningLines(reasoning ?? "") : "";
  return [above, text, below].filter((part) => part !== "").join("\n\n");
}

/** A key of the display that is on or off: of the platform, then for all chats if the file sets it. */
export function isOn(key: "show_reasoning" | "cleanup_progress", { home }: GatewaySettings, entry: PlatformEntry) {
  const own = asTable(home.config().display.platforms[entry.name])[key];
  const general = asTable(home.configTree()?.display)[key];
  return (typeof own === "boolean" ? own : general) === true;
}

/** Fields that are not known are left out. */
export function footerLine(fields: readonly string[], facts: FooterFacts, osHome: string): string {
  const { model, contextUsed, contextLength, cwd } = facts;
  const known: Readonly<Record<string, string | undefined>> = {
    model: model?.split("/").at(-1),
    context_pct: contextUsed && contextLength ? `${Math.round((100 * contextUsed) / contextLength)}%` : undefined,
    cwd: cwd && osHome !== "" && isWithin(cwd, osHome) ? join("~", relative(osHome, cwd)) : cwd,
  };
  return fields.flatMap((field) => (Object.hasOwn(known, field) && known[field] ? [known[field]] : [])).join(" · ");
}

function reasoningLines(text: string): string {
  if (text.trim() === "") return "";
  const lines = text.trim().split("\n");
  const more = lines.length - REASONING_LINES;
  return [
    "💭 Reasoning:",
    ...lines.slice(0, REASONING_LINES).map((line) => `> ${line}`),
    ...(more > 0 ? [`> ... (${more} more lines)`] : []),
  ].join("\n");
}

// Silence.

const MARKERS = ["silent", "no_reply", "no reply"];
const LONGEST_SILENCE = 64;

/** The reply says that there is nothing to say. A marker inside a sentence never counts. */
export function isSilence(text: string, origin: "chat" | "unattended"): boolean {
  const reply = text.trim();
  if (isMarker(reply)) return true;
  if (origin === "chat" || reply === "") return false;
  const lines = reply.split("\n");
  return /^\[silent\]/i.test(reply) || isMarker(lines[0] ?? "") || isMarker(lines.at(-1) ?? "");
}

const bare = (text: string) =>
  text.replace(/^[\p{P}\p{S}\s]+/u, "").replace(/(?<![\p{P}\p{S}\s])[\p{P}\p{S}\s]+$/u, "");

const isMarker = (text: string) => text.length <= LONGEST_SILENCE && MARKERS.includes(bare(text).toLowerCase());

/** What has been written so far may still become nothing but a marker. */
export function mayBecomeSilence(text: string): boolean {
  if (text.length > LONGEST_SILENCE) return false;
  const word = text.replace(/^[\p{P}\p{S}\s]+/u, "").toLowerCase();
  return MARKERS.some((marker) => marker.startsWith(word) || (word.startsWith(marker) && isMarker(text)));
}

// Errors of providers.

const ERROR_START =
  /^(?:api (?:call )?failed|provider authentication failed|non-retryable error|rate limited after \d+ retries|error code:|http[ /]?(?:1\.1 )?\d{3}\b(?! (?:is|are|was|means?|says|stands|tells|indicates|and|or|vs|versus|status|codes?|responses?|errors|error (?:is|means|happens|occurs))\b)|(?:incorrect|invalid) api key\b)/i;
const LONGEST_ERROR = 400;
const MOST_NEWLINES = 4;

const SAID = {
  policy: "The model provider refused this request because of its rules. Rephrase it.",
  limited: "The model provider is limiting requests right now. Try again in a few minutes.",
  key: "The model provider refused the key. The owner of this bot has to check it.",
  credit: "The account of this bot at the model provider has no credit left. The owner has to add some.",
  spent: "The spending limit of this bot is reached. The owner can raise it.",
  settings:
    "The model provider does not take requests the way this bot is set up. The owner has to check its settings.",
  length: "The conversation is too long for the model. Use /compress to shorten it, or /new to start over.",
  image: "An image in the conversation is too large for the model. Send a smaller one, or use /new.",
  other: "The model could not answer because of an error at the provider. Try again in a moment.",
} as const;

/** What a chat reads: nobody there has the keys, hosts and files that the words for a terminal name. Those are in the log. */
const FAILURE_WORDS: Readonly<Record<FailureReason, string>> = {
  auth: SAID.key,
  key_host_mismatch: SAID.key,
  content_policy_blocked: SAID.policy,
  rate_limit: SAID.limited,
  upstream_rate_limit: SAID.limited,
  overloaded: SAID.limited,
  billing: SAID.credit,
  budget_exceeded: SAID.spent,
  context_overflow: SAID.length,
  long_context_tier: SAID.length,
  payload_too_large: SAID.length,
  image_too_large: SAID.image,
  model_not_found: SAID.settings,
  provider_policy_blocked: SAID.settings,
  oauth_long_context_beta_forbidden: SAID.settings,
  llama_cpp_grammar_pattern: SAID.settings,
  multimodal_tool_content_unsupported: SAID.settings,
  ssl_cert_verification: SAID.settings,
  format_error: SAID.settings,
  thinking_signature: SAID.other,
  invalid_encrypted_content: SAID.other,
  server_error: SAID.other,
  timeout: SAID.other,
  unknown: SAID.other,
};

const FAILURES: readonly (readonly [RegExp, string])[] = [
  [/policy|safety|moderation|content filter|refus(?:al|ed to answer)/i, SAID.policy],
  [/\b429\b|rate.?limit|too many requests|quota/i, SAID.limited],
  [/\b40[13]\b|authenticat|unauthorized|forbidden|api key|credential/i, SAID.key],
];

const TAKEN_BACK = "Your message was removed from the conversation; send it again after /compress or /new.";

const failureWords = ({ reason, takenBack }: ModelFailure) =>
  [FAILURE_WORDS[reason], ...(takenBack ? [TAKEN_BACK] : [])].map(inLanguage).join("\n");

/** A provider's bare error becomes a plain sentence; everything else is returned as it is. */
export function plainFailure(text: string): string {
  const trimmed = text.trim();
  if (trimmed.length > LONGEST_ERROR || trimmed.split("\n").length > MOST_NEWLINES + 1) return text;
  const start = trimmed.replace(/^[\p{P}\p{S}\p{M}\s\u200d]+/u, "");
  if (!ERROR_START.test(start)) return text;
  return inLanguage(FAILURES.find(([pattern]) => pattern.test(start))?.[1] ?? SAID.other);
}
