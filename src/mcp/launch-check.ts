// One policy for every command: a server's command line passes the same table as what an agent wants to run.
import type { Config } from "../home/config/schema.ts";
import { isAllowlisted } from "../safety/allowlist.ts";
import type { Places } from "../safety/places.ts";
import { classifyCommand } from "../safety/verdict.ts";
import { quote } from "../sandbox/quote.ts";
import type { StdioPlace } from "./settings.ts";

export interface LaunchFacts extends Places {
  readonly config: Config;
  readonly sudoPasswordSet: boolean;
  /** "Do not ask" for this run. */
  readonly yolo: boolean;
}

export type LaunchVerdict =
  | { readonly type: "allow" }
  /** Somebody has to say yes; `category` is why. */
  | { readonly type: "ask"; readonly category: string; readonly reason: string }
  | { readonly type: "block"; readonly reason: string };

export function commandLine({ command, args }: Pick<StdioPlace, "command" | "args">): string {
  return [command, ...args].map((word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : quote(word))).join(" ");
}

/** What the policy says about starting a server. Yes was said when its whole command line stands in `command_allowlist`. */
export function judgeLaunch(line: string, facts: LaunchFacts): LaunchVerdict {
  const { config } = facts;
  const verdict = classifyCommand(line, { ...facts, denyGlobs: config.approvals.deny });
  if (verdict.verdict === "block") return { type: "block", reason: verdict.reason };
  if (verdict.verdict === "allow" || facts.yolo || config.approvals.mode === "off") return { type: "allow" };
  const { command_allowlist: allowed } = config;
  if (allowed.includes(line) || isAllowlisted(line, verdict.category, allowed)) return { type: "allow" };
  return { type: "ask", category: verdict.category ?? "", reason: verdict.reason };
}

/** The refusal as the user reads it; null = it may be started. */
export function launchRefusal(server: string, line: string, facts: LaunchFacts): string | null {
  const verdict = judgeLaunch(line, facts);
  if (verdict.type === "allow") return null;
  if (verdict.type === "block")
    return `the command policy forbids its command: ${verdict.reason}. Change mcp_servers.${server}.command and args in config.yaml.`;
  return `its command needs your consent: ${verdict.reason} (${verdict.category}). Run "hermes mcp test ${server}" in a terminal and say yes, or add the command line to command_allowlist in config.yaml.`;
}
