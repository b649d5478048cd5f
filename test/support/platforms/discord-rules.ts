// Judges requests by the tables of Discord's HTTP API 10 (test/fixtures/platforms/discord-http.json, an OpenAPI document of the vendor's).
// It is stricter than the vendor in one thing: a field that the tables do not know is an error.
import { readFileSync } from "node:fs";

interface Schema {
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly const?: unknown;
  readonly enum?: readonly unknown[];
  readonly oneOf?: readonly Schema[];
  readonly anyOf?: readonly Schema[];
  readonly allOf?: readonly Schema[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: Schema | boolean;
  readonly items?: Schema;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly uniqueItems?: boolean;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly pattern?: string;
  readonly minimum?: number;
  readonly maximum?: number;
}

interface Parameter {
  readonly name: string;
  readonly in: "path" | "query";
  readonly schema: Schema;
  readonly required?: boolean;
}

interface Operation {
  readonly operationId: string;
  readonly parameters?: readonly Parameter[];
  readonly requestBody?: { readonly content: Readonly<Record<string, { readonly schema: Schema }>> };
  readonly responses: Readonly<
    Record<string, { readonly content?: Readonly<Record<string, { readonly schema: Schema }>> }>
  >;
  readonly security?: readonly object[];
}

type PathItem = Readonly<Record<string, Operation>> & { readonly parameters?: readonly Parameter[] };

interface Tables {
  readonly paths: Readonly<Record<string, PathItem>>;
  readonly components: { readonly schemas: Readonly<Record<string, Schema>> };
}

const FILE = new URL("../../fixtures/platforms/discord-http.json", import.meta.url);
let loaded: Tables | null = null;

function tables(): Tables {
  loaded ??= JSON.parse(readFileSync(FILE, "utf8")) as Tables; // the vendor's document
  return loaded;
}

/** A route of the tables, with what stands in its places. */
export interface Route {
  /** `POST /channels/{channel_id}/messages` */
  readonly name: string;
  readonly operation: Operation;
  readonly path: Readonly<Record<string, string>>;
  readonly parameters: readonly Parameter[];
  /** Only the bot itself may call it. */
  readonly needsToken: boolean;
}

/** Null: Discord has no such route. Routes without places win: `/users/@me` before `/users/{id}`. */
export function routeOf(method: string, path: string): Route | null {
  const wanted = path.split("/").map(decodeURIComponent);
  const fits = Object.entries(tables().paths).flatMap(([template, item]) => {
    const parts = template.split("/");
    const operation = item[method.toLowerCase()];
    if (parts.length !== wanted.length || operation === undefined) return [];
    const values: Record<string, string> = {};
    for (const [at, part] of parts.entries()) {
      const given = wanted[at] ?? "";
      if (part.startsWith("{")) values[part.slice(1, -1)] = given;
      else if (part !== given) return [];
    }
    const parameters = [...(item.parameters ?? []), ...(operation.parameters ?? [])];
    const needsToken = operation.security?.every((one) => "BotToken" in one || "OAuth2" in one) === true;
    return [{ name: `${method} ${template}`, operation, path: values, parameters, needsToken }];
  });
  return fits.sort((a, b) => Object.keys(a.path).length - Object.keys(b.path).length)[0] ?? null;
}

/** What is wrong with a request, in lines that name the place. */
export function requestProblems(
  { operation, path, parameters }: Route,
  { query, body, contentType }: { query: URLSearchParams; body: unknown; contentType: string },
): readonly string[] {
  const known = new Set(parameters.filter((one) => one.in === "query").map(({ name }) => name));
  const problems = [...query.keys()].filter((name) => !known.has(name)).map((name) => `query ${name}: not known`);
  for (const parameter of parameters) {
    const given = parameter.in === "path" ? path[parameter.name] : query.get(parameter.name);
    if (given === null || given === undefined) {
      if (parameter.required) problems.push(`${parameter.in} ${parameter.name}: missing`);
    } else problems.push(...check(parameter.schema, fromText(parameter.schema, given), parameter.name));
  }
  const schema = operation.requestBody?.content[contentType.split(";")[0] ?? ""]?.schema;
  if (operation.requestBody === undefined || schema === undefined) {
    if (body !== undefined) problems.push(`body: none of the type ${contentType} is taken`);
    return problems;
  }
  return [...problems, ...check(schema, body, "body")];
}

/** What is wrong with an answer of ours. */
export function responseProblems({ operation }: Route, status: number, body: unknown): readonly string[] {
  const response = operation.responses[String(status)];
  if (response === undefined) return [`status ${status}: not in the tables`];
  const schema = response.content?.["application/json"]?.schema;
  return schema === undefined ? [] : check(schema, body, "response", { allowUnknown: true });
}

function fromText(schema: Schema, text: string): unknown {
  const { type } = resolve(schema);
  if (type === "integer" || type === "number") return Number(text);
  if (type === "boolean") return text === "true" ? true : text === "false" ? false : text;
  return text;
}

function resolve(schema: Schema): Schema {
  if (schema.$ref === undefined) return schema;
  return tables().components.schemas[schema.$ref.split("/").at(-1) ?? ""] ?? {};
}

interface CheckOptions {
  readonly allowUnknown?: boolean;
}

function check(given: Schema, value: unknown, at: string, options: CheckOptions = {}): readonly string[] {
  const schema = resolve(given);
  const { type, allOf = [] } = schema;
  if (schema.const !== undefined && value !== schema.const) return [`${at}: must be ${JSON.stringify(schema.const)}`];
  if (schema.enum && !schema.enum.includes(value)) return [`${at}: must be one of ${JSON.stringify(schema.enum)}`];
  const types = type === undefined ? null : Array.isArray(type) ? type : [type];
  if (types && !types.some((one) => isOfType(value, one))) return [`${at}: must be of the type ${types.join(" or ")}`];
  const union = schema.oneOf ?? schema.anyOf;
  if (union) {
    const results = union.map((one) => check(one, value, at, options));
    const best = results.toSorted((a, b) => a.length - b.length)[0] ?? [];
    if (!results.some((one) => one.length === 0)) return best;
  }
  const inner = { ...options, allowUnknown: options.allowUnknown === true || allOf.length > 1 };
  const problems = allOf.flatMap((one) => check(one, value, at, inner));
  if (typeof value === "string") problems.push(...stringProblems(schema, value, at));
  if (typeof value === "number") problems.push(...numberProblems(schema, value, at));
  if (Array.isArray(value)) problems.push(...arrayProblems(schema, value, at, options));
  else if (typeof value === "object" && value !== null && schema.properties)
    problems.push(...objectProblems(schema, value as Readonly<Record<string, unknown>>, at, options)); // an object
  return problems;
}

function isOfType(value: unknown, type: string): boolean {
  if (type === "null") return value === null;
  if (type === "array") return Array.isArray(value);
  if (type === "integer") return Number.isInteger(value);
  if (type === "object") return typeof value === "object" && value !== null && !Array.isArray(value);
  return typeof value === type;
}

function stringProblems({ minLength, maxLength, pattern }: Schema, value: string, at: string): readonly string[] {
  const length = [...value].length;
  return [
    ...(minLength !== undefined && length < minLength ? [`${at}: must be ${minLength} or more in length`] : []),
    ...(maxLength !== undefined && length > maxLength ? [`${at}: must be ${maxLength} or fewer in length`] : []),
    ...(pattern !== undefined && !new RegExp(pattern, "u").test(value) ? [`${at}: must match ${pattern}`] : []),
  ];
}

function numberProblems({ minimum, maximum }: Schema, value: number, at: string): readonly string[] {
  return [
    ...(minimum !== undefined && value < minimum ? [`${at}: must be at least ${minimum}`] : []),
    ...(maximum !== undefined && value > maximum ? [`${at}: must be at most ${maximum}`] : []),
  ];
}

function arrayProblems(
  { items, minItems = 0, maxItems = Infinity, uniqueItems }: Schema,
  value: readonly unknown[],
  at: string,
  options: CheckOptions,
): readonly string[] {
  const isTwice = uniqueItems && new Set(value.map((one) => JSON.stringify(one))).size < value.length;
  return [
    ...(value.length < minItems || value.length > maxItems ? [`${at}: ${value.length} are too few or too many`] : []),
    ...(isTwice ? [`${at}: holds something twice`] : []),
    ...(items ? value.flatMap((one, index) => check(items, one, `${at}[${index}]`, options)) : []),
  ];
}

function objectProblems(
  { properties = {}, required = [], additionalProperties }: Schema,
  value: Readonly<Record<string, unknown>>,
  at: string,
  options: CheckOptions,
): readonly string[] {
  const missing = required.filter((name) => value[name] === undefined).map((name) => `${at}.${name}: missing`);
  const inside = Object.entries(value).flatMap(([name, field]) => {
    const schema = properties[name];
    if (schema !== undefined) return field === undefined ? [] : check(schema, field, `${at}.${name}`, options);
    return options.allowUnknown || additionalProperties ? [] : [`${at}.${name}: not known`];
  });
  return [...missing, ...inside];
}
