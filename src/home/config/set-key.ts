// What `hermes config set KEY VALUE` means: which key, which value, and whether it may be done.
import { hostProblem } from "../../kit/hosts.ts";
import { didYouMean } from "../../kit/similarity.ts";
import { ConfigError } from "../paths.ts";
import { decode, isMapping, type Misfit } from "./decode.ts";
import { eachField, type Field, findEntry, isNotUsed, isSection, type Section } from "./field.ts";
import { configSchema } from "./schema.ts";
import { fromText, isNumber } from "./store.ts";
import type { Tree } from "./yaml-text.ts";

interface PlannedSet {
  readonly path: readonly string[];
  readonly value: unknown;
  /** Notes for the user: a redirected key, an unknown one with its neighbours. */
  readonly notices: readonly string[];
  /** Nothing reads it yet. */
  readonly notUsed: boolean;
}

interface SetOptions {
  readonly force?: boolean;
  /** Reads a list or mapping that is written on one line; undefined when it is none. */
  readonly parse: (text: string) => unknown;
}

/** `a.b[0].c` as its parts. */
export function parseKeyPath(key: string): string[] {
  const parts = key
    .trim()
    .replace(/\[(\d+)\]/g, ".$1")
    .split(".");
  if (parts.some((part) => part === ""))
    throw new ConfigError(`"${key}" is not a valid key; use a key such as agent.max_turns.`);
  return parts;
}

/** Plans a change of the file `tree`; throws `ConfigError` when it must not be made. */
export function planSet(tree: Tree, key: string, text: string, { force = false, parse }: SetOptions): PlannedSet {
  const notices: string[] = [];
  let path = parseKeyPath(key);
  if (key === "model" && isMapping(tree.model) && !looksStructured(text)) {
    path = ["model", "default"];
    notices.push("model is a section here; setting model.default.");
  }
  checkLists(tree, path);

  const known = findEntry(configSchema.fields, path);
  // The model may be a plain text, although the schema has it as a section.
  const entry = known && "entry" in known ? known.entry : null;
  const field = entry && !isSection(entry) ? entry : null;
  const value = field ? typedValue(field, text, path.join("."), { force, parse }) : looseValue(text, parse);
  const noHost = known && "inside" in known && known.inside.hosts && !force ? hostProblem(text) : null;
  if (noHost !== null) throw new ConfigError(`${path.join(".")}: ${noHost}. Nothing was saved.`);
  if (!isMapping(value) && !force) refuseFlattening(tree, path, entry);
  if (!known && !force) notices.push(unknownKey(path.join(".")));
  return { path, value, notices, notUsed: known !== null && isNotUsed("entry" in known ? known.entry : known.inside) };
}

/** Numbers address items of lists, and only those that are there. */
function checkLists(tree: Tree, path: readonly string[]): void {
  let node: unknown = tree;
  for (const [index, part] of path.entries()) {
    if (Array.isArray(node)) {
      const key = path.slice(0, index).join(".");
      if (!/^\d+$/.test(part)) throw new ConfigError(`${key} is a list; address its items by number, like ${key}.0.`);
      if (Number(part) >= node.length) {
        throw new ConfigError(`${key} has ${node.length} items; there is no ${key}.${part} (counting starts at 0).`);
      }
      node = node[Number(part)];
      continue;
    }
    node = isMapping(node) && Object.hasOwn(node, part) ? node[part] : undefined;
  }
}

function typedValue(field: Field, text: string, path: string, { force, parse }: SetOptions): unknown {
  const value = fromText(field, text, parse);
  const problems: Misfit[] = [];
  const lone: Section = { meaning: "", fields: { value: field } };
  decode(lone, { value }, "", problems);
  const [problem] = problems;
  if (problem === undefined || force) return value;
  if (field.hosts && !problem.message.startsWith("value: expected "))
    throw new ConfigError(`${path}: ${problem.message.replace(/^value: /, "")}. Nothing was saved.`);
  const expected = /^(?:(?!expected ).)*expected (.*), found/s.exec(problem.message)?.[1] ?? "another value";
  throw new ConfigError(
    `${path} takes ${expected}; got ${field.secret ? "something else" : JSON.stringify(text)}. Nothing was saved.`,
  );
}

/** Keys the schema does not type: the text decides. */
function looseValue(text: string, parse: SetOptions["parse"]): unknown {
  const word = text.trim();
  if (/^(?:true|yes|on)$/i.test(word)) return true;
  if (/^(?:false|no|off)$/i.test(word)) return false;
  if (isNumber(word) && Number.isFinite(Number(word)) && keepsDigits(word)) return Number(word);
  return looksStructured(text) ? (parse(word) ?? text) : text;
}

/** Ids longer than a number can hold, and numbers with leading zeros, stay texts. */
function keepsDigits(word: string): boolean {
  if (/^[-+]?0\d/.test(word)) return false;
  return !/^[-+]?\d+$/.test(word) || Number.isSafeInteger(Number(word));
}

function looksStructured(text: string): boolean {
  return /^\s*[[{]/.test(text);
}

function refuseFlattening(tree: Tree, path: readonly string[], entry: Field | Section | null): void {
  const old = path.reduce<unknown>(
    (node, key) => (isMapping(node) && Object.hasOwn(node, key) ? node[key] : undefined),
    tree,
  );
  const section = entry !== null && isSection(entry) && path[0] !== "model";
  if (!isMapping(old) && !section) return;
  const key = path.join(".");
  throw new ConfigError(`${key} is a section; set one of its keys, like ${key}.KEY, or use --force to replace it.`);
}

function unknownKey(key: string): string {
  const near = didYouMean(key, allKeys());
  const hint = near.length > 0 ? ` Did you mean ${near.join(", ")}?` : "";
  return `${key} is not a known setting; saved anyway.${hint}`;
}

export function allKeys(): string[] {
  return [...eachField(configSchema.fields)].map(({ path }) => path);
}

/** The variable in .env that tools of the Python original read for a terminal setting, or null. */
export function mirroredVariable(path: readonly string[]): string | null {
  if (path[0] !== "terminal" || path.length !== 2) return null;
  const found = findEntry(configSchema.fields, path);
  if (!found || !("entry" in found) || isSection(found.entry)) return null;
  const name = found.entry.env ?? "";
  return name.startsWith("TERMINAL_SSH") || name === "TERMINAL_LIFETIME_SECONDS" ? null : name || null;
}
