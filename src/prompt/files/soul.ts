// The home's SOUL.md: who the agent is, in the user's own words. A file of that name anywhere else is never looked at.
import { dirname } from "node:path";
import { DEFAULT_IDENTITY } from "../../home/paths.ts";
import { countCodePoints } from "../../kit/code-points.ts";
import { estimateTokens } from "../../llm/usage.ts";
import { judgeFindings } from "../../safety/threats/scan.ts";
import type { ContextFileReport, SoulReading } from "../contract.ts";
import { sha256 } from "../fingerprint.ts";
import {
  blockedMarker,
  describeScreened,
  type FileRules,
  readTextFile,
  type Screened,
  type ScreenOptions,
  screen,
  truncateFile,
} from "./read.ts";

const LABEL = "SOUL.md";
const LONGEST_TEMPLATE = 10_000;

export interface SoulOptions extends FileRules, ScreenOptions {
  readonly path: string;
  readonly limit: number;
}

/** Whether SOUL.md is looked at: not where project files are skipped, unless the caller wants the identity all the same. */
export function wantsSoul(request: {
  readonly skipContextFiles: boolean;
  readonly loadSoulIdentity: boolean;
}): boolean {
  return !request.skipContextFiles || request.loadSoulIdentity;
}

/** Never rejects: whatever is wrong with the file, the built-in identity serves. */
export async function readSoul(options: SoulOptions): Promise<SoulReading> {
  const { path, limit } = options;
  const file = await readTextFile(path, dirname(path), options);
  if (file.type === "missing") return { text: null, blockedMarker: null, report: null, warnings: [] };
  if (file.type !== "text") {
    const reason = file.type === "empty" ? "it is empty" : file.reason;
    const warnings = file.type === "empty" ? [] : [`${path} is not used, the built-in identity is: ${reason}.`];
    return { text: null, blockedMarker: null, report: report(path, file.type, { reason }), warnings };
  }
  const chars = countCodePoints(file.text);
  const unused = notCustomised(file.text, path, chars);
  if (unused) return { text: null, blockedMarker: null, report: unused, warnings: [] };
  const screened = screen(file.text, file.hash, options);
  if (screened.verdict === "blocked") return withheld(path, chars, screened);
  const cut = truncateFile(file.text, limit, LABEL);
  const warnings = screened.verdict === "flagged" ? [describeScreened(path, screened)] : [];
  if (cut.kept < cut.total) {
    const fresh = screenCut(cut.text, screened, options);
    if (fresh) return withheld(path, chars, fresh);
    warnings.push(
      `${path}: only ${cut.kept} of ${cut.total} characters are in the prompt, the limit is ${limit}. Set context_file_max_chars in config.yaml to change it.`,
    );
  }
  const status = screened.verdict === "flagged" ? "flagged" : cut.kept < cut.total ? "truncated" : "loaded";
  const facts = { chars, keptChars: cut.kept, tokens: estimateTokens(cut.text), findings: screened.findings };
  return { text: cut.text, blockedMarker: null, report: report(path, status, facts), warnings };
}

/** For a text the program itself once put there, and for a template of comments and headings; null for the user's own. */
function notCustomised(text: string, path: string, chars: number): ContextFileReport | null {
  if (SHIPPED_SOULS.includes(sha256(text))) {
    const reason = "not edited: the built-in identity of this version is used";
    const kept = { keptChars: countCodePoints(DEFAULT_IDENTITY), tokens: estimateTokens(DEFAULT_IDENTITY) };
    return report(path, "loaded", { chars, ...kept, reason });
  }
  if (text.length > LONGEST_TEMPLATE) return null;
  const said = text.replace(/<!--[\s\S]*?-->/g, "").split("\n");
  if (said.some((line) => line.trim() !== "" && !/^#{1,6}(?:\s|$)/.test(line.trim()))) return null;
  return report(path, "empty", { chars, reason: "only headings and comments: the built-in identity is used" });
}

function withheld(path: string, chars: number, screened: Screened): SoulReading {
  const { findings } = screened;
  return {
    text: null,
    blockedMarker: blockedMarker(LABEL, findings),
    report: report(path, "blocked", { chars, findings }),
    warnings: [describeScreened(path, screened)],
  };
}

/** Cutting can put words side by side that were far apart. */
function screenCut(text: string, known: Screened, { scan, reaction }: ScreenOptions): Screened | null {
  const ids = new Set(known.findings.map(({ id }) => id));
  const findings = scan(text).filter(({ id }) => !ids.has(id));
  return reaction !== "warn" && judgeFindings(findings) === "blocked" ? { verdict: "blocked", findings } : null;
}

function report(
  path: string,
  status: ContextFileReport["status"],
  facts: Partial<ContextFileReport>,
): ContextFileReport {
  return { path, kind: "soul", status, chars: 0, keptChars: 0, tokens: 0, findings: [], ...facts };
}

// SHA-256 of every text that this program ever put into a new SOUL.md (LF, stripped). A file that is still one of them gets the identity
// of today's program. Add a line whenever the default changes; never remove one. Texts of other programs are their user's choice.

const SHIPPED_SOULS: readonly string[] = [
  "05d328538929a28532a468a68991936e2bcae01586a25ba90e931502bd786741", // 0.1.0
];
