// The categories that are asked about, in the order in which they win.

import { argTexts, hasLetter, hasLong, type Invocation, readOptions } from "../analysis/invocation.ts";
import { optionsOf, programRule, type RuleGroup, type Scene } from "../scene.ts";
import { chmodRun, decodedCode, inlineCode, isReverseShell, remoteCode, runsDownloadedFile } from "./code.ts";
import { copiesAndEdits, deletion, disk, massDelete, permissions, sensitiveWrites } from "./files.ts";
import { ownGuards, ownProcess } from "./own.ts";
import { containers, git, gitCommand, sql, sudo, system, windows } from "./system.ts";

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

const added: RuleGroup = {
  reason: "opens a way in, or throws away protection or work",
  rules: [
    { key: "reverse shell", matches: isReverseShell },
    programRule("remove scheduled jobs", ["crontab", "atrm", "at", "schtasks"], removesJobs),
    { key: "flush firewall rules", matches: (scene) => scene.invocations.some(flushesFirewall) },
    { key: "discard uncommitted work", matches: (scene) => scene.invocations.some(discardsWork) },
    { key: "downloaded file executed", matches: runsDownloadedFile },
  ],
};

const GROUPS: readonly RuleGroup[] = [
  deletion,
  windows,
  permissions,
  disk,
  sql,
  system,
  remoteCode,
  decodedCode,
  sensitiveWrites,
  copiesAndEdits,
  massDelete,
  ownProcess,
  ownGuards,
  containers,
  inlineCode,
  git,
  chmodRun,
  sudo,
  added,
];

export interface Danger {
  readonly key: string;
  readonly reason: string;
  /** Place in the table; the lowest wins. */
  readonly rank: number;
}

export const RULES = GROUPS.flatMap((group) => group.rules.map((rule) => ({ rule, reason: group.reason, group })));

/** Rules on which file is meant: a relative name counts by where the command begins. */
const BY_PATH: ReadonlySet<RuleGroup> = new Set([sensitiveWrites, copiesAndEdits, ownGuards]);

export function findDanger(scene: Scene): Danger | null {
  const rank = RULES.findIndex(({ rule }) => rule.matches(scene));
  return dangerAt(rank);
}

/** The same for a line that was read with the directory it begins in. */
export function findPathDanger(scene: Scene): Danger | null {
  return dangerAt(RULES.findIndex(({ rule, group }) => BY_PATH.has(group) && rule.matches(scene)));
}

function dangerAt(rank: number): Danger | null {
  const found = RULES[rank];
  return found ? { key: found.rule.key, reason: found.reason, rank } : null;
}
