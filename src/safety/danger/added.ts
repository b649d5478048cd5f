import { argTexts, type Invocation } from "../analysis/invocation.ts";
import { hasLetter, hasLong, readOptions } from "../analysis/options.ts";
import { optionsOf, programRule, type RuleGroup } from "../scene.ts";
import { runsDownloadedFile } from "./downloaded-file.ts";
import { gitCommand } from "./git-command.ts";
import { isReverseShell } from "./reverse-shell.ts";

function removesJobs(invocation: Invocation): boolean {
  if (invocation.program === "atrm") return invocation.args.length > 0;
  if (invocation.program === "schtasks") return argTexts(invocation).some((arg) => /^\/{1,2}delete$/i.test(arg));
  const options = optionsOf(invocation, { short: "u" });
  if (invocation.program === "at") return hasLetter(options, "d", "r");
  // `crontab file` and `crontab -` put a new table in the place of the old one.
  return hasLetter(options, "r") || options.operands.length > 0;
}

function flushesFirewall(invocation: Invocation): boolean {
  const { program } = invocation;
  const options = optionsOf(invocation, { short: "t", long: ["table"] });
  if (/^ip6?tables(?:-(?:nft|legacy))?$/.test(program)) {
    return hasLetter(options, "F", "X") || hasLong(options, "flush") || hasLong(options, "delete-chain");
  }
  if (program === "nft") return options.operands[0] === "flush";
  if (program === "ufw") return options.operands.some((word) => word === "disable" || word === "reset");
  return program === "pfctl" && hasLetter(options, "F", "d");
}

function discardsWork(invocation: Invocation): boolean {
  const command = gitCommand(invocation);
  if (!command) return false;
  const options = readOptions(command.args, { short: "bBs", long: ["source", "orphan", "conflict"] });
  const { operands } = options;
  if (command.verb === "stash") return operands[0] === "drop" || operands[0] === "clear";
  if (command.verb === "checkout") {
    const dashes = command.args.indexOf("--");
    const paths = dashes >= 0 && dashes < command.args.length - 1;
    return paths || operands.includes(".") || hasLetter(options, "f") || hasLong(options, "force", 1);
  }
  if (command.verb === "restore") {
    const staged = hasLetter(options, "S") || hasLong(options, "staged", 2);
    return operands.length > 0 && (!staged || hasLetter(options, "W") || hasLong(options, "worktree", 1));
  }
  return (
    command.verb === "switch" &&
    (hasLetter(options, "f") || hasLong(options, "force", 1) || hasLong(options, "discard-changes", 2))
  );
}

export const added: RuleGroup = {
  reason: "opens a way in, or throws away protection or work",
  rules: [
    { key: "reverse shell", matches: isReverseShell },
    programRule("remove scheduled jobs", ["crontab", "atrm", "at", "schtasks"], removesJobs),
    { key: "flush firewall rules", matches: (scene) => scene.invocations.some(flushesFirewall) },
    { key: "discard uncommitted work", matches: (scene) => scene.invocations.some(discardsWork) },
    { key: "downloaded file executed", matches: runsDownloadedFile },
  ],
};
