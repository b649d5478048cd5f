// A Markdown file with YAML between two lines `---` at its top. Everything in it is text: `version: 1.10` stays "1.10", `name: no` "no".
import { parseDocument, stringify } from "yaml";
import { unquote } from "./quotes.ts";

export type FrontMatterValue = string | readonly FrontMatterValue[] | FrontMatter;
export interface FrontMatter {
  readonly [key: string]: FrontMatterValue;
}

export interface Parsed {
  readonly fields: FrontMatter;
  /** Everything behind the closing line, byte for byte; the whole text when there is no front matter. */
  readonly body: string;
  readonly present: boolean;
  /** Why the YAML could not be read as it is. `fields` then holds what plain `key: value` lines gave. */
  readonly problem: string | null;
}

/** Never throws. A byte order mark, CRLF and blanks behind the dashes are no trouble. */
export function parseFrontMatter(text: string): Parsed {
  const plain = text.startsWith("\ufeff") ? text.slice(1) : text;
  const none = { fields: {}, body: plain, present: false };
  if (!isFence(lineAt(plain, 0))) return { ...none, problem: null };
  const start = nextLine(plain, 0);
  for (let at = start; at < plain.length; at = nextLine(plain, at)) {
    if (!isFence(lineAt(plain, at))) continue;
    return { ...readYaml(plain.slice(start, at)), body: plain.slice(nextLine(plain, at)), present: true };
  }
  return { ...none, problem: "the front matter has no closing line ---" };
}

export function renderFrontMatter(fields: FrontMatter, body: string): string {
  return `---\n${stringify(fields, { lineWidth: 0 })}---\n${body}`;
}

const isFence = (line: string) => /^---[ \t]*\r?$/.test(line);

function lineAt(text: string, at: number): string {
  const end = text.indexOf("\n", at);
  return text.slice(at, end === -1 ? undefined : end);
}

function nextLine(text: string, at: number): number {
  const end = text.indexOf("\n", at);
  return end === -1 ? text.length : end + 1;
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
    const match = /^([A-Za-z_][\w.-]*)[ \t]*:[ \t]*(.*?)[ \t]*$/.exec(line);
    if (match?.[1] && match[1] !== "__proto__") fields[match[1]] = unquote(match[2] ?? "");
  }
  return fields;
}

function firstLine(text: string): string {
  return text.split("\n", 1)[0]?.replace(/:$/, "") ?? text;
}
