// The single ordered list of slash commands, and how typed text finds one in it.
import { said } from "../home/language/words.ts";
import { CATEGORIES, type Category, type CommandDefinition } from "./context.ts";

export type CommandSurface = "terminal" | "gateway" | "editor";

export class CommandRegistry {
  readonly #byName = new Map<string, CommandDefinition>();
  readonly #ordered: CommandDefinition[] = [];

  constructor(definitions: readonly CommandDefinition[]) {
    for (const definition of definitions) {
      const taken = this.register(definition);
      if (taken) throw new Error(`slash command name used twice: /${taken}`);
    }
  }

  /** Adds a command. Returns the name that is taken already, if one is; then nothing was added. */
  register(definition: CommandDefinition): string | null {
    const names = [definition.name, ...(definition.aliases ?? [])];
    const taken = names.find((name) => this.#byName.has(name));
    if (taken !== undefined) return taken;
    for (const name of names) this.#byName.set(name, definition);
    this.#ordered.push(definition);
    return null;
  }

  all(): readonly CommandDefinition[] {
    return this.#ordered;
  }

  /** By exact name or alias; leading slashes and case do not matter. */
  get(name: string): CommandDefinition | null {
    return this.#byName.get(name.replace(/^\/+/, "").toLowerCase()) ?? null;
  }

  /** Exact, else the one command that begins so, else the single shortest of several. */
  find(name: string): CommandMatch {
    const exact = this.get(name);
    if (exact) return { type: "found", command: exact };
    const prefix = name.replace(/^\/+/, "").toLowerCase();
    const candidates = [...this.#byName.keys()].filter((key) => key.startsWith(prefix));
    const distinct = new Set(candidates.map((key) => this.#byName.get(key)));
    const sorted = candidates.toSorted((a, b) => a.length - b.length);
    const [first, second] = sorted;
    if (first === undefined) return { type: "unknown" };
    const command = this.#byName.get(first);
    const single = distinct.size === 1 || (second !== undefined && first.length < second.length);
    if (command && single) return { type: "found", command };
    return { type: "ambiguous", names: sorted };
  }

  availableIn(surface: CommandSurface): readonly CommandDefinition[] {
    if (surface === "editor") return this.#ordered.filter(({ editor }) => editor);
    const other = surface === "terminal" ? "gateway" : "cli";
    return this.#ordered.filter((command) => (command.availability ?? "everywhere") !== other);
  }

  /** A registry of its own with what one surface offers. */
  in(surface: CommandSurface): CommandRegistry {
    return new CommandRegistry(this.availableIn(surface));
  }

  /** A registry of its own that holds these commands too, as far as their names are free. */
  with(more: readonly CommandDefinition[]): CommandRegistry {
    const copy = new CommandRegistry(this.#ordered);
    for (const definition of more) copy.register(definition);
    return copy;
  }
}

type CommandMatch =
  | { readonly type: "found"; readonly command: CommandDefinition }
  | { readonly type: "ambiguous"; readonly names: readonly string[] }
  | { readonly type: "unknown" };

interface TypedCommand {
  readonly name: string;
  readonly args: string;
}

/** `/name args`; null for text that merely begins with a path (`/usr/bin/x`, `//x`). */
export function parseTyped(text: string): TypedCommand | null {
  const match = /^\/([^\s/]+)(?:\s+([\s\S]*))?$/.exec(text.trimEnd());
  if (!match) return null;
  return { name: match[1] as string, args: (match[2] ?? "").trim() }; // group 1 is not optional
}

const SKIP_WORDS: ReadonlySet<string> = new Set(["now", "--yes", "-y"]);

/** Takes a skip word off the first or last place: `/new now My Session` needs no confirmation and is titled `My Session`. */
export function takeSkipWord(args: string): { readonly args: string; readonly skip: boolean } {
  const words = args.split(/\s+/).filter((word) => word !== "");
  if (words.length > 0 && SKIP_WORDS.has((words[0] as string).toLowerCase())) {
    return { args: words.slice(1).join(" "), skip: true };
  }
  if (words.length > 0 && SKIP_WORDS.has((words.at(-1) as string).toLowerCase())) {
    return { args: words.slice(0, -1).join(" "), skip: true };
  }
  return { args, skip: false };
}

/** Values that may follow a command, for completion. */
export function subcommandsOf(command: CommandDefinition): readonly string[] {
  if (command.subcommands && command.subcommands.length > 0) return command.subcommands;
  const words = /\[?([a-z][a-z-]*(?:\|[a-z][a-z-]*)+)\]?/.exec(command.argsHint ?? "")?.[1];
  return words ? words.split("|") : [];
}

/** A longer usage has its description on the next line. */
const MAX_USAGE = 28;

/** Per category: `/name args` left, description right, aliases appended. */
export function helpText(commands: readonly CommandDefinition[]): string {
  const usage = (command: CommandDefinition) => `/${command.name}${command.argsHint ? ` ${command.argsHint}` : ""}`;
  const widths = commands.map((command) => usage(command).length).filter((width) => width <= MAX_USAGE);
  const width = Math.max(0, ...widths);
  const line = (command: CommandDefinition) => {
    const aliases = command.aliases?.length
      ? ` (${said("also")} ${command.aliases.map((alias) => `/${alias}`).join(", ")})`
      : "";
    const gap = usage(command).length > width ? `\n${" ".repeat(width + 4)}` : "  ";
    return `  ${usage(command).padEnd(width)}${gap}${said(command.description)}${aliases}`;
  };
  const section = (category: Category) => {
    const own = commands.filter((command) => command.category === category);
    return own.length > 0 ? [`${said(category)}\n${own.map(line).join("\n")}`] : [];
  };
  return CATEGORIES.flatMap(section).join("\n\n");
}
