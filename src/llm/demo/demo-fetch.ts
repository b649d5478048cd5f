// The embedded model: a chat-completions server without a server. It answers at `demo:/v1` and touches no network.
import { estimateTokens } from "../usage.ts";
import { answerFrom, chineseWords, englishWords, type Intent, intentOf, type Words } from "./intents.ts";

const DEMO_WINDOW = 128_000;

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

// The demo's answer in the shape of the chat-completions protocol, streamed or whole.

interface Envelope {
  readonly id: string;
  readonly callId: string;
  readonly model: string;
  readonly promptText: string;
}

function wholeAnswer(reply: DemoReply, envelope: Envelope): Readonly<Record<string, unknown>> {
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

function* streamedAnswer(reply: DemoReply, envelope: Envelope, includeUsage: boolean): Generator<string> {
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

// What the demo says or calls next: a pure function of the request. It never pretends to think.

interface DemoRequest {
  readonly messages: readonly DemoMessage[];
  readonly tools: readonly string[];
}

interface DemoMessage {
  readonly role: string;
  readonly text: string;
  readonly toolCalls: readonly { readonly id: string; readonly name: string; readonly arguments: string }[];
}

type DemoReply =
  | { readonly type: "text"; readonly text: string }
  | { readonly type: "call"; readonly name: string; readonly arguments: Readonly<Record<string, unknown>> };

function replyTo({ messages, tools }: DemoRequest): DemoReply {
  const asked = messages.findLastIndex((message) => message.role === "user");
  const question = messages[asked]?.text ?? "";
  const words = /\p{Script=Han}/u.test(question) ? chineseWords : englishWords;
  const since = messages.slice(asked + 1);
  const call = since.findLast((message) => message.toolCalls.length > 0)?.toolCalls.at(-1);
  const result = since.findLast((message) => message.role === "tool");
  if (call && result) return { type: "text", text: answerFrom(call, result.text, words) };
  return carryOut(intentOf(question), tools, words);
}

function carryOut(intent: Intent, tools: readonly string[], words: Words): DemoReply {
  const say = (text: string): DemoReply => ({ type: "text", text });
  const call = (name: string, args: Readonly<Record<string, unknown>>): DemoReply =>
    tools.includes(name) ? { type: "call", name, arguments: args } : say(words.noTool(name));
  switch (intent.type) {
    case "help":
      return say(words.help);
    case "unknown":
      return say(words.notUnderstood);
    case "list":
      return tools.includes("terminal") || !tools.includes("search_files")
        ? call("terminal", { command: `ls -1p -- ${shellWord(intent.path)}` })
        : call("search_files", { pattern: "*", target: "files", path: intent.path });
    case "read":
      return call("read_file", { path: intent.path });
    case "run":
      return call("terminal", { command: intent.command });
    case "remember":
      return call("memory", { action: "add", target: intent.target, content: intent.fact });
    case "recall":
      return call("session_search", intent.query ? { query: intent.query } : {});
    case "skill":
      return call("skill_manage", { action: "create", ...skillOf(intent.title, intent.text) });
  }
}

function shellWord(path: string): string {
  return /^[\w./~@%+=:,-]+$/.test(path) ? path : `'${path.replaceAll("'", `'\\''`)}'`;
}

function skillOf(title: string, text: string): { name: string; content: string } {
  const slug = title
    .toLowerCase()
    .normalize("NFKD")
    .replace(/[^a-z0-9]+/g, "-")
    .replace(/^-+|-+$/g, "")
    .slice(0, 48);
  const name = slug || `note-${fingerprint(title + text)}`;
  const description = [...title.replace(/\s+/g, " ")].slice(0, 57).join("");
  return {
    name,
    content: `---\nname: ${name}\ndescription: ${JSON.stringify(description)}\n---\n\n# ${title}\n\n${text}\n`,
  };
}

/** FNV-1a: the same note always gets the same name. */
function fingerprint(text: string): string {
  let hash = 0x811c9dc5;
  for (const char of text) hash = Math.imul(hash ^ (char.codePointAt(0) ?? 0), 0x01000193);
  return (hash >>> 0).toString(16).padStart(8, "0").slice(0, 6);
}
