// The contract of the session store. `open.ts` opens its first implementation (SQLite); nobody outside this room writes SQL.
import { UserError } from "../kit/errors.ts";
import type { CallRecord, CostStatus, Ledger, SpendingScope } from "../llm/gate.ts";
import type { HistoryMessage } from "../llm/messages.ts";
import type { ApprovalTable, OpenQuestion } from "../safety/approvals.ts";
import type { Insights, InsightsQuery } from "./insights.ts";
import type { Control, WorkStore } from "./work.ts";

/** Why a session ended. The first reason wins. */
export type EndReason =
  | "cli_close"
  | "new_session"
  | "branched"
  | "compression"
  | "resumed_other"
  | "session_reset"
  | "session_switch"
  | "orphaned_compression"
  | "agent_close"
  | "cron_complete"
  | "idle"
  | "daily"
  | "suspended";

export interface NewSession {
  readonly id: string;
  readonly source?: string;
  readonly model?: string | null;
  readonly modelConfig?: Readonly<Record<string, unknown>> | null;
  readonly systemPrompt?: string | null;
  readonly parentSessionId?: string | null;
  readonly userId?: string | null;
  readonly cwd?: string | null;
  readonly gitBranch?: string | null;
  readonly gitRepoRoot?: string | null;
  /** Unix seconds; default now. */
  readonly startedAt?: number;
}

/** One row of `sessions`. Times are Unix seconds. A cost is only meaningful together with its status. */
export interface Session {
  readonly id: string;
  readonly source: string;
  readonly userId: string | null;
  readonly model: string | null;
  readonly modelConfig: Readonly<Record<string, unknown>> | null;
  readonly parentSessionId: string | null;
  readonly startedAt: number;
  readonly endedAt: number | null;
  readonly endReason: string | null;
  readonly messageCount: number;
  readonly toolCallCount: number;
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly cacheReadTokens: number;
  readonly cacheWriteTokens: number;
  readonly reasoningTokens: number;
  readonly apiCallCount: number;
  readonly billingProvider: string | null;
  readonly billingBaseUrl: string | null;
  readonly billingMode: string | null;
  readonly estimatedCostUsd: number | null;
  readonly actualCostUsd: number | null;
  readonly costStatus: string | null;
  readonly costSource: string | null;
  readonly title: string | null;
  readonly cwd: string | null;
  readonly gitBranch: string | null;
  readonly gitRepoRoot: string | null;
  readonly lastActivityAt: number | null;
  readonly archived: boolean;
  readonly pinned: boolean;
  readonly rewindCount: number;
}

/** A line of a session list: the session (a compression chain is shown as its tip) with what a person wants to see of it. */
export interface SessionListItem extends Session {
  /** First user message on one line, 60 code points, `...` if cut. */
  readonly preview: string;
  readonly lastActive: number;
  /** The first session of the compression chain this line stands for. */
  readonly lineageRootId: string;
  /** All sessions of that chain, first to last. */
  readonly chain: readonly string[];
  /** The session this conversation is a branch of; null for one that began by itself. */
  readonly branchOf: string | null;
}

export interface ListOptions {
  readonly source?: string;
  readonly sources?: readonly string[];
  readonly excludeSources?: readonly string[];
  readonly limit?: number;
  readonly offset?: number;
  readonly includeChildren?: boolean;
  readonly projectTips?: boolean;
  readonly orderByLastActive?: boolean;
  readonly includeArchived?: boolean;
  readonly minMessageCount?: number;
  readonly search?: string;
}

/** A message with what only the store knows about it. */
export type StoredMessage = HistoryMessage & { readonly id: number; readonly timestamp: number };

/** A message on its way in. Without a time it happened now; one that was loaded keeps its own. */
export type TimedMessage = HistoryMessage & { readonly timestamp?: number };

/** What of a session may change besides its messages. */
export type SessionChange = Partial<
  Pick<Session, "cwd" | "gitBranch" | "gitRepoRoot" | "archived" | "pinned" | "source"> & {
    readonly model: string;
    readonly modelConfig: Readonly<Record<string, unknown>>;
  }
>;

