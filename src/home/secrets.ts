// Every secret value of a home, so that it can be masked wherever it turns up.
import { readFileSync } from "node:fs";
import { isMapping } from "./config/decode.ts";
import type { Config } from "./config/schema.ts";
import { FileStamp } from "./looks.ts";

/** Shorter values are words, not secrets, and masking them would garble ordinary text. */
const MIN_LENGTH = 8;

interface SecretSources {
  readonly environment: () => Readonly<Record<string, string>>;
  readonly config: () => Config;
  readonly authFile: string;
}

/** A function that returns the secrets known now; the same array as long as nothing has changed. */
export function collectSecrets({ environment, config, authFile }: SecretSources): () => readonly string[] {
  const auth = new FileStamp(authFile);
  let seen: readonly unknown[] = [];
  let known: readonly string[] = [];
  return () => {
    // Both hand out the same object until something changes, so a look costs next to nothing.
    const now = [environment(), config(), auth.now()];
    if (now.every((source, index) => source === seen[index])) return known;
    seen = now;
    const found = new Set<string>(secretsIn(readJson(authFile)));
    const variables = environment();
    for (const value of secretsIn(variables)) found.add(value);
    for (const value of secretsIn(config())) found.add(value);
    for (const name of keyNames(config())) {
      const value = variables[name] ?? "";
      if (value.length >= MIN_LENGTH) found.add(value);
    }
    known = [...found];
    return known;
  };
}

/** Variables that settings name as the place of a key: `key_env` and its kind, wherever in the tree. */
export function keyNames(config: Config): readonly string[] {
  // Settings are the same object until the file changes, and several ask on each start.
  const found = namesOf.get(config) ?? [...keyNamesIn(config)];
  namesOf.set(config, found);
  return found;
}

const namesOf = new WeakMap<Config, readonly string[]>();

function* keyNamesIn(node: unknown): Generator<string> {
  if (Array.isArray(node)) for (const item of node) yield* keyNamesIn(item);
  if (!isMapping(node)) return;
  for (const key in node) {
    const inner = node[key];
    if (typeof inner === "object") yield* keyNamesIn(inner);
    else if (typeof inner === "string" && (key === "key_env" || key === "api_key_env") && inner.trim() !== "")
      yield inner.trim();
  }
}

/** Names that hold secrets, in .env and in settings alike. */
function isSecretName(name: string): boolean {
  if (/(?:_|^)(?:MAX|NUM|COUNT|LIMIT|BUDGET)_?TOKENS?$|TOKENS$/i.test(name)) return false;
  return /(?:API_?KEY|ACCESS_?KEY|PRIVATE_?KEY|TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIALS?|AUTHORIZATION)$|_(?:KEY|PASS|PWD)$/i.test(
    name,
  );
}

/** Some names hold a key or the file it lies in; a path is no secret, and masking it would garble every mention of the file. */
function isSecret(name: string, value: string): boolean {
  if (/^record_key$/i.test(name)) return false; // a key of the keyboard
  const isFile = /(?:^|_)(?:SSH|CLIENT)_KEY$/i.test(name) && /^(?:~|\.{1,2})?\/[^+=]*$/.test(value);
  return value !== "" && !isFile && isSecretName(name);
}

/** Where secrets stand in a tree of settings. A `${NAME}` that is read from elsewhere is none. */
export function* secretPaths(node: unknown, path: readonly string[] = []): Generator<readonly string[]> {
  if (Array.isArray(node)) for (const [index, item] of node.entries()) yield* secretPaths(item, [...path, `${index}`]);
  else if (isMapping(node)) for (const [key, inner] of Object.entries(node)) yield* secretPaths(inner, [...path, key]);
  else if (typeof node === "string" && !/^\$\{[^}]*\}$/.test(node)) {
    const name = path.findLast((part) => !/^\d+$/.test(part)) ?? "";
    if (isSecret(name, node)) yield path;
  }
}

function* secretsIn(node: unknown, name = ""): Generator<string> {
  if (typeof node === "string") {
    if (node.length >= MIN_LENGTH && isSecret(name, node)) yield node;
    return;
  }
  if (Array.isArray(node)) for (const item of node) yield* secretsIn(item, name);
  else if (isMapping(node))
    for (const key in node) {
      const inner = node[key];
      // Most of a tree are switches and numbers.
      if (typeof inner === "string" || typeof inner === "object") yield* secretsIn(inner, key);
    }
}

function readJson(path: string): unknown {
  try {
    return JSON.parse(readFileSync(path, "utf8"));
  } catch {
    return null; // absent, or broken: the file's owner reports that
  }
}

// Secrets as settings screens show them.

/** First and last four characters of a long value, nothing of a short one. */
export function maskValue(value: string): string {
  if (value === "") return "(not set)";
  return value.length < 12 ? "***" : `${value.slice(0, 4)}...${value.slice(-4)}`;
}

/** The same tree with every secret in it masked. */
export function maskTree(node: unknown, name = ""): unknown {
  if (typeof node === "string") return isSecret(name, node) ? maskValue(node) : node;
  if (Array.isArray(node)) return node.map((item) => maskTree(item, name));
  if (!isMapping(node)) return node;
  return Object.fromEntries(Object.entries(node).map(([key, inner]) => [key, maskTree(inner, key)]));
}
