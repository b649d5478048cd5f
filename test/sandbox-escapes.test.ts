// What a sandboxed command must not be able to do, tried from inside with harmless payloads.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { access, mkdir, mkdtemp, readFile, rm, stat, symlink } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, type TestContext, test } from "node:test";
import { cleared } from "./support/cleared.ts";
import { missingBubblewrap, openSandbox, plant } from "./support/engines/bubblewrap.ts";
import { withEngine } from "./support/engines/require.ts";

const exists = (path: string) =>
  access(path).then(
    () => true,
    () => false,
  );

type Subject = Awaited<ReturnType<typeof openSandbox>>;

async function open(t: TestContext, options: Parameters<typeof openSandbox>[0] = {}, base?: string): Promise<Subject> {
  const subject = await openSandbox(options, base);
  t.after(subject.release);
  return subject;
}

const KEYS = {
  ".ssh/id_test": "fake key one",
  ".aws/credentials": "fake key two",
  ".config/gh/hosts.yml": "fake key three",
  ".netrc": "fake key four",
  ".git-credentials": "fake key five",
  ".hermes/.env": "FAKE=fake key six",
  ".hermes/memories/MEMORY.md": "fake key seven",
  ".hermes/skills/one/SKILL.md": "a skill",
  ".hermes/cache/page.txt": "a page",
  ".bashrc": "export FROM_RC=1\n",
  "project/mine.txt": "mine\n",
  "elsewhere/other.txt": "other\n",
};

const SECRET_FILES =
  ".config/rclone/rclone.conf .config/glab-cli/config.yml .config/sops/age/keys.txt .config/op/config .config/git/credentials .config/Signal/x " +
  ".terraform.d/credentials.tfrc.json .gem/credentials .m2/settings.xml .gradle/gradle.properties .fly/config.yml .boto .s3cfg .oci/config " +
  ".cargo/credentials.toml .bitcoin/wallet.dat .thunderbird/x .config/BraveSoftware/x .var/app/org.mozilla.firefox/x snap/firefox/x .claude.json " +
  ".claude/.credentials.json .codex/auth.json .gemini/oauth_creds.json .bash_history .my.cnf .local/share/kwalletd/x .cloudflared/cert.pem " +
  ".yarnrc.yml .local/state/x Passwords.kdbx id_ed25519 server.pem .ssh/id_rsa .env .some-tool-of-next-year/token";

