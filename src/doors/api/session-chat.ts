// Talking in a stored conversation: one answer, or a stream of named events in which questions can be answered.
import { randomBytes } from "node:crypto";
import type { AgentEvent, TurnOutcome } from "../../agent/events.ts";
import type { OpenAgent } from "../../agent/opened.ts";
import { goalCommand } from "../../commands/goals.ts";
import { said } from "../../home/language/words.ts";
import { messageOf } from "../../kit/errors.ts";
import { asText } from "../../kit/json.ts";
import type { UserInput } from "../../llm/messages.ts";
import { INSTRUCTIONS_KEY } from "../../sessions/session-id.ts";
import { CallGoals } from "../call-goals.ts";
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

export function sessionChatRoutes(api: Api): readonly Route[] {
  const streams: Streams = new Map();
  return [
    { method: "POST", path: "/api/sessions/:id/chat", handle: (call) => chat(api, call) },
    { method: "POST", path: "/api/sessions/:id/chat/stream", handle: (call) => stream(api, call, streams) },
  ];
}

/** By conversation: the newest stream in which something was said. It is the one that goes on with the goal. */
type Streams = Map<string, StreamGoal>;

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

async function stream(api: Api, call: Call, streams: Streams): Promise<undefined> {
  const request = await readRequest(api, call);
  const controller = new AbortController();
  call.gone.addEventListener("abort", () => controller.abort(CLIENT_GONE), { once: true });
  const goal = new StreamGoal(api, request, controller.signal, streams);
  const turn = await api.turns
    .begin({
      ...{ ...request, interactive: true, signal: controller.signal },
      before: (opened) => goal.before(opened),
      after: (outcome) => goal.after(outcome),
    })
    .catch((error: unknown) => {
      goal.close();
      throw error;
    });
  const out = new EventStream(call.outgoing, api.settings.keepaliveSeconds);
  const talk = new Talk(api, out, turn.sessionId);
  const ended = Promise.withResolvers<void>();
  const unregister = api.runs.register(talk.runId, { questions: talk.questions, controller, ended: ended.promise });
  out.begin(sessionHeaders(turn.sessionId, request.sessionKey));
  try {
    await talk.begin();
    await goal.tellBy((line) => talk.line(line));
    for await (const event of turn.events) await talk.take(event);
    await talk.finish();
  } catch (error) {
    api.parts.home.log.error("a stream of a session failed", error);
    await talk.tell("error", { message: messageOf(error) });
  } finally {
    goal.close();
    unregister();
    ended.resolve();
  }
  await talk.tell("done", {});
  out.end();
  return undefined;
}

/** The standing goal of a conversation while one of its streams is open. */
class StreamGoal {
  readonly #api: Api;
  readonly #request: TurnRequest;
  readonly #stop: AbortSignal;
  readonly #streams: Streams;
  #goals: CallGoals | null = null;
  /** Said before the stream had begun. */
  readonly #early: string[] = [];
  #tell: (line: string) => Promise<void> = async (line) => void this.#early.push(line);

  constructor(api: Api, request: TurnRequest, stop: AbortSignal, streams: Streams) {
    this.#api = api;
    this.#request = request;
    this.#stop = stop;
    this.#streams = streams;
  }

  async tellBy(tell: (line: string) => Promise<void>): Promise<void> {
    this.#tell = tell;
    for (const line of this.#early.splice(0)) await tell(line);
  }

  /** What is said to the agent: the message, or what a command about the goal makes of it. */
  async before(opened: OpenAgent): Promise<UserInput | null> {
    const { input, sessionId } = this.#request;
    const { home, clock } = this.#api.parts;
    const goals = new CallGoals(opened, {
      clock,
      config: () => home.config(),
      userWaits: () => this.#streams.get(sessionId) !== this,
      tell: (line) => this.#tell(line),
      onError: (error) => home.log.warn("the goal of a session could not be looked after", error),
    });
    this.#goals = goals;
    await goals.begin();
    const command = goalCommand(input.text, (text) => home.redact.fromUser(text).text);
    if (command === null) return this.#speak(input);
    const lines: string[] = [];
    const say = (line: string) => void lines.push(said(line));
    await command({ goals: goals.goals, busy: this.#streams.has(sessionId), say, warn: say });
    for (const line of lines) await this.#tell(line);
    const next = await goals.next();
    return next && this.#speak({ ...input, ...next });
  }

  async after(outcome: TurnOutcome): Promise<UserInput | null> {
    return (await this.#goals?.after(outcome, this.#stop, "in the API")) ?? null;
  }

  close(): void {
    const { sessionId } = this.#request;
    if (this.#streams.get(sessionId) === this) this.#streams.delete(sessionId);
    this.#goals?.close();
  }

  giveWay(): void {
    this.#goals?.userSpoke();
  }

  /** An earlier stream of the conversation leaves the goal to this one. */
  #speak(input: UserInput): UserInput {
    const { sessionId } = this.#request;
    const earlier = this.#streams.get(sessionId);
    this.#streams.set(sessionId, this);
    earlier?.giveWay();
    return input;
  }
}

/** The turns of one call, told to one client: one run, a message for each turn. */
class Talk {
  readonly runId = newRunId();
  readonly questions = new Questions();
  readonly #api: Api;
  readonly #out: EventStream;
  #reader = new AnswerReader();
  #pictures = new PictureStream();
  /** Of the answer that is being written; null: none was begun. */
  #messageId: string | null = null;
  #output = "";
  readonly #tokens = { input: 0, output: 0 };
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
  }

  async take(event: AgentEvent): Promise<void> {
    this.#sessionId = event.sessionId;
    if (this.#messageId === null) await this.#beginMessage();
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
      case "done":
        return this.#endMessage();
    }
  }

  /** What became of the goal: a message that is not the agent's. */
  async line(content: string): Promise<void> {
    const id = newMessageId();
    await this.tell("message.started", { message_id: id, role: "system" });
    await this.tell("assistant.delta", { message_id: id, delta: content });
    await this.tell("assistant.completed", { message_id: id, content, finish_reason: "stop" });
    if (!this.#reader.isOver) this.#output ||= content;
  }

  async finish(): Promise<void> {
    const ending = this.#reader.isOver ? this.#reader.ending : null;
    const { input, output } = this.#tokens;
    const usage = { input_tokens: input, output_tokens: output, total_tokens: input + output };
    if (ending?.isEmpty) return;
    const more = ending?.incomplete ? { hermes: ending.incomplete } : {};
    await this.tell("run.completed", { output: ending?.text ?? this.#output, usage, ...more });
  }

  async #beginMessage(): Promise<void> {
    this.#messageId = newMessageId();
    this.#reader = new AnswerReader();
    this.#pictures = new PictureStream();
    await this.tell("message.started", { message_id: this.#messageId, role: "assistant" });
  }

  async #endMessage(): Promise<void> {
    const { text, incomplete, isEmpty, finish, tokens } = this.#reader.ending;
    const id = this.#messageId;
    this.#messageId = null;
    this.#tokens.input += tokens.input;
    this.#tokens.output += tokens.output;
    if (isEmpty)
      return this.tell("error", {
        message: text || incomplete?.error || "the agent gave no answer",
        code: "agent_incomplete",
      });
    await this.tell("assistant.completed", {
      message_id: id,
      content: await withPictures(text),
      finish_reason: finish,
      ...(incomplete ? { hermes: incomplete } : {}),
    });
  }
}

const newMessageId = () => `msg_${randomBytes(12).toString("hex")}`;
