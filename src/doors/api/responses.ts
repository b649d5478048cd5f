// /v1/responses: the server keeps the conversation. Each answer is stored, and the next call names the one it follows.
import { randomBytes, randomUUID } from "node:crypto";
import { isRecord, listOf, optional, record, text } from "../../kit/json.ts";
import { lazy } from "../../kit/lazy.ts";
import type { HistoryMessage } from "../../llm/messages.ts";
import { ResponseStore } from "../../sessions/response-store.ts";
import { headerOf } from "../http.ts";
import { sessionHeader } from "./admission.ts";
import { AnswerReader, type Ending, sessionHeaders } from "./answer.ts";
import { flag, optionalText, readHistory, readInput } from "./content.ts";
import { badField, type Call, notFound, type Reply, type Route } from "./contract.ts";
import { fingerprintOf } from "./idempotency.ts";
import { PictureStream, withPictures } from "./pictures.ts";
import { type Item, messageItem, outputOf, ResponseStream } from "./response-stream.ts";
import type { Api } from "./server.ts";
import { EventStream } from "./sse.ts";
import type { TurnRequest } from "./turns.ts";

const FINGERPRINT = ["input", "instructions", "previous_response_id", "conversation", "model", "tools"];
/** Of a history that is to be cut. */
const KEPT_MESSAGES = 100;
const NO_ANSWER = "The agent gave no answer.";

/** What a stored answer leaves to the next call. */
interface Chain {
  readonly history: readonly HistoryMessage[];
  readonly instructions: string | undefined;
  readonly sessionId: string | undefined;
}

/** One call, read. */
interface Asked {
  readonly request: TurnRequest;
  readonly id: string;
  readonly model: string;
  readonly stores: boolean;
  readonly conversation: string | undefined;
  readonly previous: string | undefined;
  readonly createdAt: number;
}

const isMessage = record({ role: text, content: (value: unknown): value is unknown => value !== undefined });
const isStored = record({
  conversation_history: listOf(isMessage),
  instructions: optional((value: unknown): value is string | null => value === null || typeof value === "string"),
  session_id: optional(text),
});

export class Responses {
  readonly #api: Api;
  readonly #store: () => Promise<ResponseStore>;
  #opened: ResponseStore | null = null;

