// Turns of calls: one agent for each, opened like that of every door. Which conversation it is, who may wait for it, and when it ends.
import { createHash, randomBytes } from "node:crypto";
import type { AgentEvent, TurnOutcome } from "../../agent/events.ts";
import type { OpenRequest } from "../../agent/open-request.ts";
import type { OpenAgent } from "../../agent/opened.ts";
import { within } from "../../kit/clock.ts";
import { messageOf } from "../../kit/errors.ts";
import type { AssistantMessage, HistoryMessage, UserInput } from "../../llm/messages.ts";
import { ApiError, type ApiParts, SHUTTING_DOWN, TIMED_OUT } from "./contract.ts";
import type { ApiSettings, ModelRoute } from "./settings.ts";

/** What a call wants to have answered. */
export interface TurnRequest {
  readonly sessionId: string;
  /**
   * Somebody named the conversation: it is continued, and waited for while it is in use. Otherwise the client keeps it, its id was derived,
   * and while that is in use another one takes its place.
   */
  readonly isNamed: boolean;
  /** The conversation so far, as its client keeps it; absent: as it is stored. */
  readonly history?: readonly HistoryMessage[] | undefined;
  readonly input: UserInput;
  /** Laid over the prompt of the agent, this once. */
  readonly instructions?: string | undefined;
  /** Whose memory it is, where one server works for several. */
  readonly sessionKey?: string | undefined;
  readonly user?: string | undefined;
  readonly model?: ModelRoute | undefined;
  /** Questions can be answered. */
  readonly interactive?: boolean;
  /** Asked once the agent is held, before anything is said to it: what is said in place of `input`; null: nothing. */
  before?(opened: OpenAgent): Promise<UserInput | null>;
  /** Asked behind each turn, with the agent still held: what it is told next, within the same call; null: nothing more. */
  after?(outcome: TurnOutcome): Promise<UserInput | null>;
  /** Its reason is what the interrupt says. */
  readonly signal: AbortSignal;
}

/** A turn that has begun. */
export interface BegunTurn {
  readonly sessionId: string;
  /**
   * To be read to its end: whoever stops reading stops the turn. Each turn ends with one `done`; there is one turn, unless the request
   * has more to say behind it, or nothing at all.
   */
  readonly events: AsyncIterable<AgentEvent>;
}

/** An agent between two turns of its conversation, or with something at work in the background. */
interface Resting {
  readonly opened: OpenAgent;
  readonly signature: string;
  readonly since: number;
  readonly said: Said;
}

/** What rides on the requests of the running turn. */
interface Said {
  instructions: string | undefined;
}

interface Running {
  readonly opened: OpenAgent;
  isWaiting: boolean;
}

/** Where conversations ended whose history their client keeps: a history that begins so goes on, any other one was changed. */
class Ends {
  readonly #ends = new Map<string, { readonly count: number; readonly hash: string }>();

  keep(id: string, messages: readonly HistoryMessage[]): void {
    this.#ends.delete(id);
    this.#ends.set(id, { count: messages.length, hash: hashOf(messages.map(fieldsOf)) });
    const [oldest] = this.#ends.keys();
    if (this.#ends.size > MOST_ENDS && oldest !== undefined) this.#ends.delete(oldest);
  }

  goesOn(id: string, history: readonly HistoryMessage[]): boolean {
    const end = this.#ends.get(id);
    return end !== undefined && end.hash === hashOf(history.slice(0, end.count).map(fieldsOf));
  }
}

/** Of a message, all that may be sent. */
function fieldsOf(message: HistoryMessage): unknown {
  const { finish_reason: _, ...fields } = message as AssistantMessage; // no other has one
  return Object.entries(fields).sort(([a], [b]) => (a < b ? -1 : 1));
}

type TurnParts = Omit<ApiParts, "status">;
type TurnSettings = Pick<ApiSettings, "maxTurns" | "busySeconds">;

const WATCH_MS = 5_000;
/** Conversations that are continued soon keep their agent. */
const REST_MS = 600_000;
const MOST_RESTING = 32;
const MOST_ENDS = 1000;
/** Until turns that were interrupted have ended. */
const END_MS = 3_500;

export class Turns {
  readonly #parts: TurnParts;
  readonly #settings: TurnSettings;
  readonly #platform: "api_server" | "mcp";
  readonly #running = new Set<Running>();
  readonly #resting = new Map<string, Resting>();
  readonly #ends = new Ends();
  /** Ids of conversations that clients keep, while one of their turns runs. */
  readonly #derived = new Set<string>();
  readonly #over = new AbortController();
  #begun = 0;

