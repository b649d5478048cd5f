import { asRecord, isRecord, type Json } from "../../../kit/json.ts";
import type { OutgoingMessage, OutgoingTool } from "../../cache-control.ts";
import { isHost, joinUrl } from "../../providers/hosts.ts";
import type { JsonSchema, ModelRequest, RenderedRequest } from "../../wire.ts";
import type { Protocol } from "../drive.ts";
import { lowerCased, prepare } from "../outgoing.ts";
import { type AnthropicOptions, toAnthropicMessages } from "./messages.ts";
import { normalizeAnthropicModelName, outputLimit, thinkingStyle } from "./models.ts";
import { AnthropicAssembler } from "./stream.ts";

export const anthropicProtocol: Protocol = {
  render: renderAnthropicRequest,
  begin: ({ messages }) => new AnthropicAssembler(messages),
};

// anthropic_messages: what goes out.

export interface AnthropicRequest extends AnthropicOptions {
  readonly model: string;
  readonly messages: readonly OutgoingMessage[];
  readonly tools?: readonly OutgoingTool[];
  readonly maxTokens?: number;
  readonly reasoning?: ModelRequest["reasoning"];
  readonly toolChoice?: string;
  readonly temperature?: number;
  readonly contextLength?: number;
}

export function buildAnthropicRequest(request: AnthropicRequest): Json {
  const { tools = [], toolChoice, temperature } = request;
  const model = normalizeAnthropicModelName(request.model);
  const { system, messages } = toAnthropicMessages(request.messages, request);
  const callable = toolChoice !== "none" && tools.length > 0;
  // A forced call and thinking exclude each other.
  const forced = callable && toolChoice !== undefined && toolChoice !== "auto";
  const { maxTokens, ...thinking } = planThinking({
    ...request,
    model,
    ...(forced && { reasoning: { enabled: false } }),
  });
  const sampled = temperature !== undefined && thinkingStyle(model).sampling && !("thinking" in thinking);
  return {
    model,
    max_tokens: maxTokens,
    ...(system !== undefined && { system }),
    messages,
    ...(callable && { tools: toAnthropicTools(tools), tool_choice: toAnthropicToolChoice(toolChoice) }),
    ...(sampled && { temperature }),
    ...thinking,
  };
}

const BUDGETS: Readonly<Record<string, number>> = { xhigh: 32_000, high: 16_000, medium: 8_000, low: 4_000 };
const ROOM_FOR_THE_ANSWER = 4_096;
const SMALLEST_BUDGET = 1_024;

function planThinking({
  model,
  maxTokens,
  contextLength = Infinity,
  reasoning,
}: AnthropicRequest): Json & { maxTokens: number } {
  const asked =
    maxTokens !== undefined && Number.isFinite(maxTokens) && maxTokens >= 1
      ? Math.floor(maxTokens)
      : outputLimit(model);
  const fit = (tokens: number) => (tokens > contextLength ? contextLength - 1 : tokens);
  const style = thinkingStyle(model);
  const effort = reasoning?.effort ?? "medium";
  if (!reasoning?.enabled || effort === "none" || style.kind === "none") return { maxTokens: fit(asked) };
  if (style.kind === "adaptive") {
    const known = effort === "minimal" ? "low" : effort === "xhigh" ? style.topEffort : effort;
    return {
      maxTokens: fit(asked),
      thinking: { type: "adaptive", display: "summarized" },
      output_config: { effort: known },
    };
  }
  const wanted = BUDGETS[effort] ?? 8_000;
  const most = fit(Math.max(asked, wanted + ROOM_FOR_THE_ANSWER));
  const budget_tokens = Math.min(wanted, most - ROOM_FOR_THE_ANSWER);
  if (budget_tokens < SMALLEST_BUDGET) return { maxTokens: most };
  return { maxTokens: most, thinking: { type: "enabled", budget_tokens }, temperature: 1 };
}

export function renderAnthropicRequest(request: ModelRequest): RenderedRequest {
  const { target, replay = {} } = request;
  const stream = request.stream !== false;
  // Tools stand before everything else in the cached prefix: they stay, even where none may be called.
  const mute = request.toolChoice === "none" && request.tools.length > 0;
  const body = {
    ...buildAnthropicRequest({
      model: target.model,
      ...prepare(request),
      contextLength: target.contextLength,
      baseUrl: target.baseUrl,
      thinkingReplay: target.profile.thinkingReplay,
      keepThinking: replay.keepThinking ?? "all",
      keepImages: replay.keepImages ?? Infinity,
      asBlocks: target.profile.cacheLayout === "native",
      ...defined({ ...pick(request), maxTokens: request.maxTokens ?? target.profile.defaultMaxTokens }),
    }),
    ...(mute && { tool_choice: { type: "none" } }),
    stream,
    ...target.extraBody,
    ...request.overrides,
  };
  return { url: messagesUrl(target.baseUrl), headers: anthropicHeaders(request, stream), body };
}

function pick({ reasoning, toolChoice, temperature }: ModelRequest) {
  return { reasoning, toolChoice: toolChoice === "none" ? undefined : toolChoice, temperature };
}

function defined<T extends object>(fields: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  const entries = Object.entries(fields).filter(([, value]) => value !== undefined);
  return Object.fromEntries(entries) as { [K in keyof T]?: Exclude<T[K], undefined> }; // the filter above is the proof
}

function messagesUrl(baseUrl: string): string {
  const [path = ""] = baseUrl.split("?", 1);
  return joinUrl(baseUrl, /\/v1\/*$/.test(path) ? "/messages" : "/v1/messages");
}

/** True for tokens of a login, which go out as a bearer token; API keys have their own header. */
function isAnthropicOAuthToken(key: string): boolean {
  if (key.startsWith("sk-ant-api")) return false;
  return key.startsWith("sk-ant-") || key.startsWith("eyJ") || key.startsWith("cc-");
}

function anthropicHeaders({ target, longContext }: ModelRequest, stream: boolean): Record<string, string> {
  const { apiKey, baseUrl } = target;
  const minimax = target.provider.startsWith("minimax") || isHost(baseUrl, "minimax.io", "minimaxi.com");
  const azure = isHost(baseUrl, "azure.com");
  const long = azure || isHost(baseUrl, "amazonaws.com");
  const oauth = isAnthropicOAuthToken(apiKey);
  const betas = [
    "interleaved-thinking-2025-05-14",
    ...(minimax ? [] : ["fine-grained-tool-streaming-2025-05-14"]),
    ...(long && longContext !== false ? ["context-1m-2025-08-07"] : []),
    ...(oauth ? ["oauth-2025-04-20"] : []),
  ];
  const known = apiKey !== "" && apiKey !== "no-key-required";
  return {
    "content-type": "application/json",
    accept: stream ? "text/event-stream" : "application/json",
    "anthropic-version": "2023-06-01",
    "anthropic-beta": betas.join(","),
    ...(known && (oauth || minimax || azure ? { authorization: `Bearer ${apiKey}` } : { "x-api-key": apiKey })),
    ...lowerCased(target.headers),
  };
}

/** Tools as the Messages API takes them; of two with one name the first stays. A marker, wherever it stood, is on the last one. */
function toAnthropicTools(tools: readonly OutgoingTool[]): readonly Json[] {
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
function toAnthropicToolChoice(choice: string | undefined): Json {
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
