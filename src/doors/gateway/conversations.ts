// The agents of chats. One stays open as long as its chat is in use, so that the provider's prompt cache and its sandbox stay warm; a
// chat that rests lets go of it and finds its conversation again with the next message.
import { createHash } from "node:crypto";
import type { OpenRequest } from "../../agent/open-request.ts";
import type { OpenAgent } from "../../agent/opened.ts";
import { keyOf } from "../../goals/keeper.ts";
import { parseGoal } from "../../goals/state.ts";
import type { Config } from "../../home/config/schema.ts";
import type { Logger } from "../../home/log.ts";
import type { Clock } from "../../kit/clock.ts";
import { messageOf } from "../../kit/errors.ts";
import { KeyedSteps } from "../../kit/steps.ts";
import type { EndReason, SessionStore } from "../../sessions/store.ts";
import { type ChatSource, isShared, plainTitle } from "./chat.ts";
import type { PlatformEntry } from "./contract.ts";
import { type ChatEntry, localIso, type Routes, resetDue, resetPolicy } from "./routes.ts";
import type { GatewaySettings } from "./settings.ts";

const MOST_WARM = 128;
const IDLE_MS = 3_600_000;

interface Warm {
  readonly key: string;
  readonly opened: OpenAgent;
  readonly signature: string;
  usedAt: number;
  /** Turns and commands that use it now: it is not let go. */
  users: number;
}

/** A conversation in use by a turn or a command. */
export interface Borrowed {
  readonly conversation: OpenAgent;
  readonly entry: ChatEntry;
  /** What the chat should be told: a reset, another model. */
  readonly notices: readonly string[];
  /** What the model should be told with the next message, this once. */
  readonly note: string | null;
  release(): void;
}

interface ConversationsOptions {
  readonly settings: GatewaySettings;
  readonly store: SessionStore;
  readonly routes: Routes;
  readonly clock: Clock;
  readonly log: Logger;
  readonly cwd: string;
  platform(name: string): PlatformEntry;
  /** All that are set up. */
  platforms(): readonly PlatformEntry[];
  /** Sends messages of a conversation to other chats. */
  deliver(source: ChatSource): OpenRequest["deliver"];
  /** A conversation was opened: somebody reads its notices until it is closed. */
  follow(key: string, conversation: OpenAgent): void;
  /** A chat has a new conversation. */
  begun(entry: ChatEntry): void;
  /** A chat's conversation is over. */
  ended(entry: ChatEntry, reason: EndReason): Promise<void>;
}

interface ChatPlace {
  readonly source: ChatSource;
  readonly channelPrompt?: string | undefined;
  readonly skills?: readonly string[] | undefined;
}

export class Conversations {
  readonly #options: ConversationsOptions;
  readonly #warm = new Map<string, Warm>();
  /** One step at a time for each chat: two messages never open two agents. */
  readonly #steps = new KeyedSteps();

  constructor(options: ConversationsOptions) {
    this.#options = options;
  }

  get size(): number {
    return this.#warm.size;
  }

  /** The open agent of a chat, if there is one: for those who only look. */
  peek(key: string): OpenAgent | null {
    return this.#warm.get(key)?.opened ?? null;
  }

