// Models write numbers, booleans and lists as text now and then. What the schema makes unambiguous is put right before a call.
import type { JsonSchema } from "../llm/wire.ts";

const NUMBER = /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i;
const UNCHANGED = Symbol("unchanged");

/** Converts declared properties only; what does not convert keeps its value. */
export function coerceArguments(args: Readonly<Record<string, unknown>>, schema: JsonSchema): Record<string, unknown> {
  return coerceProperties(args, schema);
}

function coerceProperties(value: Readonly<Record<string, unknown>>, schema: JsonSchema): Record<string, unknown> {
  const properties = isRecord(schema.properties) ? schema.properties : {};
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]) => {
      const declared = Object.hasOwn(properties, key) ? properties[key] : undefined;
      return [key, isRecord(declared) ? coerce(inner, declared) : inner];
    }),
  );
}

function coerce(value: unknown, schema: JsonSchema): unknown {
  if (value === null || value === undefined) return value;
  const branches = branchesOf(schema);
  if (value === "null" && isNullable(schema)) return null;
  const fits = branches.length > 1 && branches.some((branch) => hasType(value, branch.type));
  for (const branch of branches) {
    const converted = convert(value, branch, { wrap: !fits });
    if (converted !== UNCHANGED) return converted;
  }
  return value;
}

function convert(value: unknown, schema: JsonSchema, options: { wrap: boolean }): unknown {
  switch (schema.type) {
    case "integer": {
      const number = toNumber(value);
      return number !== null && Number.isSafeInteger(number) ? number : UNCHANGED;
    }
    case "number":
      return toNumber(value) ?? UNCHANGED;
    case "boolean":
      return toBoolean(value);
    case "string":
      return typeof value === "string" ? value : UNCHANGED;
    case "array":
      return toArray(value, schema, options.wrap);
    case "object": {
      const object = typeof value === "string" ? parseJson(value) : value;
      return isRecord(object) ? coerceProperties(object, schema) : UNCHANGED;
    }
    default:
      return UNCHANGED;
  }
}

function toNumber(value: unknown): number | null {
  if (typeof value === "number") return value;
  if (typeof value !== "string" || !NUMBER.test(value.trim())) return null;
  const number = Number(value);
  return Number.isFinite(number) ? number : null;
}

function toBoolean(value: unknown): unknown {
  if (typeof value === "boolean") return value;
  if (typeof value !== "string") return UNCHANGED;
  const word = value.trim().toLowerCase();
  return word === "true" ? true : word === "false" ? false : UNCHANGED;
}

function toArray(value: unknown, schema: JsonSchema, wrap: boolean): unknown {
  const parsed = typeof value === "string" ? parseJson(value) : value;
  const array = Array.isArray(parsed) ? parsed : wrap ? [value] : null;
  if (!array) return UNCHANGED;
  const items = schema.items;
  return isRecord(items) ? array.map((item) => coerce(item, items)) : array;
}

/** The alternatives of a node, each with a single type, in the order they are written. */
function branchesOf(schema: JsonSchema): JsonSchema[] {
  if (Array.isArray(schema.type)) return schema.type.map((type) => ({ ...schema, type }));
  if (typeof schema.type === "string") return [schema];
  const alternatives = schema.anyOf ?? schema.oneOf;
  return Array.isArray(alternatives) ? alternatives.filter(isRecord).flatMap(branchesOf) : [];
}

function isNullable(schema: JsonSchema): boolean {
  return schema.nullable === true || branchesOf(schema).some((branch) => branch.type === "null");
}

function hasType(value: unknown, type: unknown): boolean {
  if (type === "array") return Array.isArray(value);
  if (type === "object") return isRecord(value);
  if (type === "integer") return Number.isInteger(value);
  return typeof value === type;
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
