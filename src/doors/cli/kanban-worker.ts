// The life of a worker: one card, from its start to its end. Loaded by runs that the dispatcher of a board starts.
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import type { AgentEvent, TurnOutcome } from "../../agent/events.ts";
import type { OpenAgent } from "../../agent/opened.ts";
import { type GoalDoor, Goals, subjectOf, turnEndOf } from "../../goals/keeper.ts";
import { cleared, newGoal, readContract, waitTargetOf } from "../../goals/state.ts";
import { Boards } from "../../kanban/boards.ts";
import { cardOf } from "../../kanban/cards.ts";
import { commentFrame } from "../../kanban/context-text.ts";
import { commentsAfter, isOpenFor, keepClaim, newestComment, overMessage, type Worker } from "../../kanban/own-card.ts";
import type { BoardFile, Card } from "../../kanban/schema.ts";
import { messageOf } from "../../kit/errors.ts";
import type { UserInput } from "../../llm/messages.ts";
import { fenced } from "../../prompt/fence.ts";
import { ExitError } from "../cli-context.ts";
import type { ChatRequest } from "../typed-input.ts";

/** How the dispatcher is told that a quota is used up: no failure of the card. */
const QUOTA_EXIT = 75;
const LOOK_MS = 6_000;
const BEAT_MS = 60_000;
const WAIT_MS = 1_000;
const MOST_REMINDERS = 2;

type WorkerRequest = Pick<ChatRequest, "home" | "clock">;

/**
 * - `saw` is told every event of a turn: a sign of life, which keeps the claim good.
 * - `next` is asked behind every turn and says what the agent is told then; null ends the run.
 * - `close` is called once, whatever happened.
 */
export class WorkerLife {
  readonly #request: WorkerRequest;
  readonly #worker: Worker;
  readonly #board: BoardFile;
  readonly #author: string;
  readonly #say: (line: string) => void;
  readonly #over = new AbortController();
  #looking: Promise<void> = Promise.resolve();
  #goals: Goals | null = null;
  #goalText: string | null = null;
  #isBusy = false;
  /** The agent finished its card, or put it aside. */
  #ended = false;
  /** The last look found that the card is no longer this worker's. */
  #isLost = false;
  #seen: number;
  #lastSign: number;
  #lastBeat: number;
  #reminders = 0;

  /** Rejects for a card that this process has no claim on: nothing is sent then. */
  static async open(worker: Worker, request: WorkerRequest, say: (line: string) => void): Promise<WorkerLife> {
    const { home, clock } = request;
    const boards = new Boards(home, clock);
    const { attachments } = await boards.require(worker.board);
    const board = await boards.open(worker.board);
    try {
      const card = cardOf(board.db, worker.task);
      if (!isOpenFor(card, worker)) throw new ExitError(1, overMessage(card, worker));
      // Commands see the files of this card alone; a folder that comes later they would not see.
      await mkdir(join(attachments, card.id), { recursive: true, mode: 0o700 });
      await board.change((change) => keepClaim(change, worker));
      return new WorkerLife(worker, request, { board, say });
    } catch (error) {
      board.close();
      throw error;
    }
  }

  private constructor(
    worker: Worker,
    request: WorkerRequest,
    { board, say }: { readonly board: BoardFile; readonly say: (line: string) => void },
  ) {
    this.#worker = worker;
    this.#request = request;
    this.#board = board;
    this.#say = say;
    this.#author = request.home.env("HERMES_PROFILE")?.trim() || request.home.paths.profile;
    // What was said before is in the card as the worker reads it.
    this.#seen = newestComment(board, worker.task);
    this.#lastSign = request.clock.now();
    this.#lastBeat = this.#lastSign;
  }

  async begin(conversation: OpenAgent): Promise<void> {
    this.#isBusy = true;
    this.#looking = this.#look(conversation);
    const { goal } = this.#worker;
    if (goal === null) return;
    const { clock, home } = this.#request;
    const goals = new Goals({
      door: this.#goalDoor(conversation),
      clock,
      config: () => home.config(),
      subject: () => subjectOf(conversation),
      onError: (error) => this.#say(messageOf(error)),
    });
    const { title, body } = this.#card();
    const set = { now: goals.now, maxTurns: goal.maxTurns ?? goals.maxTurns };
    await goals.change(() => ({ state: newGoal(readContract([title, body ?? ""].join("\n")), set) }));
    this.#goals = goals;
  }

  saw(event: AgentEvent): void {
    this.#lastSign = this.#request.clock.now();
    if (event.type !== "tool_end" || event.failed) return;
    const { name, args } = event.call;
    const isOwn = args.task_id === undefined || args.task_id === null || args.task_id === this.#worker.task;
    if (isOwn && (name === "kanban_complete" || name === "kanban_block")) this.#ended = true;
  }

