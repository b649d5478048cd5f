// Changes one key in the text of a YAML file and leaves every other byte alone.
//
// The text is parsed for positions only; the change is a few splices. Whatever the splices make of it is parsed again and compared
// with what was asked for, so a rare construct costs its formatting (the document is re-printed), never its meaning.
// Why not `yaml`'s own editing: a Document re-prints lines it was not asked to change (indentation, quotes, columns of comments), and
// its CST edits scalars only; adding, removing and re-shaping keys would be the same code over tokens.
import { isDeepStrictEqual } from "node:util";
import type { Pair, ParsedNode, YAMLMap, YAMLSeq } from "yaml";
import { isMapping } from "./decode.ts";
import {
  define,
  isBlock,
  parseText,
  plain,
  type QuoteStyle,
  renderBlock,
  renderInline,
  renderItem,
  renderKey,
  renderPair,
  type Tree,
  type Yaml,
  type YamlDocument,
} from "./yaml-text.ts";

export type YamlChange =
  | { readonly type: "set"; readonly path: readonly string[]; readonly value: unknown }
  | { readonly type: "remove"; readonly path: readonly string[] };

/** The text with the change in it. Removing the last key of a mapping removes the mapping. Throws when the text does not parse. */
export function editYaml(yaml: Yaml, text: string, change: YamlChange): string {
  const parsed = parseText(yaml, text);
  if (!parsed.ok) throw new Error(parsed.problem.message);
  const wanted = changeTree(parsed.tree, change);
  if (isDeepStrictEqual(wanted, parsed.tree)) return text;

  const means = (candidate: string) => {
    const again = parseText(yaml, candidate);
    return again.ok && isDeepStrictEqual(again.tree, wanted);
  };
  const spliced = spliceTree(yaml, text, parsed.document, wanted);
  if (spliced !== null && means(spliced)) return spliced;
  const printed = printChange(parsed.document, wanted, change.path[0] ?? "");
  if (means(printed)) return printed;
  throw new Error(`The key ${change.path.join(".")} cannot be changed in this file; edit it by hand`);
}

/** The tree after the change; the given one is not touched. */
export function changeTree(tree: Tree, change: YamlChange): Tree {
  const result = change.type === "set" ? setIn(tree, change.path, change.value) : removeIn(tree, change.path);
  return isMapping(result) ? result : {};
}

function setIn(node: unknown, [key, ...rest]: readonly string[], value: unknown): unknown {
  if (key === undefined) return value;
  if (Array.isArray(node)) return node.map((item, index) => (String(index) === key ? setIn(item, rest, value) : item));
  const copy: Tree = isMapping(node) ? { ...node } : {};
  define(copy, key, setIn(Object.hasOwn(copy, key) ? copy[key] : undefined, rest, value));
  return copy;
}

function removeIn(node: unknown, [key, ...rest]: readonly string[]): unknown {
  if (key === undefined) return undefined;
  if (Array.isArray(node)) {
    const items = node.map((item, index) => (String(index) === key ? removeIn(item, rest) : item));
    const left = items.filter((item) => item !== undefined);
    return left.length === 0 && items.length > 0 ? undefined : left;
  }
  if (!isMapping(node) || !Object.hasOwn(node, key)) return node;
  const inner = removeIn(node[key], rest);
  const copy: Tree = {};
  for (const [name, value] of Object.entries(node)) {
    if (name !== key) define(copy, name, value);
    else if (inner !== undefined) define(copy, name, inner);
  }
  return Object.keys(copy).length === 0 ? undefined : copy;
}

/** The last resort: the document printed anew, with the whole top-level key replaced. Comments elsewhere stay. */
function printChange(document: YamlDocument, wanted: Tree, key: string): string {
  if (Object.hasOwn(wanted, key)) document.set(key, wanted[key]);
  else document.delete(key);
  return document.toString({ lineWidth: 0 });
}

// Which bytes of a YAML text have to change so that it means another tree.

interface Splice {
  readonly start: number;
  readonly end: number;
  readonly text: string;
}

/** Thrown inside this file where a construct is too unusual to splice. */
class TooUnusual extends Error {}

/** The text with as few bytes changed as it takes to mean `wanted`; null when the file is too unusual for that. */
function spliceTree(yaml: Yaml, text: string, document: YamlDocument, wanted: Tree): string | null {
  try {
    const splices = new Splicer(yaml, text, document).splicesFor(wanted);
    splices.sort((a, b) => b.start - a.start || b.end - a.end);
    return splices.reduce(
      (result, { start, end, text: piece }) => result.slice(0, start) + piece + result.slice(end),
      text,
    );
  } catch (error) {
    if (error instanceof TooUnusual) return null;
    throw error;
  }
}

