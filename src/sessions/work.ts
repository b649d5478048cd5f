// What is promised to people elsewhere: messages that wait to be answered, answers that wait to be sent, and who may do either. One
// contract for every engine of the store; test/support/work-conformance.ts is its suite.
import type { LaneAnswer, LaneToken, Leased, TimedMessage } from "./store.ts";

/** `goal` and `wake` are rows of our own; a goal comes after everything that people said. */
type InboxKind = "user" | "command" | "goal" | "wake";

/** Something that happened at a platform, on its way in. */
export interface InboxEvent {
  /** The address of the chat: one conversation at a time belongs to it. */
  readonly sessionKey: string;
  readonly platform: string;
  readonly account: string;
  /** What makes a repeated delivery a duplicate. Rows of our own name their cause in it. */
  readonly updateId: string;
  readonly kind: InboxKind;
  readonly event: unknown;
}

/** How a row ended. */
type InboxOutcome =
  | "answered"
  | "failed"
  | "interrupted"
  | "merged"
  | "command"
  | "stopped"
  | "cleared"
  | "withdrawn"
  | "superseded"
  | "refused"
  | "told";

export interface InboxRow extends InboxEvent {
  readonly id: number;
  /** The conversation that took it; null before that. */
  readonly lane: string | null;
  /** The stored message of the user. A row that has one was begun: its turn is continued, and the message never stored again. */
  readonly messageId: number | null;
  /** How many turns on it reached the model and did not end. */
  readonly attempts: number;
  /** Unix seconds, by the store's clock like every time here. */
  readonly receivedAt: number;
}

/** Where a platform's stream of updates was read up to. */
export interface Cursor {
  readonly platform: string;
  readonly account: string;
  readonly cursor: string | null;
}

/** One message to send. The same cause and part is promised once, however often it is written. */
export interface OutboxPart {
  /** `inbox:ID`, `cron:JOB:SLOT:N`, `send:CALL`, `notice:...` */
  readonly cause: string;
  readonly part: number;
  readonly platform: string;
  readonly account: string;
  /** Chat and thread. Parts to one target are sent in the order they were promised. */
  readonly target: unknown;
  readonly payload: unknown;
  /** The message that a stream has sent for this part already: nothing is left to send. */
  readonly sentAs?: string;
}

export interface OutboxRow extends OutboxPart {
  readonly id: number;
  readonly state: "pending" | "sending" | "sent" | "dead";
  readonly attempts: number;
  readonly notBefore: number;
  readonly platformMessageId: string | null;
  readonly error: string | null;
  readonly createdAt: number;
}

/** What came of a try to send. */
export type SendOutcome =
  | { readonly type: "sent"; readonly messageId: string | null }
  /** Again, not before some seconds have passed; `counts` when it was a try of its own. Payload and target replace those of the row. */
  | {
      readonly type: "again";
      readonly afterSeconds: number;
      readonly counts: boolean;
      readonly error: string;
      readonly payload?: unknown;
      readonly target?: unknown;
    }
  | { readonly type: "dead"; readonly error: string };

/** Chat to conversation, as the original keeps it (`gateway_routing`). */
export interface Route {
  readonly sessionKey: string;
  readonly entry: Readonly<Record<string, unknown>>;
  readonly updatedAt: number;
}

/** For the turn that runs in a conversation, from a process that does not hold it. */
export interface Control {
  readonly id: number;
  readonly lane: string;
  readonly kind: "interrupt" | "steer";
  /** What to steer with; `row`: the message waits in the inbox as well, until a turn has read it. */
  readonly says: { readonly text?: string; readonly row?: number };
}

/** `waits`: the turn still runs and has not looked; `over`: it ended without having looked. */
export type AskedHolder = "waits" | "taken" | "over";

export type ChangeKind = "message" | "question" | "answer" | "control" | "run";

export interface Change {
  readonly id: number;
  readonly at: number;
  readonly kind: ChangeKind;
  readonly sessionKey: string | null;
  readonly ref: string;
}

/** The right to read and write one bot: to poll it, to hold its socket, to send what is promised in its name. */
export interface BotLease {
  readonly bot: string;
  readonly holder: string;
  readonly token: number;
}

type BotAnswer =
  | { readonly type: "taken"; readonly lease: BotLease }
  | { readonly type: "held"; readonly by: string; readonly until: number };

