// The prompts of one session: which one is in force, whether it still fits, and where it is kept.

import { countCodePoints, sliceCodePoints } from "../kit/code-points.ts";
import type { PromptLayout, Target, ToolDefinition } from "../llm/wire.ts";
import type { PromptRecord, SessionStore } from "../sessions/store.ts";
import type { CodingReading, PromptBuild, PromptQuestion, PromptSource, SystemPrompt } from "./contract.ts";
import { DayNotes } from "./day-notes.ts";
import { fingerprintChanges, isStampedText, PROMPT_VERSION } from "./fingerprint.ts";
import { type BuiltPrompt, buildPrompt, type PromptContext } from "./open.ts";
import { chooseEphemeral, PrefillOnce } from "./overlay.ts";

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

interface SessionPromptsOptions {
  readonly context: PromptContext;
  readonly store: SessionStore;
  /** The tool list that is sent with the prompt; a reload may change it. */
  readonly tools: { readonly definitions: readonly ToolDefinition[] };
  build(context: PromptContext, target: Target, sessionId: string): Promise<BuiltPrompt>;
  onBuilt?(sessionId: string): Promise<void>;
}

class SessionPrompts {
  readonly #options: SessionPromptsOptions;
  #warnings: readonly string[] = [];
  #contextHashes: readonly string[] = [];

  constructor(options: SessionPromptsOptions) {
    this.#options = options;
  }

  /** Warnings of the last build for the user, once. */
  takeWarnings(): readonly string[] {
    const taken = this.#warnings;
    this.#warnings = [];
    return taken;
  }

  /** Of the project files in the prompt in force. */
  get contextHashes(): readonly string[] {
    return this.#contextHashes;
  }

  async system({ sessionId, target, hasHistory }: PromptQuestion): Promise<SystemPrompt> {
    const { context, store } = this.#options;
    const { cwd, sandbox, toolSelection } = context;
    const { model, provider } = target;
    const { platform } = context.request;
    const wanted = { v: PROMPT_VERSION, model, provider, platform, cwd, sandbox, toolSelection };
    const stored = await this.#read("the stored prompt", () => store.getPrompt(sessionId), null);
    if (stored !== null && stored.prompt !== "") {
      const changes = fingerprintChanges(stored.fingerprint, wanted);
      if (changes.length === 0) return this.#restored(stored);
      const kept = await this.#kept(sessionId, stored);
      const earlier = kept.find(({ fingerprint }) => isStampedFor(fingerprint, wanted));
      if (earlier) {
        await this.#write(() => store.setPrompt(sessionId, earlier));
        return this.#restored(earlier);
      }
      this.#log.info(`The prompt of session ${sessionId} is rebuilt: ${changes.join(", ")} changed.`);
      const built = await this.#build(sessionId, target, { origin: await this.#origin(sessionId), kept });
      const elsewhere = changes.every((field) => field === "model" || field === "provider");
      return elsewhere ? built : { ...built, cause: "selection" };
    }
    const origin = await this.#origin(sessionId);
    if (hasHistory && (origin === null || origin.sessionId === sessionId))
      this.#log.warn(`Session ${sessionId} has messages but no stored prompt; a new one is built and stored.`);
    return this.#build(sessionId, target, { origin, kept: [] });
  }

  /** The user wants what SOUL.md, project files, memory and skills say now. The prompts of other models are dropped too. */
  async rebuild({ sessionId, target }: PromptQuestion): Promise<SystemPrompt> {
    const { context } = this.#options;
    const { startedAt } = (await this.#origin(sessionId)) ?? context;
    return this.#build(sessionId, target, { origin: { sessionId, startedAt }, kept: [] });
  }

  async #build(sessionId: string, target: Target, before: Before): Promise<SystemPrompt> {
    const { context, build } = this.#options;
    const { origin } = before;
    // A prompt that is built anew may know what was learned since; the stored one never changes.
    if (origin) await context.memory?.reload();
    const first = origin
      ? { startedAt: origin.startedAt, ...(origin.coding === undefined ? {} : { coding: origin.coding }) }
      : {};
    const built = await build({ ...context, ...first }, target, sessionId);
    this.#warnings = built.warnings;
    this.#contextHashes = built.contextHashes;
    // Asked for together: they share a transaction.
    await Promise.all([this.#options.onBuilt?.(sessionId), this.#write(() => this.#keep(sessionId, built, before))]);
    return { text: built.full, layout: layoutOf(recordOf(built)) };
  }

  #restored(record: PromptRecord): SystemPrompt {
    this.#contextHashes = contextHashesOf(record);
    return { text: record.prompt, layout: layoutOf(record) };
  }

  async #keep(sessionId: string, built: BuiltPrompt, { origin, kept }: Before): Promise<void> {
    const { store, tools, context } = this.#options;
    const record = recordOf(built);
    const { model, provider } = built.fingerprint;
    const others = kept.filter(({ fingerprint }) => !isStampedFor(fingerprint, { model, provider }));
    const first: Origin = { startedAt: context.startedAt, coding: built.coding, ...origin, sessionId };
    const isAnother = origin?.sessionId === sessionId;
    await Promise.all([
      store.putToolList(tools.definitions),
      store.setPrompt(sessionId, record),
      isAnother && store.setValue(sessionId, "prompts", [...others, record].slice(-KEPT_PROMPTS)),
      store.setValue(sessionId, "prompt_origin", first),
    ]);
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

  /** As long as there was one only, it is not kept a second time. */
  async #kept(sessionId: string, only: PromptRecord): Promise<readonly PromptRecord[]> {
    const { store } = this.#options;
    const kept = await this.#read("earlier prompts", () => store.getValue(sessionId, "prompts"), null);
    return Array.isArray(kept) ? kept : [only];
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
      this.#log.warn("The prompt could not be stored; this conversation keeps it in memory.", error);
    }
  }

  get #log() {
    return this.#options.context.request.home.log.child("prompt");
  }
}

