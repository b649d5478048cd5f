// Watches over "bytes already sent are never rewritten": every request of a conversation is held against the one before it that went to
// the same place. Lives in the gate and costs one comparison of strings, however long the conversation is.
import type { CallPurpose, PrefixCause, PrefixReport, Task } from "../gate.ts";
import type { ModelRequest, SentBody, Target } from "../wire.ts";
import {
  comparePrefix,
  compareSketch,
  EPHEMERAL,
  type Prefix,
  quickHash,
  type Sketch,
  sizeOf,
  sketchOf,
} from "./sketch.ts";

export interface PrefixCheck {
  /** For the call's row. */
  readonly report: PrefixReport;
  /** A break that nothing explains, in words for the log; null when all is well. */
  readonly defect: string | null;
  /**
   * The request was answered: the next one has to begin with it. Resolves when that is remembered. Within a turn that `goesOn` a process that
   * comes later is left with the turn's first request, which the later ones begin with as well: a write less in each step.
   */
  answered(turn?: { readonly goesOn: boolean }): Promise<void>;
}

interface Baseline {
  /** Null for a request of an earlier process. */
  readonly prefix: Prefix | null;
  /** Null: it is not remembered. */
  readonly sketch: Sketch | null;
  /** How many causes were known when it was sent. */
  readonly serial: number;
}

interface Talk {
  readonly causes: PrefixCause[];
  /** By destination. */
  readonly baselines: Map<string, Baseline>;
  /** What earlier processes left is being looked for, or was. */
  recalled: Promise<void> | null;
}

/** `line`: each request begins with the last. `fork`: same prompt and tools, own messages. Anything else is asked once and forgotten. */
const KINDS: Partial<Record<Task, "line" | "fork">> = {
  main: "line",
  subagent: "line",
  background_review: "fork",
  flush_memories: "fork",
};

const MAX_DESTINATIONS = 4;
/** Conversations that were silent longest are forgotten first; without a memory their next request is taken as a first one. */
const MAX_CHARS = 16 * 1024 * 1024;

interface PrefixWatchOptions {
  readonly mostChars?: number;
  /** Keeps the last request of each session for the next process. */
  readonly memory?: PrefixMemory | undefined;
}

export class PrefixWatch {
  /** In the order of their last request. */
  readonly #talks = new Map<string, Talk>();
  readonly #mostChars: number;
  readonly #memory: PrefixMemory | undefined;
  #chars = 0;

  constructor({ mostChars = MAX_CHARS, memory }: PrefixWatchOptions = {}) {
    this.#mostChars = mostChars;
    this.#memory = memory;
  }

  /** Requests of this session may begin differently from here on. One break at each destination is explained by it. */
  async expect(sessionId: string, cause: PrefixCause): Promise<void> {
    this.#talk(sessionId).causes.push(cause);
    await this.recall(sessionId);
    await this.#save(sessionId);
  }

  /** Looks, once, for what an earlier process sent. */
  async recall(sessionId: string | null): Promise<void> {
    if (!this.#memory || sessionId === null) return;
    const talk = this.#talk(sessionId);
    talk.recalled ??= this.#recall(sessionId, talk, this.#memory);
    try {
      await talk.recalled;
    } catch (error) {
      talk.recalled = Promise.resolve(); // said once; from here on the session is taken as new
      throw error;
    }
  }

  async #recall(sessionId: string, talk: Talk, memory: PrefixMemory): Promise<void> {
    const state = readState(await memory.read(sessionId));
    if (!state) return;
    // Older causes come first: what baselines count from stays right.
    talk.causes.unshift(...state.causes);
    for (const [to, baseline] of state.baselines) if (!talk.baselines.has(to)) talk.baselines.set(to, baseline);
  }

  check(request: ModelRequest, { task, sessionId }: CallPurpose, sent: SentBody): PrefixCheck {
    const kind = KINDS[task];
    if (sessionId === null || kind === undefined) return quiet({ bytes: sizeOf(sent) });
    const talk = this.#talk(sessionId);
    const to = destinationOf(request.target);
    const serial = talk.causes.length;
    const before = talk.baselines.get(to);
    const answered: PrefixCheck["answered"] = async (turn) => {
      if (kind !== "line" || request.scaffolded) return;
      this.#keep(talk, to, request, sent, serial);
      if (!turn?.goesOn || before?.serial !== serial) await this.#save(sessionId);
    };
    if (!before) {
      const begins = talk.baselines.size > 0 ? "model" : talk.causes.filter((one) => one !== "client").at(-1);
      const report = { bytes: sizeOf(sent), commonBytes: 0, cause: kind === "line" ? begins : undefined };
      return { report, defect: null, answered };
    }
    const { broke, ...sizes } = compare(before, request, sent);
    const forked = kind === "fork" && broke?.owner.startsWith("message");
    if (!broke || forked) return { report: sizes, defect: null, answered };
    const causes = talk.causes.slice(before.serial).filter((one) => explains(one, broke.owner));
    const cause = causes.at(-1) ?? (broke.owner === EPHEMERAL ? "ephemeral" : undefined);
    const report = { ...sizes, brokeOwner: broke.owner, brokeOffset: broke.offset, cause };
    return { report, defect: cause ? null : describe(request, sessionId, report), answered };
  }

