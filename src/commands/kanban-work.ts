// The commands of `hermes kanban` that have to do with workers: starting them, watching them, and why a card waits for one.
import { hostname } from "node:os";
import type { Command } from "commander";
import type { OpenHome } from "../home/open.ts";
import type { Boards } from "../kanban/boards.ts";
import { BoardError, cardOf, eventsSince } from "../kanban/cards.ts";
import { Dispatcher, type Look, tailOf } from "../kanban/dispatch.ts";
import { claim, newLock } from "../kanban/moves.ts";
import type { Action, WaitReason } from "../kanban/plan.ts";
import { storeWorkspace } from "../kanban/runs.ts";
import type { BoardFile, CardEvent } from "../kanban/schema.ts";
import { statsOf, statsText } from "../kanban/show.ts";
import { BoardWatch, isDispatched } from "../kanban/watch.ts";
import { logOf, Workers } from "../kanban/workers.ts";
import { openWorkspace } from "../kanban/workspaces.ts";
import { parseJson } from "../kit/json.ts";
import type { KanbanWorld } from "./kanban.ts";

interface Working {
  readonly boards: () => Boards;
  /** The board that is meant. */
  slug(): Promise<string>;
  onBoard<T>(work: (board: BoardFile) => Promise<T> | T): Promise<T>;
  readonly world: KanbanWorld;
  readonly whole: (text: string) => number;
  readonly seconds: (text: string) => number;
}

interface WatchFlags {
  readonly assignee?: string;
  readonly tenant?: string;
  readonly kinds?: readonly string[];
  readonly interval: number;
}

interface DispatchFlags {
  readonly dryRun?: true;
  readonly max?: number;
  readonly failureLimit?: number;
  readonly json?: true;
}

