// What the shell handed over, put into the form the parser expects.

/** Options of `hermes` and `hermes chat` that take a value; their values are never read as something else. */
export const VALUE_OPTIONS: ReadonlySet<string> = new Set([
  "-z",
  "--oneshot",
  "-q",
  "--query",
  "-m",
  "--model",
  "--provider",
  "-t",
  "--toolsets",
  "-s",
  "--skills",
  "-p",
  "--profile",
  "--image",
  "--max-turns",
  "--source",
  "--reasoning",
  "--usage-file",
]);

const NAMING_OPTIONS: ReadonlySet<string> = new Set(["-c", "--continue", "-r", "--resume"]);

/**
 * Titles after `-c` and `-r` need no quotes: the words that follow are joined until one starts with `-` or is a sub-command.
 * The first word always belongs to the option, even if it equals a sub-command's name.
 */
export function joinNames(argv: readonly string[], subcommands: ReadonlySet<string>): string[] {
  const out: string[] = [];
  for (let i = 0; i < argv.length; i++) {
    const word = argv[i] as string; // i is in range
    if (word === "--") return [...out, ...argv.slice(i)];
    out.push(word);
    if (VALUE_OPTIONS.has(word) && i + 1 < argv.length) out.push(argv[++i] as string); // checked on the same line
    if (!NAMING_OPTIONS.has(word)) continue;
    const name: string[] = [];
    while (i + 1 < argv.length) {
      const next = argv[i + 1] as string; // i + 1 is in range
      if (next.startsWith("-") || (name.length > 0 && subcommands.has(next))) break;
      name.push(next);
      i++;
    }
    if (name.length > 0) out.push(name.join(" "));
  }
  return out;
}

/** Where the first word stands that is neither an option nor an option's value: the sub-command. -1 when there is none. */
export function commandIndex(argv: readonly string[]): number {
  for (let i = 0; i < argv.length; i++) {
    const word = argv[i] as string; // i is in range
    if (word === "--") return -1;
    if (VALUE_OPTIONS.has(word)) i++;
    else if (NAMING_OPTIONS.has(word)) {
      if (i + 1 < argv.length && !argv[i + 1]?.startsWith("-")) i++;
    } else if (!word.startsWith("-")) return i;
  }
  return -1;
}

/** What follows `mcp add ... --args` belongs to the server's command, whatever it looks like. */
export function shieldServerArguments(argv: readonly string[]): readonly string[] {
  const at = commandIndex(argv);
  const args = argv.indexOf("--args", at);
  if (argv[at] !== "mcp" || argv[at + 1] !== "add" || args < 0) return argv;
  return argv.with(args, "--");
}

/** `help`, `help sessions list` are `--help`, `sessions list --help`. */
export function helpAsOption(argv: readonly string[]): readonly string[] {
  const at = commandIndex(argv);
  return argv[at] === "help" ? [...argv.toSpliced(at, 1), "--help"] : argv;
}

/** What stands behind a `-p` that is still there: the profile selection takes away every one with a valid name. */
export function strayProfile(argv: readonly string[]): string | null {
  for (let i = 0; i < argv.length; i++) {
    const word = argv[i] as string; // i is in range
    if (word === "--" || !word.startsWith("-")) return null;
    if (word === "-p" || word === "--profile") return argv[i + 1] ?? null;
    if (word.startsWith("--profile=")) return word.slice("--profile=".length);
    if (VALUE_OPTIONS.has(word)) i++;
  }
  return null;
}
