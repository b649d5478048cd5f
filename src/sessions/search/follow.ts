// The index of terms follows the messages. They are written by us and by the original, which knows nothing of the index: so nobody has to
// tell it anything, it looks for itself before each search.
import { closeSync, openSync, rmSync, statSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { setImmediate } from "node:timers/promises";
import { isBusy, sqliteCode } from "../connection.ts";
import type { StoreCore } from "../core.ts";
import { decodeText, plainText } from "../sessions.ts";
import { NO_SEARCH } from "./filter.ts";
import { type IndexedText, TermIndex } from "./term-index.ts";
import { type ReadText, readText } from "./words.ts";

/** Messages of one step; between steps everything else goes on. */
const STEP = 500;
/** Of one transaction, and so of one segment. */
const BATCH = 8000;
const BUSY_TIMEOUT_MS = 25;
const PATIENCE_MS = 30_000;

export const KINDS = { user: 0, assistant: 1, tool: 2, other: 3 } as const;

export const kindOf = (role: string): number =>
  role === "user" ? KINDS.user : role === "assistant" ? KINDS.assistant : role === "tool" ? KINDS.tool : KINDS.other;

/** How many messages are indexed by now. */
type Tell = (done: number, total: number) => void;

interface Followed {
  readonly index: TermIndex;
  readonly db: DatabaseSync;
}

const opened = new WeakMap<StoreCore, Followed>();
const running = new WeakMap<StoreCore, Promise<TermIndex>>();

/** The index of a store, level with its messages. One follower of a process at a time. */
export async function followMessages(core: StoreCore, onIndexing?: Tell): Promise<TermIndex> {
  const before = running.get(core);
  const now = (before ?? Promise.resolve()).then(
    () => follow(core, onIndexing),
    () => follow(core, onIndexing),
  );
  running.set(core, now);
  return await now;
}

/** After messages were deleted: their words do not stay behind in the index until somebody searches. */
export async function forgetDeleted(core: StoreCore): Promise<void> {
  const { db } = core;
  if (db.inMemory || db.readOnly || !statSync(indexPath(core), { throwIfNoEntry: false })) return;
  try {
    await followMessages(core);
  } catch (error) {
    core.log.info("the index of past conversations is brought up to date with the next search", error);
  }
}

function closeIndex(core: StoreCore): void {
  const followed = opened.get(core);
  opened.delete(core);
  if (followed?.db.isOpen) followed.db.close();
}

async function follow(core: StoreCore, onIndexing?: Tell): Promise<TermIndex> {
  const followed = opened.get(core) ?? openIndex(core);
  try {
    await catchUp(core, followed, onIndexing);
    followed.index.refresh();
    return followed.index;
  } catch (error) {
    if (!isUnusable(error)) throw error;
    // Damaged, full, or no longer to be written: what it says can be worked out from the messages.
    core.log.info("rebuilding the index of past conversations", error);
    closeIndex(core);
    const anew = isDamage(error) ? replaceFile(core) : inMemory(core);
    await catchUp(core, anew, onIndexing);
    anew.index.refresh();
    return anew.index;
  }
}

function openIndex(core: StoreCore): Followed {
  const inFile = !core.db.readOnly && !core.db.inMemory;
  if (!inFile) return inMemory(core);
  try {
    return use(core, openFile(indexPath(core)));
  } catch (error) {
    if (isBusy(error)) throw error;
    core.log.info("the index of past conversations cannot be used and is rebuilt", error);
    return replaceFile(core);
  }
}

/** Beside the store. It holds nothing that is not in there, and may be deleted at any time. */
const indexPath = (core: StoreCore) => `${core.db.path}-recall`;

const inMemory = (core: StoreCore) => use(core, new DatabaseSync(":memory:"));

function use(core: StoreCore, db: DatabaseSync): Followed {
  const followed = { index: new TermIndex(db), db };
  opened.set(core, followed);
  core.whenClosed(() => db.isOpen && db.close());
  return followed;
}

function replaceFile(core: StoreCore): Followed {
  const path = indexPath(core);
  try {
    for (const end of ["", "-wal", "-shm"]) rmSync(`${path}${end}`, { force: true });
    return use(core, openFile(path));
  } catch (error) {
    core.log.info("the index of past conversations is kept in memory", error);
    return inMemory(core);
  }
}

function openFile(path: string): DatabaseSync {
  closeSync(openSync(path, "a", 0o600)); // words of conversations are nobody else's business either
  const db = new DatabaseSync(path, { timeout: BUSY_TIMEOUT_MS });
  try {
    // A crash may cost the last additions, which are made again; so nothing ever waits for the disk.
    db.exec("PRAGMA journal_mode=WAL; PRAGMA synchronous=OFF; PRAGMA secure_delete=ON");
    return db;
  } catch (error) {
    db.close();
    throw error;
  }
}

const DAMAGE = new Set([11, 26]);
const UNUSABLE = new Set([8, 10, 11, 13, 14, 23, 26]);
const isDamage = (error: unknown) => DAMAGE.has(sqliteCode(error) & 0xff);
const isUnusable = (error: unknown) => UNUSABLE.has(sqliteCode(error) & 0xff);

// Which messages are new. SQLite's own index of the messages, which triggers keep whoever writes, has a record of how many rows and words
// it holds, and for each row of how many words: so one look tells whether anything changed, and whether that was more than additions.

interface Totals {
  readonly rows: number;
  readonly words: readonly number[];
}

async function catchUp(core: StoreCore, followed: Followed, onIndexing?: Tell): Promise<void> {
  const { index } = followed;
  const before = await core.read(() => readTotals(core));
  const seen = parseTotals(index.note("totals"));
  if (before && seen && sameTotals(before, seen)) return;
  await write(core, followed, () => {
    if (!fits(core, index)) index.clear();
  });
  let more = true;
  let done = 0;
  const total = onIndexing ? countAfter(core, Number(index.note("last") ?? 0)) : 0;
  while (more) {
    const texts: IndexedText[] = [];
    let last = Number(index.note("last") ?? 0);
    const from = last;
    for (; texts.length < BATCH; ) {
      const step = await core.read(() => readMessages(core, last, STEP));
      more = step.length === STEP;
      last = step.at(-1)?.id ?? last;
      for (const row of step) texts.push(...asText(core, row));
      done += step.length;
      onIndexing?.(done, total);
      if (!more) break;
      await setImmediate();
    }
    await write(core, followed, () => {
      if (Number(index.note("last") ?? 0) !== from) return; // another process was quicker
      index.add(texts);
      index.setNote("last", String(last));
      index.setNote("mark", core.db.get<{ mark: string }>(MARK, last)?.mark ?? "");
      if (!more) index.setNote("totals", formatTotals(readTotals(core)));
    });
  }
}

const countAfter = (core: StoreCore, id: number) =>
  core.db.get<{ n: number }>("SELECT count(*) AS n FROM messages WHERE id > ?", id)?.n ?? 0;

/** Whether the index is level with the messages up to its last one; those that are gone are taken out on the way. */
function fits(core: StoreCore, index: TermIndex): boolean {
  const last = Number(index.note("last") ?? 0);
  if (last === 0 || isRebuilding(core)) return true;
  const seen = parseTotals(index.note("totals"));
  const now = readTotals(core);
  if (!seen || !now || core.db.get<{ mark: string }>(MARK, last)?.mark === index.note("mark")) {
    if (!seen || !now || sameTotals(now, plus(seen, readAdditions(core, last)))) return true;
  }
  return takeOutGone(core, index, last);
}

/** False when a message is not what it was. */
function takeOutGone(core: StoreCore, index: TermIndex, last: number): boolean {
  const sizes = new Map<number, number>();
  const tables = countedTables(core);
  for (const row of core.db.iterate<SizeRow>(`SELECT m.id, ${sizesOf(tables)} FROM messages m WHERE m.id <= ?`, last))
    sizes.set(row.id, sizeOf(row));
  index.refresh();
  const { id, size, count } = index.texts();
  const gone = new Set<number>();
  for (let place = 0; place < count; place++) {
    const now = sizes.get(id[place] ?? 0);
    if (now === undefined) gone.add(id[place] ?? 0);
    else if (now !== size[place]) return false;
  }
  if (gone.size === 0 || gone.size > count / 2) return false;
  index.remove(gone);
  return true;
}

interface SizeRow {
  readonly id: number;
  readonly words: Uint8Array | null;
  readonly parts: Uint8Array | null;
}

const sizesOf = (tables: readonly string[]) =>
  [
    ["messages_fts", "words"],
    ["messages_fts_trigram", "parts"],
  ]
    .map(([name, as]) =>
      tables.includes(name ?? "") ? `(SELECT sz FROM ${name}_docsize WHERE id = m.id) AS ${as}` : `NULL AS ${as}`,
    )
    .join(", ");

/** Changes with what a message says. */
const sizeOf = (row: SizeRow) => sum(readNumbers(row.words)) * 65_536 + sum(readNumbers(row.parts));

/** Tells a store from another one that has as many messages. */
const MARK = "SELECT session_id || ' ' || timestamp AS mark FROM messages WHERE id = ?";

/** The newer original rebuilds its index in the background: until it is done, that index tells nothing. */
function isRebuilding(core: StoreCore): boolean {
  if (!core.shape.tables.has("state_meta")) return false;
  return core.db.get("SELECT 1 FROM state_meta WHERE key = 'fts_rebuild_high_water'") !== undefined;
}

/** Of words, and of parts of words: a change that keeps the number of both is not noticed. */
const COUNTED = ["messages_fts", "messages_fts_trigram"];

const countedTables = (core: StoreCore) => COUNTED.filter((name) => core.shape.tables.has(`${name}_docsize`));

function readTotals(core: StoreCore): Totals | null {
  if (isRebuilding(core) || !core.shape.tables.has("messages_fts_docsize")) return null;
  const counted = countedTables(core).map((name) => {
    const row = core.db.get<{ block: Uint8Array }>(`SELECT block FROM ${name}_data WHERE id = 1`);
    return readNumbers(row?.block ?? null);
  });
  return { rows: counted[0]?.[0] ?? 0, words: counted.map(([, ...words]) => sum(words)) };
}

function readAdditions(core: StoreCore, last: number): Totals {
  let rows = 0;
  const words = countedTables(core).map((name, at) => {
    const sizes = core.db.all<{ sz: Uint8Array }>(`SELECT sz FROM ${name}_docsize WHERE id > ?`, last);
    if (at === 0) rows = sizes.length;
    return sum(sizes.map(({ sz }) => sum(readNumbers(sz))));
  });
  return { rows, words };
}

const plus = (a: Totals, b: Totals): Totals => ({
  rows: a.rows + b.rows,
  words: Array.from(
    { length: Math.max(a.words.length, b.words.length) },
    (_, n) => (a.words[n] ?? 0) + (b.words[n] ?? 0),
  ),
});

const formatTotals = (totals: Totals | null) => (totals ? [totals.rows, ...totals.words].join(" ") : "");

function parseTotals(text: string | null): Totals | null {
  if (!text) return null;
  const [rows = 0, ...words] = text.split(" ").map(Number);
  return { rows, words };
}

const sameTotals = (a: Totals, b: Totals) => formatTotals(a) === formatTotals(b);

const sum = (numbers: readonly number[]) => numbers.reduce((all, one) => all + one, 0);

/** SQLite's numbers of variable length: seven bits each, the highest first. */
function readNumbers(bytes: Uint8Array | null): readonly number[] {
  const numbers: number[] = [];
  let value = 0;
  for (const byte of bytes ?? []) {
    value = value * 128 + (byte & 127);
    if (byte >= 128) continue;
    numbers.push(value);
    value = 0;
  }
  return numbers;
}

/**
 * One transaction on the index. While another process has it, or writes messages that the work looks at, we wait without stopping everything
 * else, and begin again.
 */
async function write(core: StoreCore, { db }: Followed, work: () => void): Promise<void> {
  for (let waited = 0; ; ) {
    try {
      db.exec("BEGIN IMMEDIATE");
      work();
      db.exec("COMMIT");
      return;
    } catch (error) {
      if (db.isTransaction) db.exec("ROLLBACK");
      if (!isBusy(error) || waited > PATIENCE_MS) throw error;
      const pause = 20 + core.clock.random() * 80;
      waited += pause + BUSY_TIMEOUT_MS;
      await core.clock.sleep(pause);
    }
  }
}

// What of a message is indexed: all that people and the agent said; of what tools were given and gave back only what SQLite's own index
// cannot find, because files and pages would make everything else hard to see.

interface MessageRow extends SizeRow {
  readonly session_id: string;
  readonly source: string;
  readonly role: string;
  readonly timestamp: number;
  readonly content: Uint8Array | null;
  readonly tool_name: string | null;
  readonly tool_calls: Uint8Array | null;
  readonly own_search: number;
}

function readMessages(core: StoreCore, after: number, limit: number): readonly MessageRow[] {
  return core.db.all<MessageRow>(
    `SELECT m.id, m.session_id, s.source, m.role, m.timestamp, CAST(m.content AS BLOB) AS content, m.tool_name,
       CAST(m.tool_calls AS BLOB) AS tool_calls, ${sizesOf(countedTables(core))}, NOT (${NO_SEARCH}) AS own_search
     FROM messages m JOIN sessions s ON s.id = m.session_id
     WHERE m.id > ? ORDER BY m.id LIMIT ?`,
    after,
    limit,
  );
}

function asText(core: StoreCore, row: MessageRow): readonly IndexedText[] {
  if (row.own_search === 1) return [];
  const kind = kindOf(row.role);
  const spoken = kind === KINDS.user || kind === KINDS.assistant;
  const text = plainText(row.content, core.log);
  const main = readText(text, spoken ? {} : { only: "blankless" });
  // Content in parts is looked for as it is stored, too.
  const stored = row.content?.[0] === 0 ? (decodeText(row.content) ?? "") : "";
  const rest = [stored, row.tool_name ?? "", decodeText(row.tool_calls) ?? ""].join("\n");
  const others = readText(rest, { only: "blankless" });
  const terms = others.terms.size === 0 ? main.terms : joined(main, others);
  if (terms.size === 0) return [];
  const { id, session_id: group, source, timestamp: at } = row;
  return [{ id, group, source, at, kind, length: main.length, asks: main.asks, size: sizeOf(row), terms }];
}

function joined(main: ReadText, others: ReadText): ReadonlyMap<string, number> {
  const all = new Map(main.terms);
  for (const term of others.terms.keys()) if (!all.has(term)) all.set(term, 1);
  return all;
}
