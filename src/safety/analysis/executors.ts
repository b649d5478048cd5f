// Programs that hand part of their arguments to a shell or run them, besides shells and wrappers.
import { type Arg, argTexts, type Invocation, type Options, readOptions } from "./invocation.ts";
import { makeTexts } from "./shells.ts";

interface Executed {
  /** Texts a shell will parse. */
  readonly texts: readonly string[];
  /** Words that are run as they are. */
  readonly words: readonly Arg[];
}

/** What the program runs out of its arguments; null when it is none of those known here. */
export function executedBy(invocation: Invocation): Executed | null {
  const { program } = invocation;
  const verbs = Object.hasOwn(VERB_RUNNERS, program) ? VERB_RUNNERS[program] : undefined;
  const find = Object.hasOwn(TEXT_FINDERS, program) ? TEXT_FINDERS[program] : undefined;
  if (!verbs && !find) return null;
  return {
    texts: find ? find(argTexts(invocation)) : [],
    words: verbs
      ? wordsBehindVerb(invocation, verbs)
      : /^(?:npx|bunx|pnpx)$/.test(program)
        ? packageWords(invocation)
        : [],
  };
}

/** `uv run cmd`: the command stands behind the verb and its options, or behind `--`. */
const VERB_RUNNERS: Readonly<Record<string, readonly string[]>> = {
  uv: ["run"],
  poetry: ["run"],
  pipenv: ["run"],
  conda: ["run"],
  mise: ["exec", "x"],
  nix: ["--command", "-c", "run", "shell"],
  gdb: ["--args"],
  perf: ["stat", "record", "trace"],
  bundle: ["exec"],
  npm: ["exec", "x"],
  pnpm: ["exec", "dlx"],
  yarn: ["exec", "dlx"],
  doppler: ["run"],
  op: ["run"],
  "aws-vault": ["exec"],
};

function wordsBehindVerb({ args }: Invocation, verbs: readonly string[]): readonly Arg[] {
  const at = args.findIndex(({ text }) => verbs.includes(text));
  if (at < 0) return [];
  const behind = args.slice(at + 1);
  const dashes = behind.findIndex(({ text }) => text === "--");
  if (dashes >= 0) return behind.slice(dashes + 1);
  const { firstOperand } = readOptions(
    behind.map(({ text }) => text),
    { short: "npeo", long: ["name", "prefix", "with", "python", "package"], stopAtOperand: true },
  );
  return behind.slice(firstOperand);
}

/** `npx -y tsx x.ts`: a package is run by the name of its program. */
function packageWords(invocation: Invocation): readonly Arg[] {
  const { firstOperand, letters, longs } = readOptions(argTexts(invocation), {
    short: "pc",
    long: ["package", "call", "workspace", "cache", "userconfig", "registry"],
    stopAtOperand: true,
  });
  if (letters.includes("c") || longs.includes("call")) return [];
  const [name, ...rest] = invocation.args.slice(firstOperand);
  return name ? [{ ...name, text: name.text.replace(/(?<!^)@[\w.^~-]*$/, "") }, ...rest] : [];
}

const phrases = (args: readonly string[]) => args.filter((arg) => /\s/.test(arg));
const matches = (args: readonly string[], pattern: RegExp) =>
  args.flatMap((arg) => [...arg.matchAll(pattern)].map((match) => match[1] ?? ""));

/** The values of options, given as `-e x`, `-ae x`, `-ex`, `--long x` or `--long=x`. */
function valuesOf(args: readonly string[], short: string, ...longs: readonly string[]): readonly string[] {
  return args.flatMap((arg, index) => {
    const next = args.slice(index + 1, index + 2);
    const [name = "", ...value] = arg.split("=");
    if (longs.includes(name)) return arg.includes("=") ? [value.join("=")] : next;
    if (!/^-[a-zA-Z]/.test(arg)) return [];
    if (short.includes(arg.at(-1) ?? "-")) return next;
    return short.includes(arg[1] ?? "-") ? [arg.slice(2)] : [];
  });
}

