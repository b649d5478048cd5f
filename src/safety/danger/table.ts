// The categories that are asked about, in the order in which they win.
import type { RuleGroup, Scene } from "../scene.ts";
import { added } from "./added.ts";
import { chmodRun } from "./chmod-run.ts";
import { inlineCode } from "./code.ts";
import { containers } from "./containers.ts";
import { decodedCode } from "./decoded-code.ts";
import { deletion } from "./delete.ts";
import { disk } from "./disk.ts";
import { copiesAndEdits } from "./files.ts";
import { git } from "./git.ts";
import { massDelete } from "./mass-delete.ts";
import { ownGuards } from "./own.ts";
import { ownProcess } from "./own-process.ts";
import { permissions } from "./permissions.ts";
import { remoteCode } from "./remote-code.ts";
import { sensitiveWrites } from "./sensitive-writes.ts";
import { sql } from "./sql.ts";
import { sudo } from "./sudo.ts";
import { system } from "./system.ts";
import { windows } from "./windows.ts";

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

const RULES = GROUPS.flatMap((group) => group.rules.map((rule) => ({ rule, reason: group.reason, group })));

/** Rules on which file is meant: a relative name counts by where the command begins. */
const PLACED: ReadonlySet<RuleGroup> = new Set([sensitiveWrites, copiesAndEdits, ownGuards]);

export const DANGER_KEYS: readonly string[] = RULES.map(({ rule }) => rule.key);

export function findDanger(scene: Scene): Danger | null {
  const rank = RULES.findIndex(({ rule }) => rule.matches(scene));
  return dangerAt(rank);
}

/** The same for a line that was read with the directory it begins in. */
export function findPlacedDanger(scene: Scene): Danger | null {
  return dangerAt(RULES.findIndex(({ rule, group }) => PLACED.has(group) && rule.matches(scene)));
}

function dangerAt(rank: number): Danger | null {
  const found = RULES[rank];
  return found ? { key: found.rule.key, reason: found.reason, rank } : null;
}
