// /v1/responses: the server keeps the conversation. Each answer is stored, and the next call names the one it follows.
import { randomBytes, randomUUID } from "node:crypto";
import { type Clock, OutOfTime, within } from "../../kit/clock.ts";
import { isRecord, listOf, optional, record, text } from "../../kit/json.ts";
import { lazy } from "../../kit/lazy.ts";
import type { HistoryMessage } from "../../llm/messages.ts";
import { isGone, newHolder } from "../../sessions/lanes.ts";
import { ResponseStore } from "../../sessions/response-store.ts";
import { headerOf } from "../http.ts";
import { sessionHeader } from "./admission.ts";
import { AnswerReader, type Ending, sessionHeaders } from "./answer.ts";
import { flag, optionalText, readHistory, readInput } from "./content.ts";
import { badField, type Call, INTERNAL_ERROR, notFound, type Reply, type Route } from "./contract.ts";
import { fingerprintOf } from "./idempotency.ts";
import { PictureStream, withPictures } from "./pictures.ts";
import { type Item, messageItem, outputOf, ResponseStream } from "./response-stream.ts";
import type { Api } from "./server.ts";
import { EventStream } from "./sse.ts";
import { type BegunTurn, sessionBusy, type TurnRequest } from "./turns.ts";

const FINGERPRINT = ["input", "instructions", "previous_response_id", "conversation", "model", "tools"];
/** Of a history that is to be cut. */
const KEPT_MESSAGES = 100;
const CUT_OFF = "interrupted by a restart";
const NOT_STORED = "its end could not be stored";
const NO_ANSWER = "The agent gave no answer.";

/** What a stored answer leaves to the next call. */
interface Chain {
  readonly history: readonly HistoryMessage[];
  readonly instructions: string | undefined;
  readonly sessionId: string | undefined;
}

/** One call, as its client sent it. */
interface Said {
  readonly id: string;
  readonly model: string;
  readonly stores: boolean;
  readonly conversation: string | undefined;
  readonly previous: string | undefined;
  readonly createdAt: number;
  /** What it follows, once that is known. */
  follow(chain: Chain | null): TurnRequest;
}

/** One call, and the conversation that it continues. */
interface Asked extends Omit<Said, "follow"> {
  readonly request: TurnRequest;
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
  readonly #lines: Lines;
  readonly #holder = newHolder();
  #opened: ResponseStore | null = null;

  constructor(api: Api) {
    this.#api = api;
    const { home, clock } = api.parts;
    this.#lines = new Lines(clock, api.settings.busySeconds);
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

  /** What follows on a stored answer, when it has ended. Rejects with an `ApiError` when there is none of that id. */
  async chain(id: string, signal: AbortSignal): Promise<Chain> {
    await this.#lines.ended(id, signal);
    return this.#chain(id);
  }

  async #chain(id: string): Promise<Chain> {
    const data = await this.#stored(id);
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
    const data = await this.#stored(id);
    if (data === null || !isRecord(data.response)) throw missing(id);
    return { status: 200, body: data.response };
  }

