// Runs turns one after another and decides what a message means while one is running.
import type { AgentEvent, TurnOutcome } from "../../agent/events.ts";
import type { UserInput } from "../../llm/messages.ts";
import { carriesPictures } from "../typed-input.ts";

export type BusyMode = "interrupt" | "queue" | "steer";

/** What a conversation offers to whoever drives it. */
export interface Speaker {
  run(input: UserInput): AsyncIterable<AgentEvent>;
  interrupt(reason?: string): void;
  steer(text: string): boolean;
  /** Sub-agents at work for the running turn. */
  readonly activeChildren?: number;
}

interface TurnsOptions {
  speaker(): Speaker;
  busyMode(): BusyMode;
  onEvent(event: AgentEvent): void;
  /** A turn begins or ends, or the queue changes. */
  onChange(): void;
  onError(error: unknown): void;
  /** The turn ended before it began: the message is the user's again. */
  onUnsent(input: UserInput): void;
  /** The standing goal of the conversation. */
  readonly goals?: GoalTurns;
}

/** What a goal hears of turns, and what it gives. */
interface GoalTurns {
  turnBegins(): void;
  turnEnded(outcome: TurnOutcome): void;
  /** What the agent is told next; null when the goal wants no further turn. */
  nextText(): Promise<string | null>;
}

export class Turns {
  readonly #options: TurnsOptions;
  #waiting: UserInput[] = [];
  /** The message that interrupted the running turn; further ones join it. */
  #interrupting: UserInput | null = null;
  #running: Promise<void> | null = null;
  #isPlaying = false;
  /** The goal has a turn coming, after everything that waits. */
  #goalWaits = false;
  #held: UserInput | null = null;

  constructor(options: TurnsOptions) {
    this.#options = options;
  }

  get busy(): boolean {
    return this.#running !== null;
  }

  /** A turn is being played, or somebody's message waits for its own. */
  get isTaken(): boolean {
    return this.#isPlaying || this.#waiting.length > 0;
  }

  get waiting(): readonly string[] {
    return this.#waiting.map(queuedText);
  }

  /** The message that is not sent yet because another process works on the conversation. */
  get held(): string | null {
    return this.#held && queuedText(this.#held);
  }

