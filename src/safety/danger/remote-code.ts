import type { RuleGroup } from "../scene.ts";
import { executedSubstitutions, isDownload, isPipedToShell } from "./code-sources.ts";

export const remoteCode: RuleGroup = {
  reason: "runs code straight from the network",
  rules: [
    { key: "pipe remote content to shell", matches: (scene) => isPipedToShell(scene, isDownload) },
    {
      key: "execute remote script via process substitution",
      matches: (scene) =>
        executedSubstitutions(scene).some(({ form, invocations }) => form === "<(" && invocations.some(isDownload)),
    },
    {
      key: "execute remote content via command substitution",
      matches: (scene) =>
        executedSubstitutions(scene).some(
          ({ form, invocations }) => (form === "$(" || form === "`") && invocations.some(isDownload),
        ),
    },
  ],
};
