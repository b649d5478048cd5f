// What every file tool needs before it touches a file: the path, the guards, what the agent already knows.

import { basename, dirname, join, posix } from "node:path";
import { similarityTo } from "../../kit/similarity.ts";
import { createFileGuard, type FileGuard, findForbiddenDevice, isKernelPath } from "../../safety/file-guard.ts";
import { expandPath } from "../../safety/paths.ts";
import { fileMarks } from "../../safety/redact-known.ts";
import { redactPrivateKeys } from "../../safety/redact-shapes.ts";
import type { Confinement, EnvironmentFiles } from "../../sandbox/environment.ts";
import type { StateKey, ToolContext, ToolState } from "../toolset/context.ts";
import { checkedFiles } from "./access.ts";
import { withEditor } from "./editor-files.ts";
import { type Reviewed, reviewedStep } from "./review.ts";

export interface Workspace {
  readonly files: EnvironmentFiles;
  readonly guard: FileGuard;
  readonly activity: FileActivity;
  /** Absolute, relative to where the environment stands. */
  absolute(path: string): string;
  /** Null, or why this file may not be read. */
  refuseRead(path: string): Promise<string | null>;
  /** Null, or why this file may not be written; may ask the user. */
  refuseWrite(path: string, crossProfile: boolean): Promise<string | null>;
  /** Runs a step alone on these real paths; what it is about to change is shown first, where somebody wants to see it. */
  alone<T>(paths: readonly string[], step: (reviewed: Reviewed) => Promise<T>): Promise<T>;
  /** Text of a file as the model may see it, line for line. */
  redact(text: string, path: string): string;
}

export async function openWorkspace(ctx: ToolContext): Promise<Workspace> {
  const { environment } = ctx;
  const elsewhere = environment.files !== undefined;
  const outside = new OutsideFiles();
  const { confinement } = environment;
  const present = outside.routed(environment.files ?? checkedFiles);
  // An editor knows this machine's files, not those of a container.
  const edited = ctx.editorFiles && (!elsewhere || confinement !== undefined) ? ctx.editorFiles : null;
  const files = followingOnce(edited ? withEditor(present, edited, { confined: confinement !== undefined }) : present);
  /** Asked about in this call, with a yes. */
  const confirmed = new Set<string>();
  // Where commands have a home of their own, the user's is protected all the same.
  const userHome = ctx.env?.("HOME") ?? environment.home;
  const guard = await createFileGuard({
    userHome: environment.home,
    otherUserHomes: [userHome],
    profileHome: ctx.home.dir,
    rootHome: ctx.home.root,
    // Inside a container or on another machine things are laid out as they are here.
    otherHermesHomes: [posix.join(environment.home, ".hermes"), join(userHome, ".hermes")],
    follow: files.follow,
    writeSafeRoots: ctx.writeSafeRoots,
  });
  return {
    files,
    guard,
    activity: ctx.forScript ? new FileActivity() : ctx.state.of(fileActivity),
    absolute: (path) => expandPath(path, environment.cwd, environment.home, elsewhere ? posix : undefined),
    async refuseRead(path) {
      const device = await findForbiddenDevice(path, files.follow);
      if (device !== null)
        return `Cannot read ${path}: ${device} is a device or a window into a process; it never ends, waits for input or shows secrets.`;
      const verdict = await guard.canRead(path);
      return verdict.type === "deny" ? verdict.message : null;
    },
    async refuseWrite(path, crossProfile) {
      const device = await findForbiddenDevice(path, files.follow);
      if (device !== null) return `Cannot write ${path}: ${device} is a device.`;
      const kernel = isKernelPath(path) ? path : (await files.follow(path)).find(isKernelPath);
      if (kernel !== undefined)
        return `Cannot write ${path}: ${kernel} is not an ordinary file but a part of the running system.`;
      const verdict = await guard.canWrite(path, { crossProfile });
      if (verdict.type === "deny") return verdict.message;
      const asked = verdict.type === "ask" ? verdict.command : commandThatTells(path, ctx);
      const isAccepted = ctx.acceptsEdit?.(path) === true && ctx.acceptsEdit(await files.resolve(path));
      if (asked !== null && !isAccepted) {
        const outcome = await ctx.guard.decide(asked, ctx.signal);
        if (!outcome.approved) return outcome.message;
        if (outcome.userApproved) confirmed.add(await files.resolve(path));
      }
      const real = confinement ? await files.resolve(path) : path;
      return confinement && !confinement.allowsWrite(real) ? refuseOutside(real, confinement, outside, ctx) : null;
    },
    alone: (paths, step) => reviewedStep(paths, ctx, (path) => confirmed.has(path), step),
    redact: (text, path) =>
      ctx.redactFile ? ctx.redactFile(text, path) : ctx.redact(redactPrivateKeys(text, fileMarks)),
  };
}

