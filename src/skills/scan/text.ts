// The findings in one text.
import { sliceCodePoints } from "../../kit/code-points.ts";
import { findInvisible, showInvisible } from "../../safety/threats/invisible.ts";
import { EVASION } from "./evasion-patterns.ts";
import type { Severity, SkillPattern } from "./pattern.ts";
import {
  CREDENTIALS,
  DESTRUCTIVE,
  EXECUTION,
  EXFILTRATION,
  MINING,
  NETWORK,
  OBFUSCATION,
  PERSISTENCE,
  PRIVILEGES,
  SUPPLY_CHAIN,
  TRAVERSAL,
} from "./patterns.ts";
import { INJECTION, TALK } from "./text-patterns.ts";

export interface SkillFinding {
  readonly id: string;
  readonly severity: Severity;
  readonly category: string;
  readonly file: string;
  /** From 1; 0 for what is not about a line. */
  readonly line: number;
  /** At most 120 characters. */
  readonly match: string;
}

const PATTERNS: readonly SkillPattern[] = [
  ...EXFILTRATION,
  ...TALK,
  ...INJECTION,
  ...DESTRUCTIVE,
  ...PERSISTENCE,
  ...NETWORK,
  ...OBFUSCATION,
  ...EXECUTION,
  ...TRAVERSAL,
  ...MINING,
  ...SUPPLY_CHAIN,
  ...PRIVILEGES,
  ...CREDENTIALS,
  ...EVASION,
];

/** A report nobody reads helps nobody, and every further place costs another pass. */
const PLACES_PER_PATTERN = 20;
const JOINED = "\u2028"; // a line break the shell does not see; white space for patterns, a line for counting

export function scanText(text: string, file: string): readonly SkillFinding[] {
  const plain = text.replaceAll("\r\n", "\n").replaceAll(JOINED, " ");
  const folded = plain
    .replaceAll("\\\n", JOINED)
    .normalize("NFKC")
    .replace(/[A-Z]+/g, (capitals) => capitals.toLowerCase());
  const found = PATTERNS.flatMap((pattern) => placesOf(pattern, folded, file));
  const written = new Set(found.filter(({ id }) => /^(agent|hermes)_config_mod$/.test(id)).map(({ line }) => line));
  return [
    ...found.filter(({ id, line }) => id !== "agent_config_mention" || !written.has(line)),
    ...invisible(plain, file),
  ];
}

/** Each line at most once. */
function placesOf({ id, severity, category, find }: SkillPattern, text: string, file: string): SkillFinding[] {
  const found: SkillFinding[] = [];
  let offset = 0;
  let line = 1;
  while (found.length < PLACES_PER_PATTERN && offset < text.length) {
    const rest = offset === 0 ? text : text.slice(offset);
    const place = find(rest);
    if (!place) break;
    line += countBreaks(rest, place.index);
    const match = sliceCodePoints(showInvisible(rest.slice(place.index, place.end).replace(/\s+/g, " ")), 0, 120);
    found.push({ id, severity, category, file, line, match });
    const newline = rest.indexOf("\n", Math.max(place.index, place.end - 1));
    if (newline === -1) break;
    line += countBreaks(rest.slice(place.index), newline + 1 - place.index);
    offset += newline + 1;
  }
  return found;
}

function countBreaks(text: string, end: number): number {
  let count = 0;
  for (let at = 0; at < end; at++) {
    const char = text.charCodeAt(at);
    if (char === 0x0a || char === 0x2028) count++;
  }
  return count;
}

function invisible(text: string, file: string): SkillFinding[] {
  const found: SkillFinding[] = [];
  if (findInvisible(text.startsWith("\ufeff") ? text.slice(1) : text).length === 0) return found;
  text.split("\n").forEach((line, index) => {
    const first = findInvisible(index === 0 && line.startsWith("\ufeff") ? line.slice(1) : line)[0];
    if (!first || found.length >= PLACES_PER_PATTERN) return;
    const match = sliceCodePoints(showInvisible(line.slice(Math.max(0, first.index - 20), first.index + 60)), 0, 120);
    found.push({ id: "invisible_unicode", severity: "high", category: "injection", file, line: index + 1, match });
  });
  return found;
}
