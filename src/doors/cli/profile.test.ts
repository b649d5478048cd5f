import assert from "node:assert/strict";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { after, describe, test } from "node:test";
import { gzipSync } from "node:zlib";
import { Header, list } from "tar";
import { parse } from "yaml";
import { runSubCommand } from "../../../test/support/sub-command.ts";
import { openHome } from "../../home/open.ts";
import { define } from "./profile.ts";

const base = mkdtempSync(join(tmpdir(), "hermes-profile-"));
after(() => rmSync(base, { recursive: true, force: true }));

function person(files: Record<string, string> = {}) {
  const osHome = mkdtempSync(join(base, "u"));
  const at = (name: string) => join(osHome, name);
  const write = (name: string, data: string | Buffer) => {
    mkdirSync(dirname(at(name)), { recursive: true });
    writeFileSync(at(name), data);
  };
  for (const [name, text] of Object.entries(files)) write(`.hermes/${name}`, text);
  const reruns: string[][] = [];
  async function run(args: string[], { answer = null, argv = [] }: { answer?: string | null; argv?: string[] } = {}) {
    const env = { PATH: `${at(".local/bin")}:${at("bin")}` };
    const home = await openHome({ argv, env, osHome, cwd: osHome });
    const rerun = async (words: readonly string[]) => reruns.push([...words]) * 0;
    return runSubCommand(define, args, { home, cwd: osHome, answer, rerun });
  }
  const read = (name: string) => readFileSync(at(name), "utf8");
  const ok = async (...args: string[]) => {
    const outcome = await run(args);
    assert.equal(outcome.code, 0, outcome.err);
    return outcome;
  };
  return { run, ok, at, read, write, reruns, profile: (name: string) => at(`.hermes/profiles/${name}`) };
}

