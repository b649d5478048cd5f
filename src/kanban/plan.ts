// What a dispatcher does next with a board. Pure: cards, processes and limits in, actions out; no clock, no process, no database.
import { promotes } from "./rules.ts";
import type { CardStatus, RunOutcome } from "./schema.ts";

/** The process of an attempt, as far as it can be seen from here. */
export type WorkerState =
  /** None was started, or none is known: whoever claimed it works by hand, or died before. */
  | { readonly type: "none" }
  | { readonly type: "alive" }
  /** On another machine. */
  | { readonly type: "elsewhere" }
  /** `code` is null where nobody saw it end. `words`: what is known of that. */
  | { readonly type: "dead"; readonly code: number | null; readonly isSeen: boolean; readonly words: string };

/** The attempt that is going on. */
export interface OpenRun {
  readonly id: number;
  readonly startedAt: number;
  readonly heartbeatAt: number | null;
  readonly claimExpires: number | null;
  readonly maxSeconds: number | null;
  /** A dispatcher of this machine claimed it: it starts a process, or dies before. */
  readonly isDispatched: boolean;
  readonly worker: WorkerState;
  /** Attempts before it that ended without a word. */
  readonly protocolStreak: number;
}

/** The attempt before. */
interface PastRun {
  readonly id: number;
  readonly outcome: RunOutcome | null;
  readonly endedAt: number;
  /** Its process, or that of an earlier one, is still there, on this machine. */
  readonly isAlive: boolean;
}

/** One card that is not finished. */
export interface CardView {
  readonly id: string;
  readonly title: string;
  readonly status: CardStatus;
  readonly assignee: string | null;
  readonly priority: number;
  readonly createdAt: number;
  readonly failures: number;
  readonly maxRetries: number | null;
  readonly lastError: string | null;
  readonly openParents: readonly string[];
  readonly isForced: boolean;
  /** Put aside, and nobody took that back. */
  readonly isHeld: boolean;
  readonly run: OpenRun | null;
  readonly last: PastRun | null;
  /** When it was completed, where nobody put it into line again since. */
  readonly completedAt: number | null;
  /** When a comment named a pull request, likewise. */
  readonly pullRequestAt: number | null;
  /** What it was last said to wait for. */
  readonly guardedFor: string | null;
}

export interface Limits {
  readonly failureLimit: number;
  /** Null: no limit. */
  readonly maxInProgress: number | null;
  readonly maxPerProfile: number | null;
  /** 0: never stale. */
  readonly staleSeconds: number;
  readonly claimSeconds: number;
  readonly cooldownSeconds: number;
  readonly defaultAssignee: string | null;
  /** Starts of this look; null: no limit. */
  readonly maxStarts: number | null;
}

/** A process whose attempt is over. */
export interface Leftover {
  readonly card: string;
  readonly run: number;
  readonly endedAt: number;
}

export interface BoardView {
  readonly now: number;
  readonly cards: readonly CardView[];
  readonly leftovers: readonly Leftover[];
  readonly profiles: ReadonlySet<string>;
  readonly limits: Limits;
  /** Cards that are finished and whose scratch folder nobody needs any more. */
  readonly finishedFolders: readonly string[];
}

type GuardReason = "rate_limited" | "quota_or_auth" | "recently_completed" | "open_pull_request";

/** Why a card that is ready does not run. */
export type WaitReason =
  | GuardReason
  | "unassigned"
  | "no_profile"
  | "board_full"
  | "profile_full"
  | "look_full"
  | "worker_ending";

type EndOutcome = Extract<RunOutcome, "reclaimed" | "crashed" | "timed_out" | "stale" | "rate_limited">;

interface Ending {
  readonly card: string;
  readonly run: number;
  readonly outcome: EndOutcome;
  readonly event?: "protocol_violation";
  readonly error: string;
  /** So many in a row, and the card is put aside. */
  readonly limit?: number;
  /** This is the last one. */
  readonly givesUp: boolean;
}

export type Action =
  /** Its process ended: so does the attempt. */
  | ({ readonly type: "end" } & Ending)
  /** Its process has to end first; if it will not, the claim is held. */
  | ({ readonly type: "stop" } & Ending)
  | { readonly type: "extend"; readonly card: string; readonly run: number; readonly until: number }
  /** The attempt is over, its process is not. */
  | { readonly type: "stop_leftover"; readonly card: string; readonly run: number }
  | { readonly type: "promote"; readonly card: string }
  /** Ready, but a parent is open again. */
  | { readonly type: "hold_back"; readonly card: string; readonly parents: readonly string[] }
  | { readonly type: "assign"; readonly card: string; readonly assignee: string }
  /** Said once for each reason. */
  | { readonly type: "guard"; readonly card: string; readonly reason: GuardReason }
  | { readonly type: "wait"; readonly card: string; readonly reason: WaitReason }
  | { readonly type: "start"; readonly card: string; readonly assignee: string; readonly isReview: boolean }
  | { readonly type: "clean"; readonly card: string };

