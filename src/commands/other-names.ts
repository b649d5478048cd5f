// Names that people know from other agents, and what they are called here.

import type { CommandContext } from "./context.ts";

/**
 * What a name means: another command, which is run with what was typed behind it; a sentence about where to find it; or a message that
 * does the same, which is put into the input.
 */
type OtherName = { readonly runs: string } | { readonly says: string } | { readonly offers: string };

const OTHER_NAMES: Readonly<Record<string, OtherName>> = {
  // They show something, or open a list that can be left: run at once.
  cost: { runs: "usage" },
  stats: { runs: "usage" },
  models: { runs: "model" },
  effort: { runs: "reasoning" },
  thinking: { runs: "reasoning" },
  themes: { runs: "skin" },
  continue: { runs: "resume" },
  rewind: { runs: "fork" },
  checkpoints: { runs: "rollback" },
  editor: { runs: "prompt" },
  export: { runs: "save" },
  share: { runs: "save" },
  name: { runs: "title" },
  rename: { runs: "title" },
  permissions: { runs: "mode" },
  statusline: { runs: "statusbar" },
  "output-style": { runs: "personality" },
  about: { runs: "version" },
  changelog: { runs: "version" },
  "release-notes": { runs: "version" },
  init: {
    offers:
      "Look at this project and write an AGENTS.md for it: what it is, how to build, run and test it, where things are, and its conventions. Keep it short.",
  },
  review: { offers: "Review the uncommitted changes of this project: mistakes first, then what could be simpler." },
  login: { runs: "setup" },
  connect: { runs: "setup" },
  // They happen in the shell.
  doctor: { says: "Run it in a shell: hermes doctor" },
  logout: { says: "Remove a key in a shell: hermes logout" },
  update: { says: "Run it in a shell: hermes update" },
  upgrade: { says: "Run it in a shell: hermes update" },
  hooks: { says: "Hooks are managed in a shell: hermes hooks" },
  bug: { says: "hermes dump prints what a report needs." },
  "add-dir": {
    says: "Other folders need no permission here; a sandbox or a folder you do not trust asks first: hermes trust",
  },
  redo: { says: "There is no redo. /fork continues in a copy, so both versions stay." },
  vim: { says: "There is no vim mode. Ctrl+G opens the message in $EDITOR." },
};

/**
 * The command of ours that a name of another agent stands for, which the caller runs; `answered` when it was answered here; null for a
 * name nobody uses. A name that leads to a command this surface does not have is such a name.
 */
export function otherName(
  { name, args }: { readonly name: string; readonly args: string },
  ctx: Pick<CommandContext, "say" | "warn" | "offerInput">,
  isCommand: (name: string) => boolean,
): { readonly runs: string } | "answered" | null {
  const key = name.toLowerCase();
  const found = Object.hasOwn(OTHER_NAMES, key) ? OTHER_NAMES[key] : undefined;
  if (!found || ("runs" in found && !isCommand(found.runs))) return null;
  if ("says" in found) {
    ctx.warn(`/${name} is not a command here. ${found.says}`);
    return "answered";
  }
  if ("offers" in found) {
    ctx.offerInput(`${found.offers} ${args}`.trim());
    ctx.say(`/${name} is a message here; it is in the input.`);
    return "answered";
  }
  ctx.say(`/${name} is /${found.runs} here.`);
  return found;
}
