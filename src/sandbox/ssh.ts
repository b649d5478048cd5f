// Commands on another machine, over one persistent connection of the ssh program.
import { spawn } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { messageOf, UserError } from "../kit/errors.ts";
import {
  type BackendShell,
  type Channel,
  type ChannelFailure,
  keepEnd,
  type Launch,
  type LaunchOptions,
  type ShellIo,
  type ShellRun,
} from "./backend.ts";
import { childEnvironment, findProgram, isSecretName, privateTempDir } from "./child-env.ts";
import { credentialFiles } from "./container-arguments.ts";
import type { BackgroundChild, Environment } from "./environment.ts";
import { HomeSync } from "./home-sync.ts";
import type { EnvironmentOptions, TerminalConfig } from "./open.ts";
import { settledWithin } from "./processes.ts";
import { RemoteBackend, type RemoteOptions } from "./remote-backend.ts";
import { ScriptRunner } from "./scripts.ts";
import { ShellEnvironment } from "./shell-environment.ts";
import { quote } from "./shell-script.ts";

const DRAIN_MS = 300;
const RETRY_SECONDS = [2, 4, 8];
/** A socket's path has room for about a hundred characters, and ssh adds some while it connects. */
const MAX_SOCKET_PATH = 80;

interface SshOptions extends EnvironmentOptions {
  /** Further arguments of every ssh, before the host. */
  readonly sshArguments?: readonly string[];
}

export async function openSshEnvironment(terminal: TerminalConfig, options: SshOptions): Promise<Environment> {
  const target: SshTarget = { host: terminal.ssh_host, user: terminal.ssh_user, port: terminal.ssh_port };
  if (target.host === "") {
    throw new UserError(
      "terminal.backend is ssh, but no host is set. Set it: hermes config set terminal.ssh_host HOST (and ssh_user, ssh_key, ssh_port)",
    );
  }
  const connection = await connect(terminal, target, options);
  const scripts = new ScriptRunner(connection, { persistent: true });
  const stateName = `shell-${randomBytes(6).toString("hex")}`;
  const { code, output, errors } = await scripts.run(introduce(stateName));
  if (code !== 0) throw sshError(target, errors);
  const [home = "/", tempDir = "/tmp", bash = ""] = output.toString("utf8").split("\n");
  const stateDir = `${tempDir}/${stateName}`;
  const sync = new HomeSync({
    scripts,
    here: options.hermesHome.dir,
    there: `${home}/.hermes`,
    stateDir,
    credentials: credentialFiles(terminal),
    now: Date.now,
  });
  const backend = new SyncedBackend(sync, {
    channel: connection,
    scripts,
    facts: { kind: "ssh", isolated: false, home, tempDir, stateDir, bash, forced: [] },
    generation: () => 0,
    release: async () => {
      const lost = await sync.fetch().then(
        () => null,
        (error: unknown) => messageOf(error),
      );
      if (lost !== null) {
        options.report?.(`what changed in ~/.hermes on ${target.host} was not copied back: ${lost}`);
        return; // most likely there is no connection any more; what stays lies in a temp directory
      }
      await scripts.run(`rm -rf ${quote(stateDir)}`).catch(() => undefined); // no connection any more: it stays, in a temp directory
    },
  });
  return new ShellEnvironment(backend, { ...options, cwd: remoteCwd(terminal.cwd, home) });
}

/** A machine that has what commands may need of the Hermes home. */
class SyncedBackend extends RemoteBackend {
  readonly #sync: HomeSync;

  constructor(sync: HomeSync, options: RemoteOptions) {
    super(options);
    this.#sync = sync;
  }

  override async start(run: ShellRun, io: ShellIo): Promise<BackendShell> {
    const problem = await this.#send();
    const shell = await super.start(run, io);
    if (problem === null) return shell;
    return { ...shell, note: () => [shell.note?.(), problem].filter(Boolean).join("; ") || undefined };
  }

  override async startOnTerminal(run: ShellRun): Promise<BackgroundChild | null> {
    await this.#send();
    return super.startOnTerminal(run);
  }

  /** Null, or why skills and credentials are not as they are here: no reason not to run a command. */
  async #send(): Promise<string | null> {
    return this.#sync.send().then(
      () => null,
      (error: unknown) => `skills, cache and credentials could not be copied to the other machine: ${messageOf(error)}`,
    );
  }
}

/** A temp directory of the user's own (others may have prepared the name we would guess), and our folder in it. */
const introduce = (stateName: string) => `t=\${TMPDIR:-/tmp}; t=\${t%/}/hermes-$(id -u)
mkdir -m 700 -p "$t" 2>/dev/null
if [ -L "$t" ] || [ ! -O "$t" ]; then t=$(mktemp -d) || exit 1; fi
mkdir -m 700 "$t/${stateName}" || exit 1
printf '%s\\n' "$HOME" "$t" "$(command -v bash)"`;

/** A relative path is one of this machine's; there, the home directory is where one starts. */
function remoteCwd(cwd: string, home: string): string {
  if (cwd === "~" || cwd.startsWith("~/")) return home + cwd.slice(1);
  return cwd.startsWith("/") ? cwd : home;
}

