// Programs that hand part of their arguments to a shell or run them, beside the shells and wrappers proper.
import { type Arg, argTexts, type Invocation } from "./invocation.ts";
import { readOptions } from "./options.ts";

export interface Executed {
  /** Texts a shell will parse. */
  readonly texts: readonly string[];
  /** Words that are run as they are. */
  readonly words: readonly Arg[];
}

/** What the program runs out of its arguments; null when it is none of those known here. */
export function executedBy(invocation: Invocation): Executed | null {
  const { program } = invocation;
  const verbs = Object.hasOwn(VERB_RUNNERS, program) ? VERB_RUNNERS[program] : undefined;
  if (verbs) return { texts: [], words: wordsBehindVerb(invocation, verbs) };
  const find = Object.hasOwn(TEXT_FINDERS, program) ? TEXT_FINDERS[program] : undefined;
  return find ? { texts: find(argTexts(invocation)), words: [] } : null;
}

/** `uv run cmd`: the command stands behind the verb and its options, or behind `--`. */
const VERB_RUNNERS: Readonly<Record<string, readonly string[]>> = {
  uv: ["run"],
  poetry: ["run"],
  pipenv: ["run"],
  conda: ["run"],
  mise: ["exec", "x"],
  direnv: ["exec"],
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
    { short: "np", long: ["name", "prefix", "with", "python", "package"], stopAtOperand: true },
  );
  return behind.slice(firstOperand);
}

const phrases = (args: readonly string[]) => args.filter((arg) => /\s/.test(arg));
const behind = (args: readonly string[], option: RegExp) =>
  args.flatMap((arg, index) => (option.test(args[index - 1] ?? "") ? [arg] : []));
const matches = (args: readonly string[], pattern: RegExp) =>
  args.flatMap((arg) => [...arg.matchAll(pattern)].map((match) => match[1] ?? ""));

const awkTexts = (args: readonly string[]) =>
  matches(args, /system\s*\(\s*"((?:[^"\\]|\\.)*)"/g).concat(matches(args, /"((?:[^"\\]|\\.)*)"\s*\|\s*getline/g));
const editorTexts = (args: readonly string[]) => matches(args, /^[+:]*(?:r\s*)?!(.*)$/g);

const TEXT_FINDERS: Readonly<Record<string, (args: readonly string[]) => readonly string[]>> = {
  tmux: phrases,
  screen: phrases,
  nodemon: phrases,
  concurrently: phrases,
  hyperfine: phrases,
  entr: phrases,
  "nix-shell": phrases,
  npx: (args) => behind(args, /^(?:-c|--call)$/),
  awk: awkTexts,
  gawk: awkTexts,
  mawk: awkTexts,
  vim: editorTexts,
  nvim: editorTexts,
  vi: editorTexts,
  ex: editorTexts,
  sqlite3: (args) => matches(args, /^\s*\.(?:shell|system)\s+(.*)$/gm),
  tar: (args) => matches(args, /^--(?:checkpoint-action=exec|to-command|use-compress-program)=(.*)$/g),
  rsync: (args) => behind(args, /^(?:-e|--rsh)$/),
};
