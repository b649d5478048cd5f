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

export type ParsedText =
  | { readonly ok: true; readonly tree: Tree; readonly document: YamlDocument }
  | { readonly ok: false; readonly problem: YamlProblem };

let loading: Promise<Yaml> | undefined;

/** The parser is the heaviest thing in this room; it is loaded when there is a file to parse. */
export function loadYaml(): Promise<Yaml> {
  loading ??= import("yaml");
  return loading;
}

/** An empty file is an empty mapping; any other root that is no mapping is a problem. */
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