async function connect(terminal: TerminalConfig, target: SshTarget, options: SshOptions): Promise<Connection> {
  const env = childEnvironment(options.environment);
  const ssh = await findProgram("ssh", options.environment.PATH ?? "");
  if (!ssh) {
    throw new UserError(
      "terminal.backend is ssh, but the program ssh is not on PATH. Install it: apt install openssh-client",
    );
  }
  const key = terminal.ssh_key.replace(/^~(?=\/|$)/, options.userHome);
  const args = [
    ...["-o", "ControlMaster=auto", "-o", `ControlPath=${await socketPath(target, options.environment)}`],
    ...["-o", "ControlPersist=300", "-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=accept-new"],
    ...["-o", "ConnectTimeout=10", "-o", "ServerAliveInterval=15", "-o", "LogLevel=ERROR"],
    ...["-p", String(target.port)],
    ...(target.user ? ["-l", target.user] : []),
    ...(key ? ["-i", key, "-o", "IdentitiesOnly=yes"] : []),
    ...(options.sshArguments ?? []),
  ];
  const listed = terminal.env_passthrough.filter((name) => !isSecretName(name) && name in env);
  const given = Object.fromEntries(listed.map((name) => [name, env[name] ?? ""]));
  const prelude = () => exportAll({ ...options.handedOn?.(), ...given });
  const connection = new Connection({ ssh, args, env, target, prelude });
  await connection.open();
  return connection;
}

const exportAll = (variables: Readonly<Record<string, string>>) =>
  Object.entries(variables)
    .map(([name, value]) => `export ${name}=${quote(value)}\n`)
    .join("");

async function socketPath(
  { user, host, port }: SshTarget,
  environment: Readonly<Record<string, string>>,
): Promise<string> {
  const name = createHash("sha256").update(`${user}@${host}:${port}`).digest("hex").slice(0, 16);
  const wanted = `${await privateTempDir(environment.TMPDIR ?? "/tmp")}/${name}`;
  return wanted.length <= MAX_SOCKET_PATH ? wanted : `${await privateTempDir("/tmp")}/${name}`;
}

interface ConnectionParts {
  readonly ssh: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly target: SshTarget;
  /** What every script begins with. */
  readonly prelude: () => string;
}

class Connection implements Channel {
  readonly #parts: ConnectionParts;

  constructor(parts: ConnectionParts) {
    this.#parts = parts;
  }

  /** Makes the persistent connection, so that no command has to, and says at once why there is none. */
  async open(): Promise<void> {
    const { ssh, args, env, target } = this.#parts;
    const child = spawn(ssh, [...args, "-f", "-N", "--", target.host], {
      env,
      cwd: "/",
      stdio: ["ignore", "ignore", "pipe"],
      detached: true, // an interrupt at our terminal is not meant for it
    });
    let errors = "";
    child.stderr.on("data", (data) => {
      errors = keepEnd(errors + data);
    });
    const said = new Promise((resolve) => child.stderr.on("close", resolve));
    const code = await new Promise<number>((resolve) => {
      child.on("exit", (exit) => resolve(exit ?? 255));
      child.on("error", () => resolve(255));
    });
    if (code !== 0) await settledWithin(said, DRAIN_MS);
    // What goes on in the background keeps the other end.
    child.stderr.destroy();
    if (code !== 0) throw sshError(target, errors);
  }

  async launch(script: string, { shell, stdin, terminal = false }: LaunchOptions): Promise<Launch> {
    const { ssh, args, env, target, prelude } = this.#parts;
    // The login shell there may be any; this line has nothing in it that shells read differently.
    const encoded = Buffer.from(prelude() + script).toString("base64");
    const command = `${shell} -c 'eval "$(printf %s ${encoded} | base64 -d)"'`;
    const how = [terminal ? "-tt" : "-T", ...(stdin || terminal ? [] : ["-n"])];
    return { program: ssh, args: [...args, ...how, "--", target.host, command], env };
  }

  async recover({ errors, code }: ChannelFailure, attempt: number, signal: AbortSignal): Promise<void> {
    const seconds = RETRY_SECONDS[attempt];
    if (seconds === undefined || code !== 255 || !isTransient(errors)) throw sshError(this.#parts.target, errors);
    await sleep(seconds * 1000, undefined, { signal });
  }
}

// What ssh says when it cannot connect, in words that lead further.

interface SshTarget {
  readonly host: string;
  readonly user: string;
  readonly port: number;
}

/** Likely to go away by itself: worth another try after a while. A shared connection that breaks may take ssh along without a word. */
export function isTransient(errors: string): boolean {
  return /^\s*$|connection (refused|timed out|reset|closed)|no route to host|network is unreachable|operation timed out|broken pipe|kex_exchange|mux_client|session open refused|temporary failure/i.test(
    errors,
  );
}

function sshError({ host, user, port }: SshTarget, errors: string): UserError {
  const said = errors.trim().split("\n").slice(-3).join(" ");
  const where = `${user ? `${user}@` : ""}${host}:${port}`;
  if (/permission denied/i.test(errors)) {
    return new UserError(
      `${where} refused the login: ${said}. Passwords are not supported; install your key there (ssh-copy-id) and set it in ` +
        "terminal.ssh_key or your ssh agent, and check terminal.ssh_user",
    );
  }
  if (/host key verification failed|identification has changed/i.test(errors)) {
    return new UserError(
      `The host key of ${where} has changed: another machine may be impersonating it. If you know why it ` +
        `changed, remove the old one: ssh-keygen -R ${port === 22 ? host : `[${host}]:${port}`}`,
    );
  }
  if (/could not resolve/i.test(errors)) {
    return new UserError(`Host ${host} not found: ${said}. Correct terminal.ssh_host`);
  }
  if (/identity file .{0,400} not accessible|no such identity/i.test(errors)) {
    return new UserError(`The key for ${where} cannot be read: ${said}. Correct terminal.ssh_key`);
  }
  return new UserError(
    `No connection to ${where}: ${said || "no error message from ssh"}. Check that it is running and that terminal.ssh_host and terminal.ssh_port are correct`,
  );
}
