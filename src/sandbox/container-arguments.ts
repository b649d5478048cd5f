// How a container is started: hardened, and with no more of this machine than the settings say.
import { createHash } from "node:crypto";
import { isAbsolute, join, normalize } from "node:path";
import { UserError } from "../kit/errors.ts";
import { isSecretName } from "./child-env.ts";
import type { TerminalConfig } from "./open.ts";

export interface ContainerFacts {
  readonly terminal: TerminalConfig;
  readonly hermesDir: string;
  readonly profile: string;
  /** What shares one container: a top-level task and the children it delegates to. */
  readonly task: string;
  /** The session's directory on this machine. */
  readonly cwd: string;
  /** Files and folders below the home that exist and are shown inside, read-only. */
  readonly shown: readonly string[];
  /** Where /root and /workspace live on; null: they go with the container. */
  readonly persistent: { readonly home: string; readonly workspace: string } | null;
  readonly user: { readonly uid: number; readonly gid: number };
}

export function containerName({ hermesDir, profile, task }: ContainerFacts): string {
  const slug = (text: string) => text.replace(/[^A-Za-z0-9_.-]+/g, "-").slice(0, 40);
  return `hermes-${slug(profile)}-${slug(task)}-${sha256(`${hermesDir}\n${task}`).slice(0, 8)}`;
}

/** Arguments of `run`, without the limit of the disk, which most set-ups of docker refuse. */
export function runArguments(facts: ContainerFacts): string[] {
  const { terminal, profile, task } = facts;
  const options = runOptions(facts);
  // A container that was made with other settings is not used again.
  const settings = sha256(JSON.stringify([options, terminal.docker_image, terminal.docker_env]));
  const labels = { "hermes-agent": "1", "hermes-profile": profile, "hermes-task": task, "hermes-settings": settings };
  return [
    ...["run", "-d", "--name", containerName(facts)],
    ...Object.entries(labels).flatMap(([name, value]) => ["--label", `${name}=${value}`]),
    ...options,
    ...["--entrypoint", "sleep", terminal.docker_image, "infinity"],
  ];
}

export function settingsOf(args: readonly string[]): string {
  const label = args.find((argument) => argument.startsWith("hermes-settings="));
  return label?.slice("hermes-settings=".length) ?? "";
}

function runOptions(facts: ContainerFacts): string[] {
  const { terminal, persistent, user } = facts;
  const asHostUser = terminal.docker_run_as_host_user;
  const rights = ["DAC_OVERRIDE", "CHOWN", "FOWNER", ...(asHostUser ? [] : ["SETUID", "SETGID"])];
  return [
    "--init",
    ...["--cap-drop", "ALL"],
    ...rights.flatMap((right) => ["--cap-add", right]),
    ...["--security-opt", "no-new-privileges", "--pids-limit", "256"],
    ...["--tmpfs", "/tmp:rw,exec,nosuid,mode=1777,size=512m"],
    ...["--tmpfs", "/var/tmp:rw,noexec,nosuid,mode=1777,size=256m"],
    ...["--tmpfs", "/run:rw,noexec,nosuid,mode=755,size=64m"],
    ...(terminal.container_cpu > 0 ? ["--cpus", String(terminal.container_cpu)] : []),
    ...(terminal.container_memory > 0 ? ["--memory", `${terminal.container_memory}m`] : []),
    ...(terminal.docker_shm_size ? ["--shm-size", terminal.docker_shm_size] : []),
    ...(terminal.docker_network ? ["--network", terminal.docker_network] : []),
    ...(asHostUser ? ["--user", `${user.uid}:${user.gid}`, "--env", "HOME=/root"] : []),
    ...(persistent ? ["-v", `${persistent.home}:/root`] : ["--tmpfs", "/root:rw,exec,nosuid,mode=1777"]),
    ...workspaceOptions(facts),
    ...facts.shown.flatMap((path) => ["-v", `${join(facts.hermesDir, path)}:/root/.hermes/${path}:ro`]),
    ...terminal.docker_volumes.flatMap((volume) => ["-v", volume]),
    ...terminal.docker_extra_args,
  ];
}

function workspaceOptions({ terminal, persistent, cwd }: ContainerFacts): string[] {
  if (terminal.docker_mount_cwd_to_workspace) return ["-v", `${cwd}:/workspace`];
  return persistent ? ["-v", `${persistent.workspace}:/workspace`] : ["--tmpfs", "/workspace:rw,exec,nosuid,mode=1777"];
}

