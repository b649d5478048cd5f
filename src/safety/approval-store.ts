// Owner of every open question of one process: one at a time per conversation, oldest first.
import { randomUUID } from "node:crypto";
import type { Clock } from "../kit/clock.ts";
import type { AnswerTo, ApprovalChoice, Ask, Question } from "./questions.ts";
import { refuse } from "./refusal.ts";

export interface OpenQuestion {
  readonly id: string;
  readonly sessionKey: string;
  readonly sessionId: string | null;
  readonly question: Question;
  /** Milliseconds; null while it waits for its turn. */
  readonly askedAt: number | null;
  readonly expiresAt: number | null;
}

/**
 * Where open questions are visible to other processes of the same home.
 *
 * - `answerOf` gives the answer another process wrote, parsed from JSON, or null.
 * - A failure of the table is reported and the question goes on without it.
 */
export interface ApprovalTable {
  insert(question: OpenQuestion): Promise<void>;
  answerOf(id: string): Promise<unknown>;
  remove(id: string): Promise<void>;
}

export interface RequestOptions<Q extends Question = Question> {
  readonly signal?: AbortSignal;
  readonly sessionId?: string;
  /** Counted from when it is this question's turn; silence is a no. */
  readonly timeoutMs?: number;
  /** Puts the question in front of somebody. Its signal ends when the question was settled elsewhere. */
  readonly show?: Ask;
  /** Told the answer before the next question of the conversation comes up. */
  onAnswer?(answer: AnswerTo<Q>): void;
}

export interface ApprovalStore {
  request<Q extends Question>(sessionKey: string, question: Q, options?: RequestOptions<Q>): Promise<AnswerTo<Q>>;
  /** Answers the oldest approval of a conversation, the one with `id`, or all; how many there were. */
  resolve(
    sessionKey: string,
    choice: ApprovalChoice,
    options?: { readonly all?: boolean; readonly id?: string; readonly reason?: string },
  ): number;
  open(): readonly OpenQuestion[];
  /** Refuses whatever waits in a conversation: it was stopped or is over. */
  release(sessionKey: string, reason: string): number;
}

const CHOICES: Readonly<Record<"approval" | "confirm", readonly string[]>> = {
  approval: ["once", "session", "always", "deny"],
  confirm: ["once", "always", "cancel"],
};

/** What another process wrote, if it is an answer to this question. */
function readAnswer(question: Question, value: unknown): unknown {
  if (typeof value !== "object" || value === null) return null;
  const given = value as Readonly<Record<string, unknown>>; // an object; every field is checked below
  if (question.kind !== "approval" && question.kind !== "confirm") {
    return typeof given.text === "string" || given.text === null ? { text: given.text } : null;
  }
  if (typeof given.choice !== "string" || !CHOICES[question.kind].includes(given.choice)) return null;
  return { choice: given.choice, ...(typeof given.reason === "string" ? { reason: given.reason } : {}) };
}

interface Entry {
  readonly id: string;
  readonly sessionKey: string;
  readonly question: Question;
  readonly options: Omit<RequestOptions, "onAnswer">;
  readonly over: AbortController;
  askedAt: number | null;
  settle(answer: unknown): void;
}

export interface ApprovalStoreOptions {
  readonly clock: Clock;
  readonly table?: ApprovalTable;
  /** How often the table is looked at for an answer from elsewhere. */
  readonly pollMs?: number;
  readonly report?: (problem: string, error: unknown) => void;
}

export function createApprovalStore({ clock, table, pollMs = 500, report }: ApprovalStoreOptions): ApprovalStore {
  const queues = new Map<string, Entry[]>();
  const queueOf = (sessionKey: string) => queues.get(sessionKey) ?? [];

  const request = <Q extends Question>(sessionKey: string, question: Q, options: RequestOptions<Q> = {}) => {
    const { promise, resolve } = Promise.withResolvers<AnswerTo<Q>>();
    const entry: Entry = {
      id: randomUUID(),
      sessionKey,
      question,
      options,
      over: new AbortController(),
      askedAt: null,
      settle: (answer) => {
        if (entry.over.signal.aborted) return;
        const own = answer as AnswerTo<Q>; // every caller of settle answers this entry's own question
        entry.over.abort();
        options.onAnswer?.(own);
        remove(entry);
        resolve(own);
      },
    };
    if (options.signal?.aborted) return Promise.resolve(refuse(question));
    const interrupted = () => entry.settle(refuse(question));
    options.signal?.addEventListener("abort", interrupted, { once: true, signal: entry.over.signal });
    const queue = queueOf(sessionKey);
    queue.push(entry);
    queues.set(sessionKey, queue);
    if (queue[0] === entry) start(entry);
    return promise;
  };

  function remove(entry: Entry): void {
    const queue = queueOf(entry.sessionKey).filter((other) => other !== entry);
    if (queue.length > 0) queues.set(entry.sessionKey, queue);
    else queues.delete(entry.sessionKey);
    const [next] = queue;
    if (next && next.askedAt === null) start(next);
  }

  function start(entry: Entry): void {
    const { question, options, over } = entry;
    entry.askedAt = clock.now();
    if (options.timeoutMs !== undefined) {
      clock.sleep(options.timeoutMs, over.signal).then(
        () => entry.settle(refuse(question, { timedOut: true })),
        () => undefined, // settled before its time was up
      );
    }
    options.show?.(question, over.signal).then(
      (answer) => entry.settle(answer),
      (error: unknown) => {
        report?.("a question could not be shown", error);
        entry.settle(refuse(question));
      },
    );
    if (table) void watch(entry, table);
  }

  async function watch(entry: Entry, port: ApprovalTable): Promise<void> {
    const { signal } = entry.over;
    try {
      await port.insert(describe(entry));
      while (!signal.aborted) {
        const answer = readAnswer(entry.question, await port.answerOf(entry.id));
        if (answer !== null) entry.settle(answer);
        else await clock.sleep(pollMs, signal).catch(() => undefined); // settled meanwhile
      }
      await port.remove(entry.id);
    } catch (error) {
      report?.("an open question could not be shared with other processes", error);
    }
  }

  const describe = (entry: Entry): OpenQuestion => ({
    id: entry.id,
    sessionKey: entry.sessionKey,
    sessionId: entry.options.sessionId ?? null,
    question: entry.question,
    askedAt: entry.askedAt,
    expiresAt:
      entry.askedAt === null || entry.options.timeoutMs === undefined ? null : entry.askedAt + entry.options.timeoutMs,
  });

  return {
    request,
    resolve: (sessionKey, choice, { all = false, id, reason } = {}) => {
      const waiting = queueOf(sessionKey).filter(({ question }) => question.kind === "approval");
      const chosen = id === undefined ? waiting.slice(0, all ? undefined : 1) : waiting.filter((one) => one.id === id);
      for (const entry of chosen) entry.settle({ choice, ...(reason === undefined ? {} : { reason }) });
      return chosen.length;
    },
    open: () => [...queues.values()].flat().map(describe),
    release: (sessionKey, reason) => {
      const waiting = queueOf(sessionKey);
      // Last first, so that no question comes up only to be refused.
      for (const entry of waiting.toReversed()) entry.settle(refuse(entry.question, { reason }));
      return waiting.length;
    },
  };
}
