// Looks for threats in text that is to reach a model: orders in disguise, ways out for secrets, characters nobody sees.
import { countCodePoints, sliceCodePoints } from "../../kit/code-points.ts";
import { bareText } from "./bare.ts";
import { codePointName, findInvisible, showInvisible } from "./invisible.ts";
import { anyOf, type Find, type Place } from "./matchers.ts";
import { THREAT_PATTERNS, type ThreatScope } from "./patterns.ts";
import { originalIndex } from "./positions.ts";

export type { ThreatScope };

export interface Finding {
  readonly id: string;
  /** From 1. */
  readonly line: number;
  /** From 1, in code points. */
  readonly column: number;
  /** At most 80 code points, on one line, nothing invisible in it. */
  readonly excerpt: string;
  readonly weight: "strong" | "weak";
}

/**
 * Every kind of threat in the whole text, each id once with its first place: invisible characters ascending, then the order of the
 * table. Same text and scope, same findings: the ids end up in prompts.
 */
export function scanForThreats(text: string, scope: ThreatScope): readonly Finding[] {
  const rank = RANK.get(scope);
  if (rank === undefined) throw new Error(`unknown threat scope: ${String(scope)}`);
  const folded = fold(text);
  const bare = bareText(folded);
  return [
    ...findInvisible(text).map(({ codePoint, index }) =>
      finding(`invisible_unicode_${codePointName(codePoint)}`, "strong", text, index, text.slice(index, index + 80)),
    ),
    ...THREAT_PATTERNS.flatMap((pattern) => {
      if ((RANK.get(pattern.scope) ?? 0) > rank) return [];
      const search = searcherOf(pattern, scope);
      const found = (index: number, excerpt: string) =>
        finding(pattern.id, pattern.weight, text, originalIndex(text, index), excerpt);
      const place = hasNeeds(folded, pattern.needs) ? search(folded) : null;
      if (place) return found(place.index, excerptOf(folded, place));
      const hidden = bare && hasNeeds(bare.text, pattern.needs) ? search(bare.text) : null;
      return bare && hidden ? found(bare.originalIndex(hidden.index), excerptOf(bare.text, hidden)) : [];
    }),
  ];
}

/** What to do with a file that others wrote: one weak sign alone is no reason to withhold it. */
export function judgeFindings(findings: readonly Finding[]): "clean" | "flagged" | "blocked" {
  if (findings.length === 0) return "clean";
  const weak = new Set(findings.filter(({ weight }) => weight === "weak").map(({ id }) => id));
  return findings.some(({ weight }) => weight === "strong") || weak.size > 1 ? "blocked" : "flagged";
}

const RANK: ReadonlyMap<string, number> = new Map([
  ["all", 0],
  ["context", 1],
  ["strict", 2],
]);

/** Full-width and other compatibility forms become plain; after that only A to Z have lower-case twins that patterns use. */
function fold(text: string): string {
  return text.normalize("NFKC").replace(/[A-Z]+/g, (capitals) => capitals.toLowerCase());
}

function hasNeeds(folded: string, needs: readonly string[]): boolean {
  return needs.every((words) => words.split("|").some((word) => folded.includes(word)));
}

function searcherOf(pattern: { readonly find: Find; readonly strict?: Find }, scope: ThreatScope): Find {
  return scope === "strict" && pattern.strict ? anyOf(pattern.find, pattern.strict) : pattern.find;
}

function excerptOf(folded: string, { index, end }: Place): string {
  return folded.slice(index, Math.min(end, index + 240));
}

function finding(id: string, weight: Finding["weight"], text: string, index: number, found: string): Finding {
  const lineStart = index === 0 ? 0 : text.lastIndexOf("\n", index - 1) + 1;
  let line = 1;
  for (let at = text.indexOf("\n"); at !== -1 && at < lineStart; at = text.indexOf("\n", at + 1)) line++;
  const column = countCodePoints(text.slice(lineStart, index)) + 1;
  const excerpt = sliceCodePoints(showInvisible(found.replace(/\s+/g, " ")), 0, 80);
  return { id, line, column, excerpt, weight };
}
