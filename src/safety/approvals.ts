// Owner of every open question of one process: one at a time per conversation, oldest first.
import { randomUUID } from "node:crypto";
import type { Clock } from "../kit/clock.ts";
import { type AnswerTo, type ApprovalChoice, type Ask, type Question, refuse } from "./decision.ts";
import { matchGlob } from "./paths.ts";
import { parseCommandLine, plainText } from "./shell/parse.ts";

/** A question that waits for an answer. Times are Unix seconds. */
export interface OpenQuestion<Payload = unknown> {
  readonly id: string;
  readonly sessionKey: string;
  readonly sessionId: string | null;
  readonly kind: string;
  /** The question itself. In the table it has no secrets, and any version may have written it. */
  readonly payload: Payload;
  readonly askedAt: number;
  /** Null: it waits as long as its process lives, or its turn has not come yet. */
  readonly expiresAt: number | null;
}

/** Where open questions are visible to other processes of the same home. The session store satisfies it. */
export interface ApprovalTable {
  putQuestion(question: OpenQuestion): Promise<void>;
  /** What another process answered, parsed from JSON, or null. */
  answerTo(id: string): Promise<unknown>;
  /** `answer` is the word that ended it. */
  removeQuestion(id: string, answer?: string): Promise<void>;
}

interface RequestOptions<Q extends Question = Question> {
  readonly signal?: AbortSignal;
  readonly sessionId?: string;
  /** Counted from when it is this question's turn; silence is a no. */
  readonly timeoutMs?: number;
  /** Shows the question. Its signal ends when the question was settled elsewhere. */
  readonly show?: Ask;
  /** Called with the answer before the next question of the conversation comes up. */
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
  open(): readonly OpenQuestion<Question>[];
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

/** Never what was typed: that may be a password. */
function wordOf(answer: object): string {
  if ("timedOut" in answer && answer.timedOut === true) return "timeout";
  return "choice" in answer ? String(answer.choice) : "answered";
}

interface Entry {
  readonly id: string;
  readonly sessionKey: string;
  readonly question: Question;
  readonly options: Omit<RequestOptions, "onAnswer">;
  readonly over: AbortController;
  readonly askedAt: number;
  /** Null while it waits for its turn. */
  startedAt: number | null;
  /** The word that ended it. */
  word?: string;
  settle(answer: unknown): void;
}

interface ApprovalStoreOptions {
  readonly clock: Clock;
  /** Opened with the first question. A failure of the table is reported and the question goes on without it. */
  readonly table?: () => Promise<ApprovalTable>;
  /** Takes secrets out of what other processes see. */
  readonly redact?: (text: string) => string;
  /** How often the table is looked at for an answer from elsewhere. */
  readonly pollMs?: number;
  readonly report?: (problem: string, error: unknown) => void;
}

export function createApprovalStore(storeOptions: ApprovalStoreOptions): ApprovalStore {
  const { clock, table, redact = (text) => text, pollMs = 500, report } = storeOptions;
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
      askedAt: clock.now(),
      startedAt: null,
      settle: (answer) => {
        if (entry.over.signal.aborted) return;
        const own = answer as AnswerTo<Q>; // every caller of settle answers this entry's own question
        entry.word = wordOf(own);
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
    if (next && next.startedAt === null) start(next);
  }

  function start(entry: Entry): void {
    const { question, options, over } = entry;
    entry.startedAt = clock.now();
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

  async function watch(entry: Entry, openTable: () => Promise<ApprovalTable>): Promise<void> {
    const { signal } = entry.over;
    try {
      const shared = await openTable();
      const payload: unknown = JSON.parse(JSON.stringify(entry.question), (_key, value) =>
        typeof value === "string" ? redact(value) : value,
      );
      await shared.putQuestion({ ...describe(entry), payload });
      while (!signal.aborted) {
        const answer = readAnswer(entry.question, await shared.answerTo(entry.id));
        if (answer !== null) entry.settle(answer);
        else await clock.sleep(pollMs, signal).catch(() => undefined); // settled meanwhile
      }
      await shared.removeQuestion(entry.id, entry.word);
    } catch (error) {
      report?.("an open question could not be shared with other processes", error);
    }
  }

  const describe = ({ id, sessionKey, question, options, askedAt, startedAt }: Entry): OpenQuestion<Question> => ({
    id,
    sessionKey,
    sessionId: options.sessionId ?? null,
    kind: question.kind,
    payload: question,
    askedAt: (startedAt ?? askedAt) / 1000,
    expiresAt: startedAt === null || options.timeoutMs === undefined ? null : (startedAt + options.timeoutMs) / 1000,
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

/** What a user allowed for the rest of a conversation. Kept in memory only and gone when the conversation ends. */
export interface SessionApprovals {
  allows(sessionKey: string, key: string): boolean;
  allow(sessionKey: string, key: string): void;
  /** Nothing is asked in this conversation. */
  isYolo(sessionKey: string): boolean;
  setYolo(sessionKey: string, on: boolean): void;
  /** The approving model said no so often in a row that the user is asked instead. */
  isJudgeDistrusted(sessionKey: string): boolean;
  noteJudgement(sessionKey: string, verdict: "approve" | "deny" | "escalate"): void;
  clear(sessionKey: string): void;
}

const MAX_DENIALS = 3;

export function createSessionApprovals(): SessionApprovals {
  const allowed = new Map<string, Set<string>>();
  const yolo = new Set<string>();
  const denials = new Map<string, number>();
  return {
    allows: (sessionKey, key) => allowed.get(sessionKey)?.has(key) ?? false,
    allow: (sessionKey, key) => {
      const keys = allowed.get(sessionKey) ?? new Set();
      allowed.set(sessionKey, keys.add(key));
    },
    isYolo: (sessionKey) => yolo.has(sessionKey),
    setYolo: (sessionKey, on) => {
      if (on) yolo.add(sessionKey);
      else yolo.delete(sessionKey);
    },
    isJudgeDistrusted: (sessionKey) => (denials.get(sessionKey) ?? 0) >= MAX_DENIALS,
    noteJudgement: (sessionKey, verdict) => {
      if (verdict === "deny") denials.set(sessionKey, (denials.get(sessionKey) ?? 0) + 1);
      else denials.delete(sessionKey);
    },
    clear: (sessionKey) => {
      denials.delete(sessionKey);
      allowed.delete(sessionKey);
      yolo.delete(sessionKey);
    },
  };
}

/**
 * An entry is a danger category, or a glob of whole commands. A glob never covers a line with shell operators: `git push *` must
 * not let `git push x; something else` through.
 */
export function isAllowlisted(command: string, category: string | null, entries: readonly string[]): boolean {
  if (category !== null && entries.some((entry) => currentKey(entry) === category)) return true;
  const text = command.trim();
  return isSinglePlainCommand(text) && entries.some((entry) => entry.trim() !== "" && matchGlob(entry.trim(), text));
}

const isSinglePlainCommand = (command: string) => simpleWords(command) !== null;

/** One command, whatever is around it: redirections, assignments, what the shell fills in. */
export function isOneCommand(command: string): boolean {
  const { script, ok } = parseCommandLine(command);
  const [pipeline, ...more] = script.pipelines;
  return ok && more.length === 0 && pipeline?.commands.length === 1 && pipeline.commands[0]?.type === "simple";
}

/** The words of a line that is one simple command without assignments, redirections and operators; null for any other. */
export function simpleWords(command: string): readonly string[] | null {
  const { script, ok } = parseCommandLine(command);
  const [pipeline] = script.pipelines;
  const [simple] = pipeline?.commands ?? [];
  if (!ok || script.pipelines.length !== 1 || pipeline?.joiner !== "" || pipeline.commands.length !== 1) return null;
  if (simple?.type !== "simple" || simple.keywords.length > 0) return null;
  if (simple.assignments.length > 0 || simple.redirections.length > 0) return null;
  const plain = simple.words.every(({ parts }) => parts.every(({ type }) => type === "literal" || type === "variable"));
  return plain ? simple.words.map((word) => plainText(word) ?? "") : null;
}

/** Names that earlier releases stored for what has another name today. */
const RENAMED: Readonly<Record<string, string>> = {
  "world-writable permissions": "world/other-writable permissions",
  "recursive world-writable (long flag)": "recursive world/other-writable (long flag)",
  "stop/disable system service": "stop/restart system service",
  "shell command via -c flag": "shell command via -c/-lc flag",
  "script execution via -e flag": "script execution via -e/-c flag",
  "kill process via pgrep expansion (self-termination)": "kill process via pgrep/pidof expansion (self-termination)",
  "kill process via backtick pgrep expansion (self-termination)":
    "kill process via backtick pgrep/pidof expansion (self-termination)",
};

/** The key an allowlist entry stands for today. */
function currentKey(entry: string): string {
  const key = entry.trim();
  return Object.hasOwn(RENAMED, key) ? (RENAMED[key] ?? key) : key;
}
