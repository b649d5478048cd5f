// The words of `hermes kanban`, the same wherever they are typed.
import { readFile } from "node:fs/promises";
import { hostname, userInfo } from "node:os";
import { type Command, InvalidArgumentError, Option } from "commander";
import type { OpenHome } from "../home/open.ts";
import { profileExists } from "../home/profiles.ts";
import { Boards } from "../kanban/boards.ts";
import { assign, BoardError, cardOf, comment, createCard, link, unlink } from "../kanban/cards.ts";
import {
  archive,
  block,
  heartbeat,
  promoteByHand,
  reclaim,
  remove,
  schedule,
  unblock,
  withReason,
} from "../kanban/moves.ts";
import { heartbeatOf, refusalFor, workerOf } from "../kanban/own-card.ts";
import { type Running, workerNow } from "../kanban/runs.ts";
import type { BlockKind, BoardFile, Change } from "../kanban/schema.ts";
import { cardJson } from "../kanban/show.ts";
import { subscribe, type ToldChat } from "../kanban/subscriptions.ts";
import { Workers } from "../kanban/workers.ts";
import type { Clock } from "../kit/clock.ts";
import { messageOf } from "../kit/errors.ts";
import { lazy } from "../kit/lazy.ts";
import type { AuxiliaryClient } from "../llm/auxiliary/contract.ts";
import type { SessionStore } from "../sessions/store.ts";
import { defineBoards } from "./kanban-boards.ts";
import { defineFiles, type OpenBoard } from "./kanban-files.ts";
import { defineLooks } from "./kanban-look.ts";
import { defineTriage } from "./kanban-triage.ts";
import { defineWork } from "./kanban-work.ts";

/** What the words need of the door they are typed in. */
export interface KanbanWorld {
  readonly home: OpenHome;
  readonly clock: Clock;
  out(text: string, options?: { readonly asIs?: boolean }): void;
  err(text: string): void;
  /** Some of what was asked failed. */
  failed(): void;
  /** Runs what goes on until somebody stops it; only where somebody can. */
  lasts?(work: (stop: AbortSignal) => Promise<void>): Promise<void>;
  /** What a daemon does beside each look at a board. */
  beside?(slug: string, board: BoardFile): Promise<unknown>;
  store(): Promise<SessionStore>;
  /** Where it is typed; absent: a command line. */
  readonly conversation?: TypedIn;
}

/** A conversation in which the words are typed. */
interface TypedIn {
  readonly sessionId: string;
  readonly auxiliary: AuxiliaryClient;
  /** Absent: no chat, so that nobody is told anything later. */
  readonly chat?: ToldChat;
  readonly author?: string;
}

interface CreateFlags {
  readonly body?: string;
  readonly assignee?: string;
  readonly lane?: true;
  readonly parent?: readonly string[];
  readonly workspace?: string;
  readonly branch?: string;
  readonly project?: string;
  readonly tenant?: string;
  readonly priority?: number;
  readonly triage?: true;
  readonly idempotencyKey?: string;
  readonly maxRuntime?: number;
  readonly createdBy?: string;
  readonly skill?: readonly string[];
  readonly maxRetries?: number;
  readonly model?: string;
  readonly provider?: string;
  readonly goal?: true;
  readonly goalMaxTurns?: number;
  readonly initialStatus?: "running" | "blocked";
  readonly json?: true;
}

interface ReassignFlags {
  readonly reclaim?: true;
  readonly lane?: true;
  readonly reason?: string;
}

