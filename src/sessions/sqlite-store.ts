// The session store on one SQLite file: every operation of the contract, each where its subject is, read or written through the core.
import { branchSession, continueSession, leaseCompression, takeBackCompression } from "./compression.ts";
import { takeControls, waitingControls } from "./controls.ts";
import type { StoreCore } from "./core.ts";
import { releaseLane, renewLane, takeLane } from "./lanes.ts";
import { callsOf, reserveModelCall, spentIn, usageBy } from "./ledger.ts";
import { conversationOf, lineageOf, resumeTargetOf, tipOf } from "./lineage.ts";
import { listSessions } from "./listing.ts";
import { recordModelCall } from "./loose.ts";
import {
  backupTo,
  claimAutoPrune,
  optimizeFile,
  pruneSessions,
  readHealth,
  readStats,
  removeEmptySessions,
  vacuum,
} from "./maintenance.ts";
import { appendTo, hideRowsFrom, loadMessages, replaceRows, writeApiContent } from "./messages.ts";
import {
  putQuestion,
  readAnswer,
  readMetaValue,
  readMetaValues,
  readPrompt,
  readQuestions,
  readToolList,
  readValue,
  removeQuestion,
  storeToolList,
  writeAnswer,
  writeMetaValue,
  writePrompt,
  writeValue,
} from "./session-values.ts";
import {
  changeSession,
  deleteSessionRows,
  endSession,
  insertSession,
  noteActivity,
  readSession,
  removeSessionFiles,
  reopenSession,
} from "./sessions.ts";
import { type SessionStore, StoreError } from "./store.ts";
import { assignTitle, idFromPrefix, idOfTitle, nextTitleAfter } from "./titles.ts";
import { findMessage, viewAnchored, windowAround } from "./views.ts";
import type { WorkStore } from "./work.ts";

/** They tell counters. */
const SETTLED_READS = {
  get: readSession,
  list: listSessions,
  resumeTarget: resumeTargetOf,
};

const READS = {
  questions: readQuestions,
  answerTo: readAnswer,
  resolveId: idFromPrefix,
  resolveTitle: idOfTitle,
  nextTitle: nextTitleAfter,
  tip: tipOf,
  lineage: lineageOf,
  conversation: conversationOf,
  load: loadMessages,
  getPrompt: readPrompt,
  getToolList: readToolList,
  getValue: readValue,
  getMeta: readMetaValue,
  allMeta: readMetaValues,
  calls: callsOf,
  spent: spentIn,
  usage: usageBy,
  locateMessage: findMessage,
  messagesAround: windowAround,
  anchoredView: viewAnchored,
  stats: readStats,
};

/** They have nothing to do with what is made out of messages and calls. */
const ROW_WRITES = {
  putQuestion,
  removeQuestion,
  answerQuestion: writeAnswer,
  takeLane,
  renewLane,
  putToolList: storeToolList,
  setValue: writeValue,
  setMeta: writeMetaValue,
  recordCall: recordModelCall,
  reserveCall: reserveModelCall,
};

const WRITES = {
  end: endSession,
  reopen: reopenSession,
  update: changeSession,
  releaseLane,
  setTitle: assignTitle,
  undoCompression: takeBackCompression,
  setPrompt: writePrompt,
};

/** What was said waits longer for another process than anything else. */
const TRANSCRIPT_WRITES = {
  create: insertSession,
  ensure: insertSession,
  continueAfterCompression: continueSession,
  branch: branchSession,
  replace: replaceRows,
  rewind: hideRowsFrom,
  setApiContent: writeApiContent,
};

interface SqliteStoreSettings {
  readonly sessionsDir: string | null;
  readonly slowSearchMs: number;
}