/** The right to write one conversation. It is stale once somebody else took the lane, or it was released. */
export interface LaneToken {
  /** The first session of the conversation. */
  readonly lane: string;
  /** `place:pid:random`; the place is a machine, on Linux also its boot and its namespace of processes. */
  readonly holder: string;
  /** Grows with each take-over. */
  readonly token: number;
}

export type LaneAnswer =
  | { readonly type: "taken"; readonly lease: LaneToken }
  /** Somebody else holds it, until then if it is not renewed. */
  | { readonly type: "held"; readonly by: string; readonly until: number }
  /** It is free, but its last holder comes first until then. */
  | { readonly type: "preferred"; readonly by: string; readonly until: number };

/** A write that carries a lease happens only while that lease is the newest of the conversation; a stale one throws `LaneMovedError`. */
export interface Leased {
  readonly lease?: LaneToken;
}

/** Held while a session is being compressed, so that two processes do not pay for the same summary. */
export interface CompressionLease {
  release(): Promise<void>;
}

export interface SearchOptions {
  readonly sourceFilter?: readonly string[];
  readonly excludeSources?: readonly string[];
  readonly roleFilter?: readonly string[];
  readonly limit?: number;
  readonly offset?: number;
  readonly sort?: "newest" | "oldest" | null;
  readonly includeInactive?: boolean;
  /** False: hits come without their neighbours, which is quicker for many. */
  readonly withContext?: boolean;
}

export interface SearchHit {
  readonly id: number;
  readonly sessionId: string;
  readonly role: string;
  /** Hits stand between `>>>` and `<<<`, cuts are `...`. */
  readonly snippet: string;
  readonly timestamp: number;
  readonly toolName: string | null;
  readonly source: string;
  readonly model: string | null;
  readonly sessionStarted: number;
  /** The row was compacted in place: it is searchable but no longer part of the conversation. */
  readonly compacted: boolean;
  readonly context: readonly { readonly role: string; readonly content: string }[];
}

export interface SearchResult {
  readonly hits: readonly SearchHit[];
  /** Present while the index does not cover all rows yet. */
  readonly indexRebuild?: { readonly percent: number; readonly note: string };
  /** Present when this SQLite build or file cannot search. */
  readonly unavailable?: string;
}

export interface RecallOptions {
  readonly sourceFilter?: readonly string[];
  readonly excludeSources?: readonly string[];
  readonly roleFilter?: readonly string[];
  /** Conversations; default 10. */
  readonly limit?: number;
  readonly sort?: "newest" | "oldest" | null;
  /** Hits come with their neighbours. */
  readonly withContext?: boolean;
  /** Called again and again while messages are indexed, which is most of them the first time. */
  readonly onIndexing?: (done: number, total: number) => void;
}

/** One conversation that answers a question. */
export interface RecalledConversation {
  /** Its first session. */
  readonly root: string;
  /** The rows that say most, best first; at least one, not more than ten. */
  readonly hits: readonly SearchHit[];
  /** How many rows were found in it. */
  readonly rows: number;
  /** No single message has all the words: it was found by how much of the question it holds as a whole. */
  readonly relaxed: boolean;
  /** Which words of the question it has, and which it has not, as they were typed. Words that ask or that stand in every text are left out. */
  readonly matched: readonly string[];
  readonly missing: readonly string[];
}

export interface RecallResult {
  /** Best first. */
  readonly conversations: readonly RecalledConversation[];
  /** The time that the question speaks of; conversations of that time come earlier. Unix seconds, either side may be open. */
  readonly time?: {
    readonly phrase: string;
    readonly from: number | null;
    readonly to: number | null;
    /** Nothing that was found was said then. */
    readonly empty: boolean;
  };
  /** Words that nobody ever said, and what they were taken for. */
  readonly readAs?: readonly { readonly typed: string; readonly read: string }[];
  readonly indexRebuild?: SearchResult["indexRebuild"];
  readonly unavailable?: string;
}

/** A row as `messagesAround` and `anchoredView` show it. */
export interface MessageView {
  readonly id: number;
  readonly role: string;
  readonly content: string;
  readonly timestamp: number;
  readonly toolName?: string;
  readonly toolCalls?: readonly unknown[];
  readonly toolCallId?: string;
}

