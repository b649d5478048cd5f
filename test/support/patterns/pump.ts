// The texts that cost a regular expression the most: each part that repeats, repeated, and then something that does not fit.

export interface Pattern {
  readonly source: string;
  readonly flags: string;
}

type Node =
  | { readonly type: "atom"; readonly source: string }
  | { readonly type: "empty"; readonly source: string }
  | { readonly type: "back"; readonly source: string; readonly group: string }
  | { readonly type: "choice"; readonly options: readonly Node[] }
  | { readonly type: "sequence"; readonly parts: readonly Node[] }
  | {
      readonly type: "group";
      readonly start: string;
      readonly body: Node;
      readonly name: string;
      readonly looks: boolean;
    }
  | { readonly type: "repeat"; readonly how: string; readonly body: Node; readonly min: number; readonly max: number };

/** A part that repeats less often cannot make a text of any length costly by itself. */
const LONG = 32;
const EVERYDAY = " \n\t\r0aAzZ_-./\\'\"`<>()[]{}=:;,@#$%&*+!?|~^xieE1é中\u200b😀\u0301";

/** Texts of about `length` characters, without duplicates. */
export function pump(pattern: Pattern, length: number): string[] {
  const tree = parse(pattern);
  const letters = lettersFor(pattern, tree);
  const samples = new Sampler(pattern.flags, letters);
  const texts = new Set<string>();
  const add = (before: string, unit: string, after: string) => {
    if (unit !== "") texts.add(before + unit.repeat(Math.ceil(length / unit.length)) + after);
  };
  for (const { body, before, behind } of [0, 1, 2].flatMap((choose) => longRepeats(tree, samples, choose))) {
    for (const unit of samples.units(body)) {
      for (const end of ["", "\u0001\n", "!"]) {
        add(before, unit, end);
        add("", unit, end);
      }
      add("", before + unit, "");
      add("", before + unit + behind.slice(0, -1), "");
      add(before, unit + behind.slice(0, -1), "\u0001");
    }
    add("", before, "");
    add("", before, "\u0001");
  }
  const all = samples.of(tree);
  add("", all, "");
  add("", all.slice(0, -1), "");
  for (const one of letters) add("", one, "\u0001");
  return [...texts];
}

/** Two of its letters in turn, which no single part may show. */
export function pairs(pattern: Pattern, length: number): string[] {
  const letters = lettersFor(pattern, parse(pattern)).slice(0, 8);
  return letters.flatMap((one) =>
    letters.filter((other) => other !== one).map((other) => `${(one + other).repeat(length / 2)}\u0001`),
  );
}

/** One letter for each way in which the atoms of the expression tell letters apart. */
function lettersFor({ flags }: Pattern, tree: Node): string[] {
  const atoms = [...new Set(atomsOf(tree))];
  const tests = atoms.map((source) => new RegExp(`^(?:${source})$`, flags.replace(/[gy]/g, "")));
  const seen = new Map<string, string>();
  const own = atoms.filter((atom) => [...atom].length === 1);
  for (const letter of [...own, ...EVERYDAY]) {
    const signature = tests.map((test) => (test.test(letter) ? "1" : "0")).join("");
    if (signature.includes("1") && !seen.has(signature)) seen.set(signature, letter);
  }
  return [...seen.values()].slice(0, 24);
}

function atomsOf(node: Node): string[] {
  if (node.type === "atom") return [node.source];
  if (node.type === "choice") return node.options.flatMap(atomsOf);
  if (node.type === "sequence") return node.parts.flatMap(atomsOf);
  return node.type === "group" || node.type === "repeat" ? atomsOf(node.body) : [];
}

class Sampler {
  readonly #flags: string;
  readonly #letters: readonly string[];
  readonly #groups = new Map<string, string>();
  readonly #known = new Map<string, string[]>();

  constructor(flags: string, letters: readonly string[]) {
    this.#flags = flags.replace(/[gy]/g, "");
    this.#letters = letters;
  }

