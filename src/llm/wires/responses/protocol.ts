import { asRecord, asText, type Json, parseJson } from "../../../kit/json.ts";
import { textOf } from "../../messages.ts";
import { hostOf, isHost, joinUrl } from "../../providers/hosts.ts";
import type { ModelRequest, RenderedRequest, Target } from "../../wire.ts";
import type { Protocol } from "../drive.ts";
import {
  answerFormat,
  boundedCacheKey,
  canReason,
  lowerCased,
  prepare,
  promptCacheKey,
  tierFields,
} from "../outgoing.ts";
import { toResponsesInput } from "./items.ts";
import { ResponsesAssembler } from "./stream.ts";

export const responsesProtocol: Protocol = {
  render: renderResponsesRequest,
  begin: ({ target, messages }) => new ResponsesAssembler({ issuer: issuerOf(target), history: messages }),
};

// codex_responses: what goes out.

const DEFAULT_INSTRUCTIONS = "You are Hermes, a helpful assistant.";

export function renderResponsesRequest(request: ModelRequest): RenderedRequest {
  const { target, tools, toolChoice, replay = {} } = request;
  const maxTokens = request.maxTokens ?? target.profile.defaultMaxTokens;
  const system = request.messages
    .filter((message) => message.role === "system")
    .map((message) => textOf(message.content));
  const stream = request.stream !== false;
  const format = answerFormat(request);
  const body = withCacheKey(
    {
      model: target.model,
      instructions: system.join("\n").trim() === "" ? DEFAULT_INSTRUCTIONS : system.join("\n"),
      input: toResponsesInput(prepare(request).messages, {
        issuer: issuerOf(target),
        replay: replay.codexItems !== false,
      }),
      ...(tools.length > 0 && {
        tools: tools.map(({ function: { name, description, parameters } }) => ({
          type: "function",
          name,
          description,
          parameters,
          strict: false,
        })),
        tool_choice: toolChoice ?? "auto",
        parallel_tool_calls: true,
      }),
      ...reasoningFields(request),
      ...(maxTokens !== undefined && !isHost(target.baseUrl, "chatgpt.com") && { max_output_tokens: maxTokens }),
      ...(format && { text: { format: { type: "json_schema", ...format } } }),
      ...tierFields(request),
      store: false,
      stream,
      ...target.extraBody,
      ...request.overrides,
    },
    request,
  );
  return { url: joinUrl(target.baseUrl, "/responses"), headers: responsesHeaders(request, stream), body };
}

/** Encrypted items can be read by the host that wrote them and by nobody else. */
function issuerOf({ baseUrl, provider }: Pick<Target, "baseUrl" | "provider">): string {
  return hostOf(baseUrl) || provider;
}

/** Unless asked otherwise the model thinks as it does by default: what it thought comes back encrypted all the same, or the next request lacks it. */
function reasoningFields({ target, reasoning }: ModelRequest): Json {
  if (reasoning?.enabled === false || reasoning?.effort === "none" || !canReason(target.model)) return {};
  const effort = reasoning?.effort === "minimal" ? "low" : reasoning?.effort;
  const fields = { ...(effort && { effort }), ...(reasoning?.summary !== false && { summary: "auto" }) };
  return {
    ...(Object.keys(fields).length > 0 && { reasoning: fields }),
    include: ["reasoning.encrypted_content"],
  };
}

function withCacheKey(body: Json, { target, messages, tools }: ModelRequest): Json {
  const given = asText(body.prompt_cache_key);
  if (given !== "") return { ...body, prompt_cache_key: boundedCacheKey(given) };
  if ("prompt_cache_key" in body || isHost(target.baseUrl, "githubcopilot.com", "github.ai")) return body;
  return { ...body, prompt_cache_key: promptCacheKey(messages, tools) };
}

function responsesHeaders({ target, sessionId }: ModelRequest, stream: boolean): Record<string, string> {
  const known = target.apiKey !== "" && target.apiKey !== "no-key-required";
  return {
    "content-type": "application/json",
    accept: stream ? "text/event-stream" : "application/json",
    ...(known && { authorization: `Bearer ${target.apiKey}` }),
    ...(isHost(target.baseUrl, "chatgpt.com") && accountHeader(target.apiKey)),
    ...(sessionId && isHost(target.baseUrl, "x.ai") && { "x-grok-conv-id": sessionId }),
    ...lowerCased(target.headers),
  };
}

/** A ChatGPT plan wants to know which account pays; its token says so in its second part. */
function accountHeader(token: string): Record<string, string> {
  const claims = asRecord(parseJson(Buffer.from(token.split(".")[1] ?? "", "base64url").toString("utf8")));
  const account = asText(asRecord(claims["https://api.openai.com/auth"]).chatgpt_account_id);
  return account === "" ? {} : { "chatgpt-account-id": account };
}
