import type { Invocation } from "../analysis/invocation.ts";
import { optionsOf, pathOf, type Rule, type RuleGroup, type Scene, writtenFiles } from "../scene.ts";
import { isProjectSetting, isSystemFile } from "../sensitive-targets.ts";

const teeFiles = (invocation: Invocation) => (invocation.program === "tee" ? optionsOf(invocation).operands : []);

function writeRule(
  key: string,
  files: (invocation: Invocation) => readonly string[],
  isTarget: (path: string) => boolean,
): Rule {
  const hits = (invocation: Invocation, scene: Scene) =>
    files(invocation).some((file) => isTarget(pathOf(file, invocation, scene)));
  return { key, matches: (scene) => scene.invocations.some((invocation) => hits(invocation, scene)) };
}

export const sensitiveWrites: RuleGroup = {
  reason: "writes to a file that holds settings or secrets",
  rules: [
    writeRule("overwrite system file via tee", teeFiles, isSystemFile),
    writeRule("overwrite system file via redirection", writtenFiles, isSystemFile),
    writeRule("overwrite project env/config via tee", teeFiles, isProjectSetting),
    writeRule("overwrite project env/config via redirection", writtenFiles, isProjectSetting),
  ],
};
