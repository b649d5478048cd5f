// Secrets as settings screens show them.
import { isMapping } from "./config/decode.ts";
import { isSecret } from "./secrets.ts";

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
