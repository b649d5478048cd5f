// Where the cache markers of a request go. Markers are laid over the outgoing copy: they never change a text, only where it may be cut.
import {
  applyCacheControl,
  type CacheLayout,
  type CacheMarker,
  type CacheTtl,
  contentToSend,
  MAX_MARKERS,
  markerFor,
  type OutgoingMessage,
  type OutgoingTool,
  stripCacheControl,
  withMarker,
} from "./cache-control.ts";
import { hostOf } from "./providers/hosts.ts";
import type { Target, ToolDefinition } from "./wire.ts";

export interface CacheOptions {
  readonly messages: readonly OutgoingMessage[];
  readonly tools: readonly ToolDefinition[];
  readonly target: Pick<Target, "apiMode" | "baseUrl" | "profile">;
  readonly ttl: CacheTtl;
  /** The beginning of the system text that is equal for every session of one set-up; empty = unknown. */
  readonly stable: string;
}

interface CachePlan {
  readonly messages: readonly OutgoingMessage[];
  readonly tools: readonly OutgoingTool[];
  /** How many; the API takes four. */
  readonly markers: number;
  readonly layout: CacheLayout | "none";
}

/**
 * Inputs are not changed and unmarked messages are shared. Taking the markers out of the plan gives the input again, for the next
 * destination too: nothing of one plan is left in another.
 */
export function planCache({ messages, tools, target, ttl, stable }: CacheOptions): CachePlan {
  const layout = target.profile.cacheLayout;
  const clean = stripCacheControl(messages);
  if (layout === "none" || ttl === "off") return { messages: clean, tools, markers: 0, layout: "none" };
  const direct = target.apiMode === "anthropic_messages" && hostOf(target.baseUrl) === "api.anthropic.com";
  const marked = [...clean];
  const pen = new Pen(marked, markerFor(ttl), layout);
  const cut = cutSystem(clean, stable);
  if (direct && tools.length > 0) {
    const [last, ...rest] = tools.toReversed();
    const withLast = last ? [...rest.reverse(), { ...last, cache_control: pen.spend() }] : tools;
    if (cut) pen.markSystem(cut, { rest: false });
    for (const index of transactionEnds(clean).slice(-2)) pen.mark(index);
    return { messages: marked, tools: withLast, markers: pen.used, layout };
  }
  if (!cut || cut.rest === "") {
    const plain = applyCacheControl(clean, { ttl, layout });
    return { messages: plain, tools, markers: plain.filter((message, at) => message !== clean[at]).length, layout };
  }
  pen.markSystem(cut, { rest: true });
  for (let index = clean.length - 1; index >= 0; index--) if (clean[index]?.role !== "system") pen.mark(index);
  return { messages: marked, tools, markers: pen.used, layout };
}

interface SystemCut {
  readonly index: number;
  readonly stable: string;
  /** Empty when there is nothing but blanks behind the stable part: then `stable` is the whole text. */
  readonly rest: string;
}

/** Null when the system text does not begin with the stable part, or is not one text. */
function cutSystem(messages: readonly OutgoingMessage[], stable: string): SystemCut | null {
  const index = messages.findIndex((message) => message.role === "system");
  const text = messages[index]?.content;
  if (stable === "" || typeof text !== "string" || !text.startsWith(stable)) return null;
  const rest = text.slice(stable.length);
  return rest.trim() === "" ? { index, stable: text, rest: "" } : { index, stable, rest };
}

/** Lays markers, as long as there are any left. */
class Pen {
  readonly #messages: OutgoingMessage[];
  readonly #marker: CacheMarker;
  readonly #layout: CacheLayout;
  used = 0;

  constructor(messages: OutgoingMessage[], marker: CacheMarker, layout: CacheLayout) {
    this.#messages = messages;
    this.#marker = marker;
    this.#layout = layout;
  }

  spend(): CacheMarker {
    this.used++;
    return this.#marker;
  }

  mark(index: number): void {
    const message = this.#messages[index];
    const copy = message && this.used < MAX_MARKERS ? withMarker(message, this.#marker, this.#layout) : null;
    if (!copy) return;
    this.#messages[index] = copy;
    this.used++;
  }

  markSystem({ index, stable, rest }: SystemCut, options: { readonly rest: boolean }): void {
    const first = { type: "text", text: stable, cache_control: this.spend() } as const;
    const second = {
      type: "text",
      text: rest,
      ...(options.rest && rest !== "" && { cache_control: this.spend() }),
    } as const;
    this.#messages[index] = { role: "system", content: rest === "" ? [first] : [first, second] };
  }
}

// Where a request may have ended, or will: the places worth a marker, because the next request looks for them again.

/**
 * Indexes, ascending: the last result of every finished run of calls, answers in words, and the newest user message. An answer that
 * calls tools is none: what it began ends with its results.
 */
export function transactionEnds(messages: readonly OutgoingMessage[]): readonly number[] {
  const newestUser = messages.findLastIndex((message) => message.role === "user");
  return messages.flatMap((message, index) => {
    switch (message.role) {
      case "tool":
        return messages[index + 1]?.role === "tool" || !isFinished(messages, index) ? [] : [index];
      case "assistant":
        return (message.tool_calls?.length ?? 0) === 0 && hasText(message) ? [index] : [];
      case "user":
        return index === newestUser ? [index] : [];
      default:
        return [];
    }
  });
}

/** As many results as the answer before them has calls. */
function isFinished(messages: readonly OutgoingMessage[], last: number): boolean {
  const opener = messages.findLastIndex((message, index) => index < last && message.role !== "tool");
  const message = messages[opener];
  return message?.role === "assistant" && (message.tool_calls?.length ?? 0) <= last - opener;
}

function hasText(message: OutgoingMessage): boolean {
  const content = contentToSend(message);
  if (typeof content === "string") return content.trim() !== "";
  return (content ?? []).some((part) => part.type !== "text" || part.text.trim() !== "");
}

const OFF = ["off", "false", "disabled", "no", "none"];

/** `prompt_caching.cache_ttl` in every way it is written; a word nobody knows counts as the default, with a warning. */
export function readCacheTtl(value: unknown): { readonly ttl: CacheTtl; readonly warning: string | null } {
  if (value === undefined) return { ttl: "5m", warning: null };
  if (value === null || value === false) return { ttl: "off", warning: null };
  const word = String(value).trim().toLowerCase();
  if (word === "5m" || word === "1h") return { ttl: word, warning: null };
  if (OFF.includes(word)) return { ttl: "off", warning: null };
  const shown = JSON.stringify(value);
  return { ttl: "5m", warning: `prompt_caching.cache_ttl: ${shown} is not known; 5m is used. Legal: 5m, 1h, off.` };
}
