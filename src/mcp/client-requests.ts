// A server may ask our model something. It does so within limits, and the answer is paid for like every other call.
import type {
  CreateMessageRequest,
  CreateMessageResultWithTools,
  ElicitRequestFormParams,
  ElicitResult,
  SamplingMessage,
} from "@modelcontextprotocol/client";
import type { Clock } from "../kit/clock.ts";
import type { ContentPart, Message, ToolCall } from "../llm/messages.ts";
import type { McpCaller, SamplingAnswer, SamplingCall } from "./contract.ts";
import type { SamplingSettings } from "./settings.ts";

interface SamplerOptions {
  readonly server: string;
  readonly settings: SamplingSettings;
  readonly clock: Clock;
  sample?(call: SamplingCall): Promise<SamplingAnswer>;
}

const MINUTE_MS = 60_000;

export class Sampler {
  readonly #options: SamplerOptions;
  #asked: number[] = [];
  #toolRounds = 0;

  constructor(options: SamplerOptions) {
    this.#options = options;
  }

  get enabled(): boolean {
    return this.#options.settings.enabled && this.#options.sample !== undefined;
  }

  /** Rejects with a refusal that the server reads. */
  async answer(
    params: CreateMessageRequest["params"],
    run: { readonly sessionId: string | null; readonly signal: AbortSignal },
  ): Promise<CreateMessageResultWithTools> {
    const { server, settings, sample } = this.#options;
    if (!settings.enabled || !sample)
      throw new Error(`sampling is disabled for this server (mcp_servers.${server}.sampling.enabled)`);
    const model = this.#model(params);
    this.#count();
    const wantsTools = (params.tools ?? []).length > 0;
    if (wantsTools && this.#toolRounds >= settings.maxToolRounds) {
      this.#toolRounds = 0;
      throw new Error(`more than ${settings.maxToolRounds} rounds of tool use in a row (sampling.max_tool_rounds)`);
    }
    const answer = await sample({
      server,
      messages: messagesOf(params),
      maxTokens: Math.min(params.maxTokens, settings.maxTokensCap),
      temperature: params.temperature,
      tools: (params.tools ?? []).map(({ name, description, inputSchema }) => ({
        type: "function",
        function: { name, description: description ?? "", parameters: { ...inputSchema } },
      })),
      model,
      timeoutSeconds: settings.timeoutSeconds,
      ...run,
    });
    this.#toolRounds = answer.toolCalls.length > 0 ? this.#toolRounds + 1 : 0;
    return resultOf(answer, wantsTools);
  }

  /** The configured model, else the first hint that is allowed. A hint that is not on the list is refused, not replaced. */
  #model(params: CreateMessageRequest["params"]): string | null {
    const { model, allowedModels } = this.#options.settings;
    const hints = (params.modelPreferences?.hints ?? []).flatMap(({ name }) => (name ? [name] : []));
    const wanted = model ?? hints.find((name) => allowedModels.includes(name)) ?? null;
    if (allowedModels.length === 0) return model;
    if (wanted !== null && allowedModels.includes(wanted)) return wanted;
    const asked = wanted ?? hints[0];
    if (asked === undefined) return allowedModels[0] ?? null;
    throw new Error(`the model "${asked}" is not among sampling.allowed_models`);
  }

  #count(): void {
    const { settings, clock } = this.#options;
    const now = clock.now();
    this.#asked = this.#asked.filter((at) => now - at < MINUTE_MS);
    if (this.#asked.length >= settings.maxPerMinute) {
      throw new Error(`more than ${settings.maxPerMinute} sampling requests in a minute (sampling.max_rpm)`);
    }
    this.#asked.push(now);
  }
}

function messagesOf({ systemPrompt, messages }: CreateMessageRequest["params"]): Message[] {
  const system: Message[] = systemPrompt ? [{ role: "system", content: systemPrompt }] : [];
  return [...system, ...messages.flatMap(toMessages)];
}

function toMessages({ role, content }: SamplingMessage): Message[] {
  const blocks = Array.isArray(content) ? content : [content];
  const results: Message[] = blocks.flatMap((block) =>
    block.type === "tool_result"
      ? [{ role: "tool" as const, tool_call_id: block.toolUseId, content: toolText(block.content ?? []) }]
      : [],
  );
  const parts: ContentPart[] = blocks.flatMap((block): ContentPart[] => {
    if (block.type === "text") return [{ type: "text", text: block.text }];
    if (block.type === "image") {
      return [{ type: "image_url", image_url: { url: `data:${block.mimeType};base64,${block.data}` } }];
    }
    return block.type === "audio" ? [{ type: "text", text: "[audio that cannot be heard here]" }] : [];
  });
  const calls: ToolCall[] = blocks.flatMap((block) =>
    block.type === "tool_use"
      ? [{ id: block.id, type: "function", function: { name: block.name, arguments: JSON.stringify(block.input) } }]
      : [],
  );
  if (role === "user") return parts.length > 0 ? [...results, { role: "user", content: plain(parts) }] : results;
  const text = parts.flatMap((part) => (part.type === "text" ? [part.text] : [])).join("\n");
  return [
    { role: "assistant", content: text === "" ? null : text, ...(calls.length > 0 ? { tool_calls: calls } : {}) },
  ];
}

function plain(parts: readonly ContentPart[]): string | readonly ContentPart[] {
  const [only] = parts;
  return parts.length === 1 && only?.type === "text" ? only.text : parts;
}

function toolText(content: readonly { readonly type: string; readonly text?: unknown }[]): string {
  return content.map((block) => (typeof block.text === "string" ? block.text : `[${block.type}]`)).join("\n");
}

function resultOf(
  { text, toolCalls, finishReason, model }: SamplingAnswer,
  withTools: boolean,
): CreateMessageResultWithTools {
  const said = { type: "text" as const, text };
  if (withTools && toolCalls.length > 0) {
    const uses = toolCalls.map((call) => ({
      type: "tool_use" as const,
      id: call.id,
      name: call.function.name,
      input: inputOf(call.function.arguments),
    }));
    return { role: "assistant", model, stopReason: "toolUse", content: text === "" ? uses : [said, ...uses] };
  }
  return { role: "assistant", model, stopReason: finishReason === "length" ? "maxTokens" : "endTurn", content: said };
}

function inputOf(text: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null && !Array.isArray(value) ? { ...value } : {};
  } catch {
    return {}; // the model wrote no JSON; the server sees an empty input and says so
  }
}

// A server asks the user for something in the middle of a call: one question per field of its form.

type Field = ElicitRequestFormParams["requestedSchema"]["properties"][string];
type Value = string | number | boolean | string[];

/** Declines when no user can be asked; cancels when the user leaves a question open. */
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
