// One conversation in an editor: prompts one after another, each resolved with its own turn, whatever is cancelled, loaded or closed meanwhile.
import type { ContentBlock, PromptResponse, SessionUpdate, StopReason } from "@agentclientprotocol/sdk";
import type { AgentEvent, TurnOutcome } from "../../agent/events.ts";
import type { OpenAgent } from "../../agent/opened.ts";
import type { Logger } from "../../home/log.ts";
import { messageOf } from "../../kit/errors.ts";
import type { HistoryMessage, UserInput } from "../../llm/messages.ts";
import type { EndReason } from "../../sessions/store.ts";
import { CallGoals } from "../call-goals.ts";
import { withReferences } from "../typed-input.ts";
import { type CommandRun, type CommandWorld, EditorCommands } from "./commands.ts";
import type { Permissions } from "./permissions.ts";
import { type EditorPrompt, readPrompt } from "./prompt.ts";
import { message, type Updates } from "./updates.ts";

interface SessionPorts {
  readonly id: string;
  readonly world: CommandWorld;
  readonly updates: Updates;
  readonly permissions: Permissions;
  readonly log: Logger;
  /** Resolves when it is written; rejects when the client is gone. */
  send(update: SessionUpdate): Promise<void>;
  /** Opens another conversation in the place of this one, or the same again. */
  open(how: OpenHow): Promise<OpenAgent>;
  /** Asked once, before the first prompt. True: the folder is trusted now and was not before. */
  trustsNow(signal: AbortSignal): Promise<boolean>;
  /** The model is another one, and no call of the client made it so. */
  changed(): Promise<void>;
}

/** `model`: another than the settings or the stored conversation name. */
export type OpenHow =
  | { readonly type: "again" }
  | {
      readonly type: "new" | "resume";
      readonly id: string;
      readonly model?: string | undefined;
      readonly provider?: string | undefined;
    };

interface Waiting {
  readonly read: Promise<EditorPrompt>;
  readonly over: AbortController;
  /** Its turn is over. */
  readonly ended: Promise<void>;
  settle(reason: StopReason | Error): void;
}

export class EditorSession {
  readonly id: string;
  readonly #ports: SessionPorts;
  readonly #commands: EditorCommands;
  #opened: OpenAgent;
  #goals: CallGoals;
  readonly #waiting: Waiting[] = [];
  #current: Waiting | null = null;
  /** Commands that answer right now. */
  readonly #answering = new Set<AbortController>();
  #pumping: Promise<void> = Promise.resolve();
  #isPumping = false;
  #closed = false;
  #isFirst = true;
  /** What happened in the background since the last prompt: the model hears of it with the next one. */
  #notes: string[] = [];

