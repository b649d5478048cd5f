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
import { CACHE_VARIABLES, coveredSockets, makeView, type View } from "./bubblewrap-view.ts";
import { childEnvironment, findProgram, forcedNames, privateTempDir, removeStale, removeTree } from "./child-env.ts";
import type { BackgroundChild, Environment, SandboxNetwork } from "./environment.ts";
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
import { KeptFree } from "./protected-files.ts";
import type { ReachableHosts } from "./reachable-hosts.ts";
import { scriptedFiles } from "./scripted-files.ts";
import { ScriptRunner } from "./scripts.ts";
import { ShellEnvironment, type ShellOptions } from "./shell-environment.ts";

const GIVE_UP_MS = 500;
const LOOKS = 50;
const LOOK_MS = 10;
const PROBE_MS = 2000;

export interface BubblewrapOptions extends LocalOptions {
  /** The user's own home directory. */
  readonly userHome: string;
  readonly hermesHome: { readonly dir: string; readonly root: string };
  readonly network: SandboxNetwork;
}

// Ways to agents and daemons outside, which the view has cut off.
const OUTSIDE =
  "SSH_AUTH_SOCK SSH_AGENT_PID GPG_AGENT_INFO DBUS_SESSION_BUS_ADDRESS XDG_RUNTIME_DIR DISPLAY WAYLAND_DISPLAY XAUTHORITY TMUX DOCKER_HOST";

// Those of the namespaces, and what whoever started us left open: a folder that is open is a way out.
const CLOSE_ALL = `for f in /proc/self/fd/*; do f=\${f##*/}; [ "$f" -gt 2 ] && eval "exec $f<&-"; done; exec "$@"`;
const CLOSE_OURS = 'exec "$@" 6<&- 7<&- 8<&- 9<&-';

export type SandboxedEnvironment = Environment & Required<Pick<Environment, "confinement" | "files">>;

export async function openBubblewrapEnvironment(options: BubblewrapOptions): Promise<SandboxedEnvironment> {
  const bwrap = await findBubblewrap(options.environment);
  const { environment, privateHome } = options;
  const hasOwnHome = privateHome !== undefined && (await isDirectory(privateHome));
  const ownNetwork = options.network !== "on";
  const nsenter = ownNetwork ? await findNsenter(environment) : "";
  const reach =
    typeof options.network === "string"
      ? null
      : (await import("./reachable-hosts.ts")).openReachableHosts({ hosts: options.network, nsenter, environment });
  const env = childEnvironment(environment, {
    ...CACHE_VARIABLES,
    ...reach?.variables,
    ...(hasOwnHome && { HOME: privateHome }),
  });
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
  const kept = new KeptFree(view.keptFree);
  const shell = await findShell(env.PATH ?? "", environment);
  const { handedOn } = options;
  const sandbox = new Sandbox({ bwrap, nsenter, view, emptyFile, env, handedOn, ownNetwork, reach, shell });
  try {
    await sandbox.open();
  } catch (error) {
    await removeTree(hostDir);
    throw cannotSandbox(error);
  }
  const pipes = new OutputPipes(hostDir, env);
  const scripts = new ScriptRunner(sandbox, { persistent: true });
  const backend: ShellBackend = {
    kind: "bubblewrap",
    isolated: false,
    confinement: {
      writable: view.writable,
      network: options.network,
      allowsWrite: (path) => view.allowsWrite(path) && !kept.has(path),
      holdsStill: view.holdsStill,
      changedOutside: () => kept.accept(),
    },
    home: env.HOME ?? "/",
    tempDir: "/tmp",
    stateDir,
    generation: 0,
    hasBash: shell.isBash,
    path: env.PATH ?? "",
    forced: forcedNames(environment),
    files: scriptedFiles(scripts),
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
      return sandboxedShell(running, () => kept.clear());
    },
    async startOnTerminal(run) {
      const command = [shell.path, ...shellArguments(run)];
      return startedAgain(() => terminalInside(sandbox, command), { proven: true }).catch((error: unknown) => {
        throw cannotStart(error);
      });
    },
    async release() {
      scripts.close();
      await sandbox.close();
      await reach?.close();
      await kept.clear();
      await removeTree(hostDir);
    },
  };
  return new ShellEnvironment(backend, options) as SandboxedEnvironment; // the backend has both
}

/** Why no sandbox can be made on this machine, or null; found out once per process. */
export function bubblewrapProblem(environment: Readonly<Record<string, string>>): Promise<string | null> {
  const { PATH = "" } = environment;
  const known = probed.get(PATH) ?? probe(environment);
  probed.set(PATH, known);
  return known;
}

const probed = new Map<string, Promise<string | null>>();

