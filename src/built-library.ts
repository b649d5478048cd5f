// Where a program that embeds the build begins: src/library.ts out of the files of the build.
import type { openAgent as OpenAgent } from "./doors/library/contract.ts";
import { scriptLoader } from "./home/script-loader.ts";

/** What src/library.ts exports. */
interface Library {
  readonly openAgent: typeof OpenAgent;
}

const REQUIRED_MAJOR = 24;
if (Number(process.versions.node.split(".")[0]) < REQUIRED_MAJOR)
  throw new Error(`hermes-ts needs Node ${REQUIRED_MAJOR} or newer; this is Node ${process.versions.node}.`);

export const { openAgent } = scriptLoader(import.meta.dirname, null).load("library.cjs") as Library;