  constructor(opened: OpenAgent, ports: SessionPorts) {
    this.id = ports.id;
    this.#ports = ports;
    this.#opened = opened;
    this.#goals = this.#goalsOf(opened);
    this.#commands = new EditorCommands({
      world: ports.world,
      conversation: () => this.#opened,
      goals: () => this.#goals.goals,
      isBusy: () => this.#isPumping,
      permissions: ports.permissions,
      say: (text) => ports.send(message(text)).catch(() => undefined), // the client is gone: so is whoever asked
      replace: (how) => this.#replace(how),
      stop: () => this.#interrupt(),
    });
    this.#follow(opened);
  }

  get conversation(): OpenAgent {
    return this.#opened;
  }

  /** Resolves when the turn of this very prompt has ended. `gone` is the client that takes its request back. */
  async prompt(blocks: readonly ContentBlock[], gone: AbortSignal): Promise<PromptResponse> {
    if (this.#closed) return { stopReason: "cancelled" };
    const typed = this.#commands.find(blocks);
    if (typed === null) return { stopReason: await this.#enqueue(readPrompt(blocks), gone) };
    const over = new AbortController();
    const stop = () => over.abort();
    gone.addEventListener("abort", stop, { once: true });
    this.#answering.add(over);
    let run: CommandRun;
    try {
      run = await this.#commands.run(typed, over.signal);
    } finally {
      this.#answering.delete(over);
      gone.removeEventListener("abort", stop);
    }
    // A prompt that runs goes on with the goal by itself.
    const becomes: UserInput | null = run.becomes ?? (this.#current === null ? await this.#goals.next() : null);
    if (over.signal.aborted) return { stopReason: "cancelled" };
    if (becomes === null) return { stopReason: "end_turn" };
    // A command that speaks to the model is a prompt like any other, with the pictures it came with.
    const { text } = becomes;
    const read = readPrompt(blocks.filter(({ type }) => type !== "text")).then(({ input, problems }) => {
      const said = [text, input.text].filter((part) => part !== "").join("\n");
      return { typed: text, problems, input: { ...becomes, ...input, text: said } };
    });
    return { stopReason: await this.#enqueue(read, gone) };
  }

  /** Ends the running prompt and everything that waits behind it. */
  cancel(): void {
    for (const over of this.#answering) over.abort();
    for (const waiting of this.#waiting.splice(0)) waiting.settle("cancelled");
    this.stopTurn();
    this.#opened.agent.interrupt("cancelled in the editor"); // a compression has no prompt
  }

  /** Nothing of it runs any more. */
  async idle(): Promise<void> {
    await this.#pumping;
  }

  /** The whole of what was said, in the order it was said. */
  async replay(history: readonly HistoryMessage[]): Promise<void> {
    for (const update of this.#ports.updates.replayed(history)) await this.#ports.send(update);
  }

  /** Another conversation takes the place of this one; the editor knows it by the same id. */
  async #replace(how: Exclude<OpenHow, { type: "again" }>): Promise<void> {
    const before = this.#opened;
    await this.#pumping;
    const next = await this.#ports.open(how);
    await before.close(how.type === "new" ? "new_session" : "resumed_other", how.id);
    this.#take(next);
    await this.#ports.changed();
  }

  async close(reason: EndReason = "agent_close"): Promise<void> {
    this.#closed = true;
    this.cancel();
    await this.#pumping;
    this.#goals.close();
    await this.#opened.close(reason);
  }

  #take(opened: OpenAgent): void {
    this.#goals.close();
    this.#opened = opened;
    this.#goals = this.#goalsOf(opened);
    this.#isFirst = true;
    this.#follow(opened);
  }

  #goalsOf(opened: OpenAgent): CallGoals {
    const { world, send, log } = this.#ports;
    return new CallGoals(opened, {
      clock: world.clock,
      config: () => world.home.config(),
      userWaits: () => this.#waiting.length > 0,
      tell: (line) => send(message(`\n\n${line}\n\n`)).catch(() => undefined), // the client is gone: nobody reads it
      onError: (error) => log.warn("the goal of a conversation in an editor could not be looked after", error),
    });
  }

  /** What waits behind it goes on. */
  stopTurn(): void {
    this.#current?.over.abort();
  }

  async #interrupt(): Promise<void> {
    const running = this.#current;
    this.stopTurn();
    await running?.ended;
  }

  #enqueue(read: Promise<EditorPrompt>, gone: AbortSignal): Promise<StopReason> {
    const { promise, resolve, reject } = Promise.withResolvers<StopReason>();
    read.catch(() => undefined); // reported when its turn comes
    const waiting: Waiting = {
      read,
      over: new AbortController(),
      ended: promise.then(
        () => undefined,
        () => undefined, // whoever sent the prompt is told
      ),
      settle: (reason) => (reason instanceof Error ? reject(reason) : resolve(reason)),
    };
    const leave = () => {
      const at = this.#waiting.indexOf(waiting);
      if (at >= 0) this.#waiting.splice(at, 1);
      waiting.over.abort();
      if (at >= 0) waiting.settle("cancelled");
    };
    if (gone.aborted) return Promise.resolve("cancelled");
    gone.addEventListener("abort", leave, { once: true });
    this.#waiting.push(waiting);
    this.#goals.userSpoke();
    if (!this.#isPumping) this.#pumping = this.#pump();
    return promise.finally(() => gone.removeEventListener("abort", leave));
  }

  async #pump(): Promise<void> {
    this.#isPumping = true;
    for (let next = this.#waiting.shift(); next; next = this.#waiting.shift()) {
      this.#current = next;
      try {
        next.settle(await this.#turn(next));
      } catch (error) {
        next.settle(error instanceof Error ? error : new Error(messageOf(error)));
      } finally {
        this.#current = null;
      }
    }
    this.#isPumping = false;
  }

  async #turn({ read, over }: Waiting): Promise<StopReason> {
    const { signal } = over;
    const { input, problems } = await read;
    if (signal.aborted) return "cancelled";
    await this.#begin(signal);
    for (const problem of problems) await this.#notice(problem);
    const expanded = await withReferences(input, this.#opened, {
      note: () => undefined,
      warn: (text) => void this.#notice(text).catch(() => undefined), // the turn ends by itself when the client is gone
    });
    if (signal.aborted) return "cancelled";
    if (expanded === null || (expanded.text === "" && !expanded.parts?.length)) return "end_turn";
    let next = (await this.#goals.isWanted(expanded)) ? this.#withNotes(expanded) : null;
    let reason: StopReason = "end_turn";
    while (next !== null) {
      const outcome: TurnOutcome = await this.#run(next, signal);
      reason = stopReason(outcome);
      // What was steered too late is the next thing said, before the goal's next turn.
      const late = signal.aborted ? undefined : outcome.pendingSteer;
      next = late === undefined ? await this.#goals.after(outcome, signal, "in the editor") : { text: late };
    }
    return signal.aborted ? "cancelled" : reason;
  }

  async #run(input: UserInput, signal: AbortSignal): Promise<TurnOutcome> {
    const { updates } = this.#ports;
    for await (const event of this.#opened.agent.run(input, { signal })) {
      if (event.type === "ask") void this.#ports.permissions.answer(event.request);
      for (const update of updates.live(event)) await this.#ports.send(update);
      if (event.type === "done") return event.outcome;
    }
    throw new Error("the turn ended without a result");
  }

  /** Before the first prompt: what the user should see once. */
  async #begin(signal: AbortSignal): Promise<void> {
    if (!this.#isFirst) return;
    this.#isFirst = false;
    if (await this.#ports.trustsNow(signal)) {
      // What the folder brings along is loaded when a conversation is opened.
      const before = this.#opened;
      await before.close("agent_close");
      this.#take(await this.#ports.open({ type: "again" }));
      this.#isFirst = false;
    }
    for (const note of this.#opened.notes) await this.#notice(note);
    const goal = await this.#goals.begin();
    if (goal !== null && this.#opened.resumed) await this.#notice(goal);
  }

  async #notice(text: string): Promise<void> {
    for (const update of this.#ports.updates.notice(text, "info")) await this.#ports.send(update);
  }

  #withNotes(input: UserInput): UserInput {
    const notes = this.#notes.splice(0);
    return notes.length === 0 ? input : { ...input, note: notes.join("\n\n") };
  }

  /** What happens beside the turns: titles, reviews, background processes. */
  #follow(opened: OpenAgent): void {
    void this.#listen(opened).catch((error) =>
      this.#ports.log.debug("the editor no longer reads this conversation", error),
    );
  }

  async #listen(opened: OpenAgent): Promise<void> {
    for await (const event of opened.agent.notices) {
      if (opened !== this.#opened) continue;
      await this.#beside(event);
    }
  }

  async #beside(event: AgentEvent): Promise<void> {
    if (event.type === "notice" && event.kind === "process") {
      this.#notes.push(event.text);
      return;
    }
    if (event.type === "notice") return this.#notice(event.text);
    if (event.type === "session" && event.reason === "switched") return this.#ports.changed();
    for (const update of this.#ports.updates.live(event)) await this.#ports.send(update);
  }
}

function stopReason({ interrupted, exitReason }: TurnOutcome): StopReason {
  if (interrupted) return "cancelled";
  if (/^(?:max_iterations_reached|budget_exhausted)/.test(exitReason)) return "max_turn_requests";
  if (exitReason === "content_policy_blocked") return "refusal";
  return exitReason === "truncated_response" ? "max_tokens" : "end_turn";
}
