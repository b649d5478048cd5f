// Where a conversation is cut: the beginning and the recent part stay, what lies between becomes a summary.

import type { Config } from "../../home/config/schema.ts";
import {
  type AssistantMessage,
  type ContentPart,
  type Message,
  textOf,
  userContentToSend,
} from "../../llm/messages.ts";
import { estimateTokens } from "../../llm/usage.ts";
import { isRealUser, takeSummary } from "./summary-text.ts";

interface BoundaryOptions {
  /** Messages behind the system message that stay; 0 after the first compression. */
  readonly protectFirstN: number;
  readonly protectLastN: number;
  readonly tailTokenBudget: number;
  /** What the tail may cost at most: with more, the compression would not bring the request below its threshold. */
  readonly tailLimit: number;
  /** The tail is the last so many user turns, whatever they cost. */
  readonly keepTurns?: number | undefined;
}

export interface Boundaries {
  /** The first message that may be dropped. */
  readonly head: number;
  /** The first message of the tail. */
  readonly cut: number;
  /** The last thing the user said, when it lies before the cut: it is kept word for word all the same. */
  readonly carried: number | null;
}

/** The fewest messages that can be worth it: something to drop, and something that stays. */
const LEAST_TAIL = 3;
const LEAST_DROPPED = 2;

/** Null when there is nothing to drop. No call is ever parted from its results. */
export function findBoundaries(messages: readonly Message[], options: BoundaryOptions): Boundaries | null {
  const head = headEnd(messages, options.protectFirstN);
  if (messages.length < head + LEAST_TAIL + LEAST_DROPPED) return null;
  if (options.keepTurns !== undefined) return cutAtTurn(messages, head, options.keepTurns);
  const byBudget = outOfGroup(messages, tailStart(messages, head, options));
  const lastUser = messages.findLastIndex(isRealUser);
  const fits = (cut: number) => costFrom(messages, cut) <= options.tailLimit;
  const goesOn = (cut: number) => finish(messages, head, withAnswer(messages, head, cut, fits));
  const afterSummary = lastUser >= summaryEnd(messages);
  if (lastUser < head || (afterSummary && lastUser >= byBudget)) return goesOn(byBudget);
  if (afterSummary && lastUser > head && fits(lastUser)) return goesOn(lastUser);
  return carry(messages, head, byBudget, lastUser);
}

function headEnd(messages: readonly Message[], protectFirstN: number): number {
  let head = 0;
  while (messages[head]?.role === "system") head++;
  head = Math.min(messages.length, head + protectFirstN);
  while (messages[head]?.role === "tool") head++;
  return head;
}

function cutAtTurn(messages: readonly Message[], head: number, turns: number): Boundaries | null {
  const users = messages.flatMap((message, index) => (isRealUser(message) ? [index] : []));
  const cut = users.at(-turns) ?? -1;
  return cut > head ? finish(messages, head, cut) : null;
}

function tailStart(messages: readonly Message[], head: number, options: BoundaryOptions): number {
  const floor = Math.min(tailFloor(options.protectLastN), messages.length - head - LEAST_DROPPED);
  const walk = (budget: number) => {
    let left = budget;
    let start = messages.length;
    while (start > head) {
      left -= messageCost(messages[start - 1] as Message); // inside the list
      if (left < 0 && messages.length - start >= floor) break;
      start--;
    }
    return start;
  };
  const generous = walk(1.5 * options.tailTokenBudget);
  if (generous > head) return generous;
  const exact = walk(options.tailTokenBudget);
  return exact > head ? exact : messages.length - floor;
}

/** Back to the answer that made the calls, when the cut would fall among their results. */
function outOfGroup(messages: readonly Message[], cut: number): number {
  let start = cut;
  while (start > 0 && messages[start]?.role === "tool") start--;
  return start;
}

/** The last answer in words stays too, where there is room for it. */
function withAnswer(messages: readonly Message[], head: number, cut: number, fits: (cut: number) => boolean): number {
  const answer = messages.findLastIndex((one) => one.role === "assistant" && textOf(one.content).trim() !== "");
  return answer > head && answer < cut && fits(answer) ? answer : cut;
}

function finish(messages: readonly Message[], head: number, cut: number): Boundaries | null {
  let start = Math.max(cut, head + 1, summaryEnd(messages));
  while (messages[start]?.role === "tool") start++;
  return start < messages.length ? { head, cut: start, carried: null } : null;
}

/** One turn fills the window by itself: its middle goes, what the user asked for stays. */
function carry(messages: readonly Message[], head: number, byBudget: number, carried: number): Boundaries | null {
  const isAnswer = (message: Message, index: number) => message.role === "assistant" && index > carried;
  const least = Math.max(byBudget, summaryEnd(messages));
  const next = messages.findIndex((message, index) => index >= least && isAnswer(message, index));
  const cut = next >= 0 ? next : messages.findLastIndex(isAnswer);
  return cut > carried + 1 || (cut > 0 && carried > head) ? { head, cut, carried } : null;
}

