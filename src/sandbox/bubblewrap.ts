// Commands on this machine in a view of it: see bubblewrap-view.ts. No daemon and no image; Linux with the program bwrap.
import { createHash } from "node:crypto";
import { mkdir, mkdtemp, readFile, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { messageOf, UserError } from "../kit/errors.ts";
import { isDirectory, writeFileAtomic } from "../kit/files.ts";
import { nameKind } from "../safety/redact-named.ts";
import type { ShellBackend } from "./backend.ts";
import { cannotStart, Sandbox, type SandboxParts, sandboxedShell, terminalInside } from "./bubblewrap-enter.ts";
import { CACHE_VARIABLES, makeView } from "./bubblewrap-view.ts";
import { childEnvironment, findProgram, forcedNames, privateTempDir, removeStale, removeTree } from "./child-env.ts";
import type { Environment, SandboxNetwork } from "./environment.ts";
import { findShell, type LocalOptions, shellArguments } from "./local.ts";
import { StartFailed, startedAgain, startInside, TRIES } from "./namespace-holder.ts";
import { OutputPipes } from "./output.ts";
import { settledWithin } from "./processes.ts";
import { ProjectWatch } from "./project-watch.ts";
import { scriptedFiles } from "./scripted-files.ts";
import { ScriptRunner } from "./scripts.ts";
import { ShellEnvironment } from "./shell-environment.ts";

const PROBE_MS = 10_000;

export interface BubblewrapOptions extends LocalOptions {
  /** The user's own home directory. */
  readonly userHome: string;
  readonly hermesHome: { readonly dir: string; readonly root: string };
  readonly network: SandboxNetwork;
  /** Variables that commands get although their names say that they hold a key. */
  readonly passthrough?: readonly string[];
  /** Where that was decided, for what is refused. */
  readonly networkSetting?: string;
}

// Ways to agents and daemons outside, which the view has cut off.
const OUTSIDE =
  "SSH_AUTH_SOCK SSH_AGENT_PID GPG_AGENT_INFO DBUS_SESSION_BUS_ADDRESS XDG_RUNTIME_DIR DISPLAY WAYLAND_DISPLAY XAUTHORITY TMUX DOCKER_HOST";

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
      : (await import("./reachable-hosts.ts")).openReachableHosts({
          hosts: options.network,
          setting: options.networkSetting ?? "terminal.sandbox_network",
          nsenter,
          environment,
        });
  const env = childEnvironment(environment, {
    ...CACHE_VARIABLES,
    ...reach?.variables,
    ...(hasOwnHome && { HOME: privateHome }),
  });
  for (const name of OUTSIDE.split(" ")) delete env[name];
  const wanted = new Set([
    ...(options.passthrough ?? []),
    ...forcedNames(environment),
    ...Object.keys(reach?.variables ?? {}),
  ]);
  for (const name of Object.keys(env)) if (nameKind(name) !== null && !wanted.has(name)) delete env[name];
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
    readable: options.readable,
    cwd: options.cwd,
    path: env.PATH ?? "",
    tempDir,
    emptyFile,
  });
  const shell = await findShell(env.PATH ?? "", environment);
  const { handedOn } = options;
  const proof = await RememberedProof.read({
    programs: ownNetwork ? [bwrap, nsenter] : [bwrap],
    ownNetwork,
    hermesHome: options.hermesHome,
  });
  const remembered = proof.holds ? proof : undefined;
  const sandbox = new Sandbox({ bwrap, nsenter, view, emptyFile, env, handedOn, ownNetwork, reach, shell, remembered });
  try {
    if (!remembered) {
      await sandbox.open();
      await proof.keep();
    }
  } catch (error) {
    await removeTree(hostDir);
    throw cannotSandbox(error);
  }
  const watch = view.protection
    ? await ProjectWatch.open({
        ...{ protection: view.protection, mounts: view.mounts, records: view.records, beginning: emptyFile },
        isBusy: () => sandbox.isBusy(),
        endAll: () => sandbox.endAll(),
      })
    : null;
  const pipes = new OutputPipes(hostDir, env);
  const scripts = new ScriptRunner(sandbox, { persistent: true });
  const backend: ShellBackend = {
    kind: "bubblewrap",
    isolated: false,
    confinement: {
      writable: view.writable,
      network: options.network,
      allowsWrite: (path) => view.allowsWrite(path) && !watch?.kept.has(path),
      holdsStill: view.holdsStill,
      changingOutside: () => watch?.changingOutside(),
      changedOutside: async () => watch?.changedOutside(),
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
      watch?.begun();
      const running = await startedAgain(start, { proven: true, signal: io.signal }).catch(async (error: unknown) => {
        await watch?.ended();
        io.signal.throwIfAborted();
        throw cannotStart(error);
      });
      return sandboxedShell(running, async () => {
        return [...((await watch?.ended()) ?? []), ...(reach?.refusals() ?? [])];
      });
    },
    async startOnTerminal(run) {
      const command = [shell.path, ...shellArguments(run)];
      watch?.begun();
      const child = await startedAgain(() => terminalInside(sandbox, command), { proven: true }).catch(
        async (error: unknown) => {
          await watch?.ended();
          throw cannotStart(error);
        },
      );
      void Promise.resolve(child?.exited).then(() => watch?.ended());
      return child;
    },
    async release() {
      scripts.close();
      await sandbox.close();
      await reach?.close();
      await watch?.close();
      await removeTree(hostDir);
    },
  };
  return new ShellEnvironment(backend, options) as SandboxedEnvironment; // the backend has both
}

