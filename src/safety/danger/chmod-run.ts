import type { Invocation } from "../analysis/invocation.ts";
import { optionsOf, type RuleGroup, type Scene } from "../scene.ts";
import { runsPreparedFile } from "./run-of-file.ts";

/** The files a command makes executable. */
function madeExecutable(invocation: Invocation): readonly string[] {
  if (invocation.program !== "chmod") return [];
  const [mode = "", ...files] = optionsOf(invocation).operands;
  const executable = /[+=][rwXst]*x/.test(mode) || /^[0-7]*[1357][0-7]{0,2}$/.test(mode);
  return executable ? files : [];
}

/** `chmod +x dist/* && ./dist/run`: which file it is may not be written out. */
function runsLocalFileAfter(scene: Scene): boolean {
  return scene.sequences.some((sequence) => {
    const from = sequence.findIndex((invocation) => madeExecutable(invocation).length > 0);
    return from >= 0 && sequence.slice(from + 1).some(({ path }) => path.startsWith("./"));
  });
}

export const chmodRun: RuleGroup = {
  reason: "makes a file executable and runs it at once",
  rules: [
    {
      key: "chmod +x followed by immediate execution",
      matches: (scene) => runsPreparedFile(scene, madeExecutable) || runsLocalFileAfter(scene),
    },
  ],
};
