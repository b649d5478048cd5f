// The conversation in plain lines, for terminals without cursor control (TERM=dumb) and for screen readers: no control sequences, no
// colours, nothing that is drawn over. The terminal's own line editor is the input; questions are numbered lines.
import { createInterface, type Interface } from "node:readline";
import type { Agent } from "../../agent/agent.ts";
import { BackgroundTasks } from "../../agent/background.ts";
import type { AgentEvent, AskRequest } from "../../agent/events.ts";
import type { OpenAgent } from "../../agent/opened.ts";
import { builtinCommands } from "../../commands/builtin.ts";
import type { CommandContext, PickItem } from "../../commands/context.ts";
import { commandsOf, type DispatchSurface, dispatchTyped } from "../../commands/dispatch.ts";
import { helpText } from "../../commands/registry.ts";
import { said, t } from "../../home/language/words.ts";
import { PRODUCT, VERSION } from "../../home/paths.ts";
import { messageOf } from "../../kit/errors.ts";
import { plural } from "../../kit/formats.ts";
import { placeOf } from "../../llm/wire.ts";
import type { AnswerTo, ApprovalQuestion, Question } from "../../safety/decision.ts";
import { approvalWords, dangerWords } from "../approval-words.ts";
import { feedRow, feedSuffix, recoveryLine } from "../feed.ts";
import { plainMarkdown } from "../plain-markdown.ts";
import { printable, revealed, wrapColumns } from "../terminal-text.ts";
import { type ChatRequest, type ResumeRequest, withReferences } from "../typed-input.ts";
import { sayGoodbye } from "./farewell.ts";
import { TerminalGoals } from "./goals.ts";
import { CtrlC } from "./keys.ts";
import { watchProcess } from "./status.ts";
import { Turns } from "./turns.ts";

/** Stays until the user leaves; resolves to the exit code. */
export function runPlainScreen(request: ChatRequest): Promise<number> {
  return new PlainScreen(request).run();
}

class PlainScreen {
  readonly #request: ChatRequest;
  readonly #startedAt: number;
  readonly #registry = builtinCommands();
  readonly #turns: Turns;
  readonly #background: BackgroundTasks;
  readonly #left = Promise.withResolvers<number>();
  readonly #leftBehind = new Set<Agent>();
  readonly #ctrlC = new CtrlC();
  readonly #surface: DispatchSurface;
  readonly #goals: TerminalGoals;
  #conversation: OpenAgent | null = null;
  #lines: Interface | null = null;
  /** Questions that wait; the first one gets the next line. Null: it was cancelled. */
  #asked: ((line: string | null) => void)[] = [];
  #over = false;
  #lastListed: CommandContext["lastListed"] = [];

