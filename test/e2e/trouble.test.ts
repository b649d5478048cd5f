// What a user sees when something is wrong with the machine or the settings: one clear message, exit code ≠ 0, nothing lost.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdir, readdir, readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { after, before, beforeEach, describe, type TestContext, test } from "node:test";
import { promisify } from "node:util";
import { ModelServer } from "../support/model-server/server.ts";
import { mountSmallDisk } from "../support/mounted.ts";
import { environmentFor, launcher, runHermes } from "../support/run-hermes.ts";
import { oneOf } from "../support/sample.ts";
import { modelConfig, tempHome } from "../support/temp-home.ts";

const hermes = [process.execPath, launcher];
const noStackTrace = (text: string) => assert.ok(!/\n\s+at /.test(text), text);

async function disk(t: TestContext, kilobytes: number) {
  const mounted = await mountSmallDisk(kilobytes);
  if (!mounted) t.skip("SKIPPED: this machine does not let us mount a small disk");
  return mounted;
}

describe("trouble", () => {
  let server: ModelServer;
  before(async () => {
    server = await ModelServer.start();
  });
  beforeEach(() => void server.clear());
  after(() => server.close());

  test("a broken config.yaml is named with line and column, stays as it is, and nothing is sent", async () => {
    const broken = "model:\n  default: x\n bad indent: [\n";
    await using home = await tempHome({ "config.yaml": broken });
    for (const args of oneOf(
      [
        ["chat", "-q", "help"],
        ["-z", "help"],
      ],
      "a door onto a broken config",
    )) {
      const result = await runHermes(args, { home });
      assert.match(result.stderr, /config\.yaml is broken at line 3, column \d+/);
      assert.equal(result.stdout, "");
      assert.equal(result.code, 1);
    }
    assert.equal(await readFile(home.at("config.yaml"), "utf8"), broken);
    const copies = (await readdir(home.dir)).filter((name) => name.includes(".corrupt."));
    assert.equal(copies.length, 1);
  });

  test("other commands go on with the defaults and say so", async () => {
    await using home = await tempHome({ "config.yaml": "a: [\n" });
    const { code, stdout, stderr } = await runHermes(["sessions", "list"], { home });
    assert.match(stderr, /config\.yaml/);
    assert.equal(stdout, "No sessions found.\n");
    assert.equal(code, 0);
  });

  const backends: readonly (readonly [string, RegExp])[] = [
    [
      "terminal: { backend: dokcer }\n",
      /terminal\.backend \(or TERMINAL_ENV\): expected one of local, .*, found "dokcer"/,
    ],
    ["terminal: [local]\n", /terminal: expected a mapping, found a list/],
    ["terminal: { backend: modal }\n", /this version does not support modal|terminal\.backend is modal/],
  ];
  for (const [settings, problem] of backends) {
    test(`status and config show call the backend of ${settings.trim()} invalid, and no conversation is opened with it`, async () => {
      await using home = await tempHome({ "config.yaml": settings });
      const run = async (...args: string[]) => (await runHermes(args, { home })).stdout;
      const said = new RegExp(`^ *(?:Terminal|Runs in) +invalid: .*${problem.source}`, "m");
      for (const args of oneOf([["status"], ["config", "show"], ["status", "--json"]], `shows ${settings}`)) {
        const shown = await run(...args);
        if (!args.includes("--json")) {
          assert.match(shown, said);
          continue;
        }
        const { terminal, terminal_problem } = JSON.parse(shown);
        assert.equal(terminal, "invalid");
        assert.match(terminal_problem, problem);
      }
      const refused = await runHermes(["-z", "hello"], { home });
      assert.match(refused.stderr, problem);
      assert.notEqual(refused.code, 0);
    });
  }

  test("a standard profile that is gone is named by every command, and the default one is used", async () => {
    await using home = await tempHome({ active_profile: "gone\n" });
    const { code, stdout, stderr } = await runHermes(["status"], { home });
    assert.match(stderr, /'gone' no longer exists.*hermes profile use/);
    assert.match(stdout, /Profile +default/);
    assert.equal(code, 0);
  });

  test("hermes doctor explains a broken config and exits 1", async () => {
    await using home = await tempHome({ "config.yaml": "a: [\n" });
    const { code, stdout, stderr } = await runHermes(["doctor"], { home });
    assert.equal(code, 1, stderr);
    assert.match(stdout, /✗ .*config\.yaml/);
  });

  test("hermes doctor finds an unreachable provider and names its address", async () => {
    const gone = await ModelServer.start();
    await gone.close();
    await using home = await tempHome({ "config.yaml": modelConfig(gone) });
    const { code, stdout } = await runHermes(["doctor", "--json"], { home });
    assert.equal(code, 1);
    const model = JSON.parse(stdout).sections.find((section: { title: string }) => section.title === "Model");
    assert.ok(JSON.stringify(model).includes(gone.origin));
  });

  test("a damaged database is reported, not deleted, and the doctor says what to do", async () => {
    await using home = await tempHome({ "config.yaml": modelConfig(server) });
    await writeFile(home.at("state.db"), "this is no database, only text that is long enough to look at ".repeat(100));
    const before = await readFile(home.at("state.db"));
    const result = await runHermes(["-z", "hello"], { home });
    assert.equal(result.code, 1);
    assert.match(result.stderr, /state\.db/);
    noStackTrace(result.stderr);
    const doctor = await runHermes(["doctor"], { home });
    assert.equal(doctor.code, 1);
    assert.match(doctor.stdout, /✗ .*state\.db/);
    assert.deepEqual(await readFile(home.at("state.db")), before);
  });

  test("a database that another process writes to can still be read", async () => {
    await using home = await tempHome({ "config.yaml": modelConfig(server) });
    await runHermes(["-z", "make the file"], { home });
    const holder = new DatabaseSync(home.at("state.db"), { timeout: 10_000 });
    holder.exec("BEGIN EXCLUSIVE");
    try {
      const { stdout } = await runHermes(["sessions", "list"], { home });
      assert.match(stdout, /make the file/, "reading goes on while another process writes");
    } finally {
      holder.exec("ROLLBACK");
      holder.close();
    }
  });

  test("a full disk ends the turn with a clear message, and what was stored before is still there", async (t) => {
    await using mounted = await disk(t, 700);
    if (!mounted) return;
    await using home = await tempHome();
    const dir = join(mounted.dir, ".hermes");
    await mkdir(dir);
    await writeFile(join(dir, "config.yaml"), modelConfig(server));
    const env = { HERMES_HOME: dir };
    server.otherwise({ text: "ok" });
    assert.equal((await runHermes(["-z", "remember the heron"], { home, env })).code, 0);
    await writeFile(join(mounted.dir, "filler"), Buffer.alloc(900_000)).catch(() => undefined); // until it is full
    const result = await runHermes(["-z", `and ${"more ".repeat(20_000)}`], { home, env });
    assert.notEqual(result.code, 0);
    assert.match(result.stderr, /full|space/i);
    noStackTrace(result.stderr);
    await writeFile(join(mounted.dir, "filler"), "");
    const { stdout, code, stderr } = await runHermes(["sessions", "search", "heron"], { home, env });
    assert.equal(code, 0, stderr);
    assert.match(stdout, /heron/);
  });

  const lost = /Cannot write to .*\.hermes \(EROFS\): conversations are kept in memory only/g;
  const saysItOnce = (text: string) => assert.equal(text.match(lost)?.length, 1, text);

  test("in a home that cannot be written it answers, says once that nothing is kept, and has an identity", async (t) => {
    await using mounted = await disk(t, 4000);
    if (!mounted) return;
    await using home = await tempHome();
    const dir = join(mounted.dir, ".hermes");
    await mkdir(dir);
    await writeFile(join(dir, "config.yaml"), modelConfig(server));
    await mounted.protect();
    const run = (...args: string[]) => runHermes(args, { home, env: { HERMES_HOME: dir } });
    server.otherwise({ text: "ok" });
    const doors = [
      ["-z", "hello"],
      ["chat", "-q", "hello"],
      ["chat", "-Q", "-q", "hello"],
    ];
    for (const args of oneOf(doors, "a door of a home that cannot be written")) {
      const { code, stdout, stderr } = await run(...args);
      assert.equal(code, 0, stderr);
      assert.equal(stdout, "ok\n");
      saysItOnce(stderr);
      assert.doesNotMatch(stderr, /--resume/, "nobody can resume it");
    }
    assert.match(server.last.body.messages[0].content, /^You are Hermes Agent/);
    const { code, stdout } = await run("sessions", "list");
    assert.deepEqual([code, stdout], [0, "No sessions found.\n"]);
    const refused = await run("config", "set", "agent.max_turns", "5");
    assert.equal(refused.code, 1);
    assert.match(refused.stderr, /Cannot write .*: the file system is read-only\n$/);
  });

  test("what a home that cannot be written holds is read, and its conversations are resumed in memory", async (t) => {
    await using mounted = await disk(t, 8000);
    if (!mounted) return;
    await using home = await tempHome();
    const dir = join(mounted.dir, ".hermes");
    await mkdir(dir);
    await writeFile(join(dir, "config.yaml"), modelConfig(server));
    const run = (...args: string[]) => runHermes(args, { home, env: { HERMES_HOME: dir } });
    server.otherwise({ text: "ok" });
    const { session_id } = JSON.parse((await run("-z", "remember the heron", "--json")).stdout);
    await mounted.protect();
    const readers = [["list"], ["search", "heron"], ["show", session_id], ["export", "-"]];
    for (const args of oneOf(readers, "a reader of a home that cannot be written")) {
      const { code, stdout, stderr } = await run("sessions", ...args);
      assert.equal(code, 0, stderr);
      assert.match(stdout, /heron/);
      saysItOnce(stderr);
    }
    assert.match((await run("sessions", "repair", "--check-only")).stdout, /is intact/);
    const resumed = await run("-z", "which bird?", "--resume", session_id);
    assert.equal(resumed.code, 0, resumed.stderr);
    assert.match(server.last.raw, /remember the heron/);
    const { stdout } = await run("sessions", "show", session_id);
    assert.doesNotMatch(stdout, /which bird/);
    const refused = await run("sessions", "delete", session_id, "--yes");
    assert.equal(refused.code, 1);
    assert.match(refused.stderr, /state\.db is not writable/);
    noStackTrace(refused.stderr);
  });

  test("an unknown command suggests the right one and exits 2", async () => {
    await using home = await tempHome();
    const { code, stderr } = await runHermes(["sesions", "list"], { home });
    assert.equal(code, 2);
    assert.match(stderr, /sessions/);
    const typos = [
      ["memory", "shwo", "show"],
      ["sessions", "lst", "list"],
      ["tools", "enabel", "enable"],
    ] as const;
    for (const [group, typo, right] of oneOf(typos, "a mistyped command of a group")) {
      const inner = await runHermes([group, typo], { home });
      assert.equal(inner.code, 2);
      assert.ok(
        inner.stderr.includes(`hermes: unknown command "${group} ${typo}". Did you mean "${right}"`),
        inner.stderr,
      );
    }
  });

  test("an unknown option is named and exits 2", async () => {
    await using home = await tempHome();
    const { code, stderr } = await runHermes(["--nonsense"], { home });
    assert.equal(code, 2);
    assert.match(stderr, /--nonsense/);
  });

  test("a folder that was removed under one's feet is named", async () => {
    await using home = await tempHome();
    const run = promisify(execFile)("sh", ["-c", `mkdir gone; cd gone; rmdir ../gone; "$0" "$1" status`, ...hermes], {
      cwd: home.project,
      env: environmentFor({ home }),
    });
    const { code, stderr } = await run.then(
      () => assert.fail("it cannot work here"),
      (error: { code: number; stderr: string }) => error,
    );
    assert.equal(code, 1);
    assert.match(stderr, /the current folder no longer exists/);
  });

  test("an empty pipe is nothing to ask", async () => {
    await using home = await tempHome();
    const { code, stderr } = await runHermes(["chat"], { home, stdin: "  \n" });
    assert.equal(code, 1);
    assert.match(stderr, /empty/);
  });

  test("a toolset that does not exist is named", async () => {
    await using home = await tempHome({ "config.yaml": modelConfig(server) });
    const { code, stderr } = await runHermes(["-z", "x", "-t", "nonsense"], { home });
    assert.equal(code, 2);
    assert.match(stderr, /nonsense/);
    const absent = await runHermes(["-z", "x", "-t", "moa"], { home });
    assert.equal(absent.code, 2, "there are no tools in it");
    assert.match(absent.stderr, /No such toolset: moa\./);
  });

  test("an unknown toolset in the settings does not speak for those a run names", async () => {
    const config = `${modelConfig(server)}agent:\n  disabled_toolsets: [nonsense]\n`;
    await using home = await tempHome({ "config.yaml": config });
    server.script({ text: "fine" });
    assert.equal((await runHermes(["-z", "x", "-t", "todo"], { home })).stdout, "fine\n");
  });

  test("a backend that cannot be used is named; commands never run somewhere else in silence", async () => {
    await using home = await tempHome({ "config.yaml": `${modelConfig(server)}terminal:\n  backend: modal\n` });
    const { code, stderr } = await runHermes(["-z", "x"], { home });
    assert.equal(code, 1);
    assert.match(stderr, /terminal\.backend is modal/);
    assert.equal(server.requests.length, 0);
  });

  const DOORS = [["-z", "x"], ["chat", "-q", "x"], ["chat", "-Q", "-q", "x"], ["chat", "-q", "x", "--json"], ["chat"]];
  const unread: readonly (readonly [string, string, RegExp])[] = [
    ["where commands run", "terminal:\n  backend: dokcer\n", /terminal\.backend .*found "dokcer"/],
    ["what they reach", "terminal:\n  sandbox_network: none\n", /terminal\.sandbox_network: .*found "none"/],
    [
      "which hosts they reach",
      "terminal:\n  sandbox_network: [example.org, 'https://example.com/']\n",
      /terminal\.sandbox_network: "https:\/\/example\.com\/" is not a host; use example\.com/,
    ],
    [
      "where they run, by a name that does not exist,",
      "terminal:\n  bakend: docker\n",
      /did you mean terminal\.backend/,
    ],
    ["which of them never run", "approvals:\n  deny: {a: b}\n", /approvals\.deny: expected a list of texts/],
  ];
  for (const [what, config, message] of unread) {
    test(`a setting of ${what} that cannot be read stops every door before the model is asked`, async () => {
      await using home = await tempHome({ "config.yaml": `${modelConfig(server)}${config}` });
      // Every door in a whole run, one of them otherwise: another for each setting, and each time.
      for (const args of oneOf(DOORS, what)) {
        const { code, stderr } = await runHermes(args, { home, stdin: "x" });
        assert.equal(code, 1, args.join(" "));
        assert.match(stderr, message, args.join(" "));
        assert.match(stderr, /Nothing was started/);
      }
      assert.equal(server.requests.length, 0);
      const told = [
        [["config", "check"], message],
        [["doctor"], new RegExp(`✗ .*${message.source}`)],
      ] as const;
      for (const [args, said] of oneOf(told, `who tells of ${what}`)) {
        const { code, stdout } = await runHermes(args, { home });
        assert.equal(code, 1, args.join(" "));
        assert.match(stdout, said);
      }
    });
  }

  test("so does a variable that names no place there is", async () => {
    await using home = await tempHome({ "config.yaml": modelConfig(server) });
    const { code, stderr } = await runHermes(["-z", "x"], { home, env: { TERMINAL_ENV: "dokcer" } });
    assert.equal(code, 1);
    assert.match(stderr, /\(or TERMINAL_ENV\)/);
    assert.equal(server.requests.length, 0);
  });

  test("what went wrong with the model is in the log, what was said is not", async () => {
    await using home = await tempHome({ "config.yaml": modelConfig(server) });
    server.script({ fault: "status", status: 400, body: { error: { message: "no such flavour" } } });
    const { stderr } = await runHermes(["-v", "-z", "a very private matter"], { home });
    const errors = await readFile(home.at("logs", "errors.log"), "utf8");
    assert.match(
      errors,
      /WARNING \[\d{8}_\d{6}_\w+\] agent: turn ended: .*fake-model at custom: HTTP 400: no such flavour/,
    );
    server.script({ text: "fine" });
    await runHermes(["-z", "another private matter"], { home });
    const log = await readFile(home.at("logs", "agent.log"), "utf8");
    assert.match(log, /INFO .*turn ended: text_response/);
    assert.doesNotMatch(log, /private/);
    assert.match(stderr, /turn ended/, "-v shows it on the screen");
  });

  test("secrets reach neither the log nor the store nor the model", async () => {
    await using home = await tempHome({
      "config.yaml": modelConfig(server),
      ".env": "MY_SERVICE_TOKEN=very-private-value-4711\n",
    });
    await writeFile(
      join(home.project, "out.txt"),
      "token is very-private-value-4711 and sk-abcdefghijklmnopqrstuvwx\n",
    );
    server.script({ toolCalls: [{ name: "terminal", arguments: { command: "cat out.txt" } }] }, { text: "seen" });
    await runHermes(["-z", "look at out.txt"], { home });
    assert.ok(!server.last.raw.includes("very-private-value-4711"));
    assert.ok(!server.last.raw.includes("sk-abcdefghijklmnopqrstuvwx"));
    for (const name of ["state.db", "state.db-wal", "logs/agent.log"]) {
      if (!(await stat(home.at(name)).catch(() => null))) continue;
      assert.ok(!(await readFile(home.at(name))).includes("very-private-value-4711"), name);
    }
  });

  test("commands do not see the keys of the home", async () => {
    await using home = await tempHome({
      "config.yaml": modelConfig(server),
      ".env": "OPENAI_API_KEY=sk-test-abcdefghijklmnop\n",
    });
    server.script(
      { toolCalls: [{ name: "terminal", arguments: { command: "env | grep -c OPENAI || true" } }] },
      (request) => ({
        text: /\\"output\\":\\"0/.test(request.raw) ? "hidden" : request.raw.slice(-400),
      }),
    );
    const { stdout } = await runHermes(["-z", "look"], { home });
    assert.equal(stdout, "hidden\n");
  });
});
