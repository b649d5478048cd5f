// How full the window is: what the provider counted, as soon as it has, and an estimate of what was added since.
import { estimateTokens } from "../../llm/catalogue/estimate.ts";
import type { HistoryMessage } from "../../llm/messages.ts";
import type { ToolDefinition } from "../../llm/wire.ts";
import { messagesCost } from "./cost.ts";

export interface Measured {
  /** The next request as a whole. */
  readonly tokens: number;
  /** What the newest request really took; null when nobody counted. */
  readonly reading: number | null;
}

export class WindowMeter {
  #reading: { readonly tokens: number; readonly upTo: number } | null = null;
  #fixed: { readonly system: string; readonly tools: readonly ToolDefinition[]; readonly tokens: number } | null = null;

  /** A request with the first `upTo` messages took so many tokens. */
  read(tokens: number, upTo: number): void {
    this.#reading = { tokens, upTo };
  }

  /** What was counted no longer says anything about the next request. */
  forget(): void {
    this.#reading = null;
  }

  measure(system: string, messages: readonly HistoryMessage[], tools: readonly ToolDefinition[]): Measured {
    const reading = this.#reading && this.#reading.upTo <= messages.length ? this.#reading : null;
    if (!reading) return { tokens: this.#fixedCost(system, tools) + messagesCost(messages), reading: null };
    return { tokens: reading.tokens + messagesCost(messages.slice(reading.upTo)), reading: reading.tokens };
  }

  #fixedCost(system: string, tools: readonly ToolDefinition[]): number {
    if (this.#fixed?.system === system && this.#fixed.tools === tools) return this.#fixed.tokens;
    const tokens = estimateTokens(system) + (tools.length > 0 ? estimateTokens(JSON.stringify(tools)) : 0);
    this.#fixed = { system, tools, tokens };
    return tokens;
  }
}
