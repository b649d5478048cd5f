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
        `terminal.backend is ${terminal.backend}, which this version cannot use. Choose local, docker or ssh: ` +
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
  return USABLE.has(backend) ? null : `this version cannot use ${backend}`;
}

const UNREAD_BACKEND = /^terminal(?:\.(?:backend|sandbox\w*)\b|:)|\bterminal\.(?:backend|sandbox\w*)\b[^(]*\)$/;

// This machine, in a sandbox or as it is.

/** What the settings come to here. */
type SandboxChoice =
  | { readonly type: "off" }
  | { readonly type: "sandbox"; readonly network: SandboxNetwork }
  /** Wanted if there is one, and there is none. */
  | { readonly type: "missing"; readonly reason: string };

interface SandboxFacts {
  readonly environment: Readonly<Record<string, string>>;
  readonly unattended: boolean;
}

/** Whether commands of the local backend run in a sandbox. `on` is not examined: where there is none, opening it says so. */
async function chooseSandbox(terminal: TerminalConfig, facts: SandboxFacts): Promise<SandboxChoice> {
  const mode = sandboxMode(terminal);
  if (mode === "off") return { type: "off" };
  const network = facts.unattended ? terminal.sandbox_network_unattended : terminal.sandbox_network;
  if (mode === "on") return { type: "sandbox", network };
  const { bubblewrapProblem } = await import("./bubblewrap.ts");
  const reason = await bubblewrapProblem(facts.environment);
  return reason === null ? { type: "sandbox", network } : { type: "missing", reason };
}

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
  const choice = await chooseSandbox(terminal, facts);
  if (choice.type !== "sandbox") return undefined;
  const { writableFolder } = await import("./bubblewrap-view.ts");
  return { writable: await writableFolder(facts), network: choice.network };
}

async function openHere(terminal: TerminalConfig, options: EnvironmentOptions): Promise<Environment> {
  const choice = await chooseSandbox(terminal, options);
  if (choice.type === "off") return openLocalEnvironment(options);
  if (choice.type === "missing") return openLocalEnvironment({ ...options, noSandbox: choice.reason });
  const [{ openBubblewrapEnvironment }, { LeavableSandbox }] = await Promise.all([
    import("./bubblewrap.ts"),
    import("./leaving.ts"),
  ]);
  const inside = await openBubblewrapEnvironment({ ...options, network: choice.network });
  return new LeavableSandbox(inside, () => openLocalEnvironment({ ...options, cwd: inside.cwd }));
}
