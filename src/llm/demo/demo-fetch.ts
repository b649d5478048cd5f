// The embedded model: a chat-completions server without a server. It answers at `demo:/v1` and touches no network.
import { type DemoMessage, replyTo } from "./reply.ts";
import { type Envelope, streamedAnswer, wholeAnswer } from "./stream.ts";

export const DEMO_WINDOW = 128_000;

export async function demoFetch(
  input: string | URL | Request,
  init?: { method?: string; body?: unknown; signal?: AbortSignal | null },
): Promise<Response> {
  init?.signal?.throwIfAborted();
  const path = urlOf(input).replace(/^demo:\/*/, "/");
  const method = (init?.method ?? (input instanceof Request ? input.method : "GET")).toUpperCase();
  if (method === "GET" && path === "/v1/models") {
    return Response.json({
      object: "list",
      data: [{ id: "demo", object: "model", owned_by: "hermes", context_length: DEMO_WINDOW }],
    });
  }
  if (method !== "POST" || path !== "/v1/chat/completions") return failure(404, `The demo has no ${method} ${path}.`);
  const body = await readBody(input, init?.body);
  if (!body || !Array.isArray(body.messages)) return failure(400, "The demo needs a JSON body with messages.");

  const messages = body.messages.map(readMessage);
  const reply = replyTo({ messages, tools: toolNames(body.tools) });
  const calls = messages.reduce((sum, message) => sum + message.toolCalls.length, 0);
  const envelope: Envelope = {
    id: `chatcmpl-demo-${messages.length}`,
    callId: `call_demo_${messages.length}_${calls + 1}`,
    model: typeof body.model === "string" ? body.model : "demo",
    promptText: JSON.stringify(body.messages) + (body.tools ? JSON.stringify(body.tools) : ""),
  };
  if (body.stream !== true) return Response.json(wholeAnswer(reply, envelope));
  const includeUsage = asRecord(body.stream_options).include_usage === true;
  const pieces = streamedAnswer(reply, envelope, includeUsage);
  const encoder = new TextEncoder();
  const signal = init?.signal;
  const stream = new ReadableStream<Uint8Array>({
    pull(controller) {
      if (signal?.aborted) return controller.error(signal.reason);
      const { value, done } = pieces.next();
      if (done) return controller.close();
      controller.enqueue(encoder.encode(value));
    },
  });
  return new Response(stream, { headers: { "content-type": "text/event-stream" } });
}

function urlOf(input: string | URL | Request): string {
  if (typeof input === "string") return input;
  return input instanceof URL ? input.href : input.url;
}

async function readBody(input: string | URL | Request, body: unknown): Promise<Record<string, unknown> | null> {
  const text = await textOfBody(input, body);
  try {
    return asRecord(JSON.parse(text));
  } catch {
    return null; // answered with 400 by the caller
  }
}

async function textOfBody(input: string | URL | Request, body: unknown): Promise<string> {
  if (typeof body === "string") return body;
  if (body instanceof Uint8Array) return new TextDecoder().decode(body);
  return input instanceof Request ? await input.text() : "";
}

function readMessage(value: unknown): DemoMessage {
  const message = asRecord(value);
  const calls = Array.isArray(message.tool_calls) ? message.tool_calls.map(asRecord) : [];
  return {
    role: String(message.role ?? ""),
    text: textOf(message.content),
    toolCalls: calls.map((call) => {
      const called = asRecord(call.function);
      return { id: String(call.id ?? ""), name: String(called.name ?? ""), arguments: String(called.arguments ?? "") };
    }),
  };
}

function textOf(content: unknown): string {
  if (typeof content === "string") return content;
  if (!Array.isArray(content)) return "";
  return content
    .map(asRecord)
    .flatMap((part) => (typeof part.text === "string" ? [part.text] : []))
    .join("\n");
}

function toolNames(tools: unknown): readonly string[] {
  if (!Array.isArray(tools)) return [];
  return tools.map((tool) => String(asRecord(asRecord(tool).function).name ?? "")).filter(Boolean);
}

function failure(status: number, message: string): Response {
  return Response.json({ error: { message, type: "invalid_request_error" } }, { status });
}

function asRecord(value: unknown): Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : {}; // checked just before
}
