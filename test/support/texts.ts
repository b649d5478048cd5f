// The texts in the source: string literals, and templates with a place for each of their expressions.
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parseSync } from "@swc/core";
import { repository } from "./run-hermes.ts";

export interface SourceText {
  readonly file: string;
  /** `Saved to ${path}` is `Saved to {1}`. */
  readonly text: string;
}

/** Every text of more than one word in the TypeScript files that match, tests excluded. */
export function sourceTexts(...patterns: readonly string[]): readonly SourceText[] {
  const files = patterns.flatMap((pattern) => globSync(pattern, { cwd: repository })).sort();
  return [...new Set(files)].filter((file) => !file.endsWith(".test.ts")).flatMap(textsIn);
}

function textsIn(file: string): readonly SourceText[] {
  const source = readFileSync(join(repository, file), "utf8");
  const found: SourceText[] = [];
  visit(parseSync(source, { syntax: "typescript", target: "esnext" }).body, (text) => {
    if (/\p{L}{2,}[,:;.]? [\p{L}{"'(]/u.test(text)) found.push({ file, text });
  });
  return found;
}

function visit(node: unknown, take: (text: string) => void): void {
  if (typeof node !== "object" || node === null) return;
  if (Array.isArray(node)) {
    for (const one of node) visit(one, take);
    return;
  }
  const { type } = node as { readonly type?: unknown };
  if (type === "ImportDeclaration" || (typeof type === "string" && /^Ts(?!As|Non|Satisfies|Const)/.test(type))) return;
  if (type === "StringLiteral") return take((node as unknown as { readonly value: string }).value);
  if (type === "TemplateLiteral" && "quasis" in node) {
    const { quasis } = node as { readonly quasis: readonly { readonly cooked?: string; readonly raw: string }[] };
    take(quasis.map(({ cooked, raw }, at) => `${at > 0 ? `{${at}}` : ""}${cooked ?? raw}`).join(""));
    return visit((node as { readonly expressions?: unknown }).expressions, take);
  }
  for (const [key, value] of Object.entries(node)) if (key !== "span") visit(value, take);
}
