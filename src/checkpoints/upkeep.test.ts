import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { readdir, rm, utimes } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { checkpointRig, storeAt } from "../../test/support/checkpoint-store.ts";
import { oneOf } from "../../test/support/sample.ts";
import { GitMissingError } from "./git.ts";
import { prune, readProjects, storedBytes } from "./prune.ts";
import { Rollback } from "./rollback.ts";
import { CheckpointStore, hashOf } from "./store.ts";

const DAY = 24 * 3600 * 1000;

test("only so many checkpoints are kept, and only for so long", async (t) => {
  const rig = await checkpointRig(t);
  rig.limits = { ...rig.limits, max_snapshots: 3 };
  for (let n = 0; n < 8; n++) {
    await rig.write("a.txt", `version ${n}`);
    await rig.take(`change ${n}`);
  }
  assert.deepEqual(
    (await rig.files.list()).map(({ why }) => why),
    ["change 7", "change 6", "change 5"],
  );
  await rig.files.restore(await rig.files.find("3"), {});
  assert.equal((await rig.contents())["a.txt"], "version 5");

  rig.now += 5 * DAY;
  await rig.write("a.txt", "later");
  await rig.take("later");
  rig.now += 3 * DAY;
  const report = await prune(rig.store);
  assert.deepEqual(
    (await rig.files.list()).map(({ why }) => why),
    ["later"],
  );
  assert.ok(report.checkpoints >= 2 && report.projects === 0);
  await rig.write("a.txt", "after the clean-up");
  assert.ok(await rig.take(), "the store goes on");
  rig.now += 8 * DAY;
  await prune(rig.store);
  assert.deepEqual(await readProjects(rig.store), []);
  assert.equal(await storedBytes(rig.store), 0);
  assert.ok(await rig.take(), "and begins again after everything was removed");
});

test("the checkpoints of a folder that is gone go with it", async (t) => {
  const rig = await checkpointRig(t, { "a.txt": "1" });
  await rig.take();
  await rm(rig.root, { recursive: true });
  rig.limits = { ...rig.limits, delete_orphans: false };
  assert.equal((await prune(rig.store)).projects, 0);
  rig.limits = { ...rig.limits, delete_orphans: true };
  assert.equal((await prune(rig.store)).projects, 1);
});

test("over the size limit the oldest go first", async (t) => {
  const rig = await checkpointRig(t);
  rig.limits = { ...rig.limits, max_file_size_mb: 5, max_total_size_mb: 4 };
  for (let n = 0; n < 4; n++) {
    await rig.write("noise.bin", randomBytes(1_500_000));
    await rig.take(`change ${n}`);
  }
  const report = await prune(rig.store);
  assert.ok(report.bytesBefore > 4 * 1024 * 1024 && report.bytesAfter <= 4 * 1024 * 1024);
  const left = (await rig.files.list()).map(({ why }) => why);
  assert.ok(left.length >= 1 && left[0] === "change 3", left.join());
  await rig.files.restore(await rig.files.find(String(left.length)), {});
});

test("sessions that take a checkpoint of one project at once share it", async (t) => {
  const rig = await checkpointRig(t, Object.fromEntries(Array.from({ length: 50 }, (_, n) => [`${n}.txt`, `${n}`])));
  const others = Array.from({ length: 4 }, () => storeAt(rig.home, () => rig));
  await Promise.all([...others.map((store) => store.take(rig.root, { why: "together" })), rig.take()]);
  const list = await rig.files.list();
  assert.equal(list.length, 1, "the files were the same for all");
  assert.equal(
    execFileSync("git", ["--git-dir", rig.store.git.store, "fsck", "--strict"], { encoding: "utf8", stdio: "pipe" }),
    "",
  );
});

const support = fileURLToPath(new URL("../../test/support/checkpoint-taker.ts", import.meta.url));

test("a process that is killed in the middle costs its own checkpoint and nothing else", async (t) => {
  const rig = await checkpointRig(
    t,
    Object.fromEntries(Array.from({ length: 300 }, (_, n) => [`d${n % 7}/${n}.txt`, `text ${n}`.repeat(50)])),
  );
  await rig.take("the first");
  for (const delay of oneOf([0, 15, 40, 80], "checkpoint kills")) {
    const child = spawn(process.execPath, [support, rig.home, rig.root], { stdio: ["ignore", "pipe", "ignore"] });
    await new Promise((resolve) => child.stdout.once("data", resolve));
    await new Promise((resolve) => setTimeout(resolve, delay));
    child.kill("SIGKILL");
    await new Promise((resolve) => child.once("close", resolve));
  }
  await rig.write("d0/0.txt", "afterwards");
  const before = await rig.contents();
  assert.ok(await rig.take("afterwards"));
  await rig.write("d0/0.txt", "spoilt");
  await rig.files.restore(await rig.files.find("1"), {});
  assert.deepEqual(await rig.contents(), before);
  execFileSync("git", ["--git-dir", rig.store.git.store, "fsck", "--strict"], { stdio: "pipe" });

  const indexes = join(rig.store.git.store, "indexes");
  const long = new Date(Date.now() - DAY);
  for (const name of await readdir(indexes)) if (name.includes(".")) await utimes(join(indexes, name), long, long);
  await prune(rig.store);
  assert.deepEqual(await readdir(indexes), [hashOf(rig.root)], "what the dead left behind is swept away");
});

test("contents that were cleaned away under an index are copied anew", async (t) => {
  const rig = await checkpointRig(t, { "a.txt": "1" });
  await rig.take();
  const { store } = rig.store.git;
  await rm(join(store, "refs", "hermes"), { recursive: true });
  for (const name of await readdir(join(store, "objects")))
    if (name.length === 2) await rm(join(store, "objects", name), { recursive: true });
  assert.ok(await rig.take());
});

test("without git nothing is made and the reason is said", async (t) => {
  const rig = await checkpointRig(t, { "a.txt": "1" });
  const store = new CheckpointStore({ ...rig.store.options, searchPath: "/nowhere" });
  await assert.rejects(store.take(rig.root, { why: "x" }), GitMissingError);
  assert.deepEqual(await new Rollback(store, { root: rig.root, sessionId: "s", on: true }).list(), []);
});