export function defineWork(command: Command, { boards, slug, onBoard, world, whole, seconds }: Working): void {
  const out: KanbanWorld["out"] = (...said) => world.out(...said);
  const json = (child: Command) => child.option("--json", "machine-readable");
  const data = (value: unknown) => out(`${JSON.stringify(value, null, 2)}\n`, { asIs: true });
  const dispatcher = (workers = new Workers(world.clock)) =>
    new Dispatcher({ home: world.home, boards: boards(), workers });

  command
    .command("claim")
    .description("take a card to work on it by hand")
    .argument("<id>", "the card")
    .option("--ttl <TIME>", "how long it stays yours without a heartbeat, such as 15m", seconds)
    .action(async (id: string, { ttl }: { readonly ttl?: number }) => {
      const lock = newLock(hostname(), process.ppid);
      const board = await slug();
      const { default_workdir: defaultFolder } = await boards().facts(board);
      await onBoard(async (file) => {
        const card = cardOf(file.db, id);
        if (card.status !== "ready" && card.status !== "review") throw cannot(id);
        const { workspaces } = boards().place(board);
        const searchPath = world.home.environment().PATH ?? "";
        const workspace = await openWorkspace(card, { workspaces, defaultFolder, searchPath });
        const claimed = await file.change((change) => {
          const made = claim(change, id, { lock, ...(ttl === undefined ? {} : { seconds: ttl }) });
          if (made) storeWorkspace(change, id, workspace);
          return made;
        });
        if (!claimed) throw cannot(id);
        out(`✓ ${id} is yours, as run ${claimed.run}\n`);
        out(`${workspace.path}\n`, { asIs: true });
      });
    });
  json(command.command("dispatch"))
    .description("check the board once: clean up after finished workers, start workers for ready cards")
    .option("--dry-run", "only say what would happen")
    .option("--max <N>", "start at most this many", whole)
    .option("--failure-limit <N>", "failures before a card is blocked, this time only", whole)
    .action(async ({ dryRun, json: asJson, ...options }: DispatchFlags) => {
      const name = await slug();
      await onBoard(async (board) => {
        const look: Look = dryRun
          ? { board: name, isLocked: false, actions: await dispatcher().wouldDo(name, board, options), problems: [] }
          : await dispatcher().look(name, board, options);
        const { actions, problems, isLocked } = look;
        if (asJson) data({ board: name, dry_run: dryRun === true, skipped_locked: isLocked, actions, problems });
        else if (isLocked) out("Another process is checking this board right now.\n");
        else if (actions.length === 0) out("Nothing to do.\n");
        for (const action of asJson ? [] : actions) out(`${actionLine(action, dryRun === true)}\n`);
        for (const problem of problems) world.err(`✗ ${problem}\n`);
        if (problems.length > 0) world.failed();
      });
    });
  command
    .command("daemon")
    .description("start workers for all boards in this terminal until Ctrl+C, without a gateway")
    .option("--force", "run although a gateway does this: take over when it stops")
    .action(async ({ force }: { readonly force?: true }) => {
      const keeps = lasting(world, "daemon");
      if (!force && (await isDispatched(boards())))
        throw new BoardError(
          "another process, most likely the gateway, starts workers for these boards already. With --force this one waits until it ends.",
        );
      const workers = new Workers(world.clock, () => watch.wake());
      const watch: BoardWatch = new BoardWatch({
        ...{ home: world.home, boards: boards(), clock: world.clock, isOn: () => true },
        dispatcher: dispatcher(workers),
        looked: ({ actions, board }) => {
          for (const action of actions) if (action.type !== "wait") out(`[${board}] ${actionLine(action)}\n`);
        },
        report: (problem) => world.err(`⚠ ${problem}\n`),
        taken: () => out("Another process starts workers for these boards; this one waits until it ends.\n"),
        ...(world.beside ? { beside: world.beside } : {}),
      });
      await keeps((stop) => watch.run(stop));
    });
  command
    .command("log")
    .description("show what the workers of a card printed")
    .argument("<id>", "the card")
    .option("--tail <BYTES>", "only the end of it", whole)
    .action(async (id: string, { tail }: { readonly tail?: number }) => {
      await onBoard((board) => cardOf(board.db, id));
      const path = logOf(boards().place(await slug()), id);
      const text = await tailOf(path, tail ?? Number.POSITIVE_INFINITY).catch(() => {
        throw new BoardError(`${id} has no log: no worker was started for it yet.`);
      });
      out(world.home.redact(text), { asIs: true });
    });
  command
    .command("tail")
    .description("follow what happens to a card until Ctrl+C")
    .argument("<id>", "the card")
    .action((id: string) =>
      lasting(
        world,
        "tail",
      )((stop) =>
        onBoard((board) => {
          cardOf(board.db, id);
          return follow(board, { from: 0, seconds: 0.5, isShown: ({ task_id }) => task_id === id }, stop);
        }),
      ),
    );
  command
    .command("watch")
    .description("follow what happens on the board until Ctrl+C")
    .option("--assignee <PROFILE>", "only cards of this profile")
    .option("--tenant <NAME>", "only cards of this tenant")
    .option("--kinds <KIND...>", "only these events: completed, blocked, crashed, ...")
    .option("--interval <SECONDS>", "how often to look", seconds, 1)
    .action(({ assignee, tenant, kinds, interval }: WatchFlags) =>
      lasting(
        world,
        "watch",
      )((stop) =>
        onBoard((board) => {
          const newest = board.db.get<{ id: number | null }>("SELECT MAX(id) AS id FROM task_events")?.id ?? 0;
          const isShown = ({ task_id, kind }: CardEvent) => {
            const card = board.db.get<{ assignee: string | null; tenant: string | null }>(
              "SELECT assignee, tenant FROM tasks WHERE id = ?",
              task_id,
            );
            const isTheirs = assignee === undefined || card?.assignee === assignee.toLowerCase();
            return isTheirs && (tenant === undefined || card?.tenant === tenant) && (kinds?.includes(kind) ?? true);
          };
          return follow(board, { from: newest, seconds: interval, isShown }, stop);
        }),
      ),
    );
  json(command.command("stats"))
    .description("count the cards by state and profile, and say why ready ones wait")
    .action(async ({ json: asJson }: { readonly json?: true }) => {
      const name = await slug();
      const someone = await isDispatched(boards());
      await onBoard(async (board) => {
        const stats = statsOf(board.db);
        const waiting = (await dispatcher().wouldDo(name, board)).flatMap((action) => waitOf(action, someone));
        if (asJson) return data({ ...stats, waiting });
        out(`${statsText(stats)}\n`);
        for (const { id, says } of waiting) out(`${id}: ${says}\n`);
      });
    });

  async function follow(
    board: BoardFile,
    how: { readonly from: number; readonly seconds: number; readonly isShown: (event: CardEvent) => boolean },
    stop: AbortSignal,
  ): Promise<void> {
    let seen = how.from;
    while (!stop.aborted) {
      for (const event of eventsSince(board.db, seen, 1000)) {
        seen = event.id;
        if (how.isShown(event)) out(`${eventLine(event, world.home)}\n`, { asIs: true });
      }
      await world.clock.sleep(Math.max(0.1, how.seconds) * 1000, stop).catch(() => undefined); // over
    }
  }
}