/** The sandbox, or why this machine has none to offer. The first one of a process is also the examination. */
export async function openWherePossible(options: BubblewrapOptions): Promise<SandboxedEnvironment | SandboxProblem> {
  const { PATH = "" } = options.environment;
  const known = await probed.get(PATH);
  if (known) return known;
  const opening = openBubblewrapEnvironment(options);
  const problem = opening.then(
    () => null,
    (error: unknown) => (error instanceof NoSandbox ? error.problem : null),
  );
  if (known === undefined) probed.set(PATH, inTime(problem));
  const found = await probed.get(PATH);
  if (!found) return opening;
  // Nobody waits for it any longer.
  void opening.then((late) => late.cleanup()).catch(() => undefined);
  return found;
}

async function inTime(problem: Promise<SandboxProblem | null>): Promise<SandboxProblem | null> {
  if (await settledWithin(problem, PROBE_MS)) return problem;
  return { reason: `bwrap took longer than ${PROBE_MS / 1000} seconds`, fix: "Try again" };
}

interface SandboxProblem {
  readonly reason: string;
  /** What to do about it. */
  readonly fix: string;
}

/** Why no sandbox can be made on this machine, or null; found out once per process. */
export function bubblewrapProblem(environment: Readonly<Record<string, string>>): Promise<SandboxProblem | null> {
  const { PATH = "" } = environment;
  const known = probed.get(PATH) ?? probe(environment);
  probed.set(PATH, known);
  return known;
}

const probed = new Map<string, Promise<SandboxProblem | null>>();

async function probe(environment: Readonly<Record<string, string>>): Promise<SandboxProblem | null> {
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
    const problem = await inTime(tried);
    void sandbox.close();
    return problem;
  } catch (error) {
    return problemIn(error); // no program, not Linux
  }
}

async function findBubblewrap({ PATH = "" }: Readonly<Record<string, string>>): Promise<string> {
  if (process.platform !== "linux")
    throw new NoSandbox("bubblewrap is only available on Linux", "Choose docker or ssh as terminal.backend");
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
  readonly problem: SandboxProblem;

  constructor(reason: string, fix: string) {
    super(`Commands should run in a sandbox (terminal.sandbox), but ${reason}. ${fix}, or ${SWITCH_OFF}`);
    this.problem = { reason, fix };
  }
}

const ALLOW =
  "Unprivileged user namespaces may be disabled (sysctl kernel.unprivileged_userns_clone, " +
  "kernel.apparmor_restrict_unprivileged_userns), or bubblewrap is older than 0.5: fix that";

function problemIn(error: unknown): SandboxProblem {
  if (error instanceof NoSandbox) return error.problem;
  return { reason: messageOf(error).split("\n")[0] ?? "", fix: ALLOW };
}

function cannotSandbox(error: unknown): Error {
  const reason = messageOf(error);
  if (error instanceof StartFailed && error.passing) {
    return new UserError(
      `Could not create a sandbox in ${TRIES} tries: ${reason}. The machine may be short of memory, or a container engine is ` +
        "changing its mounts: try again.",
    );
  }
  if (error instanceof UserError) return error;
  return new NoSandbox(`bwrap cannot create one on this machine: ${reason}`, ALLOW);
}

// That a sandbox can be made on this machine, remembered from one run to the next: to show it again takes longer than the rest of a start.

/** What it depends on. After a restart of the machine or an update of bwrap it is shown anew. */
interface ProofFacts {
  readonly programs: readonly string[];
  readonly ownNetwork: boolean;
  readonly hermesHome: { readonly dir: string };
}

/**
 * - `holds` is a claim about the machine, not about one view: a sandbox that cannot be entered after all is an error of its command, which
 *   then has not run, and the claim is forgotten.
 */
class RememberedProof {
  readonly #file: string;
  readonly #key: string;
  readonly holds: boolean;

  private constructor(file: string, key: string, kept: string) {
    this.#file = file;
    this.#key = key;
    this.holds = kept === key;
  }

  static async read({ programs, ownNetwork, hermesHome }: ProofFacts): Promise<RememberedProof> {
    const file = join(hermesHome.dir, "cache", "sandbox-works");
    const [boot, kept, ...facts] = await Promise.all([
      readFile("/proc/sys/kernel/random/boot_id", "utf8").catch(() => String(Math.random())), // then nothing is remembered
      readFile(file, "utf8").catch(() => ""),
      ...programs.map(async (path) => {
        const { mtimeMs, size, ino } = await stat(path);
        return [path, mtimeMs, size, ino];
      }),
    ]);
    const key = createHash("sha256").update(JSON.stringify([boot, process.getuid?.(), ownNetwork, facts]));
    return new RememberedProof(file, key.digest("hex"), kept.trim());
  }

  async keep(): Promise<void> {
    await writeFileAtomic(this.#file, `${this.#key}\n`, { mode: 0o600 }).catch(() => undefined); // a home that is only read
  }

  async forget(): Promise<void> {
    await rm(this.#file, { force: true }).catch(() => undefined); // the same
  }
}
