// What `import "hermes-ts"` loads first: the agent itself waits for the first call. built-library.ts: the same for the build.
import type { openAgent as OpenAgent } from "./doors/library/contract.ts";

export const openAgent: typeof OpenAgent = async (options = {}) =>
  (await import("./doors/library/library.ts")).openAgent(options, process.env);