/** Nothing of this machine can be reached from inside: no folder of the user's, and no arguments that may open a way. */
export function isIsolated(terminal: TerminalConfig): boolean {
  return (
    terminal.docker_volumes.length === 0 &&
    terminal.docker_extra_args.length === 0 &&
    !terminal.docker_mount_cwd_to_workspace &&
    terminal.docker_network !== "host"
  );
}

/** Where commands start: a path that only makes sense on this machine is not looked for inside. */
export function containerCwd(terminal: TerminalConfig): string {
  if (terminal.docker_mount_cwd_to_workspace) return "/workspace";
  const { cwd } = terminal;
  return cwd.startsWith("/") && !/^\/(home|Users)(\/|$)/.test(cwd) ? cwd : "/root";
}

/** Variables of ours that commands inside see. Naming one for docker is explicit, so it may be a secret. */
export function forwardedNames(terminal: TerminalConfig, environment: Readonly<Record<string, string>>): string[] {
  const passed = terminal.env_passthrough.filter((name) => !isSecretName(name));
  return [...new Set([...terminal.docker_forward_env, ...passed])].filter((name) => name in environment);
}

/** Credential files by their path below the home; a path that leads out of it is refused. */
export function credentialFiles(terminal: TerminalConfig): string[] {
  return terminal.credential_files.map((entry) => {
    const path = normalize(entry);
    if (!isAbsolute(path) && path !== ".." && !path.startsWith("../") && !path.startsWith("~")) return path;
    throw new UserError(
      `terminal.credential_files names ${entry}, which is not inside the Hermes home. Use paths relative to it, without "..".`,
    );
  });
}

const sha256 = (text: string) => createHash("sha256").update(text).digest("hex");

// What docker and podman say when they cannot, in words that lead further.

const DAEMON =
  /cannot connect to the docker daemon|is the docker daemon running|error during connect|cannot connect to podman|dial unix/i;
const NO_RIGHT =
  /permission denied.{0,400}(docker\.sock|podman\.sock|daemon socket)|daemon socket.{0,400}permission denied/is;
const IMAGE =
  /no such image|unable to find image|pull access denied|manifest unknown|repository .{0,400}(does not exist|not found)|initializing source|reading manifest|short-name|image not known|error pulling/i;
const INIT = /catatonit|container-init binary|docker-init/i;

export const noContainerProgram = () =>
  new UserError(
    "terminal.backend is docker, but neither docker nor podman is on PATH. Install one (https://docs.docker.com/engine/install, or: " +
      "apt install podman), name its path in HERMES_DOCKER_BINARY, or choose another backend: hermes config set terminal.backend local",
  );

export function containerError(binary: string, image: string, errors: string): UserError {
  const said = lastLines(errors);
  if (NO_RIGHT.test(errors)) {
    return new UserError(
      `${binary} is not allowed to access its daemon: ${said}. Add yourself to the docker group (sudo usermod -aG docker $USER, then log in ` +
        "again), or use podman: HERMES_DOCKER_BINARY=podman",
    );
  }
  if (DAEMON.test(errors)) {
    return new UserError(
      `The ${binary} daemon does not respond: ${said}. Start it (sudo systemctl start docker, or open Docker Desktop), use podman, ` +
        "which needs none (HERMES_DOCKER_BINARY=podman), or choose another backend: hermes config set terminal.backend local",
    );
  }
  if (IMAGE.test(errors)) {
    return new UserError(
      `The image ${image} is missing and could not be pulled: ${said}. Pull it (${binary} pull ${image}), or name another: ` +
        "hermes config set terminal.docker_image NAME",
    );
  }
  if (INIT.test(errors)) {
    return new UserError(
      `${binary} has no init program for containers: ${said}. Install it: apt install catatonit (podman) or tini (docker)`,
    );
  }
  return new UserError(`${binary} could not start a container of ${image}: ${said || "no error message"}`);
}

function lastLines(errors: string): string {
  return errors
    .trim()
    .split("\n")
    .filter((line) => !/^See '.* --help'\.?$|^Run '.*' for more information$/.test(line))
    .slice(-3)
    .join(" ")
    .replace(/\.$/, "");
}
