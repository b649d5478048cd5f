import assert from "node:assert/strict";
import { mkdir, mkdtemp, open, readdir, readFile, rm, stat, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { type TestContext, test } from "node:test";
import { manualClock, recordedLog } from "../../test/support/session-store.ts";
import { ZipError, ZipWriter } from "../kit/zip.ts";
import { ArchiveError, checkBackup, restoreBackup, takeSnapshot, writeBackup } from "./home-archive.ts";

const ports = { log: recordedLog(), clock: manualClock() };

async function folders(t: TestContext) {
  const base = await mkdtemp(join(tmpdir(), "hermes-archive-"));
  t.after(() => rm(base, { recursive: true, force: true }));
  const home = join(base, "home");
  await mkdir(home);
  return { base, home, zip: join(base, "backup.zip"), other: join(base, "other") };
}

async function put(home: string, files: Readonly<Record<string, string>>): Promise<void> {
  for (const [name, text] of Object.entries(files)) {
    await mkdir(dirname(join(home, name)), { recursive: true });
    await writeFile(join(home, name), text);
  }
}

/** Open, with a row that is in the write-ahead log alone. */
function liveDatabase(t: TestContext, path: string, word: string): DatabaseSync {
  const db = new DatabaseSync(path, { timeout: 10_000 });
  db.exec("PRAGMA journal_mode=WAL; PRAGMA wal_autocheckpoint=0; CREATE TABLE IF NOT EXISTS words (word TEXT)");
  db.prepare("INSERT INTO words VALUES (?)").run(word);
  t.after(() => db.isOpen && db.close());
  return db;
}

function wordsIn(path: string): readonly unknown[] {
  const db = new DatabaseSync(path, { timeout: 10_000 });
  try {
    return db
      .prepare("SELECT word FROM words")
      .all()
      .map(({ word }) => word);
  } finally {
    db.close();
  }
}

test("a home comes back from its backup, with what only a write-ahead log held", async (t) => {
  const { home, zip, other } = await folders(t);
  await put(home, {
    "config.yaml": "model: {}\n",
    ".env": "KEY=secret\n",
    "skills/a/SKILL.md": "# A\n",
    "profiles/work/config.yaml": "x: 1\n",
    "gateway.pid": "1",
    "node_modules/x/index.js": "",
    "checkpoints/y": "",
    "backups/old.zip": "",
    "skills/a/__pycache__/z.pyc": "",
    "logs/.lock.db": "",
  });
  await symlink("/etc/passwd", join(home, "link"));
  liveDatabase(t, join(home, "state.db"), "kept");
  liveDatabase(t, join(home, "profiles/work/memory-local.db"), "also kept");

  const report = await writeBackup(home, zip);
  assert.deepEqual([report.files, report.databases, report.failed], [6, 2, []]);
  assert.equal((await stat(zip)).mode & 0o777, 0o600);

  const backup = await checkBackup(zip);
  assert.deepEqual(backup.entries.map(({ name }) => name).sort(), [
    ".env",
    "config.yaml",
    "profiles/work/config.yaml",
    "profiles/work/memory-local.db",
    "skills/a/SKILL.md",
    "state.db",
  ]);
  assert.deepEqual(await restoreBackup(backup, other, ports), { files: 6, databases: 2 });
  assert.equal(await readFile(join(other, "skills/a/SKILL.md"), "utf8"), "# A\n");
  assert.equal((await stat(join(other, ".env"))).mode & 0o777, 0o600);
  assert.deepEqual(wordsIn(join(other, "state.db")), ["kept"]);
  assert.deepEqual(wordsIn(join(other, "profiles/work/memory-local.db")), ["also kept"]);
  assert.deepEqual(
    (await readdir(other)).filter((name) => name.startsWith(".import")),
    [],
  );
});

test("a backup beside a busy writer is sound", async (t) => {
  const { home, zip, other } = await folders(t);
  await put(home, { "config.yaml": "a: 1\n" });
  const db = liveDatabase(t, join(home, "state.db"), "x".repeat(1_000_000));
  let done = false;
  const writing = (async () => {
    for (let n = 0; !done; n++) {
      db.prepare("INSERT INTO words VALUES (?)").run(`row ${n} ${"y".repeat(2000)}`);
      await new Promise(setImmediate);
    }
  })();
  await writeBackup(home, zip);
  done = true;
  await writing;
  await restoreBackup(await checkBackup(zip), other, ports);
  assert.ok(wordsIn(join(other, "state.db")).length > 0);
  const copy = new DatabaseSync(join(other, "state.db"), { timeout: 10_000 });
  t.after(() => copy.close());
  assert.deepEqual({ ...copy.prepare("PRAGMA integrity_check").get() }, { integrity_check: "ok" });
});

test("a restored database is not mixed with an old write-ahead log", async (t) => {
  const { home, zip, other } = await folders(t);
  await put(home, { "config.yaml": "a: 1\n" });
  liveDatabase(t, join(home, "state.db"), "from the backup");
  await writeBackup(home, zip);
  await mkdir(other);
  // The log of a process that was killed: rows in it belong to the database of before.
  const live = liveDatabase(t, join(home, "old.db"), "stale");
  for (const end of ["", "-wal"])
    await writeFile(join(other, `state.db${end}`), await readFile(join(home, `old.db${end}`)));
  live.close();
  await restoreBackup(await checkBackup(zip), other, ports);
  assert.deepEqual(wordsIn(join(other, "state.db")), ["from the backup"]);
});

async function archive(path: string, names: readonly string[], mode = 0o100644): Promise<void> {
  const file = await open(path, "w");
  const zip = new ZipWriter(file);
  for (const name of names)
    await zip.add({ name, mode: name.includes("link") ? 0o120777 : mode, modified: new Date() }, bytes(name));
  await zip.finish();
  await file.close();
}

async function* bytes(text: string) {
  yield Buffer.from(text);
}

test("names that lead out of the home, links and left-overs of processes are not restored", async (t) => {
  const { base, zip, other } = await folders(t);
  const bad = [
    "../out",
    "/abs",
    "a/../../out",
    "C:/x",
    "a\\b",
    "skills/link",
    "state.db-wal",
    "gateway.pid",
    "a//b",
    "./x",
  ];
  await archive(zip, ["config.yaml", "skills/ok.md", ...bad]);
  const backup = await checkBackup(zip);
  assert.deepEqual(backup.refused, bad);
  await restoreBackup(backup, other, ports);
  assert.deepEqual((await readdir(other, { recursive: true })).sort(), ["config.yaml", "skills", "skills/ok.md"]);
  assert.deepEqual((await readdir(base)).sort(), ["backup.zip", "home", "other"]);
});

test("one folder around everything is taken off", async (t) => {
  const { zip, other } = await folders(t);
  await archive(zip, [".hermes/config.yaml", ".hermes/skills/a.md", "README"]);
  const backup = await checkBackup(zip);
  assert.deepEqual(backup.refused, ["README"]);
  await restoreBackup(backup, other, ports);
  assert.deepEqual((await readdir(other)).sort(), ["config.yaml", "skills"]);
});

test("what is no backup of a home is refused, and a damaged one changes nothing", async (t) => {
  const { home, zip, base } = await folders(t);
  await archive(zip, ["a", "b"]);
  await assert.rejects(checkBackup(zip), ArchiveError);
  await assert.rejects(checkBackup(join(base, "none.zip")), /No such file/);
  await put(home, { "config.yaml": "as it was\n" });
  await archive(zip, ["config.yaml", ".env"]);
  const whole = await readFile(zip);
  const at = whole.indexOf(".env") + 5;
  whole.writeUInt8(whole.readUInt8(at) ^ 0xff, at); // in the packed bytes of the second file
  await writeFile(zip, whole);
  await assert.rejects(restoreBackup(await checkBackup(zip), home, ports), ZipError);
  assert.deepEqual(await readdir(home), ["config.yaml"]);
  assert.equal(await readFile(join(home, "config.yaml"), "utf8"), "as it was\n");
});

test("snapshots hold the state of one home; the newest twenty stay", async (t) => {
  const { home } = await folders(t);
  await put(home, { "config.yaml": "a: 1\n", "pairing/x.json": "{}", "skills/a.md": "", ".env": "K=v\n" });
  liveDatabase(t, join(home, "state.db"), "kept");
  const first = await takeSnapshot(home, "20260101-000000-label", "label");
  assert.deepEqual(Object.keys(first.files).sort(), [".env", "config.yaml", "pairing/x.json", "state.db"]);
  assert.deepEqual(wordsIn(join(first.path, "state.db")), ["kept"]);
  assert.equal((await stat(join(first.path, ".env"))).mode & 0o777, 0o600);
  const manifest = JSON.parse(await readFile(join(first.path, "manifest.json"), "utf8"));
  assert.deepEqual([manifest.id, manifest.label, manifest.files[".env"]], ["20260101-000000-label", "label", 4]);
  assert.equal((await takeSnapshot(home, "20260101-000000-label", "label")).id, "20260101-000000-label-2");
  await rm(join(home, "state.db"));
  for (let n = 10; n < 30; n++) await takeSnapshot(home, `20260102-0000${n}`, undefined);
  assert.equal((await readdir(join(home, "state-snapshots"))).length, 20);
  assert.deepEqual((await readdir(join(home, "state-snapshots"))).sort()[0], "20260102-000010");
});
