// `/goal` and `/subgoal`: a standing goal that the agent works on over several turns.

import { continued } from "../goals/decide.ts";
import { following, type Goals } from "../goals/keeper.ts";
import {
  cleared,
  contractLines,
  type GoalContract,
  type GoalState,
  isOpen,
  newGoal,
  notWaiting,
  paused,
  readContract,
  resumed,
  statusLine,
  waiting,
} from "../goals/state.ts";
import { t } from "../home/language/words.ts";
import type { CommandContext, CommandDefinition } from "./context.ts";
import { parseTyped } from "./registry.ts";

/** All that the two commands do to their surface. */
type GoalContext = Pick<CommandContext, "goals" | "busy" | "say" | "warn">;

type GoalCommand = Omit<CommandDefinition, "run"> & { run(args: string, ctx: GoalContext): Promise<void> };

const NOT_HERE = "Goals need a conversation that stays open: start hermes, or use a chat.";
const NO_GOAL = "No goal is set. /goal <text> sets one.";

/** Words that count only alone: "/goal stop the leak" is a goal. */
type Verb = "status" | "show" | "pause" | "resume" | "clear" | "unwait";
const ALONE: ReadonlyMap<string, Verb> = new Map([
  ...(["status", "show", "pause", "resume", "clear", "unwait"] as const).map((word) => [word, word] as const),
  ["stop", "clear"],
  ["done", "clear"],
]);

const goal: GoalCommand = {
  name: "goal",
  description: "set a goal that the agent works on over several turns",
  category: "Session",
  editor: true,
  argsHint: "[text|status|pause|resume|clear|show]",
  keepsText: true,
  subcommands: ["status", "show", "pause", "resume", "clear", "draft", "wait", "unwait", "--max"],
  busyPolicy: "dispatch",
  async run(args, ctx) {
    const { goals } = ctx;
    if (!goals) return ctx.warn(t(NOT_HERE));
    const verb = args === "" ? "status" : ALONE.get(args.toLowerCase());
    if (verb) return VERBS[verb](goals, ctx);
    const [, word = "", rest = ""] = /^(draft|wait)(?:\s+([\s\S]*))?$/.exec(args) ?? [];
    if (word === "wait") return wait(rest.trim(), goals, ctx);
    if (word === "draft") return set(rest.trim(), goals, ctx, { draft: true });
    return set(args, goals, ctx, { draft: false });
  },
};

const VERBS: Readonly<Record<Verb, (goals: Goals, ctx: GoalContext) => Promise<void>>> = {
  async status(goals, ctx) {
    const state = await goals.state();
    ctx.say(state === null ? t(NO_GOAL) : statusLine(state, goals.now, await goals.spent(state)));
  },
  async show(goals, ctx) {
    const state = await goals.state();
    if (!state || state.status === "cleared") return ctx.say(t(NO_GOAL));
    const subgoals = state.subgoals.map((text, at) => `${at + 1}. ${text}`);
    ctx.say(
      [statusLine(state, goals.now, await goals.spent(state)), ...contractLines(state.contract), ...subgoals].join(
        "\n",
      ),
    );
  },
  pause: (goals, ctx) =>
    change(goals, ctx, (state) => {
      if (state.status === "paused") return t("The goal is paused already. /goal resume continues.");
      return { state: paused(state, t("by you")), next: null };
    }),
  async resume(goals, ctx) {
    await change(goals, ctx, (state) => {
      if (state.status === "active") return t("The goal is active already.");
      return { ...following(continued(resumed(state), t("resumed"))), line: null };
    });
  },
  clear: (goals, ctx) => change(goals, ctx, (state) => ({ state: cleared(state), next: null }), t("Goal cleared.")),
  unwait: (goals, ctx) =>
    change(goals, ctx, (state) => {
      if (state.status !== "active") return t("The goal is paused. /goal resume continues.");
      return { ...following(continued(notWaiting(state), t("no longer waiting"))), line: null };
    }),
};

/** Of a goal that is active or paused; what it became is said, unless `done` says it. */
async function change(
  goals: Goals,
  ctx: GoalContext,
  edit: (state: GoalState) => ReturnType<Parameters<Goals["change"]>[0]>,
  done?: string,
): Promise<void> {
  let next: GoalState | null = null;
  const refusal = await goals.change((state) => {
    if (!isOpen(state)) return notOpen(state);
    const edited = edit(state);
    if (typeof edited !== "string") next = edited.state;
    return edited;
  });
  if (refusal !== null) return ctx.warn(refusal);
  ctx.say(done ?? (next === null ? "" : statusLine(next, goals.now)));
}

function notOpen(state: GoalState | null): string {
  if (state === null || state.status === "cleared") return t(NO_GOAL);
  return t("The goal was achieved: {goal}. /goal <text> sets it, or another one, again.", { goal: state.goal });
}

