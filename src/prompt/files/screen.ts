// The check every text from a file passes before it reaches the prompt.

import { type Finding, judgeFindings } from "../../safety/threats/scan.ts";
import { quote } from "../../sandbox/quote.ts";

/** Scope `context`; handed in. */
export type Scan = (text: string) => readonly Finding[];

export interface ScreenOptions {
  readonly scan: Scan;
  /** SHA-256 of the bytes of files the user has read and trusted. */
  readonly trusted?: ReadonlySet<string> | undefined;
  /** `security.context_scan`. */
  readonly reaction?: "block" | "warn" | undefined;
}

export interface Screened {
  readonly verdict: "clean" | "flagged" | "blocked";
  readonly findings: readonly Finding[];
}

export function screen(text: string, hash: string, { scan, trusted, reaction }: ScreenOptions): Screened {
  const findings = scan(text);
  const verdict = judgeFindings(findings);
  const lets = reaction === "warn" || trusted?.has(hash) === true;
  return { verdict: verdict === "blocked" && lets ? "flagged" : verdict, findings };
}

/** What stands in the prompt instead of a withheld text. */
export function blockedMarker(name: string, findings: readonly Finding[]): string {
  const ids = [...new Set(findings.map(({ id }) => id))].join(", ");
  return `[BLOCKED: ${name} contained potential prompt injection (${ids}). Content not loaded.]`;
}

/** For the user: what was seen, where, and what to do about it. */
export function describeScreened(file: string, { verdict, findings }: Screened): string {
  const path = printable(file);
  const seen = findings
    .slice(0, 3)
    .map(({ id, line, excerpt }) => `line ${line}: ${id} "${printable(excerpt)}"`)
    .join("; ");
  const more = findings.length > 3 ? ` and ${findings.length - 3} more` : "";
  if (verdict !== "blocked") return `${path} was loaded although it looks suspicious (${seen}${more}).`;
  return `${path} was not loaded, it looks like prompt injection (${seen}${more}). Read it; if it is fine, run: hermes prompt trust ${shellWord(path)}`;
}

const printable = (text: string) => text.replace(/\p{Cc}/gu, " ");
const shellWord = (path: string) => (/^[\w@%+=:,./~-]+$/.test(path) ? path : quote(path));
