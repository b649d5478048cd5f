// The one corner of sed that leaves sed: `e command`, and `s/a/b/e` that runs what the replacement made.
import { type Options, readOptions } from "./options.ts";

export const readSedOptions = (args: readonly string[]): Options =>
  readOptions(args, { short: "efl", long: ["expression", "file", "line-length"] });

/** The scripts written on a sed command line. */
export function sedScripts(args: readonly string[]): readonly string[] {
  const { values, operands } = readSedOptions(args);
  const named = values.filter(({ name }) => name === "e" || "expression".startsWith(name)).map(({ value }) => value);
  // BSD's `-i ''` leaves an empty word in front of the script.
  return named.length > 0 ? named : operands.filter((operand) => operand !== "").slice(0, 1);
}

const FLAGS = /[a-zA-Z0-9]*/y;

/** What a sed script would hand to a shell, as far as the script tells. */
export function sedRuns(script: string): readonly string[] {
  const found: string[] = [];
  let at = 0;
  const take = (pattern: RegExp) => {
    pattern.lastIndex = at;
    const text = pattern.exec(script)?.[0] ?? "";
    at += text.length;
    return text;
  };
  while (at < script.length) {
    take(/[\s;{}!,+~$0-9]+/y);
    if (script[at] === "/" || script[at] === "\\") {
      // An address: `/re/`, or `\cREc` with any other sign for c.
      if (script[at] === "\\") at++;
      readPart();
      at++;
      take(/[IM]*/y);
      continue;
    }
    const command = script[at++];
    if (command === "s" || command === "y") {
      const [, replacement = ""] = [readPart(), readPart()];
      at++;
      if (command === "s" && take(FLAGS).includes("e")) found.push(replacement.replace(/\\(.)/g, "$1"));
    } else if (command === "e") found.push(take(/[^\n]*/y).trim());
    else if (command !== undefined && "aicrRwW#".includes(command)) take(/(?:[^\\\n]|\\[\s\S])*/y);
    else if (command !== undefined && ":btT".includes(command)) take(/[^;\n]*/y);
  }
  return found;

  /** From the delimiter under or before the cursor to the next one. */
  function readPart(): string {
    const delimiter = script[at] ?? "";
    let text = "";
    for (at++; at < script.length && script[at] !== delimiter; at++) {
      if (script[at] === "\\") text += script[at++];
      text += script[at] ?? "";
    }
    return text;
  }
}
