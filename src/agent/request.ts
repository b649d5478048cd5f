// The API copy: what one request carries. It is made anew for every request and never touches the stored history.
import { sanitizeSurrogates } from "../kit/code-points.ts";
import {
  type AssistantMessage,
  type ContentPart,
  type HistoryMessage,
  type Message,
  type ToolCall,
  textOf,
  userContentToSend,
} from "../llm/messages.ts";
import { stripImagesFromMessages } from "../llm/pictures/fit.ts";
import { stripThinkBlocks } from "../llm/scrub.ts";
import type { Target } from "../llm/wire.ts";
import { canonicalArguments, hasReasoning, joinAssistants, joinUsers, sanitizeApiMessages } from "./repair.ts";

export interface RequestParts {
  readonly target: Target;
  /** The session's system prompt, byte for byte. */
  readonly system: string;
  /** Appended to the system text of every request, never stored. */
  readonly ephemeral?: string;
  /** Right behind the system message of every request, never stored. */
  readonly prefill?: readonly HistoryMessage[];
  readonly history: readonly HistoryMessage[];
  /** Notes of the loop to the model (continue, nudge): sent, never stored. */
  readonly scaffold: readonly HistoryMessage[];
  /** False: pictures are left out. */
  readonly images: boolean;
}

/** Servers want the user to speak first; a history may begin with a summary, or with a message that was sent to the user. */
const OPENING: Message = { role: "user", content: "[The conversation goes on from here.]" };

/** Builds API copies. A message is rendered once; a history of a thousand costs what is new in it. */
export class RequestBuilder {
  #rendered = new WeakMap<Message, Message>();
  #target: Target | null = null;

  build(parts: RequestParts): readonly Message[] {
    if (parts.target !== this.#target) this.#rendered = new WeakMap();
    this.#target = parts.target;

    const history = withFitImages(parts);
    const spoken = [...(parts.prefill ?? []), ...history, ...parts.scaffold];
    const all = parts.target.apiMode !== "codex_responses";
    const clean = joinAssistants(dropThinkingOnlyAndMergeUsers(sanitizeApiMessages(spoken)), { all });
    const messages = clean.map((message) => this.#render(message, parts.target));
    const opening = messages[0]?.role === "assistant" ? [OPENING] : [];
    return [...systemMessage(parts), ...opening, ...messages, ...this.#openThought(parts)];
  }

  #render(message: Message, target: Target): Message {
    const known = this.#rendered.get(message);
    if (known) return known;
    const rendered = renderMessage(message, target);
    this.#rendered.set(message, rendered);
    return rendered;
  }

  /** Thinking without an answer is handed back as the beginning of the next one, where the server takes thinking back at all. */
  #openThought({ scaffold, target }: RequestParts): readonly Message[] {
    const last = scaffold.at(-1);
    if (last?.role !== "assistant" || last.content?.trim() || !last.reasoning_content) return [];
    return target.profile.echoReasoning ? [this.#render(last, target)] : [];
  }
}

function withFitImages({ history, images }: RequestParts): readonly HistoryMessage[] {
  if (images) return history;
  return stripImagesFromMessages(history).messages.map(asPlainText) as readonly HistoryMessage[]; // roles stay
}

/** Who takes no pictures may take no lists either. */
function asPlainText(message: Message): Message {
  if (message.role !== "user" || typeof message.content === "string") return message;
  return { ...message, content: textOf(message.content) };
}

function systemMessage({ system, ephemeral }: RequestParts): readonly Message[] {
  const text = ephemeral?.trim() ? (system === "" ? ephemeral : `${system}\n\n${ephemeral}`).trim() : system;
  return text === "" ? [] : [{ role: "system", content: sanitizeSurrogates(text) }];
}

function renderMessage(message: Message, target: Target): Message {
  switch (message.role) {
    case "system":
      return message;
    case "user":
      return { role: "user", content: renderContent(userContentToSend(message)) };
    case "tool": {
      const name = message.name ?? message.tool_name;
      return {
        role: "tool",
        ...(name === undefined ? {} : { name, tool_name: name }),
        content: renderContent(message.api_content ?? message.content),
        tool_call_id: message.tool_call_id,
      };
    }
    case "assistant":
      return renderAssistant(message, target);
    default:
      return message; // a role of an older database
  }
}

function renderAssistant(message: AssistantMessage, target: Target): AssistantMessage {
  const { reasoning: _, finish_reason: __, reasoning_content, ...rest } = message;
  const content = message.content === null ? null : sanitizeSurrogates(message.content).trim();
  return {
    ...rest,
    content,
    ...(message.tool_calls ? { tool_calls: message.tool_calls.map((call) => renderCall(call, target)) } : {}),
    ...echoedReasoning(reasoning_content, target),
  };
}

/** Some servers demand their reasoning back on every answer, even when there is none; strict ones refuse the key. */
function echoedReasoning(text: string | undefined, target: Target): { reasoning_content?: string } {
  if (target.profile.echoReasoning) return { reasoning_content: sanitizeSurrogates(text || " ") };
  if (target.apiMode === "chat_completions" || text === undefined) return {};
  return { reasoning_content: sanitizeSurrogates(text) };
}

function renderCall(call: ToolCall, target: Target): ToolCall {
  const { call_id, response_item_id, ...rest } = call;
  const args = sanitizeSurrogates(canonicalArguments(call.function.arguments));
  return {
    ...rest,
    ...(target.apiMode === "codex_responses" && call_id !== undefined ? { call_id } : {}),
    ...(target.apiMode === "codex_responses" && response_item_id !== undefined ? { response_item_id } : {}),
    function: { name: sanitizeSurrogates(call.function.name), arguments: args },
  };
}

function renderContent(content: string | readonly ContentPart[]): string | readonly ContentPart[] {
  if (typeof content === "string") return sanitizeSurrogates(content).trim();
  return content.map((part) => (part.type === "text" ? { ...part, text: sanitizeSurrogates(part.text) } : part));
}

/** An answer that was thought but never said is not sent again; users that become neighbours are merged. */
function dropThinkingOnlyAndMergeUsers(messages: readonly Message[]): readonly Message[] {
  const kept = messages.filter((message) => message.role !== "assistant" || !isThinkingOnly(message));
  return joinUsers(kept.length === messages.length ? messages : kept);
}

function isThinkingOnly(message: AssistantMessage): boolean {
  if ((message.tool_calls ?? []).length > 0) return false;
  if ((message.codex_reasoning_items ?? message.codex_message_items ?? []).length > 0) return false;
  return stripThinkBlocks(message.content ?? "").trim() === "" && hasReasoning(message);
}
