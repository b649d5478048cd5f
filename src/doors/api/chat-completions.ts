// POST /v1/chat/completions: the client keeps the conversation and sends it whole with each call.
import { randomBytes } from "node:crypto";
import { isRecord } from "../../kit/json.ts";
import { headerOf } from "../http.ts";
import { sessionHeader } from "./admission.ts";
import { AnswerReader, asHeader, callLook, type Ending, isHidden, sessionHeaders } from "./answer.ts";
import { flag, optionalText, readMessages } from "./content.ts";
import { ApiError, type Call, type Reply, type Route } from "./contract.ts";
import { fingerprintOf } from "./idempotency.ts";
import { PictureStream, withPictures } from "./pictures.ts";
import type { Api } from "./server.ts";
import { EventStream } from "./sse.ts";
import { type BegunTurn, derivedId, type TurnRequest } from "./turns.ts";

const FINGERPRINT = ["model", "messages", "tools", "tool_choice", "stream"];

export const chatRoutes = (api: Api): readonly Route[] => [
  { method: "POST", path: "/v1/chat/completions", handle: (call) => complete(api, call) },
];

type Body = Readonly<Record<string, unknown>>;

async function complete(api: Api, call: Call): Promise<Reply | undefined> {
  const body = await call.body();
  const request = readRequest(api, call, body);
  const model = optionalText(body, "model") || api.settings.modelName;
  const isAsync = api.runs.isAsync(call);
  if (!isAsync && flag(body.stream, false)) return stream(api, call, body, { request, model });
  const key = headerOf(call.headers, "idempotency-key");
  // Whoever sends a key comes back for the answer: it is worked out also when they have hung up.
  const signal = key === "" ? call.gone : new AbortController().signal;
  return api.idempotency.run(
    key,
    () => fingerprintOf("chat", body, FINGERPRINT),
    () => (isAsync ? api.runs.submit(request, { model }) : answer(api, { ...request, signal }, model)),
  );
}

function readRequest(api: Api, call: Call, body: Body): TurnRequest {
  const { settings } = api;
  const { system, history, input, firstUserText } = readMessages(body.messages);
  const named = sessionHeader(call, "x-hermes-session-id", settings);
  const sessionKey = sessionHeader(call, "x-hermes-session-key", settings);
  const user = optionalText(body, "user", { longest: 256 });
  return {
    sessionId: named ?? derivedId(system, firstUserText, [sessionKey, user]),
    isNamed: named !== undefined,
    // What is stored of a named conversation counts, whatever else the client sends.
    ...(named === undefined ? { history } : {}),
    ...{ input, instructions: system, sessionKey, user, signal: call.gone },
    model: api.modelFor(body.model),
  };
}

async function answer(api: Api, request: TurnRequest, model: string): Promise<Reply> {
  const { sessionId, events } = await api.turns.begin(request);
  const reader = new AnswerReader();
  let current = sessionId;
  for await (const event of events) {
    current = event.sessionId;
    reader.take(event);
  }
  const { ending } = reader;
  const { incomplete, text, finish, isEmpty } = ending;
  if (isEmpty) throw agentIncomplete(ending);
  return {
    status: 200,
    headers: {
      ...sessionHeaders(current, request.sessionKey),
      ...(incomplete
        ? {
            "x-hermes-completed": "false",
            "x-hermes-partial": String(incomplete.partial),
            "x-hermes-error": asHeader(incomplete.error ?? ""),
          }
        : {}),
    },
    body: {
      ...head(api, "chat.completion", model),
      choices: [{ index: 0, message: { role: "assistant", content: await withPictures(text) }, finish_reason: finish }],
      usage: usageOf(ending),
      ...(incomplete ? { hermes: incomplete } : {}),
    },
  };
}

