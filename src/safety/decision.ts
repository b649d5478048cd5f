/** The verdict on one command line, before anything runs. */
export interface CommandVerdict {
  readonly verdict: "allow" | "ask" | "block";
  /** The exact key of the hardline or danger table; allowlists store it. Null when nothing was found. */
  readonly category: string | null;
  readonly reason: string;
  /** Blocked for good: no mode, flag or answer lifts it. */
  readonly hardline: boolean;
  /** What it does that a stranger's text may be after. Absent: nothing of that kind was found. */
  readonly effects?: readonly SensitiveEffect[];
  /** Files that would hold what a secret place holds now. Absent: none. */
  readonly copies?: readonly string[];
}

/** Categories that the guard treats in a way of their own. */
export const LIMIT_KEY = "command parser limit exceeded";
export const USER_DENY_KEY = "refused by approvals.deny";
export const OWN_GUARDS_KEY = "change the agent's own guards";

/** Allowed in general, and asked about once text from outside is in the conversation: it may have been told to. */
export type SensitiveEffect = "changes the agent" | "sends data out";

declare const decided: unique symbol;

/**
 * A command line that may run, because a decision was made about exactly this text.
 *
 * - Only this room makes them (`clearCommand` is for safety/ alone; the house rules see to it): the guard for what it approved, the
 *   rewriters for what they made of one, this file for fixed commands of the program.
 * - An environment runs nothing else. A value that merely looks like one is refused there too.
 */
export interface ClearedCommand {
  readonly text: string;
  /** It may leave the sandbox, if it is in one. */
  readonly outside: boolean;
  readonly [decided]: true;
}

const issued = new WeakSet<object>();

export function clearCommand(text: string, { outside = false } = {}): ClearedCommand {
  const cleared = Object.freeze({ text, outside });
  issued.add(cleared);
  return cleared as ClearedCommand; // the brand exists in types alone; `issued` is what counts at run time
}

/** The text to run. Throws for anything that was not cleared, so that a cast opens no way around the decision. */
export function clearedText(command: ClearedCommand): string {
  if (typeof command !== "object" || !issued.has(command))
    throw new TypeError("a command reached an environment without a decision about it; ask the guard first");
  return command.text;
}

interface OutcomeFacts {
  readonly description: string | null;
  readonly patternKey: string | null;
}

export interface ApprovedCommand extends OutcomeFacts {
  readonly approved: true;
  /** What an environment takes. */
  readonly cleared: ClearedCommand;
  /** Something worth knowing all the same, or empty. */
  readonly message: string;
  readonly userApproved?: boolean;
  /** The approving model said yes, to this command only. */
  readonly smartApproved?: boolean;
}

export interface RefusedCommand extends OutcomeFacts {
  readonly approved: false;
  /** For the model: what, why, and not to retry or rephrase. */
  readonly message: string;
  readonly hardline?: boolean;
  readonly userDeny?: boolean;
  readonly outcome?: "denied" | "timeout";
  /** No user could be asked yet: the question stays open, and the model is told to wait for the user. */
  readonly pending?: boolean;
}

/** What the decision flow answered for one command in one run. */
export type ApprovalOutcome = ApprovedCommand | RefusedCommand;

/** The one check in front of every command. Tools hold it through their context. */
export interface CommandGuard {
  decide(command: string, signal: AbortSignal, options?: DecideOptions): Promise<ApprovalOutcome>;
  /** The same for a script. What is cleared is the command that runs it, given the script on its input. Absent: no scripts here. */
  decideCode?(code: string, signal: AbortSignal): Promise<ApprovalOutcome>;
  /** A file tool would write where the sandbox does not let commands write. Absent: nothing is written there. */
  decideOutsideWrite?(path: string, signal: AbortSignal): Promise<{ readonly approved: true } | RefusedCommand>;
  /** A tool would open an address that carries text to its host. Asked about once a stranger's text was read. Absent: nobody asks. */
  decideSend?(address: string, signal: AbortSignal): Promise<{ readonly approved: true } | RefusedCommand>;
  /** The browser would open a server of this machine, given as `host:port`. Absent: only the settings open it. */
  decideLocalPage?(host: string, signal: AbortSignal): Promise<{ readonly approved: true } | RefusedCommand>;
}

export interface DecideOptions {
  /** Where it would begin, if that is known; `rm -r *` is one thing in a project and another in `/`. */
  readonly cwd?: string;
  /** It asks to run outside the sandbox, with the reason the model gave. Without a sandbox that is no question. */
  readonly outside?: { readonly reason: string };
}