  #talk(sessionId: string): Talk {
    const talk = this.#talks.get(sessionId) ?? { causes: [], baselines: new Map(), recalled: null };
    this.#talks.delete(sessionId);
    this.#talks.set(sessionId, talk);
    return talk;
  }

  #keep(talk: Talk, to: string, request: ModelRequest, sent: SentBody, serial: number): void {
    const { system, tools, messages } = sent;
    const prefix = { system, tools, messages };
    const blocks = request.promptLayout?.blocks ?? [];
    const sketch = this.#memory ? sketchOf(prefix, blocks, talk.baselines.get(to)) : null;
    this.#drop(talk, to);
    talk.baselines.set(to, { prefix, sketch, serial });
    this.#chars += charsIn(prefix);
    if (talk.baselines.size > MAX_DESTINATIONS) this.#drop(talk, oldest(talk.baselines));
    while (this.#chars > this.#mostChars && this.#talks.size > 1) this.#forget(oldest(this.#talks));
  }

  async #save(sessionId: string): Promise<void> {
    const talk = this.#talks.get(sessionId);
    if (this.#memory && talk && talk.baselines.size > 0) await this.#memory.write(sessionId, writeState(talk));
  }

  #forget(sessionId: string): void {
    const talk = this.#talks.get(sessionId);
    this.#talks.delete(sessionId);
    for (const to of [...(talk?.baselines.keys() ?? [])]) if (talk) this.#drop(talk, to);
  }

  #drop(talk: Talk, to: string): void {
    this.#chars -= charsIn(talk.baselines.get(to)?.prefix ?? null);
    talk.baselines.delete(to);
  }
}

function compare({ prefix, sketch }: Baseline, request: ModelRequest, sent: SentBody) {
  if (prefix) return comparePrefix(prefix, sent, request.promptLayout?.blocks);
  if (sketch) return compareSketch(sketch, sent);
  return { bytes: sizeOf(sent), commonBytes: 0, broke: null };
}

const charsIn = (prefix: Prefix | null) =>
  prefix ? prefix.system.length + prefix.tools.length + prefix.messages.length : 0;

const quiet = (report: PrefixReport): PrefixCheck => ({ report, defect: null, answered: async () => undefined });

/** A client that keeps the history chooses the messages; prompt and tools stay ours. */
const explains = (cause: PrefixCause, owner: string) => cause !== "client" || owner.startsWith("message");

function destinationOf({ provider, model, apiMode, baseUrl }: Target): string {
  return String(quickHash([provider, model, apiMode, baseUrl].join("\n")));
}

function oldest(map: ReadonlyMap<string, unknown>): string {
  return map.keys().next().value ?? "";
}

function describe({ target }: ModelRequest, sessionId: string, report: PrefixReport): string {
  const { brokeOwner, brokeOffset = 0, bytes } = report;
  return `A request to ${target.model} does not begin with the one before it: ${brokeOwner} differs at byte ${brokeOffset} of ${bytes} (session ${sessionId}). Everything after that byte is billed again; "hermes prompt blame ${sessionId}" shows where.`;
}

// What a session's last requests began with, as it is stored between processes.

/** Where the state of a session is kept; whatever it is handed, it hands back. */
export interface PrefixMemory {
  read(sessionId: string): Promise<unknown>;
  write(sessionId: string, state: unknown): Promise<void>;
}

const VERSION = 2;
const MAX_CAUSES = 16;

interface StoredState {
  readonly v: number;
  readonly causes: readonly PrefixCause[];
  readonly baselines: readonly { readonly to: string; readonly serial: number; readonly sketch: Sketch }[];
}

function writeState({ causes, baselines }: Talk): StoredState {
  const cut = Math.max(0, causes.length - MAX_CAUSES);
  return {
    v: VERSION,
    causes: causes.slice(cut),
    baselines: [...baselines].flatMap(([to, { sketch, serial }]) =>
      sketch ? [{ to, serial: Math.max(0, serial - cut), sketch }] : [],
    ),
  };
}

/** Null for anything that is not ours to read. */
function readState(
  value: unknown,
): { readonly causes: readonly PrefixCause[]; readonly baselines: ReadonlyMap<string, Baseline> } | null {
  if (typeof value !== "object" || value === null || !("v" in value) || value.v !== VERSION) return null;
  const { causes, baselines } = value as StoredState; // our version, so our shape
  // What a server refused is not remembered: a new process sends it once more, and is refused once more.
  const again: readonly PrefixCause[] = causes.includes("repair") ? ["repair"] : [];
  return {
    causes: [...causes, ...again],
    baselines: new Map(baselines.map(({ to, serial, sketch }) => [to, { prefix: null, sketch, serial }])),
  };
}
