import { parseDocument } from "yaml";

/**
 * The text without its front matter. What stands between two lines `---` at the top counts as such only if it is YAML of keys and
 * values: a document that merely opens with a horizontal rule keeps its beginning.
 */
export function withoutFrontMatter(text: string): string {
  if (!/^---[ \t]*\n/.test(text)) return text;
  const start = text.indexOf("\n") + 1;
  const closing = /^---[ \t]*$/m.exec(text.slice(start));
  if (!closing) return text;
  const body = text.slice(start + closing.index + closing[0].length).replace(/^\n+/, "");
  return body === "" || !isMapping(text.slice(start, start + closing.index)) ? text : body;
}

function isMapping(yaml: string): boolean {
  const first = yaml.split("\n").find((line) => line.trim() !== "");
  if (first === undefined || /^[A-Za-z_][\w .-]*:(?:\s|$)/.test(first)) return true;
  try {
    const value: unknown = parseDocument(yaml).toJS();
    return value === null || (typeof value === "object" && !Array.isArray(value));
  } catch {
    return false; // an alias without an anchor and the like
  }
}
