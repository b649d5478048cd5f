// What a container or another machine looks like from inside.
import type { ClearedCommand } from "../../safety/decision.ts";
import { BACKEND_PROBE } from "../../safety/own-commands.ts";
import type { BackendFacts } from "../contract.ts";

export const BACKEND_PROBE_MS = 4_000;

/** Runs a command in the backend; null when it failed or took too long. */
export type AskBackend = (command: ClearedCommand, timeoutMs: number) => Promise<string | null>;

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
