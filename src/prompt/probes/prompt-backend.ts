// Where commands run, as the prompt tells it.
import type { Config } from "../../home/config/schema.ts";
import type { Environment } from "../../sandbox/environment.ts";
import type { Backend } from "../contract.ts";
import type { BackendProbes } from "./backend.ts";

/** What the settings alone say: for whoever looks at a prompt and runs nothing. */
export function configuredBackend(terminal: Config["terminal"], cwd: string): Backend | undefined {
  switch (terminal.backend) {
    case "local":
    case "auto":
      return undefined;
    case "bubblewrap":
      return { type: "bubblewrap", writable: cwd, network: terminal.sandbox_network === "on" };
    default:
      return { type: "remote", name: terminal.backend, facts: null };
  }
}

/** One examination per backend and directory for the life of the process. */
let probes: BackendProbes | null = null;

/** Undefined for this machine as it is. */
export async function backendOf(environment: Environment): Promise<Backend | undefined> {
  const { kind, confinement, files, cwd } = environment;
  if (confinement)
    return { type: "bubblewrap", writable: confinement.writable ?? "nothing", network: confinement.network };
  if (!files) return undefined;
  const { BackendProbes } = await import("./backend.ts");
  probes ??= new BackendProbes();
  const facts = await probes.facts(kind, cwd, async (command, timeoutMs) => {
    const signal = AbortSignal.timeout(timeoutMs);
    const done = await environment.execute(command, { timeoutMs, signal, keepCwd: true, stateless: true });
    return done.exitCode === 0 ? done.output : null;
  });
  return { type: "remote", name: kind, facts };
}
