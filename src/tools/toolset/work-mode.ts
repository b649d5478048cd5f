// How far the agent may go by itself: ask as usual, accept edits of the project, or plan, in which it only reads.
//
// The prompt and the tool list of a session never change, so a mode does not take tools away: calls are refused where they run, and the
// model is told once, with the next message as it is sent.

import { sep } from "node:path";
import { type HistoryMessage, userTextToSend } from "../../llm/messages.ts";
import { DO_NOT_RETRY } from "../../safety/decision.ts";
import type { HookedCall } from "./context.ts";

export const WORK_MODES = ["ask", "accept-edits", "plan"] as const;
export type WorkMode = (typeof WORK_MODES)[number];

/** The mode that comes after this one when a user cycles through them. */
export const nextMode = (mode: WorkMode): WorkMode =>
  WORK_MODES[(WORK_MODES.indexOf(mode) + 1) % WORK_MODES.length] ?? "ask";

export const MODE_WORDS: Readonly<Record<WorkMode, string>> = {
  ask: "Ask: project files are written; Hermes asks before dangerous commands and protected files (.envrc, .vscode/tasks.json ...).",
  "accept-edits":
    "Accept edits: protected files of the project are written without asking too; dangerous commands still ask.",
  plan: "Plan: read-only; writes and commands that may change something are refused.",
};

const PLAN_ON =
  "[System note: the user switched plan mode on. Only reading is allowed now: tools that write and commands that may change something are refused. Look at what you need, then answer with a concrete plan and wait; the user switches plan mode off before you act.]";
const PLAN_OFF = "[System note: the user switched plan mode off. You may make changes again.]";

interface ModeOptions {
  /** What was said before, when an earlier conversation is taken up again. */
  readonly history?: readonly HistoryMessage[];
  /** Whose mode counts in place of an own one: a sub-agent follows its parent, also while it runs. */
  readonly follows?: (() => WorkMode) | undefined;
  /** The tool changes nothing, whatever it is called with. */
  isReadOnly(name: string): boolean;
  /** The folder whose files may be edited unasked. */
  readonly project: string;
  /** A stranger's text is in the conversation, and the user wants to be asked about what it may be after. */
  hasForeignText(): boolean;
}

export class ModeGate {
  readonly #options: ModeOptions;
  #own: WorkMode = "ask";
  /** What the model believes. */
  #toldPlan: boolean;

  constructor(options: ModeOptions) {
    this.#options = options;
    this.#toldPlan = lastTold(options.history ?? []);
  }

  get mode(): WorkMode {
    return this.#options.follows?.() ?? this.#own;
  }

  set mode(mode: WorkMode) {
    this.#own = mode;
  }

  /** What the model has to be told with the next message; null when it knows. */
  takeNote(): string | null {
    const plans = this.mode === "plan";
    if (plans === this.#toldPlan) return null;
    this.#toldPlan = plans;
    return plans ? PLAN_ON : PLAN_OFF;
  }

  /** Why this call may not run now, for the model; null when it may. What cannot be judged may not. */
  async refuses({ name, args }: HookedCall): Promise<string | null> {
    if (this.mode !== "plan" || this.#options.isReadOnly(name)) return null;
    if (name === "process" && READING_ACTIONS.has(String(args.action))) return null;
    if (name === "delegate_task") return null; // its children are held to the same mode
    if (name !== "terminal") return refusal(name);
    return (await isReadingCommand(args)) ? null : refusal("this command");
  }

  /** A file tool may write here without a question. `path` is where its links lead. */
  acceptsEdit(path: string): boolean {
    const { project, hasForeignText } = this.#options;
    if (this.mode !== "accept-edits" || hasForeignText()) return false;
    if (!path.startsWith(project.endsWith(sep) ? project : project + sep)) return false;
    // What git keeps there is not the project's text, and git runs some of it.
    return !path.slice(project.length).split(sep).includes(".git");
  }
}

const READING_ACTIONS: ReadonlySet<string> = new Set(["list", "poll", "log", "wait"]);

async function isReadingCommand(args: HookedCall["args"]): Promise<boolean> {
  const { command, background, pty, outside } = args;
  if (typeof command !== "string" || background === true || pty === true || outside === true) return false;
  const { isReadOnlyCommand } = await import("../../safety/command-kinds.ts");
  return isReadOnlyCommand(command);
}

const refusal = (what: string) =>
  `Not run: plan mode is on, and ${what} may change something. ${DO_NOT_RETRY} or by other means while plan mode is on. Go on reading, or present the plan; the user switches plan mode off (Shift+Tab, /mode) when it is time to act.`;

/** Whether the newest note in a conversation says that plan mode is on. */
function lastTold(history: readonly HistoryMessage[]): boolean {
  for (const message of history.toReversed()) {
    if (message.role !== "user") continue;
    const sent = userTextToSend(message);
    if (sent.includes(PLAN_OFF)) return false;
    if (sent.includes(PLAN_ON)) return true;
  }
  return false;
}