describe("create", () => {
  test("makes a whole home and a command", async () => {
    const me = person();
    const { out } = await me.ok("create", "Coder", "--description", "writes: code");
    assert.match(out, /Created profile coder in ~\/\.hermes\/profiles\/coder/);
    for (const name of "memories sessions skills plugins skins logs plans workspace cron home".split(" ")) {
      assert.equal(statSync(join(me.profile("coder"), name)).mode & 0o777, 0o700);
    }
    assert.equal(me.read(".hermes/profiles/coder/.env"), "");
    assert.equal(statSync(join(me.profile("coder"), ".env")).mode & 0o777, 0o600);
    assert.match(me.read(".hermes/profiles/coder/SOUL.md"), /^You are Hermes Agent/);
    assert.equal(me.read(".hermes/profiles/coder/profile.yaml"), 'description: "writes: code"\n');
    assert.equal(me.read(".local/bin/coder"), '#!/bin/sh\nexec hermes -p coder "$@"\n');
    assert.equal(statSync(me.at(".local/bin/coder")).mode & 0o777, 0o755);
  });

  for (const name of ["x.y", "../x", "名", "-a", "default", "hermes", "sudo", "a b"]) {
    test(`refuses ${JSON.stringify(name)}`, async () => {
      const me = person();
      assert.equal((await me.run(["create", "--", name])).code, 1);
      assert.ok(!existsSync(me.at(".hermes/profiles")));
    });
  }

  test("refuses an existing one and leaves it alone", async () => {
    const me = person({ "profiles/x/mine": "1" });
    assert.match((await me.run(["create", "x"])).err, /already exists/);
    assert.deepEqual(readdirSync(me.profile("x")), ["mine"]);
  });

  test("a name that is another program gets no command, and --no-alias makes none", async () => {
    const me = person();
    me.write("bin/other", "#!/bin/sh\n");
    chmodSync(me.at("bin/other"), 0o755);
    const { err } = await me.ok("create", "other");
    assert.match(err, /No command "other" was created: .*bin\/other is another program/);
    assert.match((await me.ok("create", "chat")).err, /a hermes command/);
    await me.ok("create", "quiet", "--no-alias");
    assert.ok(!existsSync(me.at(".local/bin/quiet")));
  });

  test("--clone takes settings, secrets, identity, skills and memory, and nothing else", async () => {
    const me = person({
      "config.yaml": "model: m\n",
      ".env": "A=1\n",
      "SOUL.md": "me",
      "skills/a/SKILL.md": "s",
      "memories/MEMORY.md": "m",
      "memories/USER.md": "u",
      "memories/.history.jsonl": "h",
      "sessions/x.json": "{}",
      "gateway.pid": "{}",
    });
    chmodSync(me.at(".hermes/.env"), 0o644);
    await me.ok("create", "copy", "--clone");
    const files = readdirSync(me.profile("copy"), { recursive: true, withFileTypes: true }).filter((entry) =>
      entry.isFile(),
    );
    assert.deepEqual(files.map((entry) => entry.name).sort(), [
      ".env",
      "MEMORY.md",
      "SKILL.md",
      "SOUL.md",
      "USER.md",
      "config.yaml",
    ]);
    assert.equal(statSync(join(me.profile("copy"), ".env")).mode & 0o777, 0o600);
  });

  test("--clone-all takes everything but history, caches and what runs", async () => {
    const me = person({
      ".env": "A=1\n",
      "mine/deep/file": "x",
      "sessions/old.json": "{}",
      "backups/b": "",
      "checkpoints/c": "",
      "state-snapshots/s": "",
      "cache/x": "",
      "gateway.pid": "1",
      "processes.json": "[]",
      "a.sock": "",
      "b.tmp": "",
      "profiles/other/x": "",
      "bin/tool": "",
      "hermes-agent/x": "",
      active_profile: "default",
    });
    const database = new DatabaseSync(me.at(".hermes/kanban.db"), { timeout: 10_000 });
    database.exec("PRAGMA journal_mode=wal; CREATE TABLE t(x); INSERT INTO t VALUES (7)");
    new DatabaseSync(me.at(".hermes/state.db"), { timeout: 10_000 }).exec("CREATE TABLE t(x)");
    chmodSync(me.at(".hermes/.env"), 0o644);
    await me.ok("create", "copy", "--clone-all");
    database.close();
    assert.equal(me.read(".hermes/profiles/copy/mine/deep/file"), "x");
    assert.equal(statSync(join(me.profile("copy"), ".env")).mode & 0o777, 0o600);
    const copied = new DatabaseSync(join(me.profile("copy"), "kanban.db"), { readOnly: true, timeout: 10_000 });
    assert.equal(copied.prepare("SELECT x FROM t").get()?.x, 7);
    copied.close();
    const names = new Set(readdirSync(me.profile("copy")));
    for (const gone of [
      "backups",
      "checkpoints",
      "state-snapshots",
      "cache",
      "gateway.pid",
      "processes.json",
      "a.sock",
      "b.tmp",
      "profiles",
      "bin",
      "hermes-agent",
      "active_profile",
      "state.db",
    ]) {
      assert.ok(!names.has(gone), gone);
    }
    assert.deepEqual(readdirSync(join(me.profile("copy"), "sessions")), []);
  });

  test("a clone that fails leaves nothing behind", async () => {
    const me = person({ "kanban.db": "this is not a database, and long enough to be looked at" });
    assert.match((await me.run(["create", "copy", "--clone-all"])).err, /Cannot copy .*kanban\.db/);
    assert.deepEqual(readdirSync(me.at(".hermes/profiles")), []);
    assert.match((await me.run(["create", "copy", "--clone-from", "nobody"])).err, /does not exist/);
    assert.match((await me.run(["create", "copy", "--clone", "--no-skills"])).err, /cannot be combined/);
  });

  test("--no-skills leaves the mark that keeps bundled skills out", async () => {
    const me = person();
    await me.ok("create", "bare", "--no-skills");
    assert.ok(existsSync(join(me.profile("bare"), ".no-bundled-skills")));
  });
});

test("use is sticky, default clears it, and an unknown one is refused", async () => {
  const me = person({ "profiles/x/mine": "" });
  await me.ok("use", "X");
  assert.equal(me.read(".hermes/active_profile"), "x\n");
  assert.match((await me.ok()).out, /^Active profile: x \(default\)/);
  assert.equal((await me.run(["use", "nobody"])).code, 1);
  await me.ok("use", "default");
  assert.ok(!existsSync(me.at(".hermes/active_profile")));
});

test("a sticky profile that is gone does not lock anyone out", async () => {
  const me = person({ active_profile: "gone\n" });
  await me.ok("use", "default");
  assert.match((await me.ok()).out, /^Active profile: default/);
});