/** A worker that gave no sign for so long is looked at as one that hangs. */
const SILENT_SECONDS = 3600;
/** A process may take so long to show. */
const GRACE_SECONDS = 30;
/** A worker may take so long to end once its card is out of its hands. */
const LEAVING_SECONDS = 60;
const COMPLETED_SECONDS = 3600;
const PULL_REQUEST_SECONDS = 86_400;
/** As EX_TEMPFAIL: a quota stopped it, and the same would happen again at once. */
const QUOTA_EXIT = 75;
const PROTOCOL_LIMIT = 3;
/** So many with the same error at one time: not the cards are to blame. */
const SYSTEMIC = 3;

const ABOUT_QUOTA =
  /quota|rate.?limit|too many requests|\b(?:401|402|403|429)\b|unauthori[sz]ed|forbidden|\bapi.?key\b|authentication|billing|insufficient (?:credit|balance|funds)/i;

/**
 * - A card whose attempt ends in this look is not started in it: what is written down first counts in the next one.
 * - A place is free when its process is gone, not when it was told to go.
 * - Every card that is ready is started, or waits for a reason that has a name.
 */
export function plan(view: BoardView): readonly Action[] {
  const settled = settle(view);
  const leftovers = view.leftovers.filter(({ endedAt }) => view.now - endedAt >= LEAVING_SECONDS);
  const promoted = view.cards.filter((card) => card.run === null && promotes(card)).map(({ id }) => id);
  return [
    ...settled,
    ...leftovers.map(({ card, run }): Action => ({ type: "stop_leftover", card, run })),
    ...promoted.map((card): Action => ({ type: "promote", card })),
    ...starts(view, settled, new Set(promoted)),
    ...view.finishedFolders.map((card): Action => ({ type: "clean", card })),
  ];
}

// Attempts that are going on.

function settle({ cards, now, limits }: BoardView): readonly Action[] {
  const actions = cards.flatMap((card): readonly Action[] => {
    const { run } = card;
    const action = card.status === "running" && run !== null ? judgeRun(card, run, now, limits) : null;
    return action === null ? [] : [action];
  });
  return systemic(actions);
}

/** The rules of a running card, in their order: the first that fits counts. */
function judgeRun(card: CardView, run: OpenRun, now: number, limits: Limits): Action | null {
  const { worker } = run;
  const limit = Math.max(1, card.maxRetries ?? limits.failureLimit);
  const ending = (outcome: EndOutcome, error: string, counted?: number, streak = card.failures): Ending => ({
    ...{ card: card.id, run: run.id, outcome, error, givesUp: counted !== undefined && streak + 1 >= counted },
    ...(counted === undefined ? {} : { limit: counted }),
  });
  const over = (end: Ending): Action => ({ type: worker.type === "alive" ? "stop" : "end", ...end });
  const silent = now - (run.heartbeatAt ?? run.startedAt);

  if (run.claimExpires === null || now >= run.claimExpires) {
    const isWell = worker.type === "alive" && (run.heartbeatAt === null || silent <= SILENT_SECONDS);
    const isPast = isStale(run, now, limits) || isOverdue(run, now);
    if (isWell && !isPast) return { type: "extend", card: card.id, run: run.id, until: now + limits.claimSeconds };
    if (!isWell && !(worker.type === "dead" && worker.isSeen))
      return over(ending("reclaimed", "the claim ran out without a sign of life"));
  }
  // Its own machine looks after it; nobody else can tell whether it lives.
  if (worker.type === "elsewhere") return null;
  // Whoever claims under the lock of the board also starts the process under it: nobody is coming any more.
  if (worker.type === "none" && run.isDispatched)
    return over(ending("reclaimed", "the dispatcher ended before it had started a worker"));
  if (isStale(run, now, limits)) return over(ending("stale", `no sign of life for ${silent} s`));
  if (worker.type === "dead" && (worker.isSeen || now - run.startedAt >= GRACE_SECONDS)) {
    if (worker.code === QUOTA_EXIT) return over(ending("rate_limited", "the worker was stopped by a quota"));
    if (worker.code !== 0) return over(ending("crashed", worker.words, limit));
    const error = "the worker ended without completing or blocking its card";
    const most = Math.max(1, card.maxRetries ?? PROTOCOL_LIMIT);
    return over({ ...ending("crashed", error, most, run.protocolStreak), event: "protocol_violation" });
  }
  if (isOverdue(run, now)) return over(ending("timed_out", `it took longer than ${run.maxSeconds} s`, limit));
  return null;
}

