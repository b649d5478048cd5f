// Rules of sub-directories are sent when work reaches them: at the end of the tool result, never in the system prompt.

import { basename, dirname, isAbsolute, join, relative, resolve, sep } from "node:path";
import { countCodePoints, sliceCodePoints } from "../kit/code-points.ts";
import { isWithin } from "../kit/files.ts";
import { pathsInPatch } from "../kit/patch-headers.ts";
import { type ContentPart, type HistoryMessage, textOf } from "../llm/messages.ts";
import { type Command, createScope, type Script, type SimpleCommand, type Word } from "../safety/shell/ast.ts";
import { parseCommandLine } from "../safety/shell/parse.ts";
import { resolveText } from "../safety/shell/resolve.ts";
import {
  blockedMarker,
  describeScreened,
  type FileRules,
  findGitRoot,
  readTextFile,
  type ScreenOptions,
  screen,
} from "./files/read.ts";
import { sha256 } from "./fingerprint.ts";
import { look, type ReadableFiles, realPath } from "./ports.ts";

const NAMES = ["AGENTS.md", "agents.md", "CLAUDE.md", "claude.md", ".cursorrules"];
const PARENTS = 5;
const MAX_CHARS = 8_000;
const HEADER = /^\[Subdirectory context discovered: (.+)\]$/gm;

export interface HintOptions extends FileRules, ScreenOptions {
  /** The session's working directory. */
  readonly cwd: string;
  readonly userHome: string;
  /** HERMES_HOME. */
  readonly hermesHome: string;
  /** Hashes of what the system prompt already carries; see `ContextReading`. */
  readonly knownHashes?: readonly string[];
  /** For the user: what was withheld, flagged or cut. */
  onWarning?(warning: string): void;
}

/**
 * One per session; a sub-agent has its own.
 *
 * - `check` is called after each tool call, in the order of the calls. Calls at the same time queue up.
 * - It never rejects: a hint may not fail a tool.
 */
export class SubdirectoryHints {
  readonly #options: HintOptions;
  readonly #visited = new Set<string>();
  #hashes: Set<string>;
  #ground: Promise<Ground> | null = null;
  #queue: Promise<unknown> = Promise.resolve();

  constructor(options: HintOptions) {
    this.#options = options;
    this.#hashes = new Set(options.knownHashes);
  }

  /**
   * What to append to the text of the result, blank line included; null when there is nothing new. `from` is where the terminal was when
   * the call was made: afterwards it may have moved.
   */
  check(tool: string, args: Readonly<Record<string, unknown>>, from = this.#options.cwd): Promise<string | null> {
    return this.#enqueue(() => this.#discover(tool, args, from), null);
  }

