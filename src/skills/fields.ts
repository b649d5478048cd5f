// Front matter fields come in several spellings; these read all of them.
import type { FrontMatter, FrontMatterValue } from "../kit/front-matter-plain.ts";

type Value = FrontMatterValue | undefined;

/** Trimmed; empty for what is not a text and for YAML's words for nothing. */
export function textField(value: Value): string {
  if (typeof value !== "string") return "";
  const text = value.trim();
  return text === "~" || text === "null" ? "" : text;
}

/** A list, or a text with commas; each item once. */
export function listField(value: Value): readonly string[] {
  const items = Array.isArray(value) ? value.map(textField) : textField(value).split(",");
  return [...new Set(items.map((item) => item.trim()).filter((item) => item !== ""))];
}

export function mapField(value: Value): FrontMatter {
  return typeof value === "object" && !Array.isArray(value) ? (value as FrontMatter) : {}; // not a list: a mapping
}

/** A list as it stands, for items that are more than text. A single item, text or mapping, counts as a list of one. */
export function itemsField(value: Value): readonly FrontMatterValue[] {
  if (Array.isArray(value)) return value;
  if (value === undefined) return [];
  return typeof value === "string" && textField(value) === "" ? [] : [value];
}

export function flagField(value: Value): boolean {
  return /^(true|yes|on|1)$/i.test(textField(value));
}

/** `metadata.hermes`, where this product's own fields live. */
export function hermesFields(fields: FrontMatter): FrontMatter {
  return mapField(mapField(fields.metadata).hermes);
}
