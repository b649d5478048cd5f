// The dispatcher: looks at a board and does what plan.ts says. When it looks is watch.ts.
import { randomBytes } from "node:crypto";
import { open } from "node:fs/promises";
import { hostname } from "node:os";
import { join } from "node:path";
import { LockTimeoutError, withLock } from "../home/lock.ts";
import type { Logger } from "../home/log.ts";
import type { OpenHome } from "../home/open.ts";
import { listProfileNames } from "../home/profile-manage.ts";
import { messageOf } from "../kit/errors.ts";
import { DISPATCHED, viewBoard } from "./board-view.ts";
import type { BoardPlace, Boards } from "./boards.ts";
import { assign, cardOf, note, openParents, promote, setStatus } from "./cards.ts";
import { CLAIM_SECONDS, claim } from "./moves.ts";
import { type Action, type BoardView, type Limits, plan } from "./plan.ts";
import { endRun, extendClaim, storeWorker, storeWorkspace, workerOf } from "./runs.ts";
import type { BoardFile, Card, CardRun, Change } from "./schema.ts";
import { logOf, type Workers, type WorkerTask, workerCommand, workerEnvironment } from "./workers.ts";
import { openWorkspace, removeScratch } from "./workspaces.ts";

interface DispatchPorts {
  readonly home: OpenHome;
  readonly boards: Boards;
  readonly workers: Pick<Workers, "start" | "lives" | "stop" | "exitOf" | "forget">;
  /** What a worker is; this program. */
  readonly command?: (task: WorkerTask) => readonly string[];
  /** A worker was started. */
  readonly started?: (task: WorkerTask) => void;
}

interface LookOptions {
  /** Starts of this look. */
  readonly max?: number | undefined;
  readonly failureLimit?: number | undefined;
}

export interface Look {
  readonly board: string;
  /** Another process was looking: nothing was done. */
  readonly isLocked: boolean;
  readonly actions: readonly Action[];
  /** What could not be done. */
  readonly problems: readonly string[];
}

/** A worker that will not end keeps its card so much longer. */
const HELD_SECONDS = 120;
const COOLDOWN_SECONDS = 300;

/**
 * - A look runs under the lock of the board; whoever comes meanwhile does nothing.
 * - Claim, workspace, process, its number in the row, and only then it begins: a kill between any two of these leaves a card that a later
 *   look finds, and no worker that nobody knows.
 */
export class Dispatcher {
  readonly #ports: DispatchPorts;
  readonly #log: Logger;
  readonly #host = hostname();
  readonly #gone = new Set<number>();

  constructor(ports: DispatchPorts) {
    this.#ports = ports;
    this.#log = ports.home.log.child("kanban");
  }

  /** What a look would do. */
  async wouldDo(slug: string, board: BoardFile, options: LookOptions = {}): Promise<readonly Action[]> {
    return plan(await this.#view(board, await this.#ports.boards.require(slug), options));
  }

  async look(slug: string, board: BoardFile, options: LookOptions = {}): Promise<Look> {
    const place = await this.#ports.boards.require(slug);
    try {
      return await withLock(join(place.folder, ".dispatch.lock"), () => this.#look(place, board, options), {
        waitMs: 0,
      });
    } catch (error) {
      if (!(error instanceof LockTimeoutError)) throw error;
      return { board: slug, isLocked: true, actions: [], problems: [] };
    }
  }

