// chat_completions: what goes out. Most of the world speaks this; the differences are in the target's profile.

import { asText, isRecord, type Json } from "../../../kit/moved-json.ts";
import { contentToSend, type OutgoingMessage } from "../../cache-control.ts";
import { CallIdsOnWire } from "../../call-ids.ts";
import type { AssistantMessage, ToolCall } from "../../messages.ts";
import { hostOf } from "../../providers/hosts.ts";
import type { ModelRequest, RenderedRequest, Target } from "../../wire.ts";
import { lowerCased } from "../headers.ts";
import { isHost, joinUrl } from "../hosts.ts";
import { partsOf, prepare } from "../outgoing.ts";
import { boundedCacheKey, promptCacheKey } from "../prompt-cache-key.ts";
import { tierFields } from "../service-tier.ts";
import { reasoningFields } from "./reasoning.ts";

export function renderChatRequest(request: ModelRequest): RenderedRequest {
  const { target, tools, toolChoice, temperature } = request;
  const { profile } = target;
  const maxTokens = request.maxTokens ?? profile.defaultMaxTokens;
  const stream = request.stream !== false;
  const body = withCacheKey(
    {
      model: target.model,
      messages: renderChatMessages(prepare(request).messages, target),
      ...(tools.length > 0 && { tools, ...(toolChoice && { tool_choice: toolChoice }) }),
      ...(maxTokens !== undefined && { [profile.maxTokensField]: maxTokens }),
      ...(temperature !== undefined && profile.reasoningStyle !== "kimi" && { temperature }),
      ...reasoningFields(request),
      // OpenRouter keeps a conversation with the provider that has its cache.
      ...(request.sessionId && isHost(target.baseUrl, "openrouter.ai") && { session_id: request.sessionId }),
      ...tierFields(request),
      stream,
      ...(stream && profile.streamUsage && { stream_options: { include_usage: true } }),
      ...target.extraBody,
      ...request.overrides,
    },
    request,
  );
  return { url: joinUrl(target.baseUrl, "/chat/completions"), headers: chatHeaders(target, stream), body };
}

function withCacheKey(body: Json, { target, messages, tools }: ModelRequest): Json {
  const given = asText(body.prompt_cache_key);
  if (given !== "") return { ...body, prompt_cache_key: boundedCacheKey(given) };
  const takesKey = target.profile.supportsPromptCacheKey ?? hostOf(target.baseUrl) === "api.openai.com";
  if ("prompt_cache_key" in body || !takesKey) return body;
  return { ...body, prompt_cache_key: promptCacheKey(messages, tools) };
}

function renderChatMessages(messages: readonly OutgoingMessage[], target: Target): readonly Json[] {
  const ids = new CallIdsOnWire();
  return messages.map((message) => renderMessage(message, target, ids));
}

function renderMessage(message: OutgoingMessage, target: Target, ids: CallIdsOnWire): Json {
  const content = renderContent(message, target);
  switch (message.role) {
    case "system":
      return { role: target.profile.developerRole ? "developer" : "system", content };
    case "user":
      return { role: "user", content };
    case "tool":
      return {
        role: "tool",
        tool_call_id: ids.answered(message.tool_call_id) ?? message.tool_call_id,
        ...(message.name && { name: message.name }),
        content,
      };
    case "assistant": {
      const calls = (message.tool_calls ?? []).map((call, index) => renderCall(call, ids.open(call, index)));
      return {
        role: "assistant",
        content: content || (calls.length > 0 ? null : ""),
        ...(target.profile.echoReasoning && { reasoning_content: message.reasoning_content || " " }),
        ...(target.profile.reasoningStyle === "openrouter" && routedDetails(message)),
        ...(calls.length > 0 && { tool_calls: calls }),
      };
    }
  }
}

function renderContent(message: OutgoingMessage, { profile }: Target): string | readonly Json[] {
  const content = contentToSend(message);
  if (typeof content === "string" || content === null) return content ?? "";
  const parts = partsOf(message);
  // Many servers take a list from nobody but the user; a list of plain text says nothing that a string does not.
  const plain = parts.every((part) => part.type === "text" && !part.cache_control);
  if (plain && message.role !== "user" && profile.cacheLayout !== "envelope")
    return parts.map((part) => (part.type === "text" ? part.text : "")).join("\n");
  return parts.length > 0 ? parts : "";
}

function renderCall(call: ToolCall, id: string): Json {
  return {
    id,
    type: "function",
    function: { name: call.function.name, arguments: call.function.arguments },
    ...(call.extra_content !== undefined && { extra_content: call.extra_content }),
  };
}

/** OpenRouter's own thinking records go back to it; signed blocks of other wires are none of its business. */
function routedDetails(message: Pick<AssistantMessage, "reasoning_details">): Json {
  const own = (message.reasoning_details ?? []).filter(
    (detail) => isRecord(detail) && asText(detail.type).startsWith("reasoning."),
  );
  return own.length > 0 ? { reasoning_details: own } : {};
}

function chatHeaders(target: Target, stream: boolean): Record<string, string> {
  return {
    "content-type": "application/json",
    accept: stream ? "text/event-stream" : "application/json",
    ...(target.apiKey !== "" && target.apiKey !== "no-key-required" && { authorization: `Bearer ${target.apiKey}` }),
    ...lowerCased(target.headers),
  };
}
