// What machine this is, as far as the agent has to know.

import type { Config } from "../../home/config/schema.ts";
import { BACKEND_PROBE, type ClearedCommand } from "../../safety/decision.ts";
import type { Environment } from "../../sandbox/environment.ts";
import { inspectSandbox, RUNS_HERE } from "../../sandbox/open.ts";
import type { Backend, BackendFacts, HostKind } from "../contract.ts";
import { type ReadableFiles, readBytes } from "../ports.ts";

export interface HostFacts {
  readonly platform: NodeJS.Platform;
  /** `os.type()`, for systems without a name of their own here. */
  readonly type: string;
  /** `os.release()`. */
  readonly release: string;
  env(name: string): string | undefined;
}

interface Host {
  readonly hostName: string;
  readonly hostKind?: HostKind;
}

const NAMES: Readonly<Partial<Record<NodeJS.Platform, string>>> = {
  linux: "Linux",
  android: "Android",
  darwin: "macOS",
  win32: "Windows",
};

export async function readHost(facts: HostFacts, files: Pick<ReadableFiles, "facts" | "chunks">): Promise<Host> {
  const { platform, release } = facts;
  if (facts.env("TERMUX_VERSION") || facts.env("PREFIX")?.includes("com.termux"))
    return { hostName: "Termux (Android)", hostKind: "termux" };
  if (platform === "linux" && (await isWsl(release, files)))
    return { hostName: "WSL (Windows Subsystem for Linux)", hostKind: "wsl" };
  const hostName = `${NAMES[platform] ?? facts.type} (${release})`;
  return platform === "win32" ? { hostName, hostKind: "windows" } : { hostName };
}

async function isWsl(release: string, files: Pick<ReadableFiles, "facts" | "chunks">): Promise<boolean> {
  if (/microsoft/i.test(release)) return true;
  const version = kernels.get(files) ?? readBytes(files, "/proc/version", 64 * 1024);
  kernels.set(files, version);
  const read = await version;
  return read.type === "bytes" && /microsoft/i.test(new TextDecoder().decode(read.bytes));
}

/** A machine gets no other kernel while we run. */
const kernels = new WeakMap<object, ReturnType<typeof readBytes>>();

// What a container or another machine looks like from inside.

const BACKEND_PROBE_MS = 4_000;

/** Runs a command in the backend; null when it failed or took too long. */
type AskBackend = (command: ClearedCommand, timeoutMs: number) => Promise<string | null>;

/** One answer per backend and directory for the life of the process, failures included. */
export class BackendProbes {
  readonly #known = new Map<string, Promise<BackendFacts | null>>();

  facts(backend: string, cwd: string, ask: AskBackend): Promise<BackendFacts | null> {
    const key = `${backend}\0${cwd}`;
    const known = this.#known.get(key);
    if (known) return known;
    const found = probe(ask);
    this.#known.set(key, found);
    return found;
  }
}

async function probe(ask: AskBackend): Promise<BackendFacts | null> {
  try {
    return parseBackendFacts((await ask(BACKEND_PROBE, BACKEND_PROBE_MS)) ?? "");
  } catch {
    return null; // the prompt then says that it could not be examined
  }
}

export function parseBackendFacts(output: string): BackendFacts | null {
  const value = (key: string) => {
    const line = output.split(/\r?\n/).find((text) => text.startsWith(`${key}=`));
    return (line?.slice(key.length + 1) ?? "").replace(/\p{Cc}/gu, "").trim();
  };
  const facts = {
    os: value("os"),
    kernel: value("kernel"),
    user: value("user"),
    home: value("home"),
    cwd: value("cwd"),
  };
  return Object.values(facts).every((text) => text === "") ? null : facts;
}

// Where commands run, as the prompt describes it.

/** For whoever looks at a prompt and runs no command: what the settings say, and whether this machine has a sandbox. */
export async function configuredBackend(
  terminal: Config["terminal"],
  facts: Parameters<typeof inspectSandbox>[1],
): Promise<Backend | undefined> {
  if (!RUNS_HERE.has(terminal.backend)) return { type: "remote", name: terminal.backend, facts: null };
  const sandbox = await inspectSandbox(terminal, facts);
  return sandbox && { type: "sandbox", ...sandbox };
}

/** One examination per backend and directory for the life of the process. */
let probes: BackendProbes | null = null;

/** Undefined for this machine as it is. */
export async function backendOf(environment: Environment): Promise<Backend | undefined> {
  const { kind, confinement, files, cwd } = environment;
  if (confinement) return { type: "sandbox", writable: confinement.writable, network: confinement.network };
  if (!files) return undefined;
  probes ??= new BackendProbes();
  const facts = await probes.facts(kind, cwd, async (command, timeoutMs) => {
    const signal = AbortSignal.timeout(timeoutMs);
    const done = await environment.execute(command, { timeoutMs, signal, keepCwd: true, stateless: true });
    return done.exitCode === 0 ? done.output : null;
  });
  return { type: "remote", name: kind, facts };
}
