// The provider of one conversation, isolated: it can be slow, wrong or broken, and the conversation goes on all the same.

import { mkdir, readFile } from "node:fs/promises";
import type { Logger } from "../../home/log.ts";
import type { HomePaths } from "../../home/paths.ts";
import { type Clock, OutOfTime, within } from "../../kit/clock.ts";
import { messageOf } from "../../kit/errors.ts";
import { writeFileAtomic } from "../../kit/files.ts";
import { isRecord } from "../../kit/json.ts";
import type { HistoryMessage } from "../../llm/messages.ts";
import { scanForThreats } from "../../safety/threats/scan.ts";
import type { CommittedWrite } from "../store.ts";
import type { MemoryProvider, ProviderSession, SessionSwitch } from "./contract.ts";

const WAIT_MS = 8000;
const DRAIN_MS = 5000;

export interface AttachOptions {
  readonly provider: MemoryProvider;
  readonly sessionId: string;
  readonly about: ProviderSession;
  readonly paths: HomePaths;
  readonly clock: Clock;
  readonly log: Logger;
  /** A name that the program's own tools have. */
  isCoreTool(name: string): boolean;
}

interface EndedTurn {
  readonly sessionId: string;
  /** What the user typed. */
  readonly user: string;
  readonly assistant: string;
  readonly messages: readonly HistoryMessage[];
}

/** Starts a provider. Null when it is not available or cannot start; the reason is logged and passed to `onTrouble`. */
export async function attachProvider(
  options: AttachOptions,
  onTrouble: (reason: string) => void,
): Promise<AttachedProvider | null> {
  const { provider, clock } = options;
  try {
    const available = await within(async () => provider.isAvailable(), WAIT_MS, clock);
    if (!available) {
      onTrouble("it is not available; `hermes memory setup` configures it");
      return null;
    }
    await within(async () => provider.initialize(options.sessionId, options.about), WAIT_MS, clock);
    const attached = new AttachedProvider(options);
    await attached.begin();
    return attached;
  } catch (error) {
    options.log.warn(`memory provider ${provider.name} could not be started`, error);
    onTrouble(`it could not be started: ${messageOf(error)}`);
    return null;
  }
}

export class AttachedProvider {
  readonly #options: AttachOptions;
  #sessionId: string;
  #tools: readonly ProviderTool[] = [];
  /** A recall that ran out of time and has not come back. */
  #stuck = false;
  #recalling = 0;
  #writes: Promise<void> = Promise.resolve();
  #waiting = 0;
  #closed = false;

  constructor(options: AttachOptions) {
    this.#options = options;
    this.#sessionId = options.sessionId;
  }

  get name(): string {
    return this.#options.provider.name;
  }

  /** Collected once, at the start of the conversation. */
  get tools(): readonly ProviderTool[] {
    return this.#tools;
  }

  async begin(): Promise<void> {
    const { provider, log, isCoreTool } = this.#options;
    if (!provider.handleToolCall) return;
    const schemas = await this.#ask("its tools", async () => provider.getToolSchemas?.() ?? [], []);
    const { tools, warnings } = takeProviderTools(Array.isArray(schemas) ? schemas : [], isCoreTool);
    for (const warning of warnings) log.warn(`memory provider ${this.name}: ${warning}`);
    this.#tools = tools;
  }

  /** For the system prompt, screened; null = nothing. */
  async block(): Promise<string | null> {
    const { provider } = this.#options;
    const text = await this.#ask("its prompt text", async () => provider.systemPromptBlock?.() ?? "", "");
    return screenRecall(String(text ?? "")) || null;
  }

