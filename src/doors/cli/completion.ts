// `hermes completion`: a script for the shell, made from the command tree. It starts no program while one types: profiles are read from
// their folder.
import { Argument, type Command } from "commander";
import { type CliContext, ExitError } from "../cli-context.ts";
import { type CommandFacts, commandFacts, eachCommand, type OptionFacts, type Values } from "./command-facts.ts";

const SHELLS = { bash: bashScript, zsh: zshScript, fish: fishScript } as const;

export function define(command: Command, ctx: CliContext): void {
  command
    .description("Print a completion script for your shell.")
    // Not `choices`: those would be refused in the parser's words.
    .addArgument(new Argument("<SHELL>", "bash, zsh or fish"))
    .addHelpText(
      "after",
      `
Set it up once; create the folder if it does not exist:
  bash  hermes completion bash > ~/.local/share/bash-completion/completions/hermes
  zsh   hermes completion zsh > "\${fpath[1]}/_hermes"
  fish  hermes completion fish > ~/.config/fish/completions/hermes.fish`,
    )
    .action(async (shell: string) => {
      if (!Object.hasOwn(SHELLS, shell))
        throw new ExitError(2, `Unknown shell "${shell}". Choose ${Object.keys(SHELLS).join(", ")}.`);
      const make = SHELLS[shell as keyof typeof SHELLS]; // checked above
      ctx.io.out(make(commandFacts(await ctx.tree())));
    });
}

const keyOf = ({ path }: CommandFacts) => path.join(" ");
const namesOf = (option: OptionFacts) => [option.short, option.long].filter((name) => name !== undefined);
/** In single quotes, for sh and fish alike once a quote is written as theirs. */
const quoted = (text: string) => `'${text.replaceAll("'", "'\\''")}'`;
const firstLine = (text: string) => (text.split("\n")[0] ?? "").trim();

/** A place in the tree and an option of it that takes a value, as a pattern of a shell's `case`. */
const casesOf = (command: CommandFacts, option: OptionFacts) =>
  namesOf(option)
    .map((name) => quoted(`${keyOf(command)}:${name}`))
    .join("|");

interface ShellWords {
  /** What a `case` branch does to offer values. */
  offer(values: Values): string;
}

/** Branches for what may follow each option that takes a value. */
function valueCases(all: readonly CommandFacts[], { offer }: ShellWords): string {
  return all
    .flatMap((command) =>
      command.options
        .filter((option) => option.values !== null)
        .map((option) => `    ${casesOf(command, option)}) ${offer(option.values ?? "anything")} ;;`),
    )
    .join("\n");
}

/** Options whose next word is theirs: it is no command. One that may stand alone (`-c [title]`) takes it too. */
function takingCases(all: readonly CommandFacts[]): string {
  const patterns = all.flatMap((command) =>
    command.options.filter((option) => option.values !== null).map((option) => casesOf(command, option)),
  );
  return patterns.join("|");
}

function placeCases(all: readonly CommandFacts[]): string {
  return all
    .filter(({ path }) => path.length > 0)
    .map((command) => {
      const parent = command.path.slice(0, -1).join(" ");
      const names = [command.path.at(-1) ?? "", ...command.aliases];
      return `      ${names.map((name) => quoted(`${parent}:${name}`)).join("|")}) place=${quoted(keyOf(command))} ;;`;
    })
    .join("\n");
}

/** Shared by bash and zsh: where in the tree the cursor stands. */
const finder = (all: readonly CommandFacts[]) => `_hermes_profiles() {
  local root="\${HERMES_HOME:-$HOME/.hermes}"
  case "$root" in */profiles/*) root="\${root%/profiles/*}" ;; esac
  echo default
  [ -d "$root/profiles" ] && command ls "$root/profiles"
}

_hermes_place() {
  place=''
  local word taken=''
  for word in "$@"; do
    if [ -n "$taken" ]; then taken=''; continue; fi
    case "$place:$word" in
      ${takingCases(all)}) taken=1 ;;
${placeCases(all)}
    esac
  done
}`;

function bashScript(tree: CommandFacts): string {
  const all = eachCommand(tree);
  const offer = (values: Values) => {
    if (values === "files") return 'COMPREPLY=($(compgen -f -- "$cur")); return';
    if (values === "profiles") return 'COMPREPLY=($(compgen -W "$(_hermes_profiles)" -- "$cur")); return';
    if (values === "anything") return "return";
    return `COMPREPLY=($(compgen -W ${quoted(values.join(" "))} -- "$cur")); return`;
  };
  const words = all
    .map((command) => {
      const options = command.options.flatMap(namesOf).join(" ");
      const children = command.children.map((child) => child.path.at(-1)).join(" ");
      const [first] = command.arguments;
      const bare =
        children !== "" ? `COMPREPLY=($(compgen -W ${quoted(children)} -- "$cur"))` : first ? offer(first.values) : ":";
      return `    ${quoted(keyOf(command))})
      if [[ "$cur" == -* ]]; then COMPREPLY=($(compgen -W ${quoted(options)} -- "$cur")); else ${bare}; fi ;;`;
    })
    .join("\n");
  return `# bash completion for hermes; made by "hermes completion bash"
${finder(all)}

_hermes() {
  local cur="\${COMP_WORDS[COMP_CWORD]}" prev="\${COMP_WORDS[COMP_CWORD-1]}" place
  COMPREPLY=()
  _hermes_place "\${COMP_WORDS[@]:1:COMP_CWORD-1}"
  case "$place:$prev" in
${valueCases(all, { offer })}
  esac
  case "$place" in
${words}
  esac
}
complete -o bashdefault -o default -F _hermes hermes
`;
}

