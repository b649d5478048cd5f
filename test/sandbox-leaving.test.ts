// Who may leave the sandbox: the command that was cleared for it and nothing else.
import assert from "node:assert/strict";
import { access, mkdtemp, readFile, realpath, rm, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { defaultConfig } from "../src/home/config/schema.ts";
import { systemClock } from "../src/kit/clock.ts";
import type { ClearedCommand } from "../src/safety/decision.ts";
import { LeavableSandbox } from "../src/sandbox/leaving.ts";
import { openLocalEnvironment } from "../src/sandbox/local.ts";
import { runCode } from "../src/tools/execute-code/run.ts";
import { SCRIPT_TOOLS } from "../src/tools/execute-code.ts";
import { AvailabilityCache } from "../src/tools/toolset/availability.ts";
import type { ToolContext } from "../src/tools/toolset/context.ts";
import { loadTools } from "../src/tools/toolset/discover.ts";
import { registry } from "../src/tools/toolset/registry.ts";
import { SessionTools } from "../src/tools/toolset/session-tools.ts";
import { cleared } from "./support/cleared.ts";
import { dispatch } from "./support/dispatch.ts";
import { missingBubblewrap, openSandbox, plant } from "./support/engines/bubblewrap.ts";
import { withEngine } from "./support/engines/require.ts";
import { guardRig } from "./support/guard-rig.ts";
import { sampleOf } from "./support/sample.ts";
import { recordingLog, toolContext } from "./support/tool-context.ts";
import { tellWhenDone } from "./support/trust-figures.ts";

/** Ways around a watcher inside the interpreter. In a sandbox there is nothing to get around. */
const all: readonly { readonly id: string; readonly row: string; readonly why: string }[] = (
  await readFile(new URL("fixtures/trust/scripts.jsonl", import.meta.url), "utf8")
)
  .trim()
  .split("\n")
  .map((line) => JSON.parse(line));
const rows = sampleOf(all, 3, "scripts");

const { signal } = new AbortController();
const limits = { timeoutMs: 30_000, signal };
const outside = { outside: true };

const exists = (path: string) =>
  access(path).then(
    () => true,
    () => false,
  );

/** A sandbox in a home that is not below /tmp, with a way out. */
async function open(t: TestContext, files: Readonly<Record<string, string>> = {}) {
  const box = await openSandbox({}, await realpath(await mkdtemp("/var/tmp/hermes-leave-")));
  await plant(box.userHome, files);
  const environment = new LeavableSandbox(box.environment, () =>
    openLocalEnvironment({ cwd: "/", environment: { PATH: process.env.PATH ?? "", HOME: box.userHome } }),
  );
  t.after(async () => {
    await environment.cleanup();
    await rm(join(box.root, ".."), { recursive: true, force: true, maxRetries: 3 });
  });
  const run = (line: string, where = {}) => environment.execute(cleared(line, where), limits);
  return { ...box, environment, run };
}

async function tools(t: TestContext, files: Readonly<Record<string, string>> = {}) {
  const box = await open(t, files);
  const rig = guardRig({ confined: () => true });
  await loadTools(recordingLog());
  const ctx: ToolContext = {
    ...toolContext({ homeDir: box.hermes, environment: box.environment, guard: rig.guard }),
    env: (name) => (name === "HOME" ? box.userHome : undefined),
  };
  const call = async (name: string, args: object) =>
    JSON.parse(String(await dispatch(registry, name, { ...args }, ctx)));
  return { ...box, ...rig, ctx, call };
}

await withEngine("bubblewrap", missingBubblewrap, () => {
  test("a command without the mark cannot leave, whatever it says", async (t) => {
    const { run, environment, userHome } = await open(t);
    assert.notEqual((await run("touch ~/marker")).exitCode, 0);
    const child = await environment.spawn(cleared("touch ~/marker"), {});
    assert.notEqual(await child.exited, 0);
    const inside = cleared("touch ~/marker");
    const forged: unknown[] = [
      { text: "touch ~/marker", outside: true },
      { ...inside, outside: true },
      Object.create(inside, { outside: { value: true } }),
    ];
    for (const command of forged) {
      await assert.rejects(environment.execute(command as ClearedCommand, limits), /without a decision/);
      await assert.rejects(environment.spawn(command as ClearedCommand, {}), /without a decision/);
    }
    assert.throws(() => Object.assign(inside, outside), TypeError);
    assert.equal(await exists(join(userHome, "marker")), false);
  });

  test("a command with the mark runs outside, in the same directory, and leaves its own state behind", async (t) => {
    const { run, environment, userHome, directory } = await open(t);
    await run("mkdir sub && cd sub && export INSIDE=1");
    assert.equal(
      (await run("pwd; echo out > ~/marker; echo $INSIDE; cd ..; export OUT=2", outside)).output,
      `${directory}/sub\n\n`,
    );
    assert.equal(await readFile(join(userHome, "marker"), "utf8"), "out\n");
    assert.equal((await run("pwd; echo $INSIDE$OUT")).output, `${directory}\n1\n`);
    assert.equal((await run("echo $OUT", outside)).output, "2\n");
    const child = await environment.spawn(cleared("echo bg > ~/background; pwd > ~/where", outside), {});
    assert.equal(await child.exited, 0);
    assert.equal(await readFile(join(userHome, "where"), "utf8"), `${directory}\n`);
  });

  test("the terminal tool asks before it leaves, says why, and needs a reason", async (t) => {
    const { call, asked, answer, userHome } = await tools(t);
    assert.match((await call("terminal", { command: "touch ~/marker", outside: true })).error, /needs a reason/);
    const refused = await call("terminal", { command: "touch ~/marker", outside: true, reason: "a file of mine" });
    assert.equal(refused.status, "blocked");
    assert.match(asked[0]?.note ?? "", /outside the sandbox\..*a file of mine/);
    assert.equal(await exists(join(userHome, "marker")), false);
    answer({ choice: "once" });
    const done = await call("terminal", { command: "touch ~/marker", outside: true, reason: "a file of mine" });
    assert.deepEqual([done.exit_code, await exists(join(userHome, "marker"))], [0, true]);
    const started = await call("terminal", { command: "touch ~/late", outside: true, reason: "r", background: true });
    assert.equal(started.exit_code, 0, JSON.stringify(started));
    assert.equal(asked.length, 3);
  });

  test("what fails for the sandbox's sake is told in one line, what fails otherwise is not", async (t) => {
    const { call } = await tools(t, { ".netrc": "x" });
    const write = await call("terminal", { command: "echo x > ~/marker" });
    assert.match(write.hint, /^The sandbox is in the way: .*not written\. .*outside=true and a reason$/);
    // What git says when it pushes into a repository that cannot be written.
    const push = "echo 'error: remote unpack failed: unable to create temporary object directory'; exit 1";
    assert.match((await call("terminal", { command: push })).hint, /^The sandbox is in the way: .*not written/);
    // What git says when it renames over a settings file that is a mount.
    const busy = "echo 'error: could not write config file .git/config: Device or resource busy'; exit 4";
    assert.match((await call("terminal", { command: busy })).hint, /^The sandbox is in the way: settings of git/);
    const plain = await call("terminal", { command: "cat /no/such/file" });
    assert.doesNotMatch(plain.hint ?? "", /sandbox/);
    assert.equal((await call("terminal", { command: "echo Read-only file system" })).hint, undefined);
  });

  test("leaving is offered only where there is a sandbox", async (t) => {
    const { environment } = await open(t);
    const offered = async (given: typeof environment | ToolContext["environment"]) => {
      const list = await SessionTools.open({
        ...{ registry, platform: "cli", config: defaultConfig(), contextLength: 200_000 },
        ...{ availability: new AvailabilityCache(systemClock), environment: given, log: recordingLog() },
        env: () => undefined,
      });
      const terminal = list.definitions.find(({ function: { name } }) => name === "terminal");
      return Object.keys((terminal?.function.parameters.properties ?? {}) as object).filter((name) =>
        ["outside", "reason", "command"].includes(name),
      );
    };
    assert.deepEqual(await offered(environment), ["command", "outside", "reason"]);
    assert.deepEqual(await offered(toolContext().environment), ["command"]);
  });

  test("file tools write where commands may, and ask for every other place", async (t) => {
    const { call, asked, answer, userHome, directory } = await tools(t, { "other/a.txt": "one\ntwo\n" });
    assert.equal((await call("write_file", { path: "in.txt", content: "x" })).bytes_written, 1);
    assert.equal((await call("write_file", { path: "/tmp/in.txt", content: "x" })).bytes_written, 1);
    assert.equal(asked.length, 0);
    const refused = await call("write_file", { path: "~/other/new.txt", content: "x" });
    assert.match(refused.error, /outside sandbox: write .*other/);
    assert.equal(await exists(join(userHome, "other/new.txt")), false);
    answer({ choice: "session" });
    assert.equal((await call("write_file", { path: "~/other/deep/new.txt", content: "x" })).bytes_written, 1);
    assert.equal(await readFile(join(userHome, "other/deep/new.txt"), "utf8"), "x");
    assert.match(asked.at(-1)?.command ?? "", /^write \/var\/tmp\/.*\/other\/deep\/new\.txt$/);
    const patched = await call("patch", { mode: "replace", path: "~/other/a.txt", old_string: "two", new_string: "2" });
    assert.equal(patched.success, true, JSON.stringify(patched));
    assert.equal(await readFile(join(userHome, "other/a.txt"), "utf8"), "one\n2\n");
    const lines = [`*** Delete File: ${userHome}/other/a.txt`, `*** Add File: ${userHome}/other/b.txt`, "+b"];
    const several = ["*** Begin Patch", ...lines, "*** End Patch"].join("\n");
    const both = await call("patch", { mode: "patch", patch: several });
    assert.equal(both.success, true, JSON.stringify(both));
    assert.deepEqual(
      [await exists(join(userHome, "other/a.txt")), await readFile(join(userHome, "other/b.txt"), "utf8")],
      [false, "b\n"],
    );
    await symlink(join(userHome, "other"), join(directory, "link"));
    answer({ choice: "deny" });
    asked.length = 0;
    await call("write_file", { path: "~/third.txt", content: "x" });
    assert.equal(asked.length, 1, "the yes was for another folder");
    assert.equal((await call("write_file", { path: "link/through.txt", content: "x" })).bytes_written, 1);
    assert.equal(asked.length, 1, "links count as where they lead");
  });

  test("a yes to leave opens no file that is protected", async (t) => {
    const { call, asked, answer, userHome } = await tools(t, { ".ssh/config": "mine" });
    answer({ choice: "once" });
    for (const path of ["~/.ssh/config", "~/.ssh/authorized_keys", "~/.hermes/.env", "~/.hermes/config.yaml"])
      assert.match((await call("write_file", { path, content: "x" })).error, /denied/i, path);
    assert.equal(asked.length, 0);
    assert.equal(await readFile(join(userHome, ".ssh/config"), "utf8"), "mine");
  });

  test("a file that runs by itself is written with a yes, and stays", async (t) => {
    const { call, answer, directory, run } = await tools(t);
    answer({ choice: "once" });
    assert.equal((await call("write_file", { path: ".envrc", content: "export A=1\n" })).bytes_written, 11);
    await run("true");
    assert.equal(await readFile(join(directory, ".envrc"), "utf8"), "export A=1\n");
    assert.match(
      (await call("write_file", { path: ".hermes/plugins/p.js", content: "x" })).error,
      /is protected, it is code that runs inside Hermes/,
    );
  });

  const held = tellWhenDone(
    { kind: "scripts", sandbox: "with" },
    rows.map(({ id }) => id),
  );
  for (const { id, row, why } of rows)
    test(`${id}: a script cannot reach the home by ${why}`, async (t) => {
      const { ctx, userHome, hermes, asked } = await tools(t, { ".bashrc": "mine\n" });
      await writeFile(join(hermes, "config.yaml"), "a: 1\n");
      await writeFile(join(hermes, "state.db"), "not a database");
      const code = row.replaceAll("@HOME@", userHome);
      const result = JSON.parse(await runCode(code, ctx, { timeoutMs: 60_000, tools: SCRIPT_TOOLS }));
      assert.match(result.output, /^ran$/m, JSON.stringify(result));
      assert.equal(await readFile(join(userHome, ".bashrc"), "utf8"), "mine\n");
      assert.equal(await readFile(join(hermes, "config.yaml"), "utf8"), "a: 1\n");
      assert.equal(await readFile(join(hermes, "state.db"), "utf8"), "not a database");
      assert.equal(await exists(join(userHome, "marker")), false);
      assert.equal(asked.length, 0, "in the sandbox a script needs no yes");
      held(id);
    });
});