  /** Opens the conversation that belongs to the chat, or begins one; rejects with what is wrong with the settings. */
  borrow(key: string, place: ChatPlace): Promise<Borrowed> {
    return this.#inTurn(key, async () => {
      const notices: string[] = [];
      const { entry, note } = await this.#current(key, place.source, notices);
      const { warm, was } = await this.#open(key, entry, place);
      if (was !== null && was !== warm.opened.target.model)
        notices.push(`Model: ${warm.opened.target.model} (was ${was})`);
      warm.users++;
      warm.usedAt = this.#options.clock.now();
      let isOpen = true;
      const release = () => {
        if (isOpen) warm.users--;
        isOpen = false;
      };
      return { conversation: warm.opened, entry, notices, note, release };
    });
  }

  /** How a conversation of the chat is opened: for prompts that run beside it. */
  requestNow(key: string, place: ChatPlace): OpenRequest {
    return this.#request(key, this.#options.routes.begin(key, place.source, null), place);
  }

  /** Ends the conversation of a chat and begins another. Resolves to the new entry. */
  reset(
    key: string,
    source: ChatSource,
    { title, reason = "session_reset" }: { title?: string; reason?: EndReason } = {},
  ) {
    return this.#inTurn(key, async () => {
      const { routes, store } = this.#options;
      const before = await routes.get(key);
      const entry = routes.begin(key, source, before, "session_reset");
      await this.#close(key, reason, entry.session_id);
      if (before) await this.#end(before, reason);
      await routes.put(entry);
      this.#options.begun(entry);
      if (title !== undefined) {
        await store.ensure({ id: entry.session_id, source: source.platform });
        await store.setTitle(entry.session_id, title);
      }
      return entry;
    });
  }

  /** The chat goes on with another conversation. One that another chat holds is not taken from it: a copy is. */
  switchTo(key: string, source: ChatSource, id: string): Promise<ChatEntry> {
    return this.#inTurn(key, async () => {
      const { routes, store, clock } = this.#options;
      const before = await routes.get(key);
      const target = await store.resumeTarget(id);
      const others = (await routes.all()).filter((entry) => entry.session_key !== key);
      const isTaken = others.some((entry) => entry.session_id === target);
      const base = routes.begin(key, source, before);
      if (isTaken) await store.branch(target, base.session_id);
      const entry = { ...base, session_id: isTaken ? base.session_id : target, updated_at: localIso(clock.now()) };
      await this.#close(key, "session_switch", entry.session_id);
      if (before && before.session_id !== target) await this.#end(before, "session_switch");
      await store.reopen(entry.session_id);
      await routes.put(entry);
      this.#options.begun(entry);
      return entry;
    });
  }

  /** The next message opens it anew: settings or tools have changed. */
  evict(key: string): Promise<void> {
    return this.#inTurn(key, () => this.#close(key, "agent_close"));
  }

  /** Lets go of agents that rest, and of the oldest when there are too many. */
  async sweep(): Promise<void> {
    const { clock } = this.#options;
    const idle = [...this.#warm.values()].filter(({ users }) => users === 0).sort((a, b) => a.usedAt - b.usedAt);
    const surplus = Math.max(0, this.#warm.size - MOST_WARM);
    const over = idle.filter(({ usedAt, opened }, at) => {
      if (opened.processes.running > 0) return false;
      return at < surplus || clock.now() - usedAt > IDLE_MS;
    });
    for (const { key } of over) await this.evict(key);
  }

  /** Conversations whose time is over end now, not with the next message. */
  async expire(): Promise<void> {
    const { routes, settings, clock, log } = this.#options;
    const now = new Date(clock.now());
    const config = settings.home.config();
    for (const entry of await routes.all()) {
      if (entry.expiry_finalized || !entry.origin || this.#isBusy(entry.session_key)) continue;
      const reason = resetDue(entry, resetPolicy(config, entry.origin), now);
      if (reason === null || reason === "suspended" || (await this.#hasGoal(entry))) continue;
      try {
        await this.#inTurn(entry.session_key, async () => {
          await this.#close(entry.session_key, reason);
          await this.#end(entry, reason);
          await routes.put({ ...entry, expiry_finalized: true });
        });
      } catch (error) {
        log.warn(`the conversation of ${entry.session_key} could not be ended`, error);
      }
    }
    const oldest = clock.now() - config.session_store_max_age_days * 86_400_000;
    for (const { session_key: key, updated_at: at, suspended } of await routes.all())
      if (!suspended && new Date(at).getTime() < oldest && !this.#isBusy(key)) await routes.remove(key);
  }

  async close(): Promise<void> {
    const { log } = this.#options;
    for (const key of [...this.#warm.keys()])
      await this.#close(key, "agent_close").catch((error) =>
        log.warn(`the agent of ${key} could not be closed`, error),
      );
  }

  // --- steps, one at a time for each chat

  #inTurn<T>(key: string, work: () => Promise<T>): Promise<T> {
    return this.#steps.run(key, work);
  }

  async #current(key: string, source: ChatSource, notices: string[]) {
    const { routes, settings, clock } = this.#options;
    const known = await routes.get(key);
    const config = settings.home.config();
    if (known === null) {
      const entry = routes.begin(key, source, null);
      const isFirst = source.chat_type === "dm" && config.onboarding.seen.chat_intro !== true;
      await routes.put(entry);
      this.#options.begun(entry);
      return { entry, note: isFirst ? this.#introduction(source.platform) : null };
    }
    const isBusy = this.#isBusy(key);
    const due = isBusy ? null : resetDue(known, resetPolicy(config, source), new Date(clock.now()));
    const reason = due !== "suspended" && due !== null && (await this.#hasGoal(known)) ? null : due;
    if (reason === null) {
      const entry = { ...known, origin: { ...known.origin, ...source }, updated_at: localIso(clock.now()) };
      return { entry, note: null };
    }
    const entry = routes.begin(key, source, known, reason);
    await this.#close(key, reason, entry.session_id);
    await this.#end(known, reason);
    await routes.put(entry);
    this.#options.begun(entry);
    const had = reason === "suspended" || Number(known.total_tokens ?? 0) > 0 || known.reset_had_activity === true;
    const { notify, notify_exclude_platforms: silent } = config.session_reset;
    if (had && notify && !silent.includes(source.platform)) notices.push(RESET_WORDS[reason]);
    const note = had
      ? `[The earlier conversation of this chat was closed (${reason}); session_search finds it: ${known.session_id}.]`
      : null;
    return { entry, note };
  }

  /** For the model, with the first message of a direct chat. */
  #introduction(platform: string): string | null {
    const entry = this.#options.platform(platform);
    if (entry.interactive === false) return null;
    const command = (name: string) => entry.commandWord?.(name) ?? `/${name}`;
    const home =
      this.#options.settings.homeChannel(entry) === null
        ? ` and that ${command("sethome")} makes this chat the place for messages of scheduled jobs`
        : "";
    return `[This person writes here for the first time. Answer, then say in one sentence who you are, that ${command("help")} lists commands${home}.]`;
  }

  /** A turn, a command or a background process of the chat is at work. */
  #isBusy(key: string): boolean {
    const warm = this.#warm.get(key);
    return warm !== undefined && (warm.users > 0 || warm.opened.processes.running > 0);
  }

  /** Work on a goal goes on, whatever the hour. */
  async #hasGoal({ session_id: id }: ChatEntry): Promise<boolean> {
    return parseGoal(await this.#options.store.getMeta(keyOf(id)))?.status === "active";
  }

  async #open(key: string, entry: ChatEntry, place: ChatPlace): Promise<{ warm: Warm; was: string | null }> {
    const { store, clock, log } = this.#options;
    const request = this.#request(key, entry, place);
    const signature = await this.#signature(request);
    const present = this.#warm.get(key);
    const isSame = present && present.opened.agent.sessionId === entry.session_id;
    if (isSame && (present.signature === signature || present.users > 0)) return { warm: present, was: null };
    const was = isSame ? present.opened.target.model : null;
    if (isSame) log.info(`what the agent of ${key} was opened with has changed: it is opened again`);
    if (present) await this.#close(key, "agent_close");
    const session = await store.get(entry.session_id);
    const { openAgent } = await import("../../agent/open.ts");
    const opened = await openAgent({
      ...request,
      ...(session ? { resume: { name: entry.session_id } } : { sessionId: entry.session_id }),
    });
    const warm: Warm = { key, opened, signature, usedAt: clock.now(), users: 0 };
    this.#warm.set(key, warm);
    if (this.#warm.size > MOST_WARM) void this.sweep();
    this.#options.follow(key, opened);
    return { warm, was };
  }

  #request(key: string, entry: ChatEntry, { source, channelPrompt, skills }: ChatPlace): OpenRequest {
    const { settings, store, clock, cwd } = this.#options;
    const platform = this.#options.platform(source.platform);
    const { model } = settings.home.config();
    const override = entry.model_override ?? null;
    const chatId = source.chat_id ?? source.user_id ?? "";
    const overlay = contextPrompt({
      source,
      entry: platform,
      settings,
      platforms: this.#options.platforms(),
      channelPrompt,
    });
    return {
      ...{ home: settings.home, clock, cwd, sessionKey: key },
      store: async () => store,
      platform: source.platform,
      source: source.platform,
      interactive: platform.interactive !== false,
      connectWith: "hermes setup",
      model: override?.model ?? (model.default || undefined),
      provider: override?.provider ?? (model.provider || undefined),
      chat: {
        chatId,
        ...(source.chat_name === undefined ? {} : { chatName: source.chat_name }),
        ...(source.thread_id === undefined ? {} : { threadId: source.thread_id }),
      },
      ...(source.user_id === undefined
        ? {}
        : {
            sender: {
              userId: source.user_id,
              ...(source.user_id_alt === undefined ? {} : { userIdAlt: source.user_id_alt }),
              ...(source.user_name === undefined ? {} : { userName: source.user_name }),
            },
          }),
      ...(platform.interactive === false ? { origin: "webhook" as const } : {}),
      ...(skills ? { skills, withoutMissingSkills: true } : {}),
      deliver: this.#options.deliver(source),
      titles: true,
      overlay: () => overlay,
    };
  }

  /** What a session's prompt and tools hang on. How hard the model thinks is asked with every turn and does not count. */
  async #signature({ model, provider, overlay, sender, skills }: OpenRequest): Promise<string> {
    const { home } = this.#options.settings;
    const { accessMark } = await import("../../agent/open-model.ts");
    const access = await accessMark(home, { model, provider });
    const who = [sender?.userId, sender?.userIdAlt];
    const facts = [model, provider, access, overlay?.(), ...who, skills, prefixSettings(home.config())];
    return createHash("sha256").update(JSON.stringify(facts)).digest("hex").slice(0, 16);
  }

  async #close(key: string, reason: EndReason, next?: string): Promise<void> {
    const warm = this.#warm.get(key);
    if (!warm) return;
    this.#warm.delete(key);
    await warm.opened.close(reason, next);
  }

  async #end(entry: ChatEntry, reason: EndReason): Promise<void> {
    const { store, log } = this.#options;
    try {
      if (await store.get(entry.session_id)) await store.end(entry.session_id, reason);
      await this.#options.ended(entry, reason);
    } catch (error) {
      log.warn(`the end of ${entry.session_id} was not noted: ${messageOf(error)}`);
    }
  }
}

