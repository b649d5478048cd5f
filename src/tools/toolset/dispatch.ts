// The inner part of every tool call: arguments put right and checked, the handler run, its result held to the contract.
import { isRecord, parseJson } from "../../kit/json.ts";
import { isZodSchema, restoreKeys } from "../../llm/json-schema.ts";
import type { JsonSchema } from "../../llm/wire.ts";
import type { ToolContext } from "./context.ts";
import type { MultimodalOutput, ToolEntry, ToolOutput } from "./registry.ts";

type Arguments = Readonly<Record<string, unknown>>;

/** Runs one tool with prepared arguments. Never rejects: whatever goes wrong becomes a result that the model can read. */
export async function runTool(entry: ToolEntry, args: Arguments, ctx: ToolContext): Promise<ToolOutput> {
  const { name } = entry;
  try {
    const checked = checkArguments(entry, args);
    if ("problem" in checked) {
      const message = `Invalid arguments for ${name}: ${checked.problem}`;
      return entry.spec.onInvalid?.(message) ?? toolError(message);
    }
    const output: unknown = await entry.spec.handler(checked.args, ctx);
    return isToolOutput(output) ? output : contractError(name, output);
  } catch (error) {
    ctx.log.warn(`tool ${name} failed`, error);
    return toolError(sanitizeError(`Tool execution failed: ${describe(error)}`));
  }
}

/** The arguments as hooks, guards and the handler see them: own key names, declared types where the text left no doubt. Idempotent. */
export function prepareArguments(entry: ToolEntry, args: Arguments): Record<string, unknown> {
  return coerceArguments(restoreKeys(args, entry.parameters), entry.parameters);
}

export function toolError(message: string, extra: Readonly<Record<string, unknown>> = {}): string {
  return JSON.stringify({ error: message, ...extra });
}

export function toolResult(result: Readonly<Record<string, unknown>>): string {
  return JSON.stringify(result);
}

/** An error text that carries no markup a model could take for a role, a call or a fence. */
export function sanitizeError(message: string): string {
  const plain = message
    .replace(/<!\[CDATA\[[\s\S]*?(\]\]>|$)/g, "")
    .replace(/<\/?(tool_call|function_call|result|response|output|input|system|assistant|user)\b[^<>]*>/gi, "")
    .replace(/```[A-Za-z0-9_+-]*/g, "");
  const capped = plain.length > 2000 ? `${plain.slice(0, 1997)}...` : plain;
  return `[TOOL_ERROR] ${capped}`;
}

function checkArguments(entry: ToolEntry, args: Arguments): { args: Arguments } | { problem: string } {
  const schema = entry.spec.parameters;
  const present = withoutNulls(args, entry.parameters);
  // What a blank text means to a tool from elsewhere, only that tool knows.
  const given = isZodSchema(schema) ? withoutBlanks(present, entry.parameters, entry.spec.verbatim ?? []) : present;
  if (!isZodSchema(schema)) {
    const missing = requiredOf(schema).filter((key) => !(key in given));
    return missing.length > 0 ? { problem: missing.map((key) => `${key}: required`).join("; ") } : { args: given };
  }
  const parsed = schema.safeParse(given);
  if (parsed.success) return { args: parsed.data };
  const problems = parsed.error.issues.map((issue) => `${issue.path.join(".") || "arguments"}: ${issue.message}`);
  return { problem: problems.join("; ") };
}

/** `null` for an optional parameter that knows no null is the model's way of leaving it out. */
function withoutNulls(args: Arguments, schema: JsonSchema): Arguments {
  const properties = (schema.properties ?? {}) as Readonly<Record<string, JsonSchema>>; // our own or a sanitised schema
  const required = requiredOf(schema);
  return Object.fromEntries(
    Object.entries(args).filter(
      ([key, value]) => value !== null || required.includes(key) || allowsNull(properties[key]),
    ),
  );
}

/** So is a blank text, on every level. */
function withoutBlanks(args: Arguments, schema: JsonSchema, verbatim: readonly string[]): Arguments {
  const properties = isRecord(schema.properties) ? schema.properties : {};
  const required = requiredOf(schema);
  const within = (value: unknown, declared: unknown): unknown => {
    if (!isRecord(declared)) return value;
    if (Array.isArray(value)) return value.map((item) => within(item, declared.items));
    return isRecord(value) ? withoutBlanks(value, declared, verbatim) : value;
  };
  return Object.fromEntries(
    Object.entries(args).flatMap(([key, value]) => {
      const declared = Object.hasOwn(properties, key) ? properties[key] : undefined;
      if (isBlank(value) && declared !== undefined && !required.includes(key) && !verbatim.includes(key)) return [];
      return [[key, within(value, declared)]];
    }),
  );
}

const isBlank = (value: unknown) => typeof value === "string" && value.trim() === "";

function allowsNull(schema: JsonSchema | undefined): boolean {
  return schema === undefined || schema.nullable === true || /"null"/.test(JSON.stringify(schema));
}

function requiredOf(schema: JsonSchema): readonly string[] {
  return Array.isArray(schema.required) ? schema.required : [];
}

function isToolOutput(output: unknown): output is ToolOutput {
  return typeof output === "string" || isMultimodal(output);
}

function isMultimodal(output: unknown): output is MultimodalOutput {
  return typeof output === "object" && output !== null && "_multimodal" in output && output._multimodal === true;
}

function contractError(name: string, output: unknown): string {
  const type = output === null ? "null" : Array.isArray(output) ? "array" : typeof output;
  return toolError(`Tool ${name} returned ${type} instead of text`, {
    error_type: "tool_result_contract",
    tool: name,
    result_type: type,
  });
}

function describe(error: unknown): string {
  return error instanceof Error ? `${error.name}: ${error.message}` : `Error: ${String(error)}`;
}

// Models write numbers, booleans and lists as text now and then. What the schema makes unambiguous is put right before a call.

const NUMBER = /^[+-]?(\d+(?:\.\d*)?|\.\d+)(e[+-]?\d+)?$/i;
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
  if (isBlank(value)) return UNCHANGED;
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
