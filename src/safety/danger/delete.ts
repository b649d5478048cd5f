import { hasLetter, hasLong, type Options } from "../analysis/options.ts";
import { optionsOf, pathOf, programRule, type RuleGroup } from "../scene.ts";

const early = (options: Options) => ({
  letters: options.letters.slice(0, options.letters.length - options.late.letters.length),
  longs: options.longs.slice(0, options.longs.length - options.late.longs.length),
});

export const deletion: RuleGroup = {
  reason: "removes files for good",
  rules: [
    programRule("delete in root path", ["rm", "unlink", "shred"], (invocation, scene) =>
      optionsOf(invocation).operands.some((operand) => pathOf(operand, invocation, scene).startsWith("/")),
    ),
    programRule("recursive delete", ["rm"], (invocation) => {
      const { letters } = early(optionsOf(invocation));
      return letters.includes("r") || letters.includes("R");
    }),
    programRule("recursive delete (long flag)", ["rm"], (invocation) => hasLong(optionsOf(invocation), "recursive", 3)),
    programRule("recursive delete (flags after operands)", ["rm"], (invocation) =>
      hasLetter(optionsOf(invocation), "r", "R"),
    ),
  ],
};