  /** One that nobody works on any more has failed, from when somebody asks for it. */
  async #stored(id: string) {
    return (await this.#store()).get(id, (data) => {
      const { response, holder } = data;
      if (!isRecord(response) || response.status !== "in_progress") return data;
      const isOurs = holder === this.#holder;
      const isAtWork = isOurs ? this.#lines.has(id) : typeof holder === "string" && !isGone(holder);
      return isAtWork ? data : { ...data, response: failed(response, isOurs ? NOT_STORED : CUT_OFF) };
    });
  }

  async #delete(id: string): Promise<Reply> {
    if (!(await (await this.#store()).delete(id))) throw missing(id);
    return { status: 200, body: { id, object: "response", deleted: true } };
  }

  async #create(call: Call): Promise<Reply | undefined> {
    const body = await call.body();
    const said = this.#read(call, body);
    const isAsync = this.#api.runs.isAsync(call);
    if (!isAsync && flag(body.stream, false))
      return this.#inLine(said, call.gone, (asked) => this.#stream(call, asked));
    const key = headerOf(call.headers, "idempotency-key");
    const signal = key === "" ? call.gone : new AbortController().signal;
    return this.#api.idempotency.run(
      key,
      () => fingerprintOf("responses", body, FINGERPRINT),
      () =>
        isAsync
          ? this.#submit(said)
          : this.#inLine(said, signal, (asked) => this.#answer({ ...asked, request: { ...asked.request, signal } })),
    );
  }

  /** The work of a call, behind every earlier one of its conversation: what those came to is what it follows. */
  async #inLine<T>(said: Said, signal: AbortSignal, work: (asked: Asked) => Promise<T>): Promise<T> {
    const leave = this.#lines.enter(said);
    try {
      await this.#lines.turnOf(said.id, signal);
      return await work(await this.#follow(said, signal));
    } finally {
      leave();
    }
  }

  async #follow(said: Said, signal: AbortSignal): Promise<Asked> {
    const previous = await this.#previous(said);
    return asking(said, previous, previous ? await this.chain(previous, signal) : null);
  }

  async #previous({ previous, conversation }: Said): Promise<string | undefined> {
    return previous || (conversation && (await (await this.#store()).conversation(conversation))) || undefined;
  }

  /** The call as a run. It takes its place in line before it is answered, and has its id from then on. */
  async #submit(said: Said): Promise<Reply> {
    const leave = this.#lines.enter(said);
    try {
      const previous = await this.#previous(said);
      let asked = asking(said, previous, previous ? await this.#chain(previous) : null);
      // Its name leads to it when its turn has come.
      if (said.stores) await this.#keep({ ...asked, conversation: undefined }, envelope(asked, [], null), null);
      return await this.#api.runs.submit(asked.request, {
        model: said.model,
        more: { response_id: said.id },
        ready: async (signal) => {
          await this.#lines.turnOf(said.id, signal);
          asked = await this.#follow(said, signal);
          if (said.stores) await this.#keep(asked, envelope(asked, [], null), null);
          return asked.request;
        },
        ended: async (reader, signal) => {
          await this.#finish({ ...asked, request: { ...asked.request, signal } }, reader);
        },
        failed: async (reason) => {
          if (said.stores) await this.#keep(asked, failed(envelope(asked, [], null), reason), null);
        },
        over: leave,
      });
    } catch (error) {
      leave();
      throw error;
    }
  }

  #read(call: Call, body: Readonly<Record<string, unknown>>): Said {
    const { settings, parts } = this.#api;
    const { system, history: given, input } = readInput(body.input);
    const own = readHistory(body.conversation_history);
    const previous = optionalText(body, "previous_response_id", { longest: 256 });
    const conversation = conversationName(body.conversation);
    if (previous !== undefined && conversation !== undefined)
      throw badField("conversation", "conversation and previous_response_id cannot be used together");
    const named = sessionHeader(call, "x-hermes-session-id", settings);
    const sessionKey = sessionHeader(call, "x-hermes-session-key", settings);
    const asked = optionalText(body, "instructions");
    const user = optionalText(body, "user", { longest: 256 });
    const newSession = randomUUID();
    return {
      id: `resp_${randomBytes(14).toString("hex")}`,
      model: optionalText(body, "model") || settings.modelName,
      stores: flag(body.store, true),
      ...{ conversation, previous, createdAt: Math.floor(parts.clock.now() / 1000) },
      follow: (chain) => {
        const all = [...(own ?? chain?.history ?? []), ...given];
        const instructions = [asked ?? chain?.instructions, system];
        return {
          sessionId: named ?? chain?.sessionId ?? newSession,
          isNamed: true,
          ...(named === undefined ? { history: body.truncation === "auto" ? all.slice(-KEPT_MESSAGES) : all } : {}),
          ...{ input, sessionKey, user, model: this.#api.modelFor(body.model), signal: call.gone },
          instructions: instructions.filter((one) => one !== undefined && one !== "").join("\n") || undefined,
        };
      },
    };
  }

  async #answer(asked: Asked): Promise<Reply> {
    const turn = await this.#api.turns.begin(asked.request);
    const reader = new AnswerReader();
    for await (const event of turn.events) reader.take(event);
    const { sessionId } = reader.ending.outcome;
    const response = await this.#finish(asked, reader);
    return { status: 200, headers: sessionHeaders(sessionId, asked.request.sessionKey), body: response };
  }

  /** What a turn came to that nobody followed. */
  async #finish(asked: Asked, reader: AnswerReader): Promise<object> {
    const { ending } = reader;
    // Who has left is told nothing: what is stored has what the model said.
    const text = ending.text || (isCut(asked, ending) ? "" : ending.incomplete?.error || NO_ANSWER);
    const output = [
      ...outputOf(ending.outcome.messages),
      ...(text === "" ? [] : [messageItem(await withPictures(text))]),
    ];
    const response = envelope(asked, output, ending);
    if (asked.stores) await this.#keep(asked, response, reader);
    return response;
  }

  async #stream(call: Call, asked: Asked): Promise<undefined> {
    const { settings, parts } = this.#api;
    const broken = new AbortController();
    const signal = AbortSignal.any([call.gone, broken.signal]);
    const turn = await this.#api.turns.begin({ ...asked.request, signal });
    const out = new EventStream(call.outgoing, settings.keepaliveSeconds);
    out.begin(sessionHeaders(turn.sessionId, asked.request.sessionKey));
    const stream = new ResponseStream(out);
    try {
      await this.#tell(asked, turn, stream);
    } catch (error) {
      // A stream that has begun says itself that it went wrong.
      const log = parts.home.log.child("api");
      log.error("a streamed response failed", error);
      broken.abort(INTERNAL_ERROR);
      await drained(turn.events).catch((cause) => log.warn("a turn broke off", cause));
      await stream.finish();
      const response = failed(envelope(asked, stream.output, null), INTERNAL_ERROR);
      if (asked.stores)
        await this.#keep(asked, response, null).catch((cause) => log.warn("a response is not stored", cause));
      await stream.event("response.failed", { response });
    }
    out.end();
    return undefined;
  }

  async #tell(asked: Asked, turn: BegunTurn, stream: ResponseStream): Promise<void> {
    const begun = envelope(asked, [], null);
    try {
      if (asked.stores) await this.#keep(asked, begun, null);
    } finally {
      await stream.event("response.created", { response: begun });
    }
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
    if (ending.isEmpty && !isCut(asked, ending)) stream.text(ending.text || ending.incomplete?.error || NO_ANSWER);
    await stream.finish();
    const response = envelope(asked, stream.output, ending);
    if (asked.stores) await this.#keep(asked, response, reader);
    await stream.event(ending.finish === "error" ? "response.failed" : "response.completed", { response });
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
      ...(reader === null ? { holder: this.#holder } : {}),
    };
    await (await this.#store()).put(id, data, conversation);
  }
}

