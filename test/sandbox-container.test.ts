import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtemp, readFile, realpath, rm } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { openEnvironment, type TerminalConfig } from "../src/sandbox/open.ts";
import { backendConformance } from "./support/backend-conformance.ts";
import { cleared } from "./support/cleared.ts";
import { plant } from "./support/engines/bubblewrap.ts";
import { missingPodman, podmanEngine } from "./support/engines/podman.ts";
import { withEngine } from "./support/engines/require.ts";
import { terminalConfig } from "./support/engines/terminal-config.ts";
import { usable } from "./support/engines/usable.ts";
import { sayHello } from "./support/environment-conformance.ts";

after(async () => (await podmanEngine().catch(() => null))?.release());

await withEngine("podman", missingPodman, () => {
  async function open(
    changes: Partial<TerminalConfig> = {},
    {
      environment = {},
      handedOn,
      home: given,
    }: { environment?: Record<string, string>; handedOn?: () => Record<string, string>; home?: string } = {},
  ) {
    const engine = await podmanEngine();
    const home = given ?? (await realpath(await mkdtemp(join(tmpdir(), "hermes-container-"))));
    const config = terminalConfig({
      backend: "docker",
      docker_image: engine.image,
      docker_network: "none",
      container_memory: 512,
      docker_shm_size: "16m",
      container_disk: 0,
      ...changes,
    });
    const opened = await openEnvironment(config, {
      cwd: home,
      environment: { ...engine.env, TMPDIR: home, HERMES_DOCKER_BINARY: "podman", ...environment },
      handedOn,
      userHome: home,
      hermesHome: { dir: home, root: home },
      unattended: true,
    });
    const used = usable(opened, () => rm(home, { recursive: true, force: true, maxRetries: 3 }));
    const run = async (command: string) => (await used.run(command)).output;
    const folder = join(home, "sandboxes/docker/default/home");
    const isRunning = async () => (await engine.podman("ps", "-q", "--filter", `volume=${folder}`)).output !== "";
    return { ...used, run, directory: "/root", home, engine, isRunning };
  }

  backendConformance("podman", open, { sharesFiles: false, slow: true });

  test("what a script says before it has read its input is never lost", async () => {
    const { environment, release } = await open();
    const writes = Array.from({ length: 30 }, () => environment.files?.write("/root/nothing/file", "x"));
    const ended = await Promise.allSettled(writes);
    assert.deepEqual(
      ended.map((one) => (one.status === "rejected" ? one.reason.code : one.status)),
      writes.map(() => "ENOENT"),
    );
    await release();
  });

  test("commands see what was named for them and no other variable of ours", async (t) => {
    const { run, release } = await open(
      {
        docker_forward_env: ["GROQ_API_KEY"],
        env_passthrough: ["EDITOR", "OPENAI_API_KEY"],
        docker_env: { FIXED: "a 'b' $c" },
      },
      {
        environment: {
          GROQ_API_KEY: "given",
          EDITOR: "vi",
          OPENAI_API_KEY: "k1",
          TELEGRAM_BOT_TOKEN: "k2",
          OTHER: "mine",
        },
      },
    );
    t.after(release);
    assert.equal(
      await run("env | grep -E 'KEY|TOKEN|EDITOR|OTHER|FIXED|CONTAINERS_CONF' | sort"),
      "EDITOR=vi\nFIXED=a 'b' $c\nGROQ_API_KEY=given\n",
    );
  });

  test("what is handed on later is there with the next command", async (t) => {
    const later: Record<string, string> = {};
    const { run, release } = await open({}, { handedOn: () => later });
    t.after(release);
    const show = `echo "\${LATER-nothing}"`;
    assert.equal(await run(show), "nothing\n");
    later.LATER = "it's $here";
    assert.equal(await run(show), "it's $here\n");
  });

  test("a container has few rights, a network only if wanted, and nothing of this machine", async (t) => {
    const { run, environment, release, home } = await open({ container_persistent: false });
    t.after(release);
    assert.equal(environment.isolated, true);
    const status = await run("cat /proc/self/status");
    assert.match(status, /NoNewPrivs:\t1/);
    // DAC_OVERRIDE, CHOWN, FOWNER, SETUID, SETGID and nothing else.
    assert.match(status, /CapBnd:\t00000000000000cb\n/);
    assert.equal(await run(`ls ${home} 2>/dev/null; cat /proc/net/dev | grep -c eth`), "0\n");
    assert.match(await run("cat /proc/mounts"), /tmpfs \/var\/tmp tmpfs [^ ]*noexec/);
    assert.match(
      await run("cat /sys/fs/cgroup/pids/pids.max 2>/dev/null || cat /sys/fs/cgroup/pids.max 2>/dev/null || echo 256"),
      /^256$/m,
    );
  });

  test("nothing of this machine is reached from inside: files, keys, processes, the network, the kernel's settings", async (t) => {
    const { run, release, home, engine } = await open({ container_persistent: true });
    t.after(release);
    await plant(home, { ".ssh/id_test": "fake key one", ".env": "K=fake key two", "config.yaml": "approvals: {}\n" });
    const outside = spawn("sleep", ["300"], { stdio: "ignore" });
    t.after(() => outside.kill("SIGKILL"));
    const server = createServer((socket) => socket.end("hello\n"));
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    t.after(() => server.close());
    const { port } = server.address() as { port: number }; // listening on TCP

    // Links made in folders that are really on this machine lead somewhere inside the container only.
    const tricks = [
      `cat ${home}/.ssh/id_test ${home}/.env ~/.hermes/.env`,
      `ln -s ${home}/.ssh ~/keys; cat ~/keys/id_test`,
      "ln -s /proc/1/root ~/up; cat ~/up/etc/shadow ~/up/root/.ssh/id_test",
      `for p in /proc/[0-9]*; do cat $p/root${home}/.ssh/id_test $p/cwd/../../.env $p/environ; done`,
      `cat ../../../../../..${home}/.env`,
      "grep -rs 'fake key' /root /workspace /run /tmp /etc /proc/self/root/root",
    ];
    for (const trick of tricks) assert.doesNotMatch(await run(`(${trick}) 2>&1`), /fake key|HERMES_DOCKER/, trick);
    await run(
      `echo x > ${home}/marker; echo x > ~/up${home}/marker; echo x > /proc/1/cwd/marker; mkdir -p ${home}; true`,
    );
    await assert.rejects(readFile(join(home, "marker")));

    for (const pid of [process.pid, process.ppid, outside.pid]) await run(`kill -9 ${pid}; kill -9 -- -${pid}`);
    await run("kill -9 $PPID");
    assert.deepEqual([outside.exitCode, outside.signalCode], [null, null]);
    assert.doesNotMatch(await run("cat /proc/[0-9]*/cmdline"), /sandbox-container|--test/);

    assert.notEqual(await run(`exec 3<>/dev/tcp/127.0.0.1/${port} && cat <&3`), "hello\n");
    for (const file of ["/proc/sysrq-trigger", "/proc/sys/kernel/core_pattern", "/sys/kernel/uevent_helper"])
      assert.equal(await run(`(echo x > ${file}) 2>/dev/null && echo written`), "", file);
    for (const file of [
      "/run/docker.sock",
      "/var/run/docker.sock",
      "/run/podman/podman.sock",
      "/dev/sda",
      "/dev/mem",
      "/dev/kmsg",
    ])
      assert.equal(await run(`test -e ${file} && echo there`), "", file);
    assert.equal((await engine.podman("ps", "-q")).code, 0);
    assert.equal(await run("echo still here"), "still here\n");
  });

  test("folders of this machine make a container no longer isolated", async (t) => {
    const { run, environment, release, home } = await open({ docker_mount_cwd_to_workspace: true });
    t.after(release);
    assert.equal(environment.isolated, false);
    assert.equal(environment.cwd, "/workspace");
    assert.equal(await run("echo here > new && pwd"), "/workspace\n");
    assert.equal(await readFile(join(home, "new"), "utf8"), "here\n");
  });

  test("skills, cache and named credentials are there to be read", async (t) => {
    const home = await realpath(await mkdtemp(join(tmpdir(), "hermes-container-")));
    await plant(home, {
      "skills/a/SKILL.md": "a skill\n",
      "cache/x": "cached\n",
      "google_token.json": "fake\n",
      ".env": "K=fake",
    });
    const { run, release } = await open({ credential_files: ["google_token.json", "not_there.json"] }, { home });
    t.after(release);
    assert.equal(
      await run("cd ~/.hermes; cat skills/a/SKILL.md cache/x google_token.json; ls -A"),
      "a skill\ncached\nfake\ncache\ngoogle_token.json\nskills\n",
    );
    assert.match(await run("echo x > ~/.hermes/skills/new"), /Read-only file system/);
    await run("cd");
  });

  test("one container serves two programs, and stops with the last one; its files live on", async (t) => {
    const first = await open();
    t.after(first.release);
    const second = await open({}, { home: first.home });
    await first.run("echo shared > /tmp/shared; echo kept > ~/kept; export ONLY_FIRST=1");
    assert.equal(await second.run("cat /tmp/shared; echo [$ONLY_FIRST]"), "shared\n[]\n");
    await second.environment.cleanup();
    assert.equal(await first.isRunning(), true);
    await first.environment.cleanup();
    assert.equal(await first.isRunning(), false);
    const third = await open({}, { home: first.home });
    assert.equal(await third.run("cat ~/kept; cat /tmp/shared 2>/dev/null"), "kept\n");
    await third.environment.cleanup();
  });

  test("other settings make another container", async (t) => {
    const first = await open();
    t.after(first.release);
    await first.run("touch /tmp/old");
    const second = await open({ container_memory: 256 }, { home: first.home });
    assert.equal(await second.run("ls /tmp"), "");
    await second.environment.cleanup();
  });

  test("a container that was removed under a running program is made again", async (t) => {
    const { run, release, engine, environment } = await open();
    t.after(release);
    await run("export LOST=1; echo kept > kept");
    await engine.podman("rm", "-fa", "-t", "0");
    assert.equal(await run("cat kept; echo [$LOST]"), "kept\n[]\n");
    assert.equal(environment.cwd, "/root");
    await engine.podman("rm", "-fa", "-t", "0");
    assert.equal((await environment.files?.read("/root/kept"))?.toString(), "kept\n");
  });

  test("a container nobody uses is stopped, one with a background process is not", async (t) => {
    const { run, release, isRunning, environment } = await open({ lifetime_seconds: 1 });
    t.after(release);
    const child = await environment.spawn(cleared("sleep 300"), {});
    await new Promise((resolve) => setTimeout(resolve, 1500));
    assert.equal(await isRunning(), true);
    await child.kill();
    while (await isRunning()) await new Promise((resolve) => setTimeout(resolve, 100));
    assert.equal(await run("echo again"), "again\n");
  });

  test("a connection to the container that no longer answers is replaced, and nothing runs twice", async (t) => {
    const { environment, release, run } = await open();
    t.after(release);
    await environment.files?.write("/root/seen", "seen");
    const clients = await openShells();
    assert.notEqual(clients.length, 0, "a shell stays open for scripts");
    for (const pid of clients) process.kill(pid, "SIGSTOP");
    assert.equal((await environment.files?.read("/root/seen"))?.toString(), "seen");
    assert.equal(await run("echo there"), "there\n");
  });

  test("containers that ended long ago are removed when the next one is opened", async (t) => {
    const { release, engine, home } = await open();
    t.after(release);
    const labels = ["--label", "hermes-agent=1", "--label", "hermes-profile=default"];
    await engine.podman("run", "-d", "--name", "orphan", "--network", "none", ...labels, engine.image, "sleep", "0");
    await engine.podman("wait", "orphan");
    await new Promise((resolve) => setTimeout(resolve, 2100));
    const next = await open({ lifetime_seconds: 1 }, { home });
    assert.notEqual((await engine.podman("inspect", "orphan")).code, 0);
    await next.environment.cleanup();
  });

  test("an image that cannot be had is named", async () => {
    await assert.rejects(
      open({ docker_image: "localhost/not-there:latest" }),
      /The image localhost\/not-there:latest is missing/,
    );
  });

  test("a terminal inside a container is one", async (t) => {
    const { environment, release } = await open();
    t.after(release);
    const { output, note } = await sayHello(environment, "test -t 1 && echo terminal; read -r x; echo got $x");
    assert.doesNotMatch(output, /HERMES/);
    if (!note) assert.match(output, /terminal\r\n/);
  });
});

/** Programs of ours that hold a shell in a container open. */
async function openShells(): Promise<number[]> {
  const children = await readFile(`/proc/self/task/${process.pid}/children`, "utf8");
  const pids = children.split(" ").filter(Boolean).map(Number);
  const lines = await Promise.all(pids.map((pid) => readFile(`/proc/${pid}/cmdline`, "utf8").catch(() => "")));
  return pids.filter((_, at) => lines[at]?.includes("\0exec sh"));
}
