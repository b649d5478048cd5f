// The work of a home in its SQLite file. The tables are made with their first use: a home without chats has none of them.
import { parseJson } from "../../kit/json.ts";
import { controlState } from "../controls.ts";
import type { StoreCore } from "../core.ts";
import { databaseNow } from "../lanes.ts";
import { owedByOriginal } from "../maintenance.ts";
import { noteChange } from "../session-values.ts";
import type { Change, WorkCounts, WorkStore } from "../work.ts";
import {
  API_RUN_TABLES,
  apiRun,
  apiRunEvents,
  dropApiRunEvents,
  failAbandonedApiRuns,
  noteApiRun,
  startApiRun,
  sweepApiRuns,
} from "./api-runs.ts";
import {
  acceptEvents,
  askHolderOf,
  beginTurn,
  countAttempt,
  cursorOf,
  finishTurn,
  followChange,
  queued,
  replaceEvent,
  routeRows,
  settleRows,
  takeRows,
  waitingRows,
  writeRoute,
} from "./inbox.ts";
import {
  beginSend,
  bounced,
  canonical,
  dueRows,
  interruptedSends,
  nextDue,
  outboxRows,
  promisePart,
  releaseBot,
  renewBot,
  settleSend,
  takeBot,
  withdrawParts,
} from "./outbox.ts";
import { abandonedRuns, beginRun, claimSlot, endRun, RUN_TABLES, runRows, sweepRuns, takeQueuedRuns } from "./runs.ts";

const TABLES = [
  `CREATE TABLE IF NOT EXISTS gateway_routing (scope TEXT NOT NULL, session_key TEXT NOT NULL, entry_json TEXT NOT NULL, updated_at REAL NOT NULL,
     PRIMARY KEY (scope, session_key))`,
  `CREATE TABLE IF NOT EXISTS inbox (id INTEGER PRIMARY KEY AUTOINCREMENT, session_key TEXT NOT NULL, platform TEXT NOT NULL, account TEXT NOT NULL,
     update_id TEXT NOT NULL, kind TEXT NOT NULL, event TEXT NOT NULL, lane TEXT, message_id INTEGER, attempts INTEGER NOT NULL DEFAULT 0,
     state TEXT NOT NULL DEFAULT 'queued', outcome TEXT, received_at REAL NOT NULL, done_at REAL, UNIQUE (platform, account, update_id))`,
  "CREATE INDEX IF NOT EXISTS inbox_queued ON inbox (id) WHERE state = 'queued'",
  `CREATE TABLE IF NOT EXISTS outbox (id INTEGER PRIMARY KEY AUTOINCREMENT, cause TEXT NOT NULL, part INTEGER NOT NULL, platform TEXT NOT NULL,
     account TEXT NOT NULL, target TEXT NOT NULL, payload TEXT NOT NULL, state TEXT NOT NULL DEFAULT 'pending', attempts INTEGER NOT NULL DEFAULT 0,
     not_before REAL NOT NULL DEFAULT 0, platform_message_id TEXT, error TEXT, created_at REAL NOT NULL, sent_at REAL, UNIQUE (cause, part))`,
  "CREATE INDEX IF NOT EXISTS outbox_open ON outbox (platform, account, target, id) WHERE state IN ('pending', 'sending')",
  `CREATE TABLE IF NOT EXISTS cursors (platform TEXT NOT NULL, account TEXT NOT NULL, cursor TEXT, recent_ids TEXT NOT NULL DEFAULT '[]',
     PRIMARY KEY (platform, account))`,
  "CREATE TABLE IF NOT EXISTS adapter_leases (bot TEXT PRIMARY KEY, holder TEXT, token INTEGER NOT NULL, expires REAL)",
  `CREATE TABLE IF NOT EXISTS controls (id INTEGER PRIMARY KEY AUTOINCREMENT, lane TEXT NOT NULL, kind TEXT NOT NULL, payload TEXT,
     created_at REAL NOT NULL, taken_at REAL)`,
  `CREATE TABLE IF NOT EXISTS changes (id INTEGER PRIMARY KEY AUTOINCREMENT, at REAL NOT NULL, kind TEXT NOT NULL, session_key TEXT, ref TEXT NOT NULL)`,
  ...RUN_TABLES,
  ...API_RUN_TABLES,
];

const REMEMBERED_IDS = 1000;
const KEPT_CHANGES = 10_000;
const DAY = 86_400;

