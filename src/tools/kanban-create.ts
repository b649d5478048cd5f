// A new card: work for somebody else, or for later.
import { join } from "node:path";
import { z } from "zod";
import { profileExists } from "../home/profiles.ts";
import { BoardError, cardOf, createCard, type NewCard } from "../kanban/cards.ts";
import { subscribeCreator } from "../kanban/subscriptions.ts";
import { realPlace } from "../kanban/workspaces.ts";
import { atDesk, type Desk } from "./kanban/desk.ts";
import type { ToolContext } from "./toolset/context.ts";
import { register } from "./toolset/registry.ts";
import { CONFIGURABLE } from "./toolset/toolsets.ts";

const parameters = z.object({
  title: z.string(),
  assignee: z.string().describe("The profile that works on it"),
  body: z.string().optional().describe("All that its worker has to know: it sees nothing of this conversation"),
  parents: z.array(z.string()).optional().describe("Cards that have to be done first"),
  tenant: z.string().optional(),
  priority: z.int().optional().describe("Higher comes first"),
  workspace_kind: z.enum(["scratch", "dir", "worktree"]).optional(),
  workspace_path: z.string().optional().describe("For dir and worktree, absolute"),
  project: z.string().optional(),
  triage: z.boolean().optional().describe("Only an idea yet"),
  idempotency_key: z.string().optional().describe("The same key gives the same card back"),
  max_runtime_seconds: z.int().optional(),
  initial_status: z.enum(["running", "blocked"]).optional().describe("blocked: put aside until somebody unblocks it"),
  skills: z.array(z.string()).optional().describe("Skills that are active for it"),
  goal_mode: z.boolean().optional().describe("Worked on over several turns until a judge says that it is done"),
  goal_max_turns: z.int().optional(),
  model: z.string().optional(),
  provider: z.string().optional(),
  board: z.string().optional().describe("Another board than the active one"),
});

type Arguments = z.infer<typeof parameters>;

register({
  name: "kanban_create",
  toolset: "kanban",
  emoji: "🆕",
  deferred: true,
  description:
    "Create a card for a profile. Split work that is not yours to do now, instead of doing more than your task.",
  parameters,
  textOrigin: "local",
  handler: (args, ctx) =>
    atDesk(ctx, args, async (desk) => {
      const { kind, ...card } = newCard(args, ctx, desk);
      await checkSkills(args.skills, ctx);
      const path = await checkedPlace(args.workspace_path, ctx, desk);
      const { made, subscribed } = await desk.board.change((change) => {
        const made = createCard(change, { ...card, workspace: { kind, path } });
        return { made, subscribed: subscribeCreator(change, made.id, ctx) };
      });
      const { id, status, workspace_kind, workspace_path, project_id } = made;
      return { ok: true, task_id: id, status, workspace_kind, workspace_path, project_id, subscribed };
    }),
});

function newCard(args: Arguments, ctx: ToolContext, desk: Desk): NewCard & { readonly kind: string } {
  const { worker, author, board } = desk;
  const assignee = args.assignee.trim().toLowerCase();
  if (assignee === "") throw new BoardError("assignee is required: the profile that works on it.");
  if (!profileExists(ctx.home.root, assignee))
    throw new BoardError(`there is no profile "${assignee}"; nobody would ever work on the card.`);
  const own = worker && desk.isOwn(worker.task) ? cardOf(board.db, worker.task) : null;
  const kind = args.workspace_kind ?? (args.workspace_path === undefined ? "scratch" : "dir");
  return {
    ...{ title: ctx.redact(args.title), assignee, parents: args.parents, triage: args.triage },
    ...{ body: args.body === undefined ? undefined : ctx.redact(args.body), priority: args.priority },
    tenant: args.tenant ?? own?.tenant ?? ctx.env?.("HERMES_TENANT") ?? undefined,
    kind,
    project: args.project ?? own?.project_id ?? undefined,
    ...{ blocked: args.initial_status === "blocked", idempotencyKey: args.idempotency_key, skills: args.skills },
    ...{ maxRuntimeSeconds: positive(args.max_runtime_seconds, "max_runtime_seconds"), model: args.model },
    ...{ provider: args.provider, goal: args.goal_mode },
    goalMaxTurns: positive(args.goal_max_turns, "goal_max_turns"),
    ...{ createdBy: author, sessionId: ctx.sessionId, foreignText: ctx.foreignText?.() ?? undefined },
  };
}

async function checkSkills(skills: readonly string[] = [], ctx: ToolContext): Promise<void> {
  const toolset = skills.find((name) => name in CONFIGURABLE);
  if (toolset === undefined || (await ctx.skills?.namesAtStart(ctx.platform))?.has(toolset)) return;
  throw new BoardError(`"${toolset}" is a toolset, not a skill: leave it out, the profile's settings choose toolsets.`);
}

function positive(value: number | undefined, name: string): number | undefined {
  if (value !== undefined && value < 1) throw new BoardError(`${name} is a number from 1 on.`);
  return value;
}

/**
 * A card's worker writes in its folder: where the conversation may not write, neither may a card that it makes. Nor in a folder that
 * commands could exchange for a link before the worker starts. Answers where the path leads.
 */
async function checkedPlace(
  given: string | undefined,
  ctx: ToolContext,
  { worker }: Desk,
): Promise<string | undefined> {
  if (!given?.startsWith("/")) return given; // refused where the card is created
  const path = await realPlace(given);
  const { confinement } = ctx.environment;
  const isOwn = worker?.workspace && path === (await realPlace(worker.workspace));
  const isReachable = confinement
    ? confinement.allowsWrite(path) && confinement.holdsStill(join(path, "x"))
    : worker === null || isOwn;
  if (isReachable) return path;
  const answer = await ctx.guard.decideOutsideWrite?.(path, ctx.signal);
  if (answer && !answer.approved)
    throw new BoardError(`the workspace ${path} is not the folder that you work in. ${answer.message}`);
  return path;
}
