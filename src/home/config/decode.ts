// Turns a tree from a file into the values the schema promises.
import { eachField, type Field, type FieldKind, isSection, type Section } from "./field.ts";

/**
 * Fills in defaults, converts what means the same, reports the rest. Never throws. `unreadable` = the section above could not be
 * read, so whoever wrote it may have meant to shut a gate in here.
 */
export function decode(
  section: Section,
  raw: unknown,
  path: string,
  problems: string[],
  unreadable = false,
): Record<string, unknown> {
  const given = isMapping(raw) ? raw : {};
  const lost = unreadable || (raw !== undefined && raw !== null && !isMapping(raw));
  if (lost && !unreadable) problems.push(`${path}: expected a mapping, found ${show(raw)}; ${insteadOf(section)}`);
  const result: Record<string, unknown> = {};
  for (const key in section.fields) {
    const entry = section.fields[key];
    if (entry === undefined) continue;
    const value = isSection(entry)
      ? decode(entry, given[key], path ? `${path}.${key}` : key, problems, lost)
      : lost && entry.unclear !== undefined
        ? entry.unclear
        : decodeField(entry, given[key], path, key, problems);
    if (value !== undefined) result[key] = value;
  }
  for (const key in given) if (!Object.hasOwn(section.fields, key)) result[key] = given[key];
  return result;
}

function insteadOf(section: Section): string {
  const shut = [...eachField(section.fields)].some(({ field }) => field.unclear !== undefined);
  return shut ? "using the defaults, with every limit in it at its strictest" : "using the defaults";
}

function decodeField(field: Field, raw: unknown, path: string, key: string, problems: string[]): unknown {
  if (raw === null && field.aliases?.null !== undefined) return field.aliases.null;
  if (raw === undefined || (raw === null && !field.kinds.includes("null"))) return copy(field.fallback);
  for (const kind of field.kinds) {
    const value = convert(kind, field, raw);
    if (value !== undefined) return value;
  }
  const instead = field.unclear ?? field.fallback;
  const used = instead === undefined ? "it is ignored" : `using ${show(instead)}`;
  const found = field.secret ? "something else" : show(raw);
  problems.push(`${path ? `${path}.` : ""}${key}: expected ${expectation(field)}, found ${found}; ${used}`);
  return copy(instead);
}

/** The value as that kind, or undefined when it is not one. */
function convert(kind: FieldKind, field: Field, raw: unknown): unknown {
  switch (kind) {
    case "text":
      return typeof raw === "string" ? raw : typeof raw === "number" ? String(raw) : undefined;
    case "whole":
      return inRange(field, asNumber(raw), Number.isSafeInteger);
    case "number":
      return inRange(field, asNumber(raw), Number.isFinite);
    case "flag":
      return asFlag(raw) ?? asFlag(typeof raw === "string" ? field.aliases?.[raw.trim().toLowerCase()] : undefined);
    case "choice":
      return asMember(field, raw);
    case "list": {
      const items: unknown = field.single && typeof raw === "string" ? (raw.trim() === "" ? [] : [raw]) : raw;
      return Array.isArray(items) && items.every((item) => typeof item === "string" || typeof item === "number")
        ? items.map(String)
        : undefined;
    }
    case "items":
      return Array.isArray(raw) ? raw : undefined;
    case "record":
      return isMapping(raw) ? raw : undefined;
    case "null":
      return raw === null ? null : undefined;
  }
}

// Numbers and booleans come as text when they were written as ${VARIABLE} or quoted.
function asNumber(raw: unknown): number | undefined {
  if (typeof raw === "number") return raw;
  return typeof raw === "string" && /^[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?$/i.test(raw.trim()) ? Number(raw) : undefined;
}

function inRange(field: Field, value: number | undefined, test: (value: number) => boolean): number | undefined {
  if (value === undefined || !test(value)) return undefined;
  return value >= (field.min ?? -Infinity) && value <= (field.max ?? Infinity) ? value : undefined;
}

/** The words YAML 1.1 takes for booleans, in any case; also `1` and `0`, which environment variables use. */
export function asFlag(raw: unknown): boolean | undefined {
  if (typeof raw === "boolean") return raw;
  if (raw === 1 || raw === 0) return raw === 1;
  if (typeof raw !== "string") return undefined;
  const word = raw.trim().toLowerCase();
  if (word === "true" || word === "yes" || word === "on" || word === "1") return true;
  if (word === "false" || word === "no" || word === "off" || word === "0") return false;
  return undefined;
}

function asMember(field: Field, raw: unknown): string | undefined {
  const values = field.values ?? [];
  if (typeof raw === "string") {
    const word = raw.trim().toLowerCase();
    const member = values.find((value) => value.toLowerCase() === word) ?? field.aliases?.[word];
    if (member !== undefined) return member;
  }
  const truth = asFlag(raw);
  if (truth === undefined) return undefined;
  const member = truth ? (field.on ?? "on") : "off";
  return values.includes(member) ? member : undefined;
}

function expectation(field: Field): string {
  const words = field.kinds.map((kind) => {
    if (kind === "choice") return `one of ${field.values?.map((value) => value || "(empty)").join(", ")}`;
    if (kind !== "whole" && kind !== "number") return kindNames[kind];
    const range = [
      field.min === undefined ? "" : ` from ${field.min}`,
      field.max === undefined ? "" : ` to ${field.max}`,
    ].join("");
    return `${kindNames[kind]}${range}`;
  });
  return words.join(" or ");
}

const kindNames: Readonly<Record<Exclude<FieldKind, "choice">, string>> = {
  text: "a text",
  whole: "a whole number",
  number: "a number",
  flag: "true or false",
  list: "a list of texts",
  items: "a list",
  record: "a mapping",
  null: "null",
};

function show(value: unknown): string {
  if (Array.isArray(value)) return value.length === 0 ? "an empty list" : "a list";
  if (isMapping(value)) return "a mapping";
  const text = JSON.stringify(value) ?? String(value);
  return text.length > 60 ? `${text.slice(0, 57)}...` : text;
}

export function isMapping(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Defaults are at most one level deep. */
function copy(value: unknown): unknown {
  if (Array.isArray(value)) return [...value];
  return isMapping(value) ? { ...value } : value;
}
