// The standing goal of a conversation whose turns are played while somebody's call is open: a prompt of an editor, a stream of
// the API. The call goes on with the goal's turns; between calls the goal rests, as nobody would see them.
import type { TurnOutcome } from "../agent/events.ts";
import type { OpenAgent } from "../agent/opened.ts";
import { type GoalDoor, type GoalStep, Goals, subjectOf, turnEndOf } from "../goals/keeper.ts";
import { isOpen, statusLine } from "../goals/state.ts";
import type { Config } from "../home/config/schema.ts";
import type { Clock } from "../kit/clock.ts";
import type { UserInput } from "../llm/messages.ts";

interface CallGoalsPorts {
  readonly clock: Clock;
  config(): Config;
  /** A message of the person waits for its turn. */
  userWaits(): boolean;
  /** Shows what became of the goal, behind everything that was said before. Never rejects. */
  tell(line: string): Promise<void>;
  onError(error: unknown): void;
}

export class CallGoals {
  readonly goals: Goals;
  readonly #ports: CallGoalsPorts;
  #next: GoalStep["next"] = null;
  /** A turn of an open call has ended, and it is not yet known whether another follows. */
  #isBetween = false;

  constructor(conversation: OpenAgent, ports: CallGoalsPorts) {
    this.#ports = ports;
    const { clock, config, onError } = ports;
    const subject = () => subjectOf(conversation);
    this.goals = new Goals({ door: this.#doorOf(conversation), clock, config, subject, onError });
  }

  /** The conversation is spoken in for the first time since it was opened. Resolves to where its goal is, if it has one. */
  async begin(): Promise<string | null> {
    const { goals } = this;
    const state = await goals.begin();
    return isOpen(state) ? statusLine(state, goals.now, await goals.spent(state)) : null;
  }

  /** The person said something: a judgement that is under way is too late. */
  userSpoke(): void {
    this.goals.turnBegins();
  }

  /**
   * After each turn of a call. Resolves to the goal's next turn when it is judged and the goal wants one and nobody said anything
   * meanwhile. `stop` is the call's: a goal whose call is stopped is paused, `how` says by what.
   */
  async after(outcome: TurnOutcome, stop: AbortSignal, how: string): Promise<UserInput | null> {
    const stopped = { interrupted: `user-interrupted (${how})`, failed: null };
    const end = stop.aborted ? stopped : turnEndOf(outcome, how);
    if (end === null) return this.#drop();
    const late = () => this.goals.turnBegins();
    stop.addEventListener("abort", late, { once: true });
    this.#isBetween = true;
    try {
      await this.goals.turnEnded(end, outcome.messages);
      const next = this.#ports.userWaits() || stop.aborted ? null : await this.next();
      // Stopped while the judge was asked, or right behind its verdict.
      if (stop.aborted && end !== stopped) await this.goals.turnEnded(stopped, outcome.messages);
      return stop.aborted ? null : next;
    } finally {
      this.#isBetween = false;
      stop.removeEventListener("abort", late);
    }
  }

  /** What a command of the goal, or its judge, wants to have said to the agent now; the goal may have changed its mind since. */
  async next(): Promise<UserInput | null> {
    const next = this.#next;
    this.#drop();
    if (!next) return null;
    if (next.from === "person") return { text: next.text };
    const text = await this.goals.nextText();
    return text === null ? null : { text, from: "synthetic" };
  }

  /** Whether what waited is still to be said: the goal may have been paused or cleared since. */
  async isWanted({ from }: UserInput): Promise<boolean> {
    return from !== "synthetic" || (await this.goals.nextText()) !== null;
  }

  close(): void {
    this.goals.close();
  }

  #drop(): null {
    this.#next = null;
    return null;
  }

  #doorOf({ store }: OpenAgent): GoalDoor {
    // Without a call that waits for it, a goal is not woken either: its next turn would be seen by nobody.
    const isBusy = () => !this.#isBetween || this.#ports.userWaits();
    return {
      isBusy,
      take: async ({ meta, next, line, unlessBusy }) => {
        if (unlessBusy && isBusy()) return "busy";
        if (!(await store.setMeta(meta.key, meta.value, meta.expected))) return "changed";
        if (next !== undefined) this.#next = next;
        if (line !== null) await this.#ports.tell(line);
        return "done";
      },
    };
  }
}
