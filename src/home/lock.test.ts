import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm, stat, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { LockTimeoutError, withLock } from "./lock.ts";

let dir: string;
before(async () => {
  dir = await mkdtemp(join(tmpdir(), "hermes-lock-"));
});
after(() => rm(dir, { recursive: true, force: true }));

/** Another process that runs `body` with `withLock` in reach. */
function otherProcess(body: string, ...args: string[]): ChildProcess {
  const program = `
    import { withLock } from ${JSON.stringify(new URL("./lock.ts", import.meta.url).href)};
    import { readFile, writeFile } from "node:fs/promises";
    const [first, second] = process.argv.slice(1);
    ${body}`;
  return spawn(process.execPath, ["--input-type=module", "-e", program, ...args], {
    stdio: ["ignore", "pipe", "inherit"],
  });
}

const increments = `
  for (let i = 0; i < 50; i++) {
    await withLock(first, async () => {
      const count = Number(await readFile(second, "utf8"));
      await writeFile(second, String(count + 1));
    });
  }`;

test("two processes and two callers in each lose no update", async () => {
  const lock = join(dir, "count.lock.db");
  const counter = join(dir, "count");
  await writeFile(counter, "0");
  const twice = `await Promise.all([0, 1].map(async () => { ${increments} }));`;
  const processes = [otherProcess(twice, lock, counter), otherProcess(twice, lock, counter)];
  const codes = await Promise.all(processes.map(async (child) => (await once(child, "exit"))[0]));
  assert.deepEqual(codes, [0, 0]);
  assert.equal(await readFile(counter, "utf8"), "200");
});

test("a holder that is killed leaves the lock free", async (t) => {
  const lock = join(dir, "killed.lock.db");
  const holder = otherProcess(
    `await withLock(first, () => { console.log("held"); return new Promise(() => setInterval(() => 0, 1000)); });`,
    lock,
  );
  t.after(() => holder.kill("SIGKILL"));
  await once(holder.stdout!, "data");

  await assert.rejects(
    withLock(lock, () => assert.fail("two holders"), { waitMs: 60 }),
    (error: unknown) => error instanceof LockTimeoutError && error.message.includes(lock),
  );
  holder.kill("SIGKILL");
  await once(holder, "exit");
  assert.equal(await withLock(lock, () => "mine", { waitMs: 5000 }), "mine");
});

test("callers in one process take turns in the order they came, also through a symlinked directory", async () => {
  const alias = join(dir, "alias");
  await symlink(dir, alias);
  const order: number[] = [];
  let inside = 0;
  await Promise.all(
    [0, 1, 2, 3].map((n) =>
      withLock(join(n % 2 ? alias : dir, "turns.lock.db"), async () => {
        assert.equal(++inside, 1);
        await new Promise((resolve) => setImmediate(resolve));
        order.push(n);
        inside--;
      }),
    ),
  );
  assert.deepEqual(order, [0, 1, 2, 3]);
});

test("a caller that gives up waiting does not block those behind it", async () => {
  const lock = join(dir, "patience.lock.db");
  const { promise: gate, resolve: open } = Promise.withResolvers<void>();
  const first = withLock(lock, () => gate);
  const impatient = withLock(lock, () => "never", { waitMs: 10 });
  const patient = withLock(lock, () => "done");
  await assert.rejects(impatient, LockTimeoutError);
  open();
  await first;
  assert.equal(await patient, "done");
});

test("the lock is free again after the work throws, and its file is private", async () => {
  const lock = join(dir, "deep", "throws.lock.db");
  await assert.rejects(
    withLock(lock, () => Promise.reject(new Error("inner"))),
    { message: "inner" },
  );
  assert.equal(await withLock(lock, () => 1, { waitMs: 1000 }), 1);
  assert.equal((await stat(lock)).mode & 0o777, 0o600);
});
