// The decision flow in front of every command: what is never run, what the user settled beforehand, and whom to ask.

import { randomBytes } from "node:crypto";
import { mkdir, readdir, rm, stat, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { Config } from "../home/config/schema.ts";
import type { Logger } from "../home/log.ts";
import type { Clock } from "../kit/clock.ts";
import { messageOf } from "../kit/errors.ts";
import { type ApprovalStore, isAllowlisted, isOneCommand, type SessionApprovals, simpleWords } from "./approvals.ts";
import {
  type ApprovalOutcome,
  type ApprovalQuestion,
  type ApprovedCommand,
  type Ask,
  type CommandGuard,
  type CommandVerdict,
  clearCommand,
  type DecideOptions,
  DO_NOT_RETRY,
  foreignNote,
  LIMIT_KEY,
  OWN_GUARDS_KEY,
  type RefusedCommand,
  type SensitiveEffect,
  USER_DENY_KEY,
} from "./decision.ts";
import type { Homes } from "./scene.ts";

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
  /** Commands run where they cannot harm the host. */
  readonly isolated: () => boolean;
  /** Commands run in a sandbox of this machine, which one may be allowed to leave. */
  readonly confined?: () => boolean;
  /** Where text from outside that is in the conversation came from; null: there is none. */
  readonly foreignText?: () => string | null;
  /** Adds a category to `command_allowlist` in the settings file. */
  readonly saveAllowlist: (key: string) => Promise<void>;
  /** Keeps a script that was too long to check; gives back its path. */
  readonly saveBlocked?: (script: string) => Promise<string>;
  readonly smart?: SmartJudge;
  readonly log: Logger;
}

const SCRIPT: Concern = {
  key: "script execution via execute_code",
  reason: "a script can do what commands can do",
  lasts: "always",
  forPeople: false,
};

const MOST_COPIES = 200;

/** Categories for which `always` is not offered. */
const NEVER_ALWAYS = new Set(["reverse shell", OWN_GUARDS_KEY]);

/** One reason to ask. A yes is kept under its key. */
interface Concern {
  readonly key: string;
  readonly reason: string;
  /** For the person who is asked. */
  readonly note?: string;
  /** How long a yes may count. */
  readonly lasts: "once" | "session" | "always";
  /** No model and no setting for unattended runs answers it; the allowlist does. */
  readonly forPeople: boolean;
  /** Undefined: the command is dangerous as such. */
  readonly about?: ApprovalQuestion["about"];
}

