// The session store on one SQLite file: every operation of the contract, each in a file of its own, read or written through the core.
import type { CallRecord, SpendingLimit, SpendingScope } from "../llm/gate.ts";
import type { OpenQuestion } from "../safety/approvals.ts";
import { branchSession, continueSession, dropLease, newHolder, takeBackCompression, takeLease } from "./compression.ts";
import type { StoreCore } from "./core.ts";
import { callsOf, recordModelCall, reserveModelCall, spentIn, usageBy } from "./ledger.ts";
import { conversationOf, lineageOf, resumeTargetOf, tipOf } from "./lineage.ts";
import { listSessions } from "./listing.ts";
import {
  backupTo,
  claimAutoPrune,
  type HealthFact,
  optimizeFile,
  pruneSessions,
  readHealth,
  readStats,
  removeGhosts,
  vacuum,
} from "./maintenance.ts";
import { appendRows, assertAppendable, hideRowsFrom, loadRows, replaceRows } from "./messages.ts";
import {
  putQuestion,
  readAnswer,
  readPrompt,
  readQuestions,
  readToolList,
  readValue,
  removeQuestion,
  storeToolList,
  writeAnswer,
  writePrompt,
  writeValue,
} from "./session-values.ts";
import {
  changeSession,
  deleteSessionRows,
  endSession,
  insertSession,
  readSession,
  removeSessionFiles,
  reopenSession,
} from "./sessions.ts";
import {
  type CompressionLease,
  type EndReason,
  type ListOptions,
  type NewSession,
  type PromptRecord,
  type PruneFilter,
  type SearchOptions,
  type SessionChange,
  type SessionStore,
  StoreError,
  type TimedMessage,
  type UsageQuery,
} from "./store.ts";
import { assignTitle, idFromPrefix, idOfTitle, nextTitleAfter } from "./titles.ts";
import { exportableIds, exportSession } from "./transfer.ts";
import { findMessage, viewAnchored, windowAround } from "./views.ts";

const LEASE_SECONDS = 300;

interface SqliteStoreSettings {
  readonly sessionsDir: string | null;
  readonly slowSearchMs: number;
}

export class SqliteStore implements SessionStore {
  readonly #core: StoreCore;
  readonly #settings: SqliteStoreSettings;

  constructor(core: StoreCore, settings: SqliteStoreSettings) {
    this.#core = core;
    this.#settings = settings;
  }

