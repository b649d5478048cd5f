import type { Environment } from "../../../src/sandbox/environment.ts";
import { cleared } from "../cleared.ts";

/** What a test does with an environment it opened: run a line in it, and be done with it and what lies behind it. */
export function usable(environment: Environment, removeRest: () => Promise<void>) {
  return {
    environment,
    run: (command: string, stdin?: string) =>
      environment.execute(cleared(command), {
        timeoutMs: 30_000,
        signal: new AbortController().signal,
        ...(stdin === undefined ? {} : { stdin }),
      }),
    async release() {
      await environment.cleanup();
      await removeRest();
    },
  };
}