export function createGuard(options: GuardOptions): Required<CommandGuard> {
  const { approvals, questions, sessionKey, log } = options;
  /** Where commands of this session copied keys to; the oldest are forgotten. */
  const secretCopies = new Set<string>();

  return { decide, decideCode, decideOutsideWrite, decideSend, decideLocalPage };

  async function decideCode(code: string, signal: AbortSignal): Promise<ApprovalOutcome> {
    const yes = allowed(CODE_RUNNER, null);
    if (options.isolated() || options.confined?.() === true) return yes;
    const settings = options.settings();
    const watched = options.origin === "cron" || options.remote === true;
    if (!watched || asksNothing(settings) || isSettled(SCRIPT.key, settings)) return yes;
    const answer = await answerTo(code, [SCRIPT], yes, settings, signal);
    return answer.approved ? { ...answer, description: SCRIPT.key, patternKey: SCRIPT.key } : answer;
  }

  async function decide(
    command: string,
    signal: AbortSignal,
    { cwd, outside }: DecideOptions = {},
  ): Promise<ApprovalOutcome> {
    if (options.isolated()) return allowed(command, null);
    const settings = options.settings();
    const { classifyCommand } = await import("./verdict.ts"); // its tables wait for the first command
    const verdict = classifyCommand(command, {
      ...options.homes,
      sudoPasswordSet: options.sudoPasswordSet(),
      denyGlobs: settings.approvals.deny,
      secretCopies: [...secretCopies],
      cwd,
    });
    const leaves = outside !== undefined && options.confined?.() === true;
    const yes = allowed(command, verdict, { outside: leaves });
    if (verdict.verdict === "block") return block(command, verdict);
    const open = [
      ...dangerConcern(command, verdict, settings),
      ...(leaves ? [leavingConcern(command, outside.reason)] : []),
      ...foreignConcerns(verdict.effects ?? []),
    ].filter(({ key }) => !isSettled(key, settings));
    const isFree = open.length === 0 || asksNothing(settings);
    const outcome = isFree ? yes : await answerTo(command, open, yes, settings, signal);
    if (outcome.approved) rememberCopies(verdict.copies ?? []);
    return outcome;
  }

  function rememberCopies(paths: readonly string[]): void {
    for (const path of paths) secretCopies.add(path);
    for (const path of secretCopies) if (secretCopies.size > MOST_COPIES) secretCopies.delete(path);
  }

  async function decideOutsideWrite(path: string, signal: AbortSignal) {
    const settings = options.settings();
    const concern: Concern = {
      ...LEAVING,
      key: `${LEAVING_KEY} write ${dirname(path)}`,
      lasts: "always",
      about: "outside write",
      note: "The file lies where the sandbox does not let commands write.",
    };
    if (options.isolated() || asksNothing(settings) || isSettled(concern.key, settings))
      return { approved: true } as const;
    const shown = `write ${path}`;
    return answerTo(shown, [concern], allowed(shown, null), settings, signal);
  }

  async function decideSend(address: string, signal: AbortSignal) {
    const settings = options.settings();
    const open = foreignConcerns(["sends data out"])
      .filter(({ key }) => !isSettled(key, settings))
      .map((concern) => ({ ...concern, about: "address" as const }));
    if (open.length === 0 || asksNothing(settings)) return { approved: true } as const;
    const shown = `open ${address}`;
    return answerTo(shown, open, allowed(shown, null), settings, signal);
  }

  /** Whoever listens on this machine trusts its users, so a page there is opened with a yes, one host and port at a time. */
  async function decideLocalPage(host: string, signal: AbortSignal) {
    const settings = options.settings();
    const key = `open local page: ${host}`;
    const concern: Concern = {
      key,
      reason: "it is a server of this machine",
      lasts: "always",
      forPeople: true,
      about: "address",
    };
    if (asksNothing(settings) || isSettled(key, settings)) return { approved: true } as const;
    const shown = `open ${host} in the browser`;
    return answerTo(shown, [concern], allowed(shown, null), settings, signal);
  }

  function asksNothing(settings: GuardSettings): boolean {
    return approvals.isYolo(sessionKey) || settings.approvals.mode === "off";
  }

  function isSettled(key: string, settings: GuardSettings): boolean {
    return settings.command_allowlist.includes(key) || approvals.allows(sessionKey, key);
  }

  function dangerConcern(command: string, verdict: CommandVerdict, settings: GuardSettings): Concern[] {
    const { category, reason } = verdict;
    if (verdict.verdict === "allow" || category === null) return [];
    if (isAllowlisted(command, category, settings.command_allowlist)) return [];
    const lasts = NEVER_ALWAYS.has(category) ? "session" : "always";
    return [{ key: category, reason, lasts, forPeople: category === OWN_GUARDS_KEY }];
  }

  /** Whoever wrote the text that was read may also have written this command, so an earlier yes to its kind does not count. */
  function foreignConcerns(effects: readonly SensitiveEffect[]): Concern[] {
    const source = options.foreignText?.() ?? null;
    if (source === null) return [];
    return effects.map((effect) => ({
      key: `after text from outside: ${effect}`,
      reason: `it ${effect}, and text from outside (${source}) is in the conversation, which may have asked for it`,
      note: foreignNote(source),
      lasts: "session",
      forPeople: true,
      about: "other",
    }));
  }

  /** What the person, the approving model or the settings for unattended runs say to what is still open. */
  async function answerTo(
    shown: string,
    open: readonly Concern[],
    yes: ApprovedCommand,
    settings: GuardSettings,
    signal: AbortSignal,
  ): Promise<ApprovalOutcome> {
    const forPeople = open.some((concern) => concern.forPeople);
    if (!options.interactive || options.origin === "cron" || options.origin === "subagent") {
      const stop = open.find((concern) => concern.forPeople || !isApprovedUnattended(settings));
      return stop ? refusal(stop.key, unattendedMessage(stop, options.origin)) : yes;
    }
    const smart = settings.approvals.mode === "smart" && !forPeople;
    const judged = smart ? await judge(shown, open, settings, signal) : "escalate";
    if (judged === "approve") return { ...yes, smartApproved: true };
    if (judged === "deny") return { ...refusal(keysOf(open), judgedMessage(keysOf(open))), outcome: "denied" };
    return askUser(shown, open, yes, signal);
  }

  async function block(command: string, verdict: CommandVerdict): Promise<ApprovalOutcome> {
    log.warn(`command blocked: ${verdict.category}`);
    if (verdict.hardline) {
      const savedAs = verdict.category === LIMIT_KEY ? await saveForReview(command) : null;
      return { ...refusal(verdict.category, hardlineMessage(verdict.category ?? "", savedAs)), hardline: true };
    }
    const byUser = verdict.category === USER_DENY_KEY;
    return { ...refusal(verdict.category, blockMessage(verdict)), ...(byUser ? { userDeny: true } : {}) };
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

  async function judge(command: string, open: readonly Concern[], settings: GuardSettings, signal: AbortSignal) {
    if (!options.smart || approvals.isJudgeDistrusted(sessionKey)) return "escalate";
    const policy = settings.approvals.smart_policy;
    const reason = open.map((concern) => concern.reason).join("; ");
    try {
      const judged = await options.smart({ command, category: keysOf(open), reason, policy }, signal);
      approvals.noteJudgement(sessionKey, judged);
      return judged;
    } catch (error) {
      log.warn("the approving model failed; the user is asked", error);
      return "escalate";
    }
  }

  async function askUser(
    command: string,
    open: readonly Concern[],
    yes: ApprovedCommand,
    signal: AbortSignal,
  ): Promise<ApprovalOutcome> {
    const keys = keysOf(open);
    const notes = open.flatMap(({ note }) => note ?? []).join("\n");
    const question: ApprovalQuestion = {
      kind: "approval",
      command,
      description: keys,
      patternKey: keys,
      allowAlways: open.every(({ lasts }) => lasts === "always"),
      ...(open.some(({ lasts }) => lasts === "once") && { allowSession: false }),
      ...(notes !== "" && { note: notes }),
      ...aboutOf(open),
    };
    const isAllowed = () => open.every(({ key }) => approvals.allows(sessionKey, key));
    // While it waited its turn, the one before it may have been allowed for the whole conversation.
    const showUnlessSettled = ((asked, over) =>
      isAllowed() ? Promise.resolve({ choice: "session" }) : options.ask(asked, over)) as Ask; // only ever called with this question
    const answer = await questions.request(sessionKey, question, {
      signal,
      show: showUnlessSettled,
      onAnswer: ({ choice }) => {
        if (choice !== "session" && choice !== "always") return;
        for (const { key, lasts } of open) if (lasts !== "once") approvals.allow(sessionKey, key);
      },
      sessionId: options.sessionId,
      timeoutMs: options.timeoutMs,
    });
    if (answer.choice === "deny") {
      if (answer.timedOut) return { ...refusal(keys, timeoutMessage(keys)), outcome: "timeout" };
      return { ...refusal(keys, deniedMessage(keys, answer.reason)), outcome: "denied" };
    }
    const note = answer.choice === "always" && question.allowAlways ? await saveAlways(open) : "";
    return { ...yes, message: note, description: keys, patternKey: keys, userApproved: true };
  }

  async function saveAlways(open: readonly Concern[]): Promise<string> {
    const failed: string[] = [];
    for (const { key } of open) {
      try {
        await options.saveAllowlist(key);
      } catch (error) {
        log.error(`"${key}" could not be added to command_allowlist`, error);
        failed.push(`"${key}" could not be saved to command_allowlist (${messageOf(error)})`);
      }
    }
    return failed.length === 0 ? "" : `Allowed for this conversation only: ${failed.join("; ")}.`;
  }
}

/** What weighs most: danger before the place, the place before whose text was read. */
function aboutOf(open: readonly Concern[]): Pick<ApprovalQuestion, "about"> {
  const about = open.find((concern) => concern.about !== "other")?.about;
  if (open.some((concern) => concern.about === undefined)) return {};
  return { about: about ?? "other" };
}

const keysOf = (open: readonly Concern[]) => open.map(({ key }) => key).join(" + ");

// Leaving the sandbox: the question is where a command runs, whatever it does there.

const LEAVING_KEY = "outside sandbox:";
const LEAVING = { reason: "it leaves the sandbox", forPeople: true, about: "leaving" } as const;
/** Programs whose first word says what they do. */
const HAS_SUBCOMMANDS = new Set(
  "git npm pnpm yarn bun cargo go pip pip3 uv docker podman kubectl helm gh glab apt apt-get brew systemctl launchctl terraform aws gcloud az".split(
    " ",
  ),
);

function leavingConcern(command: string, reason: string): Concern {
  const words = simpleWords(command);
  const note = `It would run outside the sandbox. The agent says why: ${reason}`;
  if (!words?.[0] || words[0].includes("$")) {
    const what = isOneCommand(command) ? "a line with shell syntax" : "several commands";
    return { ...LEAVING, key: `${LEAVING_KEY} ${what}`, lasts: "once", note };
  }
  const [program = "", verb = ""] = words;
  const name = program.slice(program.lastIndexOf("/") + 1);
  const what = HAS_SUBCOMMANDS.has(name) && /^[a-z][a-z-]*$/.test(verb) ? `${name} ${verb}` : name;
  return { ...LEAVING, key: `${LEAVING_KEY} ${what}`, lasts: "always", note };
}

const allowed = (command: string, verdict: CommandVerdict | null, where = { outside: false }): ApprovedCommand => ({
  approved: true,
  cleared: clearCommand(command, where),
  message: "",
  description: verdict?.category ?? null,
  patternKey: verdict?.category ?? null,
});

const refusal = (key: string | null, message: string): RefusedCommand => ({
  approved: false,
  message,
  description: key,
  patternKey: key,
});

// What the model reads when a command was not run.

const NO_RETRY = `${DO_NOT_RETRY}, do not rephrase it, and do not reach the same end in another way; say what you wanted to do and why.`;

function hardlineMessage(key: string, savedAs: string | null): string {
  const saved = savedAs === null ? "" : ` It was saved to ${savedAs} so that the user can look at it.`;
  return `BLOCKED (hardline): ${key}. No mode, flag or approval lifts this.${saved} The user can run it outside the agent. ${NO_RETRY}`;
}

const blockMessage = ({ category, reason }: CommandVerdict) => `BLOCKED: ${category}: ${reason}. ${NO_RETRY}`;

function unattendedMessage({ key, reason, forPeople }: Concern, origin: string): string {
  const always = `add "${key}" to command_allowlist in config.yaml`;
  const [situation, setting] = UNATTENDED[origin] ?? UNATTENDED.foreground;
  return `BLOCKED: ${key}: ${reason}. ${situation} To allow it, the user can ${forPeople ? "" : `${setting}, or `}${always}. ${NO_RETRY}`;
}

const UNATTENDED: Readonly<Record<string, readonly [situation: string, setting: string]>> & {
  readonly foreground: readonly [string, string];
} = {
  cron: ["This is a scheduled run, nobody can be asked.", "set approvals.cron_mode to approve"],
  kanban: [
    "This is the worker of a card, nobody can be asked: block the card and say what you need.",
    "set approvals.mode to off",
  ],
  subagent: ["Sub-agents do not ask.", "set delegation.subagent_auto_approve to true"],
  foreground: ["This run is unattended, nobody can be asked.", "set approvals.mode to off, start with --yolo"],
};

function deniedMessage(key: string, reason: string | undefined): string {
  const why = reason?.trim() ? ` Reason: ${reason.trim().replace(/([^.!?])$/, "$1.")}` : "";
  const next =
    why === "" ? NO_RETRY : `${DO_NOT_RETRY} as it is: do what the user said instead, and ask if that is not clear.`;
  return `DENIED: the user refused this command (${key}).${why} ${next}`;
}

const timeoutMessage = (key: string) => `DENIED: nobody answered in time, and silence is a no (${key}). ${NO_RETRY}`;

const judgedMessage = (key: string) => `DENIED: the approving model refused this command (${key}). ${NO_RETRY}`;

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
