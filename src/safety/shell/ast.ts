// What the parser makes of one command line. Offsets point into the text the node was read from.

export type Quoting = "none" | "escaped" | "single" | "double";

export type WordPart =
  | { readonly type: "literal"; readonly text: string; readonly quoting: Quoting }
  | {
      readonly type: "variable";
      readonly name: string;
      /** What follows the name in `${name...}`: `:-`, `#`, `/` and so on; empty for a plain expansion. */
      readonly operator: string;
      readonly operand: readonly WordPart[];
      readonly source: string;
      readonly quoted: boolean;
    }
  | {
      readonly type: "substitution";
      readonly form: "$(" | "`" | "<(" | ">(";
      readonly script: Script;
      readonly source: string;
      readonly quoted: boolean;
    }
  | { readonly type: "arithmetic"; readonly parts: readonly WordPart[]; readonly source: string };

export interface Word {
  readonly parts: readonly WordPart[];
  readonly start: number;
  readonly end: number;
}

export interface Assignment {
  readonly name: string;
  /** What stands in `name[...]=`: the shell computes it. */
  readonly index: readonly WordPart[];
  /** `name+=`. */
  readonly append: boolean;
  readonly value: Word;
}

export interface Heredoc {
  readonly body: string;
  /** What the body expands to when its delimiter is unquoted; one literal otherwise. */
  readonly parts: readonly WordPart[];
  /** No end line was found, or the delimiter is of a form shells disagree on: the body may be commands. */
  readonly doubtful: boolean;
}

export interface Redirection {
  /** `>`, `>>`, `>|`, `<`, `<>`, `>&`, `<&`, `&>`, `&>>`, `<<`, `<<-`, `<<<`. */
  readonly operator: string;
  readonly fd: string;
  readonly target: Word;
  readonly heredoc: Heredoc | null;
}

export interface SimpleCommand {
  readonly type: "simple";
  /** `if`, `then`, `do`, `!` and the like that stood in front. */
  readonly keywords: readonly string[];
  readonly assignments: readonly Assignment[];
  readonly words: readonly Word[];
  readonly redirections: readonly Redirection[];
  readonly start: number;
  readonly end: number;
}

export interface Group {
  readonly type: "group";
  readonly kind: "subshell" | "braces" | "case" | "function";
  readonly name: string;
  readonly bodies: readonly Script[];
  readonly words: readonly Word[];
  readonly redirections: readonly Redirection[];
  readonly start: number;
  readonly end: number;
}

export type Command = SimpleCommand | Group;

/** What stands behind a pipeline. */
export type Joiner = "&&" | "||" | ";" | "&" | "\n" | "";

export interface Pipeline {
  readonly commands: readonly Command[];
  readonly joiner: Joiner;
  /** Offset of the joiner; the end of the text when there is none. */
  readonly joinerStart: number;
  readonly start: number;
  readonly end: number;
}

export interface Script {
  readonly pipelines: readonly Pipeline[];
}

export interface ParsedLine {
  readonly script: Script;
  /** False when something did not parse: callers then assume the worst. */
  readonly ok: boolean;
  /** Nested deeper than any honest command. */
  readonly tooDeep: boolean;
  /** Where comments stand, in no order; one may be named twice. */
  readonly comments: readonly { readonly start: number; readonly end: number }[];
}

/** In a command's name what is unknown counts as empty; in an argument it stays as it is written. */
export type Position = "command" | "argument";

/** What a command line itself says about variables: the values they may hold where they are used. */
export interface Scope {
  get(name: string): readonly string[] | undefined;
  /** Takes a mark away. */
  set(name: string, values: readonly string[]): void;
  /** The value with a mark in place of what only running the line would show, as it counts in each position; null: all of it is known. */
  mark(name: string, marked: Readonly<Record<Position, string | null>>): void;
  marked(name: string, position: Position): string | null;
}

/** Longer values are not followed: `a=$a$a` doubles with every line. */
const MAX_VALUE_CHARS = 8192;

export function createScope(): Scope {
  const values = new Map<string, readonly string[]>();
  const marks = new Map<string, Readonly<Record<Position, string | null>>>();
  return {
    get: (name) => values.get(name),
    set: (name, given) => {
      marks.delete(name);
      const followed = given.filter((value) => value.length <= MAX_VALUE_CHARS).slice(0, 8);
      if (followed.length > 0 || given.length === 0) values.set(name, followed);
      else values.delete(name);
    },
    mark: (name, marked) => {
      const isLong = Object.values(marked).some((text) => (text?.length ?? 0) > MAX_VALUE_CHARS);
      marks.set(name, isLong ? { command: UNKNOWN, argument: UNKNOWN } : marked);
    },
    marked: (name, position) => marks.get(name)?.[position] ?? null,
  };
}

/** Stands for what only running the line would show. */
export const UNKNOWN = "\x01";
