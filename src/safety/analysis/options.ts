// Getopt for strangers' command lines: options that take a value own it, `--` ends them, letters keep their case.

export interface OptionSpec {
  /** Letters whose value follows, attached or as the next word. */
  readonly short?: string;
  /** Long names whose value follows as the next word when there is no `=`. */
  readonly long?: readonly string[];
  /** When given, every long name but these takes a value. */
  readonly longFlags?: readonly string[];
  /** Stop at the first operand: what follows belongs to somebody else. */
  readonly stopAtOperand?: boolean;
}

export interface Options {
  /** Letters given, in order, values left out. */
  readonly letters: readonly string[];
  /** Clusters as written, without the dash: `-rf` is `rf`. */
  readonly clusters: readonly string[];
  /** Long names, without dashes and value. */
  readonly longs: readonly string[];
  readonly values: readonly { readonly name: string; readonly value: string }[];
  readonly operands: readonly string[];
  /** Index in the arguments of the first operand; the number of arguments when there is none. */
  readonly firstOperand: number;
  /** Options that stood behind an operand. */
  readonly late: { readonly letters: readonly string[]; readonly longs: readonly string[] };
}

const NO_LONGS: readonly string[] = [];

export function readOptions(args: readonly string[], spec: OptionSpec = {}): Options {
  const short = spec.short ?? "";
  const long = spec.long ?? NO_LONGS;
  const letters: string[] = [];
  const clusters: string[] = [];
  const longs: string[] = [];
  const values: { name: string; value: string }[] = [];
  const operands: string[] = [];
  const late = { letters: [] as string[], longs: [] as string[] };
  let firstOperand = args.length;
  let at = 0;
  for (; at < args.length; at++) {
    const arg = args[at] ?? "";
    if (arg === "--") {
      at++;
      break;
    }
    if (arg.startsWith("--")) {
      const equals = arg.indexOf("=");
      const name = equals < 0 ? arg.slice(2) : arg.slice(2, equals);
      longs.push(name);
      if (operands.length > 0) late.longs.push(name);
      if (equals >= 0) values.push({ name, value: arg.slice(equals + 1) });
      else if (spec.longFlags ? !spec.longFlags.includes(name) : long.includes(name))
        values.push({ name, value: args[++at] ?? "" });
    } else if (arg.length > 1 && arg.startsWith("-")) {
      let cluster = "";
      for (let index = 1; index < arg.length; index++) {
        const letter = arg[index] ?? "";
        cluster += letter;
        letters.push(letter);
        if (operands.length > 0) late.letters.push(letter);
        if (!short.includes(letter)) continue;
        const rest = arg.slice(index + 1);
        values.push({ name: letter, value: rest === "" ? (args[++at] ?? "") : rest });
        break;
      }
      clusters.push(cluster);
    } else {
      if (operands.length === 0) firstOperand = at;
      if (spec.stopAtOperand) break;
      operands.push(arg);
    }
  }
  if (operands.length === 0 && at < args.length) firstOperand = Math.min(firstOperand, at);
  operands.push(...args.slice(at));
  return { letters, clusters, longs, values, operands, firstOperand, late };
}

export const hasLetter = (options: Options, ...letters: readonly string[]) =>
  letters.some((letter) => options.letters.includes(letter));

/** A long option by its name or an abbreviation of at least `least` characters. */
export const hasLong = (options: Options, name: string, least = name.length) =>
  options.longs.some((given) => given.length >= least && name.startsWith(given));