  /** The user pressed Enter. Returns what became of the message. */
  say(input: UserInput): "started" | "interrupting" | "queued" | "steered" {
    if (!this.busy) {
      this.#enqueue(input);
      return "started";
    }
    const mode = this.#options.busyMode();
    // A tool result carries text alone.
    if (mode === "steer" && !carriesPictures(input) && this.#options.speaker().steer(input.text)) return "steered";
    // A message should not discard the work of several sub-agents.
    const childrenWork = (this.#options.speaker().activeChildren ?? 0) > 0;
    if (mode !== "interrupt" || childrenWork) {
      this.#enqueue(input);
      return "queued";
    }
    this.#interrupt(input);
    return "interrupting";
  }

  /** Waits its turn, whatever the mode. */
  queue(input: UserInput): void {
    this.#enqueue(input);
  }

  /** The goal wants its next turn, or none any more. */
  continueGoal(wanted: boolean): void {
    this.#goalWaits = wanted;
    if (wanted) this.#start();
  }

  /** Takes the newest waiting message back, to be changed; null when none waits. */
  takeBack(): UserInput | null {
    const last = this.#waiting.findLastIndex((input) => input.from !== "synthetic");
    if (last === -1) return null;
    const [input] = this.#waiting.splice(last, 1);
    if (input === this.#interrupting) this.#interrupting = null;
    this.#options.onChange();
    return input ?? null;
  }

  /** What waits, in the order in which it will be sent. */
  get queued(): readonly UserInput[] {
    return this.#waiting;
  }

  /** Takes one message out of the queue; false when it was sent already. */
  remove(input: UserInput): boolean {
    const kept = this.#waiting.filter((one) => one !== input);
    const removed = kept.length < this.#waiting.length;
    this.#waiting = kept;
    if (input === this.#interrupting) this.#interrupting = null;
    this.#options.onChange();
    return removed;
  }

  /** Changes places with its neighbour. */
  move(input: UserInput, by: -1 | 1): void {
    const from = this.#waiting.indexOf(input);
    const to = from + by;
    if (from === -1 || to < 0 || to >= this.#waiting.length) return;
    this.#waiting = this.#waiting.toSpliced(from, 1).toSpliced(to, 0, input);
    this.#options.onChange();
  }

  /** Stops the running turn and sends this one next. */
  sendNow(input: UserInput): void {
    if (!this.#waiting.includes(input)) return;
    this.#waiting = [input, ...this.#waiting.filter((one) => one !== input)];
    this.#interrupting = input;
    this.#options.onChange();
    this.#options.speaker().interrupt("the user sent a queued message now");
  }

  dropQueue(): number {
    const dropped = this.#waiting.length;
    this.#waiting = [];
    this.#goalWaits = false;
    this.#interrupting = null;
    this.#options.onChange();
    return dropped;
  }

  /** Resolves when nothing runs and nothing waits. */
  async idle(): Promise<void> {
    while (this.#running) await this.#running;
  }

  /** What interrupts comes before everything that was queued. */
  #interrupt(said: UserInput): void {
    const earlier = this.#interrupting;
    const input = earlier ? joined(earlier, said) : said;
    this.#waiting = [input, ...this.#waiting.filter((one) => one !== earlier)];
    this.#interrupting = input;
    this.#options.onChange();
    this.#options.speaker().interrupt("the user sent a new message");
  }

  #enqueue(input: UserInput): void {
    this.#waiting.push(input);
    this.#options.onChange();
    this.#start();
  }

  #start(): void {
    this.#running ??= this.#drain().finally(() => {
      this.#running = null;
      this.#options.onChange();
    });
  }

  async #drain(): Promise<void> {
    const { goals } = this.#options;
    for (;;) {
      const next = this.#waiting.shift() ?? (await this.#goalTurn());
      if (next === undefined) return;
      this.#interrupting = null;
      this.#isPlaying = true;
      goals?.turnBegins();
      this.#options.onChange();
      let outcome: TurnOutcome | null = null;
      try {
        let begun = false;
        for await (const event of this.#options.speaker().run(next)) {
          begun ||= event.type === "turn_start" || event.type === "done";
          if (begun) this.#held = null;
          else if (event.type === "status" && event.kind === "waiting") this.#held = next;
          this.#options.onEvent(event);
          if (event.type !== "done") continue;
          outcome = event.outcome;
          if (event.outcome.unsent) this.#handBack(next);
          if (event.outcome.pendingSteer) this.#waiting.unshift({ text: event.outcome.pendingSteer });
        }
      } catch (error) {
        this.#options.onError(error);
      } finally {
        this.#held = null;
        this.#isPlaying = false;
      }
      if (outcome) goals?.turnEnded(outcome);
    }
  }

  /** What was said while the goal was looked at comes first. */
  async #goalTurn(): Promise<UserInput | undefined> {
    if (!this.#goalWaits) return undefined;
    const text = (await this.#options.goals?.nextText()) ?? null;
    const said = this.#waiting.shift();
    // It may have been dropped meanwhile.
    if (said || text === null || !this.#goalWaits) {
      if (text === null) this.#goalWaits = false;
      return said;
    }
    this.#goalWaits = false;
    return { text, from: "synthetic" };
  }

  /** What interrupted it goes out with it; otherwise the user decides. */
  #handBack(input: UserInput): void {
    const next = this.#interrupting;
    if (input.from === "synthetic") return void (next && this.#waiting.push(input));
    if (next === null) return this.#options.onUnsent(input);
    const both = joined(input, next);
    this.#waiting = this.#waiting.map((one) => (one === next ? both : one));
    this.#interrupting = both;
  }
}

/** Two messages as one. */
function joined(one: UserInput, other: UserInput): UserInput {
  const join = (...texts: string[]) => texts.filter((text) => text !== "").join("\n");
  const parts = [...(one.parts ?? []), ...(other.parts ?? [])];
  return {
    ...one,
    text: join(one.text, other.text),
    ...(one.persistText === undefined ? {} : { persistText: join(one.persistText, shownText(other)) }),
    ...(parts.length === 0 ? {} : { parts }),
  };
}

/** A message on one line of what waits. */
export function queuedText(input: UserInput): string {
  const pictures = input.parts?.length ?? 0;
  return [shownText(input), ...(pictures === 0 ? [] : [`[📎 ${pictures}]`])].filter((part) => part !== "").join(" ");
}

export const shownText = ({ persistText, text }: UserInput) => persistText ?? text;
