// Rules of sub-directories are told when work reaches them: at the end of the tool result, never in the system prompt.
import { basename, dirname, join, relative, sep } from "node:path";
import { countCodePoints, sliceCodePoints } from "../kit/code-points.ts";
import { type HistoryMessage, textOf } from "../llm/messages.ts";
import { isWithin } from "../safety/paths.ts";
import { findGitRoot } from "./files/git-root.ts";
import { type FileRules, readTextFile } from "./files/read.ts";
import { blockedMarker, describeScreened, type ScreenOptions, screen } from "./files/screen.ts";
import { sha256 } from "./fingerprint.ts";
import { pathsOfCall } from "./hints/call-paths.ts";
import { isEligible, type Territory } from "./hints/eligible.ts";

const NAMES = ["AGENTS.md", "agents.md", "CLAUDE.md", "claude.md", ".cursorrules"];
const PARENTS = 5;
const MOST_CHARS = 8_000;
const HEADER = /^\[Subdirectory context discovered: (.+)\]$/gm;

export interface HintOptions extends FileRules, ScreenOptions {
  /** The session's working directory. */
  readonly cwd: string;
  readonly userHome: string;
  /** HERMES_HOME. */
  readonly hermesHome: string;
  /** Hashes of what the system prompt already carries; see `ContextReading`. */
  readonly knownHashes?: readonly string[];
  /** What is withheld, flagged or cut is told to the user. */
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

  /** After a resume or a compression: known is what the kept messages still tell the model. */
  rebuild(messages: readonly HistoryMessage[]): Promise<void> {
    return this.#enqueue(async () => {
      const { territory, boundary } = await this.#findGround();
      this.#visited.clear();
      this.#hashes = new Set(this.#options.knownHashes);
      for (const path of toldFiles(messages)) {
        const file = join(territory.cwd, path);
        if (!isWithin(file, territory.cwd)) continue;
        this.#visited.add(dirname(file));
        const read = await readTextFile(file, boundary, this.#options);
        if (read.type === "text") this.#hashes.add(sha256(read.text));
      }
    }, undefined);
  }

  #enqueue<T>(work: () => Promise<T>, otherwise: T): Promise<T> {
    const done = this.#queue.then(work).catch(() => otherwise); // a hint is a courtesy
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
    if (total <= MOST_CHARS) return text;
    this.#options.onWarning?.(`${path}: only the first ${MOST_CHARS} of ${total} characters were shown to the model.`);
    const head = sliceCodePoints(text, 0, MOST_CHARS);
    // What a cut makes of the last words is looked at as well.
    const again = screen(head, hash, this.#options);
    if (again.verdict === "blocked") return blockedMarker(shown, again.findings);
    return `${head}\n\n[...truncated ${basename(path)}: ${withCommas(total)} chars total]`;
  }

  /** The real directory a path is in: itself, its parent, or the nearest one above that exists. */
  async #directoryOf(path: string): Promise<string> {
    const { files } = this.#options;
    for (let at = path; ; at = dirname(at)) {
      const look = await files.look(at);
      if (look?.kind === "directory" || dirname(at) === at) return (await files.real(at)) ?? at;
    }
  }

  #findGround(): Promise<Ground> {
    this.#ground ??= this.#readGround();
    return this.#ground;
  }

  async #readGround(): Promise<Ground> {
    const { files, cwd: given, userHome, hermesHome } = this.#options;
    const real = async (path: string) => (await files.real(path)) ?? path;
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

function toldFiles(messages: readonly HistoryMessage[]): readonly string[] {
  return messages.flatMap((message) =>
    message.role === "tool"
      ? [...textOf(message.api_content ?? message.content).matchAll(HEADER)].map(([, path = ""]) => path)
      : [],
  );
}

const withCommas = (count: number) => String(count).replace(/\B(?=(?:\d{3})+$)/g, ",");
