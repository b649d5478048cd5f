// What the loop tells hooks about requests and answers. Without a listener it costs nothing.
import { textOf } from "../llm/messages.ts";
import type { Reply } from "../llm/model-call.ts";
import type { ModelRequest } from "../llm/wire.ts";
import type { Asking } from "./ask-model.ts";
import type { Conversation } from "./conversation.ts";

const REQUEST_EVENTS = ["pre_api_request", "post_api_request", "api_request_error"];

/** Tells of a request that is about to be sent; what comes back tells how it ended. Null when nobody listens. */
export async function tellRequest(
  { conversation, purpose }: Asking,
  request: ModelRequest,
): Promise<((reply: Reply) => Promise<void>) | null> {
  const { events, clock } = conversation.options.ports;
  if (!events || !REQUEST_EVENTS.some((event) => events.hears(event))) return null;
  const { model, provider, baseUrl, apiMode } = request.target;
  const facts = {
    session_id: purpose.sessionId,
    task: purpose.task,
    turn: purpose.turn ?? null,
    platform: conversation.options.session.platform,
    ...{ model, provider, base_url: baseUrl, api_mode: apiMode },
    message_count: request.messages.length,
    tool_count: request.tools.length,
    max_tokens: request.maxTokens ?? null,
  };
  await events.tell("pre_api_request", facts);
  const began = clock.now();
  return async (reply) => {
    const ended = { ...facts, duration_ms: clock.now() - began };
    if (reply.type === "answer") {
      const { content, tool_calls = [] } = reply.message;
      const about = {
        finish_reason: reply.finishReason,
        text_chars: content?.length ?? 0,
        tool_calls: tool_calls.length,
      };
      await events.tell("post_api_request", { ...ended, ...about });
    } else if (reply.type !== "interrupted") {
      const { message, status } = reply.error;
      await events.tell("api_request_error", { ...ended, error_message: message, status_code: status ?? null });
    }
  };
}

/** The answer as the user gets it: the first listener that gives another text wins; then the others hear of it. */
export async function tellAnswer(conversation: Conversation, text: string): Promise<string> {
  const { ports, session } = conversation.options;
  const { events } = ports;
  if (!events) return text;
  const { messages, sessionId } = conversation.transcript;
  const said = messages.findLast(({ role }) => role === "user")?.content ?? "";
  const facts = {
    session_id: sessionId,
    user_message: textOf(said),
    model: conversation.model.target.model,
    platform: session.platform,
  };
  const answers = events.hears("transform_llm_output")
    ? await events.tell("transform_llm_output", { ...facts, response_text: text })
    : [];
  const final = answers.find((answer) => typeof answer === "string" && answer !== "") ?? text;
  if (events.hears("post_llm_call"))
    await events.tell("post_llm_call", { ...facts, conversation_history: messages, assistant_response: final });
  return typeof final === "string" ? final : text;
}