  constructor(api: Api) {
    this.#api = api;
    const { home, clock } = api.parts;
    this.#store = lazy(async () => {
      const path = home.paths.at("response_store.db");
      this.#opened = await ResponseStore.open(path, { clock, log: home.log.child("api") });
      return this.#opened;
    });
  }

  get routes(): readonly Route[] {
    return [
      { method: "POST", path: "/v1/responses", handle: (call) => this.#create(call) },
      { method: "GET", path: "/v1/responses/:id", handle: (call) => this.#get(call.param("id")) },
      { method: "DELETE", path: "/v1/responses/:id", handle: (call) => this.#delete(call.param("id")) },
    ];
  }

  /** What follows on a stored answer. Rejects with an `ApiError` when there is none of that id. */
  async chain(id: string): Promise<Chain> {
    const data = await (await this.#store()).get(id);
    if (data === null || !isStored(data)) throw missing(id);
    return {
      history: data.conversation_history as unknown as readonly HistoryMessage[], // as `#keep` wrote them
      instructions: data.instructions ?? undefined,
      sessionId: data.session_id,
    };
  }

  async close(): Promise<void> {
    await this.#opened?.close();
  }

  async #get(id: string): Promise<Reply> {
    const data = await (await this.#store()).get(id);
    if (data === null || !isRecord(data.response)) throw missing(id);
    return { status: 200, body: data.response };
  }

  async #delete(id: string): Promise<Reply> {
    if (!(await (await this.#store()).delete(id))) throw missing(id);
    return { status: 200, body: { id, object: "response", deleted: true } };
  }

  async #create(call: Call): Promise<Reply | undefined> {
    const body = await call.body();
    const asked = await this.#read(call, body);
    if (this.#api.runs.isAsync(call)) return this.#api.runs.submit(asked.request, asked);
    if (flag(body.stream, false)) return this.#stream(call, asked);
    const key = headerOf(call.headers, "idempotency-key");
    const signal = key === "" ? call.gone : new AbortController().signal;
    return this.#api.idempotency.run(
      key,
      () => fingerprintOf("responses", body, FINGERPRINT),
      () => this.#answer({ ...asked, request: { ...asked.request, signal } }),
    );
  }

  async #read(call: Call, body: Readonly<Record<string, unknown>>): Promise<Asked> {
    const { settings, parts } = this.#api;
    const { system, history: given, input } = readInput(body.input);
    const own = readHistory(body.conversation_history);
    const previous = optionalText(body, "previous_response_id", { longest: 256 });
    const conversation = conversationName(body.conversation);
    if (previous !== undefined && conversation !== undefined)
      throw badField("conversation", "conversation and previous_response_id cannot be used together");
    const before = previous ?? (conversation && (await (await this.#store()).conversation(conversation))) ?? undefined;
    const chain = before ? await this.chain(before) : null;
    const named = sessionHeader(call, "x-hermes-session-id", settings);
    const instructions = optionalText(body, "instructions") ?? chain?.instructions;
    const all = [...(own ?? chain?.history ?? []), ...given];
    return {
      id: `resp_${randomBytes(14).toString("hex")}`,
      model: optionalText(body, "model") || settings.modelName,
      stores: flag(body.store, true),
      ...{ conversation, previous: before, createdAt: Math.floor(parts.clock.now() / 1000) },
      request: {
        sessionId: named ?? chain?.sessionId ?? randomUUID(),
        isNamed: true,
        ...(named === undefined ? { history: body.truncation === "auto" ? all.slice(-KEPT_MESSAGES) : all } : {}),
        input,
        instructions: [instructions, system].filter((one) => one !== undefined && one !== "").join("\n") || undefined,
        sessionKey: sessionHeader(call, "x-hermes-session-key", settings),
        user: optionalText(body, "user", { longest: 256 }),
        model: this.#api.modelFor(body.model),
        signal: call.gone,
      },
    };
  }

  async #answer(asked: Asked): Promise<Reply> {
    const turn = await this.#api.turns.begin(asked.request);
    const reader = new AnswerReader();
    for await (const event of turn.events) reader.take(event);
    const { ending } = reader;
    const output = [
      ...outputOf(ending.outcome.messages),
      messageItem(await withPictures(ending.text || ending.incomplete?.error || NO_ANSWER)),
    ];
    const response = envelope(asked, output, ending);
    if (asked.stores) await this.#keep(asked, response, reader);
    return { status: 200, headers: sessionHeaders(ending.outcome.sessionId, asked.request.sessionKey), body: response };
  }

  async #stream(call: Call, asked: Asked): Promise<undefined> {
    const turn = await this.#api.turns.begin(asked.request);
    const { settings } = this.#api;
    const out = new EventStream(call.outgoing, settings.keepaliveSeconds);
    out.begin(sessionHeaders(turn.sessionId, asked.request.sessionKey));
    const stream = new ResponseStream(out);
    const begun = envelope(asked, [], null);
    if (asked.stores) await this.#keep(asked, begun, null);
    await stream.event("response.created", { response: begun });
    const reader = new AnswerReader();
    const pictures = new PictureStream();
    for await (const event of turn.events) {
      const isEnd = event.type === "text_end" || event.type === "done";
      const piece = await pictures.take(reader.take(event), isEnd);
      if (piece !== "") stream.text(piece);
      await stream.take(event);
    }
    const { ending } = reader;
    // What the model did not say itself: why there is no answer.
    if (ending.isEmpty) stream.text(ending.text || ending.incomplete?.error || NO_ANSWER);
    await stream.finish();
    const response = envelope(asked, stream.output, ending);
    const isCut = call.gone.aborted;
    if (asked.stores) await this.#keep(asked, isCut ? { ...response, status: "incomplete" } : response, reader);
    await stream.event(ending.finish === "error" ? "response.failed" : "response.completed", { response });
    out.end();
    return undefined;
  }

  /** `reader` null: it has only begun, and is there to be found after a crash. */
  async #keep(asked: Asked, response: object, reader: AnswerReader | null): Promise<void> {
    const { request, id, conversation } = asked;
    const { input, history = [] } = request;
    const said = {
      role: "user",
      content: input.parts ? [{ type: "text", text: input.text }, ...input.parts] : input.text,
    };
    const data = {
      response,
      conversation_history: reader?.messages ?? [...history, said],
      instructions: request.instructions ?? null,
      session_id: reader?.ending.outcome.sessionId ?? request.sessionId,
    };
    await (await this.#store()).put(id, data, conversation);
  }
}

const missing = (id: string) => notFound(`there is no response ${id.slice(0, 80)}`, "response_not_found");

function conversationName(value: unknown): string | undefined {
  const name = isRecord(value) ? value.id : value;
  if (name === undefined || name === null) return undefined;
  if (typeof name === "string" && name.trim() !== "" && name.length <= 256) return name;
  throw badField("conversation", "conversation must be a name of at most 256 characters");
}

/** The object that both forms end with. `ending` null: it is being worked on. */
function envelope(asked: Asked, output: readonly Item[], ending: Ending | null) {
  const { id, model, createdAt, previous, request, stores } = asked;
  const isFailed = ending?.finish === "error";
  const status =
    ending === null ? "in_progress" : isFailed ? "failed" : ending.finish === "length" ? "incomplete" : "completed";
  const { input = 0, output: written = 0 } = ending?.tokens ?? {};
  return {
    ...{ id, object: "response", status, created_at: createdAt, model, output },
    error: isFailed
      ? { message: ending.incomplete?.error || ending.text || NO_ANSWER, type: "server_error", code: "server_error" }
      : null,
    incomplete_details: status === "incomplete" ? { reason: "max_output_tokens" } : null,
    instructions: request.instructions ?? null,
    previous_response_id: previous ?? null,
    ...{ store: stores, parallel_tool_calls: true, tool_choice: "auto", tools: [], metadata: {} },
    usage: ending === null ? null : { input_tokens: input, output_tokens: written, total_tokens: input + written },
  };
}
