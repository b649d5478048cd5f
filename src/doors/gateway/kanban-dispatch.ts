// Boards in a gateway: workers are started from here for all boards of the root, by one gateway of it alone.
import { Boards } from "../../kanban/boards.ts";
import { listCards } from "../../kanban/cards.ts";
import { Dispatcher, type Look } from "../../kanban/dispatch.ts";
import { BoardWatch, hasBoards } from "../../kanban/watch.ts";
import { Workers } from "../../kanban/workers.ts";
import { plural } from "../../kit/formats.ts";
import { lazy } from "../../kit/lazy.ts";
import type { OutboxRow } from "../../sessions/work.ts";
import type { KanbanNoticesOptions } from "./kanban-notices.ts";

export interface GatewayKanban {
  /** There is a board, and this gateway may start workers for it. */
  hasWork(): Promise<boolean>;
  /** For the console; null where there is nothing to say. */
  line(): Promise<string | null>;
  start(): void;
  /** What happened to cards, for the chats that wait for it. */
  tell(): Promise<void>;
  /** True: it was a notice of a card, and the chat that refused it gets no more of them. */
  refused(row: OutboxRow): Promise<boolean>;
  /** Starts nothing more. Workers go on; whoever dispatches next finds them. */
  close(): Promise<void>;
}

type GatewayKanbanOptions = Omit<KanbanNoticesOptions, "log" | "since"> & {
  /** Where a conversation works that has no folder of its own. */
  readonly cwd: string;
  /** Nothing more is asked of a model. */
  readonly stop: AbortSignal;
};

export function openGatewayKanban(options: GatewayKanbanOptions): GatewayKanban {
  const { home, clock, store, stop } = options;
  const boards = new Boards(home, clock);
  const log = home.log.child("kanban");
  const over = new AbortController();
  const workers = new Workers(clock, () => watch.wake());
  const since = clock.now();
  const isOn = () => home.config().kanban.dispatch_in_gateway;
  const watch: BoardWatch = new BoardWatch({
    ...{ home, boards, clock, isOn },
    dispatcher: new Dispatcher({
      ...{ home, boards, workers },
      started: ({ card, profile, run }) => log.info(`${card.id} is worked on by ${profile}, run ${run}`),
    }),
    looked: (look) => note(look),
    report: (problem) => log.warn(problem),
    taken: () => log.info("another gateway starts workers for the boards of this root"),
    async beside(slug, board) {
      // What asks a model is loaded when there is something to ask about.
      if (listCards(board.db, { status: "triage", limit: 1 }).length === 0) return;
      const { splitWaiting } = await import("../../commands/kanban-side.ts");
      await splitWaiting(slug, { home, clock, store: async () => store }, stop);
    },
  });
  const note = ({ board, actions }: Look) => {
    for (const action of actions)
      if (action.type === "end" || action.type === "stop")
        log.info(`board ${board}: ${action.card}: ${action.outcome}: ${action.error}`);
  };
  const notices = lazy(async () => {
    const { KanbanNotices } = await import("./kanban-notices.ts");
    return new KanbanNotices({ ...options, since, log });
  });
  const wakes = lazy(async () => {
    const { SessionWakes } = await import("./session-wakes.ts");
    return new SessionWakes({ ...options, log });
  });
  let running: Promise<void> = Promise.resolve();
  return {
    hasWork: async () => isOn() && (await hasBoards(boards)),
    async line() {
      if (!isOn() || !(await hasBoards(boards))) return null;
      const counts = { ready: 0, running: 0 };
      const slugs = await boards.list();
      for (const slug of slugs) {
        const board = await boards.open(slug);
        for (const status of ["ready", "running"] as const) counts[status] += listCards(board.db, { status }).length;
        board.close();
      }
      return `[Kanban] ${plural(slugs.length, "board")}: ${counts.ready} ready, ${counts.running} running`;
    },
    start() {
      running = watch.run(over.signal);
    },
    async tell() {
      if (over.signal.aborted || !(await hasBoards(boards))) return;
      await (await notices()).look();
      (await wakes()).look();
    },
    refused: async (row) => row.cause.startsWith("kanban:") && (await notices()).refused(row),
    async close() {
      over.abort();
      await Promise.all([running, wakes().then((one) => one.close())]);
    },
  };
}
