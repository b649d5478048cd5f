// What Tab and the menu offer: slash commands with their values, project files after `@`, and paths.
import type { AutocompleteItem, AutocompleteProvider, AutocompleteSuggestions } from "@earendil-works/pi-tui";
import type { CommandDefinition } from "../../commands/definition.ts";
import { subcommandsOf } from "../../commands/registry.ts";
import type { MenuSkill } from "../../commands/skill-menu.ts";
import { completePath } from "./path-completion.ts";
import { completeReference } from "./reference-completion.ts";

export interface CompletionSources {
  commands(): readonly CommandDefinition[];
  /** Skills and bundles, offered behind the commands. */
  skills(): Promise<readonly MenuSkill[]>;
  /** Values that follow a command and change with time, such as titles; null for commands without. */
  values(command: string): Promise<readonly string[]> | null;
  /** Paths of project files, relative to the folder. */
  files(): Promise<readonly string[]>;
  readonly cwd: string;
}

const MOST_STACKED = 5;
/** `_` and `-` are one thing in a skill's name. */
const slugLike = (typed: string) => typed.toLowerCase().replaceAll("_", "-");

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
    return found && found.items.length > 0 ? found : null;
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
    const values = (await this.#sources.values(command.name)) ?? subcommandsOf(command);
    const wanted = args.toLowerCase();
    const items = values.filter((value) => value.toLowerCase().startsWith(wanted) && value !== args);
    return items.length > 0 ? { prefix: args, items: items.map((value) => ({ value, label: value })) } : null;
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
    if (!/^\/[^/]*$/.test(last) || words.length >= MOST_STACKED) return null;
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
      return [{ value: `/${hit}`, label: `/${hit}`, description: `${hint}${command.description}` }];
    });
  }

  async #word(before: string, force: boolean): Promise<AutocompleteSuggestions | null> {
    const word = /\S*$/.exec(before)?.[0] ?? "";
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
