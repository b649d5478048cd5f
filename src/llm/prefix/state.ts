// What a session's last requests began with, as it is stored between processes.
import type { PrefixCause } from "../gate.ts";
import type { Sketch } from "./sketch.ts";
import type { Baseline, Talk } from "./watch.ts";

/** Where the state of a session is kept; whatever it is handed, it hands back. */
export interface PrefixMemory {
  read(sessionId: string): Promise<unknown>;
  write(sessionId: string, state: unknown): Promise<void>;
}

const VERSION = 2;
const MOST_CAUSES = 16;

interface StoredState {
  readonly v: number;
  readonly causes: readonly PrefixCause[];
  readonly baselines: readonly { readonly to: string; readonly serial: number; readonly sketch: Sketch }[];
}

export function writeState({ causes, baselines }: Talk): StoredState {
  const cut = Math.max(0, causes.length - MOST_CAUSES);
  return {
    v: VERSION,
    causes: causes.slice(cut),
    baselines: [...baselines].flatMap(([to, { sketch, serial }]) =>
      sketch ? [{ to, serial: Math.max(0, serial - cut), sketch }] : [],
    ),
  };
}

/** Null for anything that is not ours to read. */
export function readState(
  value: unknown,
): { readonly causes: readonly PrefixCause[]; readonly baselines: ReadonlyMap<string, Baseline> } | null {
  if (typeof value !== "object" || value === null || !("v" in value) || value.v !== VERSION) return null;
  const { causes, baselines } = value as StoredState; // our version, so our shape
  // What a server refused is not remembered: a new process sends it once more, and is refused once more.
  const again: readonly PrefixCause[] = causes.includes("repair") ? ["repair"] : [];
  return {
    causes: [...causes, ...again],
    baselines: new Map(baselines.map(({ to, serial, sketch }) => [to, { prefix: null, sketch, serial }])),
  };
}
