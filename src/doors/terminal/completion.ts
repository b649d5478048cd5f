// What Tab and the menu offer: slash commands with their values, project files after `@`, and paths.

import { readdir, stat } from "node:fs/promises";
import { homedir } from "node:os";
import { basename, dirname, join, resolve } from "node:path";
import type { AutocompleteItem, AutocompleteProvider, AutocompleteSuggestions } from "@earendil-works/pi-tui";
import type { OpenAgent } from "../../agent/opened.ts";
import type { CommandDefinition, CommandValues } from "../../commands/context.ts";
import { type CommandRegistry, subcommandsOf } from "../../commands/registry.ts";
import type { MenuSkill } from "../../commands/skills.ts";
import { said } from "../../home/language/words.ts";
import { formatReferenceValue } from "../../prompt/references/grammar.ts";
import { printable } from "../terminal-text.ts";
import type { ChatRequest } from "../typed-input.ts";
import type { ScreenSkin } from "./screen-skin.ts";

interface CompletionSources {
  commands(): readonly CommandDefinition[];
  /** Skills and bundles, offered behind the commands. */
  skills(): Promise<readonly MenuSkill[]>;
  /** What may follow a command; null: any words. */
  values(command: CommandDefinition, typed: string): Promise<CommandValues | null>;
  /** Paths of project files, relative to the folder. */
  files(): Promise<readonly string[]>;
  readonly cwd: string;
}

const MAX_STACKED = 5;
/** `_` and `-` are one thing in a skill's name. */
const slugLike = (typed: string) => typed.toLowerCase().replaceAll("_", "-");

const hasControls = (text: string) => /[\x00-\x1f\x7f-\x9f]/.test(text);

export class Completion implements AutocompleteProvider {
  readonly #sources: CompletionSources;

  constructor(sources: CompletionSources) {
    this.#sources = sources;
  }