export interface PromptRecord {
  readonly prompt: string;
  readonly stableChars: number | null;
  readonly fingerprint: unknown;
}

/** A row of the ledger as it was written. */
export interface StoredCall extends CallRecord {
  readonly id: number;
}

/** Tokens and money of some set of calls. `costUsd` counts known costs only; `unknownCostCalls` says how many are missing from it. */
export interface UsageTotals {
  readonly calls: number;
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly cacheReadTokens: number;
  readonly cacheWriteTokens: number;
  readonly reasoningTokens: number;
  readonly costUsd: number;
  readonly unknownCostCalls: number;
  /** Of the least sure call among them. */
  readonly costStatus: CostStatus;
}

export interface UsageQuery {
  readonly sessionId?: string;
  readonly sinceSeconds?: number;
  readonly by: "purpose" | "model" | "day";
}

export interface PruneFilter {
  readonly olderThanDays?: number;
  readonly newerThanDays?: number;
  readonly before?: number;
  readonly after?: number;
  readonly source?: string;
  readonly title?: string;
  readonly endReason?: string;
  readonly cwd?: string;
  readonly minMessages?: number;
  readonly maxMessages?: number;
  readonly model?: string;
  readonly provider?: string;
}

export interface ImportReport {
  readonly imported: readonly string[];
  readonly skipped: readonly string[];
  readonly renamed: readonly { readonly id: string; readonly from: string; readonly to: string }[];
  readonly detached: readonly string[];
}

export interface StoreStats {
  readonly sessions: number;
  readonly messages: number;
  readonly bySource: Readonly<Record<string, number>>;
  readonly sizeBytes: number;
}

/**
 * All sessions and their messages.
 *
 * - A conversation has one writer at a time: `takeLane` gives the right to write as a lease, and every write that carries it fails with
 *   `LaneMovedError` (code `moved`) once somebody else took the lane. Writes without a lease are not checked.
 * - Async on purpose: every write of a process passes one queue in order; waiting for another process never blocks the event loop.
 * - A promise that resolved means the row is committed; a crash right after it loses nothing.
 * - Only `StoreError` is thrown, with a sentence a user can act on. Nothing is ever deleted to repair a damaged file.
 * - `append` to a session that was closed by compression rejects with `SessionCompressedError`, which carries the tip's id.
 */
export interface SessionStore extends Ledger, ApprovalTable {
  /** Questions that wait, oldest first. */
  questions(): Promise<readonly OpenQuestion[]>;
  /** For whoever did not ask it; false when nobody waits for it any more. */
  answerQuestion(id: string, answer: unknown, by: string): Promise<boolean>;

  create(session: NewSession): Promise<void>;
  /** Creates the row if it is missing. */
  ensure(session: NewSession): Promise<void>;
  get(id: string): Promise<Session | null>;
  end(id: string, reason: EndReason, options?: Leased): Promise<void>;
  reopen(id: string): Promise<void>;
  update(id: string, change: SessionChange, options?: Leased): Promise<void>;
  /** A sign of life (`last_activity_at`); left out when the database is busy. */
  touch(id: string): Promise<void>;
  delete(id: string): Promise<boolean>;
  list(options?: ListOptions): Promise<readonly SessionListItem[]>;

  resolveId(idOrPrefix: string): Promise<string | null>;
  resolveTitle(title: string): Promise<string | null>;
  /** False when the session is unknown; throws `StoreError` on a conflict or a title that is too long. */
  setTitle(id: string, title: string | null): Promise<boolean>;
  nextTitle(base: string): Promise<string>;

  tip(id: string): Promise<string>;
  resumeTarget(id: string): Promise<string>;
  /** Root first, then down to `id`. */
  lineage(id: string): Promise<readonly string[]>;
  /** The end of the lineage that is one conversation: only compressions lie between its sessions. Oldest first. */
  conversation(id: string): Promise<readonly string[]>;

