// One turn, from the user's words to the model's answer.

import { joinSignals, withGrace } from "../kit/clock.ts";
import { messageOf } from "../kit/errors.ts";
import type { AssistantMessage, HistoryMessage, UserInput } from "../llm/messages.ts";
import { holderInWords } from "../sessions/lanes.ts";
import { LaneMovedError, StoreError } from "../sessions/store.ts";
import { type Asked, type Asking, answerAtLimit, askModel, showFinalText } from "./ask-model.ts";
import { type Conversation, inUseSentence, type OwnLane } from "./conversation.ts";
import type { TurnOutcome } from "./events.ts";
import type { Cause } from "./fallback.ts";
import type { Verdict } from "./judge.ts";
import {
  type Ending,
  failedEnding,
  haltedEnding,
  interruptedEnding,
  interruptedWaiting,
  makeOutcome,
  withoutMessage,
} from "./outcome.ts";
import { offerToKeep } from "./pasted-keys.ts";
import { emptyAnswerDelayMs, failureEnding, keepRefused, pause, rescueFromOverflow } from "./recovery.ts";
import { closeInterruptedToolSequence, stubResult, unansweredCalls } from "./repair.ts";
import { formatSteer, steerLast } from "./steer.ts";
import { describedUser, type Entry, recallFor, storeUserMessage, type UserEntry } from "./transcript.ts";
import { equipTurn, type TurnKit, type TurnOptions, WithdrawnError } from "./turn-kit.ts";
import { noRoomToTalk } from "./usage-meter.ts";

const MAX_DEFECTS = 3;
/** Ends that another model may turn into an answer. */
const MOVES_ON: Readonly<Record<string, string>> = {
  empty_response_exhausted: "it kept returning empty answers",
  content_policy_blocked: "it refused the request",
};
/** Tools that read files of this machine, and change nothing. */
const LOOKS: ReadonlySet<string> = new Set(["read_file", "search_files", "skill_view", "skills_list"]);
const PREPARE_GRACE_MS = 250;
/** How long a turn that nobody watches waits for another process on its conversation. */
const LANE_WAIT_MS = 30_000;

/** Plays one turn to its end. Never rejects: a turn that cannot even begin ends as a failed one. */
export async function playTurn(
  conversation: Conversation,
  input: UserInput,
  options: TurnOptions,
): Promise<TurnOutcome> {
  const before = (ending: Ending) => makeOutcome(conversation, ending, { apiCalls: 0, withinBudget: true });
  try {
    const lane = await takeLane(conversation, options);
    if (lane.type === "end") return { ...before(lane), unsent: true };
    const { signal, release } = joinSignals(options.signal, lane.lost);
    try {
      return await playHeld(conversation, input, { ...options, signal, lease: lane.lease });
    } finally {
      release();
      await lane.release();
    }
  } catch (error) {
    if (error instanceof WithdrawnError) return { ...before(withdrawn()), unsent: true };
    return before(brokenEnding(conversation, error));
  }
}

const withdrawn = () => interruptedEnding("withdrawn", "The message was withdrawn, or waits for another turn.");

async function playHeld(conversation: Conversation, input: UserInput, options: TurnOptions): Promise<TurnOutcome> {
  await conversation.beginTurn();
  await conversation.nudges.turnStarts(input);
  options.emit({ type: "turn_start", input });
  await conversation.fallback.beginTurn(options.emit);
  const turn = new Turn(conversation, await openMessage(conversation, input, options), options);
  const outcome = await turn.play(input).finally(() => conversation.transcript.writeHeld());
  await conversation.nudges.turnEnds();
  return outcome;
}

/** The message of the turn, on disk. */
async function openMessage(conversation: Conversation, input: UserInput, options: TurnOptions): Promise<UserEntry> {
  const { record, lease, continues } = options;
  if (continues !== undefined) {
    await conversation.transcript.closeCrashedCalls();
    const user = await conversation.transcript.continueTurn(continues);
    if (user) return user;
    throw new WithdrawnError("nothing is left to continue with");
  }
  if (!record || !lease) return storeUserMessage(conversation, input);
  return storeUserMessage(conversation, input, (sessionId, rows) => record.begin(sessionId, rows, lease));
}

