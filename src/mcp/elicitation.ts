// A server asks the user for something in the middle of a call: one question per field of its form.
import type { ElicitRequestFormParams, ElicitResult } from "@modelcontextprotocol/client";
import type { McpCaller } from "./contract.ts";

type Field = ElicitRequestFormParams["requestedSchema"]["properties"][string];
type Value = string | number | boolean | string[];

/** Declines when nobody can be asked; cancels when the user leaves a question open. */
export async function elicit(
  server: string,
  { message, requestedSchema }: ElicitRequestFormParams,
  caller: McpCaller | null,
  signal: AbortSignal,
): Promise<ElicitResult> {
  if (!caller?.interactive) return { action: "decline" };
  const required = new Set(requestedSchema.required ?? []);
  const content: Record<string, Value> = {};
  const fields = Object.entries(requestedSchema.properties);
  if (fields.length === 0) {
    const { text } = await caller.ask(question(server, message, ["yes", "no"]), signal);
    return text === null
      ? { action: "cancel" }
      : text === "yes"
        ? { action: "accept", content }
        : { action: "decline" };
  }
  for (const [index, [name, field]] of fields.entries()) {
    const what = [field.title ?? name, field.description].filter((part) => part !== undefined).join(": ");
    const optional = required.has(name) ? "" : " (optional)";
    const asked = index === 0 ? `${message}\n${what}${optional}` : `${what}${optional}`;
    const { text } = await caller.ask(question(server, asked, choicesOf(field)), signal);
    if (text === null) {
      if (required.has(name)) return { action: "cancel" };
      continue;
    }
    const value = readValue(text, field);
    if (value !== undefined) content[name] = value;
    else if (required.has(name)) return { action: "cancel" };
  }
  return { action: "accept", content };
}

function question(server: string, text: string, choices: readonly string[] | null) {
  return { kind: "clarify" as const, question: `MCP server "${server}" asks: ${text}`, choices, multiSelect: false };
}

function choicesOf(field: Field): readonly string[] | null {
  if (field.type === "boolean") return ["yes", "no"];
  if ("enum" in field && Array.isArray(field.enum)) return field.enum;
  if ("oneOf" in field && Array.isArray(field.oneOf)) return field.oneOf.map((one) => one.const);
  return null;
}

function readValue(text: string, field: Field): Value | undefined {
  const plain = text.trim();
  if (field.type === "boolean") return /^(?:y|yes|true|on|1)$/i.test(plain);
  if (field.type === "number" || field.type === "integer") {
    const number = Number(plain);
    const fits = plain !== "" && Number.isFinite(number) && (field.type === "number" || Number.isInteger(number));
    return fits ? number : undefined;
  }
  if (field.type === "array")
    return plain
      .split(",")
      .map((item) => item.trim())
      .filter((item) => item !== "");
  return text;
}
