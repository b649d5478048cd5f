// Slash commands in chats: the one registry, with a chat around it. A command is a row like any message, and ends in one step with its reply.
import type { BackgroundTask } from "../../agent/background.ts";
import type { OpenAgent } from "../../agent/opened.ts";
import { builtinCommands } from "../../commands/builtin.ts";
import { chatHelpLine } from "../../commands/chats.ts";
import type { ChatSurface, CommandContext, CommandDefinition } from "../../commands/context.ts";
import { commandsOf, type DispatchSurface, dispatchTyped } from "../../commands/dispatch.ts";
import { type CommandRegistry, parseTyped } from "../../commands/registry.ts";
import { menuSkills } from "../../commands/skills.ts";
import { said as inLanguage } from "../../home/language/words.ts";
import { messageOf } from "../../kit/errors.ts";
import { heardInWords } from "../../sessions/controls.ts";
import type { SessionListItem } from "../../sessions/store.ts";
import type { InboxRow } from "../../sessions/work.ts";
import { commandRights, isAdmin, mayRun } from "./access.ts";
import { composeAnswer } from "./answer.ts";
import { type ChatSource, isShared } from "./chat.ts";
import type { Desk } from "./desk.ts";
import type { AskedPlace } from "./questions.ts";
import { type QueuedMessage, targetOf } from "./reply.ts";
import { localIso } from "./routes.ts";
import type { TurnPorts } from "./turn.ts";
import { setVoiceMode, VOICE_WORDS, voiceMode } from "./voice.ts";

/** What commands may do to the gateway itself. */
export interface GatewayControls {
  restart(by: QueuedMessage): Promise<string>;
  setHome(message: QueuedMessage): Promise<string>;
  readonly platforms: ChatSurface["platforms"];
  setPlatform(name: string, state: "pause" | "resume"): Promise<string>;
  readonly background: {
    running(key: string): readonly BackgroundTask[];
    start(key: string, prompt: string, message: QueuedMessage, conversation: OpenAgent): BackgroundTask;
    stop(id: string): boolean;
  };
  /** Hooks may take a command over; null: nobody did. */
  intercept(name: string, args: string, source: ChatSource): Promise<Interception | null>;
  event(name: string, payload: Readonly<Record<string, unknown>>): void;
}

export type Interception =
  | { readonly decision: "deny" | "handled"; readonly message?: string | undefined }
  | { readonly decision: "rewrite"; readonly text: string };

export class CommandDesk {
  readonly #ports: TurnPorts;
  readonly #desk: Desk;
  readonly #controls: GatewayControls;
  readonly #registry: CommandRegistry = builtinCommands();
  /** What numbers of `/resume N` refer to, by chat. */
  readonly #listed = new Map<string, readonly SessionListItem[]>();

  constructor(ports: TurnPorts, desk: Desk, controls: GatewayControls) {
    this.#ports = ports;
    this.#desk = desk;
    this.#controls = controls;
  }

  /** For the menus of platforms: what anybody may see. */
  menu(): readonly CommandDefinition[] {
    return this.#known.all();
  }