function isStampedFor(fingerprint: unknown, wanted: Parameters<typeof fingerprintChanges>[1]): boolean {
  return fingerprint !== null && fingerprintChanges(fingerprint, wanted).length === 0;
}

// Everything a conversation sends besides its messages: the stored prompt, and what is added to it when a request is made.

export interface ConversationPrompt extends PromptSource {
  /** Of the project files in the prompt in force. */
  contextHashes(): readonly string[];
}

export function promptSource(
  context: PromptContext,
  kept: { readonly store: SessionStore; readonly tools: { readonly definitions: readonly ToolDefinition[] } },
): ConversationPrompt {
  const { home, clock, overlay } = context.request;
  const days = new DayNotes({ home, clock, store: kept.store, startedAt: context.startedAt });
  const prompts = new SessionPrompts({ context, ...kept, build: buildPrompt, onBuilt: (id) => days.note(id) });
  const prefill = new PrefillOnce(home, kept.store);
  let prefillWarning: string | null = null;
  return {
    async system(question) {
      prefillWarning = (await prefill.load()) ?? prefillWarning;
      const system = await prompts.system(question);
      const changed = await prefill.hasChanged(question.sessionId, question.hasHistory);
      return changed ? { cause: "ephemeral", ...system } : system;
    },
    rebuild: (question) => prompts.rebuild(question),
    retarget,
    takeWarnings() {
      const taken = [...prompts.takeWarnings(), ...(prefillWarning === null ? [] : [prefillWarning])];
      prefillWarning = null;
      return taken;
    },
    contextHashes: () => prompts.contextHashes,
    ephemeral: () => chooseEphemeral(overlay?.(), home.config().agent.system_prompt),
    get prefill() {
      return prefill.messages;
    },
    async recall(text, run, input) {
      const note = await days.take(run.sessionId);
      const recalled =
        (await context.recall?.(text, run, input).catch((error) => {
          run.log.warn("recall failed; the message is sent without it", error);
          return [];
        })) ?? [];
      return note === null ? recalled : [...recalled, note];
    },
  };
}

/** The same prompt for a fallback model: its lines about the model change, nothing else, and nothing of it is stored. */
function retarget(system: SystemPrompt, to: { readonly model: string; readonly provider: string }): SystemPrompt {
  const text = retargetPrompt(system.text, to);
  const { layout } = system;
  if (!layout || layout.blocks.length === 0) return { text, layout };
  const last = layout.blocks.length - 1;
  const blocks = layout.blocks.map((block, at) =>
    at === last ? { ...block, length: block.length + text.length - system.text.length } : block,
  );
  return { text, layout: { ...layout, blocks } };
}

/**
 * The `Model:` and `Provider:` lines of the last block change and nothing else. It is found by where it stands: a project file may hold
 * lines that look like it.
 */
export function retargetPrompt(prompt: string, to: { readonly model: string; readonly provider: string }): string {
  const start = prompt.lastIndexOf("\n\n") + 1;
  const line = prompt.slice(start);
  if (!line.trimStart().startsWith("Conversation started: ")) return prompt;
  const changed = line
    .replace(/^Model: .*$/m, () => `Model: ${to.model}`)
    .replace(/^Provider: .*$/m, () => `Provider: ${to.provider}`);
  return prompt.slice(0, start) + changed;
}

// A prompt as it is stored, and what its stamp says about the blocks of the text.

/** Id and length (in UTF-16 units) of each block, in order; between two blocks stands one blank line. */
type StampedBlocks = readonly (readonly [id: string, length: number])[];

export function recordOf(build: PromptBuild & { readonly contextHashes?: readonly string[] }): PromptRecord {
  const blocks: StampedBlocks = build.blocks.map(({ id, text }) => [id, text.length]);
  return {
    prompt: build.full,
    stableChars: countCodePoints(build.stable),
    fingerprint: { ...build.fingerprint, blocks, files: build.contextHashes ?? [] },
  };
}

/** Of the project files in a stored prompt; empty when nothing is known of its inside. */
function contextHashesOf({ fingerprint }: PromptRecord): readonly string[] {
  const stamped = typeof fingerprint === "object" && fingerprint !== null && "files" in fingerprint;
  return stamped && Array.isArray(fingerprint.files) ? fingerprint.files.map(String) : [];
}

/** Undefined for a text that another program wrote or changed: nothing is known of its inside. */
export function layoutOf({ prompt, stableChars, fingerprint }: PromptRecord): PromptLayout | undefined {
  if (!isStampedText(fingerprint, prompt)) return undefined;
  const stable = sliceCodePoints(prompt, 0, stableChars ?? 0);
  return { stable, blocks: blockSpans(fingerprint, prompt.length) };
}

/** Each block with the gap behind it; empty when the stamp does not fit the text. */
function blockSpans(fingerprint: unknown, length: number): PromptLayout["blocks"] {
  const stamped = typeof fingerprint === "object" && fingerprint !== null && "blocks" in fingerprint;
  const blocks = stamped && Array.isArray(fingerprint.blocks) ? (fingerprint.blocks as StampedBlocks) : []; // summed up below
  const spans = blocks.map(([id, size], at) => ({ id: String(id), length: size + (at < blocks.length - 1 ? GAP : 0) }));
  return spans.reduce((sum, span) => sum + span.length, 0) === length ? spans : [];
}

const GAP = "\n\n".length;