  questions() {
    return this.#core.read(() => readQuestions(this.#core));
  }
  putQuestion(question: OpenQuestion) {
    return this.#core.write(() => putQuestion(this.#core, question));
  }
  removeQuestion(id: string) {
    return this.#core.write(() => removeQuestion(this.#core, id));
  }
  answerQuestion(id: string, answer: unknown, by: string) {
    return this.#core.write(() => writeAnswer(this.#core, id, answer, by));
  }
  answerTo(id: string) {
    return this.#core.read(() => readAnswer(this.#core, id));
  }
  create(session: NewSession) {
    return this.#core.write(() => insertSession(this.#core, session), "transcript");
  }
  ensure(session: NewSession) {
    return this.create(session);
  }
  get(id: string) {
    return this.#core.read(() => readSession(this.#core, id));
  }
  end(id: string, reason: EndReason) {
    return this.#core.write(() => endSession(this.#core, id, reason));
  }
  reopen(id: string) {
    return this.#core.write(() => reopenSession(this.#core, id));
  }
  update(id: string, change: SessionChange) {
    return this.#core.write(() => changeSession(this.#core, id, change));
  }
  async touch(id: string) {
    const now = this.#core.now();
    try {
      await this.#core.write(
        () => void this.#core.db.run("UPDATE sessions SET last_activity_at = ? WHERE id = ?", now, id),
        "heartbeat",
      );
    } catch (error) {
      if (!(error instanceof StoreError) || error.code !== "busy") throw error;
    }
  }
  async delete(id: string) {
    const gone = await this.#core.write(() => deleteSessionRows(this.#core, id));
    await removeSessionFiles(this.#core, this.#settings.sessionsDir, gone);
    return gone.length > 0;
  }
  list(options: ListOptions = {}) {
    return this.#core.read(() => listSessions(this.#core, options));
  }

  resolveId(idOrPrefix: string) {
    return this.#core.read(() => idFromPrefix(this.#core, idOrPrefix));
  }
  resolveTitle(title: string) {
    return this.#core.read(() => idOfTitle(this.#core, title));
  }
  setTitle(id: string, title: string | null) {
    return this.#core.write(() => assignTitle(this.#core, id, title));
  }
  nextTitle(base: string) {
    return this.#core.read(() => nextTitleAfter(this.#core, base));
  }

  tip(id: string) {
    return this.#core.read(() => tipOf(this.#core, id));
  }
  resumeTarget(id: string) {
    return this.#core.read(() => resumeTargetOf(this.#core, id));
  }
  lineage(id: string) {
    return this.#core.read(() => lineageOf(this.#core, id));
  }
  conversation(id: string) {
    return this.#core.read(() => conversationOf(this.#core, id));
  }
  async leaseCompression(id: string, options: { seconds?: number } = {}): Promise<CompressionLease | null> {
    const holder = newHolder(process.pid);
    const taken = await this.#core.write(() => takeLease(this.#core, id, holder, options.seconds ?? LEASE_SECONDS));
    return taken ? { release: () => this.#core.write(() => dropLease(this.#core, id, holder)) } : null;
  }
  continueAfterCompression(oldId: string, messages: readonly TimedMessage[]) {
    return this.#core.write(() => continueSession(this.#core, oldId, messages), "transcript");
  }
  undoCompression(childId: string) {
    return this.#core.write(() => takeBackCompression(this.#core, childId));
  }
  branch(id: string, newId: string, title?: string) {
    return this.#core.write(() => branchSession(this.#core, id, newId, title), "transcript");
  }

  append(sessionId: string, messages: readonly TimedMessage[]) {
    return this.#core.write(() => {
      assertAppendable(this.#core, sessionId);
      return appendRows(this.#core, sessionId, messages);
    }, "transcript");
  }
  load(sessionId: string, options: { withAncestors?: boolean } = {}) {
    return this.#core.read(() => {
      const ids = options.withAncestors ? conversationOf(this.#core, sessionId) : [sessionId];
      return ids.flatMap((id) => loadRows(this.#core, id));
    });
  }
  replace(sessionId: string, messages: readonly TimedMessage[]) {
    return this.#core.write(() => {
      assertAppendable(this.#core, sessionId);
      replaceRows(this.#core, sessionId, messages);
    }, "transcript");
  }
  rewind(sessionId: string, messageId: number) {
    return this.#core.write(() => hideRowsFrom(this.#core, sessionId, messageId), "transcript");
  }
  setApiContent(messageId: number, text: string | null) {
    return this.#core.write(
      () => void this.#core.db.run("UPDATE messages SET api_content = ? WHERE id = ?", text, messageId),
      "transcript",
    );
  }

  getPrompt(sessionId: string) {
    return this.#core.read(() => readPrompt(this.#core, sessionId));
  }
  setPrompt(sessionId: string, record: PromptRecord) {
    return this.#core.write(() => writePrompt(this.#core, sessionId, record));
  }
  putToolList(tools: unknown) {
    return this.#core.write(() => storeToolList(this.#core, tools));
  }
  getToolList(hash: string) {
    return this.#core.read(() => readToolList(this.#core, hash));
  }
  getValue(sessionId: string, key: string) {
    return this.#core.read(() => readValue(this.#core, sessionId, key));
  }
  setValue(sessionId: string, key: string, value: unknown) {
    return this.#core.write(() => writeValue(this.#core, sessionId, key, value));
  }

  recordCall(call: CallRecord, reservation?: number) {
    return this.#core.write(() => recordModelCall(this.#core, call, reservation));
  }
  reserveCall(call: CallRecord, limits: readonly SpendingLimit[]) {
    return this.#core.write(() => reserveModelCall(this.#core, call, limits));
  }
  calls(sessionId: string) {
    return this.#core.read(() => callsOf(this.#core, sessionId));
  }
  spent(scope: SpendingScope) {
    return this.#core.read(() => spentIn(this.#core, scope));
  }
  usage(query: UsageQuery) {
    return this.#core.read(() => usageBy(this.#core, query));
  }

  async search(query: string, options: SearchOptions = {}) {
    const { searchMessages } = await import("./search/search.ts"); // its patterns take time to compile
    return searchMessages(this.#core, query, options, { slowMs: this.#settings.slowSearchMs });
  }
  locateMessage(messageId: number) {
    return this.#core.read(() => findMessage(this.#core, messageId));
  }
  messagesAround(sessionId: string, messageId: number, window: number) {
    return this.#core.read(() => windowAround(this.#core, sessionId, messageId, window));
  }
  anchoredView(sessionId: string, messageId: number, options: { window?: number; bookend?: number } = {}) {
    return this.#core.read(() => viewAnchored(this.#core, sessionId, messageId, options));
  }

  async *export(filter: { sessionId?: string; source?: string } = {}) {
    const ids = await this.#core.read(() => exportableIds(this.#core, filter));
    for (const id of ids) {
      const session = await this.#core.read(() => exportSession(this.#core, id));
      if (session) yield session;
    }
  }
  async import(lines: AsyncIterable<string>) {
    const { importSessions, readImport } = await import("./transfer.ts");
    const sessions = await readImport(lines);
    return await this.#core.write(() => importSessions(this.#core, sessions), "transcript");
  }
  async prune(filter: PruneFilter, options: { dryRun?: boolean; archiveOnly?: boolean; vacuum?: boolean } = {}) {
    const gone = await pruneSessions(this.#core, this.#settings.sessionsDir, filter, options);
    if (options.vacuum && gone.length > 0 && !options.dryRun && !options.archiveOnly) await this.#vacuumIfAlone();
    return gone;
  }
  async autoPrune(options: { retentionDays: number; minIntervalHours: number; vacuum: boolean }) {
    if (!(await claimAutoPrune(this.#core, options.minIntervalHours))) return null;
    const ghosts = await removeGhosts(this.#core);
    const gone = await this.prune({ olderThanDays: options.retentionDays }, { vacuum: options.vacuum });
    return [...ghosts, ...gone];
  }
  stats() {
    return this.#core.read(() => readStats(this.#core));
  }
  async health(): Promise<readonly HealthFact[]> {
    return readHealth(this.#core);
  }
  optimize(onProgress: (text: string) => void = () => undefined) {
    return optimizeFile(this.#core, onProgress);
  }
  backup(path: string) {
    return backupTo(this.#core.db, path);
  }
  close() {
    return this.#core.close();
  }

  async #vacuumIfAlone(): Promise<void> {
    try {
      await vacuum(this.#core);
    } catch (error) {
      // Somebody else is connected; the free pages are used again anyway.
      this.#core.log.info("the file was not compacted after pruning", error);
    }
  }
}
