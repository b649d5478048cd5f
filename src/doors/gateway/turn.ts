// One turn of a chat: from rows that wait in the inbox to an answer that is promised in the outbox. Whatever cuts it off, the rows say where
// it stood.

import type { AgentEvent, TurnOutcome } from "../../agent/events.ts";
import type { OpenAgent } from "../../agent/opened.ts";
import { type TurnRecord, WithdrawnError } from "../../agent/turn-kit.ts";
import { said, t } from "../../home/language/words.ts";
import { messageOf } from "../../kit/errors.ts";
import type { UserInput } from "../../llm/messages.ts";
import { type LaneToken, type SessionStore, StoreError } from "../../sessions/store.ts";
import type { InboxRow } from "../../sessions/work.ts";
import { withReferences } from "../typed-input.ts";
import { type ChatSource, isShared } from "./chat.ts";
import type { ChatMessage } from "./contract.ts";
import type { Borrowed, Conversations } from "./conversations.ts";
import type { ChatGoals } from "./goals.ts";
import type { Mirror } from "./mirror.ts";
import type { AskedPlace, Questions } from "./questions.ts";
import { type Bot, type QueuedMessage, Reply, type ReplyPorts } from "./reply.ts";
import { type ChatEntry, localIso, type Routes } from "./routes.ts";

/** Why a turn is cut off. Control signals: no model ever reads them. */
export type Interruption = "newer" | "stop" | "new" | "timeout" | "shutdown" | "restart";

const REASONS: Readonly<Record<Interruption, string>> = {
  newer: "Stop requested",
  stop: "Stop requested",
  new: "Session reset requested",
  timeout: "Execution timed out (inactivity)",
  shutdown: "Gateway shutting down",
  restart: "Gateway restarting",
};

/** What the turns of a gateway share. */
export interface TurnPorts extends ReplyPorts {
  readonly store: SessionStore;
  readonly routes: Routes;
  readonly conversations: Conversations;
  readonly questions: Questions;
  readonly goals: ChatGoals;
  readonly mirror: Mirror;
  /** What was written, with its files, as the model gets it; `outside`: whose text besides the sender's is in it. */
  readInput(
    messages: readonly QueuedMessage[],
    options: { readonly shared: boolean; readonly foreign: boolean; readonly conversation: OpenAgent },
  ): Promise<UserInput & { readonly outside: readonly string[] }>;
  isAllowed(message: ChatMessage): Promise<boolean>;
  event(name: "agent:start" | "agent:step" | "agent:end", payload: Readonly<Record<string, unknown>>): void;
}

export const MOST_ATTEMPTS = 3;
/** Ends of turns that were not stored, for which the message is not to blame. */
export const NOT_ITS_FAULT: ReadonlySet<string> = new Set(["store_failed", "conversation_in_use", "budget_cap"]);
const LATE_SECONDS = 600;
const WATCH_MS = 5000;
const HYGIENE = 0.85;
const STILL_TOO_LONG = 0.95;
const FEWEST = 4;

export const CUT_OFF =
  "[The last turn was cut off before it was finished. The results above are valid: finish what was asked, without doing again what is done.]";

export class ChatTurn {
  readonly key: string;
  readonly rows: readonly InboxRow[];
  readonly startedAt: number;
  readonly #ports: TurnPorts;
  readonly #messages: readonly QueuedMessage[];
  /** Rows that came in while it ran and became part of it. */
  readonly #joined: InboxRow[] = [];
  #why: Interruption | null = null;
  #borrowed: Borrowed | null = null;
  #outcome: TurnOutcome | null = null;
  readonly #reply: Reply;
  /** It has its conversation to itself: before that it waits for another process. */
  #isPlaying = false;
  #finished = false;

  constructor(key: string, rows: readonly InboxRow[], ports: TurnPorts) {
    this.key = key;
    this.rows = rows;
    this.#ports = ports;
    const messages = rows.map(({ event }) => event as QueuedMessage); // written by us
    // What was overheard came before, whoever's row it is.
    this.#messages = [...messages.filter((one) => one.observed), ...messages.filter((one) => !one.observed)];
    const heardVoice = messages.some(({ type, observed }) => type === "voice" && !observed);
    this.#reply = new Reply(this.#last, rows[0]?.id ?? 0, ports, { heardVoice });
    this.startedAt = ports.clock.now();
  }

