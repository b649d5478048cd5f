// One program run with its arguments, as a danger rule wants to see it: wrappers such as sudo already looked through.
import type { Heredoc } from "../shell/ast.ts";
import type { WrittenRun } from "./shells.ts";

export interface Invocation {
  /** Base name in lower case, without `.exe`; empty when the line does not say. */
  readonly program: string;
  /** The name as it was written. */
  readonly path: string;
  /** What the name itself expands from: `$(curl ...)` as a command. */
  readonly nameSubstitutions: readonly Substitution[];
  readonly args: readonly Arg[];
  /** What it is run through, outermost first. */
  readonly via: readonly Wrapper[];
  readonly assignments: readonly { readonly name: string; readonly value: string }[];
  readonly redirects: readonly Redirect[];
  /** Runs on another machine or in a container. */
  readonly remote: boolean;
  /** Ends with `&`. */
  readonly background: boolean;
  /** Where the line itself changed to before; null when it did not. */
  readonly cwd: string | null;
  /** The name is computed in a way that cannot be followed. */
  readonly dynamic: boolean;
  /** What runs is not written on the line: a variable of the session, the output of a program. */
  readonly unseenName: boolean;
}

export interface Arg {
  readonly text: string;
  /** The text with `UNKNOWN` in place of what only running the line would show; absent when all of it is known. */
  readonly marked?: string | undefined;
  readonly substitutions: readonly Substitution[];
}

export interface Substitution {
  readonly form: "$(" | "`" | "<(" | ">(";
  readonly invocations: readonly Invocation[];
}

export interface Wrapper {
  readonly program: string;
  /** Its own options, without the command it runs. */
  readonly args: readonly string[];
}

export interface Redirect {
  readonly operator: string;
  readonly fd: string;
  readonly target: string;
  /** As with an argument. */
  readonly marked?: string | undefined;
  readonly heredoc: Heredoc | null;
  readonly substitutions: readonly Substitution[];
}

/** What runs at one place of a pipeline; several when the place is a group. */
export type Stage = readonly Invocation[];

export interface Analysis {
  readonly invocations: readonly Invocation[];
  readonly pipelines: readonly (readonly Stage[])[];
  /** Pipelines of one script in order, for rules on "first this, then that". */
  readonly sequences: readonly (readonly Invocation[])[];
  /** Files that the line writes and then runs as code, or runs without having shown their text. */
  readonly written: readonly WrittenRun[];
  /** The names of functions that the line defines. */
  readonly functions: readonly string[];
  /** A function that pipes itself into itself in the background. */
  readonly forkBomb: boolean;
  /** Every text a rule of the user is matched against. */
  readonly texts: readonly string[];
  readonly ok: boolean;
  readonly tooDeep: boolean;
}

export const argTexts = (invocation: Invocation): readonly string[] => invocation.args.map((arg) => arg.text);

export function programName(path: string): string {
  const base = path.slice(Math.max(path.lastIndexOf("/"), path.lastIndexOf("\\")) + 1);
  return base.toLowerCase().replace(/\.exe$/, "");
}

// Getopt for strangers' command lines: options that take a value own it, `--` ends them, letters keep their case.

export interface OptionSpec {
  /** Letters whose value follows, attached or as the next word. */
  readonly short?: string;
  /** Long names whose value follows as the next word when there is no `=`. */
  readonly long?: readonly string[];
  /** When given, every long name but these takes a value. */
  readonly longFlags?: readonly string[];
  /** Stop at the first operand: what follows belongs to another program. */
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
