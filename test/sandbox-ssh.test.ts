import assert from "node:assert/strict";
import { mkdir, mkdtemp, readdir, readFile, realpath, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import type { TerminalConfig } from "../src/sandbox/open.ts";
import { openSshEnvironment } from "../src/sandbox/ssh.ts";
import { processTable } from "../src/tools/terminal/processes.ts";
import { runTerminal } from "../src/tools/terminal/run.ts";
import { createToolState } from "../src/tools/toolset/session-tools.ts";
import { backendConformance } from "./support/backend-conformance.ts";
import { cleared } from "./support/cleared.ts";
import { plant } from "./support/engines/bubblewrap.ts";
import { withEngine } from "./support/engines/require.ts";
import { missingSshd, sshServer } from "./support/engines/sshd.ts";
import { terminalConfig } from "./support/engines/terminal-config.ts";
import { usable } from "./support/engines/usable.ts";
import { sayHello } from "./support/environment-conformance.ts";
import { talk } from "./support/talk.ts";
import { toolContext } from "./support/tool-context.ts";

await withEngine("an ssh server", missingSshd, () => {
  async function open(
    changes: Partial<TerminalConfig> = {},
    environment: Record<string, string> = {},
    handedOn = () => ({}),
  ) {
    const server = await sshServer();
    const directory = await realpath(await mkdtemp(join(tmpdir(), "hermes-ssh-")));
    const hermes = join(server.root, "hermes-here");
    await mkdir(hermes, { recursive: true });
    const { PATH = "" } = process.env;
    const { terminal } = terminalConfig({
      backend: "ssh",
      ssh_host: "127.0.0.1",
      ssh_port: server.port,
      ssh_user: server.user,
      ssh_key: server.key,
      cwd: directory,
      ...changes,
    });
    const opened = await openSshEnvironment(terminal, {
      cwd: directory,
      environment: { PATH, TMPDIR: server.root, ...environment },
      handedOn,
      userHome: server.root,
      hermesHome: { dir: hermes, root: hermes },
      unattended: true,
      sshArguments: server.sshArguments,
    });
    const used = usable(opened, () => rm(directory, { recursive: true, force: true }));
    return { ...used, directory, server, hermes };
  }

  backendConformance("ssh", open, { sharesFiles: true });

  test("commands there see no variable of ours that was not named, and no secret even then", async (t) => {
    const { run, release } = await open(
      { env_passthrough: ["EDITOR", "OPENAI_API_KEY"] },
      { EDITOR: "a 'b'", OPENAI_API_KEY: "k1", OTHER: "mine" },
    );
    t.after(release);
    assert.equal((await run("env | grep -E 'KEY|EDITOR|OTHER'")).output, "EDITOR=a 'b'\n");
  });

  test("what is handed on later is there with the next command", async (t) => {
    const later: Record<string, string> = {};
    const { run, release } = await open({}, {}, () => later);
    t.after(release);
    const show = "printenv LATER || echo nothing";
    assert.equal((await run(show)).output, "nothing\n");
    later.LATER = "it's $here";
    assert.equal((await run(show)).output, "it's $here\n");
  });

  test("skills and named credentials are there, secrets are not, and what changed there comes back", async () => {
    const { root } = await sshServer();
    await plant(join(root, "hermes-here"), {
      "skills/one/SKILL.md": "a skill\n",
      "token.json": "fake\n",
      ".env": "K=fake\n",
    });
    const { run, release, hermes } = await open({ credential_files: ["token.json"] });
    assert.equal(
      (await run("cat ~/.hermes/skills/one/SKILL.md ~/.hermes/token.json; ls -A ~/.hermes")).output,
      "a skill\nfake\nskills\ntoken.json\n",
    );
    await run(
      "echo refreshed > ~/.hermes/token.json; mkdir ~/.hermes/skills/two; echo learned > ~/.hermes/skills/two/SKILL.md",
    );
    await release();
    assert.equal(await readFile(join(hermes, "token.json"), "utf8"), "refreshed\n");
    assert.equal(await readFile(join(hermes, "skills/two/SKILL.md"), "utf8"), "learned\n");
    await rm(hermes, { recursive: true });
    await assert.rejects(open({ credential_files: ["../outside"] }), /credential_files/);
  });

  test("sudo there reads the password from its input; no command line shows it", async (t) => {
    const { home } = await sshServer();
    await plant(home, {
      "bin/sudo":
        '#!/bin/sh\nread -r secret\necho "$# $*" "got $(printf %s "$secret" | wc -c)"; cat /proc/$PPID/cmdline\n',
    });
    t.after(() => rm(join(home, "bin"), { recursive: true }));
    const { environment, run, release } = await open();
    t.after(release);
    await run("chmod +x ~/bin/sudo; export PATH=$HOME/bin:$PATH");
    const ctx = toolContext({ environment, env: (name) => (name === "SUDO_PASSWORD" ? "open sesame" : undefined) });
    const { output } = JSON.parse(await runTerminal({ command: "sudo whoami" }, ctx));
    assert.match(output, /^4 -S -p {2}whoami got 11/);
    assert.doesNotMatch(output, /open sesame/);
  });

  test("what login files print on the other machine is no output", async (t) => {
    const { home } = await sshServer();
    await writeFile(join(home, ".bashrc"), "echo welcome; echo to the machine >&2; export FROM_RC=1\n");
    t.after(() => rm(join(home, ".bashrc")));
    const { run, release, environment, directory } = await open();
    t.after(release);
    assert.equal((await run("echo $FROM_RC")).output, "1\n");
    await environment.files?.write(join(directory, "a"), "text");
    assert.equal((await environment.files?.read(join(directory, "a")))?.toString(), "text");
  });

  test("a path that only means something here is not looked for there", async (t) => {
    const { environment, release, server } = await open({ cwd: "." });
    t.after(release);
    assert.equal(environment.cwd, server.home);
    assert.equal(environment.home, server.home);
    assert.equal(environment.isolated, false);
  });

  test("nothing stays behind on the other machine", async () => {
    const first = await open();
    const { tempDir } = first.environment;
    const before = await readdir(tempDir);
    const second = await open();
    await second.run("export A=1");
    assert.equal((await readdir(tempDir)).length, before.length + 1);
    await second.release();
    assert.deepEqual(await readdir(tempDir), before);
    await first.release();
  });

  test("a background process there is listed and killed like one here", async (t) => {
    const { environment, run, release, directory } = await open();
    t.after(release);
    const state = createToolState();
    const ctx = toolContext({ homeDir: directory, environment, state });
    const table = state.of(processTable);
    const start = { command: "sleep 300", cwd: directory, notify: false, watch: [] };
    const child = await environment.spawn(cleared("echo $$ > bg.pid; sleep 300 & wait"), {});
    const added = await table.add(child, start, ctx);
    assert.ok(!("error" in added));
    assert.deepEqual(
      (await table.list(ctx)).map((process) => process.exitCode),
      [null],
    );
    assert.equal(
      (await run("until test -s bg.pid; do sleep 0.02; done; kill -0 $(cat bg.pid) && echo up")).output,
      "up\n",
    );
    assert.equal(await table.kill(added, ctx), true);
    assert.equal((await run("kill -0 $(cat bg.pid) 2>/dev/null || echo gone")).output, "gone\n");
    await state.dispose();
  });

  test("a terminal on the other machine is one", async (t) => {
    const { environment, release } = await open();
    t.after(release);
    const { output, note } = await sayHello(environment, "test -t 1 && stty size; read -r x; echo got $x");
    assert.doesNotMatch(output, /HERMES/);
    if (!note) assert.match(output, /30 120\r\n/);
  });

  test("a server that comes back is found again, and what broke in between says so", async (t) => {
    const { environment, run, release, server } = await open();
    t.after(release);
    const broken = run("touch ~/begun; sleep 30");
    await run("until test -e ~/begun; do sleep 0.05; done");
    await server.stop();
    const result = await broken;
    assert.notEqual(result.exitCode, 0);
    const soon = setTimeout(() => void server.start(), 500);
    t.after(() => clearTimeout(soon));
    assert.equal((await run("echo back")).output, "back\n");
    assert.equal(environment.kind, "ssh");
  });

  test("waiting for a server can be interrupted", async (t) => {
    const { environment, release, server } = await open();
    await server.stop();
    const abort = new AbortController();
    setTimeout(() => abort.abort(), 200);
    const result = await environment.execute(cleared("echo never"), { timeoutMs: 30_000, signal: abort.signal });
    assert.deepEqual([result.interrupted, result.output], [true, ""]);
    await server.start();
    t.after(release);
  });

  test("a login that is refused, an unknown port and a changed host key are told apart", async () => {
    const server = await sshServer();
    const other = join(server.root, "other");
    await writeFile(other, await readFile(join(server.root, "host")), { mode: 0o600 });
    await assert.rejects(open({ ssh_key: other, ssh_user: "nobody-here" }), /refused the login.*ssh-copy-id/s);
    await assert.rejects(open({ ssh_port: 1 }), /No connection to .*:1.*terminal\.ssh_port/s);
    const known = join(server.root, "known_hosts");
    const right = await readFile(known, "utf8");
    const wrong = (await readFile(join(server.root, "client.pub"), "utf8")).split(" ").slice(0, 2).join(" ");
    await writeFile(known, `[127.0.0.1]:${server.port} ${wrong}\n`);
    await assert.rejects(
      open({ ssh_user: `${server.user}` }, { TMPDIR: await mkdtemp(join(server.root, "t")) }),
      /host key .* has changed.*ssh-keygen -R/s,
    );
    await writeFile(known, right);
  });

  test("a child of a conversation there stands where its parent stands", async (t) => {
    const server = await sshServer();
    const bin = await mkdtemp(join(server.root, "bin-"));
    const { PATH = "" } = process.env;
    const quoted = server.sshArguments.map((part) => `'${part}'`).join(" ");
    await writeFile(join(bin, "ssh"), `#!/bin/sh\nPATH='${PATH}' exec ssh ${quoted} "$@"\n`, { mode: 0o755 });
    const terminal = {
      backend: "ssh",
      ssh_host: "127.0.0.1",
      ssh_port: server.port,
      ssh_user: server.user,
      ssh_key: server.key,
    };
    const chat = await talk(t, { config: `terminal: ${JSON.stringify(terminal)}\n`, env: { PATH: `${bin}:${PATH}` } });
    await mkdir(join(server.home, "there"));
    const run = (command: string) => ({ toolCalls: [{ name: "terminal", arguments: { command } }] });
    chat.server.otherwise(({ body }) => {
      const said = body.messages.filter((message: { role: string }) => message.role !== "system");
      const answer = { text: String(said.at(-1).content) };
      if (said[0].content === "look") return said.length === 1 ? run("pwd") : answer;
      if (said.length === 1) return run("cd there");
      return said.length === 3 ? { toolCalls: [{ name: "delegate_task", arguments: { goal: "look" } }] } : answer;
    });
    const done = (await chat.say("start it")).at(-1);
    assert.ok(done?.type === "done");
    const [{ summary }] = JSON.parse(done.outcome.finalText ?? "").results;
    assert.equal(JSON.parse(summary).output, join(server.home, "there"));
  });

  // Behind everything that still has to say good-bye to it.
  after(async () => (await sshServer()).release());
});