const cannot = (id: string) => new BoardError(`${id} cannot be taken now: hermes kanban show ${id} says why.`);

function lasting({ lasts }: KanbanWorld, name: string): NonNullable<KanbanWorld["lasts"]> {
  if (!lasts) throw new BoardError(`"${name}" runs until you stop it; type it in a terminal: hermes kanban ${name}`);
  return lasts;
}

function eventLine({ created_at, task_id, kind, payload }: CardEvent, { redact }: OpenHome): string {
  const facts = Object.entries(parseJson(payload ?? "{}") ?? {}).flatMap(([name, value]) =>
    value === null || value === "" ? [] : [`${name}=${typeof value === "string" ? value : JSON.stringify(value)}`],
  );
  const time = new Date(created_at * 1000).toISOString().slice(0, 19).replace("T", " ");
  return redact(`${time}  ${task_id}  ${kind}${facts.length > 0 ? `  ${facts.join(" ").replaceAll("\n", " ")}` : ""}`);
}

const WHY: Readonly<Record<WaitReason, string>> = {
  unassigned: "nobody is assigned, and kanban.default_assignee does not name a profile",
  no_profile: "its assignee is not a profile: people do the work by hand",
  board_full: "as many cards run as kanban.max_in_progress allows",
  profile_full: "as many cards of its profile run as kanban.max_in_progress_per_profile allows",
  look_full: "as many were started as --max allows",
  worker_ending: "its former worker has not ended yet",
  rate_limited: "a quota stopped it a few minutes ago",
  quota_or_auth: "its last error was about a quota or a key; it is tried again after a pause",
  recently_completed: "it was completed less than an hour ago, and nobody queued it again",
  open_pull_request: "a comment of the last day names a pull request; block and unblock it to continue",
};

/** Every card that is ready and does not run, with the reason. */
function waitOf(
  action: Action,
  isDispatched: boolean,
): readonly { readonly id: string; readonly reason: string; readonly says: string }[] {
  if (action.type === "wait") return [{ id: action.card, reason: action.reason, says: WHY[action.reason] }];
  if (action.type === "hold_back")
    return [{ id: action.card, reason: "open_parents", says: `it depends on ${action.parents.join(", ")}` }];
  if (action.type !== "start") return [];
  const next = { id: action.card, reason: "next_look", says: "its worker starts in a moment" };
  const nobody = "nobody starts workers: run hermes gateway run, or hermes kanban daemon";
  return [isDispatched ? next : { id: action.card, reason: "no_dispatcher", says: nobody }];
}

/** What happened, or what would. */
function actionLine(action: Action, isDry = false): string {
  const { card } = action;
  switch (action.type) {
    case "start":
      return `${card}: ${isDry ? "would be started" : "started"}, ${action.isReview ? "as a review " : ""}by ${action.assignee}`;
    case "wait":
      return `${card}: waits: ${WHY[action.reason]}`;
    case "end":
    case "stop": {
      const way = action.type === "stop" ? (isDry ? "would be stopped" : "stopped") : "over";
      const after = isDry ? "; it would be blocked" : "; it is blocked now";
      return `${card}: ${way}: ${action.error}${action.givesUp ? after : ""}`;
    }
    case "extend":
      return `${card}: its worker is alive, the claim ${isDry ? "would be" : "is"} extended`;
    case "stop_leftover":
      return `${card}: a former worker ${isDry ? "would be" : "is"} stopped`;
    case "promote":
      return `${card}: ${isDry ? "would be ready" : "ready"}, everything it depends on is done`;
    case "hold_back":
      return `${card}: ${isDry ? "would wait" : "waits"} again for ${action.parents.join(", ")}`;
    case "assign":
      return `${card}: ${isDry ? "would be given" : "given"} to ${action.assignee}`;
    case "guard":
      return `${card}: held: ${WHY[action.reason]}`;
    case "clean":
      return `${card}: its scratch folder ${isDry ? "would be" : "is"} removed`;
  }
}