/** Compares the wanted tree with the document, node by node, and says which bytes have to change. */
class Splicer {
  readonly #yaml: Yaml;
  readonly #text: string;
  readonly #document: YamlDocument;
  readonly #eol: string;

  constructor(yaml: Yaml, text: string, document: YamlDocument) {
    this.#yaml = yaml;
    this.#text = text;
    this.#document = document;
    this.#eol = text.includes("\r\n") ? "\r\n" : "\n";
  }

  splicesFor(wanted: Tree): Splice[] {
    const root = this.#document.contents;
    const empty = Object.keys(wanted).length === 0;
    if (this.#yaml.isMap(root)) {
      if (!root.flow && empty) return [this.#lines(root, [])];
      return this.#map(root, wanted);
    }
    return empty ? [] : [this.#insertLines(this.#text.length, renderBlock(wanted, ""))];
  }

  #map(map: YAMLMap, wanted: Tree): Splice[] {
    const splices: Splice[] = [];
    const pairs = this.#lastOfEachKey(map);
    const removed = [...pairs.keys()].filter((key) => !Object.hasOwn(wanted, key));
    const added = Object.entries(wanted).filter(([key]) => !pairs.has(key));
    if (map.flow && removed.length > 0) return [this.#replaceRange(map, renderInline(wanted))];
    for (const [key, pair] of pairs) {
      if (!Object.hasOwn(wanted, key)) splices.push(this.#removePair(map, key));
      else splices.push(...this.#pairValue(map, pair, wanted[key]));
    }
    if (added.length > 0) splices.push(this.#addPairs(map, added));
    return splices;
  }

  #lastOfEachKey(map: YAMLMap): Map<string, Pair<ParsedNode, ParsedNode | null>> {
    const pairs = new Map<string, Pair<ParsedNode, ParsedNode | null>>();
    for (const pair of map.items as Pair<ParsedNode, ParsedNode | null>[]) {
      if (!this.#yaml.isScalar(pair.key) || pair.key.value === "<<") throw new TooUnusual();
      pairs.set(String(pair.key.value), pair); // as the tree names it
    }
    return pairs;
  }

  #pairValue(map: YAMLMap, pair: Pair<ParsedNode, ParsedNode | null>, wanted: unknown): Splice[] {
    const separator = pair.srcToken && "sep" in pair.srcToken ? (pair.srcToken.sep ?? []) : [];
    const colon = separator.find((token) => token.type === "map-value-ind");
    const node = pair.value;
    if (!colon) return this.#unlessEqual(node, wanted);
    const decorated = separator.some((token) => token.type === "anchor" || token.type === "tag");
    const change = this.#value(node, wanted);
    if (change !== "replace") return change;
    if (decorated || !node) throw new TooUnusual();

    const afterColon = colon.offset + 1;
    if (map.flow) return [this.#inline(node, afterColon, renderInline(wanted))];
    if (!isBlock(wanted)) return this.#toInline(node, afterColon, renderInline(wanted, this.#styleOf(node)));
    const indent = `${this.#indentOf(pair.key)}  `;
    return this.#toBlock(node, afterColon, renderBlock(wanted, indent));
  }

  #unlessEqual(node: ParsedNode | null, wanted: unknown): Splice[] {
    if (isDeepStrictEqual(this.#plain(node), wanted)) return [];
    throw new TooUnusual();
  }

  /** What has to change inside a node, or "replace" when all of it has to go. */
  #value(node: ParsedNode | null, wanted: unknown): Splice[] | "replace" {
    if (isDeepStrictEqual(this.#plain(node), wanted)) return [];
    if (this.#yaml.isAlias(node)) return "replace";
    if (this.#yaml.isMap(node) && isMapping(wanted) && Object.keys(wanted).length > 0) return this.#map(node, wanted);
    if (this.#yaml.isSeq(node) && Array.isArray(wanted) && wanted.length > 0 && node.items.length > 0) {
      return this.#list(node, wanted);
    }
    return "replace";
  }

  /** Items that stay at both ends keep their bytes; those in between are changed one by one, removed or inserted. */
  #list(seq: YAMLSeq, wanted: readonly unknown[]): Splice[] {
    const nodes = seq.items as ParsedNode[];
    const old = nodes.map((node) => this.#plain(node));
    if (seq.flow) return [this.#replaceRange(seq, renderInline(wanted))];
    let head = 0;
    while (head < old.length && head < wanted.length && isDeepStrictEqual(old[head], wanted[head])) head++;
    let tail = 0;
    const room = Math.min(old.length, wanted.length) - head;
    while (tail < room && isDeepStrictEqual(old.at(-1 - tail), wanted.at(-1 - tail))) tail++;

    const splices: Splice[] = [];
    const middle = nodes.slice(head, nodes.length - tail);
    const values = wanted.slice(head, wanted.length - tail);
    middle.forEach((node, index) => {
      if (index >= values.length) splices.push(this.#removeItem(seq, head + index));
      else splices.push(...this.#item(seq, head + index, node, values[index]));
    });
    const inserted = values.slice(middle.length);
    if (inserted.length > 0) {
      const place = head + middle.length;
      const lines = inserted.flatMap((item) => renderItem(item, this.#indentAt(this.#dash(seq, 0))));
      const at = place > 0 ? this.#afterLine(this.#endOfItem(seq, place - 1)) : this.#lineStart(this.#dash(seq, 0));
      splices.push(this.#insertLines(at, lines));
    }
    return splices;
  }

  #item(seq: YAMLSeq, index: number, node: ParsedNode, wanted: unknown): Splice[] {
    const change = this.#value(node, wanted);
    if (change !== "replace") return change;
    const dash = this.#dash(seq, index);
    const lines = renderItem(wanted, this.#indentAt(dash));
    if (lines.length > 1 || isBlock(this.#plain(node))) {
      const { start, end } = this.#removeItem(seq, index);
      return [{ start, end, text: this.#join(lines) }];
    }
    return [this.#inline(node, dash + 1, renderInline(wanted, this.#styleOf(node)))];
  }

  #addPairs(map: YAMLMap, added: readonly (readonly [string, unknown])[]): Splice {
    const last = map.items.at(-1) as Pair<ParsedNode, ParsedNode | null> | undefined;
    if (map.flow) {
      const text = added.map(([key, value]) => `${renderKey(key)}: ${renderInline(value)}`).join(", ");
      const at = last ? this.#endOf(last.value ?? last.key) : (map.range?.[0] ?? 0) + 1;
      return { start: at, end: at, text: last ? `, ${text}` : text };
    }
    const first = map.items[0] as Pair<ParsedNode, ParsedNode | null> | undefined;
    if (!first || !last) throw new TooUnusual();
    const lines = added.flatMap(([key, value]) => renderPair(key, value, this.#indentOf(first.key)));
    return this.#insertLines(this.#afterLine(this.#endOfPair(last)), lines);
  }

  #removePair(map: YAMLMap, key: string): Splice {
    const pairs = (map.items as Pair<ParsedNode, ParsedNode | null>[]).filter(
      (pair) => this.#yaml.isScalar(pair.key) && String(pair.key.value) === key,
    );
    const [pair] = pairs;
    if (!pair || pairs.length > 1) throw new TooUnusual();
    const start = pair.key.range[0];
    if (this.#text.slice(this.#lineStart(start), start).trim() !== "") throw new TooUnusual();
    return { start: this.#lineStart(start), end: this.#afterLine(this.#endOfPair(pair)), text: "" };
  }

  #toInline(node: ParsedNode, afterColon: number, text: string): Splice[] {
    if (this.#isBlockScalar(node)) return [{ start: node.range[0], end: node.range[1], text: text + this.#eol }];
    if (!this.#isBlockCollection(node)) return [this.#inline(node, afterColon, text)];
    return [{ start: afterColon, end: afterColon, text: ` ${text}` }, this.#lines(node, [])];
  }

  #inline(node: ParsedNode, after: number, text: string): Splice {
    if (isEmpty(node)) return { start: after, end: after, text: ` ${text}` };
    return { start: node.range[0], end: node.range[1], text };
  }

  #toBlock(node: ParsedNode, afterColon: number, lines: readonly string[]): Splice[] {
    if (this.#isBlockCollection(node)) return [this.#lines(node, lines)];
    if (this.#isBlockScalar(node)) {
      return [{ start: afterColon, end: node.range[1], text: this.#eol + this.#join(lines) }];
    }
    const end = isEmpty(node) ? afterColon : node.range[1];
    return [{ start: afterColon, end, text: "" }, this.#insertLines(this.#afterLine(end), lines)];
  }

  /** The lines of a block collection, replaced by others. */
  #lines(node: ParsedNode | YAMLMap, lines: readonly string[]): Splice {
    const start = this.#lineStart(node.range?.[0] ?? 0);
    return { start, end: this.#afterLine(this.#endOf(node)), text: lines.length > 0 ? this.#join(lines) : "" };
  }

  #removeItem(seq: YAMLSeq, index: number): Splice {
    const dash = this.#dash(seq, index);
    const start = this.#lineStart(dash);
    if (this.#text.slice(start, dash).trim() !== "") throw new TooUnusual();
    return { start, end: this.#afterLine(this.#endOfItem(seq, index)), text: "" };
  }

  #insertLines(at: number, lines: readonly string[]): Splice {
    const unfinished = at > 0 && this.#text[at - 1] !== "\n" && !(at === 1 && this.#text[0] === "\ufeff");
    return { start: at, end: at, text: (unfinished ? this.#eol : "") + this.#join(lines) };
  }

  #replaceRange(node: YAMLMap | YAMLSeq, text: string): Splice {
    if (!node.range) throw new TooUnusual();
    return { start: node.range[0], end: node.range[1], text };
  }

  #join(lines: readonly string[]): string {
    return lines.map((line) => line + this.#eol).join("");
  }

  #dash(seq: YAMLSeq, index: number): number {
    const token = seq.srcToken && "items" in seq.srcToken ? seq.srcToken.items[index] : undefined;
    const dash = token?.start.find((part) => part.type === "seq-item-ind");
    if (!dash || token?.start.some((part) => part.type === "anchor" || part.type === "tag")) throw new TooUnusual();
    return dash.offset;
  }

  /** Where a node's own bytes end; comments and blank lines after it are not its own. */
  #endOf(node: ParsedNode | YAMLMap): number {
    if (!node.range) throw new TooUnusual();
    if (!this.#isBlockCollection(node)) return node.range[1];
    if (this.#yaml.isSeq(node)) return this.#endOfItem(node, node.items.length - 1);
    const last = node.items.at(-1);
    return last ? this.#endOfPair(last as Pair<ParsedNode, ParsedNode | null>) : node.range[1];
  }

  #endOfItem(seq: YAMLSeq, index: number): number {
    const node = seq.items[index] as ParsedNode;
    const least = this.#dash(seq, index) + 1;
    return isEmpty(node) ? least : Math.max(least, this.#endOf(node));
  }

  #endOfPair(pair: Pair<ParsedNode, ParsedNode | null>): number {
    const separator = pair.srcToken && "sep" in pair.srcToken ? (pair.srcToken.sep ?? []) : [];
    const colon = separator.find((token) => token.type === "map-value-ind");
    const least = colon ? colon.offset + 1 : pair.key.range[1];
    return !pair.value || isEmpty(pair.value) ? least : Math.max(least, this.#endOf(pair.value));
  }

  #isBlockCollection(node: ParsedNode | YAMLMap): node is YAMLMap.Parsed | YAMLSeq.Parsed {
    return this.#yaml.isCollection(node) && !node.flow;
  }

  #isBlockScalar(node: ParsedNode): boolean {
    return this.#yaml.isScalar(node) && (node.type === "BLOCK_LITERAL" || node.type === "BLOCK_FOLDED");
  }

  #styleOf(node: ParsedNode): QuoteStyle {
    if (!this.#yaml.isScalar(node)) return "plain";
    return node.type === "QUOTE_SINGLE" ? "single" : node.type === "QUOTE_DOUBLE" ? "double" : "plain";
  }

  #plain(node: ParsedNode | null): unknown {
    return node ? plain(node.toJS(this.#document, { maxAliasCount: 1000 })) : null;
  }

  #indentOf(key: ParsedNode): string {
    return this.#indentAt(key.range[0]);
  }

  #indentAt(offset: number): string {
    const before = this.#text.slice(this.#lineStart(offset), offset);
    return " ".repeat(before.replace("\ufeff", "").length);
  }

  #lineStart(offset: number): number {
    return this.#text.lastIndexOf("\n", offset - 1) + 1;
  }

  #afterLine(offset: number): number {
    if (offset > 0 && this.#text[offset - 1] === "\n") return offset;
    const end = this.#text.indexOf("\n", offset);
    return end === -1 ? this.#text.length : end + 1;
  }
}

/** Nothing is written there; the parser may place such a value on a later line. */
function isEmpty(node: ParsedNode): boolean {
  return node.range[0] === node.range[1];
}
