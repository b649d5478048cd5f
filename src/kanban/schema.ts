// The file of a board: tables and columns of the Python original, which reads them by name and may work on the same file.
import { constants } from "node:fs";
import { copyFile, stat } from "node:fs/promises";
import { dirname } from "node:path";
import type { Logger } from "../home/log.ts";
import { makeDirectory } from "../home/paths.ts";
import type { Clock } from "../kit/clock.ts";
import { codeOf, UserError } from "../kit/errors.ts";
import { type Connection, connect, settleJournal } from "../sessions/connection.ts";
import { StoreError } from "../sessions/store.ts";
import { transaction, waitWhileBusy } from "../sessions/write-queue.ts";

export const STATUSES = [
  ...(["triage", "todo", "scheduled", "ready"] as const),
  ...(["running", "blocked", "review", "done", "archived"] as const),
] as const;
export type CardStatus = (typeof STATUSES)[number];

export type BlockKind = "needs_input" | "capability" | "transient" | "dependency";

export type RunOutcome =
  | "completed"
  | "blocked"
  | "scheduled"
  | "crashed"
  | "timed_out"
  | "spawn_failed"
  | "gave_up"
  | "reclaimed"
  | "stale"
  | "rate_limited";

/** A row of `tasks`. Times are whole Unix seconds. */
export interface Card {
  readonly id: string;
  readonly title: string;
  readonly body: string | null;
  readonly assignee: string | null;
  readonly status: CardStatus;
  readonly priority: number;
  readonly created_by: string | null;
  readonly created_at: number;
  /** Its first start ever. */
  readonly started_at: number | null;
  readonly completed_at: number | null;
  readonly workspace_kind: string;
  readonly workspace_path: string | null;
  readonly branch_name: string | null;
  readonly project_id: string | null;
  readonly claim_lock: string | null;
  readonly claim_expires: number | null;
  readonly tenant: string | null;
  readonly result: string | null;
  readonly idempotency_key: string | null;
  readonly consecutive_failures: number;
  readonly worker_pid: number | null;
  readonly last_failure_error: string | null;
  readonly max_runtime_seconds: number | null;
  readonly last_heartbeat_at: number | null;
  /** Null exactly where no run is open. */
  readonly current_run_id: number | null;
  /** A list in JSON. */
  readonly skills: string | null;
  readonly model_override: string | null;
  readonly provider_override: string | null;
  readonly reasoning_effort: string | null;
  readonly max_retries: number | null;
  readonly goal_mode: number;
  readonly goal_max_turns: number | null;
  readonly session_id: string | null;
  readonly block_kind: string | null;
  readonly block_recurrences: number;
}

/** A row of `task_runs`: one attempt at a card. */
export interface CardRun {
  readonly id: number;
  readonly task_id: string;
  readonly profile: string | null;
  readonly status: string;
  readonly claim_lock: string | null;
  readonly claim_expires: number | null;
  readonly worker_pid: number | null;
  readonly max_runtime_seconds: number | null;
  readonly last_heartbeat_at: number | null;
  readonly started_at: number;
  readonly ended_at: number | null;
  /** Null while it runs. */
  readonly outcome: RunOutcome | null;
  readonly summary: string | null;
  /** An object in JSON. */
  readonly metadata: string | null;
  readonly error: string | null;
}

export interface CardEvent {
  readonly id: number;
  readonly task_id: string;
  readonly run_id: number | null;
  readonly kind: string;
  /** An object in JSON. */
  readonly payload: string | null;
  readonly created_at: number;
}

export interface CardComment {
  readonly id: number;
  readonly task_id: string;
  readonly author: string;
  readonly body: string;
  readonly created_at: number;
}

type Columns = Readonly<Record<string, string>>;

