// Boards of the original: written with the columns of either version, opened and changed here, and read again by a program that knows those
// columns and no others.
import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { after, before, describe, test } from "node:test";
import { Boards } from "../src/kanban/boards.ts";
import { cardOf, comment, createCard, eventsOf, link, listCards, runsOf, setModel } from "../src/kanban/cards.ts";
import { archive, block, claim, complete, promoteByHand, schedule, specify, unblock } from "../src/kanban/moves.ts";
import { BoardFile } from "../src/kanban/schema.ts";
import { moveCursor, subscribe, subscriptionsOf } from "../src/kanban/subscriptions.ts";
import { tagOnce, tagWorkerSessions } from "../src/kanban/worker-sessions.ts";
import { systemClock } from "../src/kit/clock.ts";
import { openRequest } from "./support/open-request.ts";
import { recordedLog } from "./support/session-store.ts";
import { tempHome } from "./support/temp-home.ts";

type Table = readonly [name: string, type: string][];
type Tables = Readonly<Record<string, Table>>;

const parse = (columns: string): Table =>
  columns
    .split(",")
    .map((one) => one.trim())
    .map((one) => [one.split(" ")[0] ?? "", one.split(" ").slice(1).join(" ")]);

const OLD: Tables = {
  tasks:
    parse(`id TEXT PRIMARY KEY, title TEXT NOT NULL, body TEXT, assignee TEXT, status TEXT NOT NULL, priority INTEGER DEFAULT 0,
    created_by TEXT, created_at INTEGER NOT NULL, started_at INTEGER, completed_at INTEGER, workspace_kind TEXT NOT NULL DEFAULT 'scratch',
    workspace_path TEXT, branch_name TEXT, claim_lock TEXT, claim_expires INTEGER, tenant TEXT, result TEXT, idempotency_key TEXT,
    consecutive_failures INTEGER NOT NULL DEFAULT 0, worker_pid INTEGER, last_failure_error TEXT, max_runtime_seconds INTEGER,
    last_heartbeat_at INTEGER, current_run_id INTEGER, workflow_template_id TEXT, current_step_key TEXT, skills TEXT, model_override TEXT,
    max_retries INTEGER, session_id TEXT`),
  task_links: parse("parent_id TEXT NOT NULL, child_id TEXT NOT NULL"),
  task_comments:
    parse(`id INTEGER PRIMARY KEY AUTOINCREMENT, task_id TEXT NOT NULL, author TEXT NOT NULL, body TEXT NOT NULL,
    created_at INTEGER NOT NULL`),
  task_events:
    parse(`id INTEGER PRIMARY KEY AUTOINCREMENT, task_id TEXT NOT NULL, run_id INTEGER, kind TEXT NOT NULL, payload TEXT,
    created_at INTEGER NOT NULL`),
  task_runs:
    parse(`id INTEGER PRIMARY KEY AUTOINCREMENT, task_id TEXT NOT NULL, profile TEXT, step_key TEXT, status TEXT NOT NULL,
    claim_lock TEXT, claim_expires INTEGER, worker_pid INTEGER, max_runtime_seconds INTEGER, last_heartbeat_at INTEGER,
    started_at INTEGER NOT NULL, ended_at INTEGER, outcome TEXT, summary TEXT, metadata TEXT, error TEXT`),
  kanban_notify_subs:
    parse(`task_id TEXT NOT NULL, platform TEXT NOT NULL, chat_id TEXT NOT NULL, thread_id TEXT NOT NULL DEFAULT '',
    user_id TEXT, notifier_profile TEXT, created_at INTEGER NOT NULL, last_event_id INTEGER NOT NULL DEFAULT 0`),
};
const KEYS: Readonly<Record<string, string>> = {
  task_links: ", PRIMARY KEY (parent_id, child_id)",
  kanban_notify_subs: ", PRIMARY KEY (task_id, platform, chat_id, thread_id)",
};
/** What 0.20 has besides. */
const ADDED: Tables = {
  tasks:
    parse(`project_id TEXT, provider_override TEXT, reasoning_effort TEXT, goal_mode INTEGER NOT NULL DEFAULT 0, goal_max_turns INTEGER,
    block_kind TEXT, block_recurrences INTEGER NOT NULL DEFAULT 0`),
  kanban_notify_subs: parse("chat_type TEXT, delivery_metadata TEXT"),
  task_attachments:
    parse(`id INTEGER PRIMARY KEY AUTOINCREMENT, task_id TEXT NOT NULL, filename TEXT NOT NULL, stored_path TEXT NOT NULL,
    content_type TEXT, size INTEGER, uploaded_by TEXT, created_at INTEGER NOT NULL`),
};
const NEW: Tables = Object.fromEntries(
  [...new Set([...Object.keys(OLD), ...Object.keys(ADDED)])].map((name) => [
    name,
    [...(OLD[name] ?? []), ...(ADDED[name] ?? [])],
  ]),
);

