// Files that an answer asks to send: the tags it names them by, and whether a file may leave this machine.
import { realpath, stat } from "node:fs/promises";
import { basename, extname, isAbsolute, join } from "node:path";
import type { OpenHome } from "../../home/open.ts";
import { isMissing } from "../../kit/errors.ts";
import { isWithin } from "../../kit/files.ts";
import { withoutFence } from "../../prompt/fence.ts";
import { covers, HERMES_PATHS } from "../../safety/file-guard.ts";
import { SECRET_PLACES } from "../../safety/secret-places.ts";
import type { OutgoingFile } from "./contract.ts";

type Kind = "image" | "video" | "audio" | "document";

const NAMES: Readonly<Record<Kind, string>> = {
  image: "png jpg jpeg gif webp bmp tiff svg",
  video: "mp4 mov avi mkv webm 3gp",
  audio: "mp3 wav ogg opus m4a flac",
  document:
    "pdf doc docx odt rtf txt md epub xls xlsx ods csv tsv json xml yaml yml ppt pptx odp key kml kmz geojson gpx " +
    "zip tar gz tgz bz2 xz 7z rar apk ipa html htm",
};
const KINDS = new Map(
  Object.entries(NAMES).flatMap(([kind, names]) => names.split(" ").map((name) => [name, kind as Kind] as const)), // a key of NAMES
);

/** What a file is by its name; one without a known ending is a document. */
const kindOf = (path: string): Kind => KINDS.get(extname(path).slice(1).toLowerCase()) ?? "document";

// The tags. A line is looked at by itself, and only lines that are not code, a quote or data give orders.

/** One way to read where a path ends. */
interface Reading {
  readonly path: string;
  /** In the line, without what wraps it. */
  readonly end: number;
  /** The file need not exist for this to be an order. */
  readonly sure: boolean;
}

interface Tag {
  /** In its line, with what wraps it. */
  readonly start: number;
  readonly end: number;
  readonly path: string;
}

/** An extension, and what may follow a path: the end of a sentence, brackets, quotes, emphasis. */
const EXTENSION = /\.([a-z0-9]{1,8})(?=$|[\s,;:!?)\]}>"'`*~”’]|[._](?!\w))/gi;

/** Where the first path with a known extension ends; 0: there is none. */
function knownEnd(text: string): number {
  for (const { index, 0: whole, 1: name = "" } of text.matchAll(EXTENSION))
    if (KINDS.has(name.toLowerCase())) return index + whole.length;
  return 0;
}

