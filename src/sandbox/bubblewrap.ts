// Commands on this machine in a view of it: see bubblewrap-view.ts. No daemon and no image; Linux with the program bwrap.
import { mkdir, mkdtemp, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { messageOf, UserError } from "../kit/errors.ts";
import { isDirectory } from "../kit/files.ts";
import {
  type BackendShell,
  type Channel,
  type ChannelFailure,
  type Launch,
  type LaunchOptions,
  newMark,
  type ShellBackend,
  StartMark,
} from "./backend.ts";
import { startOnTerminal } from "./background-child.ts";
import { makeView, type View } from "./bubblewrap-view.ts";
import { childEnvironment, findProgram, forcedNames, privateTempDir, removeStale, removeTree } from "./child-env.ts";
import type { BackgroundChild, Environment } from "./environment.ts";
import { findShell, type LocalOptions, type Shell, shellArguments } from "./local.ts";
import {
  killInside,
  mayStartAgain,
  type NamespaceHolder,
  StartFailed,
  startedAgain,
  startHolder,
  startInside,
  TRIES,
} from "./namespace-holder.ts";
import { OutputPipes } from "./output.ts";
import { descendantsOf, groupLeader, settledWithin, signalEach, startShell } from "./processes.ts";
import { scriptedFiles } from "./scripted-files.ts";
import { ScriptRunner } from "./scripts.ts";
import { ShellEnvironment } from "./shell-environment.ts";

const GIVE_UP_MS = 500;
const LOOKS = 50;
const LOOK_MS = 10;
const PROBE_MS = 10_000;

export interface BubblewrapOptions extends LocalOptions {
  /** The user's own home directory. */
  readonly userHome: string;
  readonly hermesHome: { readonly dir: string; readonly root: string };
  readonly network: boolean;
}

// Ways to agents and daemons outside, which the view has cut off.
const OUTSIDE =
  "SSH_AUTH_SOCK SSH_AGENT_PID GPG_AGENT_INFO DBUS_SESSION_BUS_ADDRESS XDG_RUNTIME_DIR DISPLAY WAYLAND_DISPLAY XAUTHORITY TMUX DOCKER_HOST";
// The home directory is read-only; programs that keep caches there would fail.
const CACHES = { TMPDIR: "/tmp", XDG_CACHE_HOME: "/tmp/.cache", npm_config_cache: "/tmp/.npm" };

// Those of the namespaces, and what whoever started us left open: a folder that is open is a way out.
const CLOSE_ALL = `for f in /proc/self/fd/*; do f=\${f##*/}; [ "$f" -gt 2 ] && eval "exec $f<&-"; done; exec "$@"`;
const CLOSE_OURS = 'exec "$@" 7<&- 8<&- 9<&-';

export async function openBubblewrapEnvironment(options: BubblewrapOptions): Promise<Environment> {
  const bwrap = await findBubblewrap(options.environment);
  const { environment, privateHome } = options;
  const hasOwnHome = privateHome !== undefined && (await isDirectory(privateHome));
  const env = childEnvironment(environment, { ...CACHES, ...(hasOwnHome && { HOME: privateHome }) });
  for (const name of OUTSIDE.split(" ")) delete env[name];
  const hostTemp = await privateTempDir(environment.TMPDIR ?? "/tmp");
  await removeStale(hostTemp);
  const hostDir = await mkdtemp(join(hostTemp, "shell-"));
  const tempDir = join(hostDir, "tmp");
  const stateDir = "/tmp/.hermes-shell";
  const emptyFile = join(hostDir, "empty");
  await mkdir(join(tempDir, ".hermes-shell"), { recursive: true, mode: 0o700 });
  await writeFile(emptyFile, "", { mode: 0o444 });
  const view = await makeView({
    userHome: options.userHome,
    hermesHome: options.hermesHome,
    privateHome: hasOwnHome ? privateHome : undefined,
    cwd: options.cwd,
    tempDir,
    emptyFile,
  });
  const shell = await findShell(env.PATH ?? "", environment);
  const sandbox = new Sandbox({ bwrap, view, env, network: options.network, shell });
  try {
    await sandbox.open();
  } catch (error) {
    await removeTree(hostDir);
    throw cannotSandbox(error);
  }
  const pipes = new OutputPipes(hostDir, env);
  const backend: ShellBackend = {
    kind: "bubblewrap",
    isolated: false,
    confinement: { writable: view.writable, network: options.network },
    home: env.HOME ?? "/",
    tempDir: "/tmp",
    stateDir,
    generation: 0,
    hasBash: shell.isBash,
    path: env.PATH ?? "",
    forced: forcedNames(environment),
    files: scriptedFiles(new ScriptRunner(sandbox)),
    async start(run, io) {
      const command = [shell.path, ...shellArguments(run)];
      const start = () =>
        startInside({
          io,
          launch: (mark) => sandbox.wrap(command, { ownSession: true, mark }),
          pipe: () => pipes.take(),
        });
      const running = await startedAgain(start, { proven: true, signal: io.signal }).catch((error: unknown) => {
        io.signal.throwIfAborted();
        throw cannotStart(error);
      });
      return sandboxedShell(running);
    },
    async startOnTerminal(run) {
      const command = [shell.path, ...shellArguments(run)];
      return startedAgain(() => terminalInside(sandbox, command), { proven: true }).catch((error: unknown) => {
        throw cannotStart(error);
      });
    },
    async release() {
      await sandbox.close();
      await removeTree(hostDir);
    },
  };
  return new ShellEnvironment(backend, options);
}

/** Whether a sandbox can be made on this machine; asked once per process. */
export function bubblewrapWorks(environment: Readonly<Record<string, string>>): Promise<boolean> {
  probed ??= probe(environment);
  return probed;
}

let probed: Promise<boolean> | null = null;

async function probe(environment: Readonly<Record<string, string>>): Promise<boolean> {
  const env = childEnvironment(environment);
  const view: View = { args: "--ro-bind / / --dev /dev --proc /proc".split(" "), writable: null };
  try {
    const shell = await findShell(env.PATH ?? "", environment);
    const sandbox = new Sandbox({ bwrap: await findBubblewrap(environment), view, env, network: true, shell });
    const tried = sandbox.open().then(
      () => true,
      () => false,
    );
    const inTime = await settledWithin(tried, PROBE_MS);
    void sandbox.close();
    return inTime && (await tried);
  } catch {
    return false; // no program, not Linux
  }
}

interface SandboxParts {
  readonly bwrap: string;
  readonly view: View;
  readonly env: Readonly<Record<string, string>>;
  readonly network: boolean;
  readonly shell: Shell;
}

class Sandbox implements Channel {
  readonly #parts: SandboxParts;
  #holder: Promise<NamespaceHolder> | null = null;
  #closed = false;

  constructor(parts: SandboxParts) {
    this.#parts = parts;
  }

  /** Also the proof that it works: one command runs inside. */
  open(): Promise<void> {
    return startedAgain(() => this.#tryOne(), { proven: false });
  }

  async #tryOne(): Promise<void> {
    const launch = await this.wrap(["true"], { ownSession: true });
    let said = "";
    const decoder = new TextDecoder();
    const shell = await startShell({
      ...launch,
      stdin: "none",
      pipe: null,
      onBytes: (bytes) => {
        said += decoder.decode(bytes);
      },
    });
    const code = await shell.finished;
    if (code !== 0) throw new StartFailed(code, said);
  }

  launch(script: string, { shell }: LaunchOptions): Promise<Launch> {
    return this.wrap([shell, "-c", script], { ownSession: true });
  }

  async recover({ code, errors }: ChannelFailure, attempt: number, signal: AbortSignal): Promise<void> {
    const error = new StartFailed(code, errors);
    if (!(await mayStartAgain(error, attempt, { proven: true, signal }))) throw cannotStart(error);
  }

  end(pid: number, ended: Promise<unknown>): Promise<void> {
    return killInside(pid, ended);
  }

  /** `mark`, if wanted, is printed as a line of its own before the command begins. */
  async wrap(
    command: readonly string[],
    { ownSession, mark }: { ownSession: boolean; mark?: string },
  ): Promise<Launch> {
    const { bwrap, view, env, network, shell } = this.#parts;
    const { setup, inner, pid } = (await this.#liveHolder()).paths;
    const args = [
      ..."--userns 7 --pidns 8 --unshare-ipc --unshare-uts --unshare-cgroup-try".split(" "),
      ...(inner ? ["--userns2", "9"] : []),
      ...(network ? [] : ["--unshare-net"]),
      // Not --die-with-parent: on its way into a process namespace bwrap forks and its parent leaves; if that happens late, on a busy
      // machine, the parent's death kills the command. What runs inside ends with the holder.
      ..."--cap-drop ALL".split(" "),
      ...(ownSession ? ["--new-session"] : []),
      ...view.args,
      "--",
      ...[shell.path, "-c", `${mark ? `echo ${mark}; ` : ""}${shell.isBash ? CLOSE_ALL : CLOSE_OURS}`, "sh"],
      ...command,
    ];
    const wrapper = `exec "$@" 7<${setup} 8<${pid}${inner ? ` 9<${inner}` : ""}`;
    return { program: "/bin/sh", args: ["-c", wrapper, "sh", bwrap, ...args], env };
  }

  async close(): Promise<void> {
    this.#closed = true;
    const holder = await this.#holder?.catch(() => null);
    this.#holder = null;
    await holder?.close();
  }

  /** A command may end all processes of the sandbox, the holder's included; the next one gets a new sandbox. */
  async #liveHolder(): Promise<NamespaceHolder> {
    const current = this.#holder;
    const holder = (await current?.catch(() => null)) ?? null;
    if (this.#closed) throw new Error("the sandbox is closed");
    if (holder?.alive) return holder;
    // Of several that find it gone, one starts the next.
    if (this.#holder === current || this.#holder === null) this.#holder = this.#startHolder(holder);
    return this.#holder;
  }

  async #startHolder(gone: NamespaceHolder | null): Promise<NamespaceHolder> {
    await gone?.close();
    const { bwrap, view, env } = this.#parts;
    return startedAgain(() => startHolder({ bwrap, view: view.args, env }), { proven: gone !== null });
  }
}

/** Resolves when the shell runs on its terminal; null when this machine has none to offer. */
async function terminalInside(sandbox: Sandbox, command: readonly string[]): Promise<BackgroundChild | null> {
  const mark = newMark();
  const start = new StartMark(mark);
  const begun = Promise.withResolvers<void>();
  let said = "";
  const child = await startOnTerminal({
    // The terminal is one of ours, made for it: the session may keep it.
    ...(await sandbox.wrap(command, { ownSession: false, mark })),
    filter(text) {
      if (start.seen) return text;
      said += text;
      const rest = Buffer.from(start.push(Buffer.from(text))).toString("utf8");
      if (start.seen) begun.resolve();
      return rest;
    },
    exitCode: signalOf,
    end: (pid, exited, graceMs) => endInside(pid, "tree", graceMs, exited),
  });
  if (!child) return null;
  await Promise.race([begun.promise, child.exited]);
  if (!start.seen) throw new StartFailed(await child.exited, said);
  return child;
}

function sandboxedShell(shell: Awaited<ReturnType<typeof startShell>>): BackendShell {
  return {
    pid: shell.pid,
    stdin: shell.stdin,
    finished: shell.finished.then(signalOf),
    async end(scope, graceMs) {
      await endInside(shell.pid, scope, graceMs, shell.finished);
      await settledWithin(shell.finished, GIVE_UP_MS);
      shell.release();
    },
  };
}

/**
 * Ends what runs inside and not bwrap itself, which ends with its child. The shell leads a group of its own, unless it is on a terminal;
 * the process that led it into the sandbox may still be there too.
 */
async function endInside(
  pid: number,
  scope: "group" | "tree",
  graceMs: number,
  ended: Promise<unknown>,
): Promise<void> {
  let family = await descendantsOf(pid);
  // While a process changes its parent, a look at the table may miss it.
  for (let round = 0; family.length === 0 && round < LOOKS; round++) {
    if (await settledWithin(ended, LOOK_MS)) return;
    family = await descendantsOf(pid);
  }
  const leader = await groupLeader(family);
  const group = leader === undefined ? [] : [-leader];
  const members = leader === undefined || scope === "tree" ? family : [];
  signalEach([...group, ...members], "SIGTERM");
  await settledWithin(ended, graceMs);
  signalEach([...group, ...members], "SIGKILL");
  if (!(await settledWithin(ended, GIVE_UP_MS))) await killInside(pid, ended);
}

/** bwrap reports death by a signal as shells do. */
function signalOf(code: number): number {
  return code > 128 && code < 128 + 65 ? 128 - code : code;
}

async function findBubblewrap({ PATH = "" }: Readonly<Record<string, string>>): Promise<string> {
  if (process.platform !== "linux") {
    throw new UserError(
      "terminal.backend is bubblewrap, which exists on Linux only. Set it to docker, ssh or local: hermes config set terminal.backend docker",
    );
  }
  const found = await findProgram("bwrap", PATH);
  if (found) return found;
  throw new UserError(
    "terminal.backend is bubblewrap, but the program bwrap is not on PATH. Install it (Debian, Ubuntu: apt install bubblewrap; " +
      "Fedora: dnf install bubblewrap; Arch: pacman -S bubblewrap), or choose another backend: hermes config set terminal.backend local",
  );
}

/** Of a sandbox that has run things before. */
function cannotStart(error: unknown): unknown {
  if (!(error instanceof StartFailed)) return error;
  return new UserError(
    `The sandbox could not be entered in ${TRIES} tries, and nothing has run: ${error.message}. ` +
      "The machine may be short of memory or processes: free some and try again.",
  );
}

function cannotSandbox(error: unknown): Error {
  const reason = messageOf(error);
  if (error instanceof StartFailed && error.passing) {
    return new UserError(
      `No sandbox could be made in ${TRIES} tries: ${reason}. The machine may be short of memory, or a container engine is ` +
        "changing its mounts: try again.",
    );
  }
  return new UserError(
    `bwrap cannot make a sandbox on this machine: ${reason}. Unprivileged user namespaces may be switched off ` +
      "(sysctl kernel.unprivileged_userns_clone, kernel.apparmor_restrict_unprivileged_userns), or bubblewrap is older than 0.5. " +
      "Fix that, or choose another backend: hermes config set terminal.backend local",
  );
}
