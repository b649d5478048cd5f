// The chain of models that stand in: who is next, who stands in now, and when the conversation's own model may answer again.

import type { ModelSpec } from "../llm/auxiliary/contract.ts";
import type { Failure } from "../llm/errors/classify.ts";
import { namedReset } from "../llm/errors/details.ts";
import { failureLine } from "../llm/errors/explain.ts";
import { mapping, ProviderError, text } from "../llm/providers/settings.ts";
import type { Target } from "../llm/wire.ts";
import type { Assembly, ModelChoice } from "./assembly.ts";
import type { Conversation } from "./conversation.ts";
import type { AgentEventBody } from "./events.ts";

type Emit = (event: AgentEventBody) => void;

/** After a refusal for want of quota the own model is left alone for so long, unless the provider named a time. */
const COOLDOWN_MS = 60_000;

/** What moves a conversation to the next model: a failed call, or answers that are no use. */
export type Cause = Failure | { readonly because: string };

/**
 * - Within a turn the chain is walked once, forwards. A new turn starts with the own model, unless that one rests.
 * - A stand-in is complete (target, window, prompt) before it takes over; what fails on the way leaves everything as it was.
 */
export class FallbackChain {
  readonly #conversation: Conversation;
  #own: ModelChoice | null = null;
  #restsUntil = 0;
  #index = 0;
  #prepared: Target | null = null;
  #switchedFrom = new Set<string>();
  /** How often in a row a provider fell silent in the middle of a call. */
  #silences = { provider: "", count: 0 };
  readonly #warned = new Set<string>();
  /** Entries that were stepped over, until the user is warned. */
  readonly #unusable = new Set<string>();

  constructor(conversation: Conversation) {
    this.#conversation = conversation;
  }

  /** The conversation's own model while another stands in for it. */
  get own(): ModelChoice | null {
    return this.#own;
  }