/** Nothing came of it. Asking again costs as much again: the official clients are told not to do so by themselves. */
export function agentIncomplete({ text, incomplete }: Ending): ApiError {
  const { completed, partial, failed } = incomplete ?? { completed: false, partial: false, failed: true };
  return new ApiError(502, text || incomplete?.error || "the agent gave no answer", {
    code: "agent_incomplete",
    headers: { "x-should-retry": "false" },
    more: { hermes: { completed, partial, failed } },
  });
}

async function stream(
  api: Api,
  call: Call,
  body: Body,
  { request, model }: { readonly request: TurnRequest; readonly model: string },
): Promise<undefined> {
  const turn = await api.turns.begin(request);
  const out = new EventStream(call.outgoing, api.settings.keepaliveSeconds);
  out.begin(sessionHeaders(turn.sessionId, request.sessionKey));
  const chunk = head(api, "chat.completion.chunk", model);
  const { stream_options: options } = body;
  const wantsUsageChunk = isRecord(options) && flag(options.include_usage, false);
  try {
    await writeStream(api, turn, out, { chunk, wantsUsageChunk });
  } catch (error) {
    // A stream that has begun says itself that it went wrong.
    api.parts.home.log.child("api").error("a streamed answer failed", error);
    const message = error instanceof ApiError ? error.message : "internal error; see logs/errors.log of the home";
    await out.named("hermes.error", { ...chunk, choices: [], message, code: "agent_error" });
    await out.data({ ...chunk, choices: [{ index: 0, delta: {}, finish_reason: "error" }] });
    await out.data("[DONE]");
  }
  out.end();
  return undefined;
}

async function writeStream(
  { parts: { home } }: Api,
  { events }: BegunTurn,
  out: EventStream,
  { chunk, wantsUsageChunk }: { readonly chunk: object; readonly wantsUsageChunk: boolean },
): Promise<void> {
  const reader = new AnswerReader();
  const write = (delta: object, finish: string | null = null, more: object = {}) =>
    out.data({ ...chunk, choices: [{ index: 0, delta, finish_reason: finish }], ...more });
  // The official clients take named events for chunks: they find the fields of one, and nothing to show.
  const tell = (event: string, fields: object) => out.named(event, { ...chunk, choices: [], ...fields });
  const pictures = new PictureStream();
  const running = new Set<string>();
  await write({ role: "assistant" });
  for await (const event of events) {
    const isEnd = event.type === "text_end" || event.type === "done";
    const piece = await pictures.take(reader.take(event), isEnd);
    if (piece !== "") await write({ content: piece });
    if (event.type === "tool_start" && !isHidden(event.call)) {
      const { id: toolCallId, name: tool } = event.call;
      running.add(toolCallId);
      const look = callLook(event.call, home.redact);
      await tell("hermes.tool.progress", { tool, ...look, toolCallId, status: "running" });
    }
    if (event.type === "tool_end" && running.delete(event.call.id)) {
      const { id: toolCallId, name: tool } = event.call;
      await tell("hermes.tool.progress", { tool, toolCallId, status: "completed" });
    }
  }
  const { ending } = reader;
  const { incomplete, finish, text, isEmpty } = ending;
  if (isEmpty && text !== "") await write({ content: text });
  const usage = usageOf(ending);
  // Not as `error`: the official clients would throw there, before they read how it ended.
  if (incomplete && finish === "error") {
    const { error: message, error_code: code } = incomplete;
    await tell("hermes.error", { message, code });
  }
  await write({}, finish, { usage, ...(incomplete ? { hermes: incomplete } : {}) });
  if (wantsUsageChunk) await out.data({ ...chunk, choices: [], usage });
  await out.data("[DONE]");
}

function head({ parts: { clock } }: Api, object: string, model: string) {
  const id = `chatcmpl-${randomBytes(15).toString("hex").slice(0, 29)}`;
  return { id, object, created: Math.floor(clock.now() / 1000), model };
}

const usageOf = ({ tokens: { input, output } }: Pick<Ending, "tokens">) => ({
  prompt_tokens: input,
  completion_tokens: output,
  total_tokens: input + output,
});
