import type { Command, Group, Script } from "../shell/ast.ts";
import { plainText } from "../shell/command.ts";

/** A function that calls itself at least twice with something in the background: `f() { f | f & }`. */
export function isForkBomb(group: Group): boolean {
  if (group.kind !== "function" || group.name === "") return false;
  const seen = { calls: 0, background: false };
  for (const body of group.bodies) visit(body, group.name, seen);
  return seen.calls >= 2 && seen.background;
}

function visit(script: Script, name: string, seen: { calls: number; background: boolean }): void {
  for (const pipeline of script.pipelines) {
    if (pipeline.joiner === "&") seen.background = true;
    for (const command of pipeline.commands) {
      if (command.type === "group") for (const body of command.bodies) visit(body, name, seen);
      else if (firstWord(command) === name) seen.calls++;
    }
  }
}

function firstWord(command: Extract<Command, { type: "simple" }>): string | null {
  const [word] = command.words;
  return word ? plainText(word) : null;
}
