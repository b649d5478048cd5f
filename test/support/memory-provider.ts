// An external memory as a plugin would bring it, and a clock that jumps: for tests of whoever uses one.
import type { TestContext } from "node:test";
import { defaultConfig } from "../../src/home/config/schema.ts";
import { homePaths } from "../../src/home/paths.ts";
import type { Clock } from "../../src/kit/clock.ts";
import { type AttachOptions, attachProvider } from "../../src/memory/providers/attached.ts";
import type { MemoryProvider, ProviderContext } from "../../src/memory/providers/contract.ts";
import { tempHome } from "./temp-home.ts";
import { recordingLog } from "./tool-context.ts";

/** Writes down what it is told; each member can be replaced. */
export function tellingProvider(change: Partial<MemoryProvider> = {}) {
  const told: unknown[][] = [];
  const note =
    (name: string) =>
    (...args: unknown[]) =>
      void told.push([name, ...args]);
  const provider: MemoryProvider = {
    name: "telling",
    isAvailable: () => true,
    initialize: note("initialize"),
    onTurnStart: note("onTurnStart"),
    syncTurn: note("syncTurn"),
    queuePrefetch: note("queuePrefetch"),
    onMemoryWrite: note("onMemoryWrite"),
    onSessionSwitch: note("onSessionSwitch"),
    onSessionEnd: note("onSessionEnd"),
    onDelegation: note("onDelegation"),
    shutdown: note("shutdown"),
    ...change,
  };
  return { provider, told, names: () => told.map(([name]) => name) };
}

/** Sleeps end when `pass` says that their time has come, never by themselves. */
export function jumpingClock(): Clock & { pass(ms: number): Promise<void> } {
  let now = 1_800_000_000_000;
  const sleepers = new Set<{ readonly at: number; wake(): void }>();
  return {
    now: () => now,
    random: () => 0.5,
    sleep: (ms, signal) =>
      new Promise((resolve, reject) => {
        const sleeper = { at: now + ms, wake: resolve };
        sleepers.add(sleeper);
        signal?.addEventListener("abort", () => {
          sleepers.delete(sleeper);
          reject(signal.reason);
        });
      }),
    async pass(ms) {
      now += ms;
      for (const sleeper of sleepers) if (sleeper.at <= now) sleeper.wake();
      await new Promise((resolve) => setImmediate(resolve));
    },
  };
}

export const SESSION = {
  hermesHome: "/",
  platform: "cli",
  agentContext: "primary",
  agentIdentity: "default",
} as const;

/** Gone with the test. */
export async function attach(t: TestContext, provider: MemoryProvider, change: Partial<AttachOptions> = {}) {
  const home = await tempHome();
  t.after(() => home[Symbol.asyncDispose]());
  const log = recordingLog();
  const clock = jumpingClock();
  const paths = homePaths(home.dir, home.dir, "default");
  const troubles: string[] = [];
  const options = { provider, sessionId: "s1", about: SESSION, paths, clock, log, isCoreTool: () => false, ...change };
  const attached = await attachProvider(options, (reason) => troubles.push(reason));
  return { attached, home, log, clock, paths, troubles };
}

export function providerContext(dir: string, change: Partial<ProviderContext> = {}): ProviderContext {
  return {
    paths: homePaths(dir, dir, "default"),
    config: defaultConfig,
    env: () => undefined,
    clock: jumpingClock(),
    log: recordingLog(),
    ...change,
  };
}

export const turnOf = (signal = new AbortController().signal) => ({ sessionId: "s1", turn: 1, signal });
