// Standing goals of chats. A goal and its next turn change in one step of the store: whatever dies when, a verdict has one continuation.
import type { TurnOutcome } from "../../agent/events.ts";
import type { OpenAgent } from "../../agent/opened.ts";
import { type GoalDoor, type GoalStep, Goals, keyOf, turnEndOf } from "../../goals/keeper.ts";
import { parseGoal } from "../../goals/state.ts";
import type { Logger } from "../../home/log.ts";
import type { Clock } from "../../kit/clock.ts";
import { messageOf } from "../../kit/errors.ts";
import type { SessionStore } from "../../sessions/store.ts";
import type { WorkStore } from "../../sessions/work.ts";
import type { Conversations } from "./conversations.ts";
import { type Bot, type QueuedMessage, targetOf } from "./reply.ts";
import type { Routes } from "./routes.ts";
import type { GatewaySettings } from "./settings.ts";
import type { Interruption } from "./turn.ts";

interface ChatGoalsPorts {
  readonly settings: GatewaySettings;
  readonly store: SessionStore;
  readonly work: WorkStore;
  readonly routes: Routes;
  readonly conversations: Conversations;
  readonly clock: Clock;
  readonly log: Logger;
  bot(platform: string): Bot;
  /** Something was promised in the name of a bot. */
  wake(platform: string): void;
  /** A row of the inbox may be new. */
  look(): void;
}

/** A chat, as far as its goal has to do with it. */
interface Chat {
  readonly goals: Goals;
  /** Where it writes to, and who it writes for. */
  message: QueuedMessage;
  /** Null until somebody opened it. */
  opened: OpenAgent | null;
  /** Of a conversation that nobody opened since the gateway started. */
  sessionId: string;
}

/** A turn that is over. */
interface EndedTurn {
  readonly key: string;
  readonly message: QueuedMessage;
  readonly conversation: OpenAgent | null;
  /** Null: it was never played. */
  readonly outcome: TurnOutcome | null;
  readonly why: Interruption | null;
}

export class ChatGoals {
  readonly #ports: ChatGoalsPorts;
  readonly #chats = new Map<string, Chat>();
  readonly #working = new Set<Promise<void>>();
  #closed = false;

  constructor(ports: ChatGoalsPorts) {
    this.#ports = ports;
  }

  /** The goal of the conversation that a chat is in now. */
  of(key: string, conversation: OpenAgent, message: QueuedMessage): Goals {
    const chat = this.#chatOf(key, message, conversation.agent.sessionId);
    chat.opened = conversation;
    chat.message = message;
    return chat.goals;
  }

  async turnBegins(key: string, conversation: OpenAgent, message: QueuedMessage): Promise<void> {
    const isNew = this.#chats.get(key)?.opened !== conversation;
    const goals = this.of(key, conversation, message);
    goals.turnBegins();
    if (isNew) await goals.begin();
  }

  /** Whether a turn that waits for the goal is still wanted, in the conversation that the chat is in by now. */
  async isWanted({ agent }: OpenAgent): Promise<boolean> {
    return isActive(await this.#ports.store.getMeta(keyOf(agent.sessionId)));
  }

  /** Judged beside everything else: what is said meanwhile comes first. */
  turnEnded(turn: EndedTurn): void {
    const { key, message, conversation, outcome, why } = turn;
    if (conversation === null || this.#ports.bot(message.source.platform).entry.interactive === false) return;
    if (why === "new" || why === "shutdown" || why === "restart") return;
    const goals = this.of(key, conversation, message);
    this.#work(key, async () => {
      // Most chats have none: nothing of their conversation is held on to.
      if ((await goals.state())?.status !== "active") return void this.#chats.delete(key);
      if (outcome === null) return this.#judgeLeftOver(key);
      const end = turnEndOf(outcome, why === "stop" ? "/stop" : "Ctrl+C");
      if (end === null) return;
      const timedOut = { interrupted: null, failed: "nothing happened in the turn for too long" };
      await this.#whileOpen(key, () => goals.turnEnded(why === "timeout" ? timedOut : end, outcome.messages));
    });
  }

  /** What an earlier gateway left: goals that wait are woken, a turn that was never judged is judged. */
  async start(): Promise<void> {
    const { store, routes, log } = this.#ports;
    const active = new Map([...(await store.allMeta(keyOf("")))].filter(([, value]) => isActive(value)));
    if (active.size === 0) return;
    for (const { session_key: key, session_id, origin } of await routes.all()) {
      const sessionId = await store.tip(session_id);
      if (!origin || !active.has(keyOf(sessionId))) continue;
      const { now } = this.#ports.clock;
      const updateId = `goal:${sessionId}`;
      const message: QueuedMessage = { text: "", type: "text", source: origin, updateId, sentAt: now() / 1000 };
      try {
        this.#ports.bot(origin.platform);
        await this.#chatOf(key, message, sessionId).goals.begin();
        this.#work(key, () => this.#judgeLeftOver(key));
      } catch (error) {
        log.warn(`the goal of ${key} rests: ${messageOf(error)}`);
      }
    }
  }

