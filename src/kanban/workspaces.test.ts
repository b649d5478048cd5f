import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, readFile, realpath, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { keepCopy } from "./attachments.ts";
import { openWorkspace, realPlace, removeScratch } from "./workspaces.ts";

const posix = { skip: process.platform === "win32" };

async function place(t: TestContext) {
  const root = await realpath(await mkdtemp(join(tmpdir(), "hermes-workspace-")));
  t.after(() => rm(root, { recursive: true, force: true }));
  const repository = join(root, "repo");
  const git = (...args: string[]) =>
    execFileSync("git", ["-c", "user.name=a", "-c", "user.email=a@b", ...args], {
      cwd: repository,
      encoding: "utf8",
    }).trim();
  await mkdir(repository);
  git("init", "-q", "-b", "main");
  await writeFile(join(repository, "README.md"), "hello\n");
  git("add", "-A");
  git("commit", "-qm", "first");
  const options = { workspaces: join(root, "workspaces"), defaultFolder: null, searchPath: process.env.PATH ?? "" };
  const open = (kind: string, path: string | null, more: { branch?: string; folder?: string } = {}) =>
    openWorkspace(
      { id: "t_0000aaaa", workspace_kind: kind, workspace_path: path, branch_name: more.branch ?? null },
      { ...options, defaultFolder: more.folder ?? null },
    );
  return { root, repository, git, open, workspaces: options.workspaces };
}

test("scratch and folders are made, and found again", async (t) => {
  const { root, open, workspaces } = await place(t);
  const scratch = { path: join(workspaces, "t_0000aaaa"), branch: null };
  assert.deepEqual([await open("scratch", null), await open("scratch", "/elsewhere")], [scratch, scratch]);
  assert.deepEqual(await open("dir", join(root, "a", "b")), { path: join(root, "a", "b"), branch: null });
  assert.ok(existsSync(join(root, "a", "b")));
  assert.equal((await open("dir", null, { folder: root })).path, root);
  await assert.rejects(open("dir", null), /names no folder, and the board has none.*set-default-workdir/);
  await assert.rejects(open("dir", "here"), /does not begin with/);
});

test("a worktree is made beside the repository's own files, and every attempt works in the same one", async (t) => {
  const { repository, git, open, root } = await place(t);
  const path = join(repository, ".worktrees", "t_0000aaaa");
  await writeFile(join(repository, ".git", "hooks", "post-checkout"), `#!/bin/sh\ntouch "${join(root, "ran")}"\n`, {
    mode: 0o755,
  });
  const made = await open("worktree", repository);
  assert.ok(!existsSync(join(root, "ran")), "no hook of the repository runs for it");
  assert.deepEqual(made, { path, branch: "wt/t_0000aaaa" });
  assert.equal(await readFile(join(path, "README.md"), "utf8"), "hello\n");
  await writeFile(join(path, "work"), "mine");
  assert.deepEqual(await open("worktree", repository), made);
  assert.deepEqual(await open("worktree", path), made, "its own path is what the row holds from now on");
  assert.equal(await readFile(join(path, "work"), "utf8"), "mine");
  assert.equal(git("status", "--porcelain"), "", "nothing of it shows in the repository");
  assert.equal(git("branch", "--show-current"), "main");
  // Somebody deleted it: its branch is still there.
  execFileSync("git", [
    "-C",
    path,
    "-c",
    "user.name=a",
    "-c",
    "user.email=a@b",
    "commit",
    "-q",
    "--allow-empty",
    "-m",
    "kept",
  ]);
  await rm(path, { recursive: true });
  assert.deepEqual(await open("worktree", path), made);
  assert.match(execFileSync("git", ["-C", path, "log", "--format=%s"], { encoding: "utf8" }), /kept/);
  assert.deepEqual(await open("worktree", join(root, "repo", "side"), { branch: "topic" }), {
    ...{ path: join(repository, "side"), branch: "topic" },
  });
  assert.equal((await open("worktree", null, { folder: repository })).path, path);
});

