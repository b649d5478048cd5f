// Watches over "bytes already sent are never rewritten": every request of a conversation is held against the one before it that went to
// the same place. Lives in the gate and costs one comparison of strings, however long the conversation is.
import type { CallPurpose, PrefixCause, PrefixReport, Task } from "../gate.ts";
import type { ModelRequest, SentBody, Target } from "../wire.ts";
import { comparePrefix, EPHEMERAL, type Prefix, sizeOf } from "./compare.ts";

export interface PrefixCheck {
  /** For the call's row. */
  readonly report: PrefixReport;
  /** A break that nothing explains, in words for the log; null when all is well. */
  readonly defect: string | null;
  /** The request was answered: the next one has to begin with it. */
  answered(): void;
}

interface Baseline {
  readonly prefix: Prefix;
  readonly chars: number;
  /** How many causes were known when it was sent. */
  readonly serial: number;
}

interface Talk {
  readonly causes: PrefixCause[];
  /** By destination. */
  readonly baselines: Map<string, Baseline>;
}

/** `line`: each request begins with the last. `fork`: same prompt and tools, own messages. Anything else is asked once and forgotten. */
const KINDS: Partial<Record<Task, "line" | "fork">> = {
  main: "line",
  subagent: "line",
  background_review: "fork",
  flush_memories: "fork",
};

const MOST_DESTINATIONS = 4;
/** Conversations that were silent longest are forgotten first; their next request is taken as a first one. */
const MOST_CHARS = 16 * 1024 * 1024;

export class PrefixWatch {
  /** In the order of their last request. */
  readonly #talks = new Map<string, Talk>();
  readonly #mostChars: number;
  #chars = 0;

  constructor({ mostChars = MOST_CHARS }: { readonly mostChars?: number } = {}) {
    this.#mostChars = mostChars;
  }

  /** Requests of this session may begin differently from here on. One break at each destination is explained by it. */
  expect(sessionId: string, cause: PrefixCause): void {
    this.#talk(sessionId).causes.push(cause);
  }

  check(request: ModelRequest, { task, sessionId }: CallPurpose, sent: SentBody): PrefixCheck {
    const kind = KINDS[task];
    if (sessionId === null || kind === undefined) return quiet({ bytes: sizeOf(sent) });
    const talk = this.#talk(sessionId);
    const to = destinationOf(request.target);
    const serial = talk.causes.length;
    const answered = () => {
      if (kind === "line" && !request.scaffolded) this.#keep(talk, to, sent, serial);
    };
    const before = talk.baselines.get(to);
    if (!before) {
      const cause = talk.baselines.size > 0 ? "model" : talk.causes.at(-1);
      const report = { bytes: sizeOf(sent), commonBytes: 0, ...(cause && kind === "line" ? { cause } : {}) };
      return { report, defect: null, answered };
    }
    const { broke, ...sizes } = comparePrefix(before.prefix, sent, request.promptLayout?.blocks);
    const forked = kind === "fork" && broke?.owner.startsWith("message ");
    if (!broke || forked) return { report: sizes, defect: null, answered };
    const cause = talk.causes.slice(before.serial).at(-1) ?? (broke.owner === EPHEMERAL ? "ephemeral" : undefined);
    const report = { ...sizes, brokeOwner: broke.owner, brokeOffset: broke.offset, ...(cause ? { cause } : {}) };
    return { report, defect: cause ? null : describe(request, sessionId, report), answered };
  }

  #talk(sessionId: string): Talk {
    const talk = this.#talks.get(sessionId) ?? { causes: [], baselines: new Map() };
    this.#talks.delete(sessionId);
    this.#talks.set(sessionId, talk);
    return talk;
  }

  #keep(talk: Talk, to: string, { system, tools, messages }: SentBody, serial: number): void {
    this.#drop(talk, to);
    const chars = system.length + tools.length + messages.length;
    talk.baselines.set(to, { prefix: { system, tools, messages }, chars, serial });
    this.#chars += chars;
    if (talk.baselines.size > MOST_DESTINATIONS) this.#drop(talk, oldest(talk.baselines));
    while (this.#chars > this.#mostChars && this.#talks.size > 1) this.#forget(oldest(this.#talks));
  }

  #forget(sessionId: string): void {
    const talk = this.#talks.get(sessionId);
    this.#talks.delete(sessionId);
    for (const to of [...(talk?.baselines.keys() ?? [])]) if (talk) this.#drop(talk, to);
  }

  #drop(talk: Talk, to: string): void {
    this.#chars -= talk.baselines.get(to)?.chars ?? 0;
    talk.baselines.delete(to);
  }
}

const quiet = (report: PrefixReport): PrefixCheck => ({ report, defect: null, answered: () => undefined });

function destinationOf({ provider, model, apiMode, baseUrl }: Target): string {
  return [provider, model, apiMode, baseUrl].join("\n");
}

function oldest(map: ReadonlyMap<string, unknown>): string {
  return map.keys().next().value ?? "";
}

function describe({ target }: ModelRequest, sessionId: string, report: PrefixReport): string {
  const { brokeOwner, brokeOffset = 0, bytes } = report;
  return `A request to ${target.model} does not begin with the one before it: ${brokeOwner} differs at byte ${brokeOffset} of ${bytes} (session ${sessionId}). Everything behind that byte is paid for again; "hermes prompt blame ${sessionId}" shows where.`;
}
