// The decision flow in front of every command: what is never run, what the user settled beforehand, and whom to ask.

import { randomBytes } from "node:crypto";
import { mkdir, readdir, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Config } from "../home/config/schema.ts";
import type { Logger } from "../home/log.ts";
import type { Clock } from "../kit/clock.ts";
import { messageOf } from "../kit/errors.ts";
import { type ApprovalStore, isAllowlisted, type SessionApprovals } from "./approvals.ts";
import { OWN_GUARDS_KEY } from "./danger/own.ts";
import {
  type ApprovalOutcome,
  type ApprovalQuestion,
  type ApprovedCommand,
  type Ask,
  type CommandGuard,
  type CommandVerdict,
  clearCommand,
  type RefusedCommand,
} from "./decision.ts";
import { LIMIT_KEY } from "./hardline.ts";
import type { Homes } from "./scene.ts";
import { classifyCommand, USER_DENY_KEY } from "./verdict.ts";

type GuardSettings = Pick<Config, "approvals" | "command_allowlist" | "delegation">;

/** A model that judges one command. Anything but a clear word is `escalate`: a person is asked. */
export type SmartJudge = (
  request: { readonly command: string; readonly category: string; readonly reason: string; readonly policy: string },
  signal: AbortSignal,
) => Promise<"approve" | "deny" | "escalate">;

export interface GuardOptions {
  /** Read for every command, so that a changed setting holds at once. */
  readonly settings: () => GuardSettings;
  readonly homes: Homes;
  readonly sudoPasswordSet: () => boolean;
  /** A user can be asked. */
  readonly interactive: boolean;
  /** What started the run: `foreground`, `cron`, `subagent` and so on. */
  readonly origin: string;
  readonly sessionKey: string;
  readonly sessionId?: string;
  readonly ask: Ask;
  /** How long a question may stand; without it the door decides. */
  readonly timeoutMs?: number;
  readonly approvals: SessionApprovals;
  readonly questions: ApprovalStore;
  /** Whoever talks to the agent is not at its machine: each script is shown to them first. */
  readonly remote?: boolean;
  /** Switched on for the whole process at its start. */
  readonly yolo: boolean;
  /** Commands run where they cannot harm the host. */
  readonly isolated: () => boolean;
  /** Adds a category to `command_allowlist` in the settings file. */
  readonly saveAllowlist: (key: string) => Promise<void>;
  /** Keeps a script that was too long to check; gives back its path. */
  readonly saveBlocked?: (script: string) => Promise<string>;
  readonly smart?: SmartJudge;
  readonly log: Logger;
}

const CODE_VERDICT = {
  verdict: "ask",
  category: "script execution via execute_code",
  reason: "a script can do what commands can do",
  hardline: false,
} as const satisfies CommandVerdict;

/** Categories for which `always` is not offered. */
const NEVER_ALWAYS = new Set(["reverse shell", OWN_GUARDS_KEY]);

