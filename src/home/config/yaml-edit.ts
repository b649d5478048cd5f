// Changes one key in the text of a YAML file and leaves every other byte alone.
//
// The text is parsed for positions only; the change is a few splices. Whatever the splices make of it is parsed again and compared
// with what was asked for, so a rare construct costs its formatting (the document is re-printed), never its meaning.
import { isDeepStrictEqual } from "node:util";
import { isMapping } from "./decode.ts";
import { spliceTree } from "./yaml-splice.ts";
import { define, parseText, type Tree, type Yaml, type YamlDocument } from "./yaml-text.ts";

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
