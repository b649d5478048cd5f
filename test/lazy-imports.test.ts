import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { parseSync } from "@swc/core";
import { repository } from "./support/run-hermes.ts";

const { LAZY }: { readonly LAZY: RegExp } = await import(join(repository, "scripts", "hot-and-cold.mjs"));
const found = (text: string) => [...text.matchAll(LAZY)].map(([, path]) => path);

test("a lazy import is found however its line is broken, a type is none", () => {
  const text = `
    await import("./a.ts");
    const b = import(
      "./b.ts"
    );
    const c = () => import(
      "./c.ts",
    );
    type D = typeof import("./d.ts");
    type E = typeof
      import("./e.ts");
    import("node:fs");
  `;
  assert.deepEqual(found(text), ["./a.ts", "./b.ts", "./c.ts"]);
});

test("the build finds every lazy import of a file of ours, and nothing that is none", () => {
  const source = join(repository, "src");
  for (const file of globSync("**/*.ts", { cwd: source }).filter((name) => !name.endsWith(".test.ts"))) {
    const text = readFileSync(join(source, file), "utf8");
    if (!text.includes("import(")) continue;
    assert.deepEqual(found(text), lazyImports(parseSync(text, { syntax: "typescript" })), file);
  }
});

/** In a syntax tree, in the order of the text. */
function lazyImports(node: unknown): string[] {
  if (typeof node !== "object" || node === null) return [];
  const { type, callee, arguments: args } = node as CallNode;
  if (type === "CallExpression" && callee?.type === "Import") {
    const path = args?.[0]?.expression?.value;
    return typeof path === "string" && path.startsWith(".") && path.endsWith(".ts") ? [path] : [];
  }
  return Object.values(node).flatMap(lazyImports);
}

interface CallNode {
  readonly type?: string;
  readonly callee?: { readonly type?: string };
  readonly arguments?: readonly { readonly expression?: { readonly value?: unknown } }[];
}