export function createGuard(options: GuardOptions): Required<CommandGuard> {
  const { approvals, questions, sessionKey, log } = options;

  return { decide, decideCode };

  async function decideCode(code: string, signal: AbortSignal): Promise<ApprovalOutcome> {
    if (options.isolated()) return allowed(CODE_RUNNER, null);
    const settings = options.settings();
    const scheduled = options.origin === "cron";
    const settled =
      options.yolo ||
      approvals.isYolo(sessionKey) ||
      settings.approvals.mode === "off" ||
      settings.command_allowlist.includes(CODE_VERDICT.category) ||
      approvals.allows(sessionKey, CODE_VERDICT.category);
    if (settled || (!scheduled && options.remote !== true)) return allowed(CODE_RUNNER, null);
    if (scheduled || !options.interactive) {
      return isApprovedUnattended(settings)
        ? allowed(CODE_RUNNER, CODE_VERDICT)
        : refusal(CODE_VERDICT, unattendedMessage(CODE_VERDICT, options.origin));
    }
    const answer = await askUser(code, CODE_VERDICT, signal);
    return answer.approved ? { ...answer, cleared: clearCommand(CODE_RUNNER) } : answer;
  }

  async function decide(command: string, signal: AbortSignal, cwd?: string): Promise<ApprovalOutcome> {
    if (options.isolated()) return allowed(command, null);
    const settings = options.settings();
    const verdict = classifyCommand(command, {
      ...options.homes,
      sudoPasswordSet: options.sudoPasswordSet(),
      denyGlobs: settings.approvals.deny,
      cwd,
    });
    if (verdict.verdict === "block") return block(command, verdict);
    if (options.yolo || approvals.isYolo(sessionKey) || settings.approvals.mode === "off")
      return allowed(command, verdict);
    if (verdict.verdict === "allow" || isAllowlisted(command, verdict.category, settings.command_allowlist)) {
      return allowed(command, verdict);
    }
    if (approvals.allows(sessionKey, verdict.category ?? "")) return allowed(command, verdict);
    const forPeople = verdict.category === OWN_GUARDS_KEY;
    if (!options.interactive || options.origin === "cron" || options.origin === "subagent") {
      return isApprovedUnattended(settings) && !forPeople
        ? allowed(command, verdict)
        : refusal(verdict, unattendedMessage(verdict, options.origin));
    }
    const smart = settings.approvals.mode === "smart" && !forPeople;
    const judged = smart ? await judge(command, verdict, settings, signal) : "escalate";
    if (judged === "approve") return { ...allowed(command, verdict), smartApproved: true };
    if (judged === "deny") return { ...refusal(verdict, judgedMessage(verdict)), outcome: "denied" };
    return askUser(command, verdict, signal);
  }

  async function block(command: string, verdict: CommandVerdict): Promise<ApprovalOutcome> {
    log.warn(`command blocked: ${verdict.category}`);
    if (verdict.hardline) {
      const savedAs = verdict.category === LIMIT_KEY ? await saveForReview(command) : null;
      return { ...refusal(verdict, hardlineMessage(verdict.category ?? "", savedAs)), hardline: true };
    }
    const byUser = verdict.category === USER_DENY_KEY;
    return { ...refusal(verdict, blockMessage(verdict)), ...(byUser ? { userDeny: true } : {}) };
  }

  async function saveForReview(command: string): Promise<string | null> {
    try {
      return (await options.saveBlocked?.(command)) ?? null;
    } catch (error) {
      log.warn("a blocked script could not be saved", error);
      return null;
    }
  }

  function isApprovedUnattended(settings: GuardSettings): boolean {
    if (options.origin === "cron") return settings.approvals.cron_mode === "approve";
    return options.origin === "subagent" && settings.delegation.subagent_auto_approve;
  }

  async function judge(command: string, verdict: CommandVerdict, settings: GuardSettings, signal: AbortSignal) {
    if (!options.smart || approvals.isJudgeDistrusted(sessionKey)) return "escalate";
    const { category, reason } = verdict;
    const policy = settings.approvals.smart_policy;
    try {
      const judged = await options.smart({ command, category: category ?? "", reason, policy }, signal);
      approvals.noteJudgement(sessionKey, judged);
      return judged;
    } catch (error) {
      log.warn("the approving model failed; the user is asked", error);
      return "escalate";
    }
  }

  async function askUser(command: string, verdict: CommandVerdict, signal: AbortSignal): Promise<ApprovalOutcome> {
    const key = verdict.category ?? "";
    const question: ApprovalQuestion = {
      kind: "approval",
      command,
      description: key,
      patternKey: key,
      allowAlways: !NEVER_ALWAYS.has(key),
    };
    // While it waited its turn, the one before it may have been allowed for the whole conversation.
    const showUnlessSettled = ((asked, over) =>
      approvals.allows(sessionKey, key) ? Promise.resolve({ choice: "session" }) : options.ask(asked, over)) as Ask; // only ever called with this question
    const answer = await questions.request(sessionKey, question, {
      signal,
      show: showUnlessSettled,
      onAnswer: ({ choice }) => {
        if (choice === "session" || choice === "always") approvals.allow(sessionKey, key);
      },
      sessionId: options.sessionId,
      timeoutMs: options.timeoutMs,
    });
    if (answer.choice === "deny") {
      if (answer.timedOut) return { ...refusal(verdict, timeoutMessage(verdict)), outcome: "timeout" };
      return { ...refusal(verdict, deniedMessage(verdict, answer.reason)), outcome: "denied" };
    }
    const note = answer.choice === "always" ? await saveAlways(question) : "";
    return { ...allowed(command, verdict), message: note, userApproved: true };
  }

  async function saveAlways({ allowAlways, patternKey }: ApprovalQuestion): Promise<string> {
    if (!allowAlways) return "";
    try {
      await options.saveAllowlist(patternKey);
      return "";
    } catch (error) {
      log.error(`"${patternKey}" could not be added to command_allowlist`, error);
      const why = messageOf(error);
      return `Allowed for this conversation only: "${patternKey}" could not be saved to command_allowlist (${why}).`;
    }
  }
}