  /**
   * The lease of the conversation that the session belongs to, for 60 seconds by the store's clock; renew it every 20. A session need not
   * exist yet.
   * - Free, expired, or of a process of this machine that is gone: it is taken, with a larger token. A holder that has it keeps it.
   * - `respectPreference`: a free lane is left to its last holder for as long as its release said.
   */
  takeLane(
    sessionId: string,
    holder: string,
    options?: { readonly seconds?: number; readonly respectPreference?: boolean },
  ): Promise<LaneAnswer>;
  /** Throws `LaneMovedError` when the lease is stale. One that ran out and that nobody took is renewed. */
  renewLane(lease: LaneToken, options?: { readonly seconds?: number }): Promise<void>;
  /** A stale lease releases nothing. */
  releaseLane(lease: LaneToken, options?: { readonly preferSeconds?: number }): Promise<void>;
  /** What other processes ask of the turns under these leases, each handed out once. */
  takeControls(leases: readonly LaneToken[]): Promise<readonly Control[]>;
  /**
   * A use of the lane: whoever holds its lease may compress, a stale one throws. Without a lease the lane is taken for that long; null while
   * another process has it, or the original compresses this session. Expires by itself when its holder dies.
   */
  leaseCompression(id: string, options?: Leased & { readonly seconds?: number }): Promise<CompressionLease | null>;
  /**
   * Ends the session with reason `compression` and goes on in a child that holds `messages`, all or nothing; returns the child's id.
   * A session that somebody else compressed meanwhile is left as it is: the result is the winner's tip, and `messages` are not stored.
   */
  continueAfterCompression(oldId: string, messages: readonly TimedMessage[], options?: Leased): Promise<string>;
  /** Takes the compression back while the child holds nothing but its rows; returns the parent's id, else null. */
  undoCompression(childId: string, options?: Leased): Promise<string | null>;
  /**
   * Copies the whole transcript with every column, the stored prompt and the session's keys into a new session; ends the old one
   * `branched`. While somebody else is in the middle of a turn, the copy ends before that turn, and `inUseBy` names them.
   * With `before` it ends before that message.
   */
  branch(
    id: string,
    newId: string,
    options?: Leased & { readonly title?: string; readonly before?: number },
  ): Promise<{ readonly inUseBy: string | null }>;

  /**
   * Appends in order, counters in the same transaction; returns the row ids. `midTurn`: more of the turn follows, and what is made out of
   * rows (counters, search index) may come with it. Nobody who asks this store sees a difference.
   */
  append(
    sessionId: string,
    messages: readonly TimedMessage[],
    options?: Leased & { readonly midTurn?: boolean },
  ): Promise<readonly number[]>;
  /** Active rows in order; with ancestors, those of the whole conversation across its compressions. */
  load(sessionId: string, options?: { withAncestors?: boolean }): Promise<readonly StoredMessage[]>;
  replace(sessionId: string, messages: readonly TimedMessage[], options?: Leased): Promise<void>;
  /** Rows from `messageId` on are hidden (kept on disk); returns how many. */
  rewind(sessionId: string, messageId: number, options?: Leased): Promise<number>;
  setApiContent(messageId: number, text: string | null, options?: Leased): Promise<void>;

  getPrompt(sessionId: string): Promise<PromptRecord | null>;
  setPrompt(sessionId: string, record: PromptRecord, options?: Leased): Promise<void>;
  putToolList(tools: unknown): Promise<string>;
  getToolList(hash: string): Promise<unknown>;
  getValue(sessionId: string, key: string): Promise<unknown>;
  setValue(sessionId: string, key: string, value: unknown, options?: Leased): Promise<void>;
  /** A value of the file as it was written; a standing goal is one, as `goal:ID` of its session. Null when there is none. */
  getMeta(key: string): Promise<string | null>;
  /** All whose keys begin so. */
  allMeta(prefix: string): Promise<ReadonlyMap<string, string>>;
  /** False, and nothing written, when it is not the expected value any more. */
  setMeta(key: string, value: string, expected?: string | null): Promise<boolean>;