  constructor(request: ChatRequest) {
    this.#request = request;
    this.#startedAt = request.clock.now();
    const page = { info: (text: string) => this.#say(text), warn: (text: string) => this.#warn(text) };
    this.#goals = new TerminalGoals(request, () => this.#turns, page);
    this.#turns = new Turns({
      speaker: () => this.#speaker(),
      busyMode: () => request.home.config().display.busy_input_mode,
      onEvent: (event) => this.#show(event),
      onChange: () => undefined,
      onError: (error) => this.#warn(messageOf(error)),
      onUnsent: () => this.#say(t("Nothing was sent.")),
      goals: this.#goals,
    });
    this.#background = new BackgroundTasks({
      clock: request.clock,
      onReport: ({ id, status, text }) =>
        status === "done" ? this.#say(`${id}:\n${text}`) : this.#warn(`${id}: ${text}`),
      onChange: () => undefined,
    });
    this.#surface = {
      kind: "terminal",
      interrupt: async () => {
        this.#turns.dropQueue();
        this.#conversation?.agent.interrupt("a command was typed");
        await this.#turns.idle();
      },
    };
  }

  async run(): Promise<number> {
    const { home, cwd } = this.#request;
    this.#say(`${PRODUCT} ${VERSION}, ${home.display(cwd)}`);
    for (const warning of home.warnings) this.#warn(warning);
    const unwatch = watchProcess({
      onSignal: (code) => (code === 130 ? this.#onCtrlC() : this.#leave(code)),
      onCrash: async (error) => this.#warn(messageOf(error)),
    });
    let code = 1;
    try {
      const { agent, target } = await this.#open(this.#request.resume);
      this.#say(`${t("model")}: ${target.model} (${placeOf(target)}). ${t("session")}: ${agent.sessionId}. /help`);
      // The terminal edits the line; a reader with `terminal: true` would draw it.
      this.#lines = createInterface({ input: process.stdin, terminal: false });
      this.#lines.on("line", (line) => this.#onLine(line));
      this.#lines.on("close", () => this.#leave(0));
      this.#prompt();
      code = await this.#left.promise;
      return code;
    } finally {
      this.#lines?.close();
      if (this.#conversation) {
        await sayGoodbye(this.#conversation, code, {
          home,
          leftBehind: this.#leftBehind,
          startedAt: this.#startedAt,
          word: "",
          now: () => this.#request.clock.now(),
          settled: () => Promise.all([this.#turns.idle(), this.#background.close()]),
        });
      }
      unwatch();
    }
  }

  async #open(resume: ResumeRequest | undefined): Promise<OpenAgent> {
    const { openAgent } = await import("../../agent/open.ts");
    const conversation = await openAgent({ ...this.#request, resume, attended: true });
    await this.#conversation?.close(resume ? "resumed_other" : "new_session", conversation.agent.sessionId);
    if (this.#conversation) this.#leftBehind.add(this.#conversation.agent);
    this.#conversation = conversation;
    for (const note of conversation.notes) this.#say(note);
    const { resumed, history } = conversation;
    if (resumed) this.#say(`resumed ${resumed.title ?? resumed.id}, ${plural(history.length, "message")}`);
    await this.#goals.begin(conversation);
    void this.#readNotices(conversation);
    return conversation;
  }

  async #readNotices({ agent }: OpenAgent): Promise<void> {
    for await (const event of agent.notices) {
      if (event.type === "notice" && event.kind === "process")
        this.#turns.queue({ text: event.text, from: "synthetic" });
      this.#show(event);
    }
  }

  #onLine(line: string): void {
    const asked = this.#asked.shift();
    if (asked) return asked(line);
    if (line.trim() === "") return this.#prompt();
    void this.#submit(line);
  }

  async #submit(text: string): Promise<void> {
    const handled = await dispatchTyped(text, this.#registry, this.#commandContext(), this.#surface);
    if (!handled) this.#turns.say({ text });
    else if (!this.#turns.busy && !this.#over) this.#prompt();
  }

  #onCtrlC(): void {
    const state = {
      questionOpen: this.#asked.length > 0,
      busy: this.#turns.busy,
      menuOpen: false,
      draft: "",
      pictures: 0,
    };
    switch (this.#ctrlC.press(state, this.#request.clock.now())) {
      case "cancel_question":
        return this.#asked.shift()?.(null);
      case "interrupt":
        return this.#conversation?.agent.interrupt("stopped by the user");
      case "arm_exit":
        return this.#say(t("press Ctrl+C again to quit"));
      default:
        return this.#leave(130);
    }
  }

  #speaker() {
    const conversation = this.#ready();
    const { agent } = conversation;
    const notify = { note: (text: string) => this.#say(text), warn: (text: string) => this.#warn(text) };
    return {
      activeChildren: agent.activeChildren,
      interrupt: (reason?: string) => agent.interrupt(reason),
      steer: (text: string) => agent.steer(text),
      async *run(input: Parameters<Agent["run"]>[0]) {
        const ready = await withReferences(input, conversation, notify);
        if (ready) yield* agent.run(ready);
      },
    };
  }

  #show(event: AgentEvent): void {
    const { display } = this.#request.home.config();
    switch (event.type) {
      case "ask":
        return void this.#ask(event.request);
      case "text_end":
        if (event.text.trim() === "" || (event.kind === "interim" && !display.interim_assistant_messages)) return;
        return this.#say(
          display.final_response_markdown === "raw" ? event.text : plainMarkdown(event.text, this.#columns),
        );
      case "tool_end": {
        if (display.tool_progress === "off" || display.tool_progress === "log") return;
        const { verb, detail } = feedRow(event.call);
        const suffix = feedSuffix(event.call.name, event.result);
        return this.#say(
          `- ${verb} ${detail.slice(0, 300)} (${(event.ms / 1000).toFixed(1)}s)${suffix ? ` ${suffix}` : ""}`,
        );
      }
      case "notice":
        return this.#say(event.text);
      case "status":
      case "compressed": {
        if (event.type === "status" && event.kind === "warn") return this.#warn(event.message);
        const line = recoveryLine(event);
        return line === null ? undefined : this.#say(line);
      }
      case "done": {
        const { failed, finalText, interrupted } = event.outcome;
        if (failed && finalText) this.#warn(finalText);
        else if (interrupted) this.#say(t("⏹ stopped").replace("⏹ ", ""));
        return this.#prompt();
      }
    }
  }

  // Questions: their lines are numbered, and the next line that is typed is the answer.

  async #ask(request: AskRequest): Promise<void> {
    const { question, signal } = request;
    const answer = request.answer as (value: AnswerTo<Question>) => void; // each branch gives the answer of its kind
    const settled = Promise.withResolvers<null>();
    signal.addEventListener("abort", () => settled.resolve(null), { once: true });
    const reply = await Promise.race([this.#answerTo(question), settled.promise]);
    if (!signal.aborted && reply !== null) answer(reply);
  }

  async #answerTo(question: Question): Promise<AnswerTo<Question>> {
    switch (question.kind) {
      case "approval":
        return { choice: (await this.#choose(approvalTitle(question), approvalItems(question))) ?? "deny" };
      case "confirm":
        return {
          choice:
            (await this.#choose(`${question.title}\n${question.detail}`, confirmItems(question.onceOnly))) ?? "cancel",
        };
      case "clarify": {
        const choices = (question.choices ?? []).map((choice) => ({ label: choice, value: choice }));
        const list = choices.map(({ label }, at) => `  ${at + 1}. ${label}`);
        const typed = await this.#line([question.question, ...list].join("\n"));
        return { text: choices[Number(typed) - 1]?.value ?? (typed?.trim() || null) };
      }
      case "sudo":
        return { text: (await this.#hidden(t("🔐 sudo password (empty = skip)").replace("🔐 ", ""))) || null };
      case "secret":
        return { text: (await this.#hidden(question.prompt)) || null };
    }
  }

  /** Null: nothing that was offered. */
  async #choose<T>(title: string, items: readonly PickItem<T>[]): Promise<T | null> {
    const hint = ({ hint = "" }: PickItem<T>) =>
      hint === "" ? "" : ` (${typeof hint === "string" ? hint : hint.join(", ")})`;
    const rows = items.map((item, at) => `  ${at + 1}. ${item.label.trim()}${hint(item)}`);
    const typed = await this.#line([said(title), ...rows, t("Number, or Enter to cancel:")].join("\n"));
    return items[Number(typed?.trim() || 0) - 1]?.value ?? null;
  }

  #line(text: string): Promise<string | null> {
    this.#say(text);
    this.#write("? ");
    return new Promise((resolve) => this.#asked.push(resolve));
  }

  /** The terminal shows nothing of what is typed. */
  async #hidden(text: string): Promise<string | null> {
    process.stdin.setRawMode?.(true);
    try {
      const typed = await this.#line(text);
      return typed === null || typed.includes("\u0003") ? null : withBackspaces(typed);
    } finally {
      process.stdin.setRawMode?.(false);
      this.#write("\n");
    }
  }

  #commandContext(): CommandContext {
    const request = this.#request;
    const self = this;
    const commands = () => commandsOf(this.#registry, request, this.#surface);
    const fullScreen = () => {
      throw new Error(t("this needs the full screen and is not available in plain mode."));
    };
    return {
      home: request.home,
      store: this.#ready().store,
      clock: request.clock,
      cwd: request.cwd,
      platform: request.platform,
      get conversation() {
        return self.#ready();
      },
      get busy() {
        return self.#turns.busy || self.#ready().agent.busy;
      },
      get waiting() {
        return self.#turns.waiting;
      },
      get lastListed() {
        return self.#lastListed;
      },
      set lastListed(listed) {
        self.#lastListed = listed;
      },
      now: () => request.clock.now() / 1000,
      columns: () => this.#columns,
      say: (text) => this.#say(text),
      warn: (text) => this.#warn(text),
      submit: (text) => void this.#turns.say({ text }),
      queue: (text, { shownAs } = {}) =>
        this.#turns.queue(shownAs === undefined ? { text } : { text, persistText: shownAs }),
      offerInput: (text) => this.#say(`Your text: ${text}`),
      pick: (title, items) => this.#choose(title, items),
      confirm: async (title, detail) => (await this.#choose(`${title}\n${detail}`, confirmItems(false))) ?? "cancel",
      startSession: async ({ title }) => {
        const conversation = await this.#open(undefined);
        if (title) await conversation.setTitle(title);
        this.#say("Started a new conversation.");
      },
      resumeSession: async (id) => void (await this.#open({ name: id })),
      commands: () => helpText(commands().all()),
      get goals() {
        return self.#goals.present;
      },
      skillCommands: async () =>
        (await import("../../commands/skills.ts")).menuSkills(
          { conversation: this.#ready(), platform: request.platform },
          commands(),
        ),
      background: {
        get running() {
          return self.#background.running;
        },
        start: (prompt) => this.#background.start(prompt, request, this.#ready()),
        stop: (id) => this.#background.stop(id),
      },
      quit: ({ deleteSession }) => void this.#quit(deleteSession),
      terminal: new Proxy<object>(
        { keys: () => "", pictures: 0, takenBack: () => undefined, clearScreen: () => undefined, skins: undefined },
        { get: (known, name) => (name in known ? Reflect.get(known, name) : fullScreen) },
      ) as NonNullable<CommandContext["terminal"]>, // what is missing is a function that says so
    };
  }

  async #quit(deleteSession: boolean): Promise<void> {
    if (deleteSession && this.#conversation) {
      const { store, agent } = this.#conversation;
      await this.#conversation.close("cli_close");
      this.#conversation = null;
      await store.delete(agent.sessionId);
    }
    this.#leave(0);
  }

  #leave(code: number): void {
    this.#over = true;
    this.#turns.dropQueue();
    this.#conversation?.agent.interrupt("the screen was closed");
    this.#left.resolve(code);
  }

  #ready(): OpenAgent {
    if (this.#conversation === null) throw new Error(t("The conversation is still opening; try again in a moment."));
    return this.#conversation;
  }

  get #columns(): number {
    return Math.max(20, process.stdout.columns ?? 80);
  }

  #prompt(): void {
    this.#write("> ");
  }

  #warn(text: string): void {
    this.#say(`! ${said(text)}`);
  }

  #say(text: string): void {
    this.#write(`${wrapColumns(printable(said(text)), this.#columns - 1).join("\n")}\n`);
  }

  #write(text: string): void {
    process.stdout.write(text);
  }
}

