import assert from "node:assert/strict";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { currentBranch } from "./git-pointer.ts";

test("the branch is read from the files of a repository or a worktree, from any folder in it", async () => {
  const root = await mkdtemp(join(tmpdir(), "hermes-branch-"));
  try {
    const [repository, worktree] = [join(root, "repository"), join(root, "worktree")];
    await mkdir(join(repository, ".git", "worktrees", "w"), { recursive: true });
    await mkdir(join(repository, "deep", "down"), { recursive: true });
    await mkdir(worktree);
    await writeFile(join(repository, ".git", "HEAD"), "ref: refs/heads/feature/one\n");
    await writeFile(join(repository, ".git", "worktrees", "w", "HEAD"), `${"0123456789".repeat(4)}\n`);
    await writeFile(join(worktree, ".git"), `gitdir: ${join(repository, ".git", "worktrees", "w")}\n`);
    assert.equal(currentBranch(join(repository, "deep", "down")), "feature/one");
    assert.equal(currentBranch(worktree), "0123456");
    assert.equal(currentBranch(root), null);
  } finally {
    await rm(root, { recursive: true, force: true });
  }
});
