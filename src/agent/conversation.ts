// What lives from turn to turn of one conversation.

import { lazy } from "../kit/lazy.ts";
import type { AuxPorts } from "../llm/auxiliary/client.ts";
import type { AuxiliaryClient, AuxTask } from "../llm/auxiliary/contract.ts";
import { KeyRing } from "../llm/keys/ring.ts";
import { Lessons } from "../llm/lessons.ts";
import type { HistoryMessage } from "../llm/messages.ts";
import { FitPictures, lacksImage } from "../llm/pictures/fit.ts";
import type { Usage } from "../llm/usage.ts";
import type { PromptLayout, Target } from "../llm/wire.ts";
import type { SystemPrompt } from "../prompt/contract.ts";
import { ControlWatch } from "../sessions/controls.ts";
import { type HeldLane, holderInWords, type Lane, type LaneHeld } from "../sessions/lanes.ts";
import type { SessionStore } from "../sessions/store.ts";
import type { Control } from "../sessions/work.ts";
import type { Assembly, ModelChoice } from "./assembly.ts";
import { ContextManager, engineTools, Pins } from "./compression/context-manager.ts";
import type { AgentEventBody } from "./events.ts";
import { FallbackChain } from "./fallback.ts";
import { ForeignText, TextOrigins } from "./foreign-text.ts";
import { Nudges } from "./nudges.ts";
import { RequestBuilder } from "./request.ts";
import { SteerBox } from "./steer.ts";
import { type TakenBack, Transcript } from "./transcript.ts";
import { UsageMeter } from "./usage-meter.ts";

/** The right to write the conversation, as long as it lasts. */
export type OwnLane = Pick<HeldLane, "type" | "lost" | "release"> & Partial<Pick<HeldLane, "lease">>;

export const inUseSentence = ({ by }: LaneHeld, what: "sent" | "changed") =>
  `This conversation is in use by ${holderInWords(by)}. Nothing was ${what}: try again when it is done, or continue in a copy (/branch).`;

/** How often other processes are listened to. */
const CONTROL_SECONDS = 2;

/** Nothing is stored, or whoever started this conversation holds its lane. */
const FREE: OwnLane = {
  type: "taken",
  lost: new AbortController().signal,
  release: async () => true,
};

export interface SentSoFar {
  readonly sessionId: string;
  readonly system: SystemPrompt;
  readonly messages: readonly HistoryMessage[];
  readonly model: ModelChoice;
  readonly turn: number;
}

export class Conversation {
  #assembly: Assembly;
  readonly transcript: Transcript;
  readonly meter = new UsageMeter();
  readonly steer = new SteerBox();
  readonly requests = new RequestBuilder();
  readonly context: ContextManager;
  /** Who answers when the model cannot. */
  readonly fallback = new FallbackChain(this);
  readonly pins: Pins;
  readonly keys: KeyRing;
  readonly nudges: Nudges;
  /** Whose text it has read; a look back shares it. */
  foreign: ForeignText;
  readonly origins: TextOrigins;
  /** Side calls: summaries, titles, judgements. */
  readonly auxiliary: AuxiliaryClient;
  /** Called for what another process asks of the running turn. */
  onControl: ((control: Control) => void) | null = null;
  /** Called for every side call that was counted. */
  onSideCall: ((usage: Usage, task: AuxTask) => void) | null = null;
  #model: ModelChoice;
  #prompt: { readonly sessionId: string; readonly target: Target; readonly system: SystemPrompt } | null = null;
  #turns = 0;
  #opened = false;
  #opening: string | null;
  #lessons = new Map<string, Lessons>();
  pictures = new FitPictures();

  constructor(assembly: Assembly) {
    this.#assembly = assembly;
    this.#model = assembly.model;
    this.#opening = assembly.session.opening ?? null;
    const { session } = assembly;
    this.transcript = new Transcript({
      sessionId: session.id,
      store: session.store,
      ...(session.history ? { history: session.history } : {}),
      describe: () => ({
        ...session.row,
        source: session.source,
        model: (this.fallback.own ?? this.#model).target.model,
      }),
    });
    this.foreign = new ForeignText(this.transcript, session.store, session.foreign);
    this.origins = new TextOrigins({
      tools: assembly.tools,
      environment: assembly.environment,
      store: session.store,
      isTrusted: assembly.isTrusted,
    });
    this.context = new ContextManager(this);
    this.keys = new KeyRing(assembly.keys);
    this.pins = new Pins(this.transcript, session.store);
    this.nudges = new Nudges({
      assembly: () => this.assembly,
      provider: () => this.#model.target.provider,
      transcript: this.transcript,
    });
    this.auxiliary = this.#openAuxiliary();
  }

  get assembly(): Assembly {
    return this.#assembly;
  }

  get model(): ModelChoice {
    return this.#model;
  }

  get turns(): number {
    return this.#turns;
  }

  /**
   * The right to write this conversation, until it is released. What others wrote meanwhile is in memory then. While somebody else has it:
   * waits as long as `wait` says, which may reject.
   */
  async hold(wait?: Parameters<Lane["hold"]>[1]): Promise<OwnLane | LaneHeld> {
    const { lane } = this.#assembly.session;
    if (!lane) return FREE;
    const held = await lane.hold(this.transcript.sessionId, wait);
    if (held.type !== "taken") return held;
    try {
      if (held.othersWrote) await this.transcript.forget(held.lease.lane);
      return this.#heard(held, lane);
    } catch (error) {
      await held.release();
      throw error;
    }
  }

  /** As long as it is held here, other processes can ask something of the turn. */
  #heard(held: HeldLane, { base }: Lane): OwnLane {
    const { log } = this.#assembly;
    const seconds = () => Number(this.#assembly.config().gateway.timers.controls ?? CONTROL_SECONDS);
    const ports = { log, seconds };
    const leave = ControlWatch.of(base).join(held.lease, (control) => this.onControl?.(control), ports);
    const release = async () => {
      await leave();
      await this.#endSteered(base).catch((error) => log.warn("a message that was read is answered once more", error));
      return held.release();
    };
    return { ...held, release };
  }

  /** While the lane is held, so that nobody begins a turn for a message that this one has read. */
  async #endSteered(store: SessionStore): Promise<void> {
    const read = this.steer.endTurn();
    if (read.length > 0) await (await store.work()).settle(read, "merged", { unbegun: true });
  }

