// Whatever is done to a board, by whomever and in any order: one worker for each card, nothing ready that waits, nothing done unsaid.
import assert from "node:assert/strict";
import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { test } from "node:test";
import fc from "fast-check";
import {
  assign,
  BoardError,
  createCard,
  eventsSince,
  isForced,
  link,
  listCards,
  openParents,
  parentsOf,
  promote,
  unlink,
} from "../src/kanban/cards.ts";
import {
  archive,
  block,
  claim,
  complete,
  heartbeat,
  promoteByHand,
  reclaim,
  schedule,
  unblock,
} from "../src/kanban/moves.ts";
import { closesCircle } from "../src/kanban/rules.ts";
import { BoardFile, type CardEvent, type CardRun, type Change } from "../src/kanban/schema.ts";
import { systemClock } from "../src/kit/clock.ts";
import { fewer } from "./support/sample.ts";
import { recordedLog } from "./support/session-store.ts";

const KINDS = [undefined, "needs_input", "capability", "transient", "dependency"] as const;
const ACTS = [
  ...["create", "create", "link", "unlink", "complete", "complete", "block", "unblock", "promote", "force", "schedule"],
  ...["archive", "claim", "claim", "claim", "reclaim", "heartbeat", "assign", "tick", "tick"],
] as const;

const step = fc.record({
  act: fc.constantFrom(...ACTS),
  a: fc.nat(11),
  b: fc.nat(11),
  kind: fc.constantFrom(...KINDS),
  /** Which of two processes does it. */
  hand: fc.nat(1),
  /** The worker's own run, or one that is over. */
  stale: fc.boolean(),
});
type Step = typeof step extends fc.Arbitrary<infer T> ? T : never;

function act(change: Change, { act: name, a, b, kind, stale }: Step, ids: string[]): void {
  const at = (number: number) => ids[number % ids.length] ?? "t_none";
  const [id, other] = [at(a), at(b)];
  const run = change.db.get<{ current_run_id: number | null }>(
    "SELECT current_run_id FROM tasks WHERE id = ?",
    id,
  )?.current_run_id;
  const mine = stale ? { run: (run ?? 0) + 1000 } : {};
  switch (name) {
    case "create": {
      if (ids.length === 5) return;
      const parents = ids.length > 0 && a % 3 > 0 ? [id, ...(b % 2 ? [other] : [])] : [];
      ids.push(createCard(change, { title: `card ${ids.length}`, parents, blocked: a === 7, triage: a === 8 }).id);
      return;
    }
    case "link":
      return link(change, id, other);
    case "unlink":
      return unlink(change, id, other);
    case "complete":
      return void complete(change, id, { summary: "done", ...mine });
    case "block":
      return void block(change, id, { kind, reason: "why", ...mine });
    case "unblock":
      return void unblock(change, id, undefined);
    case "promote":
    case "force":
      return void promoteByHand(change, id, { actor: "ann", force: name === "force" });
    case "schedule":
      return void schedule(change, id, undefined);
    case "archive":
      return void archive(change, id);
    case "claim":
      return void claim(change, id, { lock: `host:${a}:${b}` });
    case "reclaim":
      return reclaim(change, id, undefined);
    case "heartbeat":
      return heartbeat(change, id, undefined);
    case "assign":
      return assign(change, id, b % 2 ? "ann" : null);
    case "tick":
      return void promote(change, ids);
  }
}