/** A program that knows these columns: it names them when it writes, and takes rows by name. */
class Original {
  readonly db: DatabaseSync;
  readonly #tables: Tables;

  constructor(path: string, tables: Tables) {
    this.db = new DatabaseSync(path, { timeout: 10_000 });
    this.db.exec("PRAGMA journal_mode = WAL");
    this.#tables = tables;
    for (const [name, columns] of Object.entries(tables))
      this.db.exec(
        `CREATE TABLE IF NOT EXISTS ${name} (${columns.map((one) => one.join(" ")).join(", ")}${KEYS[name] ?? ""})`,
      );
  }

  /** Every column that it knows, of every row: also as it would take them from `SELECT *`. */
  all(table: string): readonly Readonly<Record<string, unknown>>[] {
    const names = (this.#tables[table] ?? []).map(([name]) => name);
    const rows = this.db.prepare(`SELECT ${names.join(", ")} FROM ${table} ORDER BY rowid`).all();
    const whole = this.db.prepare(`SELECT * FROM ${table} ORDER BY rowid`).all();
    assert.deepEqual(
      whole.map((row) => Object.fromEntries(names.map((name) => [name, row[name]]))),
      rows.map((row) => ({ ...row })),
    );
    return rows;
  }

  insert(table: string, row: Readonly<Record<string, string | number | null>>): void {
    const names = Object.keys(row);
    for (const name of names)
      assert.ok(
        this.#tables[table]?.some(([known]) => known === name),
        `${table}.${name}`,
      );
    this.db
      .prepare(`INSERT INTO ${table} (${names.join(", ")}) VALUES (${names.map(() => "?").join(", ")})`)
      .run(...Object.values(row));
  }

  card(id: string, status: string, more: Readonly<Record<string, string | number | null>> = {}): void {
    this.insert("tasks", { id, title: `card ${id}`, status, created_at: 1_700_000_000, assignee: "default", ...more });
    this.insert("task_events", { task_id: id, kind: "created", payload: "{}", created_at: 1_700_000_000 });
  }
}

for (const [version, tables] of [
  ["0.15.1", OLD],
  ["0.20", NEW],
] as const)
  describe(`a board of ${version}`, () => {
    let folder: string;
    let path: string;
    let original: Original;
    before(async () => {
      folder = await mkdtemp(join(tmpdir(), "hermes-board-"));
      path = join(folder, "kanban.db");
      original = new Original(path, tables);
      for (const status of ["triage", "todo", "scheduled", "ready", "blocked", "review", "done", "archived"])
        original.card(`t_${status.slice(0, 4)}0000`, status);
      original.card("t_run00000", "running", {
        ...{
          claim_lock: "host:1:ab",
          claim_expires: 1_700_000_900,
          current_run_id: 1,
          worker_pid: 1,
          started_at: 1_700_000_000,
        },
        ...{
          skills: '["a"]',
          model_override: "m",
          session_id: "s1",
          consecutive_failures: 1,
          last_failure_error: "once",
        },
      });
      original.insert("task_runs", {
        task_id: "t_run00000",
        profile: "default",
        status: "running",
        started_at: 1_700_000_000,
      });
      original.insert("task_links", { parent_id: "t_run00000", child_id: "t_todo0000" });
      original.insert("task_events", {
        task_id: "t_bloc0000",
        kind: "blocked",
        payload: '{"reason": "why"}',
        created_at: 1,
      });
      original.insert("task_comments", { task_id: "t_read0000", author: "ann", body: "look", created_at: 1 });
      const told = { platform: "telegram", chat_id: "1", created_at: 1, last_event_id: 2 };
      original.insert("kanban_notify_subs", { task_id: "t_run00000", ...told });
      original.insert("kanban_notify_subs", {
        task_id: "t_read0000",
        ...told,
        thread_id: "7",
        notifier_profile: "ops",
      });
    });
    after(async () => {
      original.db.close();
      await rm(folder, { recursive: true, force: true });
    });
    const open = () => BoardFile.open(path, { clock: systemClock, log: recordedLog() });

    test("opens with everything in it, is changed in every way, and each row can be read by the columns it had", async () => {
      const columns = (table: string) => original.db.prepare(`PRAGMA table_info(${table})`).all();
      const had = Object.fromEntries(Object.keys(tables).map((name) => [name, columns(name)]));
      const board = await open();
      assert.equal(listCards(board.db, { archived: true }).length, 9);
      assert.deepEqual(
        [cardOf(board.db, "t_run00000")].map(({ skills, goal_mode, block_recurrences, project_id }) => [
          ...[skills, goal_mode, block_recurrences, project_id],
        ]),
        [['["a"]', 0, 0, null]],
      );
      const made = await board.change((change) => {
        complete(change, "t_run00000", { summary: "done", metadata: { files: 1 } });
        unblock(change, "t_bloc0000", "yes");
        claim(change, "t_read0000", { lock: "here:1:cd" });
        block(change, "t_read0000", { reason: "why", kind: "needs_input" });
        unblock(change, "t_read0000", undefined);
        claim(change, "t_read0000", { lock: "here:1:ce" });
        block(change, "t_read0000", { reason: "again", kind: "needs_input" });
        specify(change, "t_tria0000", { title: "clear", body: null, assignee: "default", as: "specified" });
        unblock(change, "t_sche0000", undefined);
        schedule(change, "t_sche0000", "later");
        archive(change, "t_done0000");
        comment(change, "t_todo0000", { author: "ann", body: "hello" });
        setModel(change, "t_todo0000", "n", "openrouter");
        const { id } = createCard(change, {
          ...{
            title: "new",
            parents: ["t_todo0000"],
            goal: true,
            goalMaxTurns: 3,
            project: "p",
            model: "m",
            provider: "q",
          },
        });
        link(change, "t_bloc0000", id);
        promoteByHand(change, id, { actor: "ann", force: true });
        subscribe(change, id, { platform: "paper", chatId: "bob", chatType: "dm", profile: "default" });
        for (const row of subscriptionsOf(change.db, "t_run00000"))
          moveCursor(change, row, eventsOf(change.db, "t_run00000").at(-1)?.id ?? 0);
        return id;
      });
      board.close();

      for (const [name, before] of Object.entries(had))
        assert.deepEqual(columns(name).slice(0, before.length), before, name);
      const rows = new Map(original.all("tasks").map((row) => [String(row.id), row]));
      const states = Object.fromEntries([...rows].map(([id, row]) => [id, row.status]));
      assert.deepEqual(states, {
        ...{
          t_tria0000: "ready",
          t_todo0000: "ready",
          t_sche0000: "scheduled",
          t_read0000: "triage",
          t_bloc0000: "ready",
        },
        ...{
          t_revi0000: "review",
          t_done0000: "archived",
          t_arch0000: "archived",
          t_run00000: "done",
          [made]: "ready",
        },
      });
      const STATES = "triage todo scheduled ready running blocked review done archived".split(" ");
      for (const [id, row] of rows) {
        assert.ok(STATES.includes(String(row.status)), `${id}: ${row.status}`);
        for (const at of ["created_at", "started_at", "completed_at", "claim_expires"])
          assert.ok(row[at] === null || Number.isInteger(row[at]), `${id}.${at}: whole seconds`);
      }
      for (const table of Object.keys(tables)) original.all(table);
      for (const { payload } of original.all("task_events")) JSON.parse(String(payload ?? "{}"));
      const outcomes = original.all("task_runs").map(({ outcome, ended_at }) => [outcome, ended_at !== null]);
      assert.deepEqual(outcomes, [
        ["completed", true],
        ["blocked", true],
        ["blocked", true],
      ]);
      assert.deepEqual(
        original.all("kanban_notify_subs").map(({ task_id, thread_id }) => [task_id, thread_id]),
        [
          ["t_read0000", "7"],
          [made, ""],
        ],
      );
      assert.equal(original.db.prepare("PRAGMA integrity_check").get()?.integrity_check, "ok");
    });

    test("what the original writes then, with its own columns, is a card like any other here, and both go on in turn", async () => {
      original.card("t_late0000", "ready");
      original.insert("task_runs", { task_id: "t_late0000", profile: "p", status: "running", started_at: 5 });
      original.insert("kanban_notify_subs", {
        task_id: "t_late0000",
        platform: "telegram",
        chat_id: "2",
        created_at: 1,
      });
      original.insert("task_events", {
        task_id: "t_late0000",
        kind: "tip_scratch_workspace",
        payload: null,
        created_at: 6,
      });
      for (let round = 0; round < 2; round++) {
        const board = await open();
        const card = cardOf(board.db, "t_late0000");
        assert.deepEqual([card.goal_mode, card.block_recurrences, card.provider_override], [0, 0, null]);
        assert.equal(subscriptionsOf(board.db, "t_late0000")[0]?.chat_type, null);
        assert.equal(runsOf(board.db, "t_late0000").length, 1 + round);
        await board.change((change) => {
          const claimed = claim(change, "t_late0000", { lock: `x:1:${round}` });
          assert.ok(claimed);
        });
        board.close();
        original.db
          .prepare(
            "UPDATE tasks SET status = 'ready', claim_lock = NULL, current_run_id = NULL WHERE id = 't_late0000'",
          )
          .run();
        assert.equal(original.all("tasks").find(({ id }) => id === "t_late0000")?.started_at !== null, true);
      }
    });
  });

test("conversations of workers that 0.15.1 stored as typed are told from those of people, once by themselves and again by hand", async (t) => {
  const temp = await tempHome({});
  const { home, store } = await openRequest(temp);
  t.after(async () => {
    await store.close();
    await home.close();
    await temp[Symbol.asyncDispose]();
  });
  const boards = new Boards(home, systemClock);
  await boards.create("lab", {});
  const roots = ["default", "lab"].map((slug) => boards.place(slug).workspaces);
  const session = (id: string, source: string, cwd: string | null) => store.create({ id, source, model: null, cwd });
  const sourceOf = async (id: string) => (await store.get(id))?.source;
  await session("worker-1", "cli", join(roots[0] ?? "", "t_00000001"));
  await session("worker-2", "cli", join(roots[1] ?? "", "t_00000002", "src"));
  await session("person", "cli", temp.project);
  await session("near", "cli", `${roots[0]}-of-mine`);
  await session("nowhere", "cli", null);
  await session("chat", "telegram", join(roots[0] ?? "", "t_00000003"));
  await tagOnce(store, boards);
  const all = ["worker-1", "worker-2", "person", "near", "nowhere", "chat"];
  assert.deepEqual(await Promise.all(all.map(sourceOf)), ["kanban", "kanban", "cli", "cli", "cli", "telegram"]);
  await session("later", "cli", join(roots[0] ?? "", "t_00000004"));
  await tagOnce(store, boards);
  assert.equal(await sourceOf("later"), "cli");
  assert.equal(await tagWorkerSessions(store, boards), 1);
  assert.equal(await sourceOf("later"), "kanban");
});