const PATH_START = /^(?:~?\/(?!\/)|[a-z]:[\\/])/i;
const LONGEST_PATH = 400;
const CLOSING: Readonly<Record<string, string>> = { "“": "”", "‘": "’" };
const closingOf = (opening: string) => CLOSING[opening] ?? opening;
/** Behind a letter it is part of a word; a quote, a bracket or emphasis may stand before it. */
const TAG = /(?<![\w/\\])(["'`*_~“‘]{0,4})MEDIA:[ \t]?(["'`“]?)/g;
const DIRECTIVE = /\[\[(audio_as_voice|as_document)\]\]/g;
/** The beginning of a list item, whole or in part. */
const isBullet = (line: string) => /^(?:[-*+•]|\d{1,3}[.)]?)?$/.test(line.trim());

interface Line {
  readonly text: string;
  /** Of the line in the whole text. */
  readonly at: number;
  readonly kind: "prose" | "code" | "data";
}

function linesOf(text: string): Line[] {
  let fence: string | null = null;
  let at = 0;
  return text.split("\n").map((line) => {
    const start = at;
    at += line.length + 1;
    const marks = /^ {0,3}(`{3,}|~{3,})/.exec(line)?.[1];
    const wasOpen = fence !== null;
    if (marks !== undefined && fence === null) fence = marks;
    else if (fence !== null && marks?.startsWith(fence) && line.trim() === marks) fence = null;
    if (wasOpen || marks !== undefined) return { text: line, at: start, kind: "code" };
    const isData = /^\s*>/.test(line) || /^\s*[[{]\s*["{]/.test(line);
    return { text: line, at: start, kind: isData ? "data" : "prose" };
  });
}

/** Between backticks of one line. */
function codeSpans(line: string): (readonly [number, number])[] {
  const runs = [...line.matchAll(/`+/g)];
  const spans: (readonly [number, number])[] = [];
  for (let first = 0; first < runs.length; first++) {
    const [open] = runs[first] ?? [""];
    const second = runs.findIndex((run, index) => index > first && run[0] === open);
    if (second < 0) continue;
    spans.push([runs[first]?.index ?? 0, (runs[second]?.index ?? 0) + open.length]);
    first = second;
  }
  return spans;
}

const inside = (spans: readonly (readonly [number, number])[], at: number) =>
  spans.some(([start, end]) => at >= start && at < end);

const VALUE = /"(?:[^"\\]|\\.){0,200}"[ \t]{0,8}:[ \t]{0,8}"(?:[^"\\]|\\.){0,2000}"/g;

/** The tags of a line of prose. `exists` is asked about paths that only count when they lead to a file. */
function tagsIn(line: string, exists: (path: string) => boolean): Tag[] {
  if (!line.includes("MEDIA:")) return [];
  const code = codeSpans(line);
  const values = [...line.matchAll(VALUE)].map(({ index, 0: whole }) => [index, index + whole.length] as const);
  const tags: Tag[] = [];
  for (const match of line.matchAll(TAG)) {
    const [whole, outer = "", inner = ""] = match;
    const word = match.index + outer.length;
    if (inside(values, word) || match.index < (tags.at(-1)?.end ?? 0)) continue;
    const readings = readingsOf(line, match.index + whole.length, { outer, inner });
    const inCode = inside(code, word);
    const found = readings.find(({ path }) => exists(path)) ?? (inCode ? undefined : readings.find(({ sure }) => sure));
    if (found) tags.push(wrapped(line, { found, word, outer }));
  }
  return tags;
}

function readingsOf(line: string, start: number, { outer, inner }: Record<"outer" | "inner", string>): Reading[] {
  const rest = line.slice(start, start + LONGEST_PATH);
  if (!PATH_START.test(rest)) return [];
  const reading = (length: number, end = start + length): Reading => {
    const path = rest.slice(0, length);
    return { path, end, sure: KINDS.has(extname(path).slice(1).toLowerCase()) };
  };
  const quote = inner || (/["'`“‘]$/.exec(outer)?.[0] ?? "");
  const closing = quote === "" ? -1 : rest.indexOf(closingOf(quote));
  if (closing > 0) return [reading(closing, start + closing + inner.length)];
  const word = /^\S+/.exec(rest)?.[0] ?? "";
  const short = knownEnd(word);
  if (short > 0) return [reading(short)];
  const bare = reading(word.replace(/[.,;:!?)\]}>"'`*_~”’]{1,8}$/, "").length);
  const another = rest.indexOf("MEDIA:");
  const long = knownEnd(another < 0 ? rest : rest.slice(0, another));
  return long > 0 ? [reading(long), { ...bare, sure: false }] : [{ ...bare, sure: false }];
}

/** What wraps a tag goes with it, and the full stop of a sentence that it ends. */
function wrapped(line: string, { found, word, outer }: { found: Reading; word: number; outer: string }): Tag {
  let { end } = found;
  let start = word;
  for (const opening of [...outer].reverse()) {
    if (line[end] !== closingOf(opening)) break;
    end++;
    start--;
  }
  if (line[end] === "." && /^\.(?:\s|$)/.test(line.slice(end))) end++;
  return { start, end, path: found.path };
}

/** Paths that the tags of a text may mean: whether they exist decides how it is read. */
export function pathsToCheck(text: string): string[] {
  const paths = new Set<string>();
  const note = (path: string) => {
    paths.add(path);
    return false;
  };
  for (const line of linesOf(text)) if (line.kind === "prose") tagsIn(line.text, note);
  return [...paths];
}

interface Directives {
  /** The answer without its tags. */
  readonly text: string;
  /** As they are written, each once. */
  readonly paths: readonly string[];
  readonly asVoice: boolean;
  readonly asDocument: boolean;
}

/** Takes the orders out of an answer. The same law holds for what a stream shows of it and for its last form. */
export function takeDirectives(text: string, exists: (path: string) => boolean): Directives {
  const paths: string[] = [];
  const words = new Set<string>();
  let removed = false;
  const lines = linesOf(text).map((line) => {
    if (line.kind !== "prose") return line.text;
    const tags: { start: number; end: number }[] = tagsIn(line.text, exists).map(({ path, ...place }) => {
      paths.push(path);
      return place;
    });
    const code = codeSpans(line.text);
    for (const { 0: whole, 1: word = "", index } of line.text.matchAll(DIRECTIVE)) {
      if (inside(code, index)) continue;
      words.add(word);
      tags.push({ start: index, end: index + whole.length });
    }
    if (tags.length === 0) return line.text;
    removed = true;
    return without(
      line.text,
      tags.sort((one, other) => one.start - other.start),
    );
  });
  return {
    text: removed ? collapsed(lines).join("\n").trim() : text,
    paths: [...new Set(paths)],
    asVoice: words.has("audio_as_voice"),
    asDocument: words.has("as_document"),
  };
}

function without(line: string, places: readonly { readonly start: number; readonly end: number }[]): string {
  let rest = "";
  let from = 0;
  for (const { start, end } of places) {
    rest += line.slice(from, start);
    from = end;
    if (/(?:^|\s)$/.test(rest)) while (line[from] === " ") from++;
  }
  // A list item that was nothing but tags goes as a whole.
  const [first] = places;
  const before = line.slice(0, first?.start);
  if (isBullet(before) && (rest.slice(before.length) + line.slice(from)).trim() === "") return "";
  return (rest + line.slice(from)).trimEnd();
}

/** At most one empty line in a row, except in code. */
function collapsed(lines: readonly string[]): string[] {
  const kinds = linesOf(lines.join("\n"));
  return lines.filter((line, index) => {
    const isBlank = line.trim() === "" && kinds[index]?.kind === "prose";
    return !(isBlank && lines[index - 1]?.trim() === "" && kinds[index - 1]?.kind === "prose");
  });
}

// What of an answer that is still being written can be shown.

const MOST_STEPS = 20;
const STARTS = ["[[audio_as_voice]]", "[[as_document]]"];

/** The visible text so far: what may turn out to be a tag waits until it is decided. */
export function visibleSoFar(text: string, exists: (path: string) => boolean): string {
  return takeDirectives(text.slice(0, decidedUpTo(text)), exists).text.trim();
}

function decidedUpTo(text: string): number {
  const last = linesOf(text).at(-1);
  if (last === undefined || last.kind !== "prose") return text.length;
  let line = last.text;
  // A shorter line reads differently: what is left must be decided, too.
  for (let steps = 0; steps < MOST_STEPS; steps++) {
    const cut = undecidedFrom(line);
    if (cut === line.length) return last.at + cut;
    line = line.slice(0, cut);
  }
  return last.at;
}

function undecidedFrom(line: string): number {
  const tag = [...line.matchAll(TAG)].find(({ index, 0: whole }) => {
    const rest = line.slice(index + whole.length);
    return rest === "" || PATH_START.test(rest) || /^(?:~|[a-z]:?)$/i.test(rest);
  });
  const half = /["'`*_~“‘]{0,4}(?:M|ME|MED|MEDI|MEDIA)?$/.exec(line);
  const bracket = line.lastIndexOf("[");
  const opening = line[bracket - 1] === "[" ? bracket - 1 : bracket;
  const isOpen = opening >= 0 && STARTS.some((word) => word.startsWith(line.slice(opening)));
  // Behind a backtick that is not closed yet it may be code.
  const spans = codeSpans(line);
  const tick = [...line.matchAll(/`+/g)].find(({ index }) => !inside(spans, index))?.index ?? line.length;
  const maybeCode = [...line.matchAll(DIRECTIVE)].find(({ index }) => index > tick);
  const places = [tag?.index, half?.index, maybeCode?.index, isOpen ? opening : undefined];
  const cut = Math.min(...places.map((place) => place ?? line.length));
  return isBullet(line.slice(0, cut)) ? 0 : cut;
}

// Other ways in which an answer names files: pictures by their address, and paths in a sentence.

interface ImageLink {
  readonly start: number;
  readonly end: number;
  readonly url: string;
}

const MARKDOWN_IMAGE = /!\[[^\]\n]{0,500}\]\((https?:\/\/[^\s()<>]{1,2000})(?:[ \t]{1,8}"[^"\n]{0,300}")?\)/g;
const HTML_IMAGE = /<img\s[^<>\n]{1,3000}>/gi;
const SOURCE = /\ssrc=["']?(https?:\/\/[^\s"'<>]{1,2000})/i;
const IMAGE_HOST = /^(?:.{0,200}\.)?(?:fal\.media|fal-cdn\.[a-z.]{2,20}|replicate\.delivery)$/;

/** Pictures that an answer shows by their address, in order. */
export function imageLinks(text: string): ImageLink[] {
  return linesOf(text).flatMap(({ text: line, at, kind }) => {
    if (kind !== "prose") return [];
    const code = codeSpans(line);
    return [...line.matchAll(MARKDOWN_IMAGE), ...line.matchAll(HTML_IMAGE)]
      .map(({ index, 0: whole, 1: url = SOURCE.exec(whole)?.[1] ?? "" }) => ({ index, whole, url }))
      .filter(({ index, url }) => !inside(code, index) && isImageAddress(url))
      .map(({ index, whole, url }) => ({ start: at + index, end: at + index + whole.length, url }))
      .sort((one, other) => one.start - other.start);
  });
}

function isImageAddress(url: string): boolean {
  if (!URL.canParse(url)) return false;
  const { hostname } = new URL(url);
  return /\.(?:png|jpe?g|gif|webp)/i.test(url) || IMAGE_HOST.test(hostname) || hostname.includes("fal-cdn");
}

/** Paths in plain sentences. They stay in the text; only files that exist are meant. */
export function barePaths(text: string): string[] {
  const found = linesOf(text).flatMap(({ text: line, kind }) => {
    if (kind !== "prose") return [];
    const code = codeSpans(line);
    return [...line.matchAll(/(?<![^\s("'“*_])(?:~?\/|[A-Za-z]:[\\/])[^\s"'`<>]{1,400}/g)].flatMap((match) => {
      if (inside(code, match.index)) return [];
      const end = knownEnd(match[0]);
      return end > 0 && !match[0].startsWith("//") ? [match[0].slice(0, end)] : [];
    });
  });
  return [...new Set(found)];
}

/** Tools that only repeat what stands somewhere: a tag in there is nobody's order. */
const READERS = new Set("read_file search_files session_search skill_view skills_list terminal process".split(" "));

/** Files that a tool made and wants sent, by its result. A stranger's text orders nothing. */
export function mediaInResult(tool: string, result: string): string[] {
  if (READERS.has(tool) || !result.includes("MEDIA:") || withoutFence(result) !== result) return [];
  const texts: string[] = [];
  try {
    JSON.parse(result, (_, value: unknown) => {
      if (typeof value === "string") texts.push(value);
      return value;
    });
  } catch {
    texts.push(result); // not JSON: as it is
  }
  return texts.flatMap((text) =>
    text.split("\n").flatMap((line) => {
      const { text: rest, paths } = takeDirectives(line.trim(), () => false);
      return rest === "" ? paths : [];
    }),
  );
}

// Whether a file may leave.

const SYSTEM = "/etc /proc /sys /dev /root /boot /var/log /var/lib /var/run /run /private/etc /private/var/log".split(
  " ",
);
const PRIVATE = ".ssh .aws .gnupg .kube .docker .config .azure .gcloud Library/Keychains".split(" ");
const CACHES = "images audio videos documents screenshots vision".split(" ");
const OLD_CACHES = "image_cache audio_cache video_cache document_cache browser_screenshots temp_vision_images".split(
  " ",
);
const OWN = new Set(["own secrets", "own state", "settings"]);

interface FileRules {
  readonly home: Pick<OpenHome, "paths" | "osHome" | "config">;
  /** Milliseconds since the epoch. */
  readonly now: number;
}

/** The real path of a file that may be sent, or why it may not. */
export async function checkedFile(path: string, rules: FileRules): Promise<{ path: string } | { refused: string }> {
  const { home, now } = rules;
  const { gateway } = home.config();
  try {
    const real = await realpath(expand(path, home.osHome));
    const facts = await stat(real);
    if (!facts.isFile()) return { refused: "not a file" };
    const folders = [
      ...cachesOf(home.paths),
      ...gateway.media_delivery_allow_dirs.map((one) => expand(one, home.osHome)),
    ];
    const allowed = await Promise.all(folders.map((folder) => realpath(folder).catch(() => folder)));
    if (allowed.some((folder) => isWithin(real, folder))) return { path: real };
    if (await isProtected(real, home)) return { refused: "it is in a protected place" };
    const age = (now - facts.mtimeMs) / 1000;
    const isRecent = gateway.trust_recent_files && age <= gateway.trust_recent_files_seconds;
    if (gateway.strict && !isRecent) return { refused: "its folder is not in gateway.media_delivery_allow_dirs" };
    return { path: real };
  } catch (error) {
    return { refused: isMissing(error) ? "not found" : "it cannot be read" };
  }
}

const cachesOf = (paths: OpenHome["paths"]) => [
  ...CACHES.map((name) => join(paths.cacheDir, name)),
  ...OLD_CACHES.map((name) => paths.at(name)),
];

async function isProtected(real: string, { paths, osHome }: FileRules["home"]): Promise<boolean> {
  const [user, ...homes] = await Promise.all(
    [osHome, paths.dir, paths.root].map((folder) => realpath(folder).catch(() => folder)),
  );
  const below = (folder: string) =>
    isWithin(real, folder) ? real.slice(folder.length + 1).replaceAll("\\", "/") : null;
  if (/^\.env(?:\.|$)|^\.envrc$/i.test(basename(real))) return true;
  // Where the user is root, files of theirs are below /root.
  if (SYSTEM.some((folder) => isWithin(real, folder) && !(folder === "/root" && user?.startsWith("/root"))))
    return true;
  const own = homes.map(below).filter((rest): rest is string => rest !== null);
  if (own.some((rest) => /^\.?credential/i.test(basename(rest)))) return true;
  if (own.some((rest) => HERMES_PATHS.some((place) => OWN.has(place.holds) && covers(place, rest)))) return true;
  const mine = user === undefined ? null : below(user);
  if (mine === null) return false;
  const places = [...PRIVATE.map((path) => ({ path, type: "directory" }) as const), ...SECRET_PLACES];
  return places.some((place) => covers(place, mine));
}

function expand(path: string, osHome: string): string {
  return path === "~" || path.startsWith("~/") ? join(osHome, path.slice(2)) : path;
}

/** Whether a path, as it is written in an answer, leads to a file. */
export async function leadsToFile(path: string, osHome: string): Promise<boolean> {
  const place = expand(path, osHome);
  if (!isAbsolute(place)) return false;
  return stat(place).then(
    (facts) => facts.isFile(),
    () => false,
  );
}

interface Look {
  readonly asVoice?: boolean;
  readonly asDocument?: boolean;
}

export function outgoing(path: string, { asVoice = false, asDocument = false }: Look = {}): OutgoingFile {
  const kind = kindOf(path);
  const shown = kind === "audio" && asVoice ? "voice" : kind === "image" && asDocument ? "document" : kind;
  return { path, kind: shown, name: basename(path) };
}