/** Behind a message that is nothing but an earlier summary: it goes into the next one, so it is never part of the tail. */
function summaryEnd(messages: readonly Message[]): number {
  return messages.findLastIndex((message) => takeSummary(message)?.rest === null) + 1;
}

function costFrom(messages: readonly Message[], start: number): number {
  let cost = 0;
  for (let index = start; index < messages.length; index++) cost += messageCost(messages[index] as Message); // inside the list
  return cost;
}

// What a message costs in a request, roughly. Messages never change once they exist, so each is counted once.

const PER_MESSAGE = 10;
const IMAGE_TOKENS = 1600;

const counted = new WeakMap<Message, number>();

export function messageCost(message: Message): number {
  const known = counted.get(message);
  if (known !== undefined) return known;
  const cost = PER_MESSAGE + contentCost(sentContent(message)) + (message.role === "assistant" ? extrasOf(message) : 0);
  counted.set(message, cost);
  return cost;
}

export function messagesCost(messages: readonly Message[]): number {
  return messages.reduce((sum, message) => sum + messageCost(message), 0);
}

/** What a request carries of the message: the text it was sent with, where that differs from what is stored. */
export function sentContent(message: Message): string | readonly ContentPart[] | null {
  if (message.role === "user") return userContentToSend(message);
  return ("api_content" in message ? message.api_content : undefined) ?? message.content;
}

function contentCost(content: string | readonly ContentPart[] | null): number {
  if (content === null) return 0;
  if (typeof content === "string") return estimateTokens(content);
  return content.reduce((sum, part) => sum + (part.type === "text" ? estimateTokens(part.text) : IMAGE_TOKENS), 0);
}

/** Calls, and the state some providers want back. */
function extrasOf(message: AssistantMessage): number {
  const calls = message.tool_calls ? estimateTokens(JSON.stringify(message.tool_calls)) : 0;
  const replayed = [
    message.reasoning_content,
    message.reasoning_details,
    message.anthropic_content_blocks,
    message.codex_reasoning_items,
    message.codex_message_items,
  ];
  return replayed.reduce<number>((sum, item) => sum + (item === undefined ? 0 : estimateTokens(asText(item))), calls);
}

const asText = (item: unknown) => (typeof item === "string" ? item : JSON.stringify(item));

// How much a conversation may hold before it is shortened, and how much of it stays.

export interface ContextNumbers {
  /** Tokens of a request at which the conversation is shortened. */
  readonly thresholdTokens: number;
  /** Tokens of recent messages that stay as they are. */
  readonly tailTokenBudget: number;
  /** Most tokens of a summary. */
  readonly maxSummaryTokens: number;
}

const SMALL_WINDOW_SHARE = 0.75;
const SMALL_WINDOW_CAP = 64_000;
const LEAST_SUMMARY_TOKENS = 2000;

/** Half of the window by default; small windows wait longer, or the fixed part of a request alone would trigger it. */
export function contextNumbers(contextLength: number, threshold: number, targetRatio: number): ContextNumbers {
  const floor = Math.min(SMALL_WINDOW_CAP, Math.floor(contextLength * SMALL_WINDOW_SHARE));
  const thresholdTokens = Math.max(Math.floor(contextLength * threshold), floor);
  return {
    thresholdTokens,
    tailTokenBudget: Math.floor(thresholdTokens * clamp(targetRatio, 0.1, 0.8)),
    maxSummaryTokens: Math.min(Math.floor(contextLength * 0.05), 12_000),
  };
}

/** The share of the window for a model: what `compression.model_thresholds` says for the longest part of its name, else `threshold`. */
export function thresholdFor(
  model: string,
  { threshold, model_thresholds }: Pick<Config["compression"], "threshold" | "model_thresholds">,
): number {
  const name = model.toLowerCase();
  const fitting = Object.entries(model_thresholds).filter(
    (entry): entry is [string, number] => isShare(entry[1]) && name.includes(entry[0].toLowerCase()),
  );
  return fitting.toSorted(([one], [other]) => other.length - one.length)[0]?.[1] ?? threshold;
}

const isShare = (value: unknown) => typeof value === "number" && value > 0 && value <= 1;

/** What a summary of that many tokens may take. */
export function summaryBudget(tokens: number, maxSummaryTokens: number): number {
  return Math.max(LEAST_SUMMARY_TOKENS, Math.floor(Math.min(0.2 * tokens, maxSummaryTokens)));
}

/** The output cap of the call: models count differently from us, and a summary that is cut off is lost. */
export function summaryCallCap(budgetTokens: number): number {
  return Math.floor(budgetTokens * 1.3);
}

/** Newest messages that stay in any case. */
function tailFloor(protectLastN: number): number {
  return clamp(protectLastN, 3, 8);
}

function clamp(value: number, least: number, most: number): number {
  return Math.min(most, Math.max(least, value));
}