  /** A new turn: the own model is asked again, if it does not rest. */
  async beginTurn(emit: Emit): Promise<void> {
    this.#index = 0;
    this.#prepared = null;
    for (const line of this.#entries().ignored) this.#warnOnce(line, emit);
    const own = this.#own;
    if (own === null || this.#clock.now() < this.#restsUntil) return;
    try {
      await this.#conversation.replaceModel(own);
    } catch (error) {
      this.#log.warn("the own model could not be taken up again", error);
      return;
    }
    this.#own = null;
    const { target } = own;
    const message = `Back to ${target.model} (${target.provider}).`;
    emit({ type: "status", kind: "lifecycle", message, recovery: true });
  }

  /** Somebody could answer in place of the model that is asked now. */
  async available(): Promise<boolean> {
    return (await this.#next()) !== null;
  }

  /** The provider in use fell silent; the n-th time since anybody answered. */
  noteSilence(): number {
    const { provider } = this.#conversation.model.target;
    const before = this.#silences.provider === provider ? this.#silences.count : 0;
    this.#silences = { provider, count: before + 1 };
    return before + 1;
  }

  noteAnswer(): void {
    this.#silences = { provider: "", count: 0 };
  }

  /** The next model of the chain takes over, with a line for the user. False when none is left. */
  async advance(cause: Cause, emit: Emit): Promise<boolean> {
    for (let next = await this.#next(); next !== null; next = await this.#next()) {
      this.#prepared = null;
      this.#index++;
      const before = this.#conversation.model;
      const { overrides: _, maxTokens: __, ...kept } = this.#own ?? before;
      try {
        await this.#conversation.replaceModel({ ...kept, target: next });
      } catch (error) {
        this.#log.warn(`the fallback ${next.model} could not take over`, error);
        continue;
      }
      if (this.#own === null) {
        this.#own = before;
        this.#restsUntil = restUntil(cause, this.#clock.now());
      }
      const why = "because" in cause ? cause.because : failureLine(cause.classified, before.target.apiKey);
      emit({
        type: "status",
        kind: "warn",
        message: `${before.target.model} (${before.target.provider}): ${why} — continuing with ${next.model} (${next.provider}).`,
      });
      this.#warnUnusable(emit);
      return true;
    }
    this.#warnUnusable(emit);
    return false;
  }

  /** The user chose another model: nobody stands in any more, and the chain leads to neither the old nor the new one. */
  forget(old: Target, chosen: Target): void {
    this.#own = null;
    this.#restsUntil = 0;
    this.#index = 0;
    this.#prepared = null;
    this.#switchedFrom = new Set([...this.#switchedFrom, destinationKey(old), destinationKey(chosen)]);
  }

  /** Settings of the own model that are not its address changed while another stands in. */
  amendOwn(model: ModelChoice): void {
    if (this.#own === null) return;
    const { maxTokens, overrides } = this.#own;
    this.#own = {
      ...model,
      target: this.#own.target,
      ...(maxTokens === undefined ? {} : { maxTokens }),
      ...(overrides ? { overrides } : {}),
    };
  }

  async #next(): Promise<Target | null> {
    if (this.#prepared) return this.#prepared;
    const { entries } = this.#entries();
    const { resolveSpec } = this.#conversation.assembly;
    if (!resolveSpec) return null;
    for (; ; this.#index++) {
      const entry = entries[this.#index];
      if (!entry) return null;
      const target = await this.#resolve(entry, resolveSpec);
      if (target === null || this.#isKnown(target)) continue;
      this.#prepared = target;
      return target;
    }
  }

  async #resolve(
    entry: FallbackEntries["entries"][number],
    resolveSpec: NonNullable<Assembly["resolveSpec"]>,
  ): Promise<Target | null> {
    try {
      const target = await resolveSpec(entry);
      // The demo is no AI; it never answers in place of one.
      return target.provider === "demo" ? null : target;
    } catch (error) {
      if (!(error instanceof ProviderError)) throw error;
      this.#unusable.add(`fallback_providers: ${entry.provider} ${entry.model} cannot be used: ${error.message}`);
      return null;
    }
  }

  /** The model that just failed, or the one it stands in for, under whatever name. */
  #isKnown(target: Target): boolean {
    const known = [this.#conversation.model.target, ...(this.#own ? [this.#own.target] : [])];
    return (
      this.#switchedFrom.has(destinationKey(target)) ||
      known.some(
        ({ provider, model, baseUrl }) =>
          model === target.model &&
          (baseUrl === target.baseUrl || (provider === target.provider && provider !== "custom")),
      )
    );
  }

  #entries(): FallbackEntries {
    const { assembly } = this.#conversation;
    return readFallbacks(assembly.model.fallbacks ?? assembly.config().fallback_providers);
  }

  #warnUnusable(emit: Emit): void {
    for (const line of this.#unusable) this.#warnOnce(line, emit);
    this.#unusable.clear();
  }

  #warnOnce(line: string, emit: Emit): void {
    if (this.#warned.has(line)) return;
    this.#warned.add(line);
    emit({ type: "status", kind: "warn", message: line });
  }

  get #clock() {
    return this.#conversation.assembly.clock;
  }

  get #log() {
    return this.#conversation.assembly.log;
  }
}

function restUntil(cause: Cause, now: number): number {
  if ("because" in cause) return 0;
  const { reason } = cause.classified;
  if (reason !== "rate_limit" && reason !== "billing") return 0;
  const named = namedReset(cause.error, now);
  return named === null ? now + COOLDOWN_MS : named * 1000;
}

function destinationKey({ provider, baseUrl, model }: Target): string {
  return `${provider}\n${baseUrl}\n${model}`;
}

// `fallback_providers`: who may answer when the conversation's own model cannot.

interface FallbackEntries {
  readonly entries: readonly ModelSpec[];
  /** One line for each entry that cannot be used as it is written. */
  readonly ignored: readonly string[];
}

/** A list of `{provider, model, base_url?, api_key?, key_env?}`; one such mapping alone is taken as a list of one. */
export function readFallbacks(given: unknown): FallbackEntries {
  const list = Array.isArray(given) ? given : given === undefined || given === null ? [] : [given];
  const entries: ModelSpec[] = [];
  const ignored: string[] = [];
  for (const [index, item] of list.entries()) {
    const entry = mapping(item);
    const baseUrl = text(entry.base_url);
    const provider = text(entry.provider) ?? (baseUrl ? "custom" : undefined);
    const model = text(entry.model);
    if (provider === undefined || model === undefined) {
      const lacks = provider === undefined ? "provider" : "model";
      ignored.push(`fallback_providers[${index}] has no ${lacks} and is ignored.`);
      continue;
    }
    const keyEnv = text(entry.key_env) ?? text(entry.api_key_env);
    entries.push({ provider, model, baseUrl, apiKey: text(entry.api_key), keyEnv, apiMode: text(entry.api_mode) });
  }
  return { entries, ignored };
}