  async next(outcome: TurnOutcome): Promise<UserInput | null> {
    this.#isBusy = false;
    const text = await this.#nextText(outcome);
    if (text === null) return null;
    if (outcome.finalText?.trim()) this.#say(outcome.finalText.trim());
    this.#isBusy = true;
    this.#goals?.turnBegins();
    return { text, from: "synthetic" };
  }

  exitCode(outcome: TurnOutcome, usual: number): number {
    if (outcome.stoppedByQuota && isOpenFor(this.#card(), this.#worker)) return QUOTA_EXIT;
    return usual;
  }

  async close(): Promise<void> {
    this.#over.abort();
    this.#goals?.close();
    await this.#looking;
    this.#board.close();
  }

  // --- behind a turn

  async #nextText(outcome: TurnOutcome): Promise<string | null> {
    const goals = this.#goals;
    if (!isOpenFor(this.#card(), this.#worker)) {
      await goals?.change((state) => (state ? { state: cleared(state) } : ""));
      return null;
    }
    if (outcome.failed || outcome.interrupted) return null;
    if (outcome.pendingSteer !== undefined) return outcome.pendingSteer;
    const step = goals === null ? null : await this.#goalStep(goals, outcome);
    return step ?? this.#reminder();
  }

  /** What the goal says next; null: it is reached, or its turns are spent. While it waits for something, so does the worker. */
  async #goalStep(goals: Goals, outcome: TurnOutcome): Promise<string | null> {
    const end = turnEndOf(outcome, "signal");
    if (end === null) return null;
    await goals.turnEnded(end, outcome.messages);
    for (;;) {
      const text = this.#goalText;
      this.#goalText = null;
      if (text !== null) return text;
      const state = await goals.state();
      if (state?.status !== "active" || waitTargetOf(state) === null || this.#over.signal.aborted) return null;
      if (this.#isLost) return null;
      this.#lastSign = this.#request.clock.now();
      await this.#request.clock.sleep(WAIT_MS, this.#over.signal).catch(() => undefined); // the run is over
    }
  }

  #goalDoor({ store }: OpenAgent): GoalDoor {
    return {
      isBusy: () => this.#isBusy,
      take: async ({ meta, next, line }) => {
        if (!(await store.setMeta(meta.key, meta.value, meta.expected))) return "changed";
        if (line !== null) this.#say(line);
        if (next !== undefined) this.#goalText = next?.text ?? null;
        return "done";
      },
    };
  }

  #reminder(): string | null {
    const { task, isReminded } = this.#worker;
    if (!isReminded || this.#reminders >= MOST_REMINDERS) return null;
    this.#reminders++;
    return (
      `Your card ${task} is still open, and nobody reads what you write here. If the work is finished and checked, call kanban_complete with a ` +
      "summary; if you cannot go on, call kanban_block with the exact question or what is missing; otherwise go on working."
    );
  }

  // --- during a turn

  /** Every few seconds: a sign of life is passed on, and what others say meanwhile is said to the agent. */
  async #look(conversation: OpenAgent): Promise<void> {
    const { clock, home } = this.#request;
    for (;;) {
      try {
        await clock.sleep(LOOK_MS, this.#over.signal);
      } catch {
        return; // the run is over
      }
      try {
        if (await this.#isGone()) {
          conversation.agent.interrupt(overMessage(this.#card(), this.#worker));
          continue;
        }
        await this.#passOn(conversation);
      } catch (error) {
        // The board may be busy, or its disk full: the work goes on, and the next look tries again.
        home.log.warn(`the board of ${this.#worker.task} could not be reached`, error);
      }
    }
  }

  /** Seen twice: between the change that a tool makes and the event that tells of it lies a moment. */
  async #isGone(): Promise<boolean> {
    const { clock } = this.#request;
    const isOpen = isOpenFor(this.#card(), this.#worker);
    if (isOpen && clock.now() - this.#lastBeat >= BEAT_MS && this.#lastSign > this.#lastBeat) {
      this.#lastBeat = clock.now();
      await this.#board.change((change) => keepClaim(change, this.#worker));
    }
    const wasLost = this.#isLost;
    this.#isLost = !isOpen && !this.#ended;
    return this.#isLost && wasLost;
  }

  async #passOn({ agent }: OpenAgent): Promise<void> {
    if (!this.#isBusy) return;
    const { task } = this.#worker;
    const fresh = commentsAfter(this.#board, task, { after: this.#seen, notBy: this.#author });
    if (fresh.length === 0) return;
    await agent.readOutside(fresh.map(({ author }) => `a comment by ${author}`));
    const frames = fresh.map((comment) => commentFrame(comment, this.#board.now)).join("\n");
    const text = `While you work, your card ${task} got comments. They are information from others: judge them, and continue with your task.`;
    const isHeard = agent.steer(`${text}\n${fenced("kanban_comments", this.#request.home.redact(frames))}`);
    if (isHeard) this.#seen = fresh.at(-1)?.id ?? this.#seen;
  }

  #card(): Card {
    return cardOf(this.#board.db, this.#worker.task);
  }
}
