// The environment that the settings ask for. What was asked for or an error that says what is missing; never another backend in silence.
import type { Config } from "../home/config/schema.ts";
import type { OpenHome } from "../home/open.ts";
import { UserError } from "../kit/errors.ts";
import type { Confinement, Environment, SandboxNetwork } from "./environment.ts";
import { type LocalOptions, openLocalEnvironment } from "./local.ts";

export type TerminalConfig = Config["terminal"];

export interface EnvironmentOptions extends LocalOptions {
  /** The user's own home directory. */
  readonly userHome: string;
  /** The home of this profile, and the root home. */
  readonly hermesHome: { readonly dir: string; readonly root: string };
  readonly profile?: string | undefined;
  /** What shares one container: a top-level task and the children it delegates to. Default: one for the profile. */
  readonly task?: string | undefined;
  /** Nobody began it by hand: a schedule. */
  readonly unattended: boolean;
  /** Called with what went wrong after the caller stopped waiting. */
  readonly report?: ((problem: string) => void) | undefined;
}

export async function openEnvironment(
  config: { readonly terminal: TerminalConfig },
  given: EnvironmentOptions,
): Promise<Environment> {
  const { terminal } = config;
  const options: EnvironmentOptions = {
    initFiles: terminal.shell_init_files,
    sourceBashrc: terminal.auto_source_bashrc,
    persistent: terminal.persistent_shell,
    ...given,
  };
  switch (terminal.backend) {
    case "local":
    case "auto":
    case "bubblewrap":
      return openHere(terminal, options);
    case "docker": {
      const { openContainerEnvironment } = await import("./container.ts");
      return openContainerEnvironment(terminal, options);
    }
    case "ssh": {
      const { openSshEnvironment } = await import("./ssh.ts");
      return openSshEnvironment(terminal, options);
    }
    default:
      throw new UserError(
        `terminal.backend is ${terminal.backend}, which this version does not support. Choose local, docker or ssh: ` +
          "hermes config set terminal.backend local",
      );
  }
}

/** Backends whose commands run on this machine. */
export const RUNS_HERE: ReadonlySet<string> = new Set<TerminalConfig["backend"]>(["local", "auto", "bubblewrap"]);
const USABLE: ReadonlySet<string> = new Set([...RUNS_HERE, "docker", "ssh"]);

/** Why no conversation would be opened with this backend, whatever is installed here; null when it can be tried. */
export function backendProblem(home: Pick<OpenHome, "config" | "unreadGuards">): string | null {
  // What stands in for a setting that cannot be read is not the user's choice.
  const unread = home.unreadGuards().find((problem) => UNREAD_BACKEND.test(problem));
  if (unread !== undefined) return unread;
  const { backend } = home.config().terminal;
  return USABLE.has(backend) ? null : `this version does not support ${backend}`;
}

const UNREAD_BACKEND = /^terminal(?:\.(?:backend|sandbox\w*)\b|:)|\bterminal\.(?:backend|sandbox\w*)\b[^(]*\)$/;

// This machine, in a sandbox or as it is.

interface SandboxFacts {
  readonly environment: Readonly<Record<string, string>>;
  readonly unattended: boolean;
}

const networkOf = (terminal: TerminalConfig, { unattended }: Pick<SandboxFacts, "unattended">): SandboxNetwork =>
  unattended ? terminal.sandbox_network_unattended : terminal.sandbox_network;

/** The backends `auto` and `bubblewrap` are older names for a sandbox of the local one. */
function sandboxMode({ backend, sandbox }: TerminalConfig): TerminalConfig["sandbox"] {
  if (backend === "bubblewrap") return "on";
  if (backend === "auto") return sandbox === "on" ? "on" : "auto";
  return backend === "local" ? sandbox : "off";
}

/** What a sandbox would leave open, without making one; undefined where there would be none. */
export async function inspectSandbox(
  terminal: TerminalConfig,
  facts: SandboxFacts & Pick<EnvironmentOptions, "cwd" | "userHome" | "hermesHome">,
): Promise<Pick<Confinement, "writable" | "network"> | undefined> {
  const mode = sandboxMode(terminal);
  if (mode === "off") return undefined;
  const { bubblewrapProblem } = await import("./bubblewrap.ts");
  if (mode === "auto" && (await bubblewrapProblem(facts.environment))) return undefined;
  const { writableFolder } = await import("./bubblewrap-view.ts");
  return { writable: await writableFolder(facts), network: networkOf(terminal, facts) };
}

/** A home of the Python original, or an older one, says nothing about it. */
export function hasSandboxSetting({ configTree }: Pick<OpenHome, "configTree">): boolean {
  const terminal = configTree()?.terminal;
  return typeof terminal === "object" && terminal !== null && "sandbox" in terminal;
}

/** Where commands run, in a few words. */
export function placeLine({ kind, confinement, noSandbox = "terminal.sandbox is off" }: PlaceFacts): string {
  if (confinement) return `local, sandboxed (network ${networkWords(confinement.network)})`;
  return kind === "local" ? `local, no sandbox: ${noSandbox}` : kind;
}

/** The same in two or three words. */
export function placeWords({ kind, confinement }: Pick<PlaceFacts, "kind" | "confinement">): string {
  if (confinement) return "sandboxed";
  return kind === "local" ? "on this machine" : `in ${kind}`;
}

type PlaceFacts = Pick<Environment, "kind" | "noSandbox"> & {
  readonly confinement?: Pick<Confinement, "network"> | undefined;
};

const networkWords = (network: SandboxNetwork) => (typeof network === "string" ? network : network.join(", ") || "off");

/** The same for a conversation that would begin now, and what is wrong with it. */
export async function inspectPlace(terminal: TerminalConfig, environment: Readonly<Record<string, string>>) {
  const mode = sandboxMode(terminal);
  if (!RUNS_HERE.has(terminal.backend)) return { line: terminal.backend, mode, problem: null };
  const problem = mode === "off" ? null : await (await import("./bubblewrap.ts")).bubblewrapProblem(environment);
  const { sandbox_network, sandbox_network_unattended } = terminal;
  const confinement = mode === "off" || problem ? undefined : { network: sandbox_network };
  const refused = mode === "on" && problem ? `nothing starts: terminal.sandbox is on, but ${problem.reason}` : null;
  return {
    line: refused ?? placeLine({ kind: "local", confinement, ...(problem && { noSandbox: problem.reason }) }),
    mode,
    problem,
    unattended: networkWords(sandbox_network_unattended),
  };
}

async function openHere(terminal: TerminalConfig, options: EnvironmentOptions): Promise<Environment> {
  const mode = sandboxMode(terminal);
  if (mode === "off") return openLocalEnvironment(options);
  const [{ openBubblewrapEnvironment, openWherePossible }, { LeavableSandbox }] = await Promise.all([
    import("./bubblewrap.ts"),
    import("./leaving.ts"),
  ]);
  const open = mode === "on" ? openBubblewrapEnvironment : openWherePossible;
  const networkSetting = `terminal.sandbox_network${options.unattended ? "_unattended" : ""}`;
  const passthrough = terminal.env_passthrough;
  const inside = await open({ ...options, network: networkOf(terminal, options), networkSetting, passthrough });
  if ("reason" in inside) return openLocalEnvironment({ ...options, noSandbox: inside.reason });
  return new LeavableSandbox(inside, () => openLocalEnvironment({ ...options, cwd: inside.cwd }));
}