  async #look(place: BoardPlace, board: BoardFile, options: LookOptions): Promise<Look> {
    const view = await this.#view(board, place, options);
    const actions = plan(view);
    const problems: string[] = [];
    const task = async (action: Action) => {
      try {
        await this.#do(action, { place, board, view });
      } catch (error) {
        // One card holds up no other.
        const problem = `${action.card}: ${this.#ports.home.redact(messageOf(error))}`;
        problems.push(problem);
        this.#log.warn(`kanban ${place.slug}: ${problem}`);
      }
    };
    // Workers that have to go may take seconds; they go side by side.
    const isStop = ({ type }: Action) => type === "stop" || type === "stop_leftover";
    await Promise.all(actions.filter(isStop).map(task));
    for (const action of actions) if (!isStop(action)) await task(action);
    return { board: place.slug, isLocked: false, actions, problems };
  }

  async #view(board: BoardFile, place: BoardPlace, options: LookOptions): Promise<BoardView> {
    const { home, workers } = this.#ports;
    return viewBoard(
      board.db,
      {
        ...{ host: this.#host, gone: this.#gone, workspaces: place.workspaces },
        lives: (who, card) => workers.lives(who, card),
        exitOf: (who) => workers.exitOf(who),
        lastWords: async (card) => home.redact(await lastLine(logOf(place, card))),
      },
      {
        now: board.now,
        profiles: new Set(await listProfileNames(home.paths.root)),
        limits: limitsOf(home, options),
      },
    );
  }

  // --- doing it

  async #do(action: Action, at: { readonly place: BoardPlace; readonly board: BoardFile; readonly view: BoardView }) {
    const { board, place } = at;
    const { workers } = this.#ports;
    const { card } = action;
    switch (action.type) {
      case "wait":
        return;
      case "end": {
        const { run, outcome, event, error, limit } = action;
        await board.change((change) =>
          endRun(change, card, { run, outcome, error, ...(event && { event }), ...(limit !== undefined && { limit }) }),
        );
        const who = this.#workerOf(board, run);
        if (who) workers.forget(who);
        return;
      }
      case "stop": {
        const { run, outcome, error, limit } = action;
        const who = this.#workerOf(board, run);
        const isGone = who === null || (await workers.stop(who, card));
        await board.change((change) =>
          isGone
            ? endRun(change, card, { run, outcome, error, ...(limit !== undefined && { limit }) })
            : extendClaim(change, card, {
                ...{ run, until: change.now + HELD_SECONDS, event: "reclaim_deferred" },
                payload: { pid: who.pid, reason: outcome },
              }),
        );
        return;
      }
      case "stop_leftover": {
        const who = this.#workerOf(board, action.run);
        if (who && !(await workers.stop(who, card)))
          throw new Error(`its former worker (process ${who.pid}) does not end`);
        return;
      }
      case "extend":
        await board.change((change) =>
          extendClaim(change, card, { run: action.run, until: action.until, event: "claim_extended" }),
        );
        return;
      case "promote":
        await board.change((change) => promote(change, [card]));
        return;
      case "hold_back":
        await board.change((change) => holdBack(change, card));
        return;
      case "assign":
        await board.change((change) => {
          if (cardOf(change.db, card).assignee === null) assign(change, card, action.assignee);
        });
        return;
      case "guard":
        await board.change((change) =>
          note(change, { card, kind: "respawn_guarded", payload: { reason: action.reason } }),
        );
        return;
      case "start":
        await this.#start(action, at);
        return;
      case "clean":
        await removeScratch(place.workspaces, card);
    }
  }

  #workerOf(board: BoardFile, run: number) {
    const row = board.db.get<CardRun>("SELECT * FROM task_runs WHERE id = ?", run);
    return row ? workerOf(board.db, row) : null;
  }

  async #start(
    { card: id, assignee, isReview }: Extract<Action, { readonly type: "start" }>,
    { place, board, view }: { readonly place: BoardPlace; readonly board: BoardFile; readonly view: BoardView },
  ): Promise<void> {
    const { home, boards, workers, command = workerCommand } = this.#ports;
    const { limits } = view;
    const lock = `${this.#host}:${process.pid}:${DISPATCHED}${randomBytes(4).toString("hex")}`;
    const claimed = await board.change((change) =>
      // People may have claimed cards since this was planned.
      isFree(change, cardOf(change.db, id), assignee, limits)
        ? claim(change, id, { lock, seconds: limits.claimSeconds })
        : null,
    );
    if (claimed === null) return;
    const { card, run } = claimed;
    const worker = await (async () => {
      const workspace = await openWorkspace(card, {
        workspaces: place.workspaces,
        defaultFolder: (await boards.facts(place.slug)).default_workdir,
        searchPath: home.environment().PATH ?? "",
      });
      const task: WorkerTask = { card, run, lock, profile: assignee, place, workspace, isReview };
      const { worker_log_rotate_bytes: largest, worker_log_backup_count: backups } = home.config().kanban;
      const started = await workers.start(command(task), {
        ...{ cwd: workspace.path, env: workerEnvironment(home, task) },
        log: { path: logOf(place, id), largest, backups },
      });
      return { task, workspace, started };
    })().catch(async (error: unknown) => {
      const limit = Math.max(1, card.max_retries ?? limits.failureLimit);
      const said = home.redact(messageOf(error));
      await board.change((change) => endRun(change, id, { run, outcome: "spawn_failed", error: said, limit }));
      throw error;
    });
    const { task, workspace, started } = worker;
    try {
      const isOurs = await board.change((change) => {
        if (!storeWorker(change, id, { run, pid: started.pid, startTime: started.startTime })) return false;
        storeWorkspace(change, id, workspace);
        return true;
      });
      if (!isOurs) return started.cancel();
    } catch (error) {
      started.cancel();
      throw error;
    }
    started.go();
    this.#ports.started?.(task);
  }
}