const TABLES: Readonly<Record<string, { readonly columns: Columns; readonly key?: string }>> = {
  tasks: {
    columns: {
      id: "TEXT PRIMARY KEY",
      title: "TEXT NOT NULL",
      body: "TEXT",
      assignee: "TEXT",
      status: "TEXT NOT NULL",
      priority: "INTEGER DEFAULT 0",
      created_by: "TEXT",
      created_at: "INTEGER NOT NULL",
      started_at: "INTEGER",
      completed_at: "INTEGER",
      workspace_kind: "TEXT NOT NULL DEFAULT 'scratch'",
      workspace_path: "TEXT",
      branch_name: "TEXT",
      project_id: "TEXT",
      claim_lock: "TEXT",
      claim_expires: "INTEGER",
      tenant: "TEXT",
      result: "TEXT",
      idempotency_key: "TEXT",
      consecutive_failures: "INTEGER NOT NULL DEFAULT 0",
      worker_pid: "INTEGER",
      last_failure_error: "TEXT",
      max_runtime_seconds: "INTEGER",
      last_heartbeat_at: "INTEGER",
      current_run_id: "INTEGER",
      workflow_template_id: "TEXT",
      current_step_key: "TEXT",
      skills: "TEXT",
      model_override: "TEXT",
      provider_override: "TEXT",
      reasoning_effort: "TEXT",
      max_retries: "INTEGER",
      goal_mode: "INTEGER NOT NULL DEFAULT 0",
      goal_max_turns: "INTEGER",
      session_id: "TEXT",
      block_kind: "TEXT",
      block_recurrences: "INTEGER NOT NULL DEFAULT 0",
    },
  },
  task_links: {
    columns: { parent_id: "TEXT NOT NULL", child_id: "TEXT NOT NULL" },
    key: "PRIMARY KEY (parent_id, child_id)",
  },
  task_comments: {
    columns: {
      id: "INTEGER PRIMARY KEY AUTOINCREMENT",
      task_id: "TEXT NOT NULL",
      author: "TEXT NOT NULL",
      body: "TEXT NOT NULL",
      created_at: "INTEGER NOT NULL",
    },
  },
  task_events: {
    columns: {
      id: "INTEGER PRIMARY KEY AUTOINCREMENT",
      task_id: "TEXT NOT NULL",
      run_id: "INTEGER",
      kind: "TEXT NOT NULL",
      payload: "TEXT",
      created_at: "INTEGER NOT NULL",
    },
  },
  task_runs: {
    columns: {
      id: "INTEGER PRIMARY KEY AUTOINCREMENT",
      task_id: "TEXT NOT NULL",
      profile: "TEXT",
      step_key: "TEXT",
      status: "TEXT NOT NULL",
      claim_lock: "TEXT",
      claim_expires: "INTEGER",
      worker_pid: "INTEGER",
      max_runtime_seconds: "INTEGER",
      last_heartbeat_at: "INTEGER",
      started_at: "INTEGER NOT NULL",
      ended_at: "INTEGER",
      outcome: "TEXT",
      summary: "TEXT",
      metadata: "TEXT",
      error: "TEXT",
    },
  },
  task_attachments: {
    columns: {
      id: "INTEGER PRIMARY KEY AUTOINCREMENT",
      task_id: "TEXT NOT NULL",
      filename: "TEXT NOT NULL",
      stored_path: "TEXT NOT NULL",
      content_type: "TEXT",
      size: "INTEGER",
      uploaded_by: "TEXT",
      created_at: "INTEGER NOT NULL",
    },
  },
  kanban_notify_subs: {
    columns: {
      task_id: "TEXT NOT NULL",
      platform: "TEXT NOT NULL",
      chat_id: "TEXT NOT NULL",
      chat_type: "TEXT",
      thread_id: "TEXT NOT NULL DEFAULT ''",
      user_id: "TEXT",
      notifier_profile: "TEXT",
      delivery_metadata: "TEXT",
      created_at: "INTEGER NOT NULL",
      last_event_id: "INTEGER NOT NULL DEFAULT 0",
    },
    key: "PRIMARY KEY (task_id, platform, chat_id, thread_id)",
  },
};

const INDEXES: Readonly<Record<string, string>> = {
  idx_tasks_assignee_status: "tasks (assignee, status)",
  idx_tasks_status: "tasks (status)",
  idx_tasks_tenant: "tasks (tenant)",
  idx_tasks_idempotency: "tasks (idempotency_key)",
  idx_tasks_session_id: "tasks (session_id)",
  idx_links_child: "task_links (child_id)",
  idx_links_parent: "task_links (parent_id)",
  idx_comments_task: "task_comments (task_id, created_at)",
  idx_events_task: "task_events (task_id, created_at)",
  idx_events_run: "task_events (run_id, id)",
  idx_runs_task: "task_runs (task_id, started_at)",
  idx_runs_status: "task_runs (status)",
  idx_attachments_task: "task_attachments (task_id, created_at)",
  idx_notify_task: "kanban_notify_subs (task_id)",
};

