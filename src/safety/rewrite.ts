// Changes to a command line before it runs. Each is done on the parsed line and leaves every other byte alone.
import { type ClearedCommand, clearCommand } from "./decision.ts";
import type { Pipeline, Script, SimpleCommand, Word, WordPart } from "./shell/ast.ts";
import { parseCommandLine, plainText } from "./shell/parse.ts";

interface Edit {
  readonly at: number;
  readonly text: string;
}

/**
 * `A && B &` -> `A && { B & }`. Bash would fork a subshell for the whole list, and that subshell keeps the output pipe open until
 * the background part ends. Only lists that are not inside brackets are changed.
 */
export function rewriteCompoundBackground(command: string): string {
  const { script, ok } = parseCommandLine(command);
  if (!ok) return command;
  const edits: Edit[] = [];
  script.pipelines.forEach((pipeline, index) => {
    const before = script.pipelines[index - 1]?.joiner;
    if (pipeline.joiner !== "&" || (before !== "&&" && before !== "||")) return;
    edits.push({ at: commandStart(pipeline), text: "{ " });
    const behind = pipeline.joinerStart + 1;
    const follows = /^[ \t]*[^\s#]/.test(command.slice(behind, behind + 200));
    edits.push({ at: behind, text: follows ? " };" : " }" });
  });
  return apply(command, edits);
}

/** The same for a command that may run. */
export function freeBackground({ text, outside }: ClearedCommand): ClearedCommand {
  return clearCommand(rewriteCompoundBackground(text), { outside });
}

const commandStart = (pipeline: Pipeline) => pipeline.commands[0]?.start ?? pipeline.start;

/**
 * Makes every `sudo` that the shell would run read its password from standard input. `count` = how many there are: one password
 * line for each. Without a password nothing changes.
 */
export function rewriteSudo(
  command: string,
  hasPassword: boolean,
): { readonly command: string; readonly count: number } {
  if (!hasPassword || !command.includes("sudo")) return { command, count: 0 };
  const edits: Edit[] = [];
  visitCommands(parseCommandLine(command).script, (simple) => {
    const word = sudoWord(simple);
    if (word) edits.push({ at: word.end, text: " -S -p ''" });
  });
  return { command: apply(command, edits), count: edits.length };
}

/** The same for a command that may run: as it reads its passwords from standard input. */
export function readSudoPasswords({ text, outside }: ClearedCommand): {
  readonly command: ClearedCommand;
  readonly count: number;
} {
  const { command, count } = rewriteSudo(text, true);
  return { command: clearCommand(command, { outside }), count };
}

const PREFIXES = new Set(["env", "exec", "nohup", "setsid", "time", "command"]);

/** The `sudo` word in command position, also behind `env A=1`, `time` and the like. */
function sudoWord(command: SimpleCommand): Word | null {
  for (const word of command.words) {
    const text = plainText(word);
    if (text === "sudo") return word;
    if (text === null || !(PREFIXES.has(text) || /^(?:-|[A-Za-z_]\w*=)/.test(text))) return null;
  }
  return null;
}

/** Commands of this text alone: what backticks and heredocs hold has offsets of its own. */
function visitCommands(script: Script, visit: (command: SimpleCommand) => void): void {
  for (const pipeline of script.pipelines) {
    for (const command of pipeline.commands) {
      if (command.type === "group") {
        for (const body of command.bodies) visitCommands(body, visit);
        continue;
      }
      visit(command);
      const words = [...command.words, ...command.assignments.map(({ value }) => value)];
      for (const word of words) visitParts(word.parts, visit);
      for (const { target } of command.redirections) visitParts(target.parts, visit);
    }
  }
}

function visitParts(parts: readonly WordPart[], visit: (command: SimpleCommand) => void): void {
  for (const part of parts) {
    if (part.type === "substitution" && part.form !== "`") visitCommands(part.script, visit);
    if (part.type === "variable") visitParts(part.operand, visit);
  }
}

function apply(text: string, edits: readonly Edit[]): string {
  let result = "";
  let from = 0;
  for (const edit of [...edits].sort((left, right) => left.at - right.at)) {
    result += text.slice(from, edit.at) + edit.text;
    from = edit.at;
  }
  return result + text.slice(from);
}
