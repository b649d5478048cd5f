// config.yaml as text: YAML 1.1 as the Python original reads it.
import type { Document, ParsedNode, Tags } from "yaml";
import { isMapping } from "./decode.ts";

export type Yaml = typeof import("yaml");
export type YamlDocument = Document.Parsed<ParsedNode>;
export type Tree = Record<string, unknown>;

export interface YamlProblem {
  readonly line: number;
  readonly column: number;
  readonly message: string;
}

type ParsedText =
  | { readonly ok: true; readonly tree: Tree; readonly document: YamlDocument }
  | { readonly ok: false; readonly problem: YamlProblem };

/** The parser is the heaviest thing in this room; it is loaded when there is a file to parse. */
export const loadYaml = (): Promise<Yaml> => import("yaml");

/** An empty file is an empty mapping; any other root is a problem. */
export function parseText(yaml: Yaml, text: string): ParsedText {
  const document = yaml.parseDocument(text, {
    version: "1.1",
    customTags: asPythonReads,
    intAsBigInt: true,
    uniqueKeys: false, // the last one wins, as in the original
    keepSourceTokens: true,
    merge: true,
  });
  const [error] = document.errors;
  if (error) return { ok: false, problem: problemAt(error.linePos?.[0], error.message) };
  if (document.contents === null) return { ok: true, tree: {}, document };
  const tree = plain(document.toJS({ maxAliasCount: 1000 }));
  if (tree === null) return { ok: true, tree: {}, document };
  if (isMapping(tree)) return { ok: true, tree, document };
  return { ok: false, problem: { line: 1, column: 1, message: "The file must be a mapping of keys to values" } };
}

function problemAt(position: { line: number; col: number } | undefined, message: string): YamlProblem {
  const [summary = message] = message.split("\n");
  return {
    line: position?.line ?? 1,
    column: position?.col ?? 1,
    message: summary.replace(/ at line \d+, column \d+:?$/, ""),
  };
}

// Differences between YAML 1.1 on paper and in PyYAML: y and n are texts, and so is an exponent without a number (e5). Dates stay
// texts too: no setting is one.
function asPythonReads(tags: Tags): Tags {
  return tags.flatMap((tag) => {
    if (typeof tag === "string" || !("test" in tag)) return [tag];
    if (tag.tag === "tag:yaml.org,2002:timestamp") return [];
    if (tag.test?.test("e5")) return [{ ...tag, test: /^[-+]?(?:\d[\d_]*(?:\.[\d_]*)?|\.[\d_]+)[eE][-+]?\d+$/ }];
    if (tag.tag !== "tag:yaml.org,2002:bool" || !tag.test) return [tag];
    const words = tag.test.test("true")
      ? /^(?:[Yy]es|YES|[Tt]rue|TRUE|[Oo]n|ON)$/
      : /^(?:[Nn]o|NO|[Ff]alse|FALSE|[Oo]ff|OFF)$/;
    return [{ ...tag, test: words }];
  });
}

/** Whole numbers that a JavaScript number cannot hold (chat and channel ids) become texts instead of losing digits. */
export function plain(value: unknown): unknown {
  if (typeof value === "bigint") {
    const number = Number(value);
    return Number.isSafeInteger(number) ? number : String(value);
  }
  if (Array.isArray(value)) return value.map(plain);
  if (value instanceof Map) return plain(Object.fromEntries(value));
  if (value instanceof Set) return plain([...value]);
  if (value instanceof Uint8Array) return Buffer.from(value).toString("base64");
  if (!isMapping(value)) return value;
  const result: Tree = {};
  for (const [key, inner] of Object.entries(value)) define(result, key, plain(inner));
  return result;
}

/** Sets a key even if it is called `__proto__`. */
export function define(target: Tree, key: string, value: unknown): void {
  if (key !== "__proto__") target[key] = value;
  else Object.defineProperty(target, key, { value, enumerable: true, configurable: true, writable: true });
}