/** All operations on the tables, made here if they are not there. */
export async function openSqliteWork(core: StoreCore): Promise<WorkStore> {
  if (!core.db.readOnly)
    await core.write(() => {
      for (const sql of TABLES) core.db.exec(sql);
    });
  const read = <T>(work: () => T) => core.read(work);
  const write = <T>(work: () => T) => core.write(work, "transcript");
  return {
    accept: (events, cursor) => write(() => acceptEvents(core, events, cursor)),
    cursor: (platform, account) => read(() => cursorOf(core, platform, account)),
    replaceEvent: (of, event) => write(() => replaceEvent(core, of, event)),
    waiting: (options) => read(() => waitingRows(core, options)),
    stillWaiting: (ids) => read(() => queued(core, ids)),
    take: (sessionId, ids, holder, options) => write(() => takeRows(core, sessionId, ids, holder, options)),
    begin: (lease, turn) => write(() => beginTurn(core, lease, turn)),
    asked: (lease, ids) => write(() => countAttempt(core, lease, ids, 1)),
    async unasked(lease, ids) {
      await write(() => countAttempt(core, lease, ids, -1));
    },
    finish: (lease, end) => write(() => finishTurn(core, lease, end)),
    settle: (ids, outcome, options) => write(() => settleRows(core, ids, outcome, options)),
    follow: (change) => write(() => followChange(core, change)),
    withdraw: (ids) => write(() => withdrawParts(core, ids)),
    promise: (parts) => write(() => parts.map((part) => promisePart(core, part))),
    due: (platform, account) => read(() => dueRows(core, platform, account)),
    interruptedSends: (platform, account, lease) => write(() => interruptedSends(core, platform, account, lease)),
    sending: (id, lease) => write(() => beginSend(core, id, lease)),
    bounced: (part, error) => write(() => bounced(core, part, error)),
    settleSend: (id, outcome, lease) => write(() => settleSend(core, id, outcome, lease)),
    outboxRow: (id) => read(() => outboxRows(core, "WHERE id = ?", id)[0] ?? null),
    wasSent: (platform, account, messageId) =>
      read(() => {
        const row = core.db.get(
          "SELECT 1 FROM outbox WHERE platform = ? AND account = ? AND platform_message_id = ? LIMIT 1",
          ...[platform, account, messageId],
        );
        return row !== undefined;
      }),
    nextDue: (platform, account) => read(() => nextDue(core, platform, account)),
    takeBot: (bot, holder, options) => write(() => takeBot(core, bot, holder, options?.seconds)),
    renewBot: (lease, options) => write(() => renewBot(core, lease, options?.seconds)),
    releaseBot: (lease) => write(() => releaseBot(core, lease)),
    control: (sessionId, kind, says, event) => write(() => askHolderOf(core, sessionId, { kind, says }, event)),
    controlState: (id) => read(() => controlState(core, id)),
    route: (scope, key) => read(() => routeRows(core, "scope = ? AND session_key = ?", scope, key)[0] ?? null),
    routes: (scope) => read(() => routeRows(core, "scope = ?", scope)),
    setRoute: (scope, route, expected) => write(() => writeRoute(core, scope, route, expected)),
    removeRoute: (scope, key) =>
      write(() => void core.db.run("DELETE FROM gateway_routing WHERE scope = ? AND session_key = ?", scope, key)),
    claimSlot: (run) => write(() => claimSlot(core, run)),
    takeQueuedRuns: (holder) => write(() => takeQueuedRuns(core, holder)),
    beginRun: (id, of) => write(() => beginRun(core, id, of)),
    endRun: (id, end, outbox) => write(() => endRun(core, id, end, outbox)),
    abandonedRuns: () => write(() => abandonedRuns(core)),
    jobRuns: ({ jobId, states = [], limit = 50 } = {}) =>
      read(() => {
        const tests = [
          ...(jobId === undefined ? [] : ["job_id = ?"]),
          ...(states.length === 0 ? [] : [`state IN (${states.map(() => "?").join(", ")})`]),
        ];
        const where = tests.length === 0 ? "" : `WHERE ${tests.join(" AND ")} `;
        return runRows(
          core,
          `${where}ORDER BY id DESC LIMIT ?`,
          ...(jobId === undefined ? [] : [jobId]),
          ...states,
          limit,
        );
      }),
    startApiRun: (run) => write(() => startApiRun(core, run)),
    noteApiRun: (id, events, change) => write(() => noteApiRun(core, id, events, change)),
    dropApiRunEvents: (id, ids) => write(() => dropApiRunEvents(core, id, ids)),
    apiRun: (id) => read(() => apiRun(core, id)),
    apiRunEvents: (id, after) => read(() => apiRunEvents(core, id, after)),
    failAbandonedApiRuns: () => write(() => failAbandonedApiRuns(core)),
    note: (kind, sessionKey, ref) => write(() => noteChange(core, kind, sessionKey, ref)),
    changes: (sinceId, options) => read(() => changesSince(core, sinceId, options?.limit)),
    lastChange: () => read(() => core.db.get<{ id: number | null }>("SELECT MAX(id) AS id FROM changes")?.id ?? 0),
    counts: () => read(() => countWork(core)),
    owedByOriginal: () => read(() => owedByOriginal(core)),
    deadLetters: (options) =>
      read(() => outboxRows(core, "WHERE state = 'dead' ORDER BY id DESC LIMIT ?", options?.limit ?? 50)),
    sweep: () => write(() => sweep(core)),
  };
}

