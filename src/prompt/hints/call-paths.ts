// Which places a tool call touches, as far as its arguments tell.
import { isAbsolute, join, resolve } from "node:path";
import { pathsInPatch } from "../../kit/patch-headers.ts";
import type { Command, Script, SimpleCommand, Word } from "../../safety/shell/ast.ts";
import { parseCommandLine } from "../../safety/shell/parse.ts";
import { resolveText } from "../../safety/shell/resolve.ts";
import { createScope } from "../../safety/shell/scope.ts";

export interface Bearings {
  /** Where relative paths start. */
  readonly cwd: string;
  readonly userHome: string;
}

const ARGUMENTS = ["path", "file_path", "workdir"];
const CHANGES_DIRECTORY = ["cd", "pushd"];
const TAKES_DIRECTORY = ["-C", "--prefix", "--cwd"];
/** A command may name thousands of files; the first ones show where it works. */
const MOST_PATHS = 64;

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
  return [...new Set(paths)].slice(0, MOST_PATHS);
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

/** Null for what is no path of this machine: addresses, homes of unknown users, what only running a command would tell. */
function locate(word: string, { cwd, userHome }: Bearings): string | null {
  if (/:\/\/|^git@|\$\(|`|\0/.test(word)) return null;
  const path = word.replace(/^\$(?:HOME|\{HOME\})(?=\/|$)/, "~");
  if (path === "~") return userHome;
  if (path.startsWith("~/")) return join(userHome, path.slice(2));
  if (path.startsWith("~")) return null;
  return isAbsolute(path) ? resolve(path) : resolve(cwd, path);
}
