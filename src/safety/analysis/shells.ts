import { argTexts, type Invocation } from "./invocation.ts";
import { hasLetter, hasLong, type Options, readOptions } from "./options.ts";

const SHELLS = new Set([
  "sh",
  "bash",
  "zsh",
  "dash",
  "ksh",
  "ksh93",
  "mksh",
  "pdksh",
  "ash",
  "fish",
  "csh",
  "tcsh",
  "rbash",
]);

export const isShell = (program: string) => SHELLS.has(program);

export function shellOptions(invocation: Invocation): Options {
  const args = argTexts(invocation).map((text) => (text.startsWith("+") ? `-${text.slice(1)}` : text));
  return readOptions(args, {
    short: "oO",
    long: ["rcfile", "init-file", "init-command", "command"],
    stopAtOperand: true,
  });
}

/** The text behind `-c`; null when the shell is not given one. */
export function shellPayload(invocation: Invocation): string | null {
  const options = shellOptions(invocation);
  const long = options.values.find(({ name }) => name === "command" || name === "init-command");
  if (long) return long.value;
  return hasLetter(options, "c") ? (options.operands[0] ?? "") : null;
}

/** A shell that takes its commands from its input. */
export function readsCommandsFromInput(invocation: Invocation): boolean {
  if (invocation.program === "at" || invocation.program === "batch") return true;
  if (!isShell(invocation.program)) return false;
  const options = shellOptions(invocation);
  if (hasLetter(options, "c") || hasLong(options, "command")) return false;
  const [script] = options.operands;
  return script === undefined || script === "-" || script === "/dev/stdin" || hasLetter(options, "s");
}