/**
 * Who follows whom, among the calls of this process.
 *
 * - Calls of one conversation stand in line in the order they came in: each one's turn comes when all before it have left.
 * - Whoever waits longer than a session is waited for is refused, and nobody behind it overtakes those before it.
 */
class Lines {
  readonly #clock: Clock;
  readonly #seconds: number;
  /** Per conversation: resolves when everybody in its line has left. */
  readonly #last = new Map<string, Promise<unknown>>();
  /** Per response that is being worked on. */
  readonly #open = new Map<string, { readonly before: Promise<unknown>; readonly over: Promise<void> }>();

  constructor(clock: Clock, seconds: number) {
    this.#clock = clock;
    this.#seconds = seconds;
  }

  /** Takes a place; what it returns gives it up. */
  enter({ id, conversation }: Pick<Said, "id" | "conversation">): () => void {
    const { promise: over, resolve } = Promise.withResolvers<void>();
    const before = (conversation !== undefined && this.#last.get(conversation)) || Promise.resolve();
    this.#open.set(id, { before, over });
    const last = before.then(() => over);
    if (conversation !== undefined) this.#last.set(conversation, last);
    return () => {
      resolve();
      this.#open.delete(id);
      void last.then(() => {
        if (conversation !== undefined && this.#last.get(conversation) === last) this.#last.delete(conversation);
      });
    };
  }

  /** Somebody works on this response. */
  has(id: string): boolean {
    return this.#open.has(id);
  }

  async turnOf(id: string, signal: AbortSignal): Promise<void> {
    await this.#wait(this.#open.get(id)?.before, signal);
  }

  /** Resolves when nobody works on this response. */
  async ended(id: string, signal: AbortSignal): Promise<void> {
    await this.#wait(this.#open.get(id)?.over, signal);
  }

  async #wait(what: Promise<unknown> | undefined, signal: AbortSignal): Promise<void> {
    if (what === undefined) return;
    try {
      await within(() => what, this.#seconds * 1000, this.#clock, signal);
    } catch (error) {
      throw error instanceof OutOfTime ? sessionBusy() : error;
    }
  }
}

const missing = (id: string) => notFound(`there is no response ${id.slice(0, 80)}`, "response_not_found");

function conversationName(value: unknown): string | undefined {
  const name = isRecord(value) ? value.id : value;
  if (name === undefined || name === null) return undefined;
  if (typeof name === "string" && name.trim() !== "" && name.length <= 256) return name;
  throw badField("conversation", "conversation must be a name of at most 256 characters");
}

const asking = ({ follow, ...said }: Said, previous: string | undefined, chain: Chain | null): Asked => ({
  ...said,
  ...{ previous, request: follow(chain) },
});

/** Its client hung up, or stopped it. */
const isCut = ({ request: { signal } }: Asked, { outcome }: Ending) => outcome.interrupted && signal.aborted;

/** The object of an answer that has no end of its own. */
const failed = (response: object, message: string) => ({
  ...response,
  ...{ status: "failed", error: { message, type: "server_error", code: "server_error" } },
});

/** Read to its end: a turn that was never looked at would hold its conversation. */
async function drained(events: AsyncIterable<unknown>): Promise<void> {
  for await (const _ of events);
}

/** The object that both forms end with. `ending` null: it is being worked on. */
function envelope(asked: Asked, output: readonly Item[], ending: Ending | null) {
  const { id, model, createdAt, previous, request, stores } = asked;
  const isLeft = ending !== null && isCut(asked, ending);
  const isFailed = ending?.finish === "error" && !isLeft;
  const isTooLong = ending?.finish === "length";
  const status =
    ending === null ? "in_progress" : isFailed ? "failed" : isLeft || isTooLong ? "incomplete" : "completed";
  const { input = 0, output: written = 0 } = ending?.tokens ?? {};
  return {
    ...{ id, object: "response", status, created_at: createdAt, model, output },
    error: isFailed
      ? { message: ending.incomplete?.error || ending.text || NO_ANSWER, type: "server_error", code: "server_error" }
      : null,
    incomplete_details: isTooLong ? { reason: "max_output_tokens" } : null,
    instructions: request.instructions ?? null,
    previous_response_id: previous ?? null,
    ...{ store: stores, parallel_tool_calls: true, tool_choice: "auto", tools: [], metadata: {} },
    usage: ending === null ? null : { input_tokens: input, output_tokens: written, total_tokens: input + written },
  };
}