async function set(
  typed: string,
  goals: Goals,
  ctx: GoalContext,
  { draft }: { readonly draft: boolean },
): Promise<void> {
  const budget = /^--max(?![^\s=])[\s=]{0,3}(\S*)(?:\s+([\s\S]*))?$/.exec(typed);
  const maxTurns = budget ? Number(budget[1] || Number.NaN) : goals.maxTurns;
  if (!Number.isInteger(maxTurns) || maxTurns < 1) return ctx.warn(t("--max takes a number of turns, 1 or more."));
  const text = (budget ? (budget[2] ?? "") : typed).trim();
  if (text === "" && budget && !draft)
    return change(goals, ctx, (state) => ({ state: { ...state, max_turns: maxTurns } }));
  if (text === "") return ctx.warn(t("/goal draft needs a text: /goal draft <text>"));
  if (ctx.busy) return ctx.warn(t("A goal is not set during a turn. Stop the turn first with /stop."));
  const { goal, contract } = draft ? await drafted(text, goals, ctx) : readContract(text);
  const refusal = await goals.change(() => ({
    state: newGoal({ goal, contract }, { now: goals.now, maxTurns }),
    next: { text, from: "person" },
  }));
  if (refusal !== null) return ctx.warn(refusal);
  const lines = contractLines(contract);
  ctx.say(
    [
      t("⊙ Goal set, up to {turns} turns. /goal pause stops it after the turn, /goal shows where it is.", {
        turns: maxTurns,
      }),
      ...lines,
    ].join("\n"),
  );
}

async function drafted(
  text: string,
  goals: Goals,
  ctx: GoalContext,
): Promise<{ readonly goal: string; readonly contract: GoalContract }> {
  const contract = await goals.draft(text, new AbortController().signal);
  if (contract !== null) return { goal: text, contract };
  ctx.say(t("No contract could be drafted; the goal is set as you wrote it."));
  return readContract(text);
}

async function wait(typed: string, goals: Goals, ctx: GoalContext): Promise<void> {
  const [, id = "", reason = ""] = /^(\S+)(?:\s+([\s\S]*))?$/.exec(typed) ?? [];
  const pid = Number(id);
  const isProcess = /^proc_\w+$/.test(id);
  if (!isProcess && !(Number.isSafeInteger(pid) && pid > 0))
    return ctx.warn(t("/goal wait needs a process: /goal wait <pid> [reason]"));
  await change(goals, ctx, (state) => {
    if (state.status !== "active") return t("The goal is paused. /goal resume continues.");
    const target = isProcess ? { process: id } : { pid };
    return { state: waiting(state, target, reason.trim(), goals.now), next: null };
  });
}

const subgoal: GoalCommand = {
  name: "subgoal",
  description: "add something that the goal requires too, or list and remove it",
  category: "Session",
  editor: true,
  argsHint: "[text|remove N|clear]",
  keepsText: true,
  subcommands: ["remove", "clear"],
  busyPolicy: "dispatch",
  async run(args, ctx) {
    const { goals } = ctx;
    if (!goals) return ctx.warn(t(NOT_HERE));
    const removed = /^remove\s+(\S+)$/.exec(args)?.[1];
    if (args === "") return ctx.say(subgoalLines(await goals.state()));
    if (args === "remove")
      return ctx.warn(t("/subgoal remove needs a number: /subgoal remove N. /subgoal lists them."));
    let next: GoalState | null = null;
    const refusal = await goals.change((state) => {
      if (!isOpen(state)) return notOpen(state);
      const subgoals = edited(state.subgoals, args, removed);
      if (typeof subgoals === "string") return subgoals;
      next = { ...state, subgoals };
      return { state: next };
    });
    if (refusal !== null) return ctx.warn(refusal);
    ctx.say(subgoalLines(next));
  },
};

/** A string is why not. */
function edited(subgoals: readonly string[], args: string, removed: string | undefined): readonly string[] | string {
  if (args.toLowerCase() === "clear") return [];
  if (removed === undefined) return [...subgoals, args];
  const at = Number(removed);
  if (!Number.isInteger(at) || at < 1 || at > subgoals.length)
    return t("There is no subgoal {number}. /subgoal lists them.", { number: removed });
  return subgoals.toSpliced(at - 1, 1);
}

function subgoalLines(state: GoalState | null): string {
  if (!isOpen(state)) return notOpen(state);
  if (state.subgoals.length === 0) return t("No subgoals. /subgoal <text> adds one.");
  return state.subgoals.map((text, at) => `${at + 1}. ${text}`).join("\n");
}

/** `/stop` is for the goal too: what was stopped does not begin again by itself. True: there was one to stop. */
export async function stopGoal({ goals }: CommandContext): Promise<boolean> {
  const state = (await goals?.state()) ?? null;
  if (!goals || state?.status !== "active") return false;
  const refusal = await goals.change((present) => {
    if (present?.status !== "active") return "";
    return { state: paused(present, "user-interrupted (/stop)"), next: null };
  });
  return refusal === null;
}

export const GOAL_COMMANDS: readonly GoalCommand[] = [goal, subgoal];

/** For surfaces that have no other commands. Null: the text is a message. `masked` takes keys out of what is stored. */
export function goalCommand(
  text: string,
  masked: (text: string) => string,
): ((ctx: GoalContext) => Promise<void>) | null {
  const typed = parseTyped(text);
  const command = GOAL_COMMANDS.find(({ name }) => name === typed?.name);
  if (!typed || !command) return null;
  return (ctx) => command.run(masked(typed.args), ctx);
}
