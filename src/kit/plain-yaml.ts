// The YAML of nearly every settings file and front matter: `key: value` lines, mappings and lists of scalars below keys, comments.
// It exists next to the `yaml` package for start-up: loading that package takes a good part of a short run. Whatever is not beyond
// doubt is left to it; both agree on all the rest.

/** Undefined: it takes the YAML parser to say what this word means. */
type ReadWord<Word> = (word: string) => Word | undefined;
export type PlainValue<Word> = string | Word | readonly PlainValue<Word>[] | PlainTree<Word>;
export interface PlainTree<Word> {
  readonly [key: string]: PlainValue<Word>;
}

/** Every scalar as the text it is, an empty value as the empty text. Null: this one needs the YAML parser. */
export function readPlainTexts(yaml: string): PlainTree<string> | null {
  return readPlain(yaml, (word) => (word === "" || isPlainText(word) ? word : undefined));
}

/** Scalars typed as in YAML 1.1, an empty value as null. Null: this one needs the YAML parser. */
export function readPlainTyped(yaml: string): PlainTree<string | number | boolean | null> | null {
  return readPlain(yaml, (word) => {
    if (word === "" || word === "null" || word === "~") return null;
    const truth = booleans.get(word);
    if (truth !== undefined) return truth;
    if (/^-?(?:0|[1-9]\d{0,14})$/.test(word) && word !== "-0") return Number(word);
    if (/^-?(?:0|[1-9]\d{0,8})\.\d{1,8}$/.test(word)) return Number(word);
    return /^[A-Za-z_/]/.test(word) && isPlainText(word) && !typedWord.test(word) ? word : undefined;
  });
}

interface Line {
  readonly indent: number;
  readonly content: string;
}

function readPlain<Word>(yaml: string, readWord: ReadWord<Word>): PlainTree<Word> | null {
  if (/[^\P{C}\n\r]|[\u2028\u2029]/u.test(yaml)) return null; // tabs and what cannot be seen
  const lines: Line[] = [];
  for (const line of yaml.split(/\r?\n/)) {
    if (line.includes("\r")) return null;
    const content = line.replace(/^ +| +$/g, "");
    if (content !== "" && !content.startsWith("#")) lines.push({ indent: line.search(/[^ ]/), content });
  }
  const reader = new PlainReader(lines, readWord);
  const tree = reader.mapping(0);
  return reader.atEnd ? (tree ?? null) : null;
}

const keyLine = /^([A-Za-z_][\w.-]{0,99}):(?: +(?! )(.*))?$/;
const comment = "(?: +#.*)?";
const quotes = String.raw`"([^"\\]*)"|'([^']*)'`;
const quoted = new RegExp(`^(?:${quotes})${comment}$`);
const quotedItem = new RegExp(`^(?:${quotes})$`);
const emptyMapping = new RegExp(String.raw`^\{\}${comment}$`);
const flowList = new RegExp(String.raw`^\[([^[\]{}#]*)\]${comment}$`);
const flowWord = /^(?:[A-Za-z0-9_/~]|-\d)[\w./+=@()$~ -]*$/;
const typedWord = /^(?:yes|no|on|off|true|false|null|nan|inf)$/i;
const booleans: ReadonlyMap<string, boolean> = new Map([
  ...["true", "True", "TRUE", "yes", "Yes", "YES", "on", "On", "ON"].map((word) => [word, true] as const),
  ...["false", "False", "FALSE", "no", "No", "NO", "off", "Off", "OFF"].map((word) => [word, false] as const),
]);

const isItem = (line: Line) => line.content.startsWith("- ");

/** A scalar without quotes that nothing in it can end or turn into something else. */
function isPlainText(text: string): boolean {
  return /^[^\s\-?:,[\]{}#&*!|>'"%@`]/.test(text) && !/:(?: |$)/.test(text);
}

/** Its methods answer undefined for what takes the YAML parser. */
class PlainReader<Word> {
  readonly #lines: readonly Line[];
  readonly #readWord: ReadWord<Word>;
  #at = 0;

  constructor(lines: readonly Line[], readWord: ReadWord<Word>) {
    this.#lines = lines;
    this.#readWord = readWord;
  }

  get atEnd(): boolean {
    return this.#at === this.#lines.length;
  }

  mapping(indent: number): PlainTree<Word> | undefined {
    const tree: Record<string, PlainValue<Word>> = {};
    for (let line = this.#lineAt(indent); line; line = this.#lineAt(indent)) {
      const [, key, rest = ""] = keyLine.exec(line.content) ?? [];
      if (key === undefined || key === "__proto__" || typedWord.test(key) || Object.hasOwn(tree, key)) return undefined;
      this.#at++;
      const value = rest === "" || rest.startsWith("#") ? this.#below(indent) : this.#inline(rest);
      if (value === undefined) return undefined;
      tree[key] = value;
    }
    return tree;
  }

  /** What stands below a key with nothing behind its colon. */
  #below(indent: number): PlainValue<Word> | undefined {
    const next = this.#lines[this.#at];
    if (next && next.indent >= indent && isItem(next)) return this.#list(next.indent);
    return next && next.indent > indent ? this.mapping(next.indent) : this.#readWord("");
  }

  #list(indent: number): readonly PlainValue<Word>[] | undefined {
    const items: PlainValue<Word>[] = [];
    for (let line = this.#lineAt(indent); line && isItem(line); line = this.#lineAt(indent)) {
      const item = this.#inline(line.content.slice(2).replace(/^ +/, ""));
      this.#at++;
      if (item === undefined) return undefined;
      items.push(item);
    }
    return items;
  }

  #inline(text: string): PlainValue<Word> | undefined {
    const inQuotes = quoted.exec(text);
    if (inQuotes) return inQuotes[1] ?? inQuotes[2];
    if (emptyMapping.test(text)) return {};
    const inside = flowList.exec(text)?.[1];
    if (inside !== undefined) return this.#flowItems(inside);
    const word = text.replace(/(?<! ) +#[\s\S]*$/, "");
    return word === "" ? undefined : this.#readWord(word);
  }

  /** The next line, if it stands at this indent. A deeper one would go on with the value before it: it stays unread, and so the parser's. */
  #lineAt(indent: number): Line | undefined {
    const line = this.#lines[this.#at];
    return line?.indent === indent ? line : undefined;
  }

  /** A comma inside quotes leaves halves that are not items, so such a list goes to the parser. */
  #flowItems(inside: string): readonly PlainValue<Word>[] | undefined {
    if (inside.trim() === "") return [];
    const items = inside.split(",").map((part) => {
      const item = part.replace(/^ +| +$/g, "");
      const inQuotes = quotedItem.exec(item);
      if (inQuotes) return inQuotes[1] ?? inQuotes[2];
      return flowWord.test(item) ? this.#readWord(item) : undefined;
    });
    return items.every((item) => item !== undefined) ? items : undefined;
  }
}
