import { analyseCommand } from "./analysis/analyse.ts";
import { argTexts, type Invocation } from "./analysis/invocation.ts";
import { hasLetter, hasLong, readOptions } from "./analysis/options.ts";

const DESTROYERS = new Set(["rm", "rmdir", "cp", "install", "mv", "truncate", "dd", "shred"]);
const GIT_VERBS = new Set(["reset", "clean", "checkout"]);

/** True when the command may overwrite or remove files, so that a checkpoint is taken first. */
export function isDestructiveCommand(command: string): boolean {
  return analyseCommand(command).invocations.some(
    (invocation) => !invocation.remote && (overwrites(invocation) || destroys(invocation)),
  );
}

function destroys(invocation: Invocation): boolean {
  const { program } = invocation;
  const args = argTexts(invocation);
  if (DESTROYERS.has(program)) return true;
  if (program === "sed") {
    const options = readOptions(args, { short: "efl", long: ["expression", "file"] });
    return hasLetter(options, "i") || hasLong(options, "in-place", 2);
  }
  if (program === "find") return args.includes("-delete");
  if (program !== "git") return false;
  const { operands } = readOptions(args, { short: "Cc", long: ["git-dir", "work-tree"], stopAtOperand: true });
  return GIT_VERBS.has(operands[0] ?? "");
}

const HARMLESS = /^(?:\/dev\/(?:null|stdout|stderr|tty|fd\/[0-9]+)|-|[0-9]+)$/;

function overwrites({ redirects }: Invocation): boolean {
  return redirects.some(({ operator, target }) => /^(?:>|>\||&>|>&)$/.test(operator) && !HARMLESS.test(target));
}
