// The life of the gateway as its owner sees it: started, watched, stopped, replaced, restarted and killed from the command line.
import assert from "node:assert/strict";
import { cp, readFile, stat, writeFile } from "node:fs/promises";
import { after, before, describe, type TestContext, test } from "node:test";
import { answerTurns, lastSaid, ModelServer, startGateway, typed, until } from "../support/gateway-rig.ts";
import { paperHome } from "../support/paper-home.ts";
import { PaperServer } from "../support/platforms/paper-server.ts";
import { runHermes, startHermes } from "../support/run-hermes.ts";
import { isRunning } from "../support/running.ts";
import type { TempHome } from "../support/temp-home.ts";

describe("the gateway", () => {
  let model: ModelServer;
  let paper: PaperServer;
  before(async () => {
    model = await ModelServer.start();
    paper = await PaperServer.start();
  });
  after(async () => {
    await paper.close();
    await model.close();
  });

  /** A home of its own; what still runs there is ended. */
  async function place(t: TestContext, options: Parameters<typeof paperHome>[2] = {}): Promise<TempHome> {
    answerTurns(model, (request) => ({ text: `heard: ${lastSaid(request)}` }));
    const home = await paperHome(model, paper, options);
    t.after(async () => {
      for (const pid of [await pidOf(home), await pidOf(home, "profiles", "work")])
        if (pid !== null && isRunning(pid)) process.kill(pid, "SIGKILL");
      await home[Symbol.asyncDispose]();
    });
    return home;
  }

  // A file that is being written is not there yet.
  const pidOf = async (home: TempHome, ...folder: string[]): Promise<number | null> =>
    readFile(home.at(...folder, "gateway.pid"), "utf8")
      .then((text) => JSON.parse(text).pid)
      .catch(() => null);
  const json = async (home: TempHome, ...args: string[]) => {
    const { code, stdout, stderr } = await typed(home, ["gateway", ...args, "--json"]);
    assert.equal(stderr, "");
    return { code, value: JSON.parse(stdout) };
  };
  const isThere = (path: string) =>
    stat(path).then(
      () => true,
      () => false,
    );

  test("status tells what runs and exits 0, and 1 once it has stopped; a second one is refused with the pid", async (t) => {
    const home = await place(t);
    const gateway = await startGateway(home);
    const { code, value } = await json(home, "status");
    assert.equal(code, 0);
    assert.deepEqual([value.running, value.pid, value.state, value.profile], [true, gateway.pid, "running", "default"]);
    assert.deepEqual([value.platforms.paper.state, value.platforms.paper.account], ["connected", "@paper"]);
    const second = await typed(home, ["gateway", "run"]);
    assert.equal(second.code, 1);
    assert.match(second.stderr, new RegExp(`already running \\(process ${gateway.pid}\\).*--replace`));
    assert.equal((await gateway.stop()).code, 0);
    assert.ok(!(await isThere(home.at("gateway.pid"))));
    assert.ok(await isThere(home.at(".clean_shutdown")));
    const stopped = await json(home, "status");
    assert.deepEqual([stopped.code, stopped.value.running, stopped.value.state], [1, false, "stopped"]);
    assert.notEqual(stopped.value.exit_reason, "crashed");
  });

  test("killed with -9 it is told to have crashed, and the next one starts and answers", async (t) => {
    const home = await place(t);
    const first = await startGateway(home);
    await first.kill();
    const { code, value } = await json(home, "status");
    assert.deepEqual([code, value.state, value.exit_reason, value.pid], [1, "stopped", "crashed", null]);
    await startGateway(home);
    paper.say("crash", "hello");
    await until("an answer", () => paper.textsOf("crash").includes("heard: hello"));
  });

  test("what a service manager sends by itself ends with 1; gateway stop ends with 0 and waits for it", async (t) => {
    const home = await place(t);
    const first = await startGateway(home);
    first.signal("SIGTERM");
    assert.equal((await first.result).code, 1);
    const second = await startGateway(home);
    const { code, stdout } = await typed(home, ["gateway", "stop"]);
    assert.deepEqual([code, stdout], [0, `✓ Stopped the gateway of default (process ${second.pid})\n`]);
    assert.equal((await second.result).code, 0);
    assert.match(second.lines.join("\n"), /^\[Gateway\] stopping: hermes gateway stop, 0 turns running$/m);
    assert.equal(second.lines.at(-1), "[Gateway] stopped");
    assert.equal((await typed(home, ["gateway", "stop"])).stdout, "The gateway is not running.\n");
  });

  test("--replace takes the place of a running gateway, which ends as planned", async (t) => {
    const home = await place(t);
    const first = await startGateway(home);
    const second = await startGateway(home, { args: ["--replace"] });
    assert.equal((await first.result).code, 0);
    assert.match(first.lines.join("\n"), new RegExp(`stopping: replaced by process ${second.pid},`));
    assert.equal(await pidOf(home), second.pid);
    paper.say("replaced", "hello");
    await until("an answer", () => paper.textsOf("replaced").includes("heard: hello"));
  });

  test("start leaves it running in the background, restart starts it again, stop ends it", async (t) => {
    const home = await place(t);
    const started = await typed(home, ["gateway", "start"]);
    assert.equal(started.code, 0, started.stderr);
    const pid = await pidOf(home);
    assert.match(started.stdout, new RegExp(`^✓ The gateway is running \\(process ${pid}\\): paper\\n`));
    assert.equal((await typed(home, ["gateway", "start"])).code, 1);
    const [, , , session] =
      (await readFile(`/proc/${pid}/stat`, "utf8").catch(() => "")).split(") ").at(-1)?.split(" ") ?? [];
    if (session !== undefined) assert.equal(Number(session), pid, "no terminal that is closed takes it along");
    const again = await typed(home, ["gateway", "restart"]);
    assert.equal(again.code, 0, again.stderr);
    const next = await pidOf(home);
    assert.ok(next !== null && next !== pid && isRunning(next) && !isRunning(pid ?? 0));
    paper.say("background", "hello");
    await until("an answer", () => paper.textsOf("background").includes("heard: hello"));
    assert.equal((await typed(home, ["gateway", "stop"])).code, 0);
    assert.ok(!isRunning(next));
    const log = await readFile(home.at("logs", "gateway.log"), "utf8");
    assert.match(log, /\[Paper\] connected as @paper/);
  });

  test("start says why nothing came of it", async (t) => {
    const home = await place(t, { config: "" });
    await writeFile(home.at(".env"), "");
    const { code, stderr } = await typed(home, ["gateway", "start"]);
    assert.equal(code, 1);
    assert.match(stderr, /The gateway did not start\.\n[\s\S]*hermes gateway setup/);
    const { value } = await json(home, "status");
    assert.equal(value.state, "startup_failed");
  });

  test("SIGUSR2 under a service manager ends with 75, so that it is started again", async (t) => {
    const home = await place(t);
    const gateway = await startGateway(home, { env: { INVOCATION_ID: "0123" } });
    gateway.signal("SIGUSR2");
    assert.equal((await gateway.result).code, 75);
    assert.equal((await json(home, "status")).value.state, "stopped");
  });

  test("F285, F289: two profiles have two gateways with files of their own, and stop --all ends both", async (t) => {
    const home = await place(t);
    const other = await PaperServer.start();
    t.after(() => other.close());
    const make = await typed(home, ["profile", "create", "work", "--clone", "--no-alias"]);
    assert.equal(make.code, 0, make.stderr);
    const plugins = home.at("profiles", "work", "plugins");
    await cp(home.at("plugins"), plugins, { recursive: true });
    const env = Object.entries({ ...other.env, PAPER_TOKEN: other.token }).map(([name, value]) => `${name}=${value}\n`);
    await writeFile(home.at("profiles", "work", ".env"), env.join(""));
    // Two bots have two tokens; here the two servers have the same one, and so locks of their own.
    const locks = { HERMES_GATEWAY_LOCK_DIR: home.at("profiles", "work") };
    const work = ["-p", "work"];
    const first = await startGateway(home);
    const started = await runHermes([...work, "gateway", "start"], { home, env: locks });
    assert.equal(started.code, 0, started.stderr);
    const { value } = await json(home, "list");
    const rows = value.gateways.map(({ profile, state, home: dir }: Record<string, string>) => [profile, state, dir]);
    assert.deepEqual(rows, [
      ["default", "running", home.dir],
      ["work", "running", home.at("profiles", "work")],
    ]);
    const pids = value.gateways.map(({ pid }: { pid: number }) => pid);
    assert.equal(pids[0], first.pid);
    other.say("ann", "hello");
    await until("an answer of the other profile", () => other.textsOf("ann").includes("heard: hello"));
    assert.ok(!paper.textsOf("ann").includes("heard: hello"));
    for (const dir of [home.dir, home.at("profiles", "work")])
      for (const name of ["gateway.pid", "gateway.lock", "gateway_state.json", "state.db"])
        assert.ok(await isThere(`${dir}/${name}`), `${dir}/${name}`);
    const stopped = await typed(home, ["gateway", "stop", "--all"]);
    assert.equal(stopped.code, 0, stopped.stderr);
    assert.ok(!pids.some(isRunning));
  });

  test("two homes with one token: the second one is off for that platform, and says who has it", async (t) => {
    const [one, other] = [await place(t), await place(t)];
    const env = { HERMES_GATEWAY_LOCK_DIR: one.osHome };
    const first = await startGateway(one, { env });
    const second = await startGateway(other, { env, ready: null });
    assert.equal((await second.result).code, 1);
    assert.match(second.lines.join("\n"), new RegExp(`^\\[Paper\\] off: .*process ${first.pid}`, "m"));
    const { value } = await json(other, "status");
    assert.deepEqual([value.state, value.platforms.paper.error_code], ["startup_failed", "paper_lock"]);
    await first.kill();
    await startGateway(other, { env });
  });

  test("a stranger is approved on the command line while the gateway runs, and hears of it", async (t) => {
    const home = await place(t, { env: { PAPER_ALLOW_ALL_USERS: "", PAPER_UNAUTHORIZED_DM_BEHAVIOR: "pair" } });
    await startGateway(home);
    paper.say("zoe", "let me in");
    await until("a code", () => paper.textsOf("zoe").some((text) => text.includes("Pairing code: ")));
    const code = /Pairing code: (\w{8})/.exec(paper.textsOf("zoe").join("\n"))?.[1] ?? "";
    const waiting = await typed(home, ["pairing", "list"]);
    assert.ok(waiting.stdout.includes("zoe") && !waiting.stdout.includes(code));
    assert.equal((await typed(home, ["pairing", "approve", "paper", "AAAAAAAA"])).code, 1);
    const approved = await typed(home, ["pairing", "approve", "paper", code]);
    assert.deepEqual([approved.code, approved.stderr], [0, ""]);
    await until("the news", () => paper.textsOf("zoe").includes("You are in. Write to me any time."));
    paper.say("zoe", "hello");
    await until("an answer", () => paper.textsOf("zoe").includes("heard: hello"));
    assert.equal((await typed(home, ["pairing", "revoke", "paper", "zoe"])).code, 0);
    const before = model.requests.length;
    paper.say("zoe", "and now?");
    await new Promise((resolve) => setTimeout(resolve, 1000));
    assert.equal(model.requests.length, before);
  });

  test("nobody who reads the console is needed: the gateway answers on", async (t) => {
    const home = await place(t);
    const child = startHermes(["gateway", "run"], { home, env: { HERMES_GATEWAY_LOCK_DIR: home.osHome } });
    await until("it runs", async () => (await pidOf(home)) === child.pid);
    child.stdout?.destroy();
    child.stderr?.destroy();
    await until("it is connected", async () => (await json(home, "status")).value.state === "running");
    paper.say("unread", "hello");
    await until("an answer", () => paper.textsOf("unread").includes("heard: hello"));
    child.kill("SIGINT");
    assert.equal((await child.result).code, 0);
  });
});
