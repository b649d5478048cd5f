import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { lstat, mkdir, mkdtemp, readdir, readFile, realpath, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { promisify } from "node:util";
import { openWorktree, WorktreeError } from "./worktree.ts";

const environment = { PATH: process.env.PATH ?? "", HOME: "/nowhere", GIT_CONFIG_NOSYSTEM: "1" };

async function repository(t: TestContext) {
  const base = await realpath(await mkdtemp(join(tmpdir(), "hermes-worktree-")));
  t.after(() => rm(base, { recursive: true, force: true }));
  const root = join(base, "project");
  await mkdir(root);
  const git = async (args: readonly string[], cwd = root) => {
    const who = ["-c", "user.name=t", "-c", "user.email=t@localhost"];
    return (await promisify(execFile)("git", [...who, ...args], { cwd, env: environment })).stdout.trimEnd();
  };
  const write = async (name: string, text: string) => writeFile(join(root, name), text);
  await git(["init", "-q", "-b", "main"]);
  await write(".gitignore", "node_modules/\nsecret.env\n");
  await write("a.txt", "a\n");
  await git(["add", "."]);
  await git(["commit", "-qm", "first"]);
  let count = 0;
  const openHere = (cwd = root) => openWorktree(cwd, { environment, newName: () => `0000000${count++}` });
  const left = async () => (await readdir(join(root, ".worktrees")).catch(() => [])).sort();
  return { base, root, git, write, openHere, left };
}

test("a worktree of its own, on a branch of its own, gone again when nothing was done", async (t) => {
  const { root, git, openHere, left } = await repository(t);
  await mkdir(join(root, "sub"));
  const tree = await openHere(join(root, "sub"));
  assert.equal(tree.path, join(root, ".worktrees", "hermes-00000000"));
  assert.equal(tree.cwd, tree.path); // git knows no empty folder
  assert.equal(await git(["branch", "--show-current"], tree.path), "hermes/hermes-00000000");
  assert.equal(await readFile(join(tree.path, "a.txt"), "utf8"), "a\n");
  assert.match(await readFile(join(root, ".gitignore"), "utf8"), /^node_modules\/\nsecret\.env\n\.worktrees\/\n$/);
  assert.equal(await tree.leave(), null);
  assert.deepEqual(await left(), []);
  assert.equal(await git(["branch", "--list", "hermes/*"]), "");
});

test("what would be lost is kept, at the end and by every later start", async (t) => {
  const { git, root, openHere, left } = await repository(t);
  const changed = await openHere();
  await writeFile(join(changed.path, "a.txt"), "changed\n");
  assert.match((await changed.leave()) ?? "", /changes that are not committed/);
  const fresh = await openHere();
  await writeFile(join(fresh.path, "new.txt"), "new\n");
  assert.match((await fresh.leave()) ?? "", /not committed/);
  const committed = await openHere();
  await writeFile(join(committed.path, "b.txt"), "b\n");
  await git(["add", "."], committed.path);
  await git(["commit", "-qm", "work"], committed.path);
  assert.match((await committed.leave()) ?? "", /1 commit is in no other branch/);
  const last = await openHere();
  assert.equal(await last.leave(), null);
  assert.deepEqual(await left(), ["hermes-00000000", "hermes-00000001", "hermes-00000002"]);

  // Once the commit is in another branch, the next start takes it away, and its branch.
  await git(["merge", "-q", "hermes/hermes-00000002"], root);
  await (await openHere()).leave();
  assert.deepEqual(await left(), ["hermes-00000000", "hermes-00000001"]);
  assert.doesNotMatch(await git(["branch", "--list", "hermes/*"]), /00000002/);
});

test("a worktree in use is not taken away by another start, one of a dead process is", async (t) => {
  const { git, openHere, left } = await repository(t);
  const inUse = await openHere();
  const other = await openHere();
  assert.deepEqual(await left(), ["hermes-00000000", "hermes-00000001"]);
  const dead = JSON.stringify(process.pid); // its own lock, rewritten as that of a process that is gone
  const reason = (await git(["worktree", "list", "--porcelain"])).match(/^locked (.*)$/m)?.[1] ?? "";
  assert.ok(reason.endsWith(dead));
  await git(["worktree", "unlock", inUse.path]);
  await git(["worktree", "lock", "--reason", reason.replace(dead, "4194999"), inUse.path]);
  const next = await openHere();
  assert.deepEqual(await left(), ["hermes-00000001", "hermes-00000002"]);
  // A lock of somebody else's stays, whatever it says.
  await git(["worktree", "unlock", other.path]);
  await git(["worktree", "lock", "--reason", "mine", other.path]);
  await openHere();
  assert.deepEqual(await left(), ["hermes-00000001", "hermes-00000002", "hermes-00000003"]);
  await next.leave();
});

test(".worktreeinclude copies files and links folders; what leads out of the repository is refused", async (t) => {
  const { base, root, write, openHere } = await repository(t);
  await write("secret.env", "K=1\n");
  await mkdir(join(root, "node_modules"));
  await writeFile(join(base, "outside.txt"), "outside\n");
  await symlink(join(base, "outside.txt"), join(root, "link.txt"));
  await write(
    ".worktreeinclude",
    "# what git leaves out\n*.env\nnode_modules/\n../outside.txt\n/etc/hostname\nlink.txt\n.git\na.txt\n",
  );
  const tree = await openHere();
  assert.equal(await readFile(join(tree.path, "secret.env"), "utf8"), "K=1\n");
  assert.ok((await lstat(join(tree.path, "node_modules"))).isSymbolicLink());
  assert.deepEqual(
    tree.warnings.map((line) => /: (\S+) points/.exec(line)?.[1]),
    ["../outside.txt", "/etc/hostname", "link.txt", ".git"],
  );
  await assert.rejects(lstat(join(tree.path, "link.txt")));
  // The links are ours: they keep nobody from tidying up.
  assert.equal(await tree.leave(), null);
  assert.ok((await lstat(join(root, "node_modules"))).isDirectory());
});

test("outside of a repository there is none", async (t) => {
  const { base } = await repository(t);
  await assert.rejects(openWorktree(base, { environment, newName: () => "00000000" }), WorktreeError);
});

test("hooks of the repository do not run, and a lock of another machine is not judged here", async (t) => {
  const { root, git, openHere, left } = await repository(t);
  const hook = join(root, ".git", "hooks", "post-checkout");
  await writeFile(hook, `#!/bin/sh\ntouch ${join(root, "ran")}\n`, { mode: 0o755 });
  const tree = await openHere();
  await assert.rejects(lstat(join(root, "ran")));
  await git(["worktree", "unlock", tree.path]);
  await git(["worktree", "lock", "--reason", "hermes elsewhere 4194999", tree.path]);
  await (await openHere()).leave();
  assert.deepEqual(await left(), ["hermes-00000000"]);
});

test("a worktree that is kept keeps its links", async (t) => {
  const { root, write, openHere } = await repository(t);
  await mkdir(join(root, "node_modules"));
  await write(".worktreeinclude", "node_modules\n");
  const tree = await openHere();
  await writeFile(join(tree.path, "a.txt"), "changed\n");
  assert.match((await tree.leave()) ?? "", /not committed/);
  assert.ok((await lstat(join(tree.path, "node_modules"))).isSymbolicLink());
});
