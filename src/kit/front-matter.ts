// A Markdown file with YAML between two lines `---` at the top level. Everything in it is text: `version: 1.10` stays "1.10", `name: no` "no".
import { parseDocument } from "yaml";
import {
  type FrontMatter,
  type FrontMatterValue,
  type Parsed,
  parsePlainFrontMatter,
  splitFrontMatter,
  unquote,
} from "./front-matter-plain.ts";

/** Never throws. */
export function parseFrontMatter(text: string): Parsed {
  const plain = parsePlainFrontMatter(text);
  if (plain) return plain;
  const split = splitFrontMatter(text);
  return split.type === "none" ? split.parsed : { ...readYaml(split.yaml), body: split.body, present: true };
}

function readYaml(yaml: string): { fields: FrontMatter; problem: string | null } {
  try {
    const document = parseDocument(yaml, { schema: "failsafe", uniqueKeys: false, prettyErrors: true });
    const error = document.errors[0];
    if (error) return { fields: readLines(yaml), problem: `YAML: ${firstLine(error.message)}` };
    const value = asText(document.toJS());
    if (value === "") return { fields: {}, problem: null };
    if (typeof value === "object" && !Array.isArray(value)) return { fields: value as FrontMatter, problem: null }; // not a list: a mapping
    return { fields: readLines(yaml), problem: "the front matter is not a list of `key: value` lines" };
  } catch (error) {
    return { fields: readLines(yaml), problem: `YAML: ${firstLine(String(error))}` }; // e.g. too many aliases
  }
}

function asText(value: unknown): FrontMatterValue {
  if (typeof value === "string") return value;
  if (value === null || value === undefined) return "";
  if (Array.isArray(value)) return value.map(asText);
  if (typeof value !== "object") return String(value);
  const result: Record<string, FrontMatterValue> = {};
  for (const [key, inner] of Object.entries(value)) {
    Object.defineProperty(result, key, { value: asText(inner), enumerable: true, writable: true, configurable: true });
  }
  return result;
}

/** What can be saved of broken YAML: lines at column 0 with a key, a colon and a value. */
function readLines(yaml: string): FrontMatter {
  const fields: Record<string, string> = {};
  for (const line of yaml.split(/\r?\n/)) {
    const match = /^([A-Za-z_][\w.-]*)[ \t]*:(.*)$/.exec(line);
    if (match?.[1] && match[1] !== "__proto__") fields[match[1]] = unquote(match[2]?.trim() ?? "");
  }
  return fields;
}

function firstLine(text: string): string {
  return text.split("\n", 1)[0]?.replace(/:$/, "") ?? text;
}
