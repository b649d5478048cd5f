// The command tree as plain data: what completion scripts, the manual page and the reference are made of.
import type { Argument, Command, Option } from "commander";

export interface CommandFacts {
  /** Words behind `hermes`; empty for the program itself. */
  readonly path: readonly string[];
  readonly aliases: readonly string[];
  readonly summary: string;
  readonly arguments: readonly ArgumentFacts[];
  readonly options: readonly OptionFacts[];
  readonly children: readonly CommandFacts[];
}

interface ArgumentFacts {
  /** `<FILE>`, `[NAME]`, `<WORDS...>`. */
  readonly usage: string;
  readonly description: string;
  readonly values: Values;
}

export interface OptionFacts {
  readonly short: string | undefined;
  readonly long: string | undefined;
  /** `-n, --lines <N>`. */
  readonly usage: string;
  readonly description: string;
  /** Null for a switch. */
  readonly values: Values | null;
  /** `--continue [title]` may stand without. */
  readonly optional: boolean;
}

/** What may follow: one of a few words, a file, a profile, or something that nobody can guess. */
export type Values = readonly string[] | "files" | "profiles" | "anything";

export function commandFacts(command: Command, path: readonly string[] = []): CommandFacts {
  return {
    path,
    aliases: command.aliases(),
    summary: (command.summary() || command.description()).replace(/\.$/, ""),
    arguments: command.registeredArguments.map(argumentFacts),
    options: [...command.options.filter((option) => !option.hidden).map(optionFacts), HELP],
    children: command.commands.map((child) => commandFacts(child, [...path, child.name()])),
  };
}

const HELP: OptionFacts = {
  short: "-h",
  long: "--help",
  usage: "-h, --help",
  description: "show this help",
  values: null,
  optional: false,
};

function argumentFacts(argument: Argument): ArgumentFacts {
  const name = `${argument.name()}${argument.variadic ? "..." : ""}`;
  return {
    usage: argument.required ? `<${name}>` : `[${name}]`,
    description: argument.description,
    values: argument.argChoices ?? guess(argument.name(), argument.description),
  };
}

function optionFacts(option: Option): OptionFacts {
  const value = /[<[]([^<[>\]]+)[>\]]/.exec(option.flags)?.[1];
  const isProfile = option.long === "--profile" || option.long === "--clone-from";
  return {
    short: option.short ?? undefined,
    long: option.long ?? undefined,
    usage: option.flags,
    description: option.description,
    values: value === undefined ? null : isProfile ? "profiles" : (option.argChoices ?? guess(value, "")),
    optional: option.optional,
  };
}

/** `agent, errors, gateway, or list to see the files` names its values; `<FILE>` its kind. */
function guess(name: string, description: string): Values {
  if (/^(?:file|path|zip|dir|folder)s?$/i.test(name)) return "files";
  if (/\bprofile\b/i.test(name)) return "profiles";
  const words = /^([a-z]+)((?:, [a-z]+)+),? or ([a-z]+)\b/.exec(description);
  if (!words) return "anything";
  return [words[1] ?? "", ...(words[2] ?? "").split(", ").slice(1), words[3] ?? ""];
}

/** This command and all below it, parents first. */
export function eachCommand(facts: CommandFacts): readonly CommandFacts[] {
  return [facts, ...facts.children.flatMap(eachCommand)];
}
