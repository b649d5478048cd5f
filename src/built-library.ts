// Where a program that embeds the build begins: src/library.ts out of the files of the build.
import { constants, Script } from "node:vm";
import type { openAgent as OpenAgent } from "./doors/library/contract.ts";
import { scriptLoader } from "./home/script-loader.ts";

/** What src/library.ts exports. */
interface Library {
  readonly openAgent: typeof OpenAgent;
}

const REQUIRED_MAJOR = 24;
if (Number(process.versions.node.split(".")[0]) < REQUIRED_MAJOR)
  throw new Error(`hermes-ts needs Node ${REQUIRED_MAJOR} or newer; this is Node ${process.versions.node}.`);

// Node says of each new feature once that it is new, in whatever program uses it first. The programs of others did not choose ours.
const { emitWarning } = process;
process.emitWarning = () => undefined;
try {
  process.getBuiltinModule("node:sqlite");
  new Script('import("node:path")', {
    importModuleDynamically: constants.USE_MAIN_CONTEXT_DEFAULT_LOADER,
  }).runInThisContext();
} finally {
  process.emitWarning = emitWarning;
}

export const { openAgent } = scriptLoader(import.meta.dirname, null).load("library.cjs") as Library;
