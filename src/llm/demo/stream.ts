// The demo's answer in the shape of the chat-completions protocol, streamed or whole.
import { estimateTokens } from "../catalogue/estimate.ts";
import type { DemoReply } from "./reply.ts";

export interface Envelope {
  readonly id: string;
  readonly callId: string;
  readonly model: string;
  readonly promptText: string;
}

export function wholeAnswer(reply: DemoReply, envelope: Envelope): Readonly<Record<string, unknown>> {
  const message =
    reply.type === "text"
      ? { role: "assistant", content: reply.text }
      : { role: "assistant", content: null, tool_calls: [toolCall(reply, envelope)] };
  return {
    ...head(envelope, "chat.completion"),
    choices: [{ index: 0, message, finish_reason: finishOf(reply) }],
    usage: usageOf(reply, envelope),
  };
}

export function* streamedAnswer(reply: DemoReply, envelope: Envelope, includeUsage: boolean): Generator<string> {
  const chunk = (delta: unknown, finish: string | null = null) =>
    event({ ...head(envelope, "chat.completion.chunk"), choices: [{ index: 0, delta, finish_reason: finish }] });
  yield chunk({ role: "assistant", content: "" });
  if (reply.type === "text") {
    // Words with the blanks after them: the pieces joined are the text.
    for (const piece of reply.text.match(/\s*\S+\s*/g) ?? [reply.text]) yield chunk({ content: piece });
  } else {
    const call = toolCall(reply, envelope);
    yield chunk({ tool_calls: [{ index: 0, ...call, function: { name: call.function.name, arguments: "" } }] });
    yield chunk({ tool_calls: [{ index: 0, function: { arguments: call.function.arguments } }] });
  }
  yield chunk({}, finishOf(reply));
  if (includeUsage) {
    yield event({ ...head(envelope, "chat.completion.chunk"), choices: [], usage: usageOf(reply, envelope) });
  }
  yield "data: [DONE]\n\n";
}

function head({ id, model }: Envelope, object: string) {
  return { id, object, created: 0, model };
}

function toolCall(reply: Extract<DemoReply, { type: "call" }>, { callId }: Envelope) {
  return {
    id: callId,
    type: "function",
    function: { name: reply.name, arguments: JSON.stringify(reply.arguments) },
  } as const;
}

function finishOf(reply: DemoReply): string {
  return reply.type === "text" ? "stop" : "tool_calls";
}

function usageOf(reply: DemoReply, { promptText }: Envelope) {
  const prompt = estimateTokens(promptText);
  const completion = estimateTokens(reply.type === "text" ? reply.text : JSON.stringify(reply.arguments));
  return { prompt_tokens: prompt, completion_tokens: completion, total_tokens: prompt + completion };
}

function event(data: unknown): string {
  return `data: ${JSON.stringify(data)}\n\n`;
}