/** `gone`: none of the rows waits any more, and no lane was taken. */
export type TakeAnswer =
  | { readonly type: "taken"; readonly lease: LaneToken; readonly rows: readonly InboxRow[] }
  | Exclude<LaneAnswer, { readonly type: "taken" }>
  | { readonly type: "gone" };

/** The end of a turn: everything in it happens, or nothing. */
export interface Finish {
  readonly sessionId: string;
  /** The last messages of the turn. */
  readonly append: readonly TimedMessage[];
  readonly done: readonly { readonly id: number; readonly outcome: InboxOutcome }[];
  /** Rows that came in meanwhile and became part of the turn; nobody has begun them. */
  readonly joined?: readonly number[];
  readonly outbox: readonly OutboxPart[];
  readonly route?: { readonly scope: string } & Pick<Route, "sessionKey" | "entry">;
}

// Scheduled jobs.

/** Why a slot was not run. */
export type SkipReason = "overlap" | "missed" | "paused" | "disabled";

/** `queued`: asked for by hand, for whoever schedules. `unknown`: its process is gone. */
type JobRunState = "queued" | "claimed" | "running" | "completed" | "failed" | "skipped" | "unknown";

export interface JobRun {
  readonly id: number;
  readonly jobId: string;
  /** The time that fell due, or `manual:...`. */
  readonly slot: string;
  readonly state: JobRunState;
  readonly holder: string | null;
  readonly claimedAt: number;
  readonly startedAt: number | null;
  readonly endedAt: number | null;
  readonly sessionId: string | null;
  readonly error: string | null;
  readonly reason: SkipReason | null;
}

export interface NewJobRun extends Pick<JobRun, "jobId" | "slot"> {
  readonly state: Extract<JobRunState, "queued" | "claimed" | "skipped">;
  readonly holder?: string;
  readonly reason?: SkipReason;
  readonly error?: string;
}

export interface JobRunEnd {
  readonly state: Extract<JobRunState, "completed" | "failed" | "skipped" | "unknown">;
  readonly error?: string | null;
  readonly reason?: SkipReason;
}

// Runs of the API.

type ApiRunStatus = "queued" | "running" | "waiting_for_approval" | "stopping" | "completed" | "failed" | "cancelled";

export interface NewApiRun {
  readonly id: string;
  readonly sessionId: string;
  readonly holder: string;
  readonly model: string | null;
}

/** One run. Times are Unix seconds by the store's clock. */
export interface ApiRun extends NewApiRun {
  readonly status: ApiRunStatus;
  readonly output: string | null;
  readonly usage: unknown;
  readonly error: string | null;
  readonly createdAt: number;
  readonly updatedAt: number;
  readonly endedAt: number | null;
}

/** What is new of a run; an end (`completed`, `failed`, `cancelled`) is final. */
export type ApiRunChange = Partial<Pick<ApiRun, "status" | "sessionId" | "output" | "usage" | "error">>;

/** Ids grow within a run. */
export interface ApiRunEvent {
  readonly id: number;
  readonly event: Readonly<Record<string, unknown>>;
}

/** A value of the file (`SessionStore.setMeta`), and what follows from it in a chat. */
export interface Consequences {
  readonly meta: { readonly key: string; readonly value: string; readonly expected: string | null };
  readonly sessionKey: string;
  /** Nothing happens while a turn of the chat runs, or one that somebody wrote for waits. */
  readonly unlessBusy?: boolean;
  /** What of the kind `goal` waits in the chat and has not begun ends as superseded. */
  readonly withdrawGoals?: boolean;
  readonly events?: readonly InboxEvent[];
  readonly outbox?: readonly OutboxPart[];
}

export interface WorkCounts {
  readonly inbox: { readonly queued: number; readonly oldest: number | null; readonly dead: number };
  readonly outbox: {
    readonly pending: number;
    readonly sending: number;
    readonly oldest: number | null;
    readonly dead: number;
  };
  /** Of each platform that has any: rows that wait for a turn, and rows that wait to be sent. */
  readonly platforms: Readonly<Record<string, { readonly queued: number; readonly pending: number }>>;
}

