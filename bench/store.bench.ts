// The session store against raw node:sqlite of the same run: append, load, search over 100,000 mixed Chinese and English messages.
import { mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { systemClock } from "../src/kit/clock.ts";
import type { HistoryMessage } from "../src/llm/messages.ts";
import { openSessionStore } from "../src/sessions/open.ts";
import type { SessionStore } from "../src/sessions/store.ts";
import { recordedLog } from "../test/support/session-store.ts";
import { row } from "./measure.ts";

const MESSAGES = Number(process.argv[2] ?? 100_000);
const PER_SESSION = 500;
const APPENDS = 2000;

const folder = mkdtempSync(join(tmpdir(), "hermes-bench-store-"));
const random = seeded(42);
const { words, phrases } = vocabulary();
const texts = Array.from({ length: MESSAGES }, makeText);

try {
  const path = join(folder, "state.db");
  const store = await openSessionStore({ path, journalMode: "auto", log: recordedLog(), clock: systemClock });

  // Fill, in batches as an import would.
  const filled = await timed(async () => {
    for (let from = 0; from < MESSAGES; from += PER_SESSION) {
      const id = `s${from / PER_SESSION}`;
      await store.create({ id });
      await store.append(id, texts.slice(from, from + PER_SESSION).map(asMessage));
    }
  });
  report("fill", `${MESSAGES} messages`, `${Math.round(MESSAGES / (filled / 1000))} rows/s`);
  const textBytes = texts.reduce((sum, text) => sum + Buffer.byteLength(text), 0);
  report("file", `${megabytes(statSync(path).size)} MB`, `${(statSync(path).size / textBytes).toFixed(2)} x text`);

  // One append per commit, against the same insert and counter update without the store around it.
  await store.create({ id: "append" });
  const ours = await timed(async () => {
    for (let n = 0; n < APPENDS; n++) await store.append("append", [asMessage(texts[n] ?? "", n)]);
  });
  const raw = rawAppends(join(folder, "raw.db"), path);
  report("append", `${(ours / APPENDS).toFixed(3)} ms each`, `${(ours / raw).toFixed(2)} x raw`);

  const loads = await percentiles(20, () => store.load("s1"));
  const load1000 = await percentiles(10, () => store.load("append"));
  report(
    "load",
    `${PER_SESSION} messages ${loads.p50.toFixed(2)} ms`,
    `${APPENDS} messages ${load1000.p50.toFixed(2)} ms`,
  );
  report(
    "list",
    `${(await percentiles(10, () => store.list())).p50.toFixed(2)} ms`,
    `${MESSAGES / PER_SESSION} sessions`,
  );

  const reader = new DatabaseSync(path, { readOnly: true });
  const asked = queries();
  for (const [kind, list] of Object.entries(asked)) {
    const table = kind === "words" ? "messages_fts" : "messages_fts_trigram";
    const rawAsk = reader.prepare(`SELECT rowid FROM ${table} WHERE ${table} MATCH ? ORDER BY rank LIMIT 20`);
    const base = kind === "short" ? null : await each(list, async (query) => void rawAsk.all(`"${query}"`));
    const mine = await each(list, async (query) => void (await store.search(query)));
    const ratio = base
      ? `${(mine.p50 / base.p50).toFixed(2)} x raw, p95 ${(mine.p95 / base.p95).toFixed(2)} x raw`
      : "by the index of terms";
    report(`search ${kind}`, `p50 ${mine.p50.toFixed(2)} ms, p95 ${mine.p95.toFixed(2)} ms`, ratio);
  }
  const found = await recallOf(store);
  row("search: found of what a scan finds", `${(100 * found).toFixed(1)} %`, 1 / found, 1, "all");
  reader.close();
  await store.close();
} finally {
  rmSync(folder, { recursive: true, force: true });
}

/** Words of Latin letters, also where they touch Han, and Han: the share of the messages that a plain look through all of them finds. */
async function recallOf(store: SessionStore): Promise<number> {
  const sum = { there: 0, found: 0 };
  for (const query of [...words.slice(4000, 4040), ...phrases.slice(4000, 4040)]) {
    const [before, behind] = /[a-z]/.test(query) ? ["(?<![a-z0-9])", "(?![a-z0-9])"] : ["", ""];
    const pattern = new RegExp(`${before}${query}${behind}`);
    const there = texts.flatMap((text, n) => (pattern.test(text) ? [n + 1] : []));
    const { hits } = await store.search(query, { limit: 2000, withContext: false });
    const ids = new Set(hits.map(({ id }) => id));
    sum.there += there.length;
    sum.found += there.filter((id) => ids.has(id)).length;
  }
  return sum.found / sum.there;
}

function rawAppends(path: string, like: string): number {
  const source = new DatabaseSync(like, { readOnly: true });
  const schema = source
    .prepare(
      "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%' AND name NOT LIKE 'messages_fts%\\_%' ESCAPE '\\' OR name IN ('messages_fts_trigram_src', 'messages_fts_trigram') OR type = 'trigger' ORDER BY CASE type WHEN 'table' THEN 0 WHEN 'view' THEN 1 ELSE 2 END, name = 'messages_fts_trigram'",
    )
    .all();
  source.close();
  const db = new DatabaseSync(path);
  db.exec("PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL");
  const later = schema.filter(({ sql }) => /^CREATE VIRTUAL/.test(String(sql)));
  const first = schema.filter((row) => !later.includes(row));
  for (const { sql } of [
    ...first.filter(({ sql }) => !/TRIGGER/.test(String(sql))),
    ...later,
    ...first.filter(({ sql }) => /TRIGGER/.test(String(sql))),
  ])
    db.exec(String(sql));
  db.prepare("INSERT INTO sessions (id, source, started_at) VALUES ('append', 'cli', 1)").run();
  const insert = db.prepare(
    "INSERT INTO messages (session_id, role, content, timestamp) VALUES ('append', 'user', ?, ?)",
  );
  const count = db.prepare("UPDATE sessions SET message_count = message_count + 1 WHERE id = 'append'");
  const started = performance.now();
  for (let n = 0; n < APPENDS; n++) {
    db.exec("BEGIN IMMEDIATE");
    insert.run(texts[n] ?? "", n);
    count.run();
    db.exec("COMMIT");
  }
  const ms = performance.now() - started;
  db.close();
  return ms;
}

function queries(): Record<string, string[]> {
  const pick = <T>(list: readonly T[]) => list[Math.floor(random() * list.length)] as T; // never empty
  return {
    words: Array.from({ length: 200 }, () => pick(words.slice(50))),
    trigram: Array.from({ length: 200 }, () => pick(phrases.filter((phrase) => phrase.length >= 3).slice(20))),
    short: Array.from({ length: 10 }, () => pick(phrases.filter((phrase) => phrase.length === 2))),
  };
}

/** Word frequencies fall off as in real text. */
function makeText(): string {
  const length = 4 + Math.floor(random() * 20);
  return Array.from({ length }, () => {
    const list = random() < 0.5 ? words : phrases;
    return list[Math.floor(list.length * random() ** 3)] ?? "";
  }).join(random() < 0.3 ? "" : " ");
}

function vocabulary(): { words: string[]; phrases: string[] } {
  const letters = "etaoinshrdlcumwfgypbvk";
  const make = (length: number, letter: () => string) => Array.from({ length }, letter).join("");
  const latin = () => letters[Math.floor(letters.length * random())] ?? "e";
  const han = () => String.fromCodePoint(0x4e00 + Math.floor(random() ** 2 * 3000));
  return {
    words: Array.from({ length: 8000 }, () => make(3 + Math.floor(random() * 7), latin)),
    phrases: Array.from({ length: 8000 }, () => make(2 + Math.floor(random() * 3), han)),
  };
}

function asMessage(content: string, n: number): HistoryMessage {
  return n % 2 ? { role: "assistant", content } : { role: "user", content };
}

async function timed(work: () => Promise<void>): Promise<number> {
  const started = performance.now();
  await work();
  return performance.now() - started;
}

async function percentiles(rounds: number, work: () => Promise<unknown>): Promise<{ p50: number; p95: number }> {
  return await each(
    Array.from({ length: rounds }, () => ""),
    async () => void (await work()),
  );
}

async function each(
  list: readonly string[],
  work: (item: string) => Promise<void>,
): Promise<{ p50: number; p95: number }> {
  const times: number[] = [];
  for (const item of list) times.push(await timed(() => work(item)));
  times.sort((a, b) => a - b);
  const at = (part: number) => times[Math.min(times.length - 1, Math.floor(times.length * part))] ?? 0;
  return { p50: at(0.5), p95: at(0.95) };
}

function seeded(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state * 48271) % 2147483647;
    return state / 2147483647;
  };
}

function report(what: string, value: string, ratio: string): void {
  process.stdout.write(`${what.padEnd(16)} ${value.padEnd(40)} ${ratio}\n`);
}

function megabytes(bytes: number): string {
  return (bytes / (1024 * 1024)).toFixed(1);
}
