// One row of what the scan looks for. Sources are written for folded text: lower case, compatibility forms undone.
import type { Find } from "../../safety/threats/matchers.ts";
import { THREAT_PATTERNS } from "../../safety/threats/patterns.ts";

export type Severity = "critical" | "high" | "medium" | "low";

export interface SkillPattern {
  readonly id: string;
  readonly severity: Severity;
  readonly category: string;
  readonly find: Find;
}

type Row = readonly [id: string, severity: Severity, find: Find];

export function rows(category: string, ...given: readonly Row[]): readonly SkillPattern[] {
  return given.map(([id, severity, find]) => ({ id, severity, category, find }));
}

/** A pattern the prompt's scan has too, by its name there. */
export function shared(id: string): Find {
  const pattern = THREAT_PATTERNS.find((one) => one.id === id);
  if (!pattern) throw new Error(`no threat pattern is called ${id}`);
  return pattern.find;
}

// Only ASCII letters, digits and underscores make a word longer.
export const START = "(?<![a-z0-9_])";
export const END = "(?![a-z0-9_])";
/** A command's own name, not the tail of another one's. */
export const COMMAND = "(?<![a-z0-9_.-])";
export const SECRET = "(?:key|token|secret|password)";