/** What stands between double quotes; read in one pass, as a pattern would begin anew at every quote. */
function stringsIn(text: string): readonly string[] {
  const found: string[] = [];
  let string: string | null = null;
  for (let at = 0; at < text.length; at++) {
    const char = text[at] ?? "";
    if (char === '"') {
      if (string !== null) found.push(string);
      string = string === null ? "" : null;
    } else if (string !== null) string += char === "\\" ? char + (text[++at] ?? "") : char;
  }
  return found;
}

/** More are read as one text: each for itself would take too long. */
const MAX_STRINGS = 50;

/** A command may stand in a variable first, so every string counts once the program runs one. */
const awkTexts = (args: readonly string[]) => {
  const programs = args.filter((arg) => /\bsystem\s{0,9}\(|(?<!\|)\|(?!\|)/.test(arg));
  const strings = programs.flatMap(stringsIn);
  return strings.length > MAX_STRINGS ? [strings.join("\n")] : strings;
};
const editorTexts = (args: readonly string[]) => [
  ...matches(args, /(?:^|[\s:+|%0-9])(?:[rw][ \t]{0,9})?!(.*)$/gm),
  ...matches(
    args,
    /\b(?:system|systemlist|termopen|shell-command|call-process-shell-command)\s{0,9}\(?\s{0,9}["']([^"'\n]*)["']/g,
  ),
];
const databaseTexts = (args: readonly string[]) =>
  matches(args, /(?:^|;|\\n)[ \t]{0,9}(?:\\!|\.shell\s|\.system\s|system\s)(.*)$/gm);
const debuggerTexts = (args: readonly string[]) => matches(args, /^[ \t]{0,9}(?:shell\s|!)(.*)$/gm);
const tmuxTexts = (args: readonly string[]) => {
  const verb = args.findIndex((arg) =>
    /^(?:new|neww|new-session|new-window|split-?w.*|respawn-.*|run.*|send.*)$/.test(arg),
  );
  const rest = readOptions(args.slice(verb + 1), { short: "ceFlnstxy", stopAtOperand: true }).operands;
  return verb < 0 ? phrases(args) : [...phrases(args), rest.join(" ")];
};
const callTexts = (args: readonly string[]) => valuesOf(args, "c", "--call");

const TEXT_FINDERS: Readonly<Record<string, (args: readonly string[]) => readonly string[]>> = {
  tmux: tmuxTexts,
  screen: (args) => [
    ...phrases(args),
    readOptions(args, { short: "SscehtTp", stopAtOperand: true }).operands.join(" "),
  ],
  nodemon: phrases,
  concurrently: phrases,
  hyperfine: phrases,
  entr: phrases,
  "nix-shell": phrases,
  cargo: (args) => valuesOf(args, "s", "--shell"),
  npx: callTexts,
  bunx: callTexts,
  pnpx: callTexts,
  npm: callTexts,
  pnpm: (args) => (args.some((arg) => /^(?:-c|--shell-mode)$/.test(arg)) ? phrases(args) : []),
  yarn: phrases,
  awk: awkTexts,
  gawk: awkTexts,
  mawk: awkTexts,
  nawk: awkTexts,
  sed: (args) => sedScripts(args).flatMap(sedRuns),
  gsed: (args) => sedScripts(args).flatMap(sedRuns),
  vim: editorTexts,
  nvim: editorTexts,
  vi: editorTexts,
  view: editorTexts,
  ex: editorTexts,
  ed: editorTexts,
  emacs: editorTexts,
  less: editorTexts,
  sqlite3: databaseTexts,
  psql: databaseTexts,
  mysql: databaseTexts,
  mariadb: databaseTexts,
  gdb: debuggerTexts,
  lldb: debuggerTexts,
  expect: (args) => matches(args, /(?:^|[;\n])[ \t]{0,9}(?:spawn|exec|system)\s(.*)$/gm),
  make: (args) => [...makeTexts(valuesOf(args, "", "--eval")), ...matches(args, /^SHELL=(.*)$/g)],
  zip: (args) => valuesOf(args, "", "-TT", "--unzip-command"),
  tar: (args) => [
    ...valuesOf(args, "IF", "--to-command", "--use-compress-program", "--rsh-command", "--info-script"),
    ...valuesOf(args, "", "--new-volume-script", "--checkpoint-action").map((value) => value.replace(/^exec=/, "")),
  ],
  rsync: (args) => valuesOf(args, "e", "--rsh", "--rsync-path"),
  split: (args) => valuesOf(args, "", "--filter"),
};

/** What these read from their input can hold commands too. */
const INPUT_FINDERS: Readonly<Record<string, (args: readonly string[]) => readonly string[]>> = {
  ...Object.fromEntries("awk gawk mawk nawk".split(" ").map((program) => [program, awkTexts])),
  ...Object.fromEntries("sqlite3 psql mysql mariadb".split(" ").map((program) => [program, databaseTexts])),
  ...Object.fromEntries("ed ex vim vi".split(" ").map((program) => [program, editorTexts])),
  gdb: debuggerTexts,
  make: makeTexts,
};

/** Commands in what a heredoc or here-string feeds to a program with a language of its own. */
export function executedFromInput(program: string, inputs: readonly string[]): readonly string[] {
  const find = Object.hasOwn(INPUT_FINDERS, program) ? INPUT_FINDERS[program] : undefined;
  return find && inputs.length > 0 ? find(inputs) : [];
}

// The one corner of sed that leaves sed: `e command`, and `s/a/b/e` that runs what the replacement made.

const readSedOptions = (args: readonly string[]): Options =>
  readOptions(args, { short: "efl", long: ["expression", "file", "line-length"] });

/** The scripts written on a sed command line. */
export function sedScripts(args: readonly string[]): readonly string[] {
  const { values, operands } = readSedOptions(args);
  const named = values.filter(({ name }) => name === "e" || "expression".startsWith(name)).map(({ value }) => value);
  // BSD's `-i ''` leaves an empty word in front of the script.
  return named.length > 0 ? named : operands.filter((operand) => operand !== "").slice(0, 1);
}

const FLAGS = /[a-zA-Z0-9]*/y;

/** What a sed script would hand to a shell, as far as the script shows. */
export function sedRuns(script: string): readonly string[] {
  const found: string[] = [];
  let at = 0;
  const take = (pattern: RegExp) => {
    pattern.lastIndex = at;
    const text = pattern.exec(script)?.[0] ?? "";
    at += text.length;
    return text;
  };
  while (at < script.length) {
    take(/[\s;{}!,+~$0-9]+/y);
    if (script[at] === "/" || script[at] === "\\") {
      // An address: `/re/`, or `\cREc` with any other sign for c.
      if (script[at] === "\\") at++;
      readPart();
      at++;
      take(/[IM]*/y);
      continue;
    }
    const command = script[at++];
    if (command === "s" || command === "y") {
      const [, replacement = ""] = [readPart(), readPart()];
      at++;
      if (command === "s" && take(FLAGS).includes("e")) found.push(replacement.replace(/\\(.)/g, "$1"));
    } else if (command === "e") found.push(take(/[^\n]*/y).trim());
    else if (command !== undefined && "aicrRwW#".includes(command)) take(/(?:[^\\\n]|\\[\s\S])*/y);
    else if (command !== undefined && ":btT".includes(command)) take(/[^;\n]*/y);
  }
  return found;

  /** From the delimiter under or before the cursor to the next one. */
  function readPart(): string {
    const delimiter = script[at] ?? "";
    let text = "";
    for (at++; at < script.length && script[at] !== delimiter; at++) {
      if (script[at] === "\\") text += script[at++];
      text += script[at] ?? "";
    }
    return text;
  }
}