export function createSqliteStore(core: StoreCore, settings: SqliteStoreSettings): SessionStore {
  const { sessionsDir } = settings;
  let work: Promise<WorkStore> | undefined;
  const prune: SessionStore["prune"] = async (filter, options = {}) => {
    const gone = await pruneSessions(core, sessionsDir, filter, options);
    if (gone.length > 0 && !options.dryRun && !options.archiveOnly) await forgetWords(core);
    if (options.vacuum && gone.length > 0 && !options.dryRun && !options.archiveOnly) await vacuumIfAlone(core);
    return gone;
  };
  return {
    ...offer(core, READS, (work) => core.read(work)),
    ...offer(core, SETTLED_READS, async (work) => {
      await core.settle();
      return core.read(work);
    }),
    ...offer(core, WRITES, (work) => core.write(work)),
    ...offer(core, ROW_WRITES, (work) => core.writeRows(work)),
    ...offer(core, TRANSCRIPT_WRITES, (work) => core.write(work, "transcript")),
    append: (id, messages, options) => {
      const work = () => appendTo(core, id, messages, options);
      return options?.midTurn ? core.writeRows(work, "transcript") : core.write(work, "transcript");
    },
    async touch(id) {
      try {
        await core.write(() => noteActivity(core, id), "heartbeat");
      } catch (error) {
        if (!(error instanceof StoreError) || error.code !== "busy") throw error;
      }
    },
    async delete(id) {
      const gone = await core.write(() => deleteSessionRows(core, id));
      await removeSessionFiles(core, sessionsDir, gone);
      if (gone.length > 0) await forgetWords(core);
      return gone.length > 0;
    },
    async leaseCompression(id, options) {
      const giveBack = await core.write(() => leaseCompression(core, id, options));
      return giveBack && { release: () => core.write(giveBack) };
    },
    async search(query, options = {}) {
      const { searchMessages } = await import("./search/search.ts"); // its patterns take time to compile
      await core.settle();
      return searchMessages(core, query, options, { slowMs: settings.slowSearchMs });
    },
    async recall(question, options = {}) {
      const { recallConversations } = await import("./search/recall.ts"); // its words and characters, too
      await core.settle();
      return recallConversations(core, question, options);
    },
    async insights(query) {
      const { readInsights } = await import("./insights.ts");
      await core.settle();
      return core.read(() => readInsights(core, query));
    },
    async *export(filter = {}) {
      const { exportableIds, exportSession } = await import("./transfer.ts"); // as above, and the schema library
      await core.settle();
      const ids = await core.read(() => exportableIds(core, filter));
      for (const id of ids) {
        const session = await core.read(() => exportSession(core, id));
        if (session) yield session;
      }
    },
    async import(lines) {
      const { importSessions, readImport } = await import("./transfer.ts");
      const sessions = await readImport(lines);
      return await core.write(() => importSessions(core, sessions), "transcript");
    },
    prune,
    async autoPrune({ retentionDays, minIntervalHours, vacuum }) {
      if (!(await claimAutoPrune(core, minIntervalHours))) return null;
      const empty = await removeEmptySessions(core);
      return [...empty, ...(await prune({ olderThanDays: retentionDays }, { vacuum }))];
    },
    async takeControls(leases) {
      const isAsked = await core.read(() => waitingControls(core, leases).length > 0);
      return isAsked ? core.write(() => takeControls(core, leases)) : [];
    },
    async work() {
      const { openSqliteWork } = await import("./work/open.ts"); // most homes have no chats
      work ??= openSqliteWork(core);
      return work;
    },
    async health() {
      await core.settle();
      return readHealth(core);
    },
    optimize: (onProgress = () => undefined) => optimizeFile(core, onProgress),
    backup: (path) => backupTo(core.db, path),
    close: () => core.close(),
  };
}

async function forgetWords(core: StoreCore): Promise<void> {
  const { forgetDeleted } = await import("./search/follow.ts"); // loaded with what search needs
  await forgetDeleted(core);
}

type Operation = (core: StoreCore, ...args: never[]) => unknown;
type Offered<T> = {
  [Name in keyof T]: T[Name] extends (core: StoreCore, ...args: infer Args) => infer Result
    ? (...args: Args) => Promise<Result>
    : never;
};

/** The operations as methods: each runs as one read or one write. */
function offer<T extends Record<string, Operation>>(
  core: StoreCore,
  operations: T,
  through: (work: () => unknown) => Promise<unknown>,
): Offered<T> {
  const methods = Object.entries(operations).map(([name, operation]) => {
    const method = (...args: never[]) => through(() => operation(core, ...args));
    return [name, method] as const;
  });
  return Object.fromEntries(methods) as Offered<T>; // the same names, each with the arguments of its operation
}

async function vacuumIfAlone(core: StoreCore): Promise<void> {
  try {
    await vacuum(core);
  } catch (error) {
    // Somebody else is connected; the free pages are used again anyway.
    core.log.info("the file was not compacted after pruning", error);
  }
}