export function defineKanban(command: Command, world: KanbanWorld): void {
  // Whoever only lists the commands has no world.home.
  const out: KanbanWorld["out"] = (...said) => world.out(...said);
  const boards = lazy(() => new Boards(world.home, world.clock));
  const json = (child: Command) => child.option("--json", "machine-readable");
  const own = () => workerOf(world.home.env);
  /** In a worker's shell: its attempt; one that is over changes nothing any more. */
  const runOf = (id: string) => (own()?.task === id ? (own()?.run ?? undefined) : undefined);
  const author = () =>
    world.conversation?.author ??
    world.home.env("HERMES_PROFILE") ??
    (world.home.paths.profile === "default" ? userName() : world.home.paths.profile);

  async function slug(): Promise<string> {
    const named: unknown = command.opts().board;
    return typeof named === "string" ? named : boards().active();
  }
  /** On the board that is meant; it is closed again whatever happens. */
  async function onPlace<T>(work: (open: OpenBoard) => Promise<T> | T): Promise<T> {
    const named = await slug();
    const board = await boards().open(named);
    try {
      return await work({ board, place: boards().place(named) });
    } finally {
      board.close();
    }
  }
  const onBoard = <T>(work: (board: BoardFile) => Promise<T> | T): Promise<T> => onPlace(({ board }) => work(board));
  /** The same change of several cards, each for itself: one that is refused leaves the others be. */
  async function each(
    ids: readonly string[],
    done: string,
    work: (change: Change, id: string) => unknown,
    { isDry = false } = {},
  ): Promise<void> {
    await onBoard(async (board) => {
      for (const id of ids)
        try {
          const worker = workerNow(board.db, id, hostname());
          await board.change((change) => {
            work(change, id);
            if (isDry) throw new OnlyTried();
          });
          out(`✓ ${id} ${done}\n`);
          if (worker) await stopFormer(board, id, worker);
        } catch (error) {
          if (error instanceof OnlyTried) {
            out(`✓ ${id} ${done}\n`);
            continue;
          }
          if (!(error instanceof BoardError)) throw error;
          world.err(`✗ ${messageOf(error)}\n`);
          world.failed();
        }
    });
  }
  /** Whoever took a card out of the hands of its worker; a worker that does so itself ends by itself. False: it is there still. */
  async function stopFormer(board: BoardFile, id: string, worker: Running): Promise<boolean> {
    if (cardOf(board.db, id).current_run_id === worker.run || own()?.task === id) return false;
    const isGone = await new Workers(world.clock).stop(worker, id);
    if (!isGone) world.err(`⚠ The worker of ${id} (process ${worker.pid}) does not end.\n`);
    return isGone;
  }
  const data = (value: unknown) => out(`${JSON.stringify(value, null, 2)}\n`, { asIs: true });

  command
    .description("manage a board of cards that profiles and people work on together")
    .option("--board <SLUG>", "another board than the active one")
    .hook("preAction", (_, action) => {
      const refusal = refusalFor(typedCommand(action), world.home.env);
      if (refusal !== null) throw new BoardError(refusal);
    });
  defineBoards(command.command("boards").description("list, create, switch and remove boards"), boards, world);

  command
    .command("init")
    .description("create the board's file; other commands do that when needed")
    .action(() => onBoard((board) => out(`✓ The board is ready: ${world.home.display(board.path)}\n`)));
  json(command.command("create"))
    .description("create a card")
    .argument("<title...>", "what to do, in a few words")
    .option("--body <TEXT>", "the details; @FILE reads them from a file")
    .option("--assignee <PROFILE>", "the profile that works on it")
    .option("--lane", "the assignee is not a profile: people do the work by hand")
    .option("--parent <ID...>", "cards that have to be done first")
    .option("--workspace <KIND>", "scratch (default), dir:PATH, worktree or worktree:PATH")
    .option("--branch <NAME>", "the branch of a worktree")
    .option("--project <ID>", "the project it belongs to")
    .option("--tenant <NAME>", "whose card it is, if several people share the board")
    .option("--priority <N>", "higher comes first", whole)
    .option("--triage", "only an idea so far: reviewed before work starts")
    .option("--idempotency-key <KEY>", "the same key returns the same card")
    .option("--max-runtime <TIME>", "how long one attempt may take: 90s, 30m, 2h, 1d", seconds)
    .option("--created-by <NAME>", "who made it")
    .option("--skill <NAME...>", "skills to load for it")
    .option("--max-retries <N>", "failures before giving up", whole)
    .option("--model <MODEL>", "its model")
    .option("--provider <NAME>", "the provider of that model")
    .option("--goal", "work on it over several turns, until a judge says that it is done")
    .option("--goal-max-turns <N>", "the most turns with --goal", whole)
    .addOption(
      new Option("--initial-status <STATUS>", "blocked: put aside until somebody unblocks it").choices([
        "running",
        "blocked",
      ]),
    )
    .action(async (title: readonly string[], flags: CreateFlags) => {
      checkAssignee(flags.assignee, flags.lane === true, world.home);
      await checkSkills(flags.skill);
      const [kind = "scratch", ...path] = (flags.workspace ?? "scratch").split(":");
      const body = await textOf(flags.body, world);
      const { sessionId, chat } = world.conversation ?? {};
      const tells = chat !== undefined && world.home.config().kanban.auto_subscribe_on_create;
      const card = await onBoard((board) =>
        board.change((change) => {
          const made = createCard(change, {
            ...{ title: title.join(" "), body, assignee: flags.assignee, parents: flags.parent, triage: flags.triage },
            ...{ blocked: flags.initialStatus === "blocked", priority: flags.priority, tenant: flags.tenant },
            workspace: { kind, path: path.length > 0 ? path.join(":") : undefined },
            ...{ branch: flags.branch, project: flags.project, skills: flags.skill, maxRetries: flags.maxRetries },
            ...{ maxRuntimeSeconds: flags.maxRuntime, model: flags.model, provider: flags.provider, goal: flags.goal },
            ...{ goalMaxTurns: flags.goalMaxTurns, idempotencyKey: flags.idempotencyKey },
            ...{ createdBy: flags.createdBy ?? author(), sessionId },
          });
          if (tells) subscribe(change, made.id, chat);
          return made;
        }),
      );
      if (flags.json) return data(cardJson(card));
      out(`✓ ${card.id} ${card.status}: ${card.title}\n`);
      if (tells) out("This chat is notified about it.\n");
    });
  defineLooks(command, { onBoard, world });
  defineWork(command, { boards, slug, onBoard, world, whole, seconds });
  defineTriage(command, {
    ...{ boards, slug, onBoard, world, author, whole },
    checkAssignee: (name) => checkAssignee(name, false, world.home),
  });
  defineFiles(command, { onPlace, author, world, runOf, stopFormer });

  command
    .command("assign")
    .description("give a card to a profile, or to none")
    .argument("<id>", "the card")
    .argument("<profile>", "a profile, or none")
    .option("--lane", "it is not a profile: people do the work by hand")
    .action(async (id: string, profile: string, { lane }: { readonly lane?: true }) => {
      const assignee = profile === "none" ? null : profile;
      checkAssignee(assignee ?? undefined, lane === true, world.home);
      await onBoard((board) => board.change((change) => assign(change, id, assignee)));
      out(assignee === null ? `✓ ${id} is assigned to nobody\n` : `✓ ${id} is assigned to ${assignee}\n`);
    });
  command
    .command("reassign")
    .description("give a card that is being worked on to another profile")
    .argument("<id>", "the card")
    .argument("<profile>", "a profile, or none")
    .option("--reclaim", "take it back from its worker first")
    .option("--lane", "it is not a profile: people do the work by hand")
    .option("--reason <TEXT>", "why")
    .action(async (id: string, profile: string, flags: ReassignFlags) => {
      const assignee = profile === "none" ? null : profile;
      checkAssignee(assignee ?? undefined, flags.lane === true, world.home);
      await each([id], assignee === null ? "is assigned to nobody" : `is assigned to ${assignee}`, (change) => {
        if (flags.reclaim && cardOf(change.db, id).status === "running") reclaim(change, id, flags.reason);
        assign(change, id, assignee);
      });
    });
  for (const [name, does, done] of [
    ["link", "make one card depend on another", "depends on"],
    ["unlink", "remove a dependency between two cards", "no longer depends on"],
  ] as const)
    command
      .command(name)
      .description(does)
      .argument("<parent>", "the card that comes first")
      .argument("<child>", "the card that waits for it")
      .action(async (parent: string, child: string) => {
        const act = name === "link" ? link : unlink;
        await onBoard((board) => board.change((change) => act(change, parent, child)));
        out(`✓ ${child} ${done} ${parent}\n`);
      });
  command
    .command("reclaim")
    .description("take a card back from its worker")
    .argument("<id>", "the card")
    .option("--reason <TEXT>", "why")
    .action((id: string, { reason }: { readonly reason?: string }) =>
      each([id], "is ready again", (change) => reclaim(change, id, reason)),
    );
  command
    .command("heartbeat")
    .description("report that a card is still being worked on")
    .argument("<id>", "the card")
    .option("--note <TEXT>", "what is being done")
    .action((id: string, { note }: { readonly note?: string }) =>
      each([id], "goes on", (change) => {
        const worker = own();
        if (worker?.task === id) heartbeatOf(change, worker, note);
        else heartbeat(change, id, note);
      }),
    );
  command
    .command("comment")
    .description("comment on a card")
    .argument("<id>", "the card")
    .argument("<text...>", "the comment")
    .option("--author <NAME>", "who says it")
    .option("--max-len <N>", "cut it off after this many characters", whole)
    .action(
      async (id: string, words: readonly string[], flags: { readonly author?: string; readonly maxLen?: number }) => {
        const body = world.home.redact(words.join(" ")).slice(0, flags.maxLen);
        await each([id], "has a new comment", (change) =>
          comment(change, id, { author: flags.author ?? author(), body }),
        );
      },
    );
  command
    .command("block")
    .description("put a card aside until somebody unblocks it")
    .argument("<id>", "the card")
    .argument("[reason...]", "why; also kept as a comment")
    .option("--ids <ID...>", "more cards")
    .addOption(
      new Option("--kind <KIND>", "what it waits for").choices([
        "needs_input",
        "capability",
        "transient",
        "dependency",
      ]),
    )
    .action(
      async (
        id: string,
        words: readonly string[],
        flags: { readonly ids?: readonly string[]; readonly kind?: BlockKind },
      ) => {
        const reason = reasonOf(words, world.home);
        await each([id, ...(flags.ids ?? [])], "is put aside", (change, one) => {
          block(change, one, { reason, kind: flags.kind, run: runOf(one) });
          withReason(change, one, { author: author(), reason });
        });
      },
    );
  command
    .command("unblock")
    .description("return blocked or scheduled cards to work")
    .argument("<id...>", "the cards")
    .option("--reason <TEXT>", "why; also kept as a comment")
    .action(async (ids: readonly string[], flags: { readonly reason?: string }) => {
      const reason = reasonOf([flags.reason ?? ""], world.home);
      await each(ids, "goes on", (change, id) => {
        unblock(change, id, reason);
        withReason(change, id, { author: author(), reason });
      });
    });
  command
    .command("schedule")
    .description("put a card aside for later; only unblock brings it back")
    .argument("<id>", "the card")
    .argument("[reason...]", "why; also kept as a comment")
    .action(async (id: string, words: readonly string[]) => {
      const reason = reasonOf(words, world.home);
      await each([id], "is put aside for later", (change) => {
        schedule(change, id, reason);
        withReason(change, id, { author: author(), reason });
      });
    });
  command
    .command("promote")
    .description("make cards ready by hand")
    .argument("<id>", "the card")
    .argument("[reason...]", "why")
    .option("--ids <ID...>", "more cards")
    .option("--force", "even if cards it depends on are not done")
    .option("--dry-run", "only say what would happen")
    .action(
      async (
        id: string,
        words: readonly string[],
        flags: { readonly ids?: readonly string[]; readonly force?: true; readonly dryRun?: true },
      ) => {
        const how = { actor: author(), reason: reasonOf(words, world.home), force: flags.force === true };
        const done = flags.dryRun ? "would be ready" : "is ready";
        const promoted = (change: Change, one: string) => promoteByHand(change, one, how);
        await each([id, ...(flags.ids ?? [])], done, promoted, { isDry: flags.dryRun === true });
      },
    );
  command
    .command("archive")
    .description("take cards off the board")
    .argument("<id...>", "the cards")
    .option("--rm", "delete them for good, with their comments and history")
    .action((ids: readonly string[], { rm }: { readonly rm?: true }) =>
      each(ids, rm ? "is removed" : "is archived", (change, id) => (rm ? remove(change, id) : archive(change, id))),
    );
  json(command.command("repair"))
    .description("rebuild the indexes of the board's file and check it")
    .action(({ json: asJson }: { readonly json?: true }) =>
      onBoard(async (board) => {
        const problems = await board.repair();
        if (asJson) data({ path: board.path, problems });
        else if (problems.length === 0) out("✓ The board's file is intact.\n");
        for (const problem of asJson ? [] : problems) world.err(`✗ ${problem}\n`);
        if (problems.length > 0) world.failed();
      }),
    );
}

