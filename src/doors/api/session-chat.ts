// Talking in a stored conversation: one answer, or a stream of named events in which questions can be answered.
import { randomBytes } from "node:crypto";
import type { AgentEvent } from "../../agent/events.ts";
import { messageOf } from "../../kit/errors.ts";
import { asText } from "../../kit/json.ts";
import { INSTRUCTIONS_KEY } from "../../sessions/session-id.ts";
import { sessionHeader } from "./admission.ts";
import { AnswerReader, callLook, isHidden, sessionHeaders } from "./answer.ts";
import { agentIncomplete } from "./chat-completions.ts";
import { optionalText, readSaid } from "./content.ts";
import { type Call, CLIENT_GONE, type Reply, type Route } from "./contract.ts";
import { PictureStream, withPictures } from "./pictures.ts";
import { Questions } from "./questions.ts";
import { newRunId } from "./runs.ts";
import type { Api } from "./server.ts";
import { MODEL_KEY, requireSession } from "./sessions.ts";
import { EventStream } from "./sse.ts";
import type { TurnRequest } from "./turns.ts";

export const sessionChatRoutes = (api: Api): readonly Route[] => [
  { method: "POST", path: "/api/sessions/:id/chat", handle: (call) => chat(api, call) },
  { method: "POST", path: "/api/sessions/:id/chat/stream", handle: (call) => stream(api, call) },
];

async function readRequest(api: Api, call: Call): Promise<TurnRequest> {
  const { store } = api.parts;
  const { id } = await requireSession(store, call.param("id"));
  const body = await call.body();
  const kept = asText(await store.getValue(id, INSTRUCTIONS_KEY));
  const given = optionalText(body, "system_message") ?? optionalText(body, "instructions");
  const model = api.modelFor(body.model) ?? api.modelFor(await store.getValue(id, MODEL_KEY));
  return {
    ...{ sessionId: id, isNamed: true, input: readSaid(body), signal: call.gone, model },
    instructions: [kept, given ?? ""].filter((text) => text.trim() !== "").join("\n\n") || undefined,
    sessionKey: sessionHeader(call, "x-hermes-session-key", api.settings),
  };
}

async function chat(api: Api, call: Call): Promise<Reply> {
  const request = await readRequest(api, call);
  if (api.runs.isAsync(call)) return api.runs.submit(request);
  const turn = await api.turns.begin(request);
  const reader = new AnswerReader();
  for await (const event of turn.events) reader.take(event);
  const { ending } = reader;
  if (ending.isEmpty) throw agentIncomplete(ending);
  const { outcome, text, incomplete } = ending;
  return {
    status: 200,
    headers: sessionHeaders(outcome.sessionId, request.sessionKey),
    body: {
      object: "hermes.session.chat.completion",
      session_id: outcome.sessionId,
      message: { role: "assistant", content: await withPictures(text) },
      usage: usageOf(reader),
      ...(incomplete ? { hermes: incomplete } : {}),
    },
  };
}

function usageOf({ tokens: { input, output } }: AnswerReader) {
  return { input_tokens: input, output_tokens: output, total_tokens: input + output };
}

async function stream(api: Api, call: Call): Promise<undefined> {
  const request = await readRequest(api, call);
  const controller = new AbortController();
  call.gone.addEventListener("abort", () => controller.abort(CLIENT_GONE), { once: true });
  const turn = await api.turns.begin({ ...request, interactive: true, signal: controller.signal });
  const out = new EventStream(call.outgoing, api.settings.keepaliveSeconds);
  const talk = new Talk(api, out, turn.sessionId);
  const ended = Promise.withResolvers<void>();
  const unregister = api.runs.register(talk.runId, { questions: talk.questions, controller, ended: ended.promise });
  out.begin(sessionHeaders(turn.sessionId, request.sessionKey));
  try {
    await talk.begin();
    for await (const event of turn.events) await talk.take(event);
    await talk.finish();
  } catch (error) {
    api.parts.home.log.error("a stream of a session failed", error);
    await talk.tell("error", { message: messageOf(error) });
  } finally {
    unregister();
    ended.resolve();
  }
  await talk.tell("done", {});
  out.end();
  return undefined;
}

/** One turn, told to one client. */
class Talk {
  readonly runId = newRunId();
  readonly questions = new Questions();
  readonly #api: Api;
  readonly #out: EventStream;
  readonly #reader = new AnswerReader();
  readonly #pictures = new PictureStream();
  readonly #messageId = `msg_${randomBytes(12).toString("hex")}`;
  #sessionId: string;
  #seq = 0;

  constructor(api: Api, out: EventStream, sessionId: string) {
    this.#api = api;
    this.#out = out;
    this.#sessionId = sessionId;
  }

  tell(event: string, fields: object): Promise<void> {
    const ts = this.#api.parts.clock.now() / 1000;
    const head = { event, session_id: this.#sessionId, run_id: this.runId, seq: this.#seq++, ts };
    return this.#out.named(event, { ...head, ...fields });
  }

  async begin(): Promise<void> {
    await this.tell("run.started", {});
    await this.tell("message.started", { message_id: this.#messageId, role: "assistant" });
  }

  async take(event: AgentEvent): Promise<void> {
    this.#sessionId = event.sessionId;
    const isEnd = event.type === "text_end" || event.type === "done";
    const delta = await this.#pictures.take(this.#reader.take(event), isEnd);
    if (delta !== "") await this.tell("assistant.delta", { message_id: this.#messageId, delta });
    switch (event.type) {
      case "thinking":
        return this.tell("tool.progress", { tool: "reasoning", text: event.delta });
      case "tool_start": {
        if (isHidden(event.call)) return;
        const { id, name } = event.call;
        return this.tell("tool.started", {
          ...{ tool: name, tool_call_id: id, ...callLook(event.call, this.#api.parts.home.redact) },
        });
      }
      case "tool_end": {
        if (isHidden(event.call)) return;
        const { call, ms, failed } = event;
        const fields = { tool: call.name, tool_call_id: call.id, duration: Math.round(ms) / 1000 };
        return this.tell(failed ? "tool.failed" : "tool.completed", fields);
      }
      case "ask":
        return this.questions.ask(event.request, {
          ...{ clock: this.#api.parts.clock, seconds: this.#api.runs.questionSeconds },
          tell: (name, fields) => void this.tell(name, fields),
        });
    }
  }

  async finish(): Promise<void> {
    const { ending } = this.#reader;
    const { text, incomplete, isEmpty, finish } = ending;
    const usage = usageOf(this.#reader);
    if (isEmpty) {
      await this.tell("error", {
        message: text || incomplete?.error || "the agent gave no answer",
        code: "agent_incomplete",
      });
      return;
    }
    const more = incomplete ? { hermes: incomplete } : {};
    await this.tell("assistant.completed", {
      message_id: this.#messageId,
      content: await withPictures(text),
      finish_reason: finish,
      ...more,
    });
    await this.tell("run.completed", { output: text, usage, ...more });
  }
}
