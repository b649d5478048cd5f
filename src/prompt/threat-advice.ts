// What the threat scan says about text from outside. The message and the user get a warning; nothing is withheld.
import type { ThreatAdvice } from "../llm/messages.ts";

/** Null when nothing was found. */
export async function adviseOn(text: string): Promise<ThreatAdvice | null> {
  const { judgeFindings, scanForThreats } = await import("../safety/threats/scan.ts");
  const findings = scanForThreats(unescaped(text), "context");
  if (findings.length === 0) return null;
  return { risk: judgeFindings(findings) === "blocked" ? "high" : "low", findings, redacted: false };
}

/** Results are JSON, in which a line break is a letter: without this it would hide the first word of every line from the scan. */
function unescaped(text: string): string {
  return text.replace(/(?<!\\)\\+[nrt]/g, "\n");
}

/** One line for the user. */
export function describeAdvice(tool: string, { findings }: ThreatAdvice): string {
  const [first] = findings;
  const more = findings.length > 1 ? ` and ${findings.length - 1} more` : "";
  return `${tool} brought text that reads like orders to the agent (${first?.id}${more}): "${first?.excerpt ?? ""}". It reached the model marked as foreign.`;
}