  /** `platform`: the door that calls come in by; their conversations bear its name. */
  constructor(parts: TurnParts, settings: TurnSettings, platform: "api_server" | "mcp" = "api_server") {
    this.#parts = parts;
    this.#settings = settings;
    this.#platform = platform;
    void this.#watch();
  }

  get running(): number {
    return this.#begun;
  }

  /**
   * Resolves when the model is about to be asked. Rejects with an `ApiError` when it will not be: too many turns, a conversation that
   * stays in use, a server that stops.
   */
  async begin(request: TurnRequest): Promise<BegunTurn> {
    this.#admit();
    this.#begun++;
    let sessionId = request.isNamed ? request.sessionId : this.#freeId(request.sessionId);
    try {
      for (;;) {
        if (!request.isNamed) this.#derived.add(sessionId);
        const turn = await this.#try({ ...request, sessionId });
        if (turn !== null) return turn;
        this.#derived.delete(sessionId);
        sessionId = another(request.sessionId);
      }
    } catch (error) {
      this.#leave(sessionId);
      throw error;
    }
  }

  /** Somebody changes what is stored of a conversation: what is in memory of it goes first. */
  async forget(sessionId: string): Promise<void> {
    await this.#retire(sessionId);
  }

  /** Interrupts what runs and closes every agent. */
  async close(): Promise<void> {
    this.#over.abort();
    for (const { opened } of this.#running) opened.agent.interrupt(SHUTTING_DOWN);
    const { clock } = this.#parts;
    const deadline = clock.now() + END_MS;
    while (this.#running.size > 0 && clock.now() < deadline) await clock.sleep(20);
    await Promise.all([...this.#resting.keys()].map((id) => this.#retire(id)));
  }

  #admit(): void {
    const again = { "retry-after": "1" };
    if (this.#over.signal.aborted)
      throw new ApiError(503, "the server is stopping; try again", { code: "gateway_draining", headers: again });
    if (this.#begun >= this.#settings.maxTurns)
      throw new ApiError(429, `${this.#begun} turns are running already; try again when one has ended`, {
        ...{ type: "rate_limit_error", code: "rate_limit_exceeded", headers: again },
      });
  }

  #freeId(id: string): string {
    return this.#derived.has(id) ? another(id) : id;
  }

  #leave(sessionId: string): void {
    this.#begun--;
    this.#derived.delete(sessionId);
  }

  /** Null: a conversation that is in use, and another one will do. */
  async #try(request: TurnRequest): Promise<BegunTurn | null> {
    const { opened, said, signature } = await this.#open(request);
    const { agent } = opened;
    const running: Running = { opened, isWaiting: false };
    this.#running.add(running);
    let isBusy = false;
    const interrupt = () => agent.interrupt(String(request.signal.reason));
    const busy = new AbortController();
    const end = async () => {
      request.signal.removeEventListener("abort", interrupt);
      busy.abort();
      await this.#rest(request, { opened, said, signature }, { keeps: !isBusy });
      this.#running.delete(running);
    };
    const give = (why: string) => {
      isBusy = true;
      agent.interrupt(why);
    };
    try {
      const input = request.before ? await request.before(opened) : request.input;
      if (input === null) {
        await end();
        this.#leave(request.sessionId);
        return { sessionId: agent.sessionId, events: NO_EVENTS };
      }
      const events = agent.run(input, { interactive: request.interactive === true });
      request.signal.addEventListener("abort", interrupt, { once: true });
      for (;;) {
        const { value: event, done } = await events.next();
        if (done) throw new Error("the turn ended without a result");
        if (request.signal.aborted) interrupt();
        if (event.type === "status" && event.kind === "waiting") {
          if (!request.isNamed) give("in use");
          else
            void this.#parts.clock
              .sleep(this.#settings.busySeconds * 1000, busy.signal)
              .then(() => give("in use"), noop);
          continue;
        }
        if (event.type !== "turn_start" && event.type !== "done") continue;
        busy.abort();
        const isOver = event.type === "done";
        if (isOver && (isBusy || event.outcome.exitReason === "conversation_in_use")) {
          await end();
          if (!request.isNamed) return null;
          throw sessionBusy(event.outcome);
        }
        return { sessionId: agent.sessionId, events: this.#follow(event, events, running, request, end) };
      }
    } catch (error) {
      if (this.#running.has(running)) await end();
      throw error;
    }
  }

  /** What follows, its end included. */
  async *#follow(
    first: AgentEvent,
    events: AsyncGenerator<AgentEvent, void>,
    running: Running,
    request: TurnRequest,
    end: () => Promise<void>,
  ): AsyncGenerator<AgentEvent, void> {
    const { agent } = running.opened;
    let turn = events;
    try {
      yield first;
      if (first.type === "done") return;
      for (;;) {
        let outcome: TurnOutcome | null = null;
        for await (const event of turn) {
          // Stopped between two turns: there was nothing to interrupt yet.
          if (turn !== events && request.signal.aborted) agent.interrupt(String(request.signal.reason));
          running.isWaiting = event.type === "ask";
          yield event;
          if (event.type !== "done") continue;
          outcome = event.outcome;
          if (request.history !== undefined) this.#ends.keep(request.sessionId, outcome.messages);
        }
        const next = outcome && (await this.#next(request, outcome));
        if (next === null) return;
        turn = agent.run(next, { interactive: request.interactive === true });
      }
    } finally {
      await finish(turn);
      this.#leave(request.sessionId);
      void end().catch((error) => this.#parts.home.log.warn("an agent could not be closed", error));
    }
  }

  /** A server that stops waits for nobody's judgement. */
  async #next(request: TurnRequest, outcome: TurnOutcome): Promise<UserInput | null> {
    const { signal } = this.#over;
    if (!request.after || signal.aborted) return null;
    const stopping = Promise.withResolvers<null>();
    const stop = () => stopping.resolve(null);
    signal.addEventListener("abort", stop, { once: true });
    try {
      return await Promise.race([request.after(outcome), stopping.promise]);
    } finally {
      signal.removeEventListener("abort", stop);
    }
  }

  // --- agents

  async #open(request: TurnRequest): Promise<Pick<Resting, "opened" | "said" | "signature">> {
    const { home, store, clock, cwd } = this.#parts;
    const { sessionId, isNamed, history, sessionKey, user, model, instructions } = request;
    const { model: set } = home.config();
    const signature = hashOf([sessionKey, user, model, set, history === undefined]);
    const rested = this.#resting.get(sessionId);
    if (rested && isNamed && history === undefined) {
      this.#resting.delete(sessionId);
      if (rested.signature === signature) {
        rested.said.instructions = instructions;
        return rested;
      }
      await rested.opened.close("agent_close");
    }
    const said: Said = { instructions };
    const stored = history === undefined ? await store.get(sessionId) : null;
    const { openAgent } = await import("../../agent/open.ts");
    const opened = await openAgent({
      ...{ home, clock, cwd, platform: this.#platform, source: this.#platform, interactive: false },
      store: async () => store,
      model: model?.model ?? (set.default || undefined),
      provider: model?.provider ?? (set.provider || undefined),
      ...(stored ? { resume: { name: sessionId } } : { sessionId }),
      ...{ history, historyGoesOn: history && this.#ends.goesOn(sessionId, history), sessionKey },
      ...(user === undefined ? {} : { sender: { userId: user } }),
      overlay: () => layered(home.config().agent.system_prompt, said.instructions),
    } satisfies OpenRequest);
    return { opened, said, signature };
  }

  /** Behind a turn: what looks back may finish; then the agent is kept for what comes next, or closed. */
  async #rest(
    { isNamed, history }: TurnRequest,
    { opened, said, signature }: Pick<Resting, "opened" | "said" | "signature">,
    { keeps }: { readonly keeps: boolean },
  ): Promise<void> {
    const { clock } = this.#parts;
    const id = opened.agent.sessionId;
    const goesOn = isNamed && history === undefined;
    const isNeeded = keeps && !this.#over.signal.aborted && (goesOn || opened.processes.running > 0);
    if (!isNeeded || this.#resting.has(id)) {
      // A review that fell due is not cut off, and nobody waits for it.
      if (!this.#over.signal.aborted) void opened.agent.settled().then(() => this.#closeAgent(opened));
      else await this.#closeAgent(opened);
      return;
    }
    this.#resting.set(id, { opened, said, signature, since: clock.now() });
    const idle = [...this.#resting].find(([, one]) => one.opened.processes.running === 0);
    if (this.#resting.size > MOST_RESTING && idle) await this.#retire(idle[0]);
  }

  async #retire(id: string): Promise<void> {
    const rested = this.#resting.get(id);
    this.#resting.delete(id);
    if (rested) await this.#closeAgent(rested.opened);
  }

  async #closeAgent(opened: OpenAgent): Promise<void> {
    const { clock, home } = this.#parts;
    await within(() => opened.close("agent_close"), END_MS, clock).catch((error) =>
      home.log.warn(`an agent was not closed: ${messageOf(error)}`),
    );
  }

  /** Ends turns that show no sign of life, and lets go of agents that nobody came back to. */
  async #watch(): Promise<void> {
    const { clock, home } = this.#parts;
    const { signal } = this.#over;
    while (!signal.aborted) {
      await clock.sleep(WATCH_MS, signal).catch(noop);
      const limit = home.config().agent.gateway_timeout;
      for (const { opened, isWaiting } of this.#running)
        if (limit > 0 && !isWaiting && opened.agent.activity().secondsSinceActivity >= limit)
          opened.agent.interrupt(TIMED_OUT);
      for (const [id, { opened, since }] of this.#resting)
        if (opened.processes.running === 0 && clock.now() - since > REST_MS) await this.#retire(id);
    }
  }
}

const noop = () => undefined;

const NO_EVENTS: AsyncIterable<AgentEvent> = {
  [Symbol.asyncIterator]: () => ({ next: async () => ({ done: true, value: undefined }) }),
};

const finish = (events: AsyncGenerator<AgentEvent, void>) => events.return().catch(noop);

const another = (id: string) => `${id}-${randomBytes(2).toString("hex")}`;

/** The turn says who holds the conversation, where it found out itself; one that we stopped waiting with only says that it was stopped. */
export function sessionBusy(outcome?: TurnOutcome): ApiError {
  const inUse = "the session is in use; try again when its turn has ended";
  return new ApiError(429, outcome?.interrupted ? inUse : (outcome?.finalText ?? inUse), {
    ...{ type: "rate_limit_error", code: "session_busy", headers: { "retry-after": "5" } },
  });
}

/** What the settings lay over the prompt stays; the client's words come behind it. */
function layered(own: string, given: string | undefined): string | undefined {
  if (given === undefined || given.trim() === "") return undefined;
  return [own.trim(), given.trim()].filter((text) => text !== "").join("\n\n");
}

const hashOf = (facts: unknown) => createHash("sha256").update(JSON.stringify(facts)).digest("hex");

/** The id of a conversation that its client keeps: the same for each of its calls, and another for another user. */
export function derivedId(
  system: string | undefined,
  firstUserText: string,
  whose: readonly (string | undefined)[],
): string {
  const said = `${system ?? ""}\n${firstUserText}`;
  // Nothing that is said in one conversation makes the name of another.
  const isAnybodys = whose.every((one) => one === undefined);
  const named = isAnybodys ? said : JSON.stringify([said, ...whose]);
  return `api-${createHash("sha256").update(named).digest("hex").slice(0, 16)}`;
}