function limitsOf(home: OpenHome, { max, failureLimit }: LookOptions): Limits {
  const { kanban } = home.config();
  return {
    failureLimit: failureLimit ?? kanban.failure_limit,
    maxInProgress: kanban.max_in_progress,
    maxPerProfile: kanban.max_in_progress_per_profile,
    staleSeconds: kanban.dispatch_stale_timeout_seconds,
    claimSeconds: secondsIn(home, "HERMES_KANBAN_CLAIM_TTL_SECONDS") ?? CLAIM_SECONDS,
    cooldownSeconds: secondsIn(home, "HERMES_KANBAN_RATE_LIMIT_COOLDOWN_SECONDS") ?? COOLDOWN_SECONDS,
    defaultAssignee: kanban.default_assignee.trim().toLowerCase() || null,
    maxStarts: max ?? null,
  };
}

function secondsIn(home: OpenHome, name: string): number | null {
  const given = home.env(name)?.trim() ?? "";
  return /^\d{1,9}$/.test(given) ? Number(given) : null;
}

function isFree({ db }: Change, card: Card, assignee: string, { maxInProgress, maxPerProfile }: Limits): boolean {
  if (card.assignee !== assignee) return false;
  const count = (where: string, ...values: string[]) =>
    db.get<{ cards: number }>(`SELECT COUNT(*) AS cards FROM tasks WHERE status = 'running' ${where}`, ...values)
      ?.cards ?? 0;
  if (maxInProgress !== null && count("") >= maxInProgress) return false;
  return maxPerProfile === null || count("AND assignee = ?", assignee) < maxPerProfile;
}

function holdBack(change: Change, id: string): void {
  const parents = openParents(change.db, id);
  if (parents.length === 0 || !["ready", "review"].includes(cardOf(change.db, id).status)) return;
  setStatus(change, id, "todo");
  note(change, { card: id, kind: "claim_rejected", payload: { open_parents: parents } });
}

const TAIL_BYTES = 4096;

/** How every conversation that somebody could go on with ends. */
const FAREWELL = /^hermes .*--resume /;

async function lastLine(path: string): Promise<string> {
  const text = await tailOf(path, TAIL_BYTES).catch(() => ""); // it never wrote anything
  const lines = text.split("\n").map((line) => line.trim());
  return lines.findLast((line) => line !== "" && !FAREWELL.test(line))?.slice(0, 200) ?? "";
}

/** The last bytes of a file. */
export async function tailOf(path: string, bytes: number): Promise<string> {
  const file = await open(path, "r");
  try {
    const { size } = await file.stat();
    const from = Math.max(0, size - bytes);
    const buffer = Buffer.alloc(size - from);
    const { bytesRead } = await file.read({ buffer, position: from });
    return buffer.toString("utf8", 0, bytesRead);
  } finally {
    await file.close();
  }
}