/** A person may wait for another process as long as they like; whoever else asks gets an answer soon. */
async function takeLane(
  conversation: Conversation,
  { signal, interactive, emit }: TurnOptions,
): Promise<OwnLane | Ending> {
  const { clock } = conversation.assembly;
  try {
    const lane = await conversation.hold({
      ms: interactive ? Number.POSITIVE_INFINITY : LANE_WAIT_MS,
      clock,
      signal,
      onWait: ({ by }) =>
        emit({ type: "status", kind: "waiting", message: `${holderInWords(by)} is using this conversation; waiting` }),
    });
    if (lane.type === "taken") return lane;
    return failedEnding("conversation_in_use", inUseSentence(lane, "sent"));
  } catch (error) {
    if (!signal.aborted) throw error;
    return interruptedEnding("interrupted_by_user", "Operation interrupted: nothing was sent.");
  }
}

function brokenEnding({ assembly }: Conversation, error: unknown): Ending {
  if (error instanceof LaneMovedError) return interruptedEnding("conversation_moved", error.message);
  if (error instanceof WithdrawnError) return withdrawn();
  assembly.log.error("the turn could not go on", error);
  return failedEnding(error instanceof StoreError ? "store_failed" : "non_retryable_error", messageOf(error));
}

class Turn {
  readonly #conversation: Conversation;
  readonly #options: TurnOptions;
  readonly #kit: TurnKit;
  #user: UserEntry;
  /** Set once the message is ready to be sent. */
  #input: UserInput | null = null;
  #sessionId: string;
  #apiCalls = 0;
  #defects = 0;
  #freeScripts = 0;
  /** A model refused on grounds of policy in this turn. */
  #refused = false;
  #previousTools: readonly string[] = [];
  /** Refusals as too long since the last request that was answered. */
  #overflows = 0;
  /** The server said how much room is left for an answer. */
  #outputRoom: number | undefined;
  /** The history was replaced in this turn; the user's message is no longer the row it was. */
  #compressed = false;
  /** The row of a tool message that no request has carried yet: steering may still ride on it. */
  #freshTool: { readonly rowId: number | null } | null = null;

  constructor(conversation: Conversation, user: UserEntry, options: TurnOptions) {
    this.#conversation = conversation;
    this.#user = user;
    this.#options = options;
    this.#sessionId = conversation.transcript.sessionId;
    this.#kit = equipTurn(conversation, options);
  }

  /** Never rejects. When it resolves, the turn's last row is stored. */
  async play(input: UserInput): Promise<TurnOutcome> {
    try {
      const ready = await withGrace(this.#prepare(input), this.#options.signal, PREPARE_GRACE_MS);
      return await this.#close(ready.done ? await this.#loop() : this.#interrupted());
    } catch (error) {
      return await this.#outcome(brokenEnding(this.#conversation, error));
    }
  }

  async #prepare(input: UserInput): Promise<void> {
    const { run, ask, tools } = this.#kit;
    const { pastedKeys = [], emit } = this.#options;
    await offerToKeep(pastedKeys, this.#conversation.assembly, { ask, emit });
    await this.#conversation.assembly.events?.turnStarts?.({
      ...{ run, ask, history: this.#messages, text: input.persistText ?? input.text },
      callTool: (name, args) => tools.callOnBehalf(name, args),
    });
    if (this.#options.continues === undefined) {
      const pictures = await this.#picturesInWords(input);
      this.#user = await recallFor(this.#conversation, this.#user, input, { run, pictures });
      this.#input = input;
    }
    await this.#conversation.systemPrompt();
    for (const message of this.#conversation.assembly.prompt.takeWarnings?.() ?? []) {
      this.#options.emit({ type: "status", kind: "warn", message });
    }
  }

