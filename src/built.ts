// Where the build begins: answers `--version` by itself, and runs src/main.ts out of the files of the build otherwise.
import { homedir } from "node:os";
import { resolveHomeDir, rootOf, versionLine } from "./home/paths.ts";
import { keptCodeFile, scriptLoader } from "./home/script-loader.ts";
import { RUN_LEAN } from "./home/start-program.ts";
import { STARTED } from "./kit/memory.ts";

/** Put in by scripts/build.mjs: what tells this build from every other. */
declare const BUILD: string;

const argv = process.argv.slice(2);
if (argv.length === 1 && (argv[0] === "--version" || argv[0] === "-V")) process.stdout.write(`${versionLine()}\n`);
else runProgram();

function runProgram(): void {
  if (isGateway()) for (const flag of RUN_LEAN) process.getBuiltinModule("node:v8").setFlagsFromString(flag);
  const location = { env: process.env, osHome: homedir() };
  const home = rootOf(resolveHomeDir(location), location);
  const loader = scriptLoader(import.meta.dirname, keptCodeFile(`${BUILD}-${kindOf()}`, home, process.env));
  process.once("exit", (code) => {
    if (code === 0) loader.keep();
  });
  process.on(STARTED, () => loader.keep());
  loader.load("main.cjs");
}

/** As typed in a terminal or written for a service by hand. Started by this program it has the flags from its first moment. */
function isGateway(): boolean {
  return argv.some((word, at) => word === "gateway" && argv[at + 1] === "run");
}

/** Runs of a kind call the same functions. V8 refuses code that was compiled with other flags of its own. */
function kindOf(): "flags" | "gateway" | "ask" | "screen" | "command" {
  if (process.execArgv.length > 0) return "flags";
  if (isGateway()) return "gateway";
  if (argv.some((word) => /^-[zq]/.test(word))) return "ask";
  const [first = "chat"] = argv;
  return first === "chat" || first.startsWith("-") ? "screen" : "command";
}