function changesSince(core: StoreCore, sinceId: number, limit = 1000): Change[] {
  return core.db.all<Change>(
    "SELECT id, at, kind, session_key AS sessionKey, ref FROM changes WHERE id > ? ORDER BY id LIMIT ?",
    ...[sinceId, limit],
  );
}

// How much there is, and what is forgotten.

function countWork(core: StoreCore): WorkCounts {
  if (!core.db.get("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'outbox'")) return NO_WORK;
  const count = (sql: string) => core.db.get<{ n: number; at: number | null }>(sql) ?? { n: 0, at: null };
  const waiting = count("SELECT COUNT(*) AS n, MIN(received_at) AS at FROM inbox WHERE state = 'queued'");
  const unsent = count("SELECT COUNT(*) AS n, MIN(created_at) AS at FROM outbox WHERE state IN ('pending', 'sending')");
  const sending = count("SELECT COUNT(*) AS n, NULL AS at FROM outbox WHERE state = 'sending'").n;
  return {
    inbox: {
      queued: waiting.n,
      oldest: waiting.at,
      dead: count("SELECT COUNT(*) AS n, NULL AS at FROM inbox WHERE state = 'dead'").n,
    },
    outbox: {
      pending: unsent.n - sending,
      sending,
      oldest: unsent.at,
      dead: count("SELECT COUNT(*) AS n, NULL AS at FROM outbox WHERE state = 'dead'").n,
    },
    platforms: countPlatforms(core),
  };
}

const NO_WORK: WorkCounts = {
  inbox: { queued: 0, oldest: null, dead: 0 },
  outbox: { pending: 0, sending: 0, oldest: null, dead: 0 },
  platforms: {},
};

function countPlatforms(core: StoreCore): WorkCounts["platforms"] {
  const rows = core.db.all<{ platform: string; queued: number; pending: number }>(
    `SELECT platform, SUM(queued) AS queued, SUM(pending) AS pending FROM (
       SELECT platform, 1 AS queued, 0 AS pending FROM inbox WHERE state = 'queued'
       UNION ALL SELECT platform, 0, 1 FROM outbox WHERE state IN ('pending', 'sending')) GROUP BY platform ORDER BY platform`,
  );
  return Object.fromEntries(rows.map(({ platform, queued, pending }) => [platform, { queued, pending }]));
}

function sweep(core: StoreCore): void {
  const now = databaseNow(core);
  const old = "done_at IS NOT NULL AND done_at < ?1 - CASE state WHEN 'dead' THEN 30 ELSE 7 END * 86400";
  rememberIds(core, `SELECT platform, account, update_id FROM inbox WHERE ${old} ORDER BY id`, now);
  core.db.run(`DELETE FROM inbox WHERE ${old}`, now);
  core.db.run(
    "DELETE FROM outbox WHERE sent_at IS NOT NULL AND sent_at < ?1 - CASE state WHEN 'dead' THEN 30 ELSE 7 END * 86400",
    now,
  );
  core.db.run("DELETE FROM controls WHERE COALESCE(taken_at, created_at) < ?", now - DAY);
  sweepRuns(core);
  sweepApiRuns(core);
  core.db.run("DELETE FROM changes WHERE id <= (SELECT MAX(id) FROM changes) - ?", KEPT_CHANGES);
}

/** The ids of rows that go are kept with their account: a platform may repeat an update after a week. */
function rememberIds(core: StoreCore, rows: string, now: number): void {
  const gone = new Map<string, { platform: string; account: string; ids: string[] }>();
  for (const row of core.db.all<{ platform: string; account: string; update_id: string }>(rows, now)) {
    const key = canonical([row.platform, row.account]);
    const of = gone.get(key) ?? { platform: row.platform, account: row.account, ids: [] };
    of.ids.push(row.update_id);
    gone.set(key, of);
  }
  for (const { platform, account, ids } of gone.values()) {
    const before = core.db.get<{ recent_ids: string }>(
      "SELECT recent_ids FROM cursors WHERE platform = ? AND account = ?",
      ...[platform, account],
    );
    const known = parseJson(before?.recent_ids ?? "[]");
    const newest = [...(Array.isArray(known) ? known : []), ...ids].slice(-REMEMBERED_IDS);
    core.db.run(
      `INSERT INTO cursors (platform, account, recent_ids) VALUES (?, ?, ?)
       ON CONFLICT (platform, account) DO UPDATE SET recent_ids = excluded.recent_ids`,
      ...[platform, account, JSON.stringify(newest)],
    );
  }
}
