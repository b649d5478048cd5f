// What follows from a scan: who is trusted how far.
import { type SkillScan, scanSkill, type Verdict } from "./scan.ts";

export type Trust = "builtin" | "trusted" | "community" | "agent-created";
export type Ruling = "allow" | "ask" | "block" | "force";

/** `force`: blocked unless the user insists. */
const POLICY: Readonly<Record<Trust, Readonly<Record<Verdict, Ruling>>>> = {
  builtin: { safe: "allow", caution: "allow", dangerous: "allow" },
  trusted: { safe: "allow", caution: "allow", dangerous: "block" },
  community: { safe: "allow", caution: "force", dangerous: "block" },
  "agent-created": { safe: "allow", caution: "allow", dangerous: "ask" },
};

export function rule(trust: Trust, verdict: Verdict): Ruling {
  return POLICY[trust][verdict];
}

/** The check behind `skills.guard_agent_created`. Nobody can be asked inside a tool call, so a question is a no. */
export async function guardAgentSkill(
  dir: string,
): Promise<{ readonly allowed: true } | { readonly allowed: false; readonly reason: string; readonly report: string }> {
  const scan = await scanSkill(dir);
  if (rule("agent-created", scan.verdict) === "allow") return { allowed: true };
  const worst = scan.findings.filter(({ severity }) => severity === "critical").length;
  const reason = `agent-created, verdict ${scan.verdict}, ${worst} critical finding${worst === 1 ? "" : "s"}`;
  return { allowed: false, reason, report: formatScan(scan) };
}

const RANK = { critical: 0, high: 1, medium: 2, low: 3 } as const;

/** One line per finding, worst first. */
export function formatScan({ verdict, findings, files }: SkillScan): string {
  const lines = [...findings]
    .sort((a, b) => RANK[a.severity] - RANK[b.severity])
    .map(({ severity, id, file, line, match }) => {
      const where = line > 0 ? `${file}:${line}` : file;
      return `  ${severity.padEnd(8)} ${id}${where === "" ? "" : `  ${where}`}  ${match}`;
    });
  return [`verdict: ${verdict} (${files} file${files === 1 ? "" : "s"}, ${findings.length} findings)`, ...lines].join(
    "\n",
  );
}