async function probe(environment: Readonly<Record<string, string>>): Promise<string | null> {
  const env = childEnvironment(environment);
  const args = "--ro-bind / / --dev /dev --proc /proc".split(" ");
  const view: SandboxParts["view"] = { args, hides: () => true, allowsWrite: () => false };
  try {
    const shell = await findShell(env.PATH ?? "", environment);
    const bwrap = await findBubblewrap(environment);
    const sandbox = new Sandbox({
      bwrap,
      nsenter: "",
      view,
      emptyFile: "",
      env,
      ownNetwork: false,
      reach: null,
      shell,
    });
    const tried = sandbox.open().then(
      () => null,
      (error: unknown) => problemIn(error),
    );
    const inTime = await settledWithin(tried, PROBE_MS);
    void sandbox.close();
    return inTime ? await tried : `bwrap took longer than ${PROBE_MS / 1000} seconds`;
  } catch (error) {
    return problemIn(error); // no program, not Linux
  }
}

interface SandboxParts {
  readonly bwrap: string;
  /** Leads into the network of the sandbox; not used where that is the machine's. */
  readonly nsenter: string;
  readonly view: Pick<View, "args" | "hides" | "allowsWrite">;
  readonly emptyFile: string;
  readonly env: Readonly<Record<string, string>>;
  readonly handedOn?: ShellOptions["handedOn"];
  readonly ownNetwork: boolean;
  readonly reach: ReachableHosts | null;
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
    const { bwrap, nsenter, view, emptyFile, env, handedOn, ownNetwork, shell } = this.#parts;
    const { setup, inner, pid, net } = (await this.#liveHolder()).paths;
    // bwrap can make a network but not join one.
    const network = ownNetwork
      ? [nsenter, "--user=/proc/self/fd/7", "--net=/proc/self/fd/6", "--preserve-credentials"]
      : [];
    const args = [
      ...(ownNetwork ? [] : ["--userns", "7"]),
      ..."--pidns 8 --unshare-ipc --unshare-uts --unshare-cgroup-try".split(" "),
      ...(inner ? ["--userns2", "9"] : []),
      // Not --die-with-parent: on its way into a process namespace bwrap forks and its parent leaves; if that happens late, on a busy
      // machine, the parent's death kills the command. What runs inside ends with the holder.
      ..."--cap-drop ALL".split(" "),
      ...(ownSession ? ["--new-session"] : []),
      ...view.args,
      ...(await coveredSockets(view, emptyFile)),
      "--",
      ...[shell.path, "-c", `${mark ? `echo ${mark}; ` : ""}${shell.isBash ? CLOSE_ALL : CLOSE_OURS}`, "sh"],
      ...command,
    ];
    const wrapper = `exec "$@" 6<${net} 7<${setup} 8<${pid}${inner ? ` 9<${inner}` : ""}`;
    const everything = { ...handedOn?.(), ...env };
    return { program: "/bin/sh", args: ["-c", wrapper, "sh", ...network, bwrap, ...args], env: everything };
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
    const { bwrap, view, env, ownNetwork, reach } = this.#parts;
    const start = () => startHolder({ bwrap, view: view.args, env, ownNetwork });
    const holder = await startedAgain(start, { proven: gone !== null });
    await reach?.attach(holder).catch(async (error: unknown) => {
      await holder.close();
      throw error;
    });
    return holder;
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

/** `tidy` resolves to what it had to set aside, once the shell has ended. */
function sandboxedShell(
  shell: Awaited<ReturnType<typeof startShell>>,
  tidy: () => Promise<readonly string[]>,
): BackendShell {
  let aside: readonly string[] = [];
  return {
    pid: shell.pid,
    stdin: shell.stdin,
    finished: shell.finished.then(async (code) => {
      aside = await tidy();
      return signalOf(code);
    }),
    note: () =>
      aside.length === 0
        ? undefined
        : `set aside as *.from-sandbox, because it would run by itself outside the sandbox: ${aside.join(", ")}`,
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
  if (process.platform !== "linux")
    throw new NoSandbox("bubblewrap exists on Linux only", "Choose docker or ssh as terminal.backend");
  const found = await findProgram("bwrap", PATH);
  if (found) return found;
  throw new NoSandbox("the program bwrap is not on PATH", INSTALL);
}

async function findNsenter({ PATH = "" }: Readonly<Record<string, string>>): Promise<string> {
  const found = await findProgram("nsenter", PATH);
  if (found) return found;
  throw new NoSandbox("the program nsenter is not on PATH", "Install util-linux");
}

const INSTALL =
  "Install it (Debian, Ubuntu: apt install bubblewrap; Fedora: dnf install bubblewrap; Arch: pacman -S bubblewrap)";
const SWITCH_OFF = "run without one: hermes config set terminal.sandbox off";

/** This machine has no sandbox to offer. */
class NoSandbox extends UserError {
  readonly problem: string;

  constructor(problem: string, fix: string) {
    super(`Commands are to run in a sandbox (terminal.sandbox), but ${problem}. ${fix}, or ${SWITCH_OFF}`);
    this.problem = problem;
  }
}

const problemIn = (error: unknown) =>
  error instanceof NoSandbox ? error.problem : (messageOf(error).split("\n")[0] ?? "");

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
  if (error instanceof UserError) return error;
  return new NoSandbox(
    `bwrap cannot make one on this machine: ${reason}`,
    "Unprivileged user namespaces may be switched off (sysctl kernel.unprivileged_userns_clone, " +
      "kernel.apparmor_restrict_unprivileged_userns), or bubblewrap is older than 0.5: fix that",
  );
}