/**
 * Work that outlives the process which does it.
 *
 * - A promise that resolved is committed. `accept` therefore comes before the platform is told that an update arrived.
 * - A turn runs under the lease of its conversation, sending under the lease of its bot; whatever carries a stale lease is refused with
 *   `LaneMovedError` and changes nothing.
 * - No row is ever in two hands: taking is one transaction, and a holder that is gone loses what it had.
 * - Times are the store's. Nothing here knows what an event, a target or a payload means.
 */
export interface WorkStore {
  /**
   * Stores events and moves the cursor, all or nothing. Answers with the row of each event, null for one that was there before: also
   * when its row is long gone, as the newest 1,000 ids of an account are remembered with its cursor.
   */
  accept(events: readonly InboxEvent[], cursor?: Cursor): Promise<readonly (number | null)[]>;
  cursor(platform: string, account: string): Promise<string | null>;
  /** Replaces an event whose turn has not begun; false when there is no such row, or it has. */
  replaceEvent(of: Pick<InboxEvent, "platform" | "account" | "updateId">, event: unknown): Promise<boolean>;

  /**
   * What waits, by chat, fairly: the chat whose first row has waited longest comes first. Within a chat in the order of arrival, goals last.
   */
  waiting(options?: {
    readonly limit?: number;
    /** Only rows that came after this one. */
    readonly after?: number;
  }): Promise<ReadonlyMap<string, readonly InboxRow[]>>;
  /** Of these rows, those that still wait, as they are now. */
  stillWaiting(ids: readonly number[]): Promise<readonly InboxRow[]>;
  /** The lease of the conversation, and with it those of the rows that still wait: from here on they are its own. */
  take(
    sessionId: string,
    ids: readonly number[],
    holder: string,
    options?: { readonly seconds?: number; readonly respectPreference?: boolean },
  ): Promise<TakeAnswer>;
  /**
   * Stores the user's message of a turn and names it in its rows, which are the conversation's from then on. Once: rows that have a message
   * keep it, and nothing is stored. Null when none of the rows waits any more.
   */
  begin(
    lease: LaneToken,
    turn: { readonly sessionId: string; readonly ids: readonly number[]; readonly messages: readonly TimedMessage[] },
  ): Promise<readonly number[] | null>;
  /** The first request of the turn left: from here on a turn that does not end counts. Answers with the attempts of the most tried row. */
  asked(lease: LaneToken, ids: readonly number[]): Promise<number>;
  /** A planned stop is no attempt. */
  unasked(lease: LaneToken, ids: readonly number[]): Promise<void>;
  /** Answers with the ids of what was appended. */
  finish(lease: LaneToken, end: Finish): Promise<readonly number[]>;
  /** Rows that end without a turn, with their reply if there is one. Rows that ended already are left alone; answers with those that did now. */
  settle(
    ids: readonly number[],
    outcome: InboxOutcome | "dead",
    options?: Leased &
      Pick<Partial<Finish>, "outbox" | "route"> & {
        /** Only rows whose turn has not begun. */
        readonly unbegun?: boolean;
      },
  ): Promise<readonly number[]>;

  /** All of it, or nothing: `changed` when the value is not the expected one any more. */
  follow(change: Consequences): Promise<"done" | "changed" | "busy">;

  /** Promises without a turn. Answers with the ids, also of those promised before. */
  promise(parts: readonly OutboxPart[]): Promise<readonly number[]>;
  /** Takes promises back that nobody is sending and that were not sent; answers with those that are gone. */
  withdraw(ids: readonly number[]): Promise<readonly number[]>;
  /** What may be sent now in the name of an account: of each target the first part that is not sent, if its time has come. */
  due(platform: string, account: string): Promise<readonly OutboxRow[]>;
  /** Rows that somebody was sending: for a holder that sends nothing yet, those whose fate is not known. */
  interruptedSends(platform: string, account: string, lease: BotLease): Promise<readonly OutboxRow[]>;
  /** Committed before the request leaves; false when the row is no longer to be sent. */
  sending(id: number, lease: BotLease): Promise<boolean>;
  settleSend(id: number, outcome: SendOutcome, lease: BotLease): Promise<void>;
  /** A part that was sent did not arrive: it is dead, with the reason. Answers with its row; null when there is no such part, or it was told before. */
  bounced(part: Pick<OutboxPart, "platform" | "account" | "cause" | "part">, error: string): Promise<OutboxRow | null>;
  outboxRow(id: number): Promise<OutboxRow | null>;
  /** Whether a message of the platform is one that we sent. */
  wasSent(platform: string, account: string, messageId: string): Promise<boolean>;
  /** When the next part of an account may be sent; null when none waits. */
  nextDue(platform: string, account: string): Promise<number | null>;