const allowed = (command: string, verdict: CommandVerdict | null): ApprovedCommand => ({
  approved: true,
  cleared: clearCommand(command),
  message: "",
  description: verdict?.category ?? null,
  patternKey: verdict?.category ?? null,
});

const refusal = (verdict: CommandVerdict, message: string): RefusedCommand => ({
  approved: false,
  message,
  description: verdict.category,
  patternKey: verdict.category,
});

// What the model reads when a command was not run.

const NO_RETRY =
  "Do not try it again, do not rephrase it, and do not reach the same end in another way; say what you wanted to do and why.";

function hardlineMessage(key: string, savedAs: string | null): string {
  const saved = savedAs === null ? "" : ` It was saved to ${savedAs} so that the user can look at it.`;
  return `BLOCKED (hardline): ${key}. No mode, flag or approval lifts this.${saved} The user can run it outside the agent. ${NO_RETRY}`;
}

const blockMessage = ({ category, reason }: CommandVerdict) => `BLOCKED: ${category}: ${reason}. ${NO_RETRY}`;

function unattendedMessage({ category, reason }: CommandVerdict, origin: string): string {
  const always = `add "${category}" to command_allowlist in config.yaml`;
  if (origin === "cron") {
    return `BLOCKED: ${category}: ${reason}. This is a scheduled run, nobody can be asked. To allow it, the user can set approvals.cron_mode to approve, or ${always}. ${NO_RETRY}`;
  }
  if (origin === "subagent") {
    return `BLOCKED: ${category}: ${reason}. Sub-agents do not ask. To allow it, the user can set delegation.subagent_auto_approve to true, or ${always}. ${NO_RETRY}`;
  }
  return `BLOCKED: ${category}: ${reason}. This run is unattended, nobody can be asked. To allow it, the user can set approvals.mode to off, start with --yolo, or ${always}. ${NO_RETRY}`;
}

function deniedMessage({ category }: CommandVerdict, reason: string | undefined): string {
  const why = reason?.trim() ? ` Reason: ${reason.trim().replace(/([^.!?])$/, "$1.")}` : "";
  return `DENIED: the user refused this command (${category}).${why} ${NO_RETRY}`;
}

const timeoutMessage = ({ category }: CommandVerdict) =>
  `DENIED: nobody answered in time, and silence is a no (${category}). ${NO_RETRY}`;

const judgedMessage = ({ category }: CommandVerdict) =>
  `DENIED: the approving model refused this command (${category}). ${NO_RETRY}`;

// The one command line that runs scripts: it takes the program that watches over a script, and the script, from its first line of input.
// No part of it comes from a model; what it reads was decided about by the guard that hands it out.

const PYTHON = 'import sys,json;p=json.loads(sys.stdin.buffer.readline());exec(p["python"],{"p":p})';

const NODE = [
  'let b="";process.stdin.setEncoding("utf8");',
  'const f=(d)=>{b+=d;const i=b.indexOf("\\n");if(i<0)return;process.stdin.off("data",f);',
  'const p=JSON.parse(b.slice(0,i));new Function("p","rest","require",p.javascript)(p,b.slice(i+1),require)};',
  'process.stdin.on("data",f)',
].join("");

export const CODE_RUNNER = [
  `if command -v python3 >/dev/null 2>&1; then exec python3 -I -u -c '${PYTHON}'; fi`,
  `if command -v node >/dev/null 2>&1; then exec node -e '${NODE}'; fi`,
  "echo 'neither python3 nor node was found' >&2; exit 127",
].join("\n");

// A command too long to be checked is kept for its user to look at, for a week.

const KEEP_MS = 7 * 24 * 3600 * 1000;

/** Writes the script, drops expired ones, and gives back the path. */
export async function saveBlockedScript(directory: string, script: string, clock: Clock): Promise<string> {
  await mkdir(directory, { recursive: true, mode: 0o700 });
  await dropExpired(directory, clock.now() - KEEP_MS);
  const stamp = new Date(clock.now()).toISOString().replace(/[-:]|\.\d+/g, "");
  const path = join(directory, `blocked-${stamp}-${randomBytes(4).toString("hex")}.sh`);
  await writeFile(path, script, { mode: 0o600 });
  return path;
}

async function dropExpired(directory: string, before: number): Promise<void> {
  for (const name of await readdir(directory)) {
    if (!/^blocked-.*\.sh$/.test(name)) continue;
    const path = join(directory, name);
    if ((await stat(path)).mtimeMs < before) await rm(path, { force: true });
  }
}