  /** Runs the command of a row and ends the row with the reply. */
  async run(key: string, row: InboxRow, message: QueuedMessage): Promise<void> {
    const { log } = this.#ports;
    const said: string[] = [];
    let becomes: string | null = null;
    try {
      const allowed = await this.#ports.isAllowed(message);
      if (!allowed) return void (await this.#ports.work.settle([row.id], "refused"));
      const text = await this.#intercepted(key, message, said);
      if (text !== null) becomes = await this.#dispatch(key, row, { ...message, text }, said);
    } catch (error) {
      log.warn(`a command of ${key} failed`, error);
      said.push(messageOf(error));
    }
    if (becomes !== null)
      await this.#ports.work.accept([
        { ...row, kind: "user", updateId: `text:${row.id}`, event: { ...message, text: becomes } },
      ]);
    await this.#end(row, message, said.join("\n\n").trim());
  }

  /** The text to run, or null when a hook or the rights of the person ended it. */
  async #intercepted(key: string, message: QueuedMessage, said: string[]): Promise<string | null> {
    const typed = parseTyped(message.text);
    if (typed === null) return message.text;
    const match = this.#known.find(typed.name);
    // What is no command of ours may be a skill: for those who may do everything a user may.
    const asked = match.type === "found" ? match.command : { name: typed.name };
    const refusal = this.#refusal(key, message, asked, typed.args);
    if (refusal !== null) {
      said.push(refusal);
      return null;
    }
    const verdict = await this.#controls.intercept(asked.name, typed.args, message.source);
    if (verdict === null) return message.text;
    if (verdict.decision === "rewrite") return verdict.text;
    if (verdict.message) said.push(verdict.message);
    return null;
  }

  #refusal(
    key: string,
    message: QueuedMessage,
    { name, permission = "user", onlyLooks }: Pick<CommandDefinition, "name" | "permission" | "onlyLooks">,
    args: string,
  ): string | null {
    const { source } = message;
    if (onlyLooks?.(args)) return null;
    if (mayRun({ name, permission }, source.user_id, this.#rightsOf(source)) || this.#isOwn(name, key, message))
      return null;
    return `You may not run /${name} here. /whoami shows what you may do.`;
  }

  /** Whoever asked for something may stop it and answer what is asked about it; `Questions` looks at who answers. */
  #isOwn(name: string, key: string, { source }: QueuedMessage): boolean {
    if (ANSWERS.has(name)) return this.#ports.questions.waits(key);
    if (name !== "stop") return false;
    const turn = this.#desk.turnOf(key);
    return !isShared(source, this.#ports.settings.sharing) || turn?.source.user_id === source.user_id;
  }

  /** Resolves to the text when it is no command after all. */
  async #dispatch(key: string, row: InboxRow, message: QueuedMessage, said: string[]): Promise<string | null> {
    const { conversations } = this.#ports;
    const { source, channelPrompt, skills } = message;
    const typed = parseTyped(message.text);
    const turn = this.#desk.turnOf(key);
    // The running turn keeps its agent; a command beside it must not open another.
    const borrowed = await conversations.borrow(key, { source, channelPrompt, skills });
    said.push(...borrowed.notices);
    const before = borrowed.conversation.target;
    try {
      const ctx = await this.#context(key, row, message, borrowed.conversation, said);
      const known = await dispatchTyped(message.text, this.#registry, ctx, {
        kind: "gateway",
        refusal: (command, args) => this.#refusal(key, message, command, args),
        interrupt: async () => {
          turn?.interrupt("new");
          await this.#desk.ended(key);
        },
      });
      const { target } = borrowed.conversation;
      if (known && target.model !== before.model && typed?.name !== "resume") await this.#keepModel(key, target);
      return known ? null : message.text;
    } finally {
      borrowed.release();
    }
  }

  async #keepModel(key: string, { model, provider, baseUrl }: OpenAgent["target"]): Promise<void> {
    const { routes, settings } = this.#ports;
    const entry = await routes.get(key);
    if (!entry) return;
    const { default: general } = settings.home.config().model;
    const override = general === model ? null : { model, provider, base_url: baseUrl };
    await routes.put({ ...entry, model_override: override });
  }

  async #context(
    key: string,
    row: InboxRow,
    message: QueuedMessage,
    conversation: OpenAgent,
    said: string[],
  ): Promise<CommandContext> {
    const { settings, store, clock, conversations, work, questions, goals } = this.#ports;
    const { source } = message;
    const desk = this.#desk;
    const listed = this.#listed;
    const controls = this.#controls;
    let present = conversation;
    let added = 0;
    const place = this.#place(key, message);
    const { entry } = this.#ports.bot(source.platform);
    const word = (name: string) => entry.commandWord?.(name) ?? `/${name}`;
    const rows = (await work.waiting()).get(key) ?? [];
    const begun = new Set(desk.turnOf(key)?.rows.map(({ id }) => id));
    const waiting = rows.filter(({ id, kind }) => kind === "user" && id !== row.id && !begun.has(id));
    const add = (text: string, more: Partial<QueuedMessage>) => {
      const updateId = `command:${row.id}:${added++}`;
      const event = { ...message, text, files: undefined, ...more };
      const rows = [{ ...row, kind: "user" as const, updateId, event }];
      void work.accept(rows).then(() => desk.look());
    };
    const ctx: CommandContext = {
      home: settings.home,
      store,
      clock,
      cwd: settings.home.osHome,
      platform: source.platform,
      get conversation() {
        return present;
      },
      get busy() {
        const turn = desk.turnOf(key);
        return (turn !== null && !turn.isFinished) || present.agent.busy;
      },
      waiting: waiting.map(({ event }) => (event as QueuedMessage).text), // written by us
      get lastListed() {
        return listed.get(key) ?? [];
      },
      set lastListed(list) {
        listed.set(key, list);
      },
      now: () => clock.now() / 1000,
      say: (text) => void said.push(text),
      warn: (text) => void said.push(text),
      submit: (text) => add(text, { queued: true }),
      queue: (text, { shownAs } = {}) => add(text, { queued: true, ...(shownAs === undefined ? {} : { shownAs }) }),
      offerInput: (text) => void said.push(text),
      async pick(title, items) {
        const lines = items.slice(0, MOST_LISTED).map(({ label, current }) => `${current ? "•" : "-"} ${label.trim()}`);
        const more = items.length > MOST_LISTED ? [`… and ${items.length - MOST_LISTED} more`] : [];
        said.push([title, ...lines, ...more].join("\n"));
        return null;
      },
      confirm: (title, detail) => questions.confirm(title, detail, place),
      startSession: async ({ title }) => {
        await this.#clear(key, "cleared", { alsoQueued: true, except: row.id });
        await conversations.reset(key, source, title === undefined ? {} : { title });
        this.#controls.event("session:reset", { platform: source.platform, user_id: source.user_id, session_key: key });
        said.push("New conversation. What can I do for you?");
      },
      resumeSession: async (id) => {
        const entry = await conversations.switchTo(key, source, id);
        const { conversation: opened, release } = await conversations.borrow(key, { source });
        present = opened;
        release();
        said.push(`Resumed ${(await opened.title()) ?? entry.session_id}.`);
      },
      commands: () =>
        this.#allowed(source)
          .map((command) => chatHelpLine(command, word))
          .join("\n"),
      skillCommands: () => menuSkills(ctx, this.#known),
      get goals() {
        return goals.of(key, present, message);
      },
      background: {
        get running() {
          return controls.background.running(key);
        },
        start: (prompt) => controls.background.start(key, prompt, message, present),
        stop: (id) => controls.background.stop(id),
      },
      quit: () => void said.push("A chat has no end; /new begins another conversation."),
      chat: {
        answer: async (choice, options) => questions.answer(key, choice, source, options),
        stop: () => this.#stop(key, row.id, present, message),
        steerElsewhere: (text) => this.#steerElsewhere(key, row, present, { ...message, text, files: undefined }),
        whoami: () => this.#whoami(source),
        person: personOf(source),
        place: placeOf(source),
        setHome: () => this.#controls.setHome(message),
        restart: () => this.#controls.restart(message),
        platforms: controls.platforms,
        setPlatform: (name, state) => controls.setPlatform(name, state),
        voice: (one) => this.#voice(one, source),
        word,
        allowed: () => this.#allowed(source),
      },
    };
    return ctx;
  }

  /** Answered first: the reply is promised before the turn has come to its end. */
  async #stop(key: string, own: number, conversation: OpenAgent, { source }: QueuedMessage): Promise<string> {
    const turn = this.#desk.turnOf(key);
    const isBusy = turn !== null && !turn.isFinished;
    turn?.interrupt("stop");
    // Where several people write, somebody without the right to the command stops what is theirs.
    const rights = this.#rightsOf(source);
    const mayAll = mayRun({ name: "stop", permission: "user" }, source.user_id, rights);
    const isTheirs = mayAll || !isShared(source, this.#ports.settings.sharing);
    const by = isTheirs ? {} : { by: source.user_id };
    const dropped = await this.#clear(key, "stopped", { alsoQueued: false, except: own, ...by });
    const ended = isTheirs ? await conversation.processes.stopAll() : 0;
    const { sessionId } = conversation.agent;
    const isHere = turn?.isPlaying || !isTheirs;
    const elsewhere = isHere ? null : await this.#ports.work.control(sessionId, "interrupt", {});
    const parts = [
      ...(elsewhere === null ? [] : [heardInWords({ kind: "interrupt", holder: elsewhere.holder, state: "taken" })]),
      ...(isBusy ? ["Stopped."] : []),
      ...(dropped > 0 ? [`${dropped} waiting message${dropped === 1 ? "" : "s"} dropped.`] : []),
      ...(ended > 0 ? [`${ended} background process${ended === 1 ? "" : "es"} stopped.`] : []),
    ];
    return parts.length > 0 ? parts.join(" ") : "Nothing is running.";
  }

  /** Kept as a message of its own until the turn there has read it: whatever ends that turn, it is not lost. */
  async #steerElsewhere(key: string, row: InboxRow, { agent }: OpenAgent, message: QueuedMessage) {
    if (this.#desk.turnOf(key)?.isPlaying) return null;
    const event = { ...row, kind: "user" as const, updateId: `steer:${row.id}`, event: { ...message, queued: true } };
    const asked = await this.#ports.work.control(agent.sessionId, "steer", { text: message.text }, event);
    return asked && heardInWords({ kind: "steer", holder: asked.holder, state: "taken" });
  }

  /** Plain messages of the chat that wait and have not begun; those of `/queue` on request. */
  async #clear(
    key: string,
    outcome: "stopped" | "cleared",
    { alsoQueued, except, by }: { alsoQueued: boolean; except: number; by?: string | undefined },
  ) {
    const { work } = this.#ports;
    const rows = (await work.waiting()).get(key) ?? [];
    const turn = this.#desk.turnOf(key);
    const running = new Set(turn?.rows.map(({ id }) => id));
    const dropped = rows.filter(({ id, kind, event }) => {
      if (id === except || id > except || kind !== "user" || running.has(id)) return false;
      const { queued, source } = event as QueuedMessage; // written by us
      return (alsoQueued || !queued) && (by === undefined || source.user_id === by);
    });
    const ids = dropped.map(({ id }) => id);
    return (await work.settle(ids, outcome, { unbegun: true })).length;
  }

  async #voice(word: string, source: ChatSource): Promise<string | null> {
    const { home } = this.#ports.settings;
    const chosen = VOICE_WORDS[word];
    if (chosen) await setVoiceMode(home, source, chosen.mode);
    else if (word !== "status") return null;
    const mode = await voiceMode(home, source);
    return Object.values(VOICE_WORDS).find((one) => one.mode === mode)?.says ?? null;
  }

  #whoami(source: ChatSource): string {
    const rights = this.#rightsOf(source);
    const name = source.user_name ? `${source.user_name} (${source.user_id})` : (source.user_id ?? "nobody known");
    const tier = isAdmin(source.user_id, rights) ? "admin: every command" : "user";
    const commands =
      rights === null
        ? ""
        : `\nYou may run: ${this.#allowed(source)
            .map((one) => `/${one.name}`)
            .join(" ")}`;
    return `You are ${name} on ${source.platform}: ${tier}.${isAdmin(source.user_id, rights) ? "" : commands}`;
  }

  #allowed(source: ChatSource): readonly CommandDefinition[] {
    const rights = this.#rightsOf(source);
    return this.#known
      .all()
      .filter(
        ({ name, permission = "user", onlyLooks }) =>
          name === "stop" || onlyLooks !== undefined || mayRun({ name, permission }, source.user_id, rights),
      );
  }

  #rightsOf(source: ChatSource) {
    return commandRights(source, this.#ports.settings.platform(source.platform).extra);
  }

  get #known(): CommandRegistry {
    return commandsOf(this.#registry, { home: this.#ports.settings.home }, SURFACE);
  }

  #place(key: string, message: QueuedMessage): AskedPlace {
    const { settings } = this.#ports;
    const { source } = message;
    const { account } = this.#ports.bot(source.platform);
    const shared = isShared(source, settings.sharing);
    return { ...{ key, source, account, shared }, target: targetOf(message), platform: source.platform };
  }

  async #end(row: InboxRow, message: QueuedMessage, text: string): Promise<void> {
    const { settings, work, routes, clock } = this.#ports;
    const { entry, account } = this.#ports.bot(message.source.platform);
    const target = targetOf(message);
    const { payloads } =
      text === ""
        ? { payloads: [] }
        : await composeAnswer(inLanguage(text), { home: settings.home, settings, entry, origin: "chat" });
    const outbox = payloads.map((payload, part) => ({
      ...{ cause: `inbox:${row.id}`, part, platform: entry.name, account, target, payload },
    }));
    const known = await routes.get(row.sessionKey);
    const touched = known && { ...known, updated_at: localIso(clock.now()) };
    await work.settle([row.id], "command", { outbox, ...(touched ? { route: routes.asRoute(touched) } : {}) });
    this.#ports.wake(entry.name);
  }
}

const SURFACE: DispatchSurface = { kind: "gateway", interrupt: async () => undefined };
const MOST_LISTED = 30;
const ANSWERS: ReadonlySet<string> = new Set(["approve", "deny", "once", "always", "cancel", "yes", "no"]);

const personOf = ({ user_id, user_name, chat_type: chatType }: ChatSource) => ({
  ...(user_id === undefined ? {} : { id: user_id }),
  ...(user_name === undefined ? {} : { name: user_name }),
  chatType,
});

function placeOf({ platform, chat_id, user_id, chat_name, thread_id }: ChatSource) {
  return {
    ...{ platform, chat_id: chat_id ?? user_id ?? "" },
    ...(chat_name === undefined ? {} : { chat_name }),
    ...(thread_id === undefined ? {} : { thread_id }),
  };
}
