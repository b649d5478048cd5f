// The environment that the settings ask for. What was asked for or an error that says what is missing; never another backend in silence.
import type { Config } from "../home/config/schema.ts";
import type { OpenHome } from "../home/open.ts";
import { UserError } from "../kit/errors.ts";
import type { Environment } from "./environment.ts";
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
  /** An unattended run: a schedule, a chat, HTTP, a batch, a one-shot without a terminal. */
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
      return openLocalEnvironment(options);
    case "auto":
      return openAutomatic(terminal, options);
    case "bubblewrap":
      return openBubblewrap(terminal, options);
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
        `terminal.backend is ${terminal.backend}, which this version cannot use. Choose local, auto, bubblewrap, docker or ssh: ` +
          "hermes config set terminal.backend local",
      );
  }
}

const USABLE: ReadonlySet<string> = new Set<TerminalConfig["backend"]>([
  "local",
  "auto",
  "bubblewrap",
  "docker",
  "ssh",
]);

/** Why no conversation would be opened with this backend, whatever is installed here; null when it can be tried. */
export function backendProblem(home: Pick<OpenHome, "config" | "unreadGuards">): string | null {
  // What stands in for a setting that cannot be read is not the user's choice.
  const unread = home.unreadGuards().find((problem) => UNREAD_BACKEND.test(problem));
  if (unread !== undefined) return unread;
  const { backend } = home.config().terminal;
  return USABLE.has(backend) ? null : `this version cannot use ${backend}`;
}

const UNREAD_BACKEND = /^terminal(?:\.backend\b|:)|\bterminal\.backend\b[^(]*\)$/;

/** A sandbox for unattended runs, if this machine can make one. */
async function openAutomatic(terminal: TerminalConfig, options: EnvironmentOptions): Promise<Environment> {
  if (!options.unattended || process.platform !== "linux") return openLocalEnvironment(options);
  const { bubblewrapWorks } = await import("./bubblewrap.ts");
  if (!(await bubblewrapWorks(options.environment))) return openLocalEnvironment(options);
  return openBubblewrap(terminal, options);
}

async function openBubblewrap(terminal: TerminalConfig, options: EnvironmentOptions): Promise<Environment> {
  const { openBubblewrapEnvironment } = await import("./bubblewrap.ts");
  return openBubblewrapEnvironment({ ...options, network: terminal.sandbox_network === "on" });
}