  /** Loads what the store knows and counts the turn that begins. */
  async beginTurn(): Promise<void> {
    await this.open();
    this.#assembly.beforeTurn?.();
    this.#turns++;
  }

  /** Loads what the store knows. */
  async open(): Promise<void> {
    const engine = this.#opened ? null : await this.context.engineTools();
    if (engine) this.assembly.tools.add(engineTools(engine), "behind");
    const { session, tools } = this.assembly;
    const before = this.transcript.messages;
    await this.transcript.open();
    if (!this.#opened) {
      const row = await session.store?.get(this.transcript.sessionId);
      if (row) this.meter.resume(row);
    }
    if (!this.#opened || before !== this.transcript.messages) {
      const history = this.transcript.messages;
      this.#turns = Math.max(this.#turns, history.filter((message) => message.role === "user").length);
      if (history.length > 0) tools.hydrate(history);
      await this.foreign.load(history);
      if (session.history && !session.historyGoesOn && !this.#opened)
        this.assembly.gate.expectNewPrefix(this.transcript.sessionId, "client");
      // Pictures are not kept on disk: what was sent with them goes out without them from now on.
      if (history.some(lacksImage)) this.assembly.gate.expectNewPrefix(this.transcript.sessionId, "image_lost");
    }
    this.#opened = true;
  }

  /** Takes the last user turns back; resolves to what the user had said, oldest first. */
  async undo(turns: number): Promise<readonly TakenBack[]> {
    await this.open();
    const before = this.transcript.messages;
    const said = await this.transcript.dropTurns(turns);
    if (said.length === 0) return said;
    await this.foreign.undone(before, this.transcript.messages);
    this.context.historyChanged();
    this.assembly.gate.expectNewPrefix(this.transcript.sessionId, "rewind");
    const { assembly } = this;
    const { tools } = assembly;
    tools.hydrate(this.transcript.messages);
    assembly.toolPorts?.skills?.forgetViews();
    return said;
  }

  /** What the first message carries in front of it; null from then on. */
  takeOpening(): string | null {
    const opening = this.#opening;
    this.#opening = null;
    return opening;
  }

  /** The session's system prompt; asked for once per session and destination. */
  async systemPrompt(): Promise<string> {
    const { sessionId } = this.transcript;
    const { target } = this.#model;
    if (this.#prompt?.sessionId === sessionId && this.#prompt.target === target) return this.#prompt.system.text;
    // A session only ever goes on under another id because it was compressed.
    if (this.#prompt && this.#prompt.sessionId !== sessionId)
      this.assembly.gate.expectNewPrefix(sessionId, "compression");
    const system = await this.#askPrompt(target);
    this.#prompt = { sessionId, target, system };
    return system.text;
  }

  /** What the next request would begin with; null before the first one. */
  get sent(): SentSoFar | null {
    if (!this.#prompt) return null;
    const { messages, sessionId } = this.transcript;
    return { messages, sessionId, system: this.#prompt.system, model: this.#model, turn: this.#turns };
  }

  /** Another conversation that knows what this one learned about its destinations. */
  fork(assembly: Assembly): Conversation {
    const fork = new Conversation(assembly);
    fork.#lessons = this.#lessons;
    fork.foreign = this.foreign;
    fork.pictures = this.pictures;
    fork.#opening = null;
    return fork;
  }

  /** What is known of the inside of the system prompt in use. */
  get promptLayout(): PromptLayout | undefined {
    return this.#prompt?.system.layout;
  }

  /** All or nothing: whatever fails leaves the old model in force. */
  async switchModel(model: ModelChoice): Promise<void> {
    const { sessionId } = this.transcript;
    const { store } = this.assembly.session;
    const old = this.#model;
    if (model.target === old.target && this.fallback.own) {
      this.fallback.amendOwn(model);
      this.#model = model;
      return;
    }
    const exists = store !== null && (await store.get(sessionId)) !== null;
    // Before the first message there is no row to keep a prompt in; the turn will ask for it.
    const system = exists || store === null ? await this.#askPrompt(model.target) : null;
    if (exists) await store.update(sessionId, { model: model.target.model });
    if (model.target !== old.target) this.fallback.forget((this.fallback.own ?? old).target, model.target);
    this.#model = model;
    this.#prompt = system && { sessionId, target: model.target, system };
    this.context.modelChanged();
  }

  /** Another model goes on with the conversation, whose own model stays what it is. All or nothing. */
  async replaceModel(model: ModelChoice): Promise<void> {
    const { sessionId } = this.transcript;
    const { prompt } = this.assembly;
    const current = this.#prompt?.sessionId === sessionId ? this.#prompt.system : null;
    const system = (current && prompt.retarget?.(current, model.target)) ?? (await this.#askPrompt(model.target));
    this.#model = model;
    this.#prompt = { sessionId, target: model.target, system };
    this.context.modelChanged();
  }

  /** Builds the prompt anew because the user asked for it; resolves to whether it differs from the one before. */
  async reloadPrompt(): Promise<boolean> {
    await this.open();
    const before = await this.systemPrompt();
    const { sessionId, messages } = this.transcript;
    const { target } = this.#model;
    const { assembly } = this;
    const { prompt } = assembly;
    const system = await prompt.rebuild?.({ sessionId, target, hasHistory: messages.length > 0 });
    if (!system) return false;
    this.#prompt = { sessionId, target, system };
    if (system.text === before) return false;
    assembly.gate.expectNewPrefix(sessionId, "reload");
    this.context.historyChanged();
    return true;
  }

  /** A server said how large its window really is. */
  adoptWindow(contextLength: number): void {
    this.adoptTarget({ ...this.#model.target, contextLength, windowAssumed: undefined });
    this.context.modelChanged();
  }

  /** The same model at the same place, reached a little differently: another key, another window. Its prompt stays. */
  adoptTarget(target: Target): void {
    if (this.#prompt?.target === this.#model.target) this.#prompt = { ...this.#prompt, target };
    this.#model = { ...this.#model, target };
  }

  /** Which session this is now, for doors. */
  async describeSession(reason: "compressed" | "undone"): Promise<Extract<AgentEventBody, { type: "session" }>> {
    const { sessionId: id } = this.transcript;
    const { model, provider } = this.#model.target;
    const title = (await this.assembly.session.store?.get(id))?.title ?? null;
    return { type: "session", id, title, model, provider, reason };
  }

  /** What the current destination refused so far. */
  get lessons(): Lessons {
    const { provider, baseUrl, model } = this.#model.target;
    const destination = `${provider}\n${baseUrl}\n${model}`;
    const known = this.#lessons.get(destination) ?? new Lessons();
    this.#lessons.set(destination, known);
    return known;
  }

  /** The model sees pictures, as far as is known. */
  get takesImages(): boolean {
    if (this.assembly.config().agent.image_input_mode === "text") return false;
    return this.#model.target.profile.images && this.lessons.takesImages;
  }

  countSideCall(usage: Usage): void {
    this.meter.addSide(usage, usage.cost ?? { usd: null, status: "unknown" });
  }

  async #askPrompt(target: Target): Promise<SystemPrompt> {
    const { sessionId, messages } = this.transcript;
    // The user message of this turn is already there when the prompt is asked for.
    const asked = await this.assembly.prompt.system({ sessionId, target, hasHistory: messages.length > 1 });
    const system = typeof asked === "string" ? { text: asked } : asked;
    if (system.cause) this.assembly.gate.expectNewPrefix(sessionId, system.cause);
    const rules = this.assembly.untrustedRules?.() ?? null;
    if (rules !== null && !this.foreign.sources.includes(rules)) await this.foreign.add([{ call: "", from: rules }]);
    return system;
  }

  #openAuxiliary(): AuxiliaryClient {
    const { assembly } = this;
    const { session } = assembly;
    return lazyAuxiliary({
      get jobId() {
        return session.jobId;
      },
      gate: assembly.gate,
      clock: assembly.clock,
      log: assembly.log,
      config: () => assembly.config(),
      main: () => this.#model.target,
      mainSees: () => this.lessons.takesImages,
      keys: assembly.keys,
      onNewKey: (before, after) => {
        if (this.#model.target === before) this.adoptTarget(after);
      },
      ...(assembly.resolveSpec
        ? { resolve: (spec) => assembly.resolveSpec?.(spec) ?? Promise.reject(new Error("gone")) }
        : {}),
      onUsage: (usage, task) => {
        this.countSideCall(usage);
        this.onSideCall?.(usage, task);
      },
    });
  }
}

/** The client for side tasks, loaded by the first of them: many conversations have none. */
function lazyAuxiliary(ports: AuxPorts): AuxiliaryClient {
  const client = lazy(async () => (await import("../llm/auxiliary/client.ts")).createAuxiliary(ports));
  return {
    callAux: async (call) => (await client()).callAux(call),
    resolveAux: async (task, request) => (await client()).resolveAux(task, request),
  };
}
