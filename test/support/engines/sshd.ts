// A throw-away ssh server on 127.0.0.1 with keys and settings of its own, and a client that knows nothing of the user's.
import { type ChildProcess, spawn } from "node:child_process";
import { randomInt } from "node:crypto";
import { access, mkdir, mkdtemp, readFile, realpath, rm, writeFile } from "node:fs/promises";
import { connect, createServer } from "node:net";
import { tmpdir, userInfo } from "node:os";
import { join } from "node:path";

export interface SshServer {
  readonly root: string;
  /** HOME of whoever logs in. */
  readonly home: string;
  readonly port: number;
  readonly user: string;
  readonly key: string;
  /** Arguments that keep ssh away from the user's own files. */
  readonly sshArguments: readonly string[];
  /** Ends the server and every connection; `start` opens it again on the same port. */
  stop(): Promise<void>;
  start(): Promise<void>;
  release(): Promise<void>;
}

const SSHD = "/usr/sbin/sshd";

export async function missingSshd(): Promise<string | null> {
  try {
    await access(SSHD);
    await run("ssh", ["-V"]);
    await sshServer();
    return null;
  } catch (error) {
    return `no ssh server can be started here (apt install openssh-server): ${error instanceof Error ? error.message : error}`;
  }
}

let starting: Promise<SshServer> | null = null;

/** One for the whole test file. */
export function sshServer(): Promise<SshServer> {
  starting ??= startServer();
  return starting;
}

async function startServer(): Promise<SshServer> {
  const root = await realpath(await mkdtemp(join(tmpdir(), "hermes-sshd-")));
  const at = (name: string) => join(root, name);
  await Promise.all(
    ["host", "client"].map((name) => run("ssh-keygen", ["-q", "-t", "ed25519", "-N", "", "-f", at(name)])),
  );
  await writeFile(at("authorized"), await readFile(at("client.pub")), { mode: 0o600 });
  // Its folder for unprivileged children is usually made by the package's start script.
  await mkdir("/run/sshd", { recursive: true }).catch(() => undefined);
  // Whoever logs in gets this home: start files of the user who runs the tests have no part in them.
  await mkdir(at("home"));
  await mkdir(at("tmp"));
  const port = await freePort();
  await writeFile(
    at("sshd_config"),
    `Port ${port}
ListenAddress 127.0.0.1
HostKey ${at("host")}
AuthorizedKeysFile ${at("authorized")}
PidFile none
StrictModes no
UsePAM no
PasswordAuthentication no
PermitRootLogin prohibit-password
MaxSessions 20
SetEnv HOME=${at("home")} TMPDIR=${at("tmp")}
`,
  );
  let server: ChildProcess | null = null;
  const start = async () => {
    const child = spawn(SSHD, ["-D", "-e", "-f", at("sshd_config")], {
      stdio: ["ignore", "ignore", "pipe"],
      detached: true,
    });
    let errors = "";
    child.stderr.on("data", (data) => {
      errors += data;
    });
    server = child;
    while (!(await answers(port))) {
      if (child.exitCode !== null) throw new Error(errors.trim());
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  };
  const stop = async () => {
    const child = server;
    server = null;
    if (!child || child.exitCode !== null) return;
    const gone = new Promise((resolve) => child.on("exit", resolve));
    // Connections are served by children of the server, each in a session of its own.
    for (const pid of await childrenOf(child.pid ?? 0)) kill(pid);
    child.kill("SIGKILL");
    await gone;
  };
  await start();
  return {
    root,
    home: at("home"),
    port,
    user: userInfo().username,
    key: at("client"),
    sshArguments: ["-F", "none", "-o", `UserKnownHostsFile=${at("known_hosts")}`],
    start,
    stop,
    async release() {
      await stop();
      await rm(root, { recursive: true, force: true, maxRetries: 3 });
    },
  };
}

async function childrenOf(pid: number): Promise<number[]> {
  const text = await readFile(`/proc/${pid}/task/${pid}/children`, "utf8").catch(() => "");
  const own = text.trim().split(" ").filter(Boolean).map(Number);
  return [...own, ...(await Promise.all(own.map(childrenOf))).flat()];
}

function kill(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // It ended by itself.
  }
}

/** Below those that the system hands out: while the server is down nobody else is given its port. */
async function freePort(): Promise<number> {
  for (;;) {
    const port = randomInt(10_240, 32_768);
    const server = createServer();
    const free = await new Promise<boolean>((resolve) => {
      server.on("error", () => resolve(false));
      server.listen(port, "127.0.0.1", () => resolve(true));
    });
    if (!free) continue;
    await new Promise((resolve) => server.close(resolve));
    return port;
  }
}

function answers(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1");
    socket.on("data", () => {
      socket.destroy();
      resolve(true);
    });
    socket.on("error", () => resolve(false));
  });
}

function run(program: string, args: readonly string[]): Promise<void> {
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, { stdio: "ignore" });
    child.on("error", reject);
    child.on("exit", (code) => (code === 0 ? resolve() : reject(new Error(`${program} ended with code ${code}`))));
  });
}