  /** What it knows about a message, screened; empty when it knows nothing, fails, or takes too long. */
  async recall(
    text: string,
    about: { readonly sessionId: string; readonly turn: number; readonly signal: AbortSignal },
  ): Promise<string> {
    const { provider, clock, log } = this.#options;
    const { sessionId, signal } = about;
    await this.#ask(
      "the start of a turn",
      async () => provider.onTurnStart?.(about.turn, text, { sessionId }),
      undefined,
    );
    if (!provider.prefetch || isTrivialPrompt(text) || signal.aborted) return "";
    if (this.#stuck) {
      log.info(`memory provider ${this.name}: the last recall has not come back; this turn goes without`);
      return "";
    }
    const stop = new AbortController();
    const recalled = this.#recalled(text, sessionId, AbortSignal.any([signal, stop.signal]));
    try {
      const found = await within(() => recalled, WAIT_MS, clock, signal);
      return screenRecall(String(found ?? ""));
    } catch (error) {
      stop.abort();
      if (signal.aborted) return "";
      await this.#trouble(error instanceof OutOfTime ? "timeouts" : "errors", "a recall", error);
      return "";
    }
  }

  async #recalled(query: string, sessionId: string, signal: AbortSignal): Promise<unknown> {
    this.#recalling++;
    this.#stuck = true;
    try {
      return await this.#options.provider.prefetch?.(query, { sessionId, signal });
    } finally {
      this.#recalling--;
      this.#stuck = false;
    }
  }

  /** A turn ended with an answer. Returns at once. */
  turnEnded({ sessionId, user, assistant, messages }: EndedTurn): void {
    const { provider } = this.#options;
    const said = withoutSkillCalls(user);
    if (said === "") return;
    this.#later("a turn", async () => provider.syncTurn?.(said, assistant, { sessionId, messages }));
    this.#later("the next recall", async () => provider.queuePrefetch?.(said, { sessionId }));
  }

  /** The built-in memory was changed. Returns at once. */
  memoryWritten({ target, operations, author }: CommittedWrite): void {
    const { provider, about } = this.#options;
    for (const operation of operations) {
      this.#later("a memory write", async () =>
        provider.onMemoryWrite?.(operation.action, target, "content" in operation ? operation.content : "", {
          write_origin: author.origin,
          execution_context: about.agentContext,
          session_id: author.sessionId ?? null,
          parent_session_id: about.parentSessionId ?? null,
          platform: author.platform ?? null,
          tool_name: "memory",
          ...("oldText" in operation ? { old_text: operation.oldText } : {}),
        }),
      );
    }
  }

  /** What the summary must keep; null = nothing. */
  async preCompress(messages: readonly HistoryMessage[]): Promise<string | null> {
    const { provider } = this.#options;
    const text = await this.#ask("a compression", async () => provider.onPreCompress?.(messages) ?? "", "");
    return screenRecall(String(text ?? "")) || null;
  }

  delegated(task: string, result: string, childSessionId: string): void {
    const { provider } = this.#options;
    this.#later("a delegated task", async () => provider.onDelegation?.(task, result, { childSessionId }));
  }

  /** The conversation goes on under another id, or with its last turns taken back. */
  switched(newSessionId: string, about: SessionSwitch): void {
    const { provider } = this.#options;
    this.#sessionId = newSessionId;
    this.#later("a change of session", async () => provider.onSessionSwitch?.(newSessionId, about));
  }

  /** The conversation is over; `next` is the one that takes its place, if one does. One task: nothing comes between the two. */
  ended(
    messages: readonly HistoryMessage[],
    how: { readonly isRealEnd: boolean; readonly next?: string | undefined },
  ): void {
    const { provider } = this.#options;
    const { isRealEnd, next } = how;
    const parentSessionId = this.#sessionId;
    this.#later("the end of a session", async () => {
      if (isRealEnd) await provider.onSessionEnd?.(messages);
      if (next !== undefined) await provider.onSessionSwitch?.(next, { parentSessionId, reset: isRealEnd });
    });
  }

  /** Answers a call of one of its tools. Rejects when the provider does. */
  async callTool(name: string, args: Readonly<Record<string, unknown>>): Promise<string> {
    const answer = await this.#options.provider.handleToolCall?.(name, args);
    return typeof answer === "string" ? answer : JSON.stringify(answer ?? null);
  }

  /** Waits a while for what is still to be written, then lets go. Idempotent. */
  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    const { provider, clock, log } = this.#options;
    try {
      await within(() => this.#writes, DRAIN_MS, clock);
    } catch (error) {
      const left = `${this.#waiting} write(s) and ${this.#recalling} recall(s)`;
      log.warn(`memory provider ${this.name}: ${left} were given up at the end`, error);
    }
    await this.#ask("its end", async () => provider.shutdown?.(), undefined);
  }

  #later(what: string, work: () => Promise<unknown>): void {
    if (this.#closed) return;
    this.#waiting++;
    this.#writes = this.#writes.then(async () => {
      try {
        await work();
      } catch (error) {
        await this.#trouble("errors", what, error);
      } finally {
        this.#waiting--;
      }
    });
  }

  async #ask<T>(what: string, work: () => Promise<T>, otherwise: T): Promise<T> {
    try {
      return await within(work, WAIT_MS, this.#options.clock);
    } catch (error) {
      await this.#trouble(error instanceof OutOfTime ? "timeouts" : "errors", what, error);
      return otherwise;
    }
  }

  async #trouble(kind: "timeouts" | "errors", what: string, error: unknown): Promise<void> {
    const { paths, clock, log } = this.#options;
    log.warn(`memory provider ${this.name} failed at ${what}`, error);
    const text = `${what}: ${messageOf(error)}`;
    await noteTrouble(paths, { provider: this.name, kind, text, at: clock.now() / 1000 }).catch((failure: unknown) =>
      log.debug("the provider's trouble could not be noted", failure),
    );
  }
}

