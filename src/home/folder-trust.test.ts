import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdir, mkdtemp, realpath, rm, stat, symlink, writeFile } from "node:fs/promises";
import { homedir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { promisify } from "node:util";
import { FolderTrust } from "./folder-trust.ts";
import { homePaths } from "./paths.ts";

const at = new Date("2026-01-02T03:04:05Z");
const trusted = { by: "command", lookOnly: false, at };

/** Below the real home: everything below the temp folder would be fine too, but the temp folder itself is one of the cases. */
async function world(t: TestContext) {
  const osHome = await realpath(await mkdtemp(join(homedir(), ".hermes-trust-test-")));
  t.after(() => rm(osHome, { recursive: true, force: true }));
  const paths = homePaths(join(osHome, ".hermes"), join(osHome, ".hermes"), "default");
  await mkdir(join(osHome, ".hermes"));
  const folder = async (...parts: string[]) => {
    await mkdir(join(osHome, ...parts), { recursive: true });
    return join(osHome, ...parts);
  };
  return { osHome, paths, folder, folders: new FolderTrust(paths, osHome) };
}

test("a folder nobody decided about is unknown; decided for, it is trusted with everything below it", async (t) => {
  const { folder, folders } = await world(t);
  const project = await folder("a", "b");
  assert.deepEqual(folders.standing(project), { folder: project, standing: "unknown", decidedAt: null });
  assert.equal(await folders.decide(join(project, ".."), trusted), await folder("a"));
  assert.equal(folders.isTrusted(project), true);
  assert.equal(folders.isTrusted(await folder("ab")), false);
  assert.equal((await stat(folders.file)).mode & 0o777, 0o600);
});

test("the nearest decision counts", async (t) => {
  const { folder, folders } = await world(t);
  const [outer, inner] = [await folder("a"), await folder("a", "b")];
  await folders.decide(outer, trusted);
  await folders.decide(inner, { ...trusted, lookOnly: true });
  assert.deepEqual(
    [outer, inner].map((path) => folders.standing(path).standing),
    ["trusted", "look only"],
  );
  assert.equal(await folders.remove(inner), inner);
  assert.equal(folders.isTrusted(inner), true);
  assert.equal(await folders.remove(inner), null);
});

test("the repository is what is decided about", async (t) => {
  const { folder, folders } = await world(t);
  const root = await folder("repo");
  const below = await folder("repo", "src");
  await folder("repo", ".git");
  assert.equal(folders.standing(below).folder, root);
});

test("a link is trusted for where it leads, and a link into a trusted folder's name is not", async (t) => {
  const { osHome, folder, folders } = await world(t);
  const [good, bad] = [await folder("good"), await folder("bad")];
  await folders.decide(good, trusted);
  await symlink(good, join(osHome, "way"));
  assert.equal(folders.isTrusted(join(osHome, "way")), true);
  await symlink(bad, join(good, "inside"));
  assert.equal(folders.isTrusted(join(good, "inside")), false);
});

test("a worktree is trusted with its repository; a .git file that only claims to be one is not", async (t) => {
  const { folder, folders } = await world(t);
  const [main, side, liar] = [await folder("main"), join(await folder("x"), "side"), await folder("liar")];
  const env = { PATH: process.env.PATH ?? "", HOME: main, GIT_CONFIG_NOSYSTEM: "1" };
  const git = (...args: string[]) =>
    promisify(execFile)("git", ["-c", "user.name=a", "-c", "user.email=a@x", ...args], { cwd: main, env });
  await git("init", "-q");
  await git("commit", "-q", "--allow-empty", "-m", "x");
  await git("worktree", "add", "-q", side);
  await writeFile(join(liar, ".git"), `gitdir: ${main}/.git/worktrees/side\n`);
  await folders.decide(main, trusted);
  assert.equal(folders.isTrusted(side), true);
  assert.equal(folders.isTrusted(liar), false);
});

test("folders that hold everything are never trusted as a whole, and not asked about", async (t) => {
  const { osHome, folders } = await world(t);
  for (const wide of ["/", osHome, join(osHome, ".."), "/tmp", "/var/tmp", join(osHome, ".hermes")]) {
    assert.equal(folders.standing(wide).standing, "never", wide);
    await assert.rejects(folders.decide(wide, trusted), /too broad/);
  }
});

test("the workspace of the home is trusted", async (t) => {
  const { folder, folders } = await world(t);
  assert.equal(folders.isTrusted(await folder(".hermes", "workspace", "job")), true);
});

const damaged = ["", "[]", "{", "null", '{"/x": 1}', '{"relative": {"at": "", "by": ""}}', '"x"'];
for (const text of damaged) {
  test(`a file that says ${JSON.stringify(text)} trusts nobody and can be written again`, async (t) => {
    const { folder, folders } = await world(t);
    const project = await folder("a");
    await writeFile(folders.file, text);
    assert.equal(folders.isTrusted(project), false);
    await folders.decide(project, trusted);
    assert.equal(folders.isTrusted(project), true);
  });
}
