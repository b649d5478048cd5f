// The gateway: bots on one side, conversations on the other, and between them what waits in the store.
import { type BackgroundReport, BackgroundTasks } from "../../agent/background.ts";
import type { OpenAgent } from "../../agent/opened.ts";
import type { OpenHome } from "../../home/open.ts";
import type { Clock } from "../../kit/clock.ts";
import { restAwhile, tellStarted } from "../../kit/memory.ts";
import { newHolder } from "../../sessions/lanes.ts";
import type { SessionStore } from "../../sessions/store.ts";
import type { OutboxRow, WorkStore } from "../../sessions/work.ts";
import type { ChatMessage, PlatformEntry } from "./contract.ts";
import { Conversations } from "./conversations.ts";
import { type GatewayCron, openGatewayCron } from "./cron.ts";
import { Desk } from "./desk.ts";
import type { Ending } from "./ending.ts";
import { ChatGoals } from "./goals.ts";
import { ChatHooks } from "./hooks.ts";
import { Inbound } from "./inbound.ts";
import { lockBot, noteRestart, stateDirOf } from "./instance.ts";
import { type GatewayKanban, openGatewayKanban } from "./kanban-dispatch.ts";
import { Link } from "./link.ts";
import { chatFiles, readUserInput } from "./media-in.ts";
import { Mirror } from "./mirror.ts";
import { Notices } from "./notices.ts";
import { loadPackage } from "./packages.ts";
import { closedDoors, Pairing } from "./pairing.ts";
import { allPlatforms, beforeDispatch } from "./platform-list.ts";
import { Questions } from "./questions.ts";
import { type Bot, type QueuedMessage, targetOf } from "./reply.ts";
import { type ChatEntry, Routes } from "./routes.ts";
import { Sender } from "./send.ts";
import { GatewaySettings } from "./settings.ts";
import type { StatePatch } from "./state-file.ts";
import { Stickers } from "./stickers.ts";
import { CommandDesk, type GatewayControls } from "./surface.ts";
import { writeDirectory } from "./targets.ts";
import type { TurnPorts } from "./turn.ts";

interface GatewayRun {
  readonly home: OpenHome;
  readonly store: SessionStore;
  readonly clock: Clock;
  readonly cwd: string;
  /** One line on the console. */
  out(line: string): void;
  /** Its reason is an `Ending`. */
  readonly stop: AbortSignal;
  /** Ends the gateway to start it again. */
  restart(why: string): Promise<void>;
  /** What the state file says. */
  state(change: StatePatch): void;
  /** It ended without cutting a turn off. */
  endedClean(): Promise<void>;
}

/** Runs until it is stopped; resolves to the exit code. */
export async function runGateway(run: GatewayRun): Promise<number> {
  const gateway = await Gateway.open(run);
  return gateway.run();
}

class Gateway {
  readonly #run: GatewayRun;
  readonly #settings: GatewaySettings;
  readonly #work: WorkStore;
  readonly #entries: ReadonlyMap<string, PlatformEntry>;
  readonly #links = new Map<string, Link>();
  readonly #routes: Routes;
  readonly #conversations: Conversations;
  readonly #questions: Questions;
  readonly #inbound: Inbound;
  readonly #desk: Desk;
  readonly #goals: ChatGoals;
  readonly #sender: Sender;
  readonly #commands: CommandDesk;
  readonly #hooks: ChatHooks;
  readonly #notices: Notices;
  readonly #background: BackgroundTasks;
  /** Whose background prompt it is. */
  readonly #backgroundOf = new Map<string, { readonly key: string; readonly message: QueuedMessage }>();
  readonly #over = new AbortController();
  readonly #warnings: string[];
  readonly #cron: GatewayCron;
  readonly #kanban: GatewayKanban;

  static async open(run: GatewayRun): Promise<Gateway> {
    const { home, store, clock } = run;
    const log = home.log.child("gateway");
    const settings = await GatewaySettings.open(home);
    const work = await store.work();
    const routes = await Routes.open({ home, work, clock, log });
    const hooks = await ChatHooks.load(home.paths, clock, log.child("hooks"));
    const warnings: string[] = [];
    const entries = await allPlatforms(run, log, (line) => void warnings.push(line));
    const cron = await openGatewayCron({ ...run, settings, entries: () => entries });
    return new Gateway(run, { settings, work, routes, hooks, entries, warnings, cron });
  }