  async #picturesInWords(input: UserInput): Promise<readonly string[]> {
    if (!input.parts?.length || this.#conversation.takesImages) return [];
    const { picturesInWords } = await import("./picture-words.ts");
    return picturesInWords(this.#conversation, input, this.#options);
  }

  /** The server refused the pictures of this message, which nothing has followed yet: words take their place. */
  async #describePictures(): Promise<void> {
    const { transcript } = this.#conversation;
    if (this.#input === null || transcript.messages.at(-1)?.role !== "user" || this.#compressed) return;
    this.#user = await describedUser(transcript, this.#user, await this.#picturesInWords(this.#input));
  }

  async #loop(): Promise<Ending> {
    const { signal, budget, emit } = this.#options;
    const noRoom = await this.#noRoom();
    if (noRoom) return noRoom;
    await this.#keepWithin(() => this.#conversation.context.beforeTurn(this.#options));
    for (;;) {
      if (signal.aborted) return this.#interrupted();
      if (!budget.consume()) return answerAtLimit(this.#asking, this.#kit.judge, { apiCalls: this.#apiCalls, budget });
      this.#apiCalls++;
      emit({ type: "step", iteration: this.#apiCalls, max: budget.max, previousTools: this.#previousTools });
      try {
        const ending = await this.#iterate();
        if (ending) return ending;
        this.#defects = 0;
      } catch (error) {
        if (error instanceof StoreError) throw error;
        const ending = await this.#mend(error);
        if (ending) return ending;
      }
    }
  }

  /** Ask, judge, act. An ending, or null to go on. */
  async #iterate(): Promise<Ending | null> {
    await this.#followSession();
    await this.#deliverSteer();
    const { scaffold, outputCap } = this.#kit.judge;
    const { record, lease } = this.#options;
    if (this.#apiCalls === 1 && lease) await record?.asked(lease);
    this.#freshTool = null;
    const asked = await askModel(this.#asking, { scaffold, outputCap: this.#outputRoom ?? outputCap });
    if (asked.type === "interrupted") return interruptedWaiting(asked.seconds);
    if (asked.type === "failed") return this.#rescue(asked);
    this.#overflows = 0;
    this.#outputRoom = undefined;
    const verdict =
      asked.type === "lost" ? this.#kit.judge.judgeLost(asked) : this.#kit.judge.judge(asked, this.#messages);
    return this.#act(verdict, asked);
  }

  /** The session was compressed, here or by another process: it goes on under the tip's id, with the tip's prompt. */
  async #followSession(): Promise<void> {
    if (this.#conversation.transcript.sessionId === this.#sessionId) return;
    this.#sessionId = this.#conversation.transcript.sessionId;
    await this.#conversation.systemPrompt();
    this.#options.emit(await this.#conversation.describeSession("compressed"));
  }

  async #act(verdict: Verdict, asked: Asked): Promise<Ending | null> {
    const { emit } = this.#options;
    switch (verdict.type) {
      case "end":
        return this.#endOrMove(verdict);
      case "again":
        if (verdict.why) this.#reportRecovery(`${verdict.why}; asking again`);
        if (verdict.pause !== undefined) await pause(this.#asking, this.#emptyPause(verdict.pause));
        return null;
      case "rejected":
        this.#endText(verdict.message, asked, "interim");
        await this.#append([{ message: verdict.message }, ...verdict.results.map((message) => ({ message }))]);
        return null;
      case "calls": {
        this.#conversation.nudges.toolRound();
        for (const note of verdict.notes) emit({ type: "status", kind: "warn", message: note });
        this.#endText(verdict.message, asked, "interim");
        this.#previousTools = verdict.calls.map((call) => call.function.name);
        await this.#keepAsked({ message: verdict.message });
        await this.#appendResults(await this.#kit.tools.runBatch(verdict.calls));
        this.#giveBackScripts();
        const { halt } = this.#kit.guard;
        if (halt) return haltedEnding(halt);
        await this.#keepWithin(() => this.#conversation.context.afterTools(this.#options));
        return null;
      }
    }
  }

  /** On disk before it is acted on. Where that is nothing but a look at files, it goes there with what was seen. */
  async #keepAsked(entry: Entry): Promise<void> {
    const { assembly, transcript } = this.#conversation;
    const isWatched = assembly.events?.hasListeners("pre_tool_call") ?? false;
    if (!isWatched && this.#previousTools.every((name) => LOOKS.has(name))) transcript.appendWithNext([entry]);
    else await transcript.appendMidTurn([entry]);
  }

  /** A script does the work of many calls, so it is free; not for ever, or a turn of nothing but scripts would have no end. */
  #giveBackScripts(): void {
    const { budget } = this.#options;
    if (this.#freeScripts >= budget.max || !this.#previousTools.every((name) => name === "execute_code")) return;
    this.#freeScripts++;
    budget.refund();
  }

  async #appendResults(entries: readonly Entry[]): Promise<void> {
    const steer = this.#options.signal.aborted ? null : this.#conversation.steer.take();
    const told = steer === null ? entries : steerLast(entries, steer);
    const rowIds = told.length === 0 ? [] : await this.#conversation.transcript.appendMidTurn(told);
    this.#freshTool = { rowId: rowIds.at(-1) ?? null };
  }

  /** What the user said since the last result was written still reaches this request, if no request has carried that result. */
  async #deliverSteer(): Promise<void> {
    const last = this.#messages.at(-1);
    if (!this.#freshTool || last?.role !== "tool" || typeof last.content !== "string") return;
    const steer = this.#conversation.steer.take();
    if (steer === null) return;
    const sent = (last.api_content ?? last.content) + formatSteer(steer);
    await this.#conversation.transcript.amendLast(this.#freshTool.rowId, { ...last, api_content: sent });
  }

  // --- the window

  async #noRoom(): Promise<Ending | null> {
    const { model, assembly } = this.#conversation;
    const system = await this.#conversation.systemPrompt();
    return noRoomToTalk(model.target, { system, tools: assembly.tools.definitions });
  }

  /** Has the conversation shortened if need be, and goes on with what became of it. */
  async #keepWithin(shorten: () => Promise<unknown>): Promise<void> {
    const before = this.#messages;
    await shorten();
    if (this.#messages === before) return;
    this.#compressed = true;
    this.#freshTool = null;
    await this.#followSession();
  }

  /** A request that was too long is made shorter and sent again; everything else ends the turn. */
  async #rescue(asked: Extract<Asked, { type: "failed" }>): Promise<Ending | null> {
    const next = await rescueFromOverflow(asked.failure, {
      conversation: this.#conversation,
      attempt: this.#overflows + 1,
      pause: (ms) => pause(this.#asking, ms),
      report: (message) => this.#reportRecovery(message),
      shorten: async () => {
        let shorter = false;
        await this.#keepWithin(async () => {
          shorter = await this.#conversation.context.onOverflow(this.#overflows + 1, this.#options);
        });
        return shorter;
      },
    });
    if (next.type === "interrupted" || this.#options.signal.aborted) return this.#interrupted();
    if (next.type === "fail") return this.#moveOrFail(asked);
    if (next.type === "exhausted") return { ...(await this.#failed(asked)), compressionExhausted: true };
    this.#overflows++;
    this.#outputRoom = next.outputRoom;
    this.#options.budget.refund();
    return null;
  }

  // --- another model

  /** The next model of the chain takes over and begins with clean counters. False when none is left. */
  async #moveOn(cause: Cause): Promise<boolean> {
    const { fallback, context } = this.#conversation;
    if (!(await fallback.advance(cause, this.#options.emit))) return false;
    this.#kit.judge.startAfresh();
    this.#overflows = 0;
    this.#outputRoom = undefined;
    this.#options.budget.refund();
    // What the last model held with ease may not fit into this one.
    await this.#keepWithin(() => context.beforeTurn(this.#options));
    return true;
  }

  async #moveOrFail(asked: Extract<Asked, { type: "failed" }>): Promise<Ending | null> {
    if (asked.failure.worthMoving && (await this.#moveOn(asked.failure))) return null;
    return this.#failed(asked);
  }

  /** An answer that is none may come from somebody else. After a refusal one other model is asked, not all of them. */
  async #endOrMove(ending: Ending): Promise<Ending | null> {
    const because = MOVES_ON[ending.exitReason];
    if (because === undefined || this.#refused) return ending;
    this.#refused = ending.exitReason === "content_policy_blocked";
    return (await this.#moveOn({ because })) ? null : ending;
  }

  // --- ends

  async #failed({ failure, attempts, request }: Extract<Asked, { type: "failed" }>): Promise<Ending> {
    await keepRefused(this.#conversation, failure, request);
    const ending = failureEnding(failure, attempts, this.#conversation);
    if (ending.exitReason === "budget_cap") this.#options.budget.refund();
    if (failure.worthRetrying || failure.classified.statusCode !== 400) return ending;
    return this.#takeBackUser(ending);
  }

  /** A request the server will never take must not grow the session with every try. */
  async #takeBackUser(ending: Ending): Promise<Ending> {
    const { transcript, meter } = this.#conversation;
    const large = (meter.lastPromptTokens ?? 0) > 50_000 || transcript.messages.length > 80;
    if (!large || this.#compressed || this.#messages.at(-1)?.role !== "user") return ending;
    await transcript.takeBackUser(this.#user);
    return withoutMessage(ending);
  }

  #interrupted(): Ending {
    const tools = this.#messages.at(-1)?.role === "tool" ? this.#previousTools : [];
    const last = [...new Set(tools)].join(", ");
    return interruptedEnding(
      "interrupted_by_user",
      last === "" ? "Operation interrupted." : `Operation interrupted while running ${last}.`,
    );
  }

  /** A defect of ours in the middle of an iteration: open calls are answered, the turn goes on unless it keeps happening. */
  async #mend(error: unknown): Promise<Ending | null> {
    const message = messageOf(error);
    this.#conversation.assembly.log.error("unexpected error in the turn", error);
    const open = unansweredCalls(this.#messages);
    await this.#append(open.map((call) => ({ message: stubResult(call, `Error executing tool: ${message}`) })));
    if (++this.#defects < MAX_DEFECTS && this.#options.budget.remaining > 1) return null;
    return failedEnding(
      `error_near_max_iterations(${message})`,
      `Something went wrong inside Hermes: ${message}. See the log for details.`,
    );
  }

  async #close(ending: Ending): Promise<TurnOutcome> {
    const { reason } = this.#options.signal;
    // Wherever it was stopped: it was not the user, and nothing of it can be stored.
    if (ending.kind === "interrupted" && reason instanceof LaneMovedError) throw reason;
    const { record, lease } = this.#options;
    if (!record || !lease) {
      await this.#append(this.#lastEntries(ending));
      return this.#outcome(ending);
    }
    // What is promised to the chat is the text as it is shown, so that comes first here.
    const shown = { ...ending, ...(await this.#show(ending)) };
    await this.#conversation.transcript.append(this.#lastEntries(ending), (sessionId, rows) =>
      record.finish(sessionId, rows, shown, lease),
    );
    return this.#outcomeOf(shown);
  }

  /** Rows that close the turn. */
  #lastEntries(ending: Ending): readonly Entry[] {
    if (ending.message) return [{ message: ending.message }];
    if (ending.kind !== "interrupted") return [];
    const closed = closeInterruptedToolSequence(this.#messages, ending.finalText);
    return closed.slice(this.#messages.length).map((message) => ({ message }));
  }

  async #outcome(ending: Ending): Promise<TurnOutcome> {
    return this.#outcomeOf({ ...ending, ...(await this.#show(ending)) });
  }

  #show(ending: Ending): Promise<Partial<Ending>> {
    return showFinalText(ending, this.#conversation, this.#kit, this.#options.emit);
  }

  #outcomeOf(shown: Ending): TurnOutcome {
    const { budget, interruptMessage } = this.#options;
    const withinBudget = budget.used < budget.max;
    return makeOutcome(this.#conversation, shown, {
      ...{ apiCalls: this.#apiCalls, withinBudget, interruptMessage: interruptMessage() },
    });
  }

  // --- shared

  get #messages(): readonly HistoryMessage[] {
    return this.#conversation.transcript.messages;
  }

  get #asking(): Asking {
    const { session } = this.#conversation.assembly;
    const { turn } = this.#kit.run;
    const { sessionId } = this.#conversation.transcript;
    const purpose = {
      task: session.task ?? "main",
      sessionId,
      turn,
      ...(session.jobId ? { jobId: session.jobId } : {}),
    };
    const { signal, emit } = this.#options;
    return {
      conversation: this.#conversation,
      purpose,
      signal,
      emit,
      onBlind: () => this.#describePictures(),
    };
  }

  async #append(entries: readonly Entry[]): Promise<readonly number[]> {
    return entries.length === 0 ? [] : this.#conversation.transcript.append(entries);
  }

  #endText(message: AssistantMessage, asked: Asked, kind: "interim"): void {
    if (!message.content) return;
    const streamed = asked.type === "answer" && asked.streamed.trim() !== "";
    this.#options.emit({ type: "text_end", text: message.content, kind, streamed });
  }

  #reportRecovery(message: string): void {
    this.#options.emit({ type: "status", kind: "lifecycle", message, recovery: true });
  }

  #emptyPause(times: number): number {
    return emptyAnswerDelayMs(times, this.#conversation.assembly.clock);
  }
}
