// The one table of places that are not changed, or not shown, without more. The file tools and the shell rules both read it.

export interface ProtectedPlace {
  /** Below the home it belongs to, or absolute for the system. */
  readonly path: string;
  /** A directory stands for everything below it. */
  readonly type: "file" | "directory";
  readonly holds: "credentials" | "start file" | "settings" | "own state" | "own secrets" | "system";
  /** What a file tool does when asked to write there. A shell command that writes there is always asked about. */
  readonly write: "deny" | "ask" | "allow";
  readonly read: "deny" | "allow";
}

type Rest = Omit<ProtectedPlace, "path" | "type">;

const files = (names: string, rest: Rest): ProtectedPlace[] =>
  names.split(" ").map((path) => ({ path, type: "file", ...rest }));
const directories = (names: string, rest: Rest): ProtectedPlace[] =>
  names.split(" ").map((path) => ({ path, type: "directory", ...rest }));

const START =
  ".bashrc .bash_profile .bash_login .bash_logout .bash_aliases .profile .zshrc .zshenv .zprofile .zlogin .zlogout";

/** In the home directory of a user. */
export const USER_PLACES: readonly ProtectedPlace[] = [
  ...files(".netrc .pgpass .npmrc .pypirc .git-credentials", { holds: "credentials", write: "deny", read: "allow" }),
  ...directories(".ssh .aws .gnupg .kube .docker .azure .config/gh .config/gcloud", {
    holds: "credentials",
    write: "deny",
    read: "allow",
  }),
  ...files(`${START} .kshrc .cshrc .tcshrc .config/fish/config.fish`, {
    holds: "start file",
    write: "ask",
    read: "allow",
  }),
];

/** In the home of a profile, and in the root home. */
export const HERMES_PLACES: readonly ProtectedPlace[] = [
  ...files("config.yaml", { holds: "settings", write: "deny", read: "allow" }),
  ...files(".env auth.json .anthropic_oauth.json", { holds: "own secrets", write: "deny", read: "deny" }),
  ...files("auth.lock webhook_subscriptions.json auth/google_oauth.json", {
    holds: "own secrets",
    write: "allow",
    read: "deny",
  }),
  ...files("state.db state.db-wal state.db-shm state.db-journal context_trust.json shell-hooks-allowlist.json", {
    holds: "own state",
    write: "deny",
    read: "allow",
  }),
  ...directories("mcp-tokens", { holds: "own secrets", write: "deny", read: "deny" }),
  // git runs what the settings in its store name, so the store of checkpoints is nobody's to write.
  ...directories("pairing sessions checkpoints", { holds: "own state", write: "deny", read: "allow" }),
  ...directories("skills/.hub", { holds: "own secrets", write: "allow", read: "deny" }),
];

/** Of the machine. */
export const SYSTEM_PLACES: readonly ProtectedPlace[] = [
  ...directories("/etc /boot /usr/lib/systemd /private/etc", { holds: "system", write: "deny", read: "allow" }),
  ...files("/var/run/docker.sock /run/docker.sock", { holds: "system", write: "deny", read: "allow" }),
];

/** Where macOS really keeps these, and the switch that stops Linux at once; only a shell is asked about them. */
export const SYSTEM_PLACES_OF_SHELLS: readonly ProtectedPlace[] = [
  ...directories("/private/var /private/tmp /private/home", { holds: "system", write: "allow", read: "allow" }),
  ...files("/proc/sysrq-trigger", { holds: "system", write: "allow", read: "allow" }),
];

/** Whether a place covers a path that is spelled from the same start. */
export function covers({ path, type }: ProtectedPlace, candidate: string): boolean {
  return candidate === path || (type === "directory" && candidate.startsWith(`${path}/`));
}