  get source(): ChatSource {
    return this.#last.source;
  }

  get conversation(): OpenAgent | null {
    return this.#borrowed?.conversation ?? null;
  }

  /** For the goal of the conversation, when the turn is over. */
  get ended() {
    const { key, conversation } = this;
    return { key, conversation, message: this.#last, outcome: this.#outcome, why: this.#why };
  }

  /** Its answer is stored: from here on it can no longer be stopped. */
  get isFinished(): boolean {
    return this.#finished;
  }

  get isPlaying(): boolean {
    return this.#isPlaying;
  }

  get place(): AskedPlace {
    const { entry, account } = this.#bot;
    const { settings } = this.#ports;
    const { source } = this;
    return {
      ...{ key: this.key, source, target: this.#reply.target, platform: entry.name, account },
      shared: isShared(source, settings.sharing),
    };
  }

  /** A newer message took its place. */
  get wasReplaced(): boolean {
    return this.#why === "newer";
  }

  /** Ends it soon; the first reason counts. */
  interrupt(why: Interruption): void {
    this.#why ??= why;
    this.conversation?.agent.interrupt(REASONS[why]);
  }

  /** Says something into the running turn. The row ends with the turn, if the turn has read it by then. */
  steer(row: InboxRow, text: string): boolean {
    const agent = this.conversation?.agent;
    if (this.#why !== null || this.#finished || !agent?.steer(text)) return false;
    this.#joined.push(row);
    return true;
  }

  /** A row that answered a question of this turn ends with it. */
  join(row: InboxRow): void {
    this.#joined.push(row);
  }

  /** Resolves when the turn has ended or cannot go on now; `later`: its rows wait for another try. */
  async run(): Promise<"ended" | "later"> {
    const { log, conversations, mirror } = this.#ports;
    try {
      if (await this.#endsUnplayed()) return "ended";
      if (this.rows.every(({ messageId }) => messageId === null)) await mirror.settle(this.key, { begins: true });
      const { source, channelPrompt, skills } = this.#last;
      this.#borrowed = await conversations.borrow(this.key, { source, channelPrompt, skills });
    } catch (error) {
      // A store that cannot be written now may be, later: the message waits for that.
      if (!isForUser(error) || error instanceof StoreError) throw error;
      log.warn(`a message of ${this.key} could not be answered`, error);
      await this.#settle("failed", messageOf(error));
      return "ended";
    }
    try {
      return await this.#play(this.#borrowed);
    } finally {
      this.#borrowed.release();
      await mirror.settle(this.key);
    }
  }

  // --- before the turn

  /** Rows that end without a turn. */
  async #endsUnplayed(): Promise<boolean> {
    const { isAllowed, store, routes, settings, clock } = this.#ports;
    const begun = this.rows.some(({ messageId }) => messageId !== null);
    if (!(await isAllowed(this.#last))) {
      await this.#settle("refused");
      return true;
    }
    if (this.rows.some(({ attempts }) => attempts >= MOST_ATTEMPTS)) {
      const entry = await routes.get(this.key);
      await this.#settle("dead", GAVE_UP, entry ? { ...entry, suspended: true } : undefined);
      return true;
    }
    if (!begun) return false;
    const freshness = settings.home.config().agent.gateway_auto_continue_freshness;
    const entry = await routes.get(this.key);
    const session =
      entry && (await store.get(await store.resumeTarget(entry.session_id).catch(() => entry.session_id)));
    const age = session?.lastActivityAt ? clock.now() / 1000 - session.lastActivityAt : 0;
    if (freshness > 0 && age <= freshness) return false;
    const quote = brief(this.#last.text);
    await this.#settle("told", `I was interrupted while working on "${quote}". Write "continue" to resume it.`);
    return true;
  }

  /** Rows and what is said about them, in one step. */
  async #settle(
    outcome: "refused" | "dead" | "told" | "failed" | "superseded" | "stopped" | "cleared",
    text?: string,
    entry?: ChatEntry,
  ): Promise<void> {
    const { work, routes } = this.#ports;
    const ids = this.rows.map(({ id }) => id);
    const outbox = text === undefined ? [] : this.#reply.parts([{ type: "text", text: said(text), important: true }]);
    await work.settle(ids, outcome, { outbox, ...(entry ? { route: routes.asRoute(entry) } : {}) });
    this.#finished = true;
    this.#ports.wake(this.#bot.entry.name);
  }

  // --- the turn

  async #play({ conversation, entry, notices, note }: Borrowed): Promise<"ended" | "later"> {
    const { settings, event, log, goals } = this.#ports;
    const { agent } = conversation;
    await this.#reply.tell(notices);
    if (this.#why === null) await this.#keepWithin(conversation, entry);
    const isBegun = this.rows[0]?.messageId != null;
    const isGoal = this.rows[0]?.kind === "goal";
    if (isGoal && !isBegun && !(await goals.isWanted(conversation))) {
      await this.#settle("superseded");
      return "ended";
    }
    await goals.turnBegins(this.key, conversation, this.#last);
    const read = isGoal
      ? { text: this.#last.text, outside: [] }
      : await this.#ports.readInput(this.#messages, {
          shared: this.place.shared,
          foreign: this.#bot.entry.foreignText === true,
          conversation,
        });
    await agent.readOutside(read.outside);
    const notes = [note, ...this.#lateNotes(), read.note].filter((one): one is string => !!one);
    const told = { note: (text: string) => log.debug(text), warn: (text: string) => void this.#reply.tell([text]) };
    const isOurs = isGoal || this.rows[0]?.kind === "wake";
    const said: UserInput = { ...read, from: isOurs ? "synthetic" : "person" };
    // What a chat may point at is a setting; by default nothing.
    const referred = isBegun ? said : await withReferences(said, conversation, told);
    if (referred === null) {
      await this.#settle("failed");
      return "ended";
    }
    const input: UserInput = { ...referred, ...(notes.length > 0 ? { note: notes.join("\n") } : {}) };
    this.#reply.open();
    const watch = new AbortController();
    const facts = this.#facts(agent.sessionId);
    event("agent:start", facts);
    void this.#watch(conversation, watch.signal);
    try {
      const options = { record: this.#record(conversation, entry), ...(isBegun ? { continues: CUT_OFF } : {}) };
      // It may have been stopped while it was being prepared.
      if (this.#why !== null) queueMicrotask(() => agent.interrupt(REASONS[this.#why ?? "stop"]));
      for await (const one of agent.run(input, options)) {
        if (one.type === "turn_start") this.#isPlaying = true;
        if (this.#why !== null && one.type === "turn_start") agent.interrupt(REASONS[this.#why]);
        if (one.type === "done") this.#outcome = one.outcome;
        else this.#show(one, facts);
      }
    } finally {
      watch.abort();
      const outcome: TurnOutcome | null = this.#outcome;
      const how = this.#finished
        ? outcome?.failed
          ? "failed"
          : outcome?.interrupted
            ? "stopped"
            : "answered"
        : "stopped";
      await this.#reply.close(how);
    }
    const outcome: TurnOutcome | null = this.#outcome;
    event("agent:end", { ...facts, response: brief(outcome?.finalText ?? "", 500) });
    // Stopped while it waited for another process: nothing of it was said, and nothing is left to say.
    if (outcome?.unsent && (this.#why === "stop" || this.#why === "new")) await this.#settle(ENDS[this.#why]);
    if (this.#finished) await this.#reply.wake();
    if (outcome?.compressionExhausted) await this.#startOver(settings.home.redact(outcome.error ?? ""));
    if (this.#finished || this.#why !== null) return "ended";
    // It broke before the model was asked, and would do so each time.
    if (outcome?.failed && !NOT_ITS_FAULT.has(outcome.exitReason)) throw new Error(outcome.error ?? "no reason given");
    return "later";
  }

  /** It could not even begin, several times: it ends with the reason, and what comes behind it goes on. */
  async giveUp(reason: string): Promise<void> {
    const { routes, settings } = this.#ports;
    const entry = await routes.get(this.key);
    const why = settings.home.redact(reason);
    const text = t("I failed three times to start answering this message: {why}. {next}", { why, next: said(NEXT) });
    await this.#settle("dead", text, entry ? { ...entry, suspended: true } : undefined);
  }

  #show(event: AgentEvent, facts: Readonly<Record<string, unknown>>): void {
    const { questions, log } = this.#ports;
    if (event.type === "step")
      this.#ports.event("agent:step", { ...facts, iteration: event.iteration, tool_names: event.previousTools });
    if (event.type === "ask") {
      this.#reply.pause();
      questions
        .ask(event.request, this.place)
        .catch((error) => log.warn("a question did not reach the chat", error))
        .finally(() => this.#reply.resume());
      return;
    }
    if (event.type === "status" && event.changedInput) void this.#reply.tell([event.message]);
    this.#reply.show(event);
  }

  #record(conversation: OpenAgent, entry: ChatEntry): TurnRecord {
    const { work, routes } = this.#ports;
    const ids = this.rows.map(({ id }) => id);
    return {
      begin: async (sessionId, messages, lease) => {
        const stored = await work.begin(lease, { sessionId, ids, messages });
        if (stored === null) throw new WithdrawnError("the message no longer waits");
        return stored;
      },
      asked: async (lease) => void (await work.asked(lease, ids)),
      finish: async (sessionId, append, end, lease) => {
        await this.#stayQueued(lease, ids);
        const why = this.#why;
        const says = why === null || why === "timeout";
        const isStopped = why === null && end.kind === "interrupted";
        const ended = isStopped ? ENDS.stop : end.kind === "failed" ? ("failed" as const) : ("answered" as const);
        const outcome = says ? ended : ENDS[why];
        const text = isStopped ? said(STOPPED_ELSEWHERE) : why === "timeout" ? TIMED_OUT : (end.finalText ?? "");
        const outbox = says
          ? await this.#reply.compose(text, { failed: end.kind === "failed", failure: end.failure, conversation })
          : [];
        const joined = conversation.agent.isSteered ? [] : this.#joined.map(({ id }) => id);
        const hasFailed = why === "timeout" || (why === null && end.kind === "failed");
        const marks = hasFailed ? await this.#resumeMarks() : NO_RESUME;
        const stored = await work.finish(lease, {
          sessionId,
          append,
          done: ids.map((id) => ({ id, outcome })),
          joined,
          outbox,
          route: routes.asRoute({ ...this.#after(entry, conversation, sessionId), ...marks }),
        });
        this.#finished = true;
        return stored;
      },
    };
  }

  /** A turn that the gateway itself cuts off is not over: its rows stay, and the next start goes on with it. */
  async #stayQueued(lease: LaneToken, ids: readonly number[]): Promise<void> {
    if (this.#why !== "shutdown" && this.#why !== "restart") return;
    await this.#ports.work.unasked(lease, ids);
    throw new WithdrawnError("the gateway stops; the turn resumes with the next start");
  }

  /** What the entry says when the turn is over. */
  #after(entry: ChatEntry, { agent }: OpenAgent, sessionId: string): ChatEntry {
    const { inputTokens, outputTokens, cacheReadTokens, cacheWriteTokens, costUsd, costStatus } = agent.totals;
    return {
      ...entry,
      session_id: sessionId,
      updated_at: localIso(this.#ports.clock.now()),
      input_tokens: inputTokens,
      output_tokens: outputTokens,
      cache_read_tokens: cacheReadTokens,
      cache_write_tokens: cacheWriteTokens,
      total_tokens: inputTokens + outputTokens + cacheReadTokens + cacheWriteTokens,
      last_prompt_tokens: agent.lastPromptTokens ?? entry.last_prompt_tokens ?? 0,
      estimated_cost_usd: costUsd ?? 0,
      cost_status: costStatus,
      is_fresh_reset: false,
    };
  }

  /** Set while the turn ran, if at all: one that fails has not done what the next start goes on with. */
  async #resumeMarks() {
    const entry = await this.#ports.routes.get(this.key);
    const { resume_pending = false, resume_reason = null, last_resume_marked_at = null } = entry ?? {};
    return { resume_pending, resume_reason, last_resume_marked_at };
  }

  // --- around it

  /** A conversation that grew too long between turns is shortened before the model is asked. */
  async #keepWithin({ agent, target, store }: OpenAgent, entry: ChatEntry): Promise<void> {
    const { settings, log } = this.#ports;
    const { enabled, hygiene_hard_message_limit: most } = settings.home.config().compression;
    const session = await store.get(agent.sessionId);
    const messages = session?.messageCount ?? 0;
    if (messages < FEWEST) return;
    const used = (agent.lastPromptTokens ?? entry.last_prompt_tokens ?? 0) / target.contextLength;
    if (!enabled) {
      if (used >= STILL_TOO_LONG) await this.#reply.tell([FULL]);
      return;
    }
    if (used < HYGIENE && messages < most) return;
    try {
      const report = await agent.compress();
      if (report.type === "compressed" && report.after.tokens >= STILL_TOO_LONG * target.contextLength)
        await this.#reply.tell([FULL]);
      if (report.type === "failed")
        await this.#reply.tell([`The conversation could not be shortened: ${report.why}. Nothing was lost.`]);
    } catch (error) {
      log.warn("the conversation could not be shortened before the turn", error);
      await this.#reply.tell([`The conversation could not be shortened: ${messageOf(error)}. Nothing was lost.`]);
    }
  }

  /** There is nothing left to shorten: the chat begins anew, and says so. */
  async #startOver(error: string): Promise<void> {
    await this.#ports.conversations.reset(this.key, this.source, { reason: "suspended" });
    await this.#reply.tell([
      `The conversation no longer fits into the model's window${error ? ` (${error})` : ""}. The next message starts a new one; /resume reopens this one.`,
    ]);
  }

  /** A turn in which nothing happens for long is stopped. */
  async #watch({ agent }: OpenAgent, signal: AbortSignal): Promise<void> {
    const { clock, settings, questions } = this.#ports;
    let warned = false;
    // Counted by looks: a clock that is set, or a machine that slept, is no silence of the turn.
    let [idle, seen] = [0, agent.activity().lastActivityTs];
    while (!signal.aborted) {
      await clock.sleep(WATCH_MS, signal).catch(() => undefined);
      if (signal.aborted) return;
      const { gateway_timeout: limit, gateway_timeout_warning: warnAt } = settings.home.config().agent;
      const { lastActivityTs } = agent.activity();
      idle = questions.waits(this.key) || lastActivityTs !== seen ? 0 : idle + WATCH_MS / 1000;
      seen = lastActivityTs;
      if (limit > 0 && idle >= limit) return this.interrupt("timeout");
      if (!warned && warnAt > 0 && idle >= warnAt) {
        warned = true;
        await this.#reply.tell([`Nothing has happened for ${Math.round(idle / 60)} minutes. /stop ends the turn.`]);
      }
    }
  }

  /** Said long before it is read. */
  #lateNotes(): readonly string[] {
    const { clock } = this.#ports;
    const first = this.#messages.find(({ observed }) => !observed);
    const age = first ? clock.now() / 1000 - first.sentAt : 0;
    if (!first || age < LATE_SECONDS || this.rows[0]?.messageId != null) return [];
    return [`[Written at ${new Date(first.sentAt * 1000).toISOString()}, ${Math.round(age / 60)} minutes ago.]`];
  }

  #facts(sessionId: string): Readonly<Record<string, unknown>> {
    const { platform, user_id, chat_id } = this.source;
    return { platform, user_id, chat_id, session_id: sessionId, message: brief(this.#last.text, 500) };
  }

  get #last(): QueuedMessage {
    return this.#messages.at(-1) as QueuedMessage; // a turn has a row at least
  }

  get #bot(): Bot {
    return this.#ports.bot(this.source.platform);
  }
}

const NO_RESUME = { resume_pending: false, resume_reason: null };

const ENDS = {
  newer: "interrupted",
  stop: "stopped",
  new: "cleared",
  shutdown: "interrupted",
  restart: "interrupted",
} as const;
const NEXT = "Your next message starts a new conversation; /resume reopens this one.";
const GAVE_UP = `I tried to answer this message three times and failed. ${NEXT}`;
const TIMED_OUT = "The turn was stopped because nothing happened for too long. Write again to continue.";
const STOPPED_ELSEWHERE = "This turn was stopped from outside the chat (hermes sessions stop).";
const FULL = "The conversation nearly fills the model's window. /compress shortens it, /new begins another.";

/** What the settings or the home are to blame for: the chat hears it. */
const isForUser = (error: unknown) => error instanceof Error && "exitCode" in error;

const brief = (text: string, most = 80) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);