function approvalTitle(question: ApprovalQuestion): string {
  const { title } = approvalWords(question);
  return [
    printable(title),
    `  ${revealed(question.command)}`,
    ...(question.note ? [printable(question.note)] : []),
  ].join("\n");
}

function approvalItems(question: ApprovalQuestion): PickItem<AnswerTo<ApprovalQuestion>["choice"]>[] {
  const { once, no } = approvalWords(question);
  return [
    { label: once, value: "once" },
    ...(question.allowSession === false
      ? []
      : [{ label: t("Allow for this session"), hint: dangerWords(question.patternKey), value: "session" as const }]),
    ...(question.allowAlways ? [{ label: t("Always allow"), value: "always" as const }] : []),
    { label: no, value: "deny" },
  ];
}

function confirmItems(onceOnly: boolean | undefined): PickItem<"once" | "always" | "cancel">[] {
  return [
    { label: t("Yes"), value: "once" },
    ...(onceOnly ? [] : [{ label: t("Yes, and don't ask again"), value: "always" as const }]),
    { label: t("No"), value: "cancel" },
  ];
}

/** What is left of a line that nobody edited while it was typed. */
function withBackspaces(line: string): string {
  const kept: string[] = [];
  for (const char of line) {
    if (char === "\u007f" || char === "\b") kept.pop();
    else kept.push(char);
  }
  return kept.join("");
}
