// /v1/runs: work that goes on whether anybody listens or not. Its events can be read while it lasts and for an hour after, from any point.
import { randomBytes } from "node:crypto";
import type { AgentEvent } from "../../agent/events.ts";
import { within } from "../../kit/clock.ts";
import { messageOf } from "../../kit/errors.ts";
import { newHolder } from "../../sessions/lanes.ts";
import type { ApiRun, ApiRunEvent, WorkStore } from "../../sessions/work.ts";
import { headerOf } from "../http.ts";
import { sessionHeader, sessionId } from "./admission.ts";
import { AnswerReader, isHidden } from "./answer.ts";
import { optionalText, readHistory, readInput } from "./content.ts";
import { ApiError, type Call, notFound, type Reply, type Route, STOP_ASKED } from "./contract.ts";
import { fingerprintOf } from "./idempotency.ts";
import { LiveRun } from "./live-run.ts";
import type { Questions } from "./questions.ts";
import type { Api } from "./server.ts";
import { EventStream } from "./sse.ts";
import type { TurnRequest } from "./turns.ts";

const MOST_ACTIVE = 10;
const STOP_MS = 5_000;
const LOOK_AGAIN_MS = 500;
const FINGERPRINT = [
  ...["input", "instructions", "previous_response_id", "conversation_history", "session_id", "model"],
];

/** What of a turn can be answered and stopped from outside. */
interface Open {
  readonly questions: Questions;
  readonly controller: AbortController;
  readonly ended: Promise<void>;
}

/** Whose run it is: what is asked when its turn has come, and who is told how it ended. */
interface Submitted {
  readonly model?: string | undefined;
  /** Fields of the answer. */
  readonly more?: Readonly<Record<string, unknown>>;
  /** What the turn is to answer, once it may begin. */
  ready?(signal: AbortSignal): Promise<TurnRequest>;
  /** The turn is over; the run ends when this resolves. */
  ended?(reader: AnswerReader, signal: AbortSignal): Promise<void>;
  /** There was no turn, or it broke. */
  failed?(reason: string): Promise<void>;
  /** Whatever came of it. */
  over?(): void;
}

export class Runs {
  readonly #api: Api;
  readonly #work: WorkStore;
  readonly #holder = newHolder();
  readonly #live = new Map<string, LiveRun>();
  /** Streams of sessions: they wait for approvals too. */
  readonly #streams = new Map<string, Open>();

  private constructor(api: Api, work: WorkStore) {
    this.#api = api;
    this.#work = work;
  }

  /** Runs that a process left behind end as failed. */
  static async open(api: Api): Promise<Runs> {
    const work = await api.parts.store.work();
    await work.failAbandonedApiRuns();
    return new Runs(api, work);
  }