function holds(board: BoardFile, before: readonly CardEvent[], after: string): readonly CardEvent[] {
  const { db } = board;
  for (const card of listCards(db, { archived: true })) {
    const open = db.all<CardRun>("SELECT * FROM task_runs WHERE task_id = ? AND ended_at IS NULL", card.id);
    const name = `${card.title} behind ${after}`;
    assert.deepEqual(
      open.map(({ id }) => id),
      card.current_run_id === null ? [] : [card.current_run_id],
      `one open run of ${name}`,
    );
    assert.equal(card.status === "running", card.current_run_id !== null, `whoever works on ${name} has a run`);
    assert.equal(card.claim_lock !== null, card.status === "running", `the claim of ${name}`);
    if (card.status === "todo") assert.ok(openParents(db, card.id).length > 0, `${name} waits for nobody`);
    if (card.status === "ready")
      assert.ok(isForced(db, card.id) || openParents(db, card.id).length === 0, `${name} is ready and waits`);
    for (const parent of parentsOf(db, card.id))
      assert.ok(
        !closesCircle(parent, card.id, (id) => parentsOf(db, id).filter((one) => id !== card.id || one !== parent)),
        `${name} waits for itself`,
      );
  }
  const events = eventsSince(db, 0, 1_000_000);
  assert.deepEqual(events.slice(0, before.length), before, `events are only added behind ${after}`);
  for (const { status, id } of listCards(db))
    if (status === "done") assert.ok(events.some((event) => event.task_id === id && event.kind === "completed"));
  return events;
}

/** Told by the newest word on it. */
function isPutAside(events: readonly CardEvent[], id: string): boolean {
  const said = events.findLast(
    ({ task_id, kind }) => task_id === id && /^(?:blocked|unblocked|promoted_manual)$/.test(kind),
  );
  return said?.kind === "blocked";
}

test("any order of changes, by two processes, leaves a board that makes sense", async () => {
  const folder = await mkdtemp(join(tmpdir(), "hermes-board-"));
  let boards = 0;
  try {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 10, maxLength: 60, size: "max" }), async (steps) => {
        const path = join(folder, `${boards++}.db`);
        const how = { clock: systemClock, log: recordedLog() };
        const hands = [await BoardFile.open(path, how), await BoardFile.open(path, how)];
        const ids: string[] = [];
        let events: readonly CardEvent[] = [];
        for (const one of steps) {
          const board = hands[one.hand];
          assert.ok(board);
          const held = listCards(board.db, { status: "blocked" }).filter(({ id }) => isPutAside(events, id));
          const made = [...ids];
          const worked = await board
            .change((change) => act(change, one, ids))
            .then(() => true)
            .catch((error) => {
              if (!(error instanceof BoardError)) throw error;
              ids.splice(0, ids.length, ...made);
              assert.equal(
                eventsSince(board.db, 0, 1_000_000).length,
                events.length,
                "what is refused changes nothing",
              );
              return false;
            });
          const ends = one.act === "complete" || one.act === "block";
          assert.ok(!(worked && ends && one.stale), "a run that is over ends nothing");
          events = holds(board, events, one.act);
          if (one.act === "tick") {
            const still = new Set(listCards(board.db, { status: "blocked" }).map(({ id }) => id));
            assert.ok(
              held.every(({ id }) => still.has(id)),
              "what somebody put aside stays aside",
            );
          }
        }
        for (const board of hands) board.close();
        await rm(path);
      }),
      { numRuns: fewer(400, 40) },
    );
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
});