test("list and show tell model, gateway, skills and alias", async () => {
  const me = person({
    "config.yaml": "model: gpt-4o\nprovider: openrouter\n",
    "profiles/x/gateway.pid": JSON.stringify({ pid: process.pid }),
    "profiles/x/skills/a/SKILL.md": "",
  });
  await me.ok("alias", "x", "--name", "ex");
  const { out } = await me.ok("list");
  assert.match(
    out,
    /^ {2}Profile +Model +Gateway +Alias +Distribution\n◆ default +gpt-4o +stopped +— +—\n {2}x +— +running +ex +—\n$/,
  );
  const rows = JSON.parse((await me.ok("list", "--json")).out);
  assert.deepEqual(
    rows.map((row: { name: string; active: boolean; gateway: string }) => [row.name, row.active, row.gateway]),
    [
      ["default", true, "stopped"],
      ["x", false, "running"],
    ],
  );
  assert.match((await me.ok("show", "x")).out, /Gateway +running.*\n +Skills +1\n +\.env +missing/);
  assert.match((await me.ok("show", "default")).out, /Provider +openrouter/);
  assert.equal((await me.run(["show", "nobody"])).code, 1);
});

test("rename moves directory, command and sticky pointer", async () => {
  const me = person();
  await me.ok("create", "old");
  await me.ok("alias", "old", "--name", "short");
  await me.ok("use", "old");
  await me.ok("rename", "old", "new");
  assert.ok(existsSync(me.profile("new")) && !existsSync(me.profile("old")));
  assert.equal(me.read(".hermes/active_profile"), "new\n");
  assert.deepEqual(readdirSync(me.at(".local/bin")), ["new", "short"]);
  for (const name of ["new", "short"]) assert.match(me.read(`.local/bin/${name}`), /hermes -p new /);
  assert.equal((await me.run(["rename", "default", "x"])).code, 1);
  assert.equal((await me.run(["rename", "new", "default"])).code, 1);
});

test("alias refuses what is not ours and removes only what is", async () => {
  const me = person({ "profiles/x/mine": "" });
  me.write(".local/bin/precious", "#!/bin/sh\necho mine\n");
  assert.equal((await me.run(["alias", "x", "--name", "precious"])).code, 1);
  assert.equal((await me.run(["alias", "x", "--remove", "--name", "precious"])).code, 1);
  assert.equal(me.read(".local/bin/precious"), "#!/bin/sh\necho mine\n");
  await me.ok("alias", "x");
  await me.ok("alias", "x", "--remove");
  assert.deepEqual(readdirSync(me.at(".local/bin")), ["precious"]);
});

describe("delete", () => {
  test("needs the name typed, then takes directory, command and pointer", async () => {
    const me = person();
    await me.ok("create", "x");
    await me.ok("use", "x");
    assert.match((await me.run(["delete", "x"], { answer: "y" })).err, /Nothing was deleted/);
    assert.match((await me.run(["delete", "x"])).err, /pass -y/);
    assert.ok(existsSync(me.profile("x")));
    assert.equal((await me.run(["delete", "x"], { answer: "x" })).code, 0);
    assert.ok(
      !existsSync(me.profile("x")) &&
        !existsSync(me.at(".local/bin/x")) &&
        !existsSync(me.at(".hermes/active_profile")),
    );
  });

  test("is refused while the gateway of the profile is running", async () => {
    const me = person({ "profiles/x/gateway.pid": JSON.stringify({ pid: process.pid }) });
    const { code, err } = await me.run(["delete", "x", "-y"]);
    assert.equal(code, 1);
    assert.match(err, /is running \(process \d+\)/);
    assert.ok(existsSync(me.profile("x")));
  });

  test("never takes the default", async () => {
    assert.equal((await person().run(["delete", "default", "-y"])).code, 1);
  });
});