await withEngine("bubblewrap", missingBubblewrap, () => {
  let box: Subject;
  before(async () => {
    // Not below /tmp, which is another one inside: here the rules for a user's files are what protects them.
    const root = await mkdtemp("/var/tmp/hermes-escape-");
    await plant(join(root, "user"), KEYS);
    box = await openSandbox(
      {
        cwd: join(root, "user/project"),
        userHome: join(root, "user"),
        hermesHome: { dir: join(root, "user/.hermes"), root: join(root, "user/.hermes") },
        environment: {
          HOME: join(root, "user"),
          OPENAI_API_KEY: "fake key eight",
          SSH_AUTH_SOCK: "/somewhere/agent",
        },
      },
      "/var/tmp",
    );
    const { release } = box;
    box = {
      ...box,
      userHome: join(root, "user"),
      directory: join(root, "user/project"),
      release: async () => {
        await release();
        await rm(root, { recursive: true, force: true });
      },
    };
  });
  after(() => box.release());

  test("the project and the temp directory are writable and really there", async () => {
    const result = await box.run("echo changed > mine.txt; echo t > /tmp/kept; cat mine.txt; echo $FROM_RC");
    assert.equal(result.output, "changed\n1\n");
    assert.equal(await readFile(join(box.directory, "mine.txt"), "utf8"), "changed\n");
    assert.equal((await box.run("cat /tmp/kept")).output, "t\n");
    assert.equal(box.environment.confinement?.writable, box.directory);
  });

  test("nothing outside the project can be written", async () => {
    const places = [
      "../marker",
      "~/marker",
      "../elsewhere/other.txt",
      "/marker",
      "/etc/marker",
      "/usr/marker",
      "/var/tmp/marker",
    ];
    for (const place of places) {
      const { exitCode, output } = await box.run(`touch ${place}; echo x >> ${place}`);
      assert.notEqual(exitCode, 0, place);
      assert.match(output, /Read-only file system/, place);
    }
    assert.equal(await exists(join(box.userHome, "marker")), false);
    assert.equal(await exists("/var/tmp/marker"), false);
    assert.equal(await readFile(join(box.userHome, "elsewhere/other.txt"), "utf8"), "other\n");
  });

  test("keys and the agent's own home are not there, its skills and cache are, read-only", async () => {
    const { output } = await box.run(
      "cat ~/.ssh/* ~/.aws/* ~/.config/gh/* ~/.netrc ~/.git-credentials ~/.hermes/.env ~/.hermes/memories/*; grep -rs 'fake key' ~ /proc/*/environ",
    );
    assert.doesNotMatch(output, /fake key/);
    assert.equal(
      (await box.run("cat ~/.hermes/skills/one/SKILL.md ~/.hermes/cache/page.txt; ls -A ~/.hermes")).output,
      "a skilla pagecache\nskills\n",
    );
    assert.notEqual((await box.run("echo x > ~/.hermes/skills/one/SKILL.md")).exitCode, 0);
    assert.notEqual((await box.run("echo x > ~/.hermes/new; echo x > ~/.ssh/new; echo x > ~/.netrc")).exitCode, 0);
    assert.equal(await readFile(join(box.userHome, ".netrc"), "utf8"), "fake key four");
  });

  test("links lead nowhere else", async () => {
    await symlink(join(box.userHome, ".ssh/id_test"), join(box.directory, "key"));
    await symlink(join(box.userHome, "elsewhere"), join(box.directory, "out"));
    assert.doesNotMatch(
      (await box.run("cat key; cat /proc/self/root$HOME/.ssh/id_test; cat /proc/self/cwd/key")).output,
      /fake key/,
    );
    assert.notEqual((await box.run("echo x > out/marker; ln -f out/other.txt hard && echo x > hard")).exitCode, 0);
    assert.equal(await readFile(join(box.userHome, "elsewhere/other.txt"), "utf8"), "other\n");
    assert.equal(await exists(join(box.userHome, "elsewhere/marker")), false);
  });

  test("what other processes see is not to be had through /proc", async () => {
    const { output } = await box.run(
      "for p in /proc/[0-9]*; do cat $p/root$HOME/.ssh/id_test; ls $p/root$HOME/.hermes; done 2>&1",
    );
    assert.doesNotMatch(output, /fake key|memories/);
    assert.doesNotMatch(
      (await box.run("ps -eo args 2>/dev/null || cat /proc/[0-9]*/cmdline")).output,
      /--test|sandbox-escapes/,
    );
    assert.equal((await box.run("ls /proc/self/fd | wc -l")).output.trim(), "4", "no file of ours is open inside");
    for (const file of ["/proc/sysrq-trigger", "/proc/sys/kernel/core_pattern", "/proc/sys/vm/swappiness"]) {
      assert.equal((await box.run(`test -w ${file} && echo writable`)).output, "", file);
    }
  });

  test("mounts cannot be changed, with or without a user namespace of one's own", async () => {
    const tries = [
      "mount -o remount,rw /",
      "mount -o remount,bind,rw /",
      "umount ~/.ssh",
      "umount -l ~/.hermes",
      "mount --bind / /tmp/root",
      "mount -t tmpfs none /etc",
    ];
    await box.run("mkdir -p /tmp/root");
    for (const attempt of tries) {
      await box.run(`${attempt}; unshare -Urm sh -c '${attempt}; touch ~/marker; cat ~/.ssh/*'; true`);
      const { output } = await box.run("touch ~/marker; touch /etc/marker; cat ~/.ssh/*; cat /tmp/root/$HOME/.ssh/*");
      assert.doesNotMatch(output, /fake key/, attempt);
      const inside = await box.run(
        `unshare -Urm sh -c '${attempt} 2>/dev/null; cat ~/.ssh/* ~/.hermes/.env; touch ~/marker'`,
      );
      assert.doesNotMatch(inside.output, /fake key/, attempt);
    }
    assert.equal(await exists(join(box.userHome, "marker")), false);
    assert.equal(await exists("/etc/marker"), false);
  });

  test("there are no rights to gain: no capabilities, no devices, no other users", async () => {
    assert.match((await box.run("cat /proc/self/status")).output, /NoNewPrivs:\t1/);
    assert.match((await box.run("cat /proc/self/status")).output, /CapEff:\t0+\n/);
    assert.notEqual((await box.run("mknod disk b 254 0")).exitCode, 0);
    assert.doesNotMatch((await box.run("ls /dev")).output, /^(vd|sd|nvme|mem|kmsg|dm-)/m);
    assert.notEqual((await box.run("setpriv --reuid=12345 --clear-groups true")).exitCode, 0);
  });

  test("secrets of ours and ways to agents are not in the environment", async () => {
    assert.equal((await box.run("env | grep -cE 'OPENAI|SSH_AUTH'")).output, "0\n");
  });

  test("processes outside cannot be seen or ended, and ending everything inside ends nothing else", async (t) => {
    const outside = spawn("sleep", ["300"], { stdio: "ignore" });
    t.after(() => outside.kill("SIGKILL"));
    for (const pid of [process.pid, process.ppid, outside.pid]) {
      await box.run(`kill -9 ${pid}; kill -9 -- -${pid}`);
    }
    await box.run("kill -9 $PPID");
    const background = await box.environment.spawn(cleared("sleep 300"), {});
    await box.run("kill -9 -1");
    assert.equal(await background.exited, -9);
    assert.equal(outside.exitCode, null);
    assert.equal(outside.signalCode, null);
    assert.equal((await box.run("echo still here")).output, "still here\n");
  });

  test("what an earlier command left running is seen and ended by a later one", async () => {
    await box.run("setsid sleep 4242 >/dev/null 2>&1 & echo $! > left.pid");
    assert.equal((await box.run("kill -0 $(cat left.pid) && kill -9 $(cat left.pid) && echo ended")).output, "ended\n");
  });

  test("with the network off, not even this machine answers", async (t) => {
    const server = createServer((socket) => socket.end("hello\n"));
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    t.after(() => server.close());
    const { port } = server.address() as { port: number }; // listening on TCP
    const ask = `exec 3<>/dev/tcp/127.0.0.1/${port} && cat <&3`;
    const cut = await open(t, { network: "off" });
    assert.match((await cut.run(ask)).output, /Connection refused/);
    assert.equal((await box.run(ask)).output, "hello\n");
  });

  test("files and sockets of others in the temp directory are out of sight", async (t) => {
    const shared = await mkdtemp(join(tmpdir(), "hermes-shared-"));
    t.after(() => rm(shared, { recursive: true }));
    const server = createServer((socket) => socket.end("agent\n"));
    await new Promise<void>((resolve) => server.listen(join(shared, "agent.sock"), resolve));
    t.after(() => server.close());
    assert.equal((await box.run(`ls ${shared} 2>/dev/null; ls /run/docker.sock /run/user 2>/dev/null`)).output, "");
  });

  test("of the dot files of a home only toolchains and settings are there, also of those that come later", async (t) => {
    const secrets = SECRET_FILES.split(" ");
    const kept = ["notes.txt", "Documents/plan.md", ".gitconfig", ".nvm/nvm.sh", ".local/bin/tool", ".tools/v2/lib/x"];
    const root = await mkdtemp("/var/tmp/hermes-escape-");
    t.after(() => rm(root, { recursive: true, force: true }));
    const user = join(root, "user");
    await plant(user, Object.fromEntries([...secrets, ...kept, "project/a"].map((name) => [name, "fake key\n"])));
    await mkdir(join(user, ".tools/v2/bin"), { recursive: true });
    await symlink(".config/rclone", join(user, "remotes"));
    await symlink("Documents", join(user, "docs"));
    const subject = await open(t, {
      cwd: join(user, "project"),
      userHome: user,
      hermesHome: { dir: join(user, ".hermes"), root: join(user, ".hermes") },
      environment: {
        ...{ HOME: user, PATH: `${join(user, ".tools/v2/bin")}:${process.env.PATH}` },
        ...{ AWS_SECRET_ACCESS_KEY: "fake key", NPM_TOKEN: "fake key", MY_DB_PASSWORD: "fake key", EDITOR: "vi" },
      },
    });
    await plant(user, { ".newtool/token": "fake key\n" });
    const cat = (names: readonly string[]) =>
      `cd ~; for f in ${names.join(" ")}; do cat "$f" 2>/dev/null && echo "$f"; done`;
    assert.equal((await subject.run(cat([...secrets, ".newtool/token", "remotes/rclone.conf"]))).output, "");
    const seen = (await subject.run(cat([...kept, "docs/plan.md"]))).output;
    assert.deepEqual(
      seen.split("\n").filter((line) => line !== "" && line !== "fake key"),
      [...kept, "docs/plan.md"],
    );
    assert.equal((await subject.run("env | grep -c 'fake key'; echo $EDITOR")).output, "0\nvi\n");
  });

  test("a key folder that is a link is hidden where it leads", async (t) => {
    const { userHome, run, release } = await openSandbox({}, "/var/tmp");
    await release();
    await plant(userHome, { "vault/id_test": "fake key nine", "project/a": "" });
    await symlink(join(userHome, "vault"), join(userHome, ".ssh"));
    t.after(() => rm(join(userHome, ".."), { recursive: true, force: true }));
    assert.ok(run);
    const second = await open(t, {
      userHome,
      cwd: join(userHome, "project"),
      environment: { HOME: userHome },
      hermesHome: { dir: join(userHome, ".hermes"), root: join(userHome, ".hermes") },
    });
    assert.doesNotMatch((await second.run("cat ~/.ssh/* ~/vault/*")).output, /fake key/);
  });

  const notProjects: readonly (readonly [string, string])[] = [
    ["the root", "/"],
    ["a system folder", "/etc"],
    ["the home", "."],
    ["the folder above the home", ".."],
    ["the agent's home", ".hermes"],
    ["the agent's skills", ".hermes/skills"],
    ["a key folder", ".ssh"],
  ];
  for (const [what, place] of notProjects) {
    test(`${what} is no project: only the temp directory and the workspace of the agent's home are writable`, async (t) => {
      const subject = await open(t, { ...homeOf(box), cwd: place.startsWith("/") ? place : join(box.userHome, place) });
      const workspace = join(box.userHome, ".hermes/workspace");
      assert.equal(subject.environment.confinement?.writable, workspace);
      const result = await subject.run(
        `touch marker; touch ~/marker; touch ${workspace}/kept; touch /tmp/fine && echo fine`,
      );
      assert.equal(await exists(join(workspace, "kept")), true);
      await rm(workspace, { recursive: true });
      assert.match(result.output, /fine\n$/);
      assert.equal(await exists(join(box.userHome, "marker")), false);
    });
  }

  test("a home that is under git is no project either, but a folder in it is one by itself", async (t) => {
    await mkdir(join(box.userHome, ".git"));
    t.after(() => rm(join(box.userHome, ".git"), { recursive: true }));
    const subject = await open(t, { ...homeOf(box), cwd: join(box.userHome, "elsewhere") });
    assert.equal(subject.environment.confinement?.writable, join(box.userHome, "elsewhere"));
    assert.match((await subject.run("touch ~/.git/marker")).output, /No such file or directory/);
  });

  test("what may be written is known before it is tried", async () => {
    const { confinement } = box.environment;
    const may = (path: string) => confinement?.allowsWrite(path.replace("~", box.userHome));
    for (const path of ["~/project/new", "~/project/a/b", "/tmp/x"]) assert.equal(may(path), true, path);
    for (const path of ["~/x", "/etc/x", "~/.ssh/x", "~/.hermes/x", "~/.hermes/skills/x", "~/project/.envrc", "/x"])
      assert.equal(may(path), false, path);
  });

  test("what runs by itself is set aside, and the command is told; what was put there outside stays", async (t) => {
    const subject = await open(t);
    const at = (name: string) => join(subject.directory, name);
    const first = await subject.run("echo one > .envrc; mkdir -p .hermes/notes");
    assert.match(first.note ?? "", /set aside .*\.envrc/);
    assert.equal(await readFile(at(".envrc.from-sandbox"), "utf8"), "one\n");
    assert.deepEqual([await exists(at(".envrc")), await exists(at(".hermes/notes"))], [false, true]);
    await plant(subject.directory, { ".envrc": "mine\n" });
    await subject.environment.confinement?.changedOutside();
    assert.equal((await subject.run("cat .envrc")).output, "mine\n");
    assert.equal(await readFile(at(".envrc"), "utf8"), "mine\n");
  });

  test("everyday work with git goes on inside", async (t) => {
    const subject = await open(t);
    const all = await subject.run(`set -e
git init -q . && git config user.name a && git config user.email a@b
echo one > a && git add a && git commit -qm one`);
    assert.deepEqual([all.exitCode, all.output], [0, ""]);
    await subject.environment.cleanup();
    const second = await open(t, {
      cwd: subject.directory,
      userHome: subject.userHome,
      environment: { HOME: subject.userHome },
    });
    const work = await second.run(`set -e
git checkout -qb other && echo two >> a && git commit -qam two && git tag t && git checkout -q - && git merge -q other
git stash list; git rebase -q other; git gc -q; git reflog expire --expire=now --all; git branch -d other; git log --oneline | wc -l`);
    assert.deepEqual([work.exitCode, work.output.split("\n").at(-2)], [0, "2"], work.output);
    assert.notEqual((await second.run("git config user.name b")).exitCode, 0);
  });

  test("a worktree can commit to its repository, a forged one opens nothing", async (t) => {
    const root = await mkdtemp("/var/tmp/hermes-worktree-");
    t.after(() => rm(root, { recursive: true, force: true }));
    await mkdir(join(root, "main"));
    const setup = spawn(
      "sh",
      [
        "-c",
        "git init -q . && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m one && git worktree add -q ../tree",
      ],
      { cwd: join(root, "main"), env: { PATH: process.env.PATH, HOME: root }, stdio: "inherit" },
    );
    assert.equal(await new Promise((resolve) => setup.on("exit", resolve)), 0);
    const tree = await open(t, { ...homeOf(box), cwd: join(root, "tree") });
    const commit = await tree.run(
      "echo x > x; git add x && git -c user.name=a -c user.email=a@b commit -q -m two && echo done",
    );
    assert.equal(commit.output, "done\n");

    await plant(root, { "forged/.git": `gitdir: ${join(root, "main/.git/worktrees/tree")}\n` });
    const forged = await open(t, { ...homeOf(box), cwd: join(root, "forged") });
    assert.notEqual((await forged.run(`touch ${join(root, "main/.git/marker")}`)).exitCode, 0);
  });

  test("when the program dies, the sandbox dies with it", async (t) => {
    const root = await mkdtemp(join(tmpdir(), "hermes-die-"));
    t.after(() => rm(root, { recursive: true, force: true }));
    const program = join(import.meta.dirname, "support/engines/bubblewrap-holder.ts");
    const holder = spawn(process.execPath, [program], {
      stdio: ["ignore", "pipe", "inherit"],
      env: { ...process.env, TMPDIR: root },
    });
    const pid = await new Promise<number>((resolve, reject) => {
      holder.stdout.once("data", (data) => resolve(Number(data)));
      holder.once("exit", (code) => reject(new Error(`the program ended with code ${code} before it had a sandbox`)));
    });
    await stat(`/proc/${pid}`);
    holder.kill("SIGKILL");
    while (await exists(`/proc/${pid}`)) await new Promise((resolve) => setTimeout(resolve, 20));
  });

  test("a directory nobody may look into does not stop the clean-up", async () => {
    const subject = await openSandbox();
    await subject.run("mkdir -p /tmp/closed/in && touch /tmp/closed/in/x && chmod 000 /tmp/closed/in");
    await subject.environment.cleanup();
    const open = spawn("chmod", ["-R", "u+rwx", subject.root]);
    await new Promise((resolve) => open.on("exit", resolve));
    await rm(subject.root, { recursive: true, force: true });
  });

  test("a command that is told to end may clean up first", async () => {
    const result = await box.environment.execute(
      cleared("trap 'echo cleaned; exit 1' TERM; echo up; while :; do sleep 0.05; done"),
      {
        timeoutMs: 300,
        signal: new AbortController().signal,
      },
    );
    assert.equal(result.output.replace("Terminated\n", ""), "up\ncleaned\n");
    assert.equal(result.exitCode, 124);
  });

  test("a pseudo-terminal works inside and its child can be ended", async () => {
    const child = await box.environment.spawn(cleared("tty; stty size; sleep 300"), { pty: true });
    let output = "";
    await new Promise<void>((resolve) => {
      child.onOutput((text) => {
        output += text;
        if (child.note || output.includes("30 120")) resolve();
      });
      if (child.note) resolve();
    });
    await child.kill();
    assert.notEqual(await child.exited, 0);
  });
});

const homeOf = (box: Subject) => ({
  userHome: box.userHome,
  environment: { HOME: box.userHome },
  hermesHome: { dir: join(box.userHome, ".hermes"), root: join(box.userHome, ".hermes") },
});
