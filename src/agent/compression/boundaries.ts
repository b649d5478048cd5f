// Where a conversation is cut: the beginning and the recent part stay, what lies between becomes a summary.
import { type Message, textOf } from "../../llm/messages.ts";
import { messageCost } from "./cost.ts";
import { tailFloor } from "./numbers.ts";
import { isRealUser, takeSummary } from "./summary-text.ts";

export interface BoundaryOptions {
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
