// ${NAME} and ${env:NAME} in texts of config.yaml.
import { isMapping } from "./decode.ts";
import { define, type Tree } from "./yaml-text.ts";

export interface Expansion {
  /** A variable's value, undefined when it is not set. */
  readonly env: (name: string) => string | undefined;
  /** Called for each variable looked up. */
  readonly onName?: (name: string) => void;
  /** Called for each template whose source is unknown. */
  readonly onUnknownSource?: (template: string) => void;
}

/** Fills templates in, through lists and mappings but not in keys. What was filled in is not looked at again. */
export function expand(value: unknown, expansion: Expansion): unknown {
  if (typeof value === "string") return expandText(value, expansion);
  if (Array.isArray(value)) return value.map((item) => expand(item, expansion));
  if (!isMapping(value)) return value;
  const result: Tree = {};
  for (const [key, inner] of Object.entries(value)) define(result, key, expand(inner, expansion));
  return result;
}

export function hasTemplate(text: string): boolean {
  return /\$\{[^{}]+\}/.test(text);
}

function expandText(text: string, { env, onName, onUnknownSource }: Expansion): string {
  return text.replace(/\$\{([^{}]*)\}/g, (whole, inside: string) => {
    const source = /^\s*([A-Za-z_]\w*)\s*:(.*)$/s.exec(inside);
    if (source && source[1] !== "env") {
      onUnknownSource?.(whole);
      return whole;
    }
    const name = (source?.[2] ?? inside).trim();
    if (!/^[A-Za-z_]\w*$/.test(name)) return whole;
    onName?.(name);
    return env(name) ?? whole;
  });
}

/** A value on its way into the file: parts that are unchanged since a template was filled in become that template again. */
export function restoreTemplates(value: unknown, raw: unknown, env: Expansion["env"]): unknown {
  if (typeof value === "string") {
    return typeof raw === "string" && hasTemplate(raw) && expandText(raw, { env }) === value ? raw : value;
  }
  if (Array.isArray(value)) {
    const old = Array.isArray(raw) ? raw : [];
    return value.map((item, index) => restoreTemplates(item, counterpart(item, index, old, env), env));
  }
  if (!isMapping(value)) return value;
  const result: Tree = {};
  for (const [key, inner] of Object.entries(value)) {
    define(result, key, restoreTemplates(inner, isMapping(raw) ? raw[key] : undefined, env));
  }
  return result;
}

/** In a list an item may have moved: a template with the same outcome anywhere in it is the item's own. */
function counterpart(item: unknown, index: number, old: readonly unknown[], env: Expansion["env"]): unknown {
  if (typeof item !== "string") return old[index];
  return old.find((raw) => typeof raw === "string" && expandText(raw, { env }) === item);
}
