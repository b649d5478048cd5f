import { argTexts } from "../analysis/invocation.ts";
import { programRule, type RuleGroup } from "../scene.ts";

/** Tests of find that own the next word. */
const FIND_VALUES =
  /^-(?:i?name|i?path|i?wholename|i?regex|i?lname|type|newer.*|size|user|group|perm|[acm](?:time|min)|maxdepth|mindepth|printf)$/;

const REMOVERS = ["rm", "unlink", "shred"];

export const massDelete: RuleGroup = {
  reason: "removes every file a search finds",
  rules: [
    programRule("xargs with rm", REMOVERS, ({ via }) =>
      via.some(({ program }) => program === "xargs" || program === "parallel"),
    ),
    programRule("find -exec/-execdir rm", REMOVERS, ({ via }) =>
      via.some(({ program }) => /^(?:find|fd|fdfind)$/.test(program)),
    ),
    programRule("find -delete", ["find"], (invocation) =>
      argTexts(invocation).some((arg, index, args) => arg === "-delete" && !FIND_VALUES.test(args[index - 1] ?? "")),
    ),
  ],
};
