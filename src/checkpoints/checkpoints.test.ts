import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { chmod, lstat, mkdir, readdir, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { checkpointRig, contentsOf } from "../../test/support/checkpoint-store.ts";
import type { OpenRequest } from "../agent/open-request.ts";
import type { Environment } from "../sandbox/environment.ts";
import { openCheckpointPort } from "./port.ts";
import { openRollback } from "./rollback.ts";
import { hashOf } from "./store.ts";

test("files go back as they were, byte for byte, whatever a project's attributes say", async (t) => {
  const rig = await checkpointRig(t, {
    "a.txt": "one\r\ntwo\r\n",
    "deep/er/b.txt": "b\n",
    ".gitattributes": "* text=auto eol=lf\n*.bin filter=lfs working-tree-encoding=UTF-16\n*.txt ident\n",
    "x.bin": "$Id$ \xff\xfe\0",
    "ünï code\n\\name": "odd name",
  });
  await rig.write("run.sh", "#!/bin/sh\n");
  await chmod(join(rig.root, "run.sh"), 0o755);
  await symlink("a.txt", join(rig.root, "link"));
  const before = await rig.contents();
  assert.ok(await rig.take());

  await rig.write("a.txt", "changed");
  await rig.write("x.bin", "changed");
  await rm(join(rig.root, "deep"), { recursive: true });
  await rig.write("deep", "a file where a directory was");
  await rm(join(rig.root, "link"));
  await symlink("/etc/passwd", join(rig.root, "link"));
  await chmod(join(rig.root, "run.sh"), 0o644);
  await rig.write("ünï code\n\\name", "changed");
  const report = await rig.files.restore(await rig.files.find("1"), {});
  assert.deepEqual(await rig.contents(), before);
  assert.equal((await lstat(join(rig.root, "run.sh"))).mode & 0o777, 0o755);
  assert.equal(report.restored.length, 6);
  assert.deepEqual(report.kept, []);

  await rig.files.restore(await rig.files.find(report.before?.slice(0, 6) ?? ""), { removeNew: true });
  const undone = await rig.contents();
  assert.equal(undone["a.txt"], "changed");
  assert.equal(undone.deep, "a file where a directory was");
  assert.equal(undone.link, "-> /etc/passwd");
});

test("going back where nothing has to change makes no checkpoint, so that numbers stay; unknown names are refused", async (t) => {
  const rig = await checkpointRig(t, { "a.txt": "one", "b/c.txt": "c" });
  await rig.take();
  await rig.write("a.txt", "two");
  await rig.write("new.txt", "new");
  const first = await rig.files.find("1");
  assert.deepEqual(await rig.files.restore(first, { file: "b" }), {
    restored: [],
    removed: [],
    created: [],
    kept: [],
    before: null,
  });
  assert.deepEqual((await rig.files.restore(first, { file: "new.txt" })).created, ["new.txt"]);
  await assert.rejects(
    rig.files.restore(first, { file: "nothing.txt" }),
    /nothing\.txt is not in checkpoint [0-9a-f]{7}, nor/,
  );
  assert.equal((await rig.files.list()).length, 1);
  assert.deepEqual((await rig.files.restore(await rig.files.find("1"), {})).restored, ["a.txt"]);
});

test("the user's own repository is not touched: index, refs, settings and hooks are byte for byte what they were", async (t) => {
  const rig = await checkpointRig(t, { "a.txt": "one\n", ".gitignore": "ignored/\n" });
  const git = (...args: string[]) =>
    execFileSync("git", ["-c", "user.name=U", "-c", "user.email=u@x", ...args], { cwd: rig.root, stdio: "pipe" });
  git("init", "-q");
  git("add", "-A");
  git("commit", "-qm", "first");
  await rig.write("a.txt", "staged\n");
  git("add", "a.txt");
  await rig.write("a.txt", "not staged\n");
  for (const hook of ["pre-commit", "post-checkout", "post-index-change", "reference-transaction", "pre-auto-gc"]) {
    await writeFile(join(rig.root, ".git", "hooks", hook), `#!/bin/sh\necho ${hook} >> ${rig.root}/../hooked\n`);
    await chmod(join(rig.root, ".git", "hooks", hook), 0o755);
  }
  git("config", "core.fsmonitor", `touch ${rig.root}/../hooked`);
  git("config", "filter.x.clean", `touch ${rig.root}/../hooked`);
  await rig.write(".gitattributes", "* filter=x\n");
  const fingerprint = async () =>
    createHash("sha256")
      .update(JSON.stringify(await contentsOf(join(rig.root, ".git"), [])))
      .digest("hex");
  const before = await fingerprint();

  await rig.take();
  await rig.write("a.txt", "third\n");
  await rig.take();
  await rig.files.diff(await rig.files.find("2"));
  await rig.files.restore(await rig.files.find("2"), {});
  const { prune } = await import("./prune.ts");
  await prune(rig.store);
  assert.equal(await fingerprint(), before);
  assert.equal((await rig.contents())["a.txt"], "not staged\n");
  assert.deepEqual((await readdir(join(rig.root, ".."))).sort(), ["home", "project"]);
});

test("what can be made again, what is ignored and what is secret is in no checkpoint", async (t) => {
  const rig = await checkpointRig(t, {
    "kept.txt": "kept",
    ".gitignore": "out/\n*.log\n",
    "out/x": "made",
    "a.log": "log",
    "node_modules/m/index.js": "module",
    ".env": "API=canary-in-env-file",
    ".env.example": "API=",
    "sub/server.key": "-----BEGIN PRIVATE KEY-----",
    "has-secret.txt": "the key is canary-known-value-1234",
  });
  rig.secrets.push("canary-known-value-1234");
  const id = await rig.take();
  const [checkpoint] = await rig.files.list();
  const { readTree } = await import("./store.ts");
  const kept = [...(await readTree(rig.store.git, checkpoint?.tree ?? "")).keys()];
  assert.deepEqual(kept.sort(), [".env.example", ".gitignore", "kept.txt"]);
  assert.deepEqual(checkpoint?.leftOut, [{ path: "has-secret.txt", why: "holds a secret" }]);
  assert.equal(checkpoint?.id, id);

  await rig.store.take(rig.root, {
    why: "an ignored file is about to be changed",
    include: ["a.log", ".env", "../x", ".git/config"],
  });
  await rig.write("a.log", "overwritten");
  await rig.write(".env", "changed");
  await rig.files.restore(await rig.files.find("1"), {});
  const now = await rig.contents();
  assert.equal(now["a.log"], "log", "what a tool names is kept although it is ignored");
  assert.equal(now[".env"], "changed");
});

test("files created since are listed, and removed only when asked; one file can go back alone", async (t) => {
  const rig = await checkpointRig(t, { "a.txt": "1", "b.txt": "1" });
  await rig.take();
  await rig.write("a.txt", "2");
  await rig.write("b.txt", "2");
  await rig.write("new/one.txt", "new");
  const only = await rig.files.restore(await rig.files.find("1"), { file: "./a.txt" });
  assert.deepEqual([only.restored, only.created], [["a.txt"], []]);
  assert.equal((await rig.contents())["b.txt"], "2");
  const all = await rig.files.restore(await rig.files.find("2"), {});
  assert.deepEqual([all.restored, all.created, all.removed], [["b.txt"], ["new/one.txt"], []]);
  assert.equal((await rig.contents())["new/one.txt"], "new");
  const id = (await rig.files.list()).at(-1)?.id ?? "";
  const clean = await rig.files.restore(await rig.files.find(id), { removeNew: true });
  assert.deepEqual(clean.removed, ["new/one.txt"]);
  assert.deepEqual(Object.keys(await rig.contents()).sort(), ["a.txt", "b.txt"]);
  assert.equal(await lstat(join(rig.root, "new")).catch(() => null), null, "no empty folder stays behind");
});

test("a large file is never removed or overwritten, since it could not be copied first", async (t) => {
  const rig = await checkpointRig(t, { "big.bin": "small for now", "other.txt": "1" });
  await rig.write("later-small.bin", Buffer.alloc(1_200_000, "x"));
  await rig.take();
  await rig.write("big.bin", Buffer.alloc(1_200_000, "y"));
  await rig.write("later-small.bin", "small");
  await rig.write("other.txt", "2");
  const report = await rig.files.restore(await rig.files.find("1"), { removeNew: true });
  assert.deepEqual(report.restored, ["other.txt"]);
  assert.deepEqual(report.removed, []);
  assert.match(report.kept[0]?.why ?? "", /could not be copied first/);
  const now = await rig.contents();
  assert.equal(now["big.bin"]?.length, 1_200_000);
  assert.equal(now["later-small.bin"], "small");
});

test("a link on the way leads no restored file out of the project", async (t) => {
  const rig = await checkpointRig(t, { "dir/a.txt": "inside" });
  await rig.take();
  const outside = join(rig.root, "..", "outside");
  await mkdir(outside);
  await writeFile(join(outside, "a.txt"), "outside");
  await rm(join(rig.root, "dir"), { recursive: true });
  await symlink(outside, join(rig.root, "dir"));
  await rig.files.restore(await rig.files.find("1"), {});
  assert.equal(await readFile(join(outside, "a.txt"), "utf8"), "outside");
  assert.equal((await rig.contents())["dir/a.txt"], "inside");
});

test("nothing is copied twice: an unchanged project makes no checkpoint", async (t) => {
  const rig = await checkpointRig(t, { "a.txt": "1" });
  assert.ok(await rig.take());
  assert.equal(await rig.take(), null);
  assert.equal((await rig.files.list()).length, 1);
  const record = JSON.parse(await readFile(rig.store.projectFile(hashOf(rig.root)), "utf8"));
  assert.deepEqual(Object.keys(record), ["workdir", "created_at", "last_touch"]);
  assert.equal(record.workdir, rig.root);
});

test("a file that changed within the second of its last copy, and kept its size, is copied all the same", async (t) => {
  const rig = await checkpointRig(t);
  const second = () => Math.floor(Date.now() / 1000);
  const next = () => new Promise((resolve) => setTimeout(resolve, 1000 - (Date.now() % 1000)));
  // A machine that is too slow for two steps in one second cannot meet the trap; the last try counts as it is.
  for (let tries = 0; tries < 3; tries++) {
    await next();
    const start = second();
    await rig.write("a.txt", `one ${tries}`);
    await rig.take("first");
    await rig.write("a.txt", `two ${tries}`);
    if (second() === start) break;
  }
  await next();
  await rig.take("second");
  const [newest] = await rig.files.list();
  assert.equal(newest?.why, "second");
});

const bad = [
  { name: "0", says: /not a checkpoint; use a number/ },
  { name: "99", says: /not a checkpoint; use a number/ },
  { name: "abc", says: /not a checkpoint; use a number/ },
  { name: "--output=x", says: /not a checkpoint; use a number/ },
  { name: "beef", says: /No checkpoint of .* matches beef/ },
] as const;
test("a checkpoint has a number or an id of hex digits, and a file lies inside", async (t) => {
  const rig = await checkpointRig(t, { "a.txt": "1" });
  await assert.rejects(rig.files.find("1"), /No checkpoints/);
  await rig.take();
  for (const { name, says } of bad) await assert.rejects(rig.files.find(name), says, name);
  const newest = await rig.files.find("1");
  for (const file of ["/etc/passwd", "../x", "a/../../x"])
    assert.throws(() => rig.files.restore(newest, { file }), /must be a path inside/, file);
});

test("a diff tells what changed since, new and deleted files too", async (t) => {
  const rig = await checkpointRig(t, { "a.txt": "one\ntwo\n", "gone.txt": "bye\n" });
  await rig.take();
  const same = await rig.files.diff(await rig.files.find("1"));
  assert.equal(same.summary, "");
  await rig.write("a.txt", "one\n2\n");
  await rig.write("new.txt", "new\n");
  await rm(join(rig.root, "gone.txt"));
  const { summary, patch } = await rig.files.diff(await rig.files.find("1"));
  assert.match(summary, /3 files changed/);
  assert.match(patch, /-two\n\+2/);
  assert.match(patch, /deleted file mode/);
  assert.match(
    (await rig.files.diff(await rig.files.find("1"), "new.txt")).patch,
    /^diff --git a\/new.txt[\s\S]*\+new$/,
  );
  assert.equal((await rig.files.list()).length, 1, "looking makes no checkpoint");
});

for (const kind of ["docker", "ssh"]) {
  test(`where files are in ${kind}, /rollback says that there is nothing to go back to, and why`, async () => {
    const environment = { kind, cwd: "/root" } as Environment; // all that is asked of it
    const place = { environment, sessionId: "s", on: true } as Parameters<typeof openRollback>[0]; // refused before the rest is used
    await assert.rejects(
      openRollback(place),
      new RegExp(`copies of files on this machine; .* work elsewhere \\(${kind}\\)\\. Use git there\\.`),
    );
    assert.equal(openCheckpointPort({} as OpenRequest, environment), null); // not looked at
  });
}
