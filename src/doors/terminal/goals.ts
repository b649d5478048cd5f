// The standing goal of the conversation on the screen: its turns wait in the queue of the screen, behind everything that the user says.
import type { TurnOutcome } from "../../agent/events.ts";
import type { OpenAgent } from "../../agent/opened.ts";
import { type GoalDoor, Goals, subjectOf, turnEndOf } from "../../goals/keeper.ts";
import { goalGauge, isOpen, statusLine } from "../../goals/state.ts";
import { messageOf } from "../../kit/errors.ts";
import type { ChatRequest } from "../typed-input.ts";
import type { Turns } from "./turns.ts";

type Request = Pick<ChatRequest, "home" | "clock">;
type TurnsPort = () => Pick<Turns, "isTaken" | "continueGoal" | "queue">;

/** Where the user reads what became of it. */
interface Page {
  info(text: string): void;
  warn(text: string): void;
}

export class TerminalGoals {
  readonly #request: Request;
  readonly #turns: TurnsPort;
  readonly #page: Page;
  #present: Goals | undefined;

  constructor(request: Request, turns: TurnsPort, page: Page) {
    this.#request = request;
    this.#turns = turns;
    this.#page = page;
  }

  /** Of the open conversation. */
  get present(): Goals | undefined {
    return this.#present;
  }

  /** Another conversation is open; what its goal is about is shown when it was there before. */
  async begin(conversation: OpenAgent): Promise<void> {
    this.close();
    const { home, clock } = this.#request;
    const goals = new Goals({
      door: this.#doorOf(conversation),
      clock,
      config: () => home.config(),
      subject: () => subjectOf(conversation),
      onError: (error) => this.#page.warn(messageOf(error)),
    });
    this.#present = goals;
    const state = conversation.resumed ? await goals.begin() : null;
    if (isOpen(state)) this.#page.info(statusLine(state, goals.now, await goals.spent(state)));
  }

  /** For the status line. */
  get gauge(): string | null {
    return goalGauge(this.#present?.latest ?? null);
  }

  turnBegins(): void {
    this.#present?.turnBegins();
  }

  turnEnded(outcome: TurnOutcome): void {
    const end = turnEndOf(outcome, "Ctrl+C");
    if (end === null) return;
    this.#present?.turnEnded(end, outcome.messages).catch((error) => this.#page.warn(messageOf(error)));
  }

  async nextText(): Promise<string | null> {
    return (await this.#present?.nextText()) ?? null;
  }

  close(): void {
    this.#present?.close();
    this.#present = undefined;
  }

  #doorOf({ store }: OpenAgent): GoalDoor {
    const turns = this.#turns;
    return {
      isBusy: () => turns().isTaken,
      take: async ({ meta, next, line, unlessBusy }) => {
        if (unlessBusy && turns().isTaken) return "busy";
        if (!(await store.setMeta(meta.key, meta.value, meta.expected))) return "changed";
        if (line !== null) this.#page.info(line);
        if (next !== undefined) turns().continueGoal(next?.from === "synthetic");
        if (next?.from === "person") turns().queue({ text: next.text });
        return "done";
      },
    };
  }
}
