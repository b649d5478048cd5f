// Settings that come from environment variables.
import { asFlag, isMapping } from "./decode.ts";
import { eachField, type Field } from "./field.ts";
import { configSchema } from "./schema.ts";
import { define, type Tree } from "./yaml-text.ts";

export interface Override {
  readonly path: readonly string[];
  readonly name: string;
  readonly value: unknown;
  /** The file wins over this one. */
  readonly belowConfig: boolean;
}

/** The overrides in force. `runEnv` is what the program was started with, `fileEnv` what .env says; the former wins. */
export function collectOverrides(
  runEnv: (name: string) => string | undefined,
  fileEnv: (name: string) => string | undefined,
): Override[] {
  const found: Override[] = [];
  for (const { path, field } of eachField(configSchema.fields)) {
    if (field.env === undefined) continue;
    const text = runEnv(field.env) ?? fileEnv(field.env);
    if (text === undefined || text.trim() === "") continue;
    found.push({
      path: path.split("."),
      name: field.env,
      value: fromText(field, text),
      belowConfig: field.envBelowConfig === true,
    });
  }
  return found;
}

/** The normalised tree with overrides in it; the given one is not touched. */
export function applyOverrides(tree: Tree, overrides: readonly Override[]): Tree {
  return overrides.reduce((result, override) => put(result, override.path, override), tree);
}

function put(tree: Tree, [key = "", ...rest]: readonly string[], override: Override): Tree {
  const old = tree[key];
  if (rest.length === 0) {
    const taken = override.belowConfig && old !== undefined && old !== null && old !== "";
    return taken ? tree : { ...tree, [key]: override.value };
  }
  if (old !== undefined && old !== null && !isMapping(old)) return tree;
  const copy: Tree = { ...tree };
  define(copy, key, put(isMapping(old) ? old : {}, rest, override));
  return copy;
}

/**
 * A text from the command line or the environment as a value of that field; what does not fit stays a text.
 * `parse` reads lists and mappings; undefined means it is none.
 */
export function fromText(field: Field, text: string, parse: (text: string) => unknown = parseJson): unknown {
  const trimmed = text.trim();
  const structured = /^[[{]/.test(trimmed) ? parse(trimmed) : undefined;
  if (Array.isArray(structured) && field.kinds.some((kind) => kind === "list" || kind === "items")) return structured;
  if (isMapping(structured) && field.kinds.includes("record")) return structured;
  for (const kind of field.kinds) {
    if (kind === "null" && /^(?:null|none|~)$/i.test(trimmed)) return null;
    if (kind === "flag" && asFlag(trimmed) !== undefined) return asFlag(trimmed);
    if ((kind === "whole" || kind === "number") && isNumber(trimmed)) return Number(trimmed);
    if (kind === "list" && field.kinds.length === 1) {
      return trimmed
        .split(",")
        .map((item) => item.trim())
        .filter(Boolean);
    }
    if (kind === "text" || kind === "choice") return text;
  }
  return text;
}

export function isNumber(text: string): boolean {
  return /^[-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?$/i.test(text);
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined; // the caller keeps the text, and the schema complains about it
  }
}
