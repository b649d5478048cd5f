// Where a program that embeds the build begins: src/library.ts out of the files of the build.
import type { openAgent as OpenAgent } from "./doors/library/contract.ts";
import { scriptLoader } from "./home/script-loader.ts";

/** What src/library.ts exports. */
interface Library {
  readonly openAgent: typeof OpenAgent;
}

export const { openAgent } = scriptLoader(import.meta.dirname, null).load("library.cjs") as Library;
