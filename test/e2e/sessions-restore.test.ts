// Copies of the database, made and put back with the program alone.
import assert from "node:assert/strict";
import { open, readdir, rename, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { after, before, beforeEach, describe, test } from "node:test";
import { ModelServer } from "../support/model-server/server.ts";
import { runHermes } from "../support/run-hermes.ts";
import { oneOf } from "../support/sample.ts";
import { modelConfig, type TempHome, tempHome } from "../support/temp-home.ts";

describe("hermes sessions backup and restore", () => {
  let server: ModelServer;
  before(async () => {
    server = await ModelServer.start();
  });
  beforeEach(() => {
    server.clear();
    server.otherwise({ text: "ok" });
  });
  after(() => server.close());

  const run = async (home: TempHome, ...args: string[]) => {
    const { code, stdout, stderr } = await runHermes(args, { home });
    return { code, stdout, stderr };
  };
  const ok = async (home: TempHome, ...args: string[]) => {
    const { code, stdout, stderr } = await run(home, ...args);
    assert.equal(code, 0, stderr);
    return stdout;
  };
  const listed = (home: TempHome) => ok(home, "sessions", "list");

  test("a copy is put back after a yes; what was there is kept and can be put back itself", async () => {
    await using home = await tempHome({ "config.yaml": modelConfig(server) });
    await ok(home, "-z", "the first heron");
    const copied = await ok(home, "sessions", "backup", "copy.db");
    assert.match(
      copied,
      /^1 session with 2 messages copied to ~\/project\/copy\.db\.\nTo restore them: hermes sessions/,
    );
    assert.equal((await stat(join(home.project, "copy.db"))).mode & 0o077, 0);
    assert.match(
      (await run(home, "sessions", "backup", "copy.db")).stderr,
      /copy\.db already exists; nothing was written/,
    );
    await ok(home, "-z", "the second egret");

    const unasked = await run(home, "sessions", "restore", "copy.db");
    assert.equal(unasked.code, 1);
    assert.match(
      unasked.stderr,
      /^hermes: Put 1 session with 2 messages from ~\/project\/copy\.db in place of the 2 sessions with 4 messages of this home\? The current one is kept as ~\/\.hermes\/backups\/state-\d{8}-\d{6}\.db\. Not a terminal; pass -y to confirm\.$/m,
    );
    assert.match(await listed(home), /egret/);

    const restored = await ok(home, "sessions", "restore", "copy.db", "--yes");
    const [, kept] = /^Restored 1 session with 2 messages\.\nPrevious content: ~(\/.*)\n$/.exec(restored) ?? [];
    assert.ok(kept, restored);
    const after = await listed(home);
    assert.match(after, /heron/);
    assert.doesNotMatch(after, /egret/);
    await ok(home, "sessions", "restore", join(home.osHome, kept), "-y");
    assert.match(await listed(home), /egret[\s\S]*heron|heron[\s\S]*egret/);
  });

  test("without a name the copy goes to the backups of the home", async () => {
    await using home = await tempHome({ "config.yaml": modelConfig(server) });
    await ok(home, "-z", "the first heron");
    assert.match(await ok(home, "sessions", "backup"), /copied to ~\/\.hermes\/backups\/state-\d{8}-\d{6}\.db\./);
    assert.equal((await readdir(home.at("backups"))).length, 1);
  });

  test("what is no copy is refused, and nothing is changed", async () => {
    await using home = await tempHome({ "config.yaml": modelConfig(server) });
    await ok(home, "-z", "the first heron");
    await writeFile(join(home.project, "notes.txt"), "not a database at all ".repeat(100));
    const files = [
      ["notes.txt", /notes\.txt cannot be read \(file is not a database\)/],
      ["missing.db", /no such file: .*missing\.db/],
      [home.at("state.db"), /state\.db is the database in use/],
    ] as const;
    for (const [file, words] of oneOf(files, "what is no copy")) {
      const { code, stderr } = await run(home, "sessions", "restore", file, "-y");
      assert.equal(code, 1);
      assert.match(stderr, words);
    }
    assert.match(await listed(home), /heron/);
  });

  test("what was rescued from a damaged database is put in its place", async () => {
    await using home = await tempHome({ "config.yaml": modelConfig(server) });
    await ok(home, "-z", `the first heron ${"and more ".repeat(3000)}`);
    await ok(home, "-z", "the second egret");
    const db = new DatabaseSync(home.at("state.db"), { timeout: 10_000 });
    const page = db
      .prepare("SELECT pageno FROM dbstat WHERE name = 'messages' AND pagetype = 'overflow' LIMIT 1")
      .get();
    db.close();
    const file = await open(home.at("state.db"), "r+");
    await file.write(Buffer.alloc(4096, 0xff), 0, 4096, (Number(page?.pageno) - 1) * 4096);
    await file.close();
    const repaired = await run(home, "sessions", "repair");
    assert.equal(repaired.code, 1);
    const [, rescued = ""] = /^To use it: hermes sessions restore (.*)$/m.exec(repaired.stdout) ?? [];
    assert.match(rescued, /state\.db\.rescued-/);
    assert.match(await ok(home, "sessions", "restore", rescued, "-y"), /^Restored 2 sessions with \d messages/);
    assert.match(await ok(home, "sessions", "repair", "--check-only"), /is intact/);
    assert.match(await ok(home, "sessions", "search", "egret"), /egret/);
  });

  test("a database that was lost is told of where a copy of it lies, until there is a conversation again", async () => {
    await using home = await tempHome({ "config.yaml": modelConfig(server) });
    assert.equal((await run(home, "sessions", "list")).stderr, "", "a new home has lost nothing");
    await ok(home, "-z", "the first heron");
    await ok(home, "sessions", "backup");
    const [copy = ""] = await readdir(home.at("backups"));
    for (const end of ["-wal", "-shm"]) await rm(home.at(`state.db${end}`), { force: true });
    await writeFile(home.at("state.db"), "");
    const empty = await run(home, "sessions", "list");
    assert.equal(empty.stdout, "No sessions found.\n");
    assert.match(
      empty.stderr,
      new RegExp(`^hermes: this home has no conversations, .*hermes sessions restore .*${copy}\n$`),
    );
    // The tables are there by now, and still nothing in them; a copy beside it counts too, one that holds nothing does not.
    await rename(home.at("backups", copy), home.at("state.db.old"));
    await writeFile(home.at("state.db.bad"), "no database");
    assert.match((await run(home, "sessions", "list")).stderr, /sessions restore .*state\.db\.old\n$/);
    await ok(home, "-z", "the second heron");
    assert.equal((await run(home, "sessions", "list")).stderr, "");
  });
});
