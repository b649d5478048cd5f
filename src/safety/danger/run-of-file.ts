import { argTexts, type Invocation } from "../analysis/invocation.ts";
import { readOptions } from "../analysis/options.ts";
import { isShell } from "../analysis/shells.ts";
import type { Scene } from "../scene.ts";
import { isInterpreter } from "./code-sources.ts";

const plain = (path: string) => path.replace(/^(?:\.\/+)+/, "");

/** True when some command runs a file that an earlier one of the same script prepared. */
export function runsPreparedFile(scene: Scene, preparedBy: (invocation: Invocation) => readonly string[]): boolean {
  return scene.sequences.some((sequence) => {
    const prepared = new Set<string>();
    return sequence.some((invocation) => {
      if (prepared.size > 0 && runsOneOf(invocation, prepared)) return true;
      for (const file of preparedBy(invocation)) prepared.add(plain(file));
      return false;
    });
  });
}

/** By its path, through an interpreter, or by sourcing it. */
function runsOneOf(invocation: Invocation, files: ReadonlySet<string>): boolean {
  if (invocation.path.includes("/") && files.has(plain(invocation.path))) return true;
  const { program } = invocation;
  if (!isShell(program) && !isInterpreter(program) && program !== "source" && program !== ".") return false;
  const fed = invocation.redirects.filter(({ operator }) => operator === "<").map(({ target }) => target);
  const [script] = readOptions(argTexts(invocation), { short: "oO", stopAtOperand: true }).operands;
  return [script, ...fed].some((file) => file !== undefined && files.has(plain(file)));
}