// Values as YAML that every reader understands the same way: this program, PyYAML and YAML 1.2.

export type QuoteStyle = "plain" | "single" | "double";

/** A value on one line, as it may stand in block or flow context. */
export function renderInline(value: unknown, style: QuoteStyle = "plain"): string {
  if (typeof value === "string") return renderText(value, style);
  if (typeof value === "number") return renderNumber(value);
  if (typeof value === "boolean" || value === null || value === undefined) return String(value ?? null);
  if (Array.isArray(value)) return `[${value.map((item) => renderInline(item)).join(", ")}]`;
  if (isMapping(value)) {
    const pairs = Object.entries(value).map(([key, inner]) => `${renderKey(key)}: ${renderInline(inner)}`);
    return `{${pairs.join(", ")}}`;
  }
  throw new TypeError(`A ${typeof value} cannot be stored in config.yaml`);
}

/** `key: value` as lines, mappings and lists in block form below their key. */
export function renderPair(key: string, value: unknown, indent: string): string[] {
  if (!isBlock(value)) return [`${indent}${renderKey(key)}: ${renderInline(value)}`];
  return [`${indent}${renderKey(key)}:`, ...renderBlock(value, `${indent}  `)];
}

/** The lines of a mapping or list that has something in it. */
export function renderBlock(value: object, indent: string): string[] {
  if (Array.isArray(value)) return value.flatMap((item) => renderItem(item, indent));
  return Object.entries(value).flatMap(([key, inner]) => renderPair(key, inner, indent));
}

/** `- value` as lines. */
export function renderItem(item: unknown, indent: string): string[] {
  if (!isBlock(item)) return [`${indent}- ${renderInline(item)}`];
  const [first = "", ...rest] = renderBlock(item, `${indent}  `);
  return [`${indent}- ${first.slice(indent.length + 2)}`, ...rest];
}

/** Has to be written over several lines. */
export function isBlock(value: unknown): value is object {
  return Array.isArray(value) ? value.length > 0 : isMapping(value) && Object.keys(value).length > 0;
}

export function renderKey(key: string): string {
  return renderText(key, "plain");
}

function renderText(text: string, style: QuoteStyle): string {
  if (style === "plain" && isPlain(text)) return text;
  if (style === "single" && /^[\x20-\x7e\xa0-\u2027\u2030-\ud7ff]*$/.test(text))
    return `'${text.replaceAll("'", "''")}'`;
  // JSON is YAML, except for characters that YAML does not count as printable or takes for line breaks.
  return JSON.stringify(text).replace(
    /[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]/g,
    (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

// Begins with a letter or a path, has no character that means something to YAML in block or flow context, and is none of the words
// that YAML 1.1 or 1.2 reads as a boolean or as null. Anything else is quoted: too often costs nothing, too rarely costs a setting.
const plainText = /^[A-Za-z_/][A-Za-z0-9_./@+=-]*(?: [A-Za-z0-9_./@+=(][A-Za-z0-9_./@+=()-]*)*$/;
const address = /^https?:\/\/[A-Za-z0-9._~/:@%+=-]*[A-Za-z0-9/]$/;
const typedWord = /^(?:y|n|yes|no|on|off|true|false|null|nan|inf|e\d+)$/i;

function isPlain(text: string): boolean {
  if (text.length > 400 || typedWord.test(text)) return false;
  return plainText.test(text) || address.test(text);
}

function renderNumber(value: number): string {
  if (Number.isNaN(value)) return ".nan";
  if (!Number.isFinite(value)) return value > 0 ? ".inf" : "-.inf";
  if (Object.is(value, -0)) return "-0.0";
  const text = String(value);
  // Readers take longer digit strings for ids and keep them as text.
  if (Number.isInteger(value) && !Number.isSafeInteger(value) && !text.includes("e")) return `${text}.0`;
  // PyYAML takes an exponent without a decimal point for text.
  return text.includes("e") && !text.includes(".") ? text.replace("e", ".0e") : text;
}