  /** A short text that the node matches, as far as lookarounds allow. */
  of(node: Node, choose = 0): string {
    switch (node.type) {
      case "atom": {
        const letters = this.#lettersOf(node.source);
        return letters[choose % letters.length] ?? "";
      }
      case "empty":
        return "";
      case "back":
        return this.#groups.get(node.group) ?? "";
      case "choice":
        return this.of(node.options[choose % node.options.length] as Node, choose);
      case "sequence":
        return node.parts.map((part) => this.of(part, choose)).join("");
      case "group": {
        const text = this.of(node.body, choose);
        this.#groups.set(node.name, text);
        return node.looks ? "" : text;
      }
      case "repeat":
        return this.of(node.body, choose).repeat(Math.min(node.min, 64));
    }
  }

  /** What the body of a repetition may be, once. */
  units(body: Node): string[] {
    if (body.type === "atom") return this.#lettersOf(body.source).slice(0, 6);
    const choices = body.type === "group" && body.body.type === "choice" ? body.body.options.length : 1;
    const units = Array.from({ length: Math.min(choices, 8) }, (_, choose) => this.of(body, choose));
    // A part inside that may be left out once more, and a letter of its own.
    const inner = atomsOf(body).flatMap((source) => this.#lettersOf(source).slice(0, 1));
    return [...new Set([...units, units.join(""), ...inner.slice(0, 6)])].filter((unit) => unit !== "");
  }

  #lettersOf(source: string): string[] {
    const known = this.#known.get(source);
    if (known) return known;
    const test = new RegExp(`^(?:${source})$`, this.#flags);
    const plain = [...source].length === 1 && test.test(source) ? [source] : [];
    const found = [...new Set([...plain, ...this.#letters, ...EVERYDAY])].filter((letter) => test.test(letter));
    if (found.length === 0) {
      for (let code = 0; code < 0x3100 && found.length === 0; code++)
        if (test.test(String.fromCodePoint(code))) found.push(String.fromCodePoint(code));
    }
    this.#known.set(source, found);
    return found;
  }
}

interface LongRepeat {
  readonly body: Node;
  /** What stands before and behind it in a text that matches. */
  readonly before: string;
  readonly behind: string;
}

function longRepeats(node: Node, samples: Sampler, choose: number, before = "", behind = ""): LongRepeat[] {
  switch (node.type) {
    case "repeat": {
      const own = node.max >= LONG ? [{ body: node.body, before, behind }] : [];
      return [...own, ...longRepeats(node.body, samples, choose, before, behind)];
    }
    case "group":
      return longRepeats(node.body, samples, choose, before, behind);
    case "choice":
      return node.options.flatMap((option) => longRepeats(option, samples, choose, before, behind));
    case "sequence": {
      const texts = node.parts.map((part) => samples.of(part, choose));
      return node.parts.flatMap((part, index) => {
        const [earlier, later] = [texts.slice(0, index).join(""), texts.slice(index + 1).join("")];
        return longRepeats(part, samples, choose, before + earlier, later + behind);
      });
    }
    default:
      return [];
  }
}

/**
 * The same expression, written so that the engine counts every step back: it takes a loop over single letters without counting, and
 * forgets what it did in a lookaround that succeeds.
 */
export function countable({ source, flags }: Pattern): Pattern {
  return { source: write(parse({ source, flags })), flags };
}

/** Always so, but the engine has to look. */
const TRUE = "(?=[^]|$)";

function write(node: Node): string {
  switch (node.type) {
    case "choice":
      return node.options.map(write).join("|");
    case "sequence":
      return node.parts.map(write).join("");
    case "group": {
      const body = write(node.body);
      // Captures inside keep their numbers only if they are written once.
      const twice =
        node.looks && !/\((?!\?)|\(\?<[A-Za-z_]/.test(body.replaceAll(/\\[\s\S]|\[(?:\\[\s\S]|[^\]])*\]/g, ""));
      return `${node.start}${twice ? `(?:${body})(?!)|` : ""}${body})`;
    }
    case "repeat":
      if (node.max < LONG) return `${write(node.body)}${node.how}`;
      return `(?:${TRUE}${write(node.body)})${node.how}${TRUE}`;
    default:
      return node.source;
  }
}

function parse({ source, flags }: Pattern): Node {
  const unicode = /[uv]/.test(flags);
  let at = 0;
  let groups = 0;
  const tree = readChoice();
  if (at !== source.length) throw new Error(`not understood at ${at}: ${source}`);
  return tree;

  function readChoice(): Node {
    const options = [readSequence()];
    while (source[at] === "|") {
      at++;
      options.push(readSequence());
    }
    return options.length === 1 ? (options[0] as Node) : { type: "choice", options };
  }

  function readSequence(): Node {
    const parts: Node[] = [];
    while (at < source.length && source[at] !== "|" && source[at] !== ")") parts.push(readRepeat(readOne()));
    return parts.length === 1 ? (parts[0] as Node) : { type: "sequence", parts };
  }

  function readRepeat(body: Node): Node {
    const found = /^(?:[*+?]|\{(\d+)(,?)(\d*)\})/.exec(source.slice(at, at + 20));
    if (!found) return body;
    const start = at;
    at += found[0].length;
    if (source[at] === "?") at++;
    const how = source.slice(start, at);
    if (found[0] === "*") return { type: "repeat", how, body, min: 0, max: Infinity };
    if (found[0] === "+") return { type: "repeat", how, body, min: 1, max: Infinity };
    if (found[0] === "?") return { type: "repeat", how, body, min: 0, max: 1 };
    const min = Number(found[1]);
    const max = found[2] === "" ? min : found[3] === "" ? Infinity : Number(found[3]);
    return { type: "repeat", how, body, min, max };
  }

  function readOne(): Node {
    const char = unicode ? String.fromCodePoint(source.codePointAt(at) ?? 0) : (source[at] ?? "");
    if (char === "(") return readGroup();
    if (char === "[") return readClass();
    if (char === "\\") return readEscape();
    at += char.length;
    if (char === "^" || char === "$") return { type: "empty", source: char };
    return { type: "atom", source: char };
  }

  function readGroup(): Node {
    const [start = "", named] =
      /^\((?:\?(?:<([A-Za-z_]\w*)>|[:=!]|<[=!]|[ims]*(?:-[ims]+)?:))?/.exec(source.slice(at, at + 60)) ?? [];
    at += start.length;
    const captures = start === "(" || named !== undefined;
    const number = captures ? ++groups : 0;
    const body = readChoice();
    if (source[at] !== ")") throw new Error(`a group does not end: ${source}`);
    at++;
    return { type: "group", start, body, name: named ?? String(number), looks: /[=!]$/.test(start) };
  }

  function readClass(): Node {
    const start = at;
    let depth = 0;
    do {
      const char = source[at];
      if (char === undefined) throw new Error(`a class does not end: ${source}`);
      if (char === "\\") at++;
      else if (char === "[" && (depth === 0 || flags.includes("v"))) depth++;
      else if (char === "]") depth--;
      at++;
    } while (depth > 0);
    return { type: "atom", source: source.slice(start, at) };
  }

  function readEscape(): Node {
    const rest = source.slice(at, at + 60);
    const back = /^\\(?:k<(\w+)>|([1-9]\d*))/.exec(rest);
    if (back) {
      at += back[0].length;
      return { type: "back", source: back[0], group: back[1] ?? back[2] ?? "" };
    }
    const [letters = ""] =
      /^\\(?:[pP]\{[^}]*\}|u\{[0-9a-fA-F]+\}|u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|c[A-Za-z]|[\s\S])/.exec(rest) ?? [];
    at += letters.length;
    return { type: letters === "\\b" || letters === "\\B" ? "empty" : "atom", source: letters };
  }
}
