import assert from "node:assert/strict";
import { mkdir, mkdtemp, readdir, readFile, realpath, rm, stat, symlink, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { type TestContext, test } from "node:test";
import type { Channel } from "./backend.ts";
import { HomeSync } from "./home-sync.ts";
import { ScriptRunner } from "./scripts.ts";

async function rig(t: TestContext, { credentials = [] as readonly string[], same = false } = {}) {
  const root = await realpath(await mkdtemp(join(tmpdir(), "hermes-sync-")));
  t.after(() => rm(root, { recursive: true, force: true }));
  const here = join(root, "here");
  const there = same ? here : join(root, "there");
  const stateDir = join(root, "state");
  await mkdir(here);
  await mkdir(stateDir);
  const scripts: string[] = [];
  const broken = { at: "" };
  // The other machine is this one: a shell is all the channel needs to lead to.
  const channel: Channel = {
    launch: async (script) => {
      scripts.push(script);
      const cut = broken.at !== "" && script.includes(broken.at);
      return {
        program: "sh",
        args: ["-c", cut ? `${script.split("\n")[0]}\nexit 9` : script],
        env: { PATH: process.env.PATH ?? "" },
      };
    },
    recover: async ({ errors }) => {
      throw new Error(errors);
    },
  };
  const time = { now: 0 };
  const options = { scripts: new ScriptRunner(channel), here, there, stateDir, credentials, now: () => time.now };
  const put = async (base: string, path: string, text: string) => {
    await mkdir(dirname(join(base, path)), { recursive: true });
    await writeFile(join(base, path), text);
  };
  const read = (base: string, path: string) => readFile(join(base, path), "utf8").catch(() => null);
  return { sync: new HomeSync(options), here, there, time, put, read, scripts, broken };
}

test("skills, cache and named credentials arrive, and nothing else of the home", async (t) => {
  const { sync, here, there, put, read } = await rig(t, { credentials: ["token.json", "not-there.json"] });
  await put(here, "skills/a b/SKILL.md", "it's a skill\n");
  await put(here, "cache/x", "cached");
  await put(here, "token.json", "fake");
  await put(here, ".env", "K=fake");
  await symlink(join(here, ".env"), join(here, "skills/link"));
  await sync.send();
  assert.equal(await read(there, "skills/a b/SKILL.md"), "it's a skill\n");
  assert.deepEqual([await read(there, "cache/x"), await read(there, "token.json")], ["cached", "fake"]);
  assert.deepEqual((await readdir(there)).sort(), ["cache", "skills", "token.json"]);
  assert.deepEqual(await readdir(join(there, "skills")), ["a b"]);
  assert.equal((await stat(join(there, "token.json"))).mode & 0o077, 0);
});

test("changes are looked for every five seconds, and only they travel", async (t) => {
  const { sync, here, there, put, read, time, scripts } = await rig(t);
  await put(here, "skills/a", "1");
  await put(here, "skills/b", "2");
  await sync.send();
  await put(here, "skills/a", "one");
  await rm(join(here, "skills/b"));
  const before = scripts.length;
  time.now = 4999;
  await sync.send();
  assert.equal(scripts.length, before);
  time.now = 5000;
  await Promise.all([sync.send(), sync.send()]);
  assert.deepEqual([await read(there, "skills/a"), await read(there, "skills/b")], ["one", null]);
  time.now = 10_000;
  const settled = scripts.length;
  await sync.send();
  assert.equal(scripts.length, settled, "nothing changed, nothing runs there");
});

test("a delivery that breaks off changes nothing there, and the next one is whole", async (t) => {
  const { sync, here, there, put, read, broken } = await rig(t);
  await put(here, "skills/a", "1");
  broken.at = "cp -pR";
  await assert.rejects(sync.send());
  assert.equal(await read(there, "skills/a"), null);
  broken.at = "";
  await sync.send();
  assert.equal(await read(there, "skills/a"), "1");
});

test("what changed there comes back; of two changes the later one stays; nothing gets out of the home", async (t) => {
  const { sync, here, there, put, read } = await rig(t, { credentials: ["token.json"] });
  for (const path of [
    "skills/same",
    "skills/changed",
    "skills/both-later-here",
    "skills/both-later-there",
    "token.json",
  ])
    await put(here, path, "old");
  await sync.send();
  for (const path of [
    "skills/changed",
    "skills/both-later-here",
    "skills/both-later-there",
    "skills/new/SKILL.md",
    "token.json",
  ])
    await put(there, path, "from there");
  await put(there, "config.yaml", "approvals: {mode: off}");
  await put(here, "skills/both-later-here", "from here");
  await put(here, "skills/both-later-there", "from here");
  await utimes(join(there, "skills/both-later-here"), 1, 1);
  await utimes(join(here, "skills/both-later-there"), 1, 1);
  await mkdir(join(here, "../elsewhere"));
  await symlink(join(here, "../elsewhere"), join(here, "skills/away"));
  await put(there, "skills/away/file", "escaped");
  await sync.fetch();
  const now = Object.fromEntries(
    await Promise.all(
      ["same", "changed", "both-later-here", "both-later-there", "new/SKILL.md"].map(async (name) => [
        name,
        await read(here, `skills/${name}`),
      ]),
    ),
  );
  assert.deepEqual(now, {
    same: "old",
    changed: "from there",
    "both-later-here": "from here",
    "both-later-there": "from there",
    "new/SKILL.md": "from there",
  });
  assert.equal(await read(here, "token.json"), "from there");
  assert.equal(await read(here, "config.yaml"), null);
  assert.deepEqual(await readdir(join(here, "../elsewhere")), []);
  assert.deepEqual(
    (await readdir(here)).filter((name) => name.startsWith(".sync-")),
    [],
  );
});

test("one and the same folder is left alone", async (t) => {
  const { sync, here, put, scripts } = await rig(t, { same: true });
  await put(here, "skills/a", "1");
  await sync.send();
  await sync.fetch();
  assert.equal(scripts.length, 1);
  assert.deepEqual(await readdir(here), ["skills"]);
});