const isStale = (run: OpenRun, now: number, { staleSeconds }: Limits): boolean =>
  staleSeconds > 0 && now - run.startedAt > staleSeconds && now - (run.heartbeatAt ?? run.startedAt) >= SILENT_SECONDS;

const isOverdue = (run: OpenRun, now: number): boolean =>
  run.maxSeconds !== null && now - run.startedAt >= run.maxSeconds;

/** Several that ended in the same way at once would end so again. */
function systemic(actions: readonly Action[]): readonly Action[] {
  const counts = new Map<string, number>();
  const nameOf = (action: Action) =>
    action.type === "end" && action.outcome === "crashed" && action.event === undefined ? masked(action.error) : "";
  for (const action of actions) {
    const name = nameOf(action);
    if (name !== "") counts.set(name, (counts.get(name) ?? 0) + 1);
  }
  return actions.map((action) =>
    action.type === "end" && (counts.get(nameOf(action)) ?? 0) >= SYSTEMIC
      ? { ...action, limit: 1, givesUp: true }
      : action,
  );
}

/** What two errors have in common. Empty: nobody knows what happened, which is no error. */
const masked = (error: string): string =>
  error === UNSEEN
    ? ""
    : error
        .toLowerCase()
        .replace(/\b(pid|process) \d+/g, "$1 #")
        .replace(/\d{3,}/g, "#")
        .slice(0, 80);

/** What is said of a worker that ended while no dispatcher ran. */
export const UNSEEN = "the worker is gone, and nobody saw how it ended";

// Cards that could run.

function starts(
  { cards, now, profiles, limits }: BoardView,
  settled: readonly Action[],
  promoted: ReadonlySet<string>,
): readonly Action[] {
  const gone = new Set(settled.flatMap((action) => (action.type === "end" ? [action.card] : [])));
  const held = cards.filter(({ id, status }) => status === "running" && !gone.has(id));
  const busy = new Map<string, number>();
  const take = (assignee: string) => busy.set(assignee, (busy.get(assignee) ?? 0) + 1);
  for (const { assignee } of held) take(assignee ?? "");
  let running = held.length;
  let started = 0;
  const waiting = [
    ...inLine(cards.filter(({ id, status }) => status === "ready" || promoted.has(id))),
    ...inLine(cards.filter(({ status }) => status === "review")),
  ];
  return waiting.flatMap((card): readonly Action[] => {
    const { id, openParents: parents } = card;
    if (parents.length > 0 && !card.isForced) return [{ type: "hold_back", card: id, parents }];
    const assignee = card.assignee ?? limits.defaultAssignee;
    const wait = (reason: WaitReason, ...first: readonly Action[]): readonly Action[] => [
      ...first,
      { type: "wait", card: id, reason },
    ];
    if (assignee === null) return wait("unassigned");
    const given: readonly Action[] = card.assignee === null ? [{ type: "assign", card: id, assignee }] : [];
    if (!profiles.has(assignee)) return card.assignee === null ? wait("unassigned") : wait("no_profile");
    if (card.last?.isAlive) return wait("worker_ending", ...given);
    const guard = guardOf(card, now, limits);
    if (guard !== null)
      return wait(
        guard,
        ...given,
        ...(card.guardedFor === guard ? [] : [{ type: "guard", card: id, reason: guard } as const]),
      );
    if (limits.maxInProgress !== null && running >= limits.maxInProgress) return wait("board_full", ...given);
    if (limits.maxPerProfile !== null && (busy.get(assignee) ?? 0) >= limits.maxPerProfile)
      return wait("profile_full", ...given);
    if (limits.maxStarts !== null && started >= limits.maxStarts) return wait("look_full", ...given);
    running++;
    started++;
    take(assignee);
    return [...given, { type: "start", card: id, assignee, isReview: card.status === "review" }];
  });
}

const inLine = (cards: readonly CardView[]): readonly CardView[] =>
  cards.toSorted((one, other) => other.priority - one.priority || one.createdAt - other.createdAt);

/** What speaks against starting it although it is ready. */
function guardOf(card: CardView, now: number, { cooldownSeconds }: Limits): GuardReason | null {
  const { last, lastError } = card;
  const isCooling = last !== null && now - last.endedAt < cooldownSeconds;
  if (isCooling && last.outcome === "rate_limited") return "rate_limited";
  // It is tried again after a while: that way it comes to the limit of failures, and does not wait for ever.
  if (isCooling && lastError !== null && ABOUT_QUOTA.test(lastError)) return "quota_or_auth";
  if (card.status === "review") return null;
  if (card.completedAt !== null && now - card.completedAt < COMPLETED_SECONDS) return "recently_completed";
  if (card.pullRequestAt !== null && now - card.pullRequestAt < PULL_REQUEST_SECONDS) return "open_pull_request";
  return null;
}