  get routes(): readonly Route[] {
    return [
      { method: "POST", path: "/v1/runs", handle: (call) => this.#start(call) },
      { method: "GET", path: "/v1/runs/:id", handle: (call) => this.#status(call.param("id")) },
      { method: "GET", path: "/v1/runs/:id/events", handle: (call) => this.#events(call) },
      { method: "POST", path: "/v1/runs/:id/approval", handle: (call) => this.#approve(call) },
      { method: "POST", path: "/v1/runs/:id/stop", handle: (call) => this.#stop(call.param("id")) },
    ];
  }

  /** The client does not want to wait: `Prefer: respond-async`. */
  isAsync({ headers }: Pick<Call, "headers">): boolean {
    return /(?:^|[,;\s])respond-async(?:$|[,;\s])/i.test(headerOf(headers, "prefer"));
  }

  /** Begins a run; the answer comes before its turn does. */
  async submit(request: TurnRequest, submitted: Submitted = {}): Promise<Reply> {
    if (this.#live.size >= MOST_ACTIVE)
      throw new ApiError(429, `${MOST_ACTIVE} runs are active; wait for one to end, or stop it`, {
        ...{ type: "rate_limit_error", code: "rate_limit_exceeded", headers: { "retry-after": "5" } },
      });
    const { clock, home } = this.#api.parts;
    const id = newRunId();
    const live = new LiveRun({
      ...{ id, work: this.#work, clock },
      report: (error) => home.log.warn("events of a run could not be stored; they are stored with the next", error),
    });
    this.#live.set(id, live);
    try {
      const { sessionId: session } = request;
      const model = submitted.model ?? request.model?.model ?? this.#api.settings.modelName;
      await this.#work.startApiRun({ id, sessionId: session, holder: this.#holder, model });
    } catch (error) {
      this.#live.delete(id);
      throw error;
    }
    void this.#drive(live, request, submitted);
    const body = { run_id: id, status: "started", ...submitted.more };
    return { status: 202, headers: { location: `/v1/runs/${id}` }, body };
  }

  /** A stream of a session can be asked and stopped like a run; resolves to how to take it off again. */
  register(id: string, open: Open): () => void {
    this.#streams.set(id, open);
    return () => this.#streams.delete(id);
  }

  /** The settings say how long a question waits. */
  get questionSeconds(): number {
    return this.#api.parts.home.config().approvals.gateway_timeout;
  }

  /** Resolves when every run of this process has ended: their turns were interrupted. */
  async close(): Promise<void> {
    const { clock } = this.#api.parts;
    const runs = [...this.#live.values()];
    await within(() => Promise.all(runs.map(({ ended }) => ended)), STOP_MS, clock).catch(() => undefined); // what is left fails with the next start
  }

  // --- calls

  async #start(call: Call): Promise<Reply> {
    const body = await call.body();
    const { settings, responses, idempotency } = this.#api;
    const { system, history: given, input } = readInput(body.input);
    const own = readHistory(body.conversation_history);
    const previous = optionalText(body, "previous_response_id", { longest: 256 });
    const instructions = optionalText(body, "instructions");
    const named = optionalText(body, "session_id", { longest: 256 });
    const chain = previous === undefined ? null : await responses.chain(previous, call.gone);
    const session = named === undefined ? chain?.sessionId : sessionId(named, "session_id");
    const before = own ?? chain?.history;
    const history = before === undefined && given.length === 0 ? undefined : [...(before ?? []), ...given];
    const model = optionalText(body, "model") || settings.modelName;
    const sessionKey = sessionHeader(call, "x-hermes-session-key", settings);
    const said = [instructions ?? chain?.instructions, system].filter((text) => text !== undefined).join("\n");
    const key = headerOf(call.headers, "idempotency-key");
    return idempotency.run(
      key,
      () => fingerprintOf("runs", body, FINGERPRINT),
      () =>
        this.submit(
          {
            sessionId: session ?? `run-${randomBytes(8).toString("hex")}`,
            isNamed: true,
            ...{ history, input, instructions: said || undefined, sessionKey },
            model: this.#api.modelFor(body.model),
            signal: call.gone, // another one takes its place
          },
          { model },
        ),
    );
  }

  async #status(id: string): Promise<Reply> {
    const run = await this.#find(id);
    const { sessionId: session, status, model, createdAt, updatedAt, output, usage, error } = run;
    const last = this.#live.get(id)?.lastEvent ?? (await this.#work.apiRunEvents(id, 0)).at(-1)?.event.event ?? null;
    const body = {
      ...{ object: "hermes.run", run_id: id, status, session_id: session, model },
      ...{ created_at: createdAt, updated_at: updatedAt, last_event: last },
      ...(output === null ? {} : { output }),
      ...(usage === null ? {} : { usage }),
      ...(error === null ? {} : { error }),
    };
    return { status: 200, body };
  }

  async #find(id: string): Promise<ApiRun> {
    const found = await this.#work.apiRun(id);
    if (found === null)
      throw notFound(`there is no run ${id}; runs are kept for an hour after their end`, "run_not_found");
    if (found.endedAt !== null || found.holder === this.#holder) return found;
    // Its process may be gone.
    await this.#work.failAbandonedApiRuns();
    return (await this.#work.apiRun(id)) ?? found;
  }

  async #events(call: Call): Promise<undefined> {
    const id = call.param("id");
    await this.#find(id);
    const from = Number(headerOf(call.headers, "last-event-id") || (call.query.get("last_event_id") ?? 0));
    const after = Number.isSafeInteger(from) && from > 0 ? from : 0;
    const out = new EventStream(call.outgoing, this.#api.settings.keepaliveSeconds);
    out.begin();
    const events = this.#live.get(id)?.read(after, call.gone) ?? this.#stored(id, after, call.gone);
    for await (const { id: number, event } of events) await out.numbered(number, event);
    await out.comment("stream closed");
    out.end();
    return undefined;
  }

  /** A run that has ended, or that another process drives. */
  async *#stored(id: string, after: number, signal: AbortSignal): AsyncGenerator<ApiRunEvent, void> {
    for (let last = after; !signal.aborted; ) {
      const { endedAt } = await this.#find(id);
      for (const event of await this.#work.apiRunEvents(id, last)) {
        last = event.id;
        yield event;
      }
      if (endedAt !== null) return;
      await this.#api.parts.clock.sleep(LOOK_AGAIN_MS, signal).catch(() => undefined); // the client is gone
    }
  }

  async #approve(call: Call): Promise<Reply> {
    const id = call.param("id");
    const body = await call.body();
    const open = this.#live.get(id) ?? this.#streams.get(id);
    if (!open) {
      await this.#find(id);
      throw new ApiError(409, "the run has ended, or another process drives it", { code: "approval_not_active" });
    }
    const { choice, resolved } = open.questions.respond(body);
    return { status: 200, body: { object: "hermes.run.approval_response", run_id: id, choice, resolved } };
  }

  async #stop(id: string): Promise<Reply> {
    const open = this.#live.get(id) ?? this.#streams.get(id);
    if (!open) {
      const { status, endedAt } = await this.#find(id);
      if (endedAt !== null) return { status: 200, body: { run_id: id, status } };
      throw new ApiError(409, "another process drives this run; stop it there", { code: "run_not_here" });
    }
    if (open instanceof LiveRun) open.change({ status: "stopping" });
    open.controller.abort(STOP_ASKED);
    await within(() => open.ended, STOP_MS, this.#api.parts.clock).catch(() => undefined); // it ends a little later
    return { status: 200, body: { run_id: id, status: "stopping" } };
  }

  // --- one run

  async #drive(live: LiveRun, request: TurnRequest, { ready, ended, failed, over }: Submitted): Promise<void> {
    const reader = new AnswerReader();
    try {
      const { signal } = live.controller;
      const turn = await this.#api.turns.begin({ ...((await ready?.(signal)) ?? request), interactive: true, signal });
      live.change({ status: "running", sessionId: turn.sessionId });
      const thoughts = new Thoughts(live);
      for await (const event of turn.events) {
        if (event.type !== "thinking") thoughts.tell();
        live.delta(reader.take(event));
        if (event.type === "thinking") thoughts.add(event.delta);
        else this.#tell(live, event);
      }
      await ended?.(reader, signal);
      await this.#finish(live, reader);
    } catch (error) {
      const stopped = live.controller.signal.aborted;
      if (!(error instanceof ApiError) && !stopped) this.#api.parts.home.log.error("a run failed", error);
      const reason = stopped ? String(live.controller.signal.reason) : messageOf(error);
      await failed?.(reason).catch((cause) => this.#api.parts.home.log.error("the end of a run is not stored", cause));
      if (stopped) await live.end("run.cancelled", {}, { status: "cancelled" });
      else await live.end("run.failed", { error: reason }, { status: "failed", error: reason });
    } finally {
      this.#live.delete(live.id);
      over?.();
    }
  }

  #tell(live: LiveRun, event: AgentEvent): void {
    const { home, clock } = this.#api.parts;
    switch (event.type) {
      case "tool_start":
        if (!isHidden(event.call))
          live.push("tool.started", {
            ...{ tool: event.call.name, tool_call_id: event.call.id, preview: home.redact(event.call.preview) },
          });
        return;
      case "tool_end":
        if (!isHidden(event.call))
          live.push("tool.completed", {
            ...{ tool: event.call.name, tool_call_id: event.call.id },
            ...{ duration: Math.round(event.ms) / 1000, error: event.failed },
          });
        return;
      case "subagent": {
        if (event.phase !== "start" && event.phase !== "complete") return;
        const { id, parentId, goal, status, depth, model } = event;
        const fields = { subagent_id: id, parent_id: parentId, goal, depth, model, ...(status ? { status } : {}) };
        live.push(`subagent.${event.phase}`, fields);
        return;
      }
      case "compressed":
        if (event.newSessionId !== event.oldSessionId) live.change({ sessionId: event.newSessionId });
        return;
      case "ask":
        live.questions.ask(event.request, {
          ...{ clock, seconds: this.questionSeconds },
          tell: (name, fields) => {
            live.push(name, fields);
            live.change({ status: live.questions.waits ? "waiting_for_approval" : "running" });
          },
        });
    }
  }

  async #finish(live: LiveRun, reader: AnswerReader): Promise<void> {
    const { outcome, text, tokens, isEmpty, finish, incomplete } = reader.ending;
    const usage = {
      ...{ input_tokens: tokens.input, output_tokens: tokens.output },
      total_tokens: tokens.input + tokens.output,
    };
    const { sessionId: session } = outcome;
    if (live.controller.signal.aborted)
      return live.end("run.cancelled", { usage }, { status: "cancelled", usage, sessionId: session });
    if (isEmpty || outcome.failed || outcome.interrupted) {
      const error = (outcome.interrupted ? "" : text) || incomplete?.error || "the agent gave no answer";
      return live.end("run.failed", { error, usage }, { status: "failed", error, usage, sessionId: session });
    }
    const more = incomplete ? { finish_reason: finish, hermes: incomplete } : {};
    return live.end(
      "run.completed",
      { output: text, usage, ...more },
      { status: "completed", output: text, usage, sessionId: session },
    );
  }
}

/** What the model thought in one step, told as one event. */
class Thoughts {
  readonly #live: LiveRun;
  #text = "";

  constructor(live: LiveRun) {
    this.#live = live;
  }

  add(delta: string): void {
    this.#text += delta;
  }

  tell(): void {
    const text = this.#text.trim();
    this.#text = "";
    if (text !== "") this.#live.push("reasoning.available", { text });
  }
}

export const newRunId = () => `run_${randomBytes(16).toString("hex")}`;