  private constructor(
    run: GatewayRun,
    parts: {
      readonly settings: GatewaySettings;
      readonly work: WorkStore;
      readonly routes: Routes;
      readonly hooks: ChatHooks;
      readonly entries: readonly PlatformEntry[];
      readonly warnings: readonly string[];
      readonly cron: GatewayCron;
    },
  ) {
    const { home, store, clock, cwd } = run;
    const { settings, work, routes, hooks } = parts;
    const log = home.log.child("gateway");
    this.#run = run;
    this.#settings = settings;
    this.#work = work;
    this.#routes = routes;
    this.#hooks = hooks;
    this.#cron = parts.cron;
    this.#kanban = openGatewayKanban({
      ...{ home, store, clock, cwd, work, routes, stop: run.stop },
      link: (name) => this.#links.get(name),
      arrived: () => this.#desk.look(),
    });
    this.#warnings = [...parts.warnings];
    this.#entries = new Map(parts.entries.map((entry) => [entry.name, entry]));
    this.#background = new BackgroundTasks({ clock, onReport: (report) => this.#reportBackground(report) });
    this.#notices = new Notices({
      ...{ home, settings, work, routes, clock, log },
      link: (name) => this.#links.get(name),
      isAllowed: (who) => this.#inbound.isAllowed(who),
      links: () => this.#links.values(),
      lastIn: (key) => this.#desk.lastIn(key),
      arrived: () => this.#desk.look(),
    });
    this.#conversations = new Conversations({
      ...{ settings, store, routes, clock, log, cwd },
      platform: (name) => this.#entry(name),
      platforms: () => [...this.#links.values()].map(({ entry }) => entry),
      deliver: (source) => ({
        deliver: (request) => this.#sender.deliver({ ...request, origin: source }),
        list: (platform) => this.#sender.list(platform),
      }),
      follow: (key, conversation) => void this.#notices.follow(key, conversation),
      begun: (entry) => hooks.fire("session:start", sessionFacts(entry)),
      ended: async (entry, reason) => hooks.fire("session:end", { ...sessionFacts(entry), reason }),
    });
    this.#questions = new Questions({
      ...{ work, clock, log },
      redact: (text) => home.redact(text),
      wake: (platform) => this.#wake(platform),
      mayAnswer: (who, { source }) => this.#inbound.mayAnswer(who, source),
      isAdmin: (who) => this.#inbound.isAdmin(who),
      closed: async ({ platform, target }, messageId, text) =>
        this.#links.get(platform)?.adapter?.closeQuestion?.(target, messageId, text),
    });
    const mirror = new Mirror({ store, routes, log });
    this.#sender = new Sender({
      ...{ settings, work, routes, clock, mirror },
      entries: () => [...this.#links.values()].map(({ entry }) => entry),
      wake: (platform) => this.#wake(platform),
    });
    const files = chatFiles(home, clock);
    const stickers = new Stickers(home, { clock, log });
    this.#goals = new ChatGoals({
      ...{ settings, store, work, routes, conversations: this.#conversations, clock, log },
      bot: (platform) => this.#bot(platform),
      wake: (platform) => this.#wake(platform),
      look: () => this.#desk.look(),
    });
    const ports: TurnPorts = {
      ...{ settings, work, store, routes, conversations: this.#conversations, questions: this.#questions, clock, log },
      ...{ goals: this.#goals, mirror },
      readInput: (messages, options) =>
        readUserInput(messages, { home, clock, log, stickers, isOurs: (message) => this.#isOurs(message), ...options }),
      download: files.download,
      bot: (platform) => this.#bot(platform),
      serves: (platform) => this.#links.has(platform),
      elsewhere: async (target, source) => {
        const chats = await this.#sender.resolve(target, source);
        if ("error" in chats) throw new Error(chats.error);
        return chats.map(({ entry, target: place }) => ({
          entry,
          account: this.#bot(entry.name).account,
          target: place,
        }));
      },
      isAllowed: (message) => this.#inbound.isAllowed(message),
      wake: (platform) => this.#wake(platform),
      event: (name, payload) => hooks.fire(name, payload),
    };
    this.#inbound = new Inbound({
      ...{ settings, work, routes, questions: this.#questions, clock, log, files },
      pairing: new Pairing(home.paths, clock),
      knowsSticker: (id) => stickers.isKnown(id),
      loadPackage: (entry, name, load) => loadPackage(entry, name, load, home),
      beforeDispatch: (message) => beforeDispatch(run, message),
      deliverTo: (target, text, cause) => this.#sender.handOn(target, text, cause),
      arrived: (platform) => {
        this.#links.get(platform)?.noteTraffic("last_inbound_at");
        this.#desk.look();
      },
      reply: async (platform, message, text) => {
        const target = targetOf(message);
        await this.#links.get(platform)?.adapter?.send(target, text, { key: `pairing:${message.updateId}` });
      },
      undelivered: (row, error) => this.#undeliverable(row, error),
      entry: (name) => this.#entry(name),
    });
    this.#desk = new Desk(ports, () => this.#publish());
    this.#commands = new CommandDesk(ports, this.#desk, this.#controls());
  }

  async run(): Promise<number> {
    const { home, out, stop, clock } = this.#run;
    out(`[Gateway] starting: profile ${home.paths.profile}, home ${home.display(home.paths.dir)}, pid ${process.pid}`);
    this.#run.state({ gateway_state: "starting" });
    this.#openLinks();
    this.#warnings.push(...this.#settings.unknownPlatforms([...this.#entries.keys()]));
    const closed = await closedDoors(
      [...this.#links.values()].map(({ entry }) => entry),
      home,
      clock,
    );
    const owed = await this.#work.owedByOriginal();
    for (const warning of [...this.#warnings, ...closed, ...(owed === null ? [] : [owed])])
      out(`[Gateway] warning: ${warning}`);
    const hasOtherWork = (await this.#cron.hasJobs()) || (await this.#kanban.hasWork());
    if (this.#links.size === 0 && !hasOtherWork) return this.#nothingToDo();
    await this.#recover();
    for (const link of this.#links.values()) link.start();
    await Promise.race([Promise.all([...this.#links.values()].map(({ tried }) => tried)), aborted(stop)]);
    const states = [...this.#links.values()].map(({ status }) => status.state);
    if (!stop.aborted && states.length > 0 && states.every((state) => state === "fatal")) {
      this.#run.state({ gateway_state: "startup_failed", exit_reason: "no platform could be connected" });
      await this.#close();
      out("[Gateway] stopped");
      return 1;
    }
    const connected = [...this.#links.values()]
      .filter(({ adapter }) => adapter !== null)
      .map(({ entry }) => entry.name);
    const retrying = states.filter((state) => state === "retrying").length;
    out(await this.#cron.line());
    const kanban = await this.#kanban.line();
    if (kanban !== null) out(kanban);
    const isWell = connected.length > 0 || states.length === 0;
    this.#run.state({ gateway_state: isWell ? "running" : "degraded", warnings: this.#warnings });
    tellStarted();
    out(`[Gateway] ready: ${connected.length > 0 ? connected.join(", ") : `none connected, ${retrying} retrying`}`);
    this.#hooks.fire("gateway:startup", { platforms: connected });
    await this.#notices.back();
    this.#desk.open(this.#commands);
    void this.#goals.start().catch((error) => home.log.child("gateway").warn("goals could not be resumed", error));
    void this.#watch("expiry", ["expiry_first", "expiry_every"], () => this.#conversations.expire());
    void this.#watch("idle agents", ["expiry_every", "expiry_every"], () => this.#conversations.sweep());
    void this.#watch("sessions.json", ["directory", "directory"], () => this.#routes.mirror());
    void this.#watch("store", ["media_cleanup", "media_cleanup"], () => this.#work.sweep());
    void this.#watch("media", ["media_cleanup", "media_cleanup"], () => chatFiles(home, clock).clean());
    void this.#watch("directory", ["expiry_first", "directory"], () => this.#writeDirectory());
    void this.#watch("inbox", ["controls", "controls"], async () => this.#desk.look());
    void this.#watch("processes", ["controls", "controls"], () => this.#notices.processes());
    void this.#watch("cards", ["kanban_notify", "kanban_notify"], () => this.#kanban.tell());
    // The start alone leaves 5 MB behind that nobody needs again.
    void this.#watch("memory", ["rest_first", "rest_every"], async () => {
      if (this.#desk.running.length === 0) await restAwhile();
    });
    this.#cron.start((platform) => this.#wake(platform));
    this.#kanban.start();
    await aborted(stop);
    return this.#end(stop.reason as Ending); // the contract of `stop`
  }

  // --- platforms

  #openLinks(): void {
    const { home, clock, out, store, cwd } = this.#run;
    const log = home.log.child("gateway");
    const holder = newHolder();
    for (const entry of this.#entries.values()) {
      const { on, problem } = this.#settings.enabled(entry);
      if (problem) out(`[${entry.label}] off: ${problem}`);
      const identity = on ? entry.identity(this.#settings.option(entry.name)) : null;
      if (identity === null) continue;
      const unknown = this.#settings.unknownOptions(entry);
      if (unknown.length > 0) this.#warnings.push(`config.yaml: nobody reads ${unknown.join(", ")}`);
      this.#warnings.push(...(entry.warnings?.(this.#settings.option(entry.name)) ?? []));
      const link = new Link({
        ...{ entry, identity, settings: this.#settings, work: this.#work, clock, log, holder },
        host: (account) => ({ ...this.#inbound.hostFor(entry, account), program: { home, store, cwd } }),
        lock: async () => {
          if (entry.ownsPort) return { release: async () => undefined };
          const lock = await lockBot(entry.name, identity, { stateDir: stateDirOf(home), home: home.paths.dir });
          return lock.type === "taken" ? lock : { heldBy: lock.by };
        },
        say: (line) => out(`[${entry.label}] ${line}`),
        changed: () => this.#publish(),
        commands: () => this.#commands.menu().map(({ name, description }) => ({ name, description })),
        undeliverable: (row, error) => void this.#undeliverable(row, error),
      });
      this.#links.set(entry.name, link);
    }
  }

  async #undeliverable(row: OutboxRow, error: string): Promise<void> {
    if (!(await this.#kanban.refused(row))) await this.#notices.undeliverable(row, error);
  }

  #nothingToDo(): number {
    const { out } = this.#run;
    this.#run.state({ gateway_state: "startup_failed", exit_reason: "no platform is set up" });
    out("[Gateway] no platform is set up: hermes gateway setup");
    return 1;
  }

  #publish(): void {
    const platforms = Object.fromEntries([...this.#links].map(([name, { status }]) => [name, status]));
    this.#run.state({ platforms, active_agents: this.#desk.running.length, waiting: this.#desk.inLine });
  }

  #entry(name: string): PlatformEntry {
    const entry = this.#entries.get(name);
    if (!entry) throw new Error(`no platform is called ${name}`);
    return entry;
  }

  #bot(name: string): Bot {
    const link = this.#links.get(name);
    return { entry: this.#entry(name), account: link?.account ?? "", adapter: link?.adapter ?? null };
  }

  #wake(platform: string): void {
    this.#links.get(platform)?.wake();
  }

  // --- start and end

  /** What the original left to go on with gets a row; the rest is in the inbox by itself. */
  async #recover(): Promise<void> {
    const resumable = ["restart_timeout", "shutdown_timeout", "restart_interrupted"];
    const waiting = await this.#work.waiting();
    for (const entry of await this.#routes.all()) {
      const { resume_pending: pending, resume_reason: reason, origin, session_key: key } = entry;
      if (!pending || !origin || waiting.has(key) || !resumable.includes(String(reason))) continue;
      const link = this.#links.get(origin.platform);
      if (!link) continue;
      const text = "[The gateway was restarted while you worked. Finish what was asked last.]";
      const updateId = `wake:${key}:${String(entry.last_resume_marked_at ?? entry.updated_at)}`;
      const event: ChatMessage = { text, type: "text", source: origin, updateId, sentAt: this.#run.clock.now() / 1000 };
      await this.#work.accept([
        { sessionKey: key, platform: origin.platform, account: link.account, updateId, kind: "wake", event },
      ]);
    }
  }

  async #end(ending: Ending): Promise<number> {
    const { out, state, home } = this.#run;
    const turns = this.#desk.running.length;
    const isRestart = ending.type === "restart";
    out(`[Gateway] stopping: ${ending.why}, ${turns} turn${turns === 1 ? "" : "s"} running`);
    state({ gateway_state: "draining", restart_requested: isRestart, exit_reason: ending.why });
    const farewells = await this.#notices.ending(this.#desk.running, isRestart);
    if (isRestart) await noteRestart(home);
    const seconds = Number(home.env("HERMES_RESTART_DRAIN_TIMEOUT") ?? home.config().agent.restart_drain_timeout);
    const [cut] = await Promise.all([
      this.#desk.drain(seconds * 1000, isRestart ? "restart" : "shutdown"),
      this.#cron.close(seconds * 1000),
      this.#kanban.close(),
    ]);
    await this.#notices.leave(farewells);
    await this.#close();
    if (cut === 0) await this.#run.endedClean();
    state({ gateway_state: "stopped", exit_reason: ending.why });
    out("[Gateway] stopped");
    return ending.exitCode;
  }

  async #close(): Promise<void> {
    this.#over.abort();
    await this.#background.close();
    await this.#goals.close();
    await this.#conversations.close();
    await Promise.all([...this.#links.values()].map((link) => link.stop()));
    await this.#routes.mirror({ now: true });
  }

  #writeDirectory(): Promise<void> {
    const { home, clock } = this.#run;
    const sources = [...this.#links.values()].map(({ entry, adapter }) => ({
      entry,
      chats: () => adapter?.chats?.() ?? null,
    }));
    return writeDirectory(home, { sources, routes: this.#routes, clock, log: home.log.child("gateway") });
  }

  // --- things that happen beside turns

  async #watch(
    what: string,
    [first, every]: readonly [keyof GatewaySettings["timers"], keyof GatewaySettings["timers"]],
    work: () => Promise<unknown>,
  ): Promise<void> {
    const { clock, home } = this.#run;
    const { signal } = this.#over;
    for (let wait = this.#settings.timers[first]; !signal.aborted; wait = this.#settings.timers[every]) {
      await clock.sleep(Math.max(0.05, wait) * 1000, signal).catch(() => undefined);
      if (signal.aborted) return;
      await work().catch((error) => home.log.child("gateway").warn(`looking after ${what} failed`, error));
    }
  }

  #reportBackground(report: BackgroundReport): void {
    const owner = this.#backgroundOf.get(report.id);
    this.#backgroundOf.delete(report.id);
    if (owner) void this.#notices.background(report, owner.message);
  }

  #controls(): GatewayControls {
    const gateway = this;
    const { home } = this.#run;
    return {
      async restart({ source }) {
        const { chatId, threadId } = targetOf({ source });
        await noteRestart(home, {
          platform: source.platform,
          chat_id: chatId,
          ...(threadId ? { thread_id: threadId } : {}),
        });
        setTimeout(() => void gateway.#run.restart("/restart"), RESTART_MS);
        return "Restarting when running turns are done.";
      },
      async setHome(message) {
        const { entry } = gateway.#bot(message.source.platform);
        const { chatId, threadId } = targetOf(message);
        const upper = entry.name.toUpperCase();
        await home.setEnv(entry.homeVariable ?? `${upper}_HOME_CHANNEL`, chatId);
        await home.setEnv(`${upper}_HOME_CHANNEL_NAME`, message.source.chat_name ?? message.source.user_name ?? chatId);
        if (threadId) await home.setEnv(`${upper}_HOME_CHANNEL_THREAD_ID`, threadId);
        else await home.removeEnv(`${upper}_HOME_CHANNEL_THREAD_ID`);
        return "This chat is the home channel now.";
      },
      get platforms() {
        return [...gateway.#links].map(([name, { status }]) => ({
          name,
          state: status.state,
          account: status.account ?? "",
        }));
      },
      async setPlatform(name, state) {
        const link = gateway.#links.get(name);
        if (!link) return `There is no platform ${name} here. /platform list shows them.`;
        if (state === "pause") link.pause();
        else link.resume();
        return `${link.entry.label}: ${state === "pause" ? "paused" : "connecting"}.`;
      },
      background: {
        running: (key) => gateway.#background.running.filter(({ id }) => gateway.#backgroundOf.get(id)?.key === key),
        start: (key, prompt, message, conversation) => gateway.#startBackground(key, prompt, message, conversation),
        stop: (id) => gateway.#background.stop(id),
      },
      intercept: (name, args, { platform, user_id }) => gateway.#hooks.intercept(name, args, { platform, user_id }),
      event: (name, payload) => gateway.#hooks.fire(name, payload),
    };
  }

  /** Whether a message answers one that we sent there. */
  async #isOurs({ source, replyTo }: ChatMessage): Promise<boolean> {
    if (replyTo === undefined) return false;
    return this.#work.wasSent(source.platform, this.#bot(source.platform).account, replyTo.messageId);
  }

  #startBackground(key: string, prompt: string, message: QueuedMessage, conversation: OpenAgent) {
    const request = this.#conversations.requestNow(key, message);
    const task = this.#background.start(prompt, request, conversation);
    this.#backgroundOf.set(task.id, { key, message });
    return task;
  }
}

const sessionFacts = ({ origin, session_id, session_key }: ChatEntry) => ({
  ...{ platform: origin?.platform, user_id: origin?.user_id, session_id, session_key },
});

/** Long enough for the reply to be stored and the row of the command to end. */
const RESTART_MS = 300;

const aborted = (signal: AbortSignal) =>
  new Promise<void>((resolve) => {
    if (signal.aborted) resolve();
    signal.addEventListener("abort", () => resolve(), { once: true });
  });
