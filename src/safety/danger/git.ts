import { hasLetter, hasLong, type Options, readOptions } from "../analysis/options.ts";
import type { Rule, RuleGroup } from "../scene.ts";
import { gitCommand } from "./git-command.ts";

function gitRule(key: string, verb: string, test: (options: Options) => boolean): Rule {
  return {
    key,
    matches: (scene) =>
      scene.invocations.some((invocation) => {
        const command = gitCommand(invocation);
        if (command?.verb !== verb) return false;
        return test(
          readOptions(command.args, {
            short: VALUED[verb] ?? "",
            long: ["repo", "receive-pack", "push-option", "exclude", "pathspec-from-file"],
          }),
        );
      }),
  };
}

const VALUED: Readonly<Record<string, string>> = { push: "o", clean: "e", branch: "u" };

const longDelete = (options: Options) => options.longs.findIndex((name) => isAbbreviation(name, "delete", 3));
const longForce = (options: Options) => options.longs.findIndex((name) => isAbbreviation(name, "force", 4));
const isAbbreviation = (given: string, name: string, least: number) => given.length >= least && name.startsWith(given);

export const git: RuleGroup = {
  reason: "rewrites history or removes work that git does not keep",
  rules: [
    gitRule("git reset --hard (destroys uncommitted changes)", "reset", (options) => hasLong(options, "hard", 1)),
    gitRule("git force push (rewrites remote history)", "push", (options) => {
      const long = options.longs.some((name) => /^(?:forc|force)(?:$|-)/.test(name) || name === "mirror");
      return long || options.operands.slice(1).some((refspec) => refspec.startsWith("+"));
    }),
    gitRule("git force push short flag (rewrites remote history)", "push", (options) => hasLetter(options, "f")),
    gitRule("git clean with force (deletes untracked files)", "clean", (options) => {
      const forced = hasLetter(options, "f") || hasLong(options, "force", 1);
      return forced && !hasLetter(options, "n") && !hasLong(options, "dry-run", 1);
    }),
    gitRule("git branch force delete", "branch", (options) => {
      if (hasLetter(options, "D")) return true;
      const deletes = hasLetter(options, "d") || longDelete(options) >= 0;
      const forces = hasLetter(options, "f") || longForce(options) >= 0;
      const bothLong = longDelete(options) >= 0 && longForce(options) >= 0;
      return deletes && forces && !bothLong;
    }),
    gitRule("git branch force delete (long flags)", "branch", (options) => {
      const [deletes, forces] = [longDelete(options), longForce(options)];
      return deletes >= 0 && forces > deletes;
    }),
    gitRule("git branch force delete (long flags, force-first)", "branch", (options) => {
      const [deletes, forces] = [longDelete(options), longForce(options)];
      return forces >= 0 && deletes > forces;
    }),
  ],
};