  /** After a resume or a compression: known is what the kept messages still hold. */
  rebuild(messages: readonly HistoryMessage[]): Promise<void> {
    return this.#enqueue(async () => {
      const { territory, boundary } = await this.#findGround();
      this.#visited.clear();
      this.#hashes = new Set(this.#options.knownHashes);
      for (const path of hintedFiles(messages)) {
        const file = join(territory.cwd, path);
        if (!isWithin(file, territory.cwd)) continue;
        this.#visited.add(dirname(file));
        const read = await readTextFile(file, boundary, this.#options);
        if (read.type === "text") this.#hashes.add(sha256(read.text));
      }
    }, undefined);
  }

  #enqueue<T>(work: () => Promise<T>, otherwise: T): Promise<T> {
    const done = this.#queue.then(work).catch(() => otherwise); // a hint may fail, the tool result may not
    this.#queue = done;
    return done;
  }

  async #discover(tool: string, args: Readonly<Record<string, unknown>>, from: string): Promise<string | null> {
    const paths = pathsOfCall(tool, args, { cwd: from, userHome: this.#options.userHome });
    if (paths.length === 0) return null;
    const ground = await this.#findGround();
    const fresh: string[] = [];
    for (const path of paths) fresh.push(...(await this.#walk(await this.#directoryOf(path), ground)));
    const depth = (directory: string) => directory.split(sep).length;
    const texts: string[] = [];
    for (const directory of fresh.toSorted((a, b) => depth(a) - depth(b))) {
      const text = await this.#load(directory, ground);
      if (text !== null) texts.push(text);
    }
    return texts.length === 0 ? null : `\n\n${texts.join("\n\n")}`;
  }

  /** Directories that are looked into for the first time, from the inside out. */
  async #walk(start: string, { territory }: Ground): Promise<readonly string[]> {
    const fresh: string[] = [];
    let at = start;
    for (let level = 0; level <= PARENTS; level++, at = dirname(at)) {
      if (at === territory.cwd || !isWithin(at, territory.cwd)) break;
      if (this.#visited.has(at)) {
        if (this.#isDone(at, territory.cwd)) break;
        continue;
      }
      this.#visited.add(at);
      if (await isEligible(at, territory, this.#options.files)) fresh.push(at);
    }
    return fresh;
  }

  #isDone(directory: string, top: string): boolean {
    for (let at = directory; at !== top; at = dirname(at)) if (!this.#visited.has(at)) return false;
    return true;
  }

  async #load(directory: string, { territory, boundary }: Ground): Promise<string | null> {
    for (const name of NAMES) {
      const path = join(directory, name);
      const file = await readTextFile(path, boundary, this.#options);
      if (file.type === "skipped" || file.type === "unreadable")
        this.#options.onWarning?.(`${path} was not loaded: ${file.reason}.`);
      if (file.type !== "text") continue;
      const hash = sha256(file.text);
      if (this.#hashes.has(hash)) return null;
      this.#hashes.add(hash);
      const shown = relative(territory.cwd, path).split(sep).join("/");
      return `[Subdirectory context discovered: ${shown}]\n${this.#screened(file.text, file.hash, path, shown)}`;
    }
    return null;
  }

  #screened(text: string, hash: string, path: string, shown: string): string {
    const screened = screen(text, hash, this.#options);
    if (screened.verdict !== "clean") this.#options.onWarning?.(describeScreened(path, screened));
    if (screened.verdict === "blocked") return blockedMarker(shown, screened.findings);
    const total = countCodePoints(text);
    if (total <= MAX_CHARS) return text;
    this.#options.onWarning?.(`${path}: only the first ${MAX_CHARS} of ${total} characters were shown to the model.`);
    const head = sliceCodePoints(text, 0, MAX_CHARS);
    // What a cut makes of the last words is looked at as well.
    const again = screen(head, hash, this.#options);
    if (again.verdict === "blocked") return blockedMarker(shown, again.findings);
    return `${head}\n\n[...truncated ${basename(path)}: ${withCommas(total)} chars total]`;
  }

  /** The real directory a path is in: itself, its parent, or the nearest one above that exists. */
  async #directoryOf(path: string): Promise<string> {
    const { files } = this.#options;
    for (let at = path; ; at = dirname(at)) {
      const found = await look(files, at);
      // What lies in a directory proves that it is there.
      const directory = found === null || found.type === "directory" ? at : dirname(at);
      if (found || dirname(at) === at) return files.resolve(directory).catch(() => directory);
    }
  }

  #findGround(): Promise<Ground> {
    this.#ground ??= this.#readGround();
    return this.#ground;
  }

  async #readGround(): Promise<Ground> {
    const { files, cwd: given, userHome, hermesHome } = this.#options;
    const real = async (path: string) => (await realPath(files, path)) ?? path;
    const [cwd, home, own] = await Promise.all([real(given), real(userHome), real(hermesHome)]);
    return {
      territory: { cwd, hermesHome: own, repositoriesOnly: cwd === home || dirname(cwd) === cwd },
      boundary: (await findGitRoot(cwd, files)) ?? cwd,
    };
  }
}

interface Ground {
  readonly territory: Territory;
  readonly boundary: string;
}

function hintedFiles(messages: readonly HistoryMessage[]): readonly string[] {
  return messages.flatMap((message) =>
    message.role === "tool"
      ? [...textOf(message.api_content ?? message.content).matchAll(HEADER)].map(([, path = ""]) => path)
      : [],
  );
}

const withCommas = (count: number) => String(count).replace(/\B(?=(?:\d{3})+$)/g, ",");

// Which paths a tool call touches, as far as its arguments show.

interface Bearings {
  /** Where relative paths start. */
  readonly cwd: string;
  readonly userHome: string;
}

const ARGUMENTS = ["path", "file_path", "workdir"];
const CHANGES_DIRECTORY = ["cd", "pushd"];
const TAKES_DIRECTORY = ["-C", "--prefix", "--cwd"];
/** A command may name thousands of files; the first ones show where it works. */
const MAX_PATHS = 64;

/** Absolute paths in the order they stand in the call, each once. */
export function pathsOfCall(
  tool: string,
  args: Readonly<Record<string, unknown>>,
  bearings: Bearings,
): readonly string[] {
  const paths = ARGUMENTS.flatMap((name) => pathOf(args[name], bearings));
  if (tool === "patch" && typeof args.patch === "string")
    paths.push(...pathsInPatch(args.patch).flatMap((name) => pathOf(name, bearings)));
  if (tool === "terminal" && typeof args.command === "string") {
    const [workdir] = pathOf(args.workdir, bearings);
    paths.push(...commandPaths(args.command, workdir === undefined ? bearings : { ...bearings, cwd: workdir }));
  }
  return [...new Set(paths)].slice(0, MAX_PATHS);
}

function pathOf(value: unknown, bearings: Bearings): string[] {
  if (typeof value !== "string" || value.trim() === "") return [];
  const path = locate(value.trim(), bearings);
  return path === null ? [] : [path];
}

function commandPaths(command: string, bearings: Bearings): string[] {
  const parsed = parseCommandLine(command);
  const walk = new CommandWalk(bearings);
  if (parsed.ok) walk.script(parsed.script);
  else walk.words(command.split(/\s+/).filter((word) => word !== ""));
  return walk.paths;
}

/** Reads commands in their order; `cd` moves what follows. */
class CommandWalk {
  readonly paths: string[] = [];
  #bearings: Bearings;

  constructor(bearings: Bearings) {
    this.#bearings = bearings;
  }

  script(script: Script): void {
    for (const { commands } of script.pipelines) for (const command of commands) this.#command(command);
  }

  words(words: readonly string[]): void {
    let takesDirectory = false;
    const moves = CHANGES_DIRECTORY.includes(words[0] ?? "");
    for (const [index, word] of words.entries()) {
      const path = takesDirectory || (moves && index > 0) ? this.#directory(word) : this.#path(word);
      if (path !== null) this.paths.push(path);
      if (moves && path !== null && index > 0) this.#bearings = { ...this.#bearings, cwd: path };
      takesDirectory = TAKES_DIRECTORY.includes(word);
    }
    if (moves && words.length === 1) this.#bearings = { ...this.#bearings, cwd: this.#bearings.userHome };
  }

  #command(command: Command): void {
    if (command.type === "simple") {
      for (const word of command.words) this.#substitutions(word);
      this.words([...command.words, ...targetsOf(command)].map((word) => resolveText(word, createScope())));
      return;
    }
    const outside = this.#bearings;
    for (const body of command.bodies) this.script(body);
    if (command.kind !== "braces") this.#bearings = outside;
    for (const word of [...command.words, ...targetsOf(command)]) this.words([resolveText(word, createScope())]);
  }

  #substitutions(word: Word): void {
    for (const part of word.parts) {
      if (part.type !== "substitution") continue;
      const outside = this.#bearings;
      this.script(part.script);
      this.#bearings = outside;
    }
  }

  #path(word: string): string | null {
    if (!word.startsWith("-")) return /[/.]/.test(word) ? locate(word, this.#bearings) : null;
    const [, option = "", value = ""] = /^(--[\w-]+)=(.+)$/s.exec(word) ?? [];
    if (value === "") return null;
    return TAKES_DIRECTORY.includes(option) ? this.#directory(value) : this.#path(value);
  }

  #directory(word: string): string | null {
    return word.startsWith("-") ? null : locate(word, this.#bearings);
  }
}

function targetsOf({ redirections }: Pick<SimpleCommand, "redirections">): readonly Word[] {
  return redirections.flatMap(({ target, heredoc }) => (heredoc === null ? [target] : []));
}

/** Null for what is no path of this machine: addresses, homes of unknown users, what only running a command would show. */
function locate(word: string, { cwd, userHome }: Bearings): string | null {
  if (/:\/\/|^git@|\$\(|`|\0/.test(word)) return null;
  const path = word.replace(/^\$(?:HOME|\{HOME\})(?=\/|$)/, "~");
  if (path === "~") return userHome;
  if (path.startsWith("~/")) return join(userHome, path.slice(2));
  if (path.startsWith("~")) return null;
  return isAbsolute(path) ? resolve(path) : resolve(cwd, path);
}

// Which directories below the working directory may add rules of their own to a conversation.

const FOREIGN = new Set([
  ...["node_modules", "venv", "__pycache__", "site-packages", "dist-packages", "backups", "backup"],
  ...["vendor", "third_party"],
]);

interface Territory {
  /** Real paths all. */
  readonly cwd: string;
  readonly hermesHome: string;
  /** The working directory is a user's home or a whole file system: only repositories below it count. */
  readonly repositoriesOnly: boolean;
}

async function isEligible(directory: string, territory: Territory, files: ReadableFiles): Promise<boolean> {
  const { cwd, hermesHome, repositoriesOnly } = territory;
  if (directory === cwd || !isWithin(directory, cwd) || isWithin(directory, hermesHome)) return false;
  const segments = relative(cwd, directory).split(sep);
  if (segments.some((segment) => segment.startsWith(".") || FOREIGN.has(segment))) return false;
  if (!repositoriesOnly) return true;
  for (let at = directory; at !== cwd; at = dirname(at)) if (await look(files, join(at, ".git"))) return true;
  return false;
}

/** The result with its hints. A picture stays as it is; the text goes to the first text part. */
export function withHints(
  content: string | readonly ContentPart[],
  hints: string | null,
): string | readonly ContentPart[] {
  if (hints === null) return content;
  if (typeof content === "string") return content + hints;
  const first = content.findIndex(({ type }) => type === "text");
  if (first === -1) return [{ type: "text", text: hints.trimStart() }, ...content];
  return content.map((part, index) =>
    index === first && part.type === "text" ? { ...part, text: part.text + hints } : part,
  );
}
