import { argTexts, type Invocation } from "../analysis/invocation.ts";
import { readOptions } from "../analysis/options.ts";

/** The verb of a git command and what follows it, options of git itself skipped. */
export function gitCommand(invocation: Invocation): { readonly verb: string; readonly args: readonly string[] } | null {
  if (invocation.program !== "git") return null;
  const options = readOptions(argTexts(invocation), {
    short: "Cc",
    long: ["git-dir", "work-tree", "namespace", "super-prefix", "config-env"],
    stopAtOperand: true,
  });
  return { verb: options.operands[0] ?? "", args: options.operands.slice(1) };
}