test("a board of an older version opens, is worked on, and still has every column it had", async (t) => {
  const folder = await mkdtemp(join(tmpdir(), "hermes-board-"));
  t.after(() => rm(folder, { recursive: true, force: true }));
  const path = join(folder, "kanban.db");
  const older = new DatabaseSync(path);
  older.exec(`CREATE TABLE tasks (id TEXT PRIMARY KEY, title TEXT NOT NULL, body TEXT, assignee TEXT, status TEXT NOT NULL, priority INTEGER DEFAULT 0,
      created_by TEXT, created_at INTEGER NOT NULL, started_at INTEGER, completed_at INTEGER, workspace_kind TEXT NOT NULL DEFAULT 'scratch',
      workspace_path TEXT, branch_name TEXT, claim_lock TEXT, claim_expires INTEGER, tenant TEXT, result TEXT, idempotency_key TEXT,
      consecutive_failures INTEGER NOT NULL DEFAULT 0, worker_pid INTEGER, last_failure_error TEXT, max_runtime_seconds INTEGER,
      last_heartbeat_at INTEGER, current_run_id INTEGER, workflow_template_id TEXT, current_step_key TEXT, skills TEXT, model_override TEXT,
      max_retries INTEGER, session_id TEXT, kept_by_another TEXT);
    CREATE TABLE task_links (parent_id TEXT NOT NULL, child_id TEXT NOT NULL, PRIMARY KEY (parent_id, child_id));
    INSERT INTO tasks (id, title, status, created_at, kept_by_another) VALUES ('t_0000aaaa', 'old', 'ready', 1700000000, 'theirs');`);
  const columns = () =>
    older
      .prepare("PRAGMA table_info(tasks)")
      .all()
      .map(({ name }) => String(name));
  const before = columns();
  for (let round = 0; round < 2; round++) {
    const board = await BoardFile.open(path, { clock: systemClock, log: recordedLog() });
    if (round === 0) await board.change((change) => complete(change, "t_0000aaaa", { summary: "finished" }));
    board.close();
  }
  assert.deepEqual(columns().slice(0, before.length), before);
  const row = older.prepare("SELECT status, result, kept_by_another FROM tasks").get();
  assert.deepEqual({ ...row }, { status: "done", result: "finished", kept_by_another: "theirs" });
  // As the older version writes: without the columns it does not know.
  older.exec("INSERT INTO tasks (id, title, status, created_at) VALUES ('t_0000bbbb', 'newer', 'todo', 1700000001)");
  older.close();
  const board = await BoardFile.open(path, { clock: systemClock, log: recordedLog() });
  assert.deepEqual(
    listCards(board.db).map(({ id, goal_mode, block_recurrences }) => [id, goal_mode, block_recurrences]),
    [
      ["t_0000aaaa", 0, 0],
      ["t_0000bbbb", 0, 0],
    ],
  );
  board.close();
});

test("a file that is no board is copied once and refused; indexes that miss something are rebuilt", async (t) => {
  const folder = await mkdtemp(join(tmpdir(), "hermes-board-"));
  t.after(() => rm(folder, { recursive: true, force: true }));
  const path = join(folder, "kanban.db");
  const how = { clock: systemClock, log: recordedLog() };
  const garbage = "no database, and long enough to be looked at. ".repeat(100);
  await writeFile(path, garbage);
  for (let look = 0; look < 3; look++)
    await assert.rejects(BoardFile.open(path, how), /kanban\.db is damaged; nothing was changed.*Restore it/);
  const names = await readdir(folder);
  assert.equal(names.filter((name) => name.startsWith("kanban.db.damaged-")).length, 1, names.join());
  for (const name of names.filter((one) => !/-(?:wal|shm)$/.test(one)))
    assert.equal(await readFile(join(folder, name), "utf8"), garbage);

  const other = join(folder, "other.db");
  const board = await BoardFile.open(other, how);
  assert.deepEqual(await board.repair(), []);
  board.close();
  // Written to while one of its indexes is not in its list: the index misses the card.
  const entry = "name = 'idx_tasks_assignee_status'";
  const schema = (work: (raw: DatabaseSync) => void) => {
    const raw = new DatabaseSync(other, { defensive: false });
    raw.exec("PRAGMA writable_schema = ON");
    work(raw);
    raw.close();
  };
  schema((raw) => {
    raw.exec("CREATE TABLE aside AS SELECT * FROM sqlite_master WHERE name = 'idx_tasks_assignee_status'");
    raw.exec(`DELETE FROM sqlite_master WHERE ${entry}`);
  });
  schema((raw) =>
    raw.exec(
      "INSERT INTO tasks (id, title, status, assignee, created_at) VALUES ('t_0000aaaa', 'kept', 'ready', 'ann', 1)",
    ),
  );
  schema((raw) => raw.exec("INSERT INTO sqlite_master SELECT * FROM aside"));
  const broken = await BoardFile.open(other, how);
  const found = () => listCards(broken.db, { assignee: "ann", status: "ready" }).map(({ id }) => id);
  assert.deepEqual(found(), [], "it is not found");
  assert.deepEqual(await broken.repair(), []);
  assert.deepEqual(found(), ["t_0000aaaa"]);
  broken.close();
});
