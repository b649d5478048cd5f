// What an exit code means when it is not a failure, and one line of help when it is.
import type { Command } from "../safety/shell/ast.ts";
import { plainText } from "../safety/shell/command.ts";
import { parseCommandLine } from "../safety/shell/parse.ts";

const NO_MATCH = { 1: "No match found (not an error)" };
const DIFFERENT = { 1: "The files differ (not an error)" };
const FALSE = { 1: "The condition is false (not an error)" };

const MEANINGS: Readonly<Record<string, Readonly<Record<number, string>>>> = {
  ...Object.fromEntries(["grep", "egrep", "fgrep", "rg", "ag", "ack"].map((name) => [name, NO_MATCH])),
  diff: DIFFERENT,
  colordiff: DIFFERENT,
  find: { 1: "Some paths could not be read; the rest of the result holds" },
  test: FALSE,
  "[": FALSE,
  git: { 1: "Often means that there are differences (not an error)" },
  curl: {
    6: "The host name could not be resolved",
    7: "The connection was refused",
    22: "The server answered with an HTTP error",
    28: "The request timed out",
  },
};

/** Judged by the last command of the line. Null for success and for codes that mean a real failure. */
export function exitCodeMeaning(command: string, exitCode: number): string | null {
  if (exitCode === 0) return null;
  const program = lastProgram(command);
  return (program && MEANINGS[program]?.[exitCode]) || null;
}

const HINTS: readonly [matches: (exitCode: number, output: string) => boolean, hint: string][] = [
  [(code) => code === 124, "It ran out of time: give it a longer timeout, or background=true"],
  [(code) => code === 137, "It was killed, most likely for using too much memory"],
  [
    (code, output) => code === 127 || /command not found/.test(output),
    "Command not found: check the spelling, its package and PATH",
  ],
  [
    (_, output) => /ModuleNotFoundError|No module named|Cannot find module|ERR_MODULE_NOT_FOUND/.test(output),
    "A module is missing: install it, or use the environment that has it",
  ],
  [(_, output) => /permission denied/i.test(output), "Permission denied: check owner and mode of the path"],
  [(code) => code === 126, "It was found but could not be run, or its directory could not be entered"],
];

export function failureHint(exitCode: number, output: string): string | null {
  if (exitCode === 0) return null;
  return HINTS.find(([matches]) => matches(exitCode, output))?.[1] ?? null;
}

function lastProgram(command: string): string | null {
  let last: Command | undefined = parseCommandLine(command).script.pipelines.at(-1)?.commands.at(-1);
  while (last?.type === "group") last = last.bodies.at(-1)?.pipelines.at(-1)?.commands.at(-1);
  const word = last?.words[0];
  const text = word ? plainText(word) : null;
  return text?.slice(text.lastIndexOf("/") + 1) ?? null;
}
