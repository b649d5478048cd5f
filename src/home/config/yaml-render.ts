// Values as YAML that every reader understands the same way: this program, PyYAML and YAML 1.2.
import { isMapping } from "./decode.ts";

export type QuoteStyle = "plain" | "single" | "double";

/** A value on one line, as it may stand in block or flow context. */
export function renderInline(value: unknown, style: QuoteStyle = "plain"): string {
  if (typeof value === "string") return renderText(value, style);
  if (typeof value === "number") return renderNumber(value);
  if (typeof value === "boolean" || value === null || value === undefined) return String(value ?? null);
  if (Array.isArray(value)) return `[${value.map((item) => renderInline(item)).join(", ")}]`;
  if (isMapping(value)) {
    const pairs = Object.entries(value).map(([key, inner]) => `${renderKey(key)}: ${renderInline(inner)}`);
    return `{${pairs.join(", ")}}`;
  }
  throw new TypeError(`A ${typeof value} cannot be stored in config.yaml`);
}

/** `key: value` as lines, mappings and lists in block form below their key. */
export function renderPair(key: string, value: unknown, indent: string): string[] {
  if (!isBlock(value)) return [`${indent}${renderKey(key)}: ${renderInline(value)}`];
  return [`${indent}${renderKey(key)}:`, ...renderBlock(value, `${indent}  `)];
}

/** The lines of a mapping or list that has something in it. */
export function renderBlock(value: object, indent: string): string[] {
  if (Array.isArray(value)) return value.flatMap((item) => renderItem(item, indent));
  return Object.entries(value).flatMap(([key, inner]) => renderPair(key, inner, indent));
}

/** `- value` as lines. */
export function renderItem(item: unknown, indent: string): string[] {
  if (!isBlock(item)) return [`${indent}- ${renderInline(item)}`];
  const [first = "", ...rest] = renderBlock(item, `${indent}  `);
  return [`${indent}- ${first.slice(indent.length + 2)}`, ...rest];
}

/** Has to be written over several lines. */
export function isBlock(value: unknown): value is object {
  return Array.isArray(value) ? value.length > 0 : isMapping(value) && Object.keys(value).length > 0;
}

export function renderKey(key: string): string {
  return renderText(key, "plain");
}

function renderText(text: string, style: QuoteStyle): string {
  if (style === "plain" && isPlain(text)) return text;
  if (style === "single" && /^[\x20-\x7e\xa0-\u2027\u2030-\ud7ff]*$/.test(text))
    return `'${text.replaceAll("'", "''")}'`;
  // JSON is YAML, except for characters that YAML does not count as printable or takes for line breaks.
  return JSON.stringify(text).replace(
    /[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]/g,
    (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

// Begins with a letter or a path, has no character that means something to YAML in block or flow context, and is none of the words
// that YAML 1.1 or 1.2 reads as a boolean or as null. Anything else is quoted: too often costs nothing, too rarely costs a setting.
const plainText = /^[A-Za-z_/][A-Za-z0-9_./@+=-]*(?: [A-Za-z0-9_./@+=(][A-Za-z0-9_./@+=()-]*)*$/;
const address = /^https?:\/\/[A-Za-z0-9._~/:@%+=-]*[A-Za-z0-9/]$/;
const typedWord = /^(?:y|n|yes|no|on|off|true|false|null|nan|inf|e\d+)$/i;

function isPlain(text: string): boolean {
  if (text.length > 400 || typedWord.test(text)) return false;
  return plainText.test(text) || address.test(text);
}

function renderNumber(value: number): string {
  if (Number.isNaN(value)) return ".nan";
  if (!Number.isFinite(value)) return value > 0 ? ".inf" : "-.inf";
  if (Object.is(value, -0)) return "-0.0";
  const text = String(value);
  // Readers take longer digit strings for ids and keep them as text.
  if (Number.isInteger(value) && !Number.isSafeInteger(value) && !text.includes("e")) return `${text}.0`;
  // PyYAML takes an exponent without a decimal point for text.
  return text.includes("e") && !text.includes(".") ? text.replace("e", ".0e") : text;
}