/** Asks whether a file may be written where commands cannot write; a yes sends it there. */
async function refuseOutside(
  path: string,
  confinement: Confinement,
  outside: OutsideFiles,
  { guard, signal }: ToolContext,
): Promise<string | null> {
  if (!confinement.holdsStill(path))
    return `Cannot write ${path}: it runs by itself outside the sandbox, and commands in the sandbox can exchange the folder it is to lie in.`;
  const outcome = await guard.decideOutsideWrite?.(path, signal);
  if (!outcome) return `Cannot write ${path}: the sandbox does not let commands write there.`;
  if (!outcome.approved) return outcome.message;
  outside.allow(path, confinement);
  return null;
}

/** Files that are written on this machine as it is, because somebody said yes to each of them in this call. */
class OutsideFiles {
  readonly #allowed = new Set<string>();
  #confinement: Confinement | null = null;

  allow(path: string, confinement: Confinement): void {
    this.#allowed.add(path);
    this.#confinement = confinement;
  }

  routed(inside: EnvironmentFiles): EnvironmentFiles {
    const of = (path: string) => (this.#allowed.has(path) ? checkedFiles : inside);
    const outside = async (isOutside: boolean, work: () => Promise<void>) => {
      if (!isOutside) return work();
      this.#confinement?.changingOutside?.();
      try {
        await work();
      } finally {
        await this.#confinement?.changedOutside();
      }
    };
    return {
      ...inside,
      facts: (path) => of(path).facts(path),
      chunks: (path, signal) => of(path).chunks(path, signal),
      read: (path) => of(path).read(path),
      write: (path, data) => outside(this.#allowed.has(path), () => of(path).write(path, data)),
      makeDirectory: (path) => {
        const holds = [...this.#allowed].some((file) => dirname(file) === path);
        return (holds ? checkedFiles : inside).makeDirectory(path);
      },
      remove: (path) => of(path).remove(path),
      move: async (from, to) => {
        const leaves = this.#allowed.has(from) || this.#allowed.has(to);
        // What is moved away for a while has to be found again.
        if (leaves) for (const path of [from, to]) this.#allowed.add(path);
        await outside(leaves, () => (leaves ? checkedFiles : inside).move(from, to));
      },
    };
  }
}

/** A later conversation takes its rules from such a file: once a stranger's text was read, writing it is judged as the command would be. */
function commandThatTells(path: string, { foreignText }: ToolContext): string | null {
  if (!/^(?:agents|claude|\.hermes)\.md$|^\.cursorrules$/i.test(basename(path)) || !foreignText?.()) return null;
  return `tee ${/^[\w./~-]+$/.test(path) ? path : basename(path)}`;
}

/** What the guards were shown is what is then opened: each path is followed once in a call. */
function followingOnce(files: EnvironmentFiles): EnvironmentFiles {
  const known = new Map<string, Promise<readonly string[]>>();
  const follow = (path: string) => {
    const hops = known.get(path) ?? files.follow(path);
    known.set(path, hops);
    return hops;
  };
  return { ...files, follow, resolve: async (path) => (await follow(path)).at(-1) ?? path };
}

// What an agent has seen and done with files, so that it neither reads in circles nor writes over what it does not know.

/** The notice that stands for content returned before; never to be written into a file. */
export const UNCHANGED_NOTICE = "File unchanged since it was last read; its content is above in this conversation.";

/** One agent's knowledge. Paths are real ones. */
class FileActivity {
  #last: { key: string; count: number } | null = null;
  readonly #returned = new Map<string, { version: string; notices: number }>();
  readonly #seen = new Map<string, { version: string; partial: boolean }>();
  readonly #failedPatches = new Map<string, number>();

  /** Counts a call that reads; returns how many times in a row it was made just so. */
  repeat(key: string): number {
    this.#last = this.#last?.key === key ? { key, count: this.#last.count + 1 } : { key, count: 1 };
    return this.#last.count;
  }

  /** Another tool ran: what follows is no repetition. */
  breakRepetition(): void {
    this.#last = null;
  }

  /** How often this very content was asked for again since it was returned; 0 = it is new or has changed. */
  askedAgain(range: string, version: string): number {
    const returned = this.#returned.get(range);
    if (returned?.version !== version) return 0;
    return ++returned.notices;
  }

  returned(range: string, path: string, version: string, partial: boolean): void {
    this.#returned.set(range, { version, notices: 0 });
    const seen = this.#seen.get(path);
    this.#seen.set(path, { version, partial: partial && (seen?.version !== version || seen.partial) });
  }

  /** The version this agent last read or wrote. */
  seen(path: string): { readonly version: string; readonly partial: boolean } | undefined {
    return this.#seen.get(path);
  }

  wrote(path: string, version: string): void {
    this.#seen.set(path, { version, partial: false });
    this.#failedPatches.delete(path);
    this.breakRepetition();
    lastWriters.delete(path);
    lastWriters.set(path, { by: new WeakRef(this), version });
    const oldest = lastWriters.keys().next();
    if (lastWriters.size > MAX_WRITERS && !oldest.done) lastWriters.delete(oldest.value);
  }

  removed(path: string): void {
    this.#seen.delete(path);
    this.breakRepetition();
  }

  /** Counts failed patches of one file. */
  patchFailed(path: string): number {
    const count = (this.#failedPatches.get(path) ?? 0) + 1;
    this.#failedPatches.set(path, count);
    return count;
  }

  /** The conversation no longer holds what was returned (compression, a new session). */
  forget(): void {
    this.#returned.clear();
    this.breakRepetition();
  }

  /** Why writing now may undo another's work; null when there is no reason to think so. */
  staleness(path: string, current: string): string | null {
    const seen = this.#seen.get(path);
    if (!seen || seen.version === current) return null;
    const writer = lastWriters.get(path);
    const other = writer?.version === current && writer.by.deref() !== this;
    return other
      ? "another agent changed this file after you read it; read it again to be sure nothing of theirs was lost"
      : "this file changed on disk after you read it; read it again to be sure nothing was lost";
  }
}

/** Agents of one process share its files: who wrote which version last. */
const lastWriters = new Map<string, { readonly by: WeakRef<FileActivity>; readonly version: string }>();
const MAX_WRITERS = 2000;

export const fileActivity: StateKey<FileActivity> = { name: "files", create: () => new FileActivity() };

/** The tool runner calls this for every call, so that only uninterrupted repetition counts as one. */
export function noteToolCall(state: ToolState, toolName: string): void {
  if (toolName !== "read_file" && toolName !== "search_files") state.of(fileActivity).breakRepetition();
}

/** To be called when earlier results left the conversation. */
export function forgetReads(state: ToolState): void {
  state.of(fileActivity).forget();
}

// What kind of file it is, from its name and its first bytes.

const IMAGES = /\.(?:png|jpe?g|gif|webp|bmp|ico|tiff?|heic|heif|avif)$/i;

const BINARIES = new RegExp(
  `\\.(?:${[
    "pdf|docx?|xlsx?|pptx?|odt|ods|odp|epub",
    "zip|tar|gz|tgz|bz2|xz|zst|7z|rar|jar|war|whl|deb|rpm|dmg|iso|apk|ipa",
    "exe|dll|so|dylib|a|o|obj|lib|class|pyc|pyo|wasm|node|bin|dat",
    "mp3|wav|flac|ogg|oga|opus|m4a|aac|mp4|m4v|mkv|mov|avi|webm|wmv",
    "ttf|otf|woff2?|eot|psd|ai|sketch|blend",
    "sqlite3?|db|mdb|parquet|npy|npz|pkl|h5|onnx|safetensors|gguf|pt|pth",
  ].join("|")})$`,
  "i",
);

export function isImage(path: string): boolean {
  return IMAGES.test(path);
}

export function isBinaryName(path: string): boolean {
  return BINARIES.test(path);
}

export const SNIFFED_BYTES = 8192;

/** Bytes that no text has: not UTF-8, or mostly control characters. Takes the beginning of a file. */
export function looksBinary(head: Uint8Array): boolean {
  let text: string;
  try {
    // As a stream: a character cut off at the end is no error.
    text = new TextDecoder("utf-8", { fatal: true }).decode(head, { stream: true });
  } catch {
    return true;
  }
  let control = 0;
  for (let index = 0; index < text.length; index++) {
    const code = text.charCodeAt(index);
    if (code === 0) return true;
    if ((code < 32 && !(code >= 7 && code <= 13) && code !== 27) || code === 0x7f) control++;
  }
  return control > text.length * 0.3;
}

// "Did you mean": names near a path that does not exist.

const MAX = 5;
const WORTH_NAMING = 0.5;

/** Up to five names in the same directory that are most like the missing one, spelled like the path that was asked for. */
export async function findSimilar(files: EnvironmentFiles, absolute: string, asked: string): Promise<string[]> {
  const wanted = basename(absolute);
  const names = await files.list(dirname(absolute)).catch((): string[] => []);
  const ratioOf = similarityTo(wanted.toLowerCase());
  return names
    .map((name) => ({ name, ratio: likeness(name, wanted, ratioOf) }))
    .filter(({ ratio }) => ratio >= WORTH_NAMING)
    .sort((a, b) => b.ratio - a.ratio || a.name.localeCompare(b.name))
    .slice(0, MAX)
    .map(({ name }) => join(dirname(asked), name));
}

function likeness(name: string, wanted: string, ratioOf: (other: string, floor: number) => number): number {
  const lower = name.toLowerCase();
  const target = wanted.toLowerCase();
  const stem = target.split(".")[0] ?? "";
  if (lower === target) return 1;
  if (stem.length >= 3 && lower.split(".")[0] === stem) return 0.95;
  if (stem.length >= 3 && lower.includes(stem)) return Math.max(0.7, ratioOf(lower, 0));
  return ratioOf(lower, WORTH_NAMING);
}
