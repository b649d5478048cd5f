// Most settings files are plain: keys, scalars, short lists. Those are read here, without loading the YAML parser, which would take a
// good part of a short run's start. Anything that is not beyond doubt is left to the parser; both must agree on all the rest.
import type { Tree } from "./yaml-text.ts";

/** The tree of a plain file, or null when it takes a real parser to say. */
export function readSimpleYaml(text: string): Tree | null {
  if (/[^\n\r\x20-\x7e\xa0-\u2027\u2030-\ud7ff\ue000-\ufefe\uff00-\ufffd]/.test(text)) return null;
  const lines: Line[] = [];
  for (const raw of text.split(/\r?\n/)) {
    const line = readLine(raw);
    if (line === null) return null;
    if (line !== "blank") lines.push(line);
  }
  const cursor = { lines, next: 0 };
  const tree = readMapping(cursor, 0);
  return tree !== null && cursor.next === lines.length ? tree : null;
}

interface Line {
  readonly indent: number;
  readonly content: string;
}

interface Cursor {
  readonly lines: readonly Line[];
  next: number;
}

function readLine(raw: string): Line | "blank" | null {
  const content = raw.trimEnd();
  if (raw.includes("\r")) return null;
  const indent = content.length - content.trimStart().length;
  if (content === "" || content[indent] === "#") return "blank";
  return { indent, content: content.slice(indent) };
}

const keyLine = /^([A-Za-z_][A-Za-z0-9_-]*):(?: +(.*))?$/;

function readMapping(cursor: Cursor, indent: number): Tree | null {
  const tree: Tree = {};
  for (;;) {
    const line = cursor.lines[cursor.next];
    if (!line || line.indent < indent) return tree;
    if (line.indent > indent) return null; // a continued text, or a mistake
    const match = keyLine.exec(line.content);
    const key = match?.[1];
    if (key === undefined || typedWord.test(key) || Object.hasOwn(tree, key) || key === "__proto__") return null;
    cursor.next++;
    const value = readValue(cursor, indent, match?.[2] ?? "");
    if (value === undefined) return null;
    tree[key] = value;
  }
}

/** What follows a key: on its line or in the lines below. Undefined when that takes a parser. */
function readValue(cursor: Cursor, indent: number, rest: string): unknown {
  if (rest !== "" && !rest.startsWith("#")) return readScalar(rest);
  const line = cursor.lines[cursor.next];
  if (line && line.indent >= indent && isItem(line)) return readList(cursor, line.indent) ?? undefined;
  if (line && line.indent > indent) return readMapping(cursor, line.indent) ?? undefined;
  return null;
}

const isItem = (line: Line) => line.content.startsWith("- ");

function readList(cursor: Cursor, indent: number): unknown[] | null {
  const items: unknown[] = [];
  for (;;) {
    const line = cursor.lines[cursor.next];
    if (!line || line.indent < indent || (line.indent === indent && !isItem(line))) return items;
    if (line.indent > indent) return null;
    const value = readScalar(line.content.slice(2).trimStart());
    if (value === undefined) return null;
    items.push(value);
    cursor.next++;
  }
}

const comment = "(?: +#.*)?";
const quoted = new RegExp(String.raw`^(?:"([^"\\]*)"|'([^']*)')${comment}$`);
const flowList = new RegExp(String.raw`^\[([^[\]{}#&*!|>%@:\x60]*)\]${comment}$`);
const bare = new RegExp(`^([^#]*?)${comment}$`);
const typedWord = /^(?:yes|no|on|off|true|false|null|nan|inf)$/i;
// Begins like a word, has single blanks, and no colon that could end a key.
const plainText = /^[A-Za-z_/](?:[A-Za-z0-9_./@+=()~$-]|:(?=[A-Za-z0-9_/])|[ ](?=[A-Za-z0-9_/(]))*$/;
const booleans: ReadonlyMap<string, boolean> = new Map([
  ...["true", "True", "TRUE", "yes", "Yes", "YES", "on", "On", "ON"].map((word) => [word, true] as const),
  ...["false", "False", "FALSE", "no", "No", "NO", "off", "Off", "OFF"].map((word) => [word, false] as const),
]);

function readScalar(text: string): unknown {
  const inQuotes = quoted.exec(text);
  if (inQuotes) return inQuotes[1] ?? inQuotes[2] ?? "";
  if (/^\{\}(?: +#.*)?$/.test(text)) return {};
  const list = flowList.exec(text);
  if (list) return readFlowItems(list[1] ?? "");
  const word = bare.exec(text)?.[1]?.trimEnd();
  return word === undefined || word === "" ? undefined : readWord(word);
}

function readFlowItems(inside: string): unknown[] | undefined {
  if (inside.trim() === "") return [];
  const items = inside.split(",").map((item) => readFlowItem(item.trim()));
  return items.includes(undefined) ? undefined : items;
}

/** A comma inside quotes leaves halves that are no items, so such a list goes to the parser. */
function readFlowItem(item: string): unknown {
  const inQuotes = /^(?:"([^"\\]*)"|'([^']*)')$/.exec(item);
  return inQuotes ? (inQuotes[1] ?? inQuotes[2]) : readWord(item);
}

function readWord(word: string): unknown {
  const truth = booleans.get(word);
  if (truth !== undefined) return truth;
  if (word === "null" || word === "~") return null;
  if (/^-?(?:0|[1-9]\d{0,14})$/.test(word) && word !== "-0") return Number(word);
  if (/^-?(?:0|[1-9]\d{0,8})\.\d{1,8}$/.test(word)) return Number(word);
  return plainText.test(word) && !typedWord.test(word) ? word : undefined;
}