  /** What was spent; reservations are not. */
  spent(scope: SpendingScope): Promise<{ usd: number; tokens: number }>;
  usage(query: UsageQuery): Promise<ReadonlyMap<string, UsageTotals>>;
  /** Every model call of one session, oldest first. */
  calls(sessionId: string): Promise<readonly StoredCall[]>;

  /** Rows that hold all the words, or what operators say. */
  search(query: string, options?: SearchOptions): Promise<SearchResult>;
  /**
   * Conversations that answer a question in plain words, each once.
   * - A query with operators (`"…"`, OR, NOT, AND, `*`) means what it says: only conversations with rows that `search` finds.
   * - Any other: those first, then conversations by how much of the question they hold; `relaxed` tells them apart.
   * - The same store, question and time give the same answer. Nothing is found where nothing matches.
   */
  recall(question: string, options?: RecallOptions): Promise<RecallResult>;
  /** Which session a message belongs to, and whether it was compacted in place; null when there is no such row. */
  locateMessage(messageId: number): Promise<{ readonly sessionId: string; readonly compacted: boolean } | null>;
  messagesAround(
    sessionId: string,
    messageId: number,
    window: number,
  ): Promise<{ window: readonly MessageView[]; messagesBefore: number; messagesAfter: number }>;
  anchoredView(
    sessionId: string,
    messageId: number,
    options?: { window?: number; bookend?: number },
  ): Promise<{
    window: readonly MessageView[];
    messagesBefore: number;
    messagesAfter: number;
    bookendStart: readonly MessageView[];
    bookendEnd: readonly MessageView[];
  }>;

  /** One object per session: every session column, and `messages` with every message column. */
  export(filter?: { sessionId?: string; source?: string }): AsyncIterable<Readonly<Record<string, unknown>>>;
  import(lines: AsyncIterable<string>): Promise<ImportReport>;
  prune(
    filter: PruneFilter,
    options?: { readonly dryRun?: boolean; readonly archiveOnly?: boolean; readonly vacuum?: boolean },
  ): Promise<readonly string[]>;
  /** Prunes and removes empty left-overs, at most once per interval over all processes; null when it was not due. */
  autoPrune(options: {
    readonly retentionDays: number;
    readonly minIntervalHours: number;
    readonly vacuum: boolean;
  }): Promise<readonly string[] | null>;
  stats(): Promise<StoreStats>;
  /** How the agent was used since a time. */
  insights(query: InsightsQuery): Promise<Insights>;
  /** Tidies the search index and gives free pages back to the disk; refuses without room for the copy it needs. */
  optimize(onProgress?: (text: string) => void): Promise<{ readonly bytesBefore: number; readonly bytesAfter: number }>;
  /** A consistent copy while others write. The target must not exist. */
  backup(path: string): Promise<void>;
  /** Messages that wait and answers that are promised, for the doors that have them. */
  work(): Promise<WorkStore>;
  /** Facts for `hermes doctor`; never throws. */
  health(): Promise<readonly { readonly ok: boolean; readonly text: string; readonly fix?: string }[]>;
  close(): Promise<void>;
}

/** A failure of the store, in words for the user: what, where, what to do. */
export class StoreError extends UserError {
  override name = "StoreError";
  readonly code: "busy" | "damaged" | "read_only" | "full" | "conflict" | "invalid" | "unavailable" | "moved";
  constructor(code: StoreError["code"], message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}

/** Somebody else writes this conversation now; nothing more was stored. */
export class LaneMovedError extends StoreError {
  override name = "LaneMovedError";
  constructor(sessionId: string, by: string | null) {
    super(
      "moved",
      by === null
        ? `the lease on session ${sessionId} is over; nothing more was saved. Send the message again.`
        : `session ${sessionId} is in use by ${by} now; nothing more was saved. Wait until it is done, or continue in a branch.`,
    );
  }
}

/** The session went on elsewhere: write to `tipId` instead. */
export class SessionCompressedError extends StoreError {
  override name = "SessionCompressedError";
  readonly tipId: string;
  constructor(sessionId: string, tipId: string) {
    super("conflict", `session ${sessionId} was compressed; it continues as ${tipId}`);
    this.tipId = tipId;
  }
}
