// From a tool's parameters to the JSON Schema a provider accepts.
import type { z } from "zod";
import type { JsonSchema } from "./wire.ts";

type Node = Record<string, unknown>;

const COMBINATORS = ["allOf", "anyOf", "oneOf"] as const;
const REFUSED_AT_TOP = ["allOf", "anyOf", "oneOf", "enum", "not"] as const;
const KEPT_OF_OUTER = ["title", "description", "default", "examples"] as const;
const TYPES = new Set(["string", "number", "integer", "boolean", "array", "object", "null"]);
const ACCEPTED_KEY = /^[A-Za-z0-9_.-]{1,64}$/;

export function isZodSchema(schema: z.ZodObject | JsonSchema): schema is z.ZodObject {
  return "_zod" in schema;
}

/** The schema as data, without what zod adds and a model has no use for: every word is paid for in each request. */
export function jsonSchemaOf(schema: z.ZodObject): JsonSchema {
  const { $schema: _dialect, ...rest } = schema.toJSONSchema({
    io: "input",
    unrepresentable: "any",
    override: ({ zodSchema, jsonSchema }) => {
      if (zodSchema._zod.def.type === "catch") delete jsonSchema.default;
      if (jsonSchema.maximum === Number.MAX_SAFE_INTEGER) delete jsonSchema.maximum;
      if (jsonSchema.minimum === Number.MIN_SAFE_INTEGER) delete jsonSchema.minimum;
      if (jsonSchema.additionalProperties === false) delete jsonSchema.additionalProperties;
    },
  });
  return rest;
}

/** Makes any schema one that every provider takes. Idempotent. */
export function sanitizeParameters(schema: unknown): JsonSchema {
  if (!isNode(schema)) return { type: "object", properties: {} };
  const top = { ...schema };
  for (const key of REFUSED_AT_TOP) delete top[key];
  return sanitizeNode({ ...top, type: "object" });
}

/** What is left when a server's grammar compiler chokes on regular expressions and formats. */
export function stripGrammar(schema: JsonSchema): JsonSchema {
  return mapNodes(schema, ({ pattern: _pattern, format: _format, ...rest }) => rest);
}

/** Gives renamed property keys their own names back, at every depth. */
export function restoreKeys(args: Readonly<Record<string, unknown>>, schema: JsonSchema): Record<string, unknown> {
  return restoreNode(args, schema) as Record<string, unknown>; // an object in gives an object out
}

function sanitizeNode(schema: unknown): Node {
  if (typeof schema === "string") return TYPES.has(schema) ? sanitizeNode({ type: schema }) : {};
  if (!isNode(schema)) return {};
  if (typeof schema.$ref === "string") return { $ref: schema.$ref };
  const collapsed = collapseNullable(splitTypeList(schema));
  const node: Node = { ...collapsed };
  if (node.type === "object" && !isNode(node.properties)) node.properties = {};
  if (isNode(node.properties)) renameAndSanitize(node, node.properties);
  for (const key of ["$defs", "definitions"]) {
    const definitions = node[key];
    if (isNode(definitions)) node[key] = mapValues(definitions, sanitizeNode);
  }
  if (Array.isArray(node.items)) node.items = node.items.map(sanitizeNode);
  else if (node.items !== undefined) node.items = sanitizeNode(node.items);
  if (isNode(node.additionalProperties)) node.additionalProperties = sanitizeNode(node.additionalProperties);
  for (const key of COMBINATORS) {
    const branches = node[key];
    if (Array.isArray(branches)) node[key] = branches.map(sanitizeNode);
  }
  return node;
}

function renameAndSanitize(node: Node, properties: Node): void {
  const names = acceptedKeys(Object.keys(properties));
  node.properties = Object.fromEntries(
    Object.entries(properties).map(([key, value]) => [names.get(key) ?? key, sanitizeNode(value)]),
  );
  if (!Array.isArray(node.required)) return;
  const required = node.required.filter((key) => names.has(key)).map((key) => names.get(key));
  if (required.length > 0) node.required = required;
  else delete node.required;
}

function splitTypeList(schema: Node): Node {
  if (!Array.isArray(schema.type)) return schema;
  const { type: _list, ...rest } = schema;
  const types = schema.type.filter((type) => type !== "null");
  const nullable = types.length < schema.type.length ? { nullable: true } : {};
  if (types.length === 0) return { ...rest, ...nullable };
  if (types.length === 1) return { ...rest, type: types[0], ...nullable };
  return { ...rest, anyOf: types.map((type) => ({ type })), ...nullable };
}

function collapseNullable(schema: Node): Node {
  for (const key of ["anyOf", "oneOf"]) {
    const branches = schema[key];
    if (!Array.isArray(branches)) continue;
    const real = branches.filter((branch) => !(isNode(branch) && branch.type === "null"));
    if (real.length !== 1 || real.length === branches.length) continue;
    const inner = isNode(real[0]) ? real[0] : { type: real[0] };
    const outer = Object.fromEntries(
      KEPT_OF_OUTER.filter((name) => name in schema).map((name) => [name, schema[name]]),
    );
    return splitTypeList({ ...inner, ...outer, nullable: true });
  }
  return schema;
}

/** Old name → name every provider accepts; distinct names stay distinct. */
function acceptedKeys(keys: readonly string[]): Map<string, string> {
  const taken = new Set(keys.filter((key) => ACCEPTED_KEY.test(key)));
  const names = new Map<string, string>();
  for (const key of keys) {
    if (taken.has(key)) {
      names.set(key, key);
      continue;
    }
    const base = key.replace(/[^A-Za-z0-9_.-]/g, "_").slice(0, 60) || "_";
    let name = base;
    for (let n = 2; taken.has(name); n++) name = `${base}_${n}`;
    taken.add(name);
    names.set(key, name);
  }
  return names;
}

function restoreNode(value: unknown, schema: unknown): unknown {
  if (!isNode(schema)) return value;
  if (Array.isArray(value)) return value.map((item) => restoreNode(item, schema.items));
  if (!isNode(value) || !isNode(schema.properties)) return value;
  const properties = schema.properties;
  const original = new Map([...acceptedKeys(Object.keys(properties))].map(([key, name]) => [name, key]));
  return Object.fromEntries(
    Object.entries(value).map(([name, inner]) => {
      const key = original.get(name) ?? name;
      return [key, restoreNode(inner, properties[key])];
    }),
  );
}

function mapNodes(value: unknown, change: (node: Node) => Node): Node {
  const walk = (inner: unknown): unknown => {
    if (Array.isArray(inner)) return inner.map(walk);
    return isNode(inner) ? mapSchemaNode(inner, change) : inner;
  };
  const mapSchemaNode = (node: Node, apply: (node: Node) => Node): Node =>
    Object.fromEntries(
      Object.entries(apply(node)).map(([key, inner]) => [
        key,
        // Property names are not keywords: a parameter may be called "pattern" or "format".
        (key === "properties" || key === "$defs" || key === "definitions") && isNode(inner)
          ? mapValues(inner, walk)
          : walk(inner),
      ]),
    );
  return isNode(value) ? mapSchemaNode(value, change) : {};
}

function mapValues(node: Node, change: (value: unknown) => unknown): Node {
  return Object.fromEntries(Object.entries(node).map(([key, value]) => [key, change(value)]));
}

function isNode(value: unknown): value is Node {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
