import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { systemClock } from "../kit/clock.ts";
import { createLogger, runWithSessionTag } from "./log.ts";

let base: string;
before(async () => {
  base = await mkdtemp(join(tmpdir(), "hermes-log-"));
});
after(() => rm(base, { recursive: true, force: true }));

const at = new Date(2026, 0, 2, 3, 4, 5, 6).getTime();
const clock = { ...systemClock, now: () => at };
const read = (dir: string, name: string) => readFile(join(base, dir, name), "utf8");

test("a line carries time, level, session tag and logger name", async () => {
  const log = createLogger({ dir: join(base, "format"), clock });
  log.info("up");
  runWithSessionTag("20260102_030405_abcdef", () => log.child("agent").child("loop").warn("slow"));
  await log.flush();
  assert.equal(
    await read("format", "agent.log"),
    "2026-01-02 03:04:05,006 INFO hermes: up\n2026-01-02 03:04:05,006 WARNING [20260102_030405_abcdef] agent.loop: slow\n",
  );
  assert.equal((await stat(join(base, "format", "agent.log"))).mode & 0o777, 0o600);
});

test("each file gets its share", async () => {
  const log = createLogger({ dir: join(base, "share"), clock });
  log.debug("d");
  log.info("i");
  log.child("gateway.telegram").info("g");
  log.child("gatewayish").error("e");
  await log.flush();
  const messages = async (name: string) =>
    [...(await read("share", name)).matchAll(/: (\w)$/gm)].map((match) => match[1]);
  assert.deepEqual(await messages("agent.log"), ["i", "g", "e"]);
  assert.deepEqual(await messages("errors.log"), ["e"]);
  assert.deepEqual(await messages("gateway.log"), ["g"]);
});

test("the tag follows its own run through parallel work", async () => {
  const log = createLogger({ dir: join(base, "tags"), clock });
  await Promise.all(
    ["a", "b"].map((id) =>
      runWithSessionTag(id, async () => {
        await new Promise((resolve) => setTimeout(resolve, 1));
        log.info(`from ${id}`);
      }),
    ),
  );
  await log.flush();
  const lines = (await read("tags", "agent.log")).trim().split("\n");
  for (const line of lines) assert.match(line, /\[(\w)\] hermes: from \1$/);
});

test("every line and every trace is redacted, and a redactor that throws leaks nothing", async () => {
  const log = createLogger({ dir: join(base, "redact"), clock, redact: (text) => text.replaceAll("s3cret", "***") });
  log.error("key s3cret", new Error("with s3cret", { cause: new Error("deep s3cret") }));
  const broken = createLogger({
    dir: join(base, "broken"),
    clock,
    redact: () => {
      throw new Error("no");
    },
  });
  broken.error("key s3cret");
  await Promise.all([log.flush(), broken.flush()]);
  const text = await read("redact", "agent.log");
  assert.ok(!text.includes("s3cret") && text.includes("Caused by: Error: deep ***"));
  assert.ok(!(await read("broken", "agent.log")).includes("s3cret"));
});

test("a message cannot forge a second entry or move the cursor", async () => {
  const log = createLogger({ dir: join(base, "forge"), clock });
  log.info("one\n2026-01-02 03:04:05,006 ERROR hermes: forged\x1b[2J");
  await log.flush();
  assert.match(await read("forge", "agent.log"), /one\n {4}2026-.*forged\\x1b\[2J\n$/);
});

test("verbose mode mirrors debug lines without writing them", async () => {
  const log = createLogger({ dir: join(base, "mirror"), clock });
  const shown: string[] = [];
  log.mirror((line) => shown.push(line));
  log.debug("details");
  await log.flush();
  assert.deepEqual(shown, ["2026-01-02 03:04:05,006 DEBUG hermes: details\n"]);
  await assert.rejects(read("mirror", "agent.log"), { code: "ENOENT" });
});

test("a full file is moved aside and the oldest one goes", async () => {
  const log = createLogger({ dir: join(base, "rotate"), clock, maxBytes: 300, backups: 2 });
  for (let n = 0; n < 20; n++) {
    log.info(`line ${n} ${"x".repeat(80)}`);
    await log.flush();
  }
  const files = (await readdir(join(base, "rotate"))).filter((name) => name.startsWith("agent.log")).sort();
  assert.deepEqual(files, ["agent.log", "agent.log.1", "agent.log.2"]);
  assert.match(await read("rotate", "agent.log"), /line 19/);
  for (const name of files) assert.ok((await stat(join(base, "rotate", name))).size <= 300);
});

test("two processes that rotate one file lose no line", async () => {
  const dir = join(base, "shared");
  const program = `
    import { createLogger } from ${JSON.stringify(new URL("./log.ts", import.meta.url).href)};
    const [dir, who] = process.argv.slice(1);
    const log = createLogger({ dir, maxBytes: 2000, backups: 100 });
    for (let n = 0; n < 100; n++) { log.info("line " + who + n + "."); if (n % 3 === 0) await log.flush(); }
    await log.flush();`;
  const children = ["a", "b"].map((who) =>
    spawn(process.execPath, ["--input-type=module", "-e", program, dir, who], { stdio: "inherit" }),
  );
  await Promise.all(children.map((child) => once(child, "exit")));
  const names = (await readdir(dir)).filter((name) => name.startsWith("agent.log"));
  assert.ok(names.length > 3);
  // Whoever comes second finds the file rotated already and must not rotate it again.
  const rotated = await Promise.all(names.filter((name) => name !== "agent.log").map((name) => stat(join(dir, name))));
  for (const { size } of rotated) assert.ok(size > 1000, `rotated at ${size} bytes`);
  const all = (await Promise.all(names.map((name) => readFile(join(dir, name), "utf8")))).join("");
  const seen = new Set([...all.matchAll(/line (\w+)\./g)].map((match) => match[1]));
  assert.equal(seen.size, 200);
});

test("a log that cannot be written costs one note, not the program", async () => {
  await writeFile(join(base, "file"), "in the way");
  const notes: string[] = [];
  const log = createLogger({ dir: join(base, "file", "logs"), onTrouble: (note) => notes.push(note) });
  log.error("lost");
  log.error("lost too");
  await log.flush();
  assert.equal(notes.length, 1);
  assert.match(notes[0]!, /cannot write .*\.log/);
});
