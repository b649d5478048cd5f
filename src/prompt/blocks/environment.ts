// Where the agent's commands run and whose machine that is.
import type { Backend, HostKind, PromptInputs } from "../contract.ts";

const HOST_NOTES: Readonly<Record<HostKind, string>> = {
  wsl: "This is Linux inside Windows (WSL). Windows drives are mounted under /mnt (C: is /mnt/c): translate Windows paths such as C:\\Users\\me to /mnt/c/Users/me before you use them.",
  termux:
    "This is Termux, a Linux user land on Android: install packages with `pkg`, not `apt`; there is no systemd; the phone's shared storage is under ~/storage.",
  windows:
    "The terminal runs bash (git-bash/MSYS), not PowerShell or cmd: write POSIX syntax. Paths like /c/Users/... work; PowerShell built-ins do not.",
};

const BACKENDS: Readonly<Record<string, string>> = {
  docker: "a Docker container, usually Linux",
  singularity: "a Singularity container, usually Linux",
  modal: "a Linux sandbox in Modal's cloud",
  daytona: "a Linux workspace in Daytona's cloud",
  ssh: "another machine, reached over SSH",
};

type Place = Pick<PromptInputs, "cwd" | "hostName" | "hostKind" | "userHome" | "backend" | "environmentHint">;

export function environmentHints(place: Place): string {
  const { backend = { type: "local" }, hostKind } = place;
  const blocks =
    backend.type === "remote"
      ? [remoteBackend(backend)]
      : [hostFacts(place, backend), ...(hostKind === undefined ? [] : [HOST_NOTES[hostKind]])];
  return [...blocks, place.environmentHint].filter((text) => text.trim() !== "").join("\n\n");
}

function hostFacts({ cwd, hostName, hostKind, userHome }: Place, backend: Backend): string {
  return [
    `Host: ${hostName}`,
    `User home directory: ${userHome}`,
    ...(hostKind === "windows" ? ["The machine's host name is not the user's name."] : []),
    // Named without its path where it can be: this layer is the same in every folder.
    ...(backend.type === "bubblewrap"
      ? [
          `Commands run in a bubblewrap sandbox: ${backend.writable === cwd ? "the working directory" : backend.writable} is writable, everything else is read-only; the network is ${backend.network ? "on" : "off"}.`,
        ]
      : []),
  ].join("\n");
}

function remoteBackend({ name, facts }: Extract<Backend, { type: "remote" }>): string {
  const where = `Terminal backend: ${name}. The terminal and all file tools act inside it, not on the host that runs you`;
  if (!facts) {
    const what = BACKENDS[name] ?? "an environment of its own";
    return `${where}. It is ${what}; it could not be examined beforehand, so look at it yourself first (\`uname -a; whoami; pwd\`).`;
  }
  const lines: readonly (readonly [string, string])[] = [
    ["OS", `${facts.os} ${facts.kernel}`.trim()],
    ["User", facts.user],
    ["Home", facts.home],
    ["Working directory", facts.cwd],
  ];
  return [`${where}:`, ...lines.flatMap(([label, value]) => (value === "" ? [] : [`  ${label}: ${value}`]))].join("\n");
}
