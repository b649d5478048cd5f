import { asRecord, isRecord, type Json } from "../../../kit/moved-json.ts";
import type { OutgoingTool } from "../../cache-control.ts";
import type { JsonSchema } from "../../wire.ts";

/** Tools as the Messages API takes them; of two with one name the first stays. A marker, wherever it stood, is on the last one. */
export function toAnthropicTools(tools: readonly OutgoingTool[]): readonly Json[] {
  const names = new Set<string>();
  const taken: readonly Json[] = tools.flatMap(({ function: { name, description, parameters } }) => {
    if (names.has(name)) return [];
    names.add(name);
    return [{ name, description, input_schema: toInputSchema(parameters) }];
  });
  const marker = tools.find((tool) => tool.cache_control)?.cache_control;
  return marker
    ? taken.map((tool, at) => (at === taken.length - 1 ? { ...tool, cache_control: marker } : tool))
    : taken;
}

/** `auto` unless something else was asked for; any other word is the name of the tool that must be called. */
export function toAnthropicToolChoice(choice: string | undefined): Json {
  if (choice === undefined || choice === "auto") return { type: "auto" };
  return choice === "required" ? { type: "any" } : { type: "tool", name: choice };
}

function toInputSchema(parameters: JsonSchema): Json {
  const { oneOf: _, allOf: __, anyOf: ___, ...schema } = asRecord(collapseNullable(parameters));
  return { ...schema, type: "object", properties: asRecord(schema.properties) };
}

/** "X or null" becomes X, at every depth: the API knows optional fields, but not nullable ones. */
function collapseNullable(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(collapseNullable);
  if (!isRecord(schema)) return schema;
  const inner: Json = Object.fromEntries(Object.entries(schema).map(([key, value]) => [key, collapseNullable(value)]));
  for (const union of ["anyOf", "oneOf"] as const) {
    const branches = inner[union];
    if (!Array.isArray(branches)) continue;
    const real = branches.filter((branch) => !isRecord(branch) || branch.type !== "null");
    if (real.length !== 1 || real.length === branches.length) continue;
    const { [union]: _, ...rest } = inner;
    return { ...rest, ...asRecord(real[0]), ...(rest.description !== undefined && { description: rest.description }) };
  }
  if (!Array.isArray(inner.type) || !inner.type.includes("null")) return inner;
  const types = inner.type.filter((type) => type !== "null");
  return { ...inner, type: types.length === 1 ? types[0] : types };
}