function typedCommand(action: Command) {
  const { ids, author, createdBy } = action.opts<{ ids?: readonly string[]; author?: string; createdBy?: string }>();
  const { board } = action.parent?.opts<{ board?: string }>() ?? {};
  const [first, ...more] = action.args;
  // The words of a comment or a reason name no card.
  const isList = action.registeredArguments[0]?.variadic === true;
  const typed = [first, ...(isList ? more : []), ...(ids ?? [])];
  return {
    ...{ name: action.name(), isOfBoards: action.parent?.name() === "boards", board },
    ...{ cards: typed.filter((id) => id !== undefined), namesAuthor: (author ?? createdBy) !== undefined },
  };
}

/** Undoes a change. */
class OnlyTried extends Error {}

/** A card for somebody who does not exist would wait for ever. */
function checkAssignee(assignee: string | undefined, isLane: boolean, home: OpenHome): void {
  if (assignee === undefined || isLane || profileExists(home.paths.root, assignee.toLowerCase())) return;
  throw new BoardError(
    `there is no profile "${assignee}". "hermes profile list" shows them; if people work on it by hand, add --lane.`,
  );
}

async function checkSkills(names: readonly string[] = []): Promise<void> {
  const { CONFIGURABLE } = await import("../tools/toolset/toolsets.ts");
  const toolset = names.find((name) => Object.hasOwn(CONFIGURABLE, name));
  if (toolset !== undefined)
    throw new BoardError(`"${toolset}" is a toolset, not a skill; the profile's settings choose toolsets.`);
}

const reasonOf = (words: readonly string[], home: OpenHome) => home.redact(words.join(" ").trim()) || undefined;

async function textOf(given: string | undefined, { conversation }: KanbanWorld): Promise<string | undefined> {
  // Who writes in a chat does not read the files of this machine.
  if (!given?.startsWith("@") || conversation?.chat) return given;
  return readFile(given.slice(1), "utf8").catch((error) => {
    throw new BoardError(`--body: ${given.slice(1)} cannot be read: ${messageOf(error)}`);
  });
}

function whole(text: string): number {
  if (!/^-?\d{1,9}$/.test(text)) throw new InvalidArgumentError("a whole number is needed.");
  return Number(text);
}

const UNITS = { s: 1, m: 60, h: 3600, d: 86_400 };

function seconds(text: string): number {
  const [, count = "", unit = "s"] = /^(\d{1,7})([smhd]?)$/.exec(text) ?? [];
  if (count === "") throw new InvalidArgumentError("a time is needed: 30, 90s, 30m, 2h or 1d.");
  return Number(count) * (UNITS[unit as keyof typeof UNITS] ?? 1);
}

function userName(): string {
  try {
    return userInfo().username;
  } catch {
    return "user"; // a machine without names
  }
}