// What the agent may ask its user, and what comes back. Doors render questions; they never decide.

export type ApprovalChoice = "once" | "session" | "always" | "deny";

export interface ApprovalQuestion {
  readonly kind: "approval";
  readonly command: string;
  /** Why it is asked; also the key under which an `always` is kept. */
  readonly description: string;
  readonly patternKey: string;
  readonly allowAlways: boolean;
  /** False: a yes counts for this one command. */
  readonly allowSession?: boolean;
  /** What the person should know besides: why the sandbox is to be left, where a stranger's text came from. */
  readonly note?: string;
  /** The file that remembers "always"; config.yaml unless it says otherwise. */
  readonly keptIn?: string;
  /** What a yes would do, if it is not to run a command that is dangerous as such. Doors choose their words by it. */
  readonly about?: "leaving" | "outside write" | "address" | "own change" | "other";
}

/** The note of a question that is asked because a stranger's text may be behind it. */
export const foreignNote = (source: string) =>
  `Text from outside is in this conversation: ${source}. Did you ask for this, or did that text?`;

export interface ClarifyQuestion {
  readonly kind: "clarify";
  readonly question: string;
  readonly choices: readonly string[] | null;
  readonly multiSelect: boolean;
}

interface SudoQuestion {
  readonly kind: "sudo";
}

interface SecretQuestion {
  readonly kind: "secret";
  readonly name: string;
  readonly prompt: string;
}

interface ConfirmQuestion {
  readonly kind: "confirm";
  readonly title: string;
  readonly detail: string;
  /** A lasting yes makes no sense here. */
  readonly onceOnly?: true;
}

export type Question = ApprovalQuestion | ClarifyQuestion | SudoQuestion | SecretQuestion | ConfirmQuestion;

export type AnswerTo<Q extends Question> = Q extends ApprovalQuestion
  ? { readonly choice: ApprovalChoice; readonly reason?: string; readonly timedOut?: boolean }
  : Q extends ConfirmQuestion
    ? { readonly choice: "once" | "always" | "cancel" }
    : /** `null` = cancelled, skipped or timed out. */ { readonly text: string | null };

/** Asks the person at the other end and waits. Resolves to the refusing answer when nobody can be asked, on abort and on timeout. */
export type Ask = <Q extends Question>(question: Q, signal?: AbortSignal) => Promise<AnswerTo<Q>>;

/** Ends what a model reads about a refusal. */
export const DO_NOT_RETRY = "Do not try it again";

/** A refusal in words for the person, who reads the same results: without what only the model is to do. */
export function toldToPeople(message: string): string {
  const end = message.indexOf(DO_NOT_RETRY);
  const facts = end === -1 ? message : message.slice(0, end).trimEnd();
  return facts.replace(/\bthe user\b/g, "you").replace(/\bThe user\b/g, "You");
}

/** The answer that says no, in the shape the question expects. */
export function refuse<Q extends Question>(
  question: Q,
  why: { readonly reason?: string; readonly timedOut?: boolean } = {},
): AnswerTo<Q> {
  const no =
    question.kind === "approval"
      ? { choice: "deny", ...why }
      : question.kind === "confirm"
        ? { choice: "cancel" }
        : { text: null };
  return no as AnswerTo<Q>; // chosen by the question's kind
}

/**
 * A shell line that the person at the screen typed to be run. It is theirs, so nobody is asked, and it runs with their rights. Never for a
 * text that a model, a file or a page had a part in: the house rules name the one place that asks for it.
 */
export const clearTypedCommand = (line: string): ClearedCommand => clearCommand(line, { outside: true });

// Commands the program runs on its own account: fixed words, no part of which comes from a model or a file.

/** Whether sudo works without a password just now. Changes nothing. */
export const SUDO_PROBE: ClearedCommand = clearCommand("sudo -n true");
/** The same for a command that leaves the sandbox. */
export const SUDO_PROBE_OUTSIDE: ClearedCommand = clearCommand("sudo -n true", { outside: true });

/** What a container or another machine is: one `key=value` line per fact, with nothing but a POSIX shell. Changes nothing. */
export const BACKEND_PROBE: ClearedCommand = clearCommand(
  `printf 'os=%s\\nkernel=%s\\nhome=%s\\ncwd=%s\\nuser=%s\\n' "$(uname -s 2>/dev/null)" "$(uname -r 2>/dev/null)" "$HOME" "$(pwd)" "$(id -un 2>/dev/null || whoami 2>/dev/null)"`,
);
