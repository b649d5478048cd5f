// The prompts of one session: which one is in force, whether it still fits, and where it is kept.
import type { Target, ToolDefinition } from "../llm/wire.ts";
import type { PromptRecord, SessionStore } from "../sessions/store.ts";
import type { CodingReading, PromptQuestion, SystemPrompt } from "./contract.ts";
import { fingerprintChanges, PROMPT_VERSION } from "./fingerprint.ts";
import type { BuiltPrompt, PromptPlace } from "./open.ts";
import { contextHashesOf, layoutOf, recordOf } from "./prompt-record.ts";

/** Prompts of one session by destination; a return to an earlier model finds its own bytes again. */
const KEPT_PROMPTS = 4;

/** What a later build takes over from the first: of the same session, or of the one it was compressed from. */
interface Origin {
  readonly sessionId: string;
  readonly startedAt: number;
  /** Absent: the next build looks again. */
  readonly coding?: CodingReading | null;
}

/** What is known of earlier builds. */
interface Before {
  readonly origin: Origin | null;
  readonly kept: readonly PromptRecord[];
}

export interface SessionPromptsOptions {
  readonly place: PromptPlace;
  readonly store: SessionStore;
  /** The tool list that is sent with the prompt; a reload may change it. */
  readonly tools: { readonly definitions: readonly ToolDefinition[] };
  build(place: PromptPlace, target: Target, sessionId: string): Promise<BuiltPrompt>;
  onBuilt?(sessionId: string): Promise<void>;
}

export class SessionPrompts {
  readonly #options: SessionPromptsOptions;
  #warnings: readonly string[] = [];
  #contextHashes: readonly string[] = [];

  constructor(options: SessionPromptsOptions) {
    this.#options = options;
  }

  /** What the last build has to tell the user, once. */
  takeWarnings(): readonly string[] {
    const told = this.#warnings;
    this.#warnings = [];
    return told;
  }

  /** Of the project files in the prompt in force. */
  get contextHashes(): readonly string[] {
    return this.#contextHashes;
  }

  async system({ sessionId, target, hasHistory }: PromptQuestion): Promise<SystemPrompt> {
    const { place, store } = this.#options;
    const { cwd, toolSelection } = place;
    const { model, provider } = target;
    const wanted = {
      ...{ v: PROMPT_VERSION, model, provider, platform: place.wish.platform, cwd },
      ...(toolSelection === undefined ? {} : { toolSelection }),
    };
    const stored = await this.#read("the stored prompt", () => store.getPrompt(sessionId), null);
    if (stored !== null && stored.prompt !== "") {
      const changes = fingerprintChanges(stored.fingerprint, wanted);
      if (changes.length === 0) return this.#restored(stored);
      const kept = await this.#kept(sessionId);
      const earlier = kept.find(({ fingerprint }) => isStampedFor(fingerprint, wanted));
      if (earlier) {
        await this.#write(() => store.setPrompt(sessionId, earlier));
        return this.#restored(earlier);
      }
      this.#log.info(`The prompt of session ${sessionId} is built anew: ${changes.join(", ")} changed.`);
      const built = await this.#build(sessionId, target, { origin: await this.#origin(sessionId), kept });
      const elsewhere = changes.every((field) => field === "model" || field === "provider");
      return elsewhere ? built : { ...built, cause: "selection" };
    }
    const origin = await this.#origin(sessionId);
    if (hasHistory && (origin === null || origin.sessionId === sessionId))
      this.#log.warn(`Session ${sessionId} has messages but no stored prompt; a new one is built and stored.`);
    return this.#build(sessionId, target, { origin, kept: [] });
  }

  /** The user wants what SOUL.md, project files, memory and skills say now. What other models were told is forgotten too. */
  async rebuild({ sessionId, target }: PromptQuestion): Promise<SystemPrompt> {
    const { place } = this.#options;
    const { startedAt } = (await this.#origin(sessionId)) ?? place;
    return this.#build(sessionId, target, { origin: { sessionId, startedAt }, kept: [] });
  }

  async #build(sessionId: string, target: Target, before: Before): Promise<SystemPrompt> {
    const { place, build } = this.#options;
    const { origin } = before;
    // A prompt that is built anew may know what was learned since; the stored one never changes.
    if (origin) await place.memory?.reload();
    const first = origin
      ? { startedAt: origin.startedAt, ...(origin.coding === undefined ? {} : { coding: origin.coding }) }
      : {};
    const built = await build({ ...place, ...first }, target, sessionId);
    this.#warnings = built.warnings;
    this.#contextHashes = built.contextHashes;
    await this.#options.onBuilt?.(sessionId);
    await this.#write(() => this.#keep(sessionId, built, before));
    return { text: built.full, layout: layoutOf(recordOf(built)) };
  }

  #restored(record: PromptRecord): SystemPrompt {
    this.#contextHashes = contextHashesOf(record);
    const layout = layoutOf(record);
    return { text: record.prompt, ...(layout ? { layout } : {}) };
  }

  async #keep(sessionId: string, built: BuiltPrompt, { origin, kept }: Before): Promise<void> {
    const { store, tools, place } = this.#options;
    const record = recordOf(built);
    const { model, provider } = built.fingerprint;
    const others = kept.filter(({ fingerprint }) => !isStampedFor(fingerprint, { model, provider }));
    await store.putToolList(tools.definitions);
    await store.setPrompt(sessionId, record);
    await store.setValue(sessionId, "prompts", [...others, record].slice(-KEPT_PROMPTS));
    const first: Origin = { startedAt: place.startedAt, coding: built.coding, ...origin, sessionId };
    await store.setValue(sessionId, "prompt_origin", first);
  }

  async #origin(sessionId: string): Promise<Origin | null> {
    const { store } = this.#options;
    const value = await this.#read(
      "what the first prompt found",
      () => store.getValue(sessionId, "prompt_origin"),
      null,
    );
    return value as Origin | null; // written by nobody but us
  }

  async #kept(sessionId: string): Promise<readonly PromptRecord[]> {
    const { store } = this.#options;
    const kept = await this.#read("earlier prompts", () => store.getValue(sessionId, "prompts"), null);
    return Array.isArray(kept) ? kept : [];
  }

  /** A conversation goes on without its store; what that costs is a cache, not an answer. */
  async #read<T>(what: string, read: () => Promise<T>, otherwise: T): Promise<T> {
    try {
      return await read();
    } catch (error) {
      this.#log.warn(`Could not read ${what}; a prompt is built.`, error);
      return otherwise;
    }
  }

  async #write(write: () => Promise<void>): Promise<void> {
    try {
      await write();
    } catch (error) {
      this.#log.warn("The prompt could not be stored; this conversation goes on with it in memory.", error);
    }
  }

  get #log() {
    return this.#options.place.wish.home.log.child("prompt");
  }
}

function isStampedFor(fingerprint: unknown, wanted: Parameters<typeof fingerprintChanges>[1]): boolean {
  return fingerprint !== null && fingerprintChanges(fingerprint, wanted).length === 0;
}