test("what is no repository, or no worktree, is refused", async (t) => {
  const { root, repository, open } = await place(t);
  await assert.rejects(open("worktree", join(root, "nowhere")), /is not in a git repository/);
  await mkdir(join(repository, "src"));
  await assert.rejects(
    open("worktree", join(repository, "src")),
    /is a folder in a repository; name the repository itself/,
  );
  await mkdir(join(repository, ".worktrees", "t_0000aaaa"), { recursive: true });
  await assert.rejects(open("worktree", repository), /is there already, and no worktree/);
  await assert.rejects(open("worktree", null), /names no folder/);
});

test("no link leads a worker to a folder that is not its card's", async (t) => {
  const { root, repository, open, workspaces } = await place(t);
  const elsewhere = join(root, "elsewhere");
  await mkdir(join(elsewhere, "t_0000aaaa"), { recursive: true });
  await mkdir(workspaces);
  await symlink(elsewhere, join(workspaces, "t_0000aaaa"));
  await assert.rejects(open("scratch", null), /t_0000aaaa is a link/);
  await symlink(elsewhere, join(repository, ".worktrees"));
  await assert.rejects(open("worktree", repository), /leads elsewhere, by a link/);
  await rm(join(repository, ".worktrees"));
  await mkdir(join(repository, ".worktrees"));
  await symlink(join(root, "nowhere"), join(repository, ".worktrees", "t_0000aaaa"));
  await assert.rejects(open("worktree", repository), /leads elsewhere, by a link/);
  assert.ok(!existsSync(join(root, "nowhere")));
  assert.equal(await realPlace(join(repository, ".worktrees", "t_0000aaaa", "deep", "..")), join(root, "nowhere"));
  await symlink(join(root, "b"), join(root, "a"));
  await symlink(join(root, "a"), join(root, "b"));
  await assert.rejects(realPlace(join(root, "a", "x")), /from link to link/);
});

test("a file is kept as it lay in its folder when it was read, and nothing else is", posix, async (t) => {
  const { root } = await place(t);
  const [folder, kept] = [join(root, "work"), { attachments: join(root, "attachments") }];
  await mkdir(folder);
  await writeFile(join(folder, "made.txt"), "made");
  await writeFile(join(root, "secret"), "secret");
  await symlink(join(root, "secret"), join(folder, "exchanged.txt"));
  execFileSync("mkfifo", [join(folder, "pipe")]);
  const copy = (name: string, within?: string) => keepCopy(kept, "t_0000aaaa", join(folder, name), within);
  const { stored_path, size } = await copy("made.txt", folder);
  assert.deepEqual([await readFile(stored_path, "utf8"), size], ["made", 4]);
  await assert.rejects(copy("exchanged.txt", folder), /no longer lies in/);
  await assert.rejects(copy("pipe"), /is no file/);
  await assert.rejects(copy("gone"), /cannot be read/);
  assert.equal(await readFile((await copy("exchanged.txt")).stored_path, "utf8"), "secret", "a person may name a link");
});

test("only the scratch folder of a card is ever removed", async (t) => {
  const { root, workspaces, repository } = await place(t);
  const mine = join(workspaces, "t_0000aaaa");
  await mkdir(join(mine, "deep"), { recursive: true });
  await symlink(repository, join(workspaces, "t_0000bbbb"));
  await writeFile(join(workspaces, "t_0000cccc"), "a file");
  await mkdir(join(workspaces, "notes"));
  for (const id of ["t_0000bbbb", "t_0000cccc", "t_0000dddd", "notes", "..", "../repo", ""])
    assert.equal(await removeScratch(workspaces, id), false, id);
  assert.ok(existsSync(join(repository, "README.md")) && existsSync(join(workspaces, "notes")));
  // A folder of workspaces that is a link itself is where it leads to.
  await symlink(workspaces, join(root, "linked"));
  assert.equal(await removeScratch(join(root, "linked"), "t_0000aaaa"), true);
  assert.ok(!existsSync(mine));
});