const RESET_WORDS = {
  idle: "This is a new conversation: the last one was idle for too long. /resume reopens it.",
  daily: "This is a new conversation: one starts every day. /resume reopens the last one.",
  suspended: "This is a new conversation: the last one kept failing. /resume reopens it.",
} as const;

function prefixSettings({ model, compression, agent, toolsets, platform_toolsets }: Config) {
  const { enabled, threshold, target_ratio, protect_last_n } = compression;
  return [
    ...[model.context_length, model.max_tokens, model.base_url, enabled, threshold, target_ratio, protect_last_n],
    ...[agent.disabled_toolsets, toolsets, platform_toolsets],
  ];
}

interface PromptFacts {
  readonly source: ChatSource;
  readonly entry: PlatformEntry;
  readonly settings: GatewaySettings;
  /** All platforms that are set up. */
  readonly platforms: readonly PlatformEntry[];
  readonly channelPrompt?: string | undefined;
}

/**
 * What a conversation is told about where it is. Laid over the prompt with each request and never stored; the same bytes for as long as
 * nothing in it changes: no message ids, no clock.
 */
function contextPrompt({ source, entry, settings, platforms, channelPrompt }: PromptFacts): string {
  const { privacy, agent } = settings.home.config();
  const masks = privacy.redact_pii && entry.piiSafe === true;
  const ownWords = channelPrompt || agent.system_prompt.trim();
  const user = masks && source.user_id ? `user_${hashed(source.user_id)}` : (source.user_name ?? source.user_id);
  const homes = platforms.flatMap((one) => {
    const channel = settings.homeChannel(one);
    if (channel === null) return [];
    return [`${one.name}: ${masks ? maskedChat(channel.target.chatId) : plainTitle(channel.name)}`];
  });
  const lines = [
    "## Where this conversation is held",
    `Platform: ${entry.label}. ${whereOf(source, masks)}.`,
    ...(source.chat_topic
      ? [`Topic of the channel, as its members set it: "${plainTitle(source.chat_topic, 500)}"`]
      : []),
    isShared(source, settings.sharing)
      ? "Several people write here; each message begins with its sender in brackets, as in [Name]."
      : `You talk with ${user ? plainTitle(user) : "one person"}.`,
    "You reach this platform through your tools and your answers alone; there is no other access to it.",
    ...(entry.hint ? [entry.hint] : []),
    `Connected platforms: ${platforms.map(({ name }) => name).join(", ")}.`,
    ...(homes.length > 0 ? [`Home channels: ${homes.join("; ")}.`] : []),
    `Scheduled jobs can deliver to: origin (this chat), local (files only), ${platforms.map(({ name }) => name).join(", ")}. An explicit target is written PLATFORM:CHAT_ID or PLATFORM:CHAT_ID:THREAD_ID.`,
    ...(ownWords === "" ? [] : ["", ownWords]),
  ];
  return lines.join("\n");
}

function whereOf(
  { chat_type: type, chat_name: name, chat_id: id = "", thread_id: thread, user_name: user }: ChatSource,
  masks: boolean,
) {
  const chat = masks ? maskedChat(id) : plainTitle(name ?? id);
  if (type === "dm") return `DM with ${masks ? "the user" : user ? plainTitle(user) : chat}`;
  const place = type === "channel" || type === "forum" ? "channel" : "group";
  return `${place}: ${chat}${thread ? `, thread: ${masks ? hashed(thread) : thread}` : ""}`;
}

const hashed = (id: string) => createHash("sha256").update(id).digest("hex").slice(0, 12);

/** A `group:` in front says what kind of id it is. */
function maskedChat(id: string): string {
  const [, prefix = "", rest = id] = /^([a-z]{1,16}:)?([\s\S]*)$/.exec(id) ?? [];
  return prefix + hashed(rest);
}