  async close(): Promise<void> {
    this.#closed = true;
    for (const { goals } of this.#chats.values()) goals.close();
    await Promise.all(this.#working);
  }

  #chatOf(key: string, message: QueuedMessage, sessionId: string): Chat {
    const known = this.#chats.get(key);
    if (known) return known;
    const { store, clock, log, settings } = this.#ports;
    const chat: Chat = {
      ...{ message, sessionId, opened: null },
      goals: new Goals({
        door: this.#doorOf(key, () => chat.message),
        clock,
        config: () => settings.home.config(),
        subject: () => ({
          store,
          sessionId: chat.opened?.agent.sessionId ?? chat.sessionId,
          get auxiliary() {
            if (chat.opened) return chat.opened.agent.auxiliary;
            throw new Error(`the conversation of ${key} is not open`);
          },
          processes: () => chat.opened?.processes.list() ?? [],
          pays(account) {
            if (chat.opened) chat.opened.account = account;
          },
        }),
        onError: (error) => log.warn(`the goal of ${key} could not be woken`, error),
      }),
    };
    this.#chats.set(key, chat);
    return chat;
  }

  #doorOf(key: string, from: () => QueuedMessage): GoalDoor {
    const { work, look, wake } = this.#ports;
    return {
      // The store knows, in the step itself.
      isBusy: () => false,
      take: async (step) => {
        if (this.#closed) return "busy";
        const message = from();
        const { platform } = message.source;
        const how = await work.follow({
          ...{ meta: step.meta, sessionKey: key, unlessBusy: step.unlessBusy },
          withdrawGoals: step.next !== undefined,
          ...this.#results(key, step, message),
        });
        if (how === "done" && step.line !== null) wake(platform);
        if (how === "done") look();
        return how;
      },
    };
  }

  /** The next turn, and what the chat is told: behind the answer, as it is promised after it. */
  #results(key: string, { state, next, line, meta }: GoalStep, message: QueuedMessage) {
    const { bot, clock, settings } = this.#ports;
    const { entry, account } = bot(message.source.platform);
    const now = clock.now();
    const updateId = `${meta.key}:${state.turns_used}:${now}`;
    const { files: _, replyTo: __, messageId: ___, shownAs: ____, outside: _____, ours: ______, ...rest } = message;
    const at = { sessionKey: key, platform: entry.name, account, updateId };
    const kind = next?.from === "person" ? ("user" as const) : ("goal" as const);
    const event = { ...rest, updateId, sentAt: now / 1000, text: next?.text ?? "", queued: true };
    const payload = { type: "text", text: settings.home.redact(line ?? "") };
    const part = {
      cause: `notice:${updateId}`,
      part: 0,
      platform: entry.name,
      account,
      target: targetOf(rest),
      payload,
    };
    return { events: next ? [{ ...at, kind, event }] : [], outbox: line === null ? [] : [part] };
  }

  /** Judges the last turn of a conversation from what is stored of it, if nobody did. */
  async #judgeLeftOver(key: string): Promise<void> {
    const { store } = this.#ports;
    const chat = this.#chats.get(key);
    if (!chat) return;
    const { goals } = chat;
    const messages = await store.load(chat.opened?.agent.sessionId ?? chat.sessionId);
    if (!(await goals.isUnjudged(messages))) return;
    await this.#whileOpen(key, () => goals.turnEnded({ interrupted: null, failed: null }, messages));
  }

  /** The judge asks on the account of the open conversation. */
  async #whileOpen(key: string, work: () => Promise<void>): Promise<void> {
    const chat = this.#chats.get(key);
    if (!chat || this.#closed) return;
    const { source, channelPrompt, skills } = chat.message;
    const borrowed = await this.#ports.conversations.borrow(key, { source, channelPrompt, skills });
    try {
      chat.opened = borrowed.conversation;
      await work();
    } finally {
      borrowed.release();
    }
  }

  #work(key: string, work: () => Promise<void>): void {
    const working = work()
      .catch((error) => this.#ports.log.warn(`the goal of ${key} could not be looked after`, error))
      .finally(() => this.#working.delete(working));
    this.#working.add(working);
  }
}

const isActive = (stored: string | null) => parseGoal(stored)?.status === "active";