  async getSuggestions(
    lines: string[],
    line: number,
    col: number,
    { force = false }: { readonly force?: boolean } = {},
  ): Promise<AutocompleteSuggestions | null> {
    const before = (lines[line] ?? "").slice(0, col);
    const found = (await this.#command(before, line)) ?? (await this.#word(before, force));
    // A name with control characters would be drawn by the terminal; whoever wants such a file types its name.
    const items = found?.items
      .filter(({ value, label }) => !hasControls(value + label))
      .map((item) => (item.description ? { ...item, description: printable(item.description) } : item));
    return found && items && items.length > 0 ? { ...found, items } : null;
  }

  applyCompletion(lines: string[], line: number, col: number, item: AutocompleteItem, prefix: string) {
    const text = lines[line] ?? "";
    const head = text.slice(0, col - prefix.length) + item.value;
    // A folder or a kind of reference is followed by more; everything else is a finished word.
    const blank = /[/:]$/.test(item.value) || text[col] === " " ? "" : " ";
    return {
      lines: lines.with(line, head + blank + text.slice(col)),
      cursorLine: line,
      cursorCol: head.length + blank.length,
    };
  }

  /** `/name` and what follows it, on the first line only. */
  async #command(before: string, line: number): Promise<AutocompleteSuggestions | null> {
    const typed = line === 0 ? /^\/([^\s/]*)(\s+)?(.*)$/s.exec(before) : null;
    if (!typed) return null;
    const [, name = "", blank, args = ""] = typed;
    if (blank === undefined) {
      const items = [...this.#names(name.toLowerCase()), ...(await this.#skills(name))];
      return { prefix: before, items };
    }
    const command = this.#sources.commands().find(({ name: own, aliases = [] }) => [own, ...aliases].includes(name));
    if (!command) return this.#stacked(before);
    const offered = (await this.#sources.values(command, args)) ?? firstWord(command, args);
    if (!offered) return null;
    const wanted = offered.replaces.toLowerCase();
    const begins = ({ value }: { readonly value: string }) => value.toLowerCase().startsWith(wanted);
    const [first, others] = [offered.values.filter(begins), offered.values.filter((one) => !begins(one))];
    const within = others.filter(({ value }) => wanted.length > 1 && value.toLowerCase().includes(wanted));
    const items = [...first, ...within]
      .filter(({ value }) => value !== offered.replaces)
      .map(({ value, about }) => ({ value, label: value, ...(about ? { description: about } : {}) }));
    return { prefix: offered.replaces, items };
  }

  async #skills(prefix: string): Promise<AutocompleteItem[]> {
    const typed = slugLike(prefix);
    const offered = await this.#sources.skills();
    return offered
      .filter(({ name }) => name.startsWith(typed))
      .map(({ name, description, kind }) => ({
        value: `/${name}`,
        label: `/${name}`,
        description: `${kind === "bundle" ? "bundle: " : ""}${description.replace(/\s+/g, " ")}`,
      }));
  }

  /** `/a /b`: behind skills stands another one, as long as there is room for it. */
  async #stacked(before: string): Promise<AutocompleteSuggestions | null> {
    const words = before.split(/\s+/);
    const last = words.pop() ?? "";
    if (!/^\/[^/]*$/.test(last) || words.length >= MAX_STACKED) return null;
    const offered = (await this.#sources.skills()).filter(({ kind }) => kind === "skill");
    const isSkill = (word: string) => offered.some(({ name }) => `/${name}` === `/${slugLike(word.slice(1))}`);
    if (!words.every((word) => word.startsWith("/") && isSkill(word))) return null;
    const items = (await this.#skills(last.slice(1))).filter(({ value }) => !words.includes(value));
    return items.length > 0 ? { prefix: last, items } : null;
  }

  #names(prefix: string): AutocompleteItem[] {
    return this.#sources.commands().flatMap((command) => {
      const names = [command.name, ...(command.aliases ?? [])];
      const hit = names.find((name) => name === prefix) ?? names.find((name) => name.startsWith(prefix));
      if (hit === undefined) return [];
      const hint = command.argsHint ? `${command.argsHint} ` : "";
      return [{ value: `/${hit}`, label: `/${hit}`, description: `${hint}${said(command.description)}` }];
    });
  }

  async #word(before: string, force: boolean): Promise<AutocompleteSuggestions | null> {
    const word = /(?<!\S)\S*$/.exec(before)?.[0] ?? "";
    if (word.startsWith("@")) {
      const items = await completeReference(word, this.#sources);
      // What is written out already is sent by Enter, not completed once more.
      return { prefix: word, items: items.some(({ value }) => value === word) ? [] : items };
    }
    const isPath = /^(?:\.{1,2}\/|~\/|\/)/.test(word) || word.includes("/");
    if (!isPath && !force) return null;
    return { prefix: word, items: await completePath(word, this.#sources.cwd) };
  }
}

/** Its subcommands, at the place where they stand. */
function firstWord(command: CommandDefinition, typed: string): CommandValues | null {
  const words = subcommandsOf(command);
  return words.length === 0 || /\s/.test(typed) ? null : { replaces: typed, values: words.map((value) => ({ value })) };
}

// Where the offers of Tab come from: the commands of this moment and what each of them takes, skills, files of the project.

export interface Completing {
  readonly request: ChatRequest;
  /** Null until it is open. */
  conversation(): OpenAgent | null;
  commands(): CommandRegistry;
  readonly skins: ScreenSkin;
}

export function completionSources(screen: Completing): CompletionSources {
  const { cwd, clock } = screen.request;
  const files = new ProjectFiles(cwd, () => clock.now());
  return {
    commands: () => screen.commands().all(),
    values: (command, typed) => valuesOf(command, typed, screen),
    skills: () => skillCommands(screen),
    files: () => files.list(),
    cwd,
  };
}

export async function skillCommands({ request, conversation, commands }: Completing): Promise<readonly MenuSkill[]> {
  const open = conversation();
  if (!open) return [];
  const { menuSkills } = await import("../../commands/skills.ts");
  return menuSkills({ conversation: open, platform: request.platform }, commands());
}

async function valuesOf(command: CommandDefinition, typed: string, screen: Completing): Promise<CommandValues | null> {
  const { home, platform, clock } = screen.request;
  const open = screen.conversation();
  if (!open || !command.values) return null;
  try {
    return await command.values(typed, {
      home,
      platform,
      conversation: open,
      store: open.store,
      now: () => clock.now() / 1000,
      skillCommands: () => skillCommands(screen),
      skins: screen.skins,
    });
  } catch (error) {
    home.log.debug(`what /${command.name} may be followed by is not known`, error);
    return null;
  }
}

const MOST = 30;

/** Entries on disk that continue a path as it was typed; directories first, with a slash. */
async function completePath(typed: string, cwd: string): Promise<AutocompleteItem[]> {
  const slash = typed.lastIndexOf("/");
  const shown = typed.slice(0, slash + 1);
  const wanted = typed.slice(slash + 1).toLowerCase();
  const folder = resolve(cwd, shown.startsWith("~/") ? join(homedir(), shown.slice(2)) : shown || ".");
  try {
    const entries = await readdir(folder, { withFileTypes: true });
    const matching = entries.filter(
      (entry) => entry.name.toLowerCase().startsWith(wanted) && (wanted.startsWith(".") || !entry.name.startsWith(".")),
    );
    const items = await Promise.all(matching.slice(0, 300).map((entry) => describe(join(folder, entry.name), shown)));
    return items.sort((a, b) => Number(b.isFolder) - Number(a.isFolder) || (a.label < b.label ? -1 : 1)).slice(0, MOST);
  } catch {
    return []; // no such folder, or not ours to read
  }
}

async function describe(path: string, shown: string): Promise<AutocompleteItem & { readonly isFolder: boolean }> {
  const facts = await stat(path).catch(() => null); // a link that leads nowhere is still a name
  const isFolder = facts?.isDirectory() === true;
  const name = path.slice(dirname(path).length).replace(/^\//, "") + (isFolder ? "/" : "");
  return {
    value: shown + name,
    label: name,
    isFolder,
    description: facts && !isFolder ? readableSize(facts.size) : undefined,
  };
}

function readableSize(bytes: number): string {
  if (bytes < 1024) return `${bytes} B`;
  const [size, unit] = bytes < 1024 ** 2 ? [bytes / 1024, "KB"] : [bytes / 1024 ** 2, "MB"];
  return `${size.toFixed(1)} ${unit}`;
}

// What may follow an `@`: the kinds of things a message can point at, and the project's files, written so that they are found again.

const KINDS: readonly (readonly [value: string, about: string])[] = [
  ["@file:", "a file, or lines of it: @file:PATH:10-20"],
  ["@folder:", "the tree of a folder"],
  ["@diff", "what git diff shows"],
  ["@staged", "what is staged"],
  ["@git:", "the last commits: @git:3"],
  ["@url:", "a page"],
];
const MAX_FILES = 20;

interface ReferenceSources {
  /** Paths of project files, relative to the folder. */
  files(): Promise<readonly string[]>;
  readonly cwd: string;
}

/** `word` begins with `@`. */
async function completeReference(word: string, sources: ReferenceSources): Promise<AutocompleteItem[]> {
  const [, kind, value = ""] = /^@(file|folder):["'`]?(.*)$/.exec(word) ?? [];
  if (kind !== undefined) return completeValue(kind, value, sources);
  const kinds = KINDS.filter(([name]) => name.startsWith(word));
  const items = kinds.map(([name, description]) => ({ value: name, label: name, description }));
  return [...items, ...(await projectFiles(word.slice(1), sources))];
}

async function completeValue(kind: string, typed: string, sources: ReferenceSources): Promise<AutocompleteItem[]> {
  const found = (await completePath(typed, sources.cwd)).filter(({ value }) => kind === "file" || value.endsWith("/"));
  const items = found.map((item) => ({ ...item, value: `@${kind}:${formatReferenceValue(item.value)}` }));
  if (items.length > 0 || kind === "folder") return items;
  return projectFiles(typed, sources);
}

async function projectFiles(query: string, { files, cwd }: ReferenceSources): Promise<AutocompleteItem[]> {
  const ranked = rankFiles(await files(), query, MAX_FILES);
  return Promise.all(
    ranked.map(async (path) => {
      const facts = await stat(join(cwd, path)).catch(() => null); // gone since it was listed
      const size = facts ? { description: readableSize(facts.size) } : {};
      return { value: `@file:${formatReferenceValue(path)}`, label: path, ...size };
    }),
  );
}

/** How well a project file fits what was typed after `@`; 0 = not at all. */
export function scoreFile(path: string, query: string): number {
  if (query === "") return 1;
  const wanted = query.toLowerCase();
  const name = basename(path).toLowerCase();
  const whole = path.toLowerCase();
  if (name === wanted) return 100;
  if (name.startsWith(wanted)) return 80;
  if (name.includes(wanted)) return 60;
  if (whole.includes(wanted)) return 40;
  if (isSubsequence(wanted, initialsOf(path))) return 35;
  return isSubsequence(wanted, whole) ? 25 : 0;
}

/** Best first; of two that fit equally the shorter path. */
export function rankFiles(paths: readonly string[], query: string, limit: number): string[] {
  return paths
    .map((path) => ({ path, score: scoreFile(path, query) }))
    .filter(({ score }) => score > 0)
    .sort((a, b) => b.score - a.score || a.path.length - b.path.length || (a.path < b.path ? -1 : 1))
    .slice(0, limit)
    .map(({ path }) => path);
}

/** First letters of the words of a path: `src/doors/plain-markdown.ts` and `InputLine.ts` have `s d p t t` and `I L t`. */
function initialsOf(path: string): string {
  return [...path.matchAll(/(?<![\p{L}\p{N}])[\p{L}\p{N}]|(?<=\p{Ll})\p{Lu}/gu)]
    .map(([letter]) => letter.toLowerCase())
    .join("");
}

function isSubsequence(wanted: string, text: string): boolean {
  let at = 0;
  for (const char of text) if (char === wanted[at]) at++;
  return at >= wanted.length;
}

// The files of the folder, for completion: remembered for a few seconds, ignored ones left out.

const FRESH_MS = 5000;
const MAX_PROJECT_FILES = 5000;

export class ProjectFiles {
  readonly #folder: string;
  readonly #now: () => number;
  #known: { readonly at: number; readonly files: Promise<readonly string[]> } | null = null;

  constructor(folder: string, now: () => number) {
    this.#folder = folder;
    this.#now = now;
  }

  list(): Promise<readonly string[]> {
    if (!this.#known || this.#now() - this.#known.at > FRESH_MS) {
      this.#known = { at: this.#now(), files: listFiles(this.#folder) };
    }
    return this.#known.files;
  }
}

async function listFiles(folder: string): Promise<readonly string[]> {
  try {
    const { findRipgrep, ripgrepEngine } = await import("../../tools/files/ripgrep.ts");
    const ripgrep = await findRipgrep();
    const engine = ripgrep ? ripgrepEngine(ripgrep) : (await import("../../tools/files/search.ts")).walkerEngine;
    return (await engine.listFiles(folder, AbortSignal.timeout(FRESH_MS))).slice(0, MAX_PROJECT_FILES);
  } catch {
    return []; // no list, no suggestions: typing goes on
  }
}
