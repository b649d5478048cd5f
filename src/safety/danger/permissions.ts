import type { Invocation } from "../analysis/invocation.ts";
import { hasLetter, hasLong } from "../analysis/options.ts";
import { optionsOf, programRule, type RuleGroup } from "../scene.ts";

/** Others may write: an octal whose last digit holds 2, or a clause that gives `w` to o or a. */
function opensToOthers(mode: string): boolean {
  if (/^[0-7]{1,5}$/.test(mode)) return (Number.parseInt(mode.at(-1) ?? "0", 8) & 2) !== 0;
  return mode.split(",").some((clause) => /^[ug]*[oa][ugoa]*(?:[-+=][rwxXst]*)*[+=][rwxXst]*w/.test(clause));
}

const isOpen = (invocation: Invocation) => {
  const options = optionsOf(invocation);
  return opensToOthers(options.operands[0] ?? "");
};

function makesRootOwner(invocation: Invocation): boolean {
  return /^(?:root|\+?0)(?:[:.]|$)/.test(optionsOf(invocation, { long: ["from"] }).operands[0] ?? "");
}

export const permissions: RuleGroup = {
  reason: "opens files to everybody or changes their owner",
  rules: [
    programRule(
      "world/other-writable permissions",
      ["chmod"],
      (invocation) => isOpen(invocation) && !hasLong(optionsOf(invocation), "recursive", 3),
    ),
    programRule("recursive world/other-writable (long flag)", ["chmod"], isOpen),
    programRule(
      "recursive chown to root",
      ["chown"],
      (invocation) => makesRootOwner(invocation) && hasLetter(optionsOf(invocation), "R"),
    ),
    programRule(
      "recursive chown to root (long flag)",
      ["chown"],
      (invocation) => makesRootOwner(invocation) && hasLong(optionsOf(invocation), "recursive", 3),
    ),
  ],
};
