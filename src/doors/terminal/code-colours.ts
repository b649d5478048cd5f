// Colours for code in answers. Hand-written: highlighters with real grammars weigh megabytes and take longer to load than the program to
// start, and half a screen of code in an answer needs words, strings, numbers and comments told apart, no more. Each line is read once;
// what spans lines (a comment, a long string) travels in the state.
import type { Theme } from "../terminal-text.ts";

/** What the next line begins inside of: the mark that ends it, and how it is painted. */
export interface CodeState {
  readonly until: string;
  readonly as: "comment" | "string";
}

interface Language {
  /** Sticky; the named group that matched says what it is. */
  readonly token: RegExp;
  /** Marks that open something over several lines -> what ends it. */
  readonly spans: ReadonlyMap<string, CodeState>;
  readonly words: ReadonlySet<string>;
  readonly constants: ReadonlySet<string>;
  readonly ignoresCase: boolean;
  /** A string or word before this is a name, as in JSON and YAML. */
  readonly keyMark: string | null;
}

/** The language of a fence such as ```` ```ts title="x" ````; null when it is not known. */
export function languageOf(info: string): Language | "diff" | null {
  const name = /^[\w+#.-]+/.exec(info.trim())?.[0].toLowerCase() ?? "";
  if (name === "diff" || name === "patch") return "diff";
  const family = FAMILIES.find(({ names }) => names.split(" ").includes(name));
  if (!family) return null;
  const made = MADE.get(family) ?? makeLanguage(family);
  MADE.set(family, made);
  return made;
}

/** One line, painted, and what the next one begins with. */
export function colourLine(
  line: string,
  language: Language | "diff",
  state: CodeState | null,
  theme: Theme,
): { readonly text: string; readonly state: CodeState | null } {
  if (language === "diff") return { text: diffColour(line, theme), state: null };
  let out = "";
  let at = 0;
  let within = state;
  while (at < line.length) {
    if (within) {
      const end = line.indexOf(within.until, at);
      const stop = end < 0 ? line.length : end + within.until.length;
      out += theme[within.as](line.slice(at, stop));
      at = stop;
      if (end < 0) break;
      within = null;
      continue;
    }
    language.token.lastIndex = at;
    const match = language.token.exec(line);
    const text = match?.[0] || (line[at] as string); // at is inside
    const kind = kindOf(match);
    if (kind === "span") {
      within = language.spans.get(text) ?? null;
      if (within) out += theme[within.as](text);
      at += text.length;
      continue;
    }
    out += paint(text, kind, line.slice(at + text.length, at + text.length + 8), language, theme);
    at += text.length;
  }
  return { text: out, state: within };
}

type Kind = "span" | "comment" | "string" | "number" | "word" | "other";
const KINDS: readonly Kind[] = ["span", "comment", "string", "number", "word"];

const kindOf = (match: RegExpExecArray | null): Kind =>
  KINDS.find((kind) => match?.groups?.[kind] !== undefined) ?? "other";

function paint(text: string, kind: Kind, next: string, language: Language, theme: Theme): string {
  const { keyMark, words, constants, ignoresCase } = language;
  const isKey = keyMark !== null && next.trimStart().startsWith(keyMark);
  switch (kind) {
    case "comment":
      return theme.comment(text);
    case "string":
      return isKey ? theme.type(text) : theme.string(text);
    case "number":
      return theme.number(text);
    case "word": {
      const word = ignoresCase ? text.toLowerCase() : text;
      if (words.has(word)) return theme.keyword(text);
      if (constants.has(word)) return theme.number(text);
      if (isKey) return theme.type(text);
      if (next.startsWith("(")) return theme.call(text);
      return /^[A-Z][A-Za-z]*[a-z]/.test(text) ? theme.type(text) : text;
    }
    default:
      return text;
  }
}

function diffColour(line: string, theme: Theme): string {
  if (/^(?:\+\+\+|---|diff |index )/.test(line)) return theme.bold(line);
  if (line.startsWith("@@")) return theme.accent(line);
  if (line.startsWith("+")) return theme.added(line);
  return line.startsWith("-") ? theme.removed(line) : line;
}

interface Family {
  readonly names: string;
  readonly line?: readonly string[];
  readonly blocks?: readonly (readonly [open: string, close: string])[];
  /** Quotes of strings that end with their line. */
  readonly quotes?: string;
  /** Only behind this: what looks like a quote elsewhere is prose. */
  readonly quotesAfter?: string;
  readonly longStrings?: readonly string[];
  readonly words?: string;
  readonly constants?: string;
  readonly ignoresCase?: true;
  readonly keyMark?: string;
  /** Further characters of a word besides letters, digits and `_`. */
  readonly inWords?: string;
}

const C_BLOCK = [["/*", "*/"]] as const;
const JS_WORDS =
  "abstract as async await break case catch class const continue debugger declare default delete do else enum export extends finally for from function get if implements import in infer instanceof interface is keyof let namespace new of override private protected public readonly return satisfies set static super switch this throw try type typeof using var void while with yield";
const C_WORDS =
  "alignas auto bool break case catch char class concept const constexpr continue default delete do double else enum explicit export extern float for friend goto if inline int long mutable namespace new noexcept operator private protected public register requires return short signed sizeof static static_assert struct switch template this throw try typedef typename union unsigned using virtual void volatile while";
const SQL_WORDS =
  "add all alter and any as asc begin between by case check column commit constraint create cross cascade database default delete desc distinct drop else end except exists foreign from full function group having if in index inner insert intersect into is join key left like limit not offset on or order outer over partition primary procedure references replace returning right rollback row select set table then to transaction trigger truncate union unique update using values view when where with";

const FAMILIES: readonly Family[] = [
  {
    names: "js jsx ts tsx javascript typescript mjs cjs mts cts vue svelte",
    line: ["//"],
    blocks: C_BLOCK,
    quotes: "\"'",
    longStrings: ["`"],
    words: JS_WORDS,
    constants: "true false null undefined NaN Infinity",
    inWords: "$",
  },
  {
    names: "py python python3 pyi",
    line: ["#"],
    quotes: "\"'",
    longStrings: ['"""', "'''"],
    words:
      "and as assert async await break case class continue def del elif else except finally for from global if import in is lambda match nonlocal not or pass raise return try while with yield",
    constants: "True False None self cls",
  },
  {
    names: "sh bash zsh shell console shell-session fish ksh",
    line: ["#"],
    quotes: "\"'",
    words:
      "if then else elif fi for in do done while until case esac function select time return exit local export readonly declare set unset shift source alias trap break continue eval exec",
    constants: "true false",
    inWords: "-",
  },
  {
    names: "json jsonc json5 jsonl",
    line: ["//"],
    blocks: C_BLOCK,
    quotes: "\"'",
    constants: "true false null",
    keyMark: ":",
  },
  {
    names: "yaml yml",
    line: ["#"],
    quotes: "\"'",
    constants: "true false null yes no on off ~",
    keyMark: ":",
    inWords: "-.",
  },
  {
    names: "toml ini cfg conf properties dotenv env",
    line: ["#", ";"],
    quotes: "\"'",
    constants: "true false",
    keyMark: "=",
    inWords: "-.",
  },
  {
    names: "go golang",
    line: ["//"],
    blocks: C_BLOCK,
    quotes: "\"'",
    longStrings: ["`"],
    words:
      "break case chan const continue default defer else fallthrough for func go goto if import interface map package range return select struct switch type var",
    constants: "true false nil iota",
  },
  {
    names: "rs rust",
    line: ["//"],
    blocks: C_BLOCK,
    quotes: '"',
    words:
      "as async await break const continue crate dyn else enum extern fn for if impl in let loop match mod move mut pub ref return static struct super trait type unsafe use where while",
    constants: "true false self Self None Some Ok Err",
  },
  {
    names: "c h cpp c++ cc cxx hpp objc cuda ino",
    line: ["//"],
    blocks: C_BLOCK,
    quotes: "\"'",
    words: C_WORDS,
    constants: "true false NULL nullptr",
  },
  {
    names: "java kotlin kt scala groovy gradle cs csharp c# dart swift",
    line: ["//"],
    blocks: C_BLOCK,
    quotes: "\"'",
    longStrings: ['"""'],
    words: `${C_WORDS} abstract as async await boolean byte data def do done else extends extension fallthrough final finally fun func guard implements import init in instanceof interface internal is let match native object open override package protocol record repeat sealed self string super suspend synchronized throws trait transient val var when where yield`,
    constants: "true false null nil",
  },
  {
    names: "php",
    line: ["//", "#"],
    blocks: C_BLOCK,
    quotes: "\"'",
    words: `${JS_WORDS} array echo elseif endif endforeach endfor endwhile fn foreach global include include_once isset list match namespace print require require_once trait unset use`,
    constants: "true false null TRUE FALSE NULL",
    inWords: "$",
  },
  {
    names: "rb ruby",
    line: ["#"],
    quotes: "\"'`",
    words:
      "alias and begin break case class def defined do else elsif end ensure for if in module next not or redo rescue retry return super then undef unless until when while yield require require_relative attr_accessor attr_reader puts",
    constants: "true false nil self",
  },
  {
    names: "lua",
    line: ["--"],
    blocks: [["--[[", "]]"]],
    quotes: "\"'",
    words: "and break do else elseif end for function goto if in local not or repeat return then until while",
    constants: "true false nil",
  },
  {
    names: "sql psql mysql sqlite plsql postgres postgresql",
    line: ["--"],
    blocks: C_BLOCK,
    quotes: "'\"`",
    words: SQL_WORDS,
    constants: "null true false",
    ignoresCase: true,
  },
  {
    names: "css scss sass less",
    line: [],
    blocks: C_BLOCK,
    quotes: "\"'",
    words: "important media import keyframes font-face supports root hover focus active",
    keyMark: ":",
    inWords: "-",
  },
  {
    names: "html xml svg xhtml jsp rss plist",
    blocks: [["<!--", "-->"]],
    quotes: "\"'",
    quotesAfter: "=",
    keyMark: "=",
    inWords: "-:",
  },
  {
    names: "dockerfile docker containerfile",
    line: ["#"],
    quotes: "\"'",
    words:
      "from run cmd label expose env add copy entrypoint volume user workdir arg onbuild stopsignal healthcheck shell as",
    ignoresCase: true,
  },
  {
    names: "make makefile mk cmake",
    line: ["#"],
    quotes: "\"'",
    words: "ifeq ifneq ifdef ifndef else endif include define endef export override",
    keyMark: ":",
    inWords: "-.",
  },
  {
    names: "powershell ps1 pwsh",
    line: ["#"],
    blocks: [["<#", "#>"]],
    quotes: "\"'",
    words:
      "begin break catch class continue do else elseif end exit filter finally for foreach function if in param process return switch throw trap try until while",
    ignoresCase: true,
    inWords: "-$",
  },
  {
    names: "hs haskell elm ml ocaml fsharp ex exs elixir erl erlang clj clojure lisp scheme r julia jl perl pl nix zig",
    line: ["#", "--", ";;"],
    quotes: '"',
    words:
      "and begin case class cond const data def defmodule defn defp do else end fn for fun func function if import in instance let match module mut my of open or pub rec receive return sub then try type use var when where while with",
    constants: "true false nil True False Nothing None TRUE FALSE NULL",
  },
  {
    names: "graphql gql proto protobuf hcl terraform tf",
    line: ["#", "//"],
    quotes: '"',
    longStrings: ['"""'],
    words:
      "type query mutation subscription fragment on input enum interface union scalar schema extend message service rpc returns syntax package import option repeated optional required oneof resource data variable output module provider locals",
    constants: "true false null",
    keyMark: ":",
  },
];
const MADE = new Map<Family, Language>();

const escaped = (text: string) => text.replace(/[.*+?^${}()|[\]\\/]/g, "\\$&");

function makeLanguage(family: Family): Language {
  const { line = [], blocks = [], quotes = "", longStrings = [], inWords = "" } = family;
  const spans = new Map<string, CodeState>([
    ...blocks.map(([open, close]): [string, CodeState] => [open, { until: close, as: "comment" }]),
    ...longStrings.map((mark): [string, CodeState] => [mark, { until: mark, as: "string" }]),
  ]);
  const opens = [...spans.keys()].toSorted((one, other) => other.length - one.length).map(escaped);
  // A `#` in the middle of a word is none: `$#`, `a#b`.
  const comments = line.map((mark) => (mark === "#" || mark === ";" ? `(?<![^\\s])${escaped(mark)}` : escaped(mark)));
  const before = family.quotesAfter === undefined ? "" : `(?<=${escaped(family.quotesAfter)})`;
  const strings = [...quotes].map((quote) => `${before}${quote}(?:[^${quote}\\\\]|\\\\.)*${quote}?`);
  const extra = inWords.replace(/[-$.]/g, "\\$&");
  const parts = [
    opens.length > 0 ? `(?<span>${opens.join("|")})` : "",
    comments.length > 0 ? `(?<comment>(?:${comments.join("|")}).*)` : "",
    strings.length > 0 ? `(?<string>${strings.join("|")})` : "",
    "(?<number>\\b(?:0[xXbBoO][\\da-fA-F_]+|\\d[\\d_]*(?:\\.\\d+)?(?:[eE][+-]?\\d+)?)\\w*)",
    `(?<word>[\\p{L}_${extra}][\\p{L}\\p{N}_${extra}]*)`,
    "\\s+",
  ];
  return {
    token: new RegExp(parts.filter((part) => part !== "").join("|"), "uy"),
    spans,
    words: new Set(family.words?.split(" ") ?? []),
    constants: new Set(family.constants?.split(" ") ?? []),
    ignoresCase: family.ignoresCase === true,
    keyMark: family.keyMark ?? null,
  };
}