// The tools of a provider, as far as they can be taken.
interface ProviderTool {
  readonly name: string;
  readonly description: string;
  readonly parameters: Readonly<Record<string, unknown>>;
}

interface TakenTools {
  readonly tools: readonly ProviderTool[];
  readonly warnings: readonly string[];
}

/** `isCore`: names that belong to the program stay its own. */
export function takeProviderTools(schemas: readonly unknown[], isCore: (name: string) => boolean): TakenTools {
  const tools = new Map<string, ProviderTool>();
  const warnings: string[] = [];
  for (const given of schemas) {
    const schema = unwrap(given);
    const name = typeof schema.name === "string" ? schema.name.trim() : "";
    if (name === "") warnings.push("a tool without a name was left out");
    else if (isCore(name)) warnings.push(`the tool "${name}" was left out: the program has one of that name`);
    else if (!tools.has(name)) {
      const { description, parameters } = schema;
      tools.set(name, {
        name,
        description: typeof description === "string" ? description : "",
        parameters: isRecord(parameters) ? parameters : { type: "object", properties: {} },
      });
    }
  }
  return { tools: [...tools.values()], warnings };
}

function unwrap(given: unknown): Readonly<Record<string, unknown>> {
  if (!isRecord(given)) return {};
  return given.type === "function" && isRecord(given.function) ? given.function : given;
}

const WORDS =
  "yes|no|ok|okay|sure|thanks|thank you|y|n|yep|nope|yeah|nah|hi|hey|hello|yo|sup|continue|go ahead|do it|proceed|got it|cool|nice|great|done|next|lgtm|k";
const TRIVIAL = new RegExp(`^(?:${WORDS})[\\s\\p{P}\\p{S}]*$`, "iu");

/** Nothing could be recalled for it: empty, a command, or a bare acknowledgement or greeting. */
export function isTrivialPrompt(text: string): boolean {
  const said = text.trim();
  return said === "" || said.startsWith("/") || TRIVIAL.test(said);
}

/** What was typed without the skills that were called with it: `/release tag it` -> `tag it`. */
export function withoutSkillCalls(typed: string): string {
  return typed.trim().replace(/^(?:\/[^\s/]+(?:\s+|$))+/, "");
}

/** Text of a provider on its way into a prompt: a paragraph that does not pass the threat scan is replaced by a line that says so. */
function screenRecall(text: string): string {
  return text
    .split(/(\n[ \t]*\n\s*)/)
    .map((part, index) => (index % 2 === 0 ? screenParagraph(part) : part))
    .join("")
    .trim();
}

function screenParagraph(paragraph: string): string {
  const ids = scanForThreats(paragraph, "context").map(({ id }) => id);
  return ids.length === 0 ? paragraph : `[BLOCKED: recalled text contained threat pattern(s): ${ids.join(", ")}.]`;
}

// What went wrong with a provider lately, kept in the home so that `hermes memory status` can show it.

export interface ProviderHealth {
  readonly provider: string;
  /** Recalls that took too long and were done without. */
  readonly timeouts: number;
  readonly errors: number;
  /** Unix seconds. */
  readonly last_at: number;
  readonly last: string;
}

const fileOf = (paths: HomePaths) => paths.at("cache", "memory-provider.json");

/** Null when nothing is known to have gone wrong. */
export async function readHealth(paths: HomePaths): Promise<ProviderHealth | null> {
  try {
    const value: Partial<ProviderHealth> = JSON.parse(await readFile(fileOf(paths), "utf8"));
    const { provider, timeouts, errors, last_at, last } = value;
    if (typeof provider !== "string" || typeof last !== "string") return null;
    return { provider, timeouts: Number(timeouts), errors: Number(errors), last_at: Number(last_at), last };
  } catch {
    return null; // not there, or not ours
  }
}

async function noteTrouble(
  paths: HomePaths,
  trouble: {
    readonly provider: string;
    readonly kind: "timeouts" | "errors";
    readonly text: string;
    readonly at: number;
  },
): Promise<void> {
  const known = await readHealth(paths);
  const before = known?.provider === trouble.provider ? known : { timeouts: 0, errors: 0 };
  const health: ProviderHealth = {
    provider: trouble.provider,
    timeouts: before.timeouts + (trouble.kind === "timeouts" ? 1 : 0),
    errors: before.errors + (trouble.kind === "errors" ? 1 : 0),
    last_at: trouble.at,
    last: trouble.text,
  };
  await mkdir(paths.cacheDir, { recursive: true, mode: 0o700 });
  await writeFileAtomic(fileOf(paths), `${JSON.stringify(health, null, 2)}\n`);
}
