// Ways out of the sandbox, tried from inside with harmless payloads: after each of them nothing outside may be changed, run or seen.
import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { lstat, mkdir, mkdtemp, readdir, readFile, readlink, realpath, rm } from "node:fs/promises";
import { createServer, type Server } from "node:net";
import { join, relative } from "node:path";
import { after, before, describe, test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { promisify } from "node:util";
import { missingBubblewrap, openSandbox, plant } from "../support/engines/bubblewrap.ts";
import { withEngine } from "../support/engines/require.ts";
import { sampleOf } from "../support/sample.ts";
import { tellWhenDone } from "../support/trust-figures.ts";

interface Row {
  readonly id: string;
  readonly why: string;
  readonly row: {
    readonly run: string;
    readonly network?: "off";
    /** Begins in a worktree of the project. */
    readonly inTree?: true;
    /** What it prints when it got through, besides a key. */
    readonly says?: string;
    /** The user's own, before: how the project looks. */
    readonly before?: string;
    /** Where Hermes was started, from the home directory. */
    readonly cwd?: string;
    /** The user's own, while the command runs, again and again. */
    readonly during?: string;
    /** The user's own, when the sandbox is closed, besides `git status` and `git add -A`. */
    readonly after?: string;
    /** Names that may be new: repositories that were really made. */
    readonly made?: string;
  };
}

const text = await readFile(new URL("../fixtures/trust/sandbox.jsonl", import.meta.url), "utf8");
const all: readonly Row[] = text
  .trim()
  .split("\n")
  .map((line) => JSON.parse(line));
// Each row is a sandbox and a repository of its own; `npm run trust` tries all of them.
const rows = sampleOf(all, 8, "ways out");

const run = promisify(execFile);

const HOME = {
  ...{ ".ssh/id_test": "fake key", ".aws/credentials": "fake key", ".gnupg/x": "fake key", ".kube/config": "fake key" },
  ...{
    ".docker/config.json": "fake key",
    ".config/gh/hosts.yml": "fake key",
    ".netrc": "fake key",
    ".npmrc": "fake key",
  },
  ...{ ".git-credentials": "fake key", ".local/share/keyrings/k": "fake key", ".password-store/a": "fake key" },
  ...{ ".Xauthority": "fake key", ".mozilla/x": "fake key", ".bashrc": "export FROM_RC=1\n" },
  ...{ ".hermes/.env": "A=fake key", ".hermes/state.db": "fake key", ".hermes/memories/MEMORY.md": "fake key" },
};

/** A user with keys, a repository with a submodule and a worktree, and daemons that listen. */
async function makeTemplate(root: string): Promise<void> {
  await plant(join(root, "user"), HOME);
  await mkdir(join(root, "user/project"));
  await mkdir(join(root, "lib"));
  const git = "git -c user.name=a -c user.email=a@b -c protocol.file.allow=always -c init.defaultBranch=main";
  const script = `set -e
cd ../../lib && git init -q . && echo l > l && git add . && ${git} commit -qm one
cd ../user/project && git init -q . && echo r > README && ${git} submodule --quiet add ../../lib lib
git add . && ${git} commit -qm one && git worktree add -q ../tree -b tree`;
  await run("sh", ["-c", script], { cwd: join(root, "user/project"), env: quietGit(root) });
}

const quietGit = (root: string) => ({ PATH: process.env.PATH ?? "", HOME: root, GIT_CONFIG_NOSYSTEM: "1" });

await withEngine("bubblewrap", missingBubblewrap, () => {
  let base: string;
  let template: string;
  const servers: Server[] = [];
  let visits = 0;
  let port = 0;
  const abstract = `hermes-escape-${process.pid}`;
  const outside = spawn("sleep", ["600"], { stdio: "ignore" });
  before(async () => {
    // Not below /tmp, which is another one inside.
    base = await realpath(await mkdtemp("/var/tmp/hermes-escape-"));
    template = join(base, "template");
    await makeTemplate(template);
    const listen = async (where: Parameters<Server["listen"]>[0]) => {
      const server = createServer((socket) => {
        visits++;
        socket.on("error", () => undefined).end("fake key\n");
      });
      await new Promise<void>((resolve) => server.listen(where, resolve));
      servers.push(server);
      return server;
    };
    const tcp = (await listen({ port: 0, host: "127.0.0.1" })).address();
    port = typeof tcp === "object" && tcp !== null ? tcp.port : 0;
    await listen({ path: `\0${abstract}` });
  });
  after(async () => {
    outside.kill("SIGKILL");
    for (const server of servers) server.close();
    await rm(base, { recursive: true, force: true });
  });

  const held = tellWhenDone(
    { kind: "sandbox escapes", sandbox: "with" },
    rows.map(({ id }) => id),
  );

  describe("ways out", { concurrency: 3 }, () => {
    for (const { id, why, row } of rows)
      test(`${id}: ${why}`, async (t) => {
        // Worktrees and submodules know where they are: the copy stands where the template stood.
        const root = join(base, id);
        await run("cp", ["-a", "template", id], { cwd: base });
        const fix = `grep -rlZ ${template} --include=.git --include=gitdir --include=config . | xargs -0r sed -i s,${template},${root},`;
        await run("sh", ["-c", fix], { cwd: root });
        const home = join(root, "user");
        const project = join(home, row.inTree ? "tree" : "project");
        const given = (script: string) =>
          script
            .replaceAll("@OUT@", root)
            .replaceAll("@HOME@", home)
            .replaceAll("@PORT@", String(port))
            .replaceAll("@PID@", String(outside.pid))
            .replaceAll("@ABSTRACT@", abstract);
        const user = (script: string) =>
          run("sh", ["-c", given(script)], { cwd: project, env: { ...quietGit(root), HOME: base } });
        if (row.before) await user(row.before);
        const daemon = createServer((socket) => {
          visits++;
          socket.on("error", () => undefined).end("fake key\n");
        });
        await new Promise<void>((resolve) => daemon.listen(join(home, "daemon.sock"), resolve));
        t.after(() => daemon.close());
        const hermes = join(home, ".hermes");
        const box = await openSandbox(
          {
            cwd: row.cwd === undefined ? project : join(home, row.cwd),
            userHome: home,
            hermesHome: { dir: hermes, root: hermes },
            network: row.network ?? "on",
            environment: { HOME: home, SSH_AUTH_SOCK: "/tmp/ssh-x/agent", DISPLAY: ":0", GIT_CONFIG_NOSYSTEM: "1" },
          },
          base,
        );
        t.after(box.release);
        const earlier = await snapshot(home);
        const seen = visits;
        const running = box.run(given(row.run));
        if (row.during) {
          let isOver = false;
          void running.finally(() => {
            isOver = true;
          });
          for (let round = 0; round < 12 || !isOver; round++) {
            await user(row.during).catch(() => undefined); // git may find a lock
            await pause(100);
          }
        }
        const { output } = await running;
        // What was left running has its chance, and then the sandbox ends, as it does when the program ends.
        if (row.run.includes("setsid")) await box.run("sleep 1.5");
        await box.environment.cleanup();
        assert.doesNotMatch(output, row.says ? new RegExp(`fake key|^${row.says}`, "m") : /fake key/, output);
        const isMade = (name: string) => row.made !== undefined && new RegExp(row.made).test(name);
        assert.deepEqual(
          difference(earlier, await snapshot(home)).filter((name) => !isMade(name)),
          [],
          output,
        );
        assert.equal(visits, seen, "a server outside was reached");
        assert.equal(outside.exitCode ?? outside.signalCode, null);
        // The next look at the repository, by the user's own git with all that it runs.
        for (const script of ["git status", "git add -A", row.after ?? "true"])
          await user(script).catch(() => undefined); // what was broken inside may stay so
        assert.equal((await readdir(root)).includes("escaped"), false, "the payload ran outside");
        held(id);
      });
  });
});

/** Everything in the home directory but ordinary files of the project, which are the agent's to change. */
async function snapshot(home: string): Promise<ReadonlyMap<string, string>> {
  const found = new Map<string, string>();
  const walk = async (folder: string): Promise<void> => {
    for (const entry of await readdir(folder, { withFileTypes: true })) {
      const path = join(folder, entry.name);
      const name = relative(home, path);
      if (isOrdinary(name)) continue;
      const facts = await lstat(path);
      if (entry.isDirectory()) {
        found.set(name, `folder ${facts.mode}`);
        await walk(path);
      } else if (entry.isSymbolicLink()) found.set(name, `link ${await readlink(path)}`);
      else if (entry.isFile())
        found.set(
          name,
          `${facts.mode} ${createHash("sha256")
            .update(await readFile(path))
            .digest("hex")}`,
        );
    }
  };
  await walk(home);
  return found;
}

/** Of a repository only what git executes counts; its objects, branches and index are the agent's too. */
function isOrdinary(name: string): boolean {
  const [top = "", ...rest] = name.split("/");
  if (name.startsWith(".hermes/sandboxes")) return true;
  if (top !== "project" && top !== "tree") return false;
  if (rest.length === 0) return false;
  if (/^(?:\.envrc|\.hermes)$/.test(rest[0] ?? "")) return false;
  if (rest[0] !== ".git") return true;
  const inside = rest
    .slice(1)
    .join("/")
    .replace(/^(?:modules|worktrees)(?:\/[^/]+)?(?:\/|$)/, "");
  return inside !== "" && !/^(?:config|config\.worktree|hooks|info|commondir|gitdir)(?:\/|$)/.test(inside);
}

function difference(earlier: ReadonlyMap<string, string>, later: ReadonlyMap<string, string>): string[] {
  const names = new Set([...earlier.keys(), ...later.keys()]);
  return [...names].filter((name) => earlier.get(name) !== later.get(name)).sort();
}
