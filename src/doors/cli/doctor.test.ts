import assert from "node:assert/strict";
import { chmod, mkdir, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { Command } from "commander";
import { recordedLog } from "../../../test/support/session-store.ts";
import { type TempHome, tempHome } from "../../../test/support/temp-home.ts";
import { openHome } from "../../home/open.ts";
import { systemClock } from "../../kit/clock.ts";
import { openSessionStore } from "../../sessions/open.ts";
import { type CliContext, ExitError } from "../cli-context.ts";
import { define as defineConfig } from "./config.ts";
import { define } from "./doctor.ts";
import { define as defineStatus } from "./status.ts";

interface Section {
  readonly title: string;
  readonly findings: readonly { readonly level: string; readonly text: string; readonly fix?: string }[];
}

async function run(home: TempHome, args: readonly string[], what = define) {
  const opened = await openHome({
    argv: [],
    env: { HERMES_HOME: home.dir, HOME: home.osHome, PATH: process.env.PATH },
    osHome: home.osHome,
    cwd: home.project,
  });
  const stores: { close(): Promise<void> }[] = [];
  let out = "";
  const write = (text: string) => {
    out += text;
  };
  const store = async () => {
    const opening = {
      path: opened.paths.stateDb,
      log: opened.log,
      clock: systemClock,
      sessionsDir: opened.paths.sessionsDir,
    };
    const made = await openSessionStore({ ...opening, journalMode: "auto", slowSearchMs: 1000 });
    stores.push(made);
    return made;
  };
  const command = new Command("doctor").exitOverride();
  const ctx = { home: opened, io: { out: write, err: write }, clock: systemClock, cwd: home.project, store };
  what(command, ctx as unknown as CliContext); // what these sub-commands use of it
  try {
    await command.parseAsync([...args], { from: "user" });
    return { out, code: 0 };
  } catch (error) {
    if (!(error instanceof ExitError)) throw error;
    return { out: `${out}${error.message}`, code: error.exitCode };
  } finally {
    for (const one of stores) await one.close();
    await opened.close();
  }
}

async function examine(home: TempHome, ...args: readonly string[]) {
  const { out, code } = await run(home, ["--json", ...args]);
  const { sections, fixed = [] } = JSON.parse(out) as { sections: Section[]; fixed?: string[] };
  const lines = (title: string) =>
    sections.find((one) => one.title === title)?.findings.map(({ level, text }) => `${level} ${text}`) ?? [];
  return { code, sections, fixed, lines, all: sections.flatMap(({ findings }) => findings) };
}

async function makeHome(t: TestContext, files?: Readonly<Record<string, string>>): Promise<TempHome> {
  const home = await tempHome(files);
  t.after(() => home[Symbol.asyncDispose]());
  return home;
}

async function modelList(t: TestContext, key: string): Promise<string> {
  const server = createServer(({ headers }, response) => {
    const accepted = headers.authorization === `Bearer ${key}`;
    response.writeHead(accepted ? 200 : 401, { "content-type": "application/json" });
    response.end(JSON.stringify({ data: [{ id: "small" }] }));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => server.closeAllConnections());
  t.after(() => void server.close());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`;
}

test("doctor and config check find the same in config.yaml", async (t) => {
  const config = "_config_version: 24\ndisplay:\n  skni: x\nagent:\n  max_turns: many\ncustom_providers: {a: 1}\n";
  const home = await makeHome(t, { "config.yaml": config });
  const { lines, code } = await examine(home);
  const checked = await run(home, ["check"], defineConfig);
  const marks: Readonly<Record<string, string>> = { ok: "✓", warn: "⚠", error: "✗" };
  for (const line of lines("Configuration")) {
    const [level = "", ...words] = line.split(" ");
    assert.ok(checked.out.includes(`${marks[level]} ${words.join(" ")}`), `${line}\n${checked.out}`);
  }
  assert.ok(lines("Configuration").includes("warn display.skni is not a known setting. Did you mean display.skin?"));
  assert.deepEqual([code, checked.code], [1, 1]);
  assert.equal(lines("Configuration").filter((line) => line.includes("max_turns")).length, 1, "told once");
});

test("--fix does what can harm nothing, and the report is about how things stand afterwards", async (t) => {
  const home = await makeHome(t, { "config.yaml": "agent:\n  max_turns: 3\n", ".env": "A_KEY=abcdefghij\n" });
  await chmod(home.dir, 0o755);
  await chmod(home.at(".env"), 0o644);
  const bin = join(home.osHome, ".local", "bin");
  await mkdir(bin, { recursive: true });
  await mkdir(home.at("profiles", "work"), { recursive: true });
  for (const name of ["gone", "work"]) await writeFile(join(bin, name), `#!/bin/sh\nexec hermes -p ${name} "$@"\n`);
  await writeFile(join(bin, "mine"), "#!/bin/sh\necho mine\n");

  const before = await examine(home);
  const fixable = before.all.filter(({ level, fix }) => level === "warn" && /chmod|migrate|^rm /.test(fix ?? ""));
  assert.equal(fixable.length, 5, JSON.stringify(fixable)); // home, .env, config.yaml, its version, one wrapper
  assert.equal((await stat(home.at(".env"))).mode & 0o777, 0o644, "looking changes nothing");

  const after = await examine(home, "--fix");
  assert.equal(after.fixed.length, 5, JSON.stringify(after.fixed));
  assert.ok(!after.all.some(({ fix }) => /chmod|migrate|^rm /.test(fix ?? "")));
  assert.equal((await stat(home.at(".env"))).mode & 0o777, 0o600);
  assert.equal((await stat(home.dir)).mode & 0o777, 0o700);
  assert.deepEqual((await readdir(bin)).sort(), ["mine", "work"]);
  assert.match(await readFile(home.at("config.yaml"), "utf8"), /_config_version: 24/);
});

test("the home's own files are looked at: identity and memories within their limits", async (t) => {
  const home = await makeHome(t, { "SOUL.md": "  \n", "memories/MEMORY.md": `${"x".repeat(3000)}\n` });
  const { lines } = await examine(home);
  const [soul = "", memory = "", user = ""] = lines("Identity and memory");
  assert.match(soul, /^warn .*SOUL\.md is empty; using the built-in identity/);
  assert.match(memory, /^warn MEMORY\.md: 1 entry, 3000 of 2200 characters/);
  assert.equal(user, "ok USER.md: 0 entries, 0 of 1375 characters");
});

test("the model, and those that step in for it, are asked; a key that is refused is an error, or a warning for a stand-in", async (t) => {
  const url = await modelList(t, "right-key-123");
  const config = (key: string) =>
    `model:\n  provider: lab\n  default: small\nproviders:\n  lab: {api: "${url}", key_env: LAB_KEY}\n  other: {api: "${url}", api_key: ${key}}\nfallback_providers:\n  - {provider: other, model: large}\n`;
  const home = await makeHome(t, { "config.yaml": config("wrong-key-123"), ".env": "LAB_KEY=right-key-123\n" });
  const first = await examine(home);
  assert.deepEqual(first.lines("Model").slice(1), [
    `ok ${url} answers and accepts the key`,
    `warn fallback large at other: ${url} does not accept the key (HTTP 401)`,
  ]);
  assert.equal(first.code, 0);
  await home.write("config.yaml", config("right-key-123"));
  await home.write(".env", "LAB_KEY=old-key-12345\n");
  const second = await examine(home);
  assert.deepEqual(second.lines("Model").slice(1), [
    `error ${url} does not accept the key (HTTP 401)`,
    `warn fallback large at other: ${url} does not list the model large`,
  ]);
  assert.equal(second.code, 1);
});

test("in words: marks, a line on how to fix each, and what to do next", async (t) => {
  const home = await makeHome(t, { "config.yaml": "_config_version: 24\n" });
  await chmod(home.at("config.yaml"), 0o600);
  await rm(home.at("SOUL.md"), { force: true });
  const { out, code } = await run(home, []);
  assert.equal(code, 0);
  assert.match(out, /^Model\n {2}⚠ no provider configured; .*\n {6}→ connect a real one: hermes setup$/m);
  assert.match(out, /^Tools\n {2}✓ \d+ of \d+ tools can be used$/m);
  assert.deepEqual(out.match(/.*: not available in the terminal$/gm), [
    "  ✓ send_message: not available in the terminal",
  ]);
  assert.match(out, /without their own key: .*image_generate \(OPENAI_API_KEY\)/);
  assert.match(out, /\nNothing is broken; \d+ warnings?\.\n$/);
});

const HOURLY = { kind: "cron", expr: "0 * * * *", display: "0 * * * *" };

async function homeWithJobs(t: TestContext, ticker: object): Promise<TempHome> {
  const row = (id: string, more: object) => ({
    ...{ id, name: `job ${id}`, prompt: "x", schedule: HOURLY, enabled: true, state: "scheduled" },
    next_run_at: "2099-01-01T09:00:00+00:00",
    ...more,
  });
  const jobs = [
    row("a", { name: "news\u001b[2J\n✓ forged" }),
    row("b", { last_status: "error", last_error: "no answer", last_delivery_error: "telegram: no home channel" }),
    row("c", { enabled: false, state: "paused", paused_reason: "holidays", last_status: "error", last_error: "old" }),
    row("d", { enabled: false, state: "paused", paused_reason: "It failed 5 times in a row", last_status: "error" }),
    row("e", { enabled: false, state: "missed", next_run_at: null }),
    row("f", { next_run_at: "2026-01-01T09:00:00+00:00" }),
  ];
  const home = await makeHome(t, {
    "config.yaml": "timezone: UTC\n",
    "cron/jobs.json": JSON.stringify({ jobs }),
    "cron/ticker.json": JSON.stringify(ticker),
  });
  const store = await openSessionStore({
    path: home.at("state.db"),
    journalMode: "auto",
    log: recordedLog(),
    clock: systemClock,
  });
  const work = await store.work();
  const today = `${new Date().toISOString().slice(0, 10)}T01:00:00Z`;
  await work.claimSlot({ jobId: "a", slot: today, state: "skipped", reason: "overlap" });
  await work.claimSlot({ jobId: "c", slot: today, state: "skipped", reason: "paused", error: "holidays" });
  const ran = await work.claimSlot({ jobId: "b", slot: today, state: "claimed", holder: "x" });
  await work.endRun(ran ?? 0, { state: "failed", error: "no answer" });
  await store.close();
  return home;
}

test("doctor and status tell how scheduled jobs do: who runs them, what failed, what was not run and why", async (t) => {
  const looking = { pid: process.pid, start_time: null, by: "gateway", last_tick_at: new Date().toISOString() };
  const home = await homeWithJobs(t, looking);
  const { lines, sections, code } = await examine(home);
  const at = looking.last_tick_at.slice(0, 16).replace("T", " ");
  const today = `${looking.last_tick_at.slice(0, 10)} 01:00`;
  assert.deepEqual(lines("Scheduled jobs"), [
    `ok 3 jobs. Running: the gateway (process ${process.pid}), last look ${at}; next job f, 2026-01-01 09:00`,
    "warn job b (b) failed: no answer",
    "warn job b (b) was not delivered: telegram: no home channel",
    "warn job d (d) is paused: It failed 5 times in a row",
    "warn job e (e) was not run: nothing was running the schedule at its time",
    "warn job f (f) is due since 2026-01-01 09:00 and has not started: as many jobs run as may run at once",
    `warn not run: news ✓ forged (a), ${today}: overlap`,
  ]);
  assert.ok(
    sections.find(({ title }) => title === "Scheduled jobs")?.findings.every(({ level, fix }) => level === "ok" || fix),
  );
  assert.equal(code, 0);

  await home.write("cron/ticker.json", JSON.stringify({ ...looking, last_tick_at: "2026-01-01T00:00:00Z" }));
  assert.match((await examine(home)).lines("Scheduled jobs")[0] ?? "", /^warn 3 jobs\. .*it should look every minute$/);
  await home.write("cron/ticker.json", "{}");
  assert.equal((await examine(home)).lines("Scheduled jobs")[0], "warn 3 jobs, but nothing is running the schedule");

  const { out } = await run(home, [], defineStatus);
  assert.match(out, /^Cron +3 jobs\. Nothing is running the schedule\. Start it: hermes gateway start or/m);
  assert.match(out, /^Next job +job f, 2026-01-01 09:00$/m);
  assert.match(out, /^Last job +job b, .*: failed: no answer$/m);
  assert.match(out, /^Not run +job c \(c\), .* 01:00: paused: holidays$/m);
  const { cron } = JSON.parse((await run(home, ["--json"], defineStatus)).out);
  assert.deepEqual([cron.running, cron.jobs.paused, cron.last.error, cron.skipped.length], [false, 2, "no answer", 2]);
});

test("a file of jobs that cannot be read is an error of the doctor, and is kept", async (t) => {
  const home = await makeHome(t, { "cron/jobs.json": '{"jobs": [' });
  const { lines, code } = await examine(home);
  assert.match(lines("Scheduled jobs").join("\n"), /^error cron\/jobs\.json could not be read and is kept as /);
  assert.equal(code, 1);
  assert.ok((await readdir(home.at("cron"))).some((name) => name.startsWith("jobs.json.corrupt-")));
});
