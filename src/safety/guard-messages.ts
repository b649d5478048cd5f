// What the model reads when a command was not run.
import type { CommandVerdict } from "./decision.ts";

const NO_RETRY =
  "Do not try it again, do not rephrase it, and do not reach the same end in another way; say what you wanted to do and why.";

export function hardlineMessage(key: string, savedAs: string | null): string {
  const saved = savedAs === null ? "" : ` It was saved to ${savedAs} so that the user can look at it.`;
  return `BLOCKED (hardline): ${key}. No mode, flag or approval lifts this.${saved} The user can run it outside the agent. ${NO_RETRY}`;
}

export const blockMessage = ({ category, reason }: CommandVerdict) => `BLOCKED: ${category}: ${reason}. ${NO_RETRY}`;

export function unattendedMessage({ category, reason }: CommandVerdict, origin: string): string {
  const always = `add "${category}" to command_allowlist in config.yaml`;
  if (origin === "cron") {
    return `BLOCKED: ${category}: ${reason}. This is a scheduled run, nobody can be asked. To allow it, the user can set approvals.cron_mode to approve, or ${always}. ${NO_RETRY}`;
  }
  if (origin === "subagent") {
    return `BLOCKED: ${category}: ${reason}. Sub-agents do not ask. To allow it, the user can set delegation.subagent_auto_approve to true, or ${always}. ${NO_RETRY}`;
  }
  return `BLOCKED: ${category}: ${reason}. This run is unattended, nobody can be asked. To allow it, the user can set approvals.mode to off, start with --yolo, or ${always}. ${NO_RETRY}`;
}

export function deniedMessage({ category }: CommandVerdict, reason: string | undefined): string {
  const why = reason?.trim() ? ` Reason: ${reason.trim().replace(/([^.!?])$/, "$1.")}` : "";
  return `DENIED: the user refused this command (${category}).${why} ${NO_RETRY}`;
}

export const timeoutMessage = ({ category }: CommandVerdict) =>
  `DENIED: nobody answered in time, and silence is a no (${category}). ${NO_RETRY}`;

export const judgedMessage = ({ category }: CommandVerdict) =>
  `DENIED: the approving model refused this command (${category}). ${NO_RETRY}`;