describe("export and import", () => {
  async function namesIn(file: string): Promise<string[]> {
    const names: string[] = [];
    await list({ file, onReadEntry: (entry) => void (entry.type === "File" && names.push(entry.path)) });
    return names.sort();
  }

  test("a profile travels without its secrets", async () => {
    const elsewhere = `$\{FROM_ENV}`;
    const settings = {
      model: { api_key: "sk-1234567890", default: "m" },
      servers: [
        { headers: { Authorization: "Bearer x" }, url: "u" },
        { api_key: elsewhere },
        { api_key: "sk-3", url: "v" },
      ],
    };
    const me = person({
      "profiles/x/config.yaml": JSON.stringify(settings),
      "profiles/x/config.yaml.bak.1": "model: {api_key: sk-1234567890}\n",
      "profiles/x/.env": "A=1",
      "profiles/x/.env.bak.1": "A=1",
      "profiles/x/auth.json": "{}",
      "profiles/x/gateway.pid": "{}",
      "profiles/x/mcp-tokens/t": "secret",
      "profiles/x/memories/MEMORY.md": "note",
      "profiles/x/sessions/a": "",
    });
    symlinkSync("/etc/passwd", join(me.profile("x"), "link"));
    const { out } = await me.ok("export", "x", "-o", "out.tar.gz");
    assert.match(out, /also model\.api_key, servers\.0\.headers\.Authorization, servers\.2\.api_key/);
    assert.deepEqual(await namesIn(me.at("out.tar.gz")), ["x/config.yaml", "x/memories/MEMORY.md", "x/sessions/a"]);
    await me.ok("import", "out.tar.gz", "--name", "y");
    assert.equal(me.read(".hermes/profiles/y/memories/MEMORY.md"), "note");
    assert.deepEqual(parse(me.read(".hermes/profiles/y/config.yaml")), {
      model: { default: "m" },
      servers: [{ url: "u" }, { api_key: elsewhere }, { url: "v" }],
    });
    assert.equal(statSync(me.profile("y")).mode & 0o777, 0o700);
    assert.match((await me.run(["import", "out.tar.gz"])).err, /'x' already exists/);
    assert.match((await me.run(["import", "out.tar.gz", "--name", "default"])).err, /reserved/);
    assert.equal((await me.run(["import", "missing.tar.gz"])).code, 1);
  });

  test("the default home travels without databases, logs, caches, history and other profiles", async () => {
    const me = person({
      "config.yaml": "a: 1\n",
      "state.db": "",
      "kanban.db": "",
      "logs/agent.log": "",
      "cache/x": "",
      "profiles/x/y": "",
      "backups/b": "",
      "checkpoints/c": "",
      ".hermes_history": "",
      "bin/x": "",
    });
    await me.ok("export", "default");
    assert.deepEqual(await namesIn(me.at("default.tar.gz")), ["default/SOUL.md", "default/config.yaml"]);
  });

  /** An archive with exactly these entries, however wrong. */
  function archive(
    ...entries: {
      path: string;
      type?: "File" | "SymbolicLink" | "Link" | "CharacterDevice" | "Directory";
      linkpath?: string;
    }[]
  ): Buffer {
    const blocks = entries.map(({ path, type = "File", linkpath }) => {
      const block = Buffer.alloc(512);
      new Header({
        path,
        type,
        size: 0,
        mode: 0o644,
        uid: 0,
        gid: 0,
        mtime: new Date(0),
        ...(linkpath ? { linkpath } : {}),
      }).encode(block, 0);
      return block;
    });
    return gzipSync(Buffer.concat([...blocks, Buffer.alloc(1024)]));
  }
  const hostile: readonly [name: string, data: Buffer, message: RegExp][] = [
    ["an absolute path", archive({ path: "/tmp/evil" }), /absolute path/],
    ["a way out", archive({ path: "x/../../evil" }), /points outside/],
    ["a symlink", archive({ path: "x/l", type: "SymbolicLink", linkpath: "/etc/passwd" }), /is a SymbolicLink/],
    ["a hard link", archive({ path: "x/l", type: "Link", linkpath: "x/a" }), /is a Link/],
    ["a device", archive({ path: "x/d", type: "CharacterDevice" }), /is a CharacterDevice/],
    ["two top directories", archive({ path: "x/a" }, { path: "y/b" }), /more than one top-level directory/],
    ["a bare file", archive({ path: "config.yaml" }), /not inside a directory/],
    ["garbage", Buffer.from("not an archive at all"), /cannot be read/],
    ["nothing", archive(), /cannot be read/],
  ];
  for (const [name, data, message] of hostile) {
    test(`an archive with ${name} is refused whole`, async () => {
      const me = person();
      me.write("bad.tar.gz", data);
      const { code, err } = await me.run(["import", "bad.tar.gz"]);
      assert.equal(code, 1);
      assert.match(err, message);
      assert.ok(!existsSync(me.at(".hermes/profiles")));
    });
  }
});