function zshScript(tree: CommandFacts): string {
  const all = eachCommand(tree);
  const described = (name: string, text: string) => quoted(`${name.replaceAll(":", "\\:")}:${firstLine(text)}`);
  const offer = (values: Values) => {
    if (values === "files") return "_files; return";
    if (values === "profiles") return "compadd -- $(_hermes_profiles); return";
    if (values === "anything") return "return";
    return `compadd -- ${values.map(quoted).join(" ")}; return`;
  };
  const words = all
    .map((command) => {
      const options = command.options.flatMap((option) =>
        namesOf(option).map((name) => described(name, option.description)),
      );
      const children = command.children.map((child) => described(child.path.at(-1) ?? "", child.summary));
      const [first] = command.arguments;
      const bare =
        children.length > 0
          ? `items=(${children.join(" ")}); _describe -t commands command items`
          : first
            ? offer(first.values)
            : ":";
      return `    ${quoted(keyOf(command))})
      if [[ "$PREFIX" == -* ]]; then items=(${options.join(" ")}); _describe -t options option items; else ${bare}; fi ;;`;
    })
    .join("\n");
  return `#compdef hermes
# zsh completion for hermes; made by "hermes completion zsh"
${finder(all)}

_hermes() {
  local place prev="\${words[CURRENT-1]}"
  local -a items
  _hermes_place "\${(@)words[2,CURRENT-1]}"
  case "$place:$prev" in
${valueCases(all, { offer })}
  esac
  case "$place" in
${words}
  esac
}
if [ "$funcstack[1]" = "_hermes" ]; then _hermes "$@"; else compdef _hermes hermes; fi
`;
}

/** What a command without sub-commands may be given, where that is one of a few words. */
function firstWords({ children, arguments: [first] }: CommandFacts): readonly string[] {
  return children.length > 0 || first === undefined || typeof first.values === "string" ? [] : first.values;
}

function fishScript(tree: CommandFacts): string {
  const all = eachCommand(tree);
  const text = (value: string) => `'${value.replaceAll("\\", "\\\\").replaceAll("'", "\\'")}'`;
  const values = (kind: Values) => {
    if (kind === "files") return "-r -F";
    if (kind === "profiles") return "-x -a '(__hermes_profiles)'";
    return kind === "anything" ? "-x" : `-x -a ${text(kind.join(" "))}`;
  };
  const at = (command: CommandFacts) => `complete -c hermes -n ${text(`__hermes_at ${text(keyOf(command))}`)}`;
  const lines = all.flatMap((command) => [
    ...command.children.map(
      (child) => `${at(command)} -f -a ${text(child.path.at(-1) ?? "")} -d ${text(firstLine(child.summary))}`,
    ),
    ...firstWords(command).map((word) => `${at(command)} -f -a ${text(word)}`),
    ...command.options.map((option) =>
      [
        at(command),
        ...(option.short ? [`-s ${option.short.slice(1)}`] : []),
        ...(option.long ? [`-l ${option.long.slice(2)}`] : []),
        ...(option.values === null ? [] : [values(option.values)]),
        `-d ${text(firstLine(option.description))}`,
      ].join(" "),
    ),
  ]);
  const taking = takingCases(all).replaceAll("|", " ");
  const places = all
    .filter(({ path }) => path.length > 0)
    .map((command) => {
      const parent = command.path.slice(0, -1).join(" ");
      const names = [command.path.at(-1) ?? "", ...command.aliases].map((name) => text(`${parent}:${name}`));
      return `      case ${names.join(" ")}\n        set place ${text(keyOf(command))}`;
    });
  return `# fish completion for hermes; made by "hermes completion fish"
function __hermes_profiles
  set -l root $HOME/.hermes
  set -q HERMES_HOME; and set root $HERMES_HOME
  set root (string replace -r '/profiles/[^/]+$' '' -- $root)
  echo default
  test -d $root/profiles; and command ls $root/profiles
end

function __hermes_at
  set -l place ''
  set -l taken 0
  for word in (commandline -opc)[2..-1]
    if test $taken -eq 1
      set taken 0
      continue
    end
    switch "$place:$word"
      case ${taking}
        set taken 1
${places.join("\n")}
    end
  end
  test "$place" = "$argv[1]"
end

${lines.join("\n")}
`;
}