/** Inside of one transaction: what a change may use. */
export interface Change {
  readonly db: Connection;
  /** Whole Unix seconds. */
  readonly now: number;
}

/** One open board. Reading is immediate; each change is one transaction. */
export class BoardFile {
  readonly path: string;
  readonly db: Connection;
  readonly #clock: Clock;

  private constructor(db: Connection, clock: Clock) {
    this.path = db.path;
    this.db = db;
    this.#clock = clock;
  }

  /**
   * Makes the file where there is none, and adds the columns that an older one lacks. A damaged one is copied aside and refused, never
   * replaced.
   */
  static async open(path: string, { clock, log }: { readonly clock: Clock; readonly log: Logger }): Promise<BoardFile> {
    makeDirectory(dirname(path), 0o700);
    try {
      const db = connect({ path });
      try {
        const wait = { db, clock, timeoutMs: WAIT_MS };
        await waitWhileBusy(wait, () => settleJournal(db, "auto", process.versions.sqlite ?? "0", log));
        await waitWhileBusy(wait, () => {
          if (missing(db).length > 0) transaction(db, () => missing(db).forEach((sql) => void db.exec(sql)));
        });
        return new BoardFile(db, clock);
      } catch (error) {
        db.close();
        throw error;
      }
    } catch (error) {
      if (!(error instanceof StoreError) || error.code !== "damaged") throw error;
      // One for each state of it: a gateway looks every few seconds.
      const copy = `${path}.damaged-${Math.floor((await stat(path)).mtimeMs / 1000)}`;
      await copyFile(path, copy, constants.COPYFILE_EXCL).catch((problem: unknown) => {
        if (codeOf(problem) !== "EEXIST") throw problem;
      });
      throw new UserError(
        `${path} is damaged; nothing was changed, and a copy lies at ${copy}. Restore it from a backup, or move it away: then an empty board is made.`,
      );
    }
  }

  get now(): number {
    return Math.floor(this.#clock.now() / 1000);
  }

  /** `work` is synchronous and may run more than once, while other processes write; only its last run counts. */
  change<T>(work: (change: Change) => T): Promise<T> {
    const { db } = this;
    return waitWhileBusy({ db, clock: this.#clock, timeoutMs: WAIT_MS }, () => {
      db.assertSameFile();
      return transaction(db, () => work({ db, now: this.now }));
    });
  }

  /** Rebuilds the indexes. Resolves to what SQLite still finds wrong. */
  async repair(): Promise<readonly string[]> {
    await waitWhileBusy({ db: this.db, clock: this.#clock, timeoutMs: WAIT_MS }, () => this.db.exec("REINDEX"));
    return this.db
      .all<{ integrity_check: string }>("PRAGMA integrity_check")
      .map((row) => row.integrity_check)
      .filter((line) => line !== "ok");
  }

  close(): void {
    this.db.close();
  }
}

const WAIT_MS = 20_000;

/** What this file lacks, in SQL. */
function missing(db: Connection): readonly string[] {
  const indexes = new Set(
    db.all<{ name: string }>("SELECT name FROM sqlite_master WHERE type = 'index'").map(({ name }) => name),
  );
  const tables = Object.entries(TABLES).flatMap(([table, { columns, key }]) => {
    const present = new Set(db.all<{ name: string }>(`PRAGMA table_info(${table})`).map(({ name }) => name));
    const declared = Object.entries(columns).map(([name, type]) => `${name} ${type}`);
    if (present.size === 0) return [`CREATE TABLE ${table} (${[...declared, ...(key ? [key] : [])].join(", ")})`];
    return Object.entries(columns)
      .filter(([name]) => !present.has(name))
      .map(([name, type]) => `ALTER TABLE ${table} ADD COLUMN ${name} ${type}`);
  });
  const wanted = Object.entries(INDEXES).filter(([name]) => !indexes.has(name));
  return [...tables, ...wanted.map(([name, on]) => `CREATE INDEX IF NOT EXISTS ${name} ON ${on}`)];
}
