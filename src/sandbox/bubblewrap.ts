// Commands on this machine in a view of it: see bubblewrap-view.ts. No daemon and no image; Linux with the program bwrap.
import { mkdir, mkdtemp, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { UserError } from "../kit/user-error.ts";
import { startOnTerminal } from "./background-child.ts";
import { type Keeper, startKeeper } from "./bubblewrap-keeper.ts";
import { mayStartAgain, startedAgain, startInside } from "./bubblewrap-start.ts";
import { makeView, type View } from "./bubblewrap-view.ts";
import type { Channel, ChannelFailure, Launch, LaunchOptions } from "./channel.ts";
import { childEnvironment, forcedNames } from "./child-env.ts";
import type { Environment } from "./environment.ts";
import { Errands } from "./errands.ts";
import { findProgram } from "./find-program.ts";
import { findShell, isDirectory, type LocalOptions, type Shell, shellArguments } from "./local.ts";
import { OutputPipes } from "./output-pipe.ts";
import type { Place, PlacedShell } from "./place.ts";
import { placeFiles } from "./place-files.ts";
import { descendantsOf, signalTree } from "./process-tree.ts";
import { ShellEnvironment } from "./shell-environment.ts";
import { settledWithin, startShell } from "./shell-process.ts";
import { privateTempDir, removeStale, removeTree } from "./temp-dir.ts";

const GIVE_UP_MS = 500;
const PROBE_MS = 2000;

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
  const place: Place = {
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
    files: placeFiles(new Errands(sandbox)),
    async start(run, io) {
      const command = [shell.path, ...shellArguments(run)];
      const started = startInside({
        io,
        launch: (mark) => sandbox.wrap(command, { ownSession: true, mark }),
        pipe: () => pipes.take(),
      });
      const running = await started.catch((error: unknown) => {
        io.signal.throwIfAborted();
        throw cannotSandbox(error);
      });
      return sandboxedShell(running);
    },
    async startOnTerminal(run) {
      // Its terminal is one of ours, made for it: the session may keep it.
      const launch = await sandbox.wrap([shell.path, ...shellArguments(run)], { ownSession: false });
      return startOnTerminal({
        ...launch,
        exitCode: signalOf,
        end: (pid, exited, graceMs) => endInside(pid, "tree", graceMs, exited),
      });
    },
    async release() {
      await sandbox.close();
      await removeTree(hostDir);
    },
  };
  return new ShellEnvironment(place, options);
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
  #keeper: Promise<Keeper> | null = null;

  constructor(parts: SandboxParts) {
    this.#parts = parts;
  }

  /** Also the proof that it works: one command runs inside. */
  open(): Promise<void> {
    return startedAgain(() => this.#tryOne());
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
    if (code !== 0) throw new Error(said.trim() || `bwrap ended with code ${code}`);
  }

  launch(script: string, { shell }: LaunchOptions): Promise<Launch> {
    return this.wrap([shell, "-c", script], { ownSession: true });
  }

  async recover({ errors }: ChannelFailure, attempt: number, signal: AbortSignal): Promise<void> {
    if (await mayStartAgain(errors, attempt, signal)) return;
    throw cannotSandbox(new Error(errors.trim() || "bwrap said nothing"));
  }

  /** `mark`, if wished, is printed as a line of its own before the command begins. */
  async wrap(
    command: readonly string[],
    { ownSession, mark }: { ownSession: boolean; mark?: string },
  ): Promise<Launch> {
    const { bwrap, view, env, network, shell } = this.#parts;
    const { setup, inner, pid } = (await this.#livingKeeper()).paths;
    const args = [
      ..."--userns 7 --pidns 8 --unshare-ipc --unshare-uts --unshare-cgroup-try".split(" "),
      ...(inner ? ["--userns2", "9"] : []),
      ...(network ? [] : ["--unshare-net"]),
      ..."--cap-drop ALL --die-with-parent".split(" "),
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
    const keeper = await this.#keeper?.catch(() => null);
    this.#keeper = null;
    await keeper?.close();
  }

  /** A command may end all processes of the sandbox, the keeper's included; the next one gets a new sandbox. */
  async #livingKeeper(): Promise<Keeper> {
    const present = await this.#keeper?.catch(() => null);
    if (present?.alive) return present;
    await present?.close();
    const { bwrap, view, env } = this.#parts;
    this.#keeper = startedAgain(() => startKeeper({ bwrap, view: view.args, env }));
    return this.#keeper;
  }
}

function sandboxedShell(shell: Awaited<ReturnType<typeof startShell>>): PlacedShell {
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
 * Ends what runs inside and not bwrap itself, which would take the shell down without a chance to clean up. The shell is the first
 * child of bwrap and leads a group of its own.
 */
async function endInside(
  pid: number,
  scope: "group" | "tree",
  graceMs: number,
  ended: Promise<unknown>,
): Promise<void> {
  const [leader, ...family] = await descendantsOf(pid);
  const members = leader === undefined || scope === "group" ? [] : family;
  signalTree(leader ?? pid, members, "SIGTERM");
  await settledWithin(ended, graceMs);
  signalTree(leader ?? pid, members, "SIGKILL");
  await settledWithin(ended, GIVE_UP_MS);
  signalTree(pid, [], "SIGKILL");
}

/** bwrap tells death by a signal as shells do. */
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
      "Fedora: dnf install bubblewrap; Arch: pacman -S bubblewrap), or set another place: hermes config set terminal.backend local",
  );
}

function cannotSandbox(error: unknown): Error {
  const reason = error instanceof Error ? error.message : String(error);
  return new UserError(
    `bwrap cannot make a sandbox on this machine: ${reason}. Unprivileged user namespaces may be switched off ` +
      "(sysctl kernel.unprivileged_userns_clone, kernel.apparmor_restrict_unprivileged_userns), or bubblewrap is older than 0.5. " +
      "Fix that, or set another place: hermes config set terminal.backend local",
  );
}
