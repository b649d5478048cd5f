// A memory over a real temporary home, for tests.
import type { TestContext } from "node:test";
import { type Config, configSchema } from "../../src/home/config/schema.ts";
import { homePaths } from "../../src/home/paths.ts";
import { type Clock, systemClock } from "../../src/kit/clock.ts";
import type { MemoryRun } from "../../src/memory/approval.ts";
import { openMemory } from "../../src/memory/open.ts";
import { tempHome } from "./temp-home.ts";
import { recordingLog } from "./tool-context.ts";

export interface MemoryTestOptions {
  readonly memory?: Partial<Config["memory"]>;
  readonly files?: Readonly<Record<string, string>>;
  readonly clock?: Clock;
  readonly lockWaitMs?: number;
}

export type MemoryHome = Awaited<ReturnType<typeof memoryHome>>;

/** Gone with the test. */
export async function memoryHome(t: TestContext, options: MemoryTestOptions = {}) {
  const { memory = {}, files = {}, clock = systemClock, lockWaitMs } = options;
  const home = await tempHome(
    Object.fromEntries(Object.entries(files).map(([name, text]) => [`memories/${name}`, text])),
  );
  t.after(() => home[Symbol.asyncDispose]());
  const settings = { ...memory };
  const config = () => configSchema.parse({ memory: settings });
  const log = recordingLog();
  const open = () =>
    openMemory({
      paths: homePaths(home.dir, home.dir, "default"),
      config,
      clock,
      log,
      ...(lockWaitMs === undefined ? {} : { lockWaitMs }),
    });
  return {
    home,
    log,
    settings,
    config,
    open,
    memory: await open(),
    at: (name: string) => home.at("memories", name),
  };
}

/** A real memory that holds nothing, for tests that never write to it. */
export function emptyMemory() {
  const paths = homePaths("/nonexistent", "/nonexistent", "default");
  return openMemory({ paths, config: () => configSchema.parse({}), clock: systemClock, log: recordingLog() });
}

export function memoryRun(given: Partial<MemoryRun> = {}): MemoryRun {
  return {
    origin: "foreground",
    sessionId: "s1",
    turn: 1,
    platform: "cli",
    interactive: false,
    ask: async () => ({ choice: "deny" }) as never, // nobody can be asked
    signal: new AbortController().signal,
    ...given,
  };
}