  takeBot(bot: string, holder: string, options?: { readonly seconds?: number }): Promise<BotAnswer>;
  renewBot(lease: BotLease, options?: { readonly seconds?: number }): Promise<void>;
  releaseBot(lease: BotLease): Promise<void>;

  /**
   * Asks something of the turn that runs in a conversation now; no later turn will hear it. Null when nobody holds the conversation, and
   * nothing is stored then. An event is stored in the same step as a message that waits, and goes with the request as its `row`. The holder
   * takes it through `SessionStore.takeControls`.
   */
  control(
    sessionId: string,
    kind: Control["kind"],
    says: Control["says"],
    event?: InboxEvent,
  ): Promise<{ readonly id: number; readonly holder: string } | null>;
  controlState(id: number): Promise<AskedHolder>;

  route(scope: string, sessionKey: string): Promise<Route | null>;
  routes(scope: string): Promise<readonly Route[]>;
  /** Written only if nobody else wrote since `expected` (`updatedAt` of what was read, null for none); answers whether it was. */
  setRoute(scope: string, route: Pick<Route, "sessionKey" | "entry">, expected?: number | null): Promise<boolean>;
  removeRoute(scope: string, sessionKey: string): Promise<void>;

  /** The right to run a slot of a job, given once: null for every later caller, in any process. */
  claimSlot(run: NewJobRun): Promise<number | null>;
  /** What was asked for by hand, oldest first; from here on it is this holder's. */
  takeQueuedRuns(holder: string): Promise<readonly JobRun[]>;
  /** From here on the run counts as done, whatever happens to its process; false when it is not the holder's any more. */
  beginRun(id: number, of: { readonly holder: string; readonly sessionId: string }): Promise<boolean>;
  /** The outcome and what is to be sent of it, in one step; false when the run has ended already, and nothing is promised. */
  endRun(id: number, end: JobRunEnd, outbox?: readonly OutboxPart[]): Promise<boolean>;
  /** Ends the runs of processes that are gone as `unknown`, each for one caller. */
  abandonedRuns(): Promise<readonly JobRun[]>;
  /** Newest first. */
  jobRuns(options?: {
    readonly jobId?: string;
    readonly states?: readonly JobRunState[];
    readonly limit?: number;
  }): Promise<readonly JobRun[]>;

  startApiRun(run: NewApiRun): Promise<ApiRun>;
  /** Events of a run, and where it stands: one step. False, and nothing stored, when it has ended or is unknown. */
  noteApiRun(id: string, events: readonly ApiRunEvent[], change?: ApiRunChange): Promise<boolean>;
  /** Events whose content went into a later one. */
  dropApiRunEvents(id: string, ids: readonly number[]): Promise<void>;
  apiRun(id: string): Promise<ApiRun | null>;
  /** Those behind an id, in order. */
  apiRunEvents(id: string, after: number): Promise<readonly ApiRunEvent[]>;
  /** Ends the runs of processes that are gone as `failed`, with an event that says so; answers with their ids. */
  failAbandonedApiRuns(): Promise<readonly string[]>;

  note(kind: ChangeKind, sessionKey: string | null, ref: string): Promise<void>;
  /** Oldest first. */
  changes(sinceId: number, options?: { readonly limit?: number }): Promise<readonly Change[]>;
  lastChange(): Promise<number>;

  /** Zeros where nothing was ever stored, also in a file that cannot be written. */
  counts(): Promise<WorkCounts>;
  /** A line about answers that the original still owes, which stay its own; null when there are none. */
  owedByOriginal(): Promise<string | null>;
  deadLetters(options?: { readonly limit?: number }): Promise<readonly OutboxRow[]>;
  /**
   * Forgets what ended long ago: inbox and outbox rows after 7 days, dead ones after 30, controls after one, changes beyond 10,000, runs of
   * jobs beyond 1,000, runs of the API an hour after their end.
   */
  sweep(): Promise<void>;
}
