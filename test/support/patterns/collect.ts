// Every regular expression of the source: what is written as one, and what modules build of texts while they load.
import { readdir, readFile } from "node:fs/promises";
import { fileURLToPath, pathToFileURL } from "node:url";
import { parse } from "@swc/core";
import { expressions } from "../../../src/safety/threats/matchers.ts";
import type { Pattern } from "./pump.ts";

const root = fileURLToPath(new URL("../../../", import.meta.url));

export interface Found extends Pattern {
  /** The file it stands in; for one that was built, the module that was being loaded. */
  readonly file: string;
}

/** Programs, not modules: loading them would run them. */
const PROGRAM = /^src\/(?:main|built|built-library)\.ts$|-worker\.ts$|worker\.ts$/;

export async function collectPatterns(): Promise<{ found: Found[]; built: string[] }> {
  const names = (await readdir(`${root}src`, { recursive: true }))
    .filter((name) => name.endsWith(".ts") && !name.endsWith(".test.ts"))
    .map((name) => `src/${name}`)
    .sort();
  const found = new Map<string, Found>();
  const keep = (pattern: Found) => {
    const key = `/${pattern.source}/${pattern.flags}`;
    if (!found.has(key)) found.set(key, pattern);
  };
  const built: string[] = [];
  for (const file of names) {
    const text = await readFile(root + file, "utf8");
    const tree = await parse(text, { syntax: "typescript", target: "esnext" });
    walk(tree, false, (node, inFunction) => {
      if (node.type === "RegExpLiteral") keep({ source: String(node.pattern), flags: String(node.flags), file });
      if (inFunction && isRegExpCall(node)) built.push(file);
    });
  }
  const Native = globalThis.RegExp;
  let loading = "";
  const watched = new Proxy(Native, {
    construct(target, args: [string | RegExp, string?]) {
      const made = new target(...args);
      if (new Error().stack?.includes("/src/")) keep({ source: made.source, flags: made.flags, file: loading });
      return made;
    },
  });
  globalThis.RegExp = watched;
  try {
    for (const file of names) {
      if (PROGRAM.test(file)) continue;
      loading = file;
      await import(pathToFileURL(root + file).href);
    }
  } finally {
    globalThis.RegExp = Native;
  }
  for (const pattern of expressions) keep({ ...pattern, file: "src/safety/threats/matchers.ts" });
  return { found: [...found.values()], built };
}

type Tree = Readonly<Record<string, unknown>>;

function isRegExpCall(node: Tree): boolean {
  const callee = node.callee as Tree | undefined; // of a call, whatever it is
  return (node.type === "NewExpression" || node.type === "CallExpression") && callee?.value === "RegExp";
}

const FUNCTIONS =
  /^(?:FunctionDeclaration|FunctionExpression|ArrowFunctionExpression|ClassMethod|PrivateMethod|MethodProperty|GetterProperty|SetterProperty|Constructor)$/;

function walk(value: unknown, inFunction: boolean, visit: (node: Tree, inFunction: boolean) => void): void {
  if (Array.isArray(value)) {
    for (const item of value) walk(item, inFunction, visit);
    return;
  }
  if (typeof value !== "object" || value === null) return;
  const node = value as Tree; // an object of the parser's tree
  visit(node, inFunction);
  const within = inFunction || FUNCTIONS.test(String(node.type ?? ""));
  for (const child of Object.values(node)) walk(child, within, visit);
}
