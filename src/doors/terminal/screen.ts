// The interactive screen: transcript above, input below, everything driven by events.

import type { Component } from "@earendil-works/pi-tui";
import type { Agent } from "../../agent/agent.ts";
import { BackgroundTasks } from "../../agent/background.ts";
import type { AgentEvent } from "../../agent/events.ts";
import type { OpenAgent } from "../../agent/opened.ts";
import { builtinCommands } from "../../commands/builtin.ts";
import { commandsOf, type DispatchSurface, dispatchTyped } from "../../commands/dispatch.ts";
import { helpText } from "../../commands/registry.ts";
import { said, t } from "../../home/language/words.ts";
import { messageOf } from "../../kit/errors.ts";
import type { UserInput } from "../../llm/messages.ts";
import { type ChatRequest, type Notify, type ResumeRequest, withReferences } from "../typed-input.ts";
import { Attachments } from "./attachments.ts";
import { Attention } from "./attention.ts";
import { commandContext, type SurfaceParts } from "./command-surface.ts";
import { type Completing, Completion, completionSources, skillCommands } from "./completion.ts";
import { lastLook, sayGoodbye, tellCrash } from "./farewell.ts";
import { TerminalGoals } from "./goals.ts";
import { InputLine } from "./input-line.ts";
import { KeyActions } from "./keys.ts";
import { firstTimeHint, greet, Header, type HintName, introduce, tellUpdate } from "./opening.ts";
import { Questions } from "./questions.ts";
import { queueLines } from "./queue-panel.ts";
import { ScreenSkin } from "./screen-skin.ts";
import {
  DrawnScreen,
  forgetScrolledLines,
  linesOnScreen,
  resetTerminal,
  ScreenTerminal,
  suspend,
} from "./screen-terminal.ts";
import { ShellLines } from "./shell-line.ts";
import { Activity, Status, watchProcess } from "./status.ts";
import { Transcript, transcriptSettings } from "./transcript.ts";
import { queuedText, type Speaker, Turns } from "./turns.ts";
import { WorkView } from "./work-view.ts";

/** Opens the screen and stays until the user leaves; resolves to the exit code. */
export function runScreen(request: ChatRequest): Promise<number> {
  return new Screen(request).run();
}

class Screen {
  readonly #request: ChatRequest;
  readonly #skin: ScreenSkin;
  readonly #theme;
  readonly #terminal: ScreenTerminal;
  readonly #tui: DrawnScreen;
  readonly #transcript: Transcript;
  readonly #attention: Attention;
  readonly #questions: Questions;
  readonly #input: InputLine;
  readonly #shell: ShellLines;
  readonly #attachments: Attachments;
  readonly #turns: Turns;
  readonly #goals: TerminalGoals;
  readonly #activity: Activity;
  readonly #work: WorkView;
  readonly #status: Status;
  readonly #header: Header;
  readonly #keys: KeyActions;
  readonly #commands = builtinCommands();
  readonly #background: BackgroundTasks;
  readonly #surface: DispatchSurface & SurfaceParts;
  readonly #left = Promise.withResolvers<number>();
  readonly #hinted = new Set<HintName>();
  #conversation: OpenAgent | null = null;
  /** Conversations that were left; a review of them may still run. */
  readonly #leftBehind = new Set<Agent>();
  #typedEarly: UserInput[] = [];

  constructor(request: ChatRequest) {
    const { home, clock } = request;
    const config = () => home.config();
    const now = () => clock.now();
    this.#request = request;
    this.#skin = new ScreenSkin({
      home,
      color: request.color,
      onChange: () => {
        this.#tui.invalidate();
        this.#refresh();
      },
      onWarning: (text) => this.#warn(text),
    });
    this.#theme = this.#skin.theme;
    this.#terminal = new ScreenTerminal({ unannouncedLines: () => config().paste_collapse_threshold_fallback });
    this.#tui = new DrawnScreen(this.#terminal, undefined, home.paths.logsDir);
    this.#transcript = new Transcript(this.#theme, transcriptSettings(request, now));
    this.#input = new InputLine(this.#tui, {
      theme: this.#theme,
      historyFile: home.paths.historyFile,
      withoutKeys: (text) => home.redact.fromUser(text).text,
      pastesDir: home.paths.pastesDir,
      display: (path) => home.display(path),
      prompt: () => this.#prompt(),
      pasteLimits: () => ({ lines: config().paste_collapse_threshold, chars: config().paste_collapse_char_threshold }),
      now: () => new Date(now()),
      hasMore: () => this.#attachments.count > 0,
      onSubmit: (text) => void this.#submit(text),
      onPasted: (text) => void this.#attachments.pasted(text),
      onWarning: (text) => this.#warn(text),
    });
    this.#attention = new Attention({
      write: (data) => this.#tui.terminal.write(data),
      settings: () => config().display,
      env: (name) => home.env(name),
    });
    this.#attachments = new Attachments(request, {
      theme: this.#theme,
      input: this.#input,
      transcript: this.#transcript,
      onChange: () => this.#refresh(),
    });
    this.#questions = new Questions(this.#tui, {
      ...{ theme: this.#theme, now, draft: () => this.#input.editor },
      onAsked: (question) => this.#attention.call(question),
      onIdle: () => {
        this.#attention.settle();
        this.#tui.setFocus(this.#input.editor);
      },
      onSettled: (text) => this.#transcript.dim(text),
    });
    this.#shell = new ShellLines({
      theme: this.#theme,
      conversation: () => this.#ready(),
      show: (block) => this.#transcript.add(block),
      redact: (text) => home.redact(text),
      now,
      onChange: () => this.#refresh(),
    });
    this.#goals = new TerminalGoals(request, () => this.#turns, this.#transcript);
    this.#turns = new Turns({
      goals: this.#goals,
      speaker: () => this.#speaker(),
      busyMode: () => config().display.busy_input_mode,
      onEvent: (event) => this.#onEvent(event),
      onChange: () => this.#refresh(),
      onError: (error) => this.#warn(messageOf(error)),
      onUnsent: (input) => this.#attachments.handBack(input),
    });
    this.#activity = new Activity(this.#theme, {
      now,
      onFrame: () => this.#refresh(),
      stoppable: () => !this.#questions.open && !this.#input.editor.isShowingAutocomplete(),
    });
    this.#status = new Status(this.#theme, {
      now,
      conversation: () => this.#conversation,
      turnSeconds: () => this.#activity.turnSeconds,
      turns: this.#turns,
      showCost: () => config().display.show_cost,
      folder: { path: request.cwd, shown: home.display(request.cwd) },
      background: () => this.#background.running.length,
      goal: () => this.#goals.gauge,
    });
    this.#work = new WorkView({
      theme: this.#theme,
      transcript: this.#transcript,
      questions: this.#questions,
      screen: this.#tui,
      refresh: () => this.#refresh(),
      busy: () => this.#busy,
    });
    this.#background = new BackgroundTasks({
      clock,
      onReport: (report) => this.#work.report(report),
      onChange: () => this.#refresh(),
    });
    this.#header = new Header(request, this.#theme, () => this.#tui.terminal.rows);
    this.#surface = this.#makeSurface();
    this.#keys = new KeyActions({
      input: this.#input,
      attachments: this.#attachments,
      questions: this.#questions,
      turns: this.#turns,
      shell: this.#shell,
      now,
      busy: () => this.#busy,
      interrupt: () => this.#shell.stop() || this.#conversation?.agent.interrupt("stopped by the user"),
      leave: (code) => this.#leave(code),
      redraw: () => this.#tui.requestRender(true),
      suspend: () => void suspend({ release: () => this.#release(), reclaim: () => this.#reclaim() }),
      compose: () => void this.#compose(),
      paste: () => void this.#attachments.paste(),
      cycleMode: () => void this.#work.cycleMode(this.#conversation),
      openCalls: () => void this.#work.openCalls(),
      toggleThinking: () => void this.#work.toggleThinking(),
      submit: (text) => void this.#submit(text),
      say: (text) => this.#transcript.dim(text),
    });
  }

  async run(): Promise<number> {
    this.#layOut();
    this.#tui.addInputListener((data) => {
      const used = this.#questions.held(data) ?? this.#keys.press(data);
      if (used) this.#refresh();
      return used;
    });
    this.#tui.start();
    this.#tui.setFocus(this.#input.editor);
    void this.#skin.start((options) => this.#tui.queryTerminalBackgroundColor(options));
    const second = setInterval(() => this.#refresh(), 1000);
    const unwatch = watchProcess({
      onSignal: (code) => this.#leave(code),
      onCrash: async (error) => {
        this.#release();
        await tellCrash(this.#request.home, error);
      },
    });
    let code = 1;
    try {
      await this.#begin();
      code = await this.#left.promise;
      return code;
    } finally {
      clearInterval(second);
      await Promise.all([this.#terminal.settled(), this.#skin.settled()]);
      this.#release();
      if (this.#conversation)
        await sayGoodbye(this.#conversation, code, {
          ...{ home: this.#request.home, leftBehind: this.#leftBehind, word: this.#theme.look.goodbye },
          startedAt: this.#header.startedAt,
          now: () => this.#request.clock.now(),
          settled: () => Promise.all([this.#turns.idle(), this.#background.close()]),
        });
      unwatch();
    }
  }

  #layOut(): void {
    const queue: Component = { render: (width) => this.#queueLines(width), invalidate: () => undefined };
    this.#transcript.view.addChild(this.#header);
    this.#tui.menuRows = () => this.#input.editor.menuRows;
    for (const part of [
      this.#transcript.view,
      this.#tui.gap,
      this.#activity,
      this.#work.tail,
      this.#questions.area,
      this.#work.todos,
      queue,
      this.#input.editor,
      ...[this.#attachments, this.#status].map((part) => this.#blankBehindList(part)),
    ]) {
      this.#tui.addChild(part);
    }
  }

  /** A list lies over the end of the screen; what stands out above it would look like a part of it. */
  #blankBehindList(part: Component): Component {
    const lines = (width: number) => part.render(width).map((line) => (this.#tui.hasOverlay() ? "" : line));
    return { render: lines, invalidate: () => part.invalidate() };
  }

  /** The screen is there already; now everything that takes time. */
  async #begin(): Promise<void> {
    const { home, clock } = this.#request;
    await this.#input.loadHistory();
    for (const warning of home.warnings) this.#transcript.warn(warning);
    const conversation = await this.#open(this.#request.resume);
    greet(conversation, this.#transcript, this.#theme.look.welcome, () => clock.random());
    void tellUpdate(this.#request, this.#transcript).then(() => this.#refresh());
    this.#input.editor.setAutocompleteProvider(new Completion(completionSources(this.#completing)));
    for (const input of this.#typedEarly.splice(0)) await this.#submit(input.text, input);
    this.#refresh();
  }

  /** Opens a new conversation, or an earlier one, in place of the present one. What fails leaves the present one as it is. */
  async #open(resume: ResumeRequest | undefined): Promise<OpenAgent> {
    const { openAgent } = await import("../../agent/open.ts");
    const conversation = await openAgent({ ...this.#request, resume, attended: true });
    await this.#conversation?.close(resume ? "resumed_other" : "new_session", conversation.agent.sessionId);
    if (this.#conversation) this.#leftBehind.add(this.#conversation.agent);
    this.#conversation = conversation;
    await this.#status.begin(conversation);
    this.#work.begin(conversation.history);
    await this.#header.show(conversation, () => this.#refresh());
    introduce(conversation, this.#transcript, this.#request.home.config().display);
    await this.#goals.begin(conversation);
    void this.#readNotices(conversation);
    return conversation;
  }

  async #readNotices(conversation: OpenAgent): Promise<void> {
    for await (const event of conversation.agent.notices) {
      if (event.type === "notice" && event.kind === "process")
        this.#turns.queue({ text: event.text, from: "synthetic" });
      this.#transcript.show(event);
      this.#refresh();
    }
  }

  /** `early`: the message as it was before the conversation was open. */
  async #submit(text: string, early?: UserInput): Promise<void> {
    if (this.#conversation === null) {
      this.#typedEarly.push(text.startsWith("/") ? { text } : this.#attachments.takeOnto({ text }));
      return this.#refresh();
    }
    if (await this.#shell.run(text)) return;
    const handled = await dispatchTyped(
      text === "?" ? "/keys" : text,
      this.#commands,
      commandContext(this.#surface),
      this.#surface,
    );
    this.#refresh();
    if (handled) return;
    const input = await this.#attachments.compose(early ?? { text });
    if (input === null) return;
    if (early) return this.#turns.queue(input);
    const became = this.#turns.say(input);
    if (became === "steered") this.#transcript.dim(`↪ ${this.#request.home.redact.fromUser(text).text}`);
    if (became === "queued" && this.#ready().agent.activeChildren > 0)
      this.#transcript.dim("Sub-agents are running: your message is sent when the turn ends. /stop stops them.");
    if (became !== "started") this.#hint("busy_input_prompt");
    this.#refresh();
  }

  #speaker(): Speaker {
    const conversation = this.#ready();
    const { agent } = conversation;
    const notify = { note: (text: string) => this.#transcript.dim(text), warn: (text: string) => this.#warn(text) };
    return {
      activeChildren: agent.activeChildren,
      interrupt: (reason) => agent.interrupt(reason),
      steer: (text) => agent.steer(text),
      run: (input) => this.#play(input, conversation, notify),
    };
  }

  async *#play(input: UserInput, conversation: OpenAgent, notify: Notify): AsyncGenerator<AgentEvent> {
    const expanded = await withReferences(input, conversation, notify);
    if (expanded === null) return this.#attachments.handBack(input);
    const ready = await this.#attachments.withPaths(expanded);
    const context = ready.from === "synthetic" ? null : this.#shell.take();
    for await (const event of conversation.agent.run(context ? { ...ready, note: context.note } : ready)) {
      if (event.type === "done" && event.outcome.unsent) context?.giveBack();
      yield event;
    }
  }

  #onEvent(event: AgentEvent): void {
    this.#activity.follow(event);
    this.#status.follow(event);
    this.#work.follow(event);
    if (event.type === "turn_start" && event.input.from !== "synthetic")
      this.#transcript.user(this.#attachments.echo(event.input));
    if (event.type === "ask") this.#questions.ask(event.request);
    this.#transcript.show(event);
    if (event.type === "tool_end") this.#hint("tool_progress_prompt");
    if (event.type === "tool_end" || event.type === "done")
      forgetScrolledLines(this.#tui, this.#transcript.view.children);
    if (event.type === "done" && this.#request.home.config().display.bell_on_complete)
      this.#tui.terminal.write("\u0007");
    this.#refresh();
  }

  #hint(name: HintName): void {
    const hint = firstTimeHint(name, this.#request.home, this.#hinted);
    if (hint) this.#transcript.dim(t("Tip: {tip}", { tip: said(hint) }));
  }

  /** A turn or a shell line runs, or the conversation is being compressed: all can be stopped. */
  get #busy(): boolean {
    return this.#turns.busy || this.#shell.running || this.#conversation?.agent.busy === true;
  }

  async #compose(): Promise<void> {
    const { composeDraft } = await import("./clipboard.ts");
    await composeDraft(this.#request.home, this.#input, {
      release: () => this.#release(),
      reclaim: () => this.#reclaim(),
      warn: (text) => this.#transcript.warn(text),
    });
  }

  #makeSurface(): DispatchSurface & SurfaceParts {
    return {
      kind: "terminal",
      echo: (text) => this.#transcript.command(this.#request.home.redact.fromUser(text).text),
      interrupt: async () => {
        this.#turns.dropQueue();
        this.#ready().agent.interrupt("a command was typed");
        await this.#turns.idle();
      },
      request: this.#request,
      theme: this.#theme,
      transcript: this.#transcript,
      questions: this.#questions,
      input: this.#input,
      attachments: this.#attachments,
      turns: this.#turns,
      background: this.#background,
      goals: this.#goals,
      conversation: () => this.#ready(),
      lastListed: [],
      warn: (text) => this.#warn(text),
      switchTo: (resume, title) => this.#switchTo(resume, title),
      skillCommands: () => skillCommands(this.#completing),
      help: () => [this.#theme.look.helpHeader, helpText(this.#completing.commands().all())].join("\n").trimStart(),
      quit: (options) => this.#quit(options.deleteSession),
      redraw: () => this.#tui.requestRender(true),
      compose: () => this.#compose(),
      paste: () => this.#attachments.paste(),
      write: (data) => this.#tui.terminal.write(data),
      toggleStatusLine: () => this.#status.toggle(),
      toggleTodos: () => this.#work.todos.toggle(),
      takenBack: (turns) => this.#transcript.takeBack(turns, linesOnScreen(this.#tui, this.#transcript.view.children)),
      skins: this.#skin,
    };
  }

  get #completing(): Completing {
    return {
      request: this.#request,
      conversation: () => this.#conversation,
      commands: () => commandsOf(this.#commands, this.#request, this.#surface),
      skins: this.#skin,
    };
  }

  async #switchTo(resume: ResumeRequest | undefined, title?: string): Promise<void> {
    const { flush_wait } = this.#request.home.config().memory;
    if (!resume && this.#conversation)
      await lastLook(this.#conversation.agent, flush_wait, (line) => this.#transcript.dim(line));
    await this.#open(resume);
    this.#attachments.renumber();
    if (title) await this.#ready().setTitle(title);
    this.#transcript.dim(resume ? "─".repeat(20) : `Started a new conversation${title ? `: ${title}` : ""}.`);
  }

  async #quit(deleteSession: boolean): Promise<void> {
    if (deleteSession && this.#conversation) {
      const { store, agent } = this.#conversation;
      const id = agent.sessionId;
      await this.#conversation.close("cli_close");
      this.#conversation = null;
      await store.delete(id);
    }
    this.#leave(0);
  }

  #leave(code: number): void {
    this.#goals.close();
    this.#turns.dropQueue();
    this.#shell.stop();
    this.#conversation?.agent.interrupt("the screen was closed");
    this.#left.resolve(code);
  }

  /** Releases the terminal, for another program or for good. */
  #release(): void {
    this.#activity.pause();
    try {
      this.#attention.settle();
      this.#tui.stop();
      resetTerminal(process.stdout);
    } catch (error) {
      // After a hang-up there is no terminal; the session has to be ended all the same.
      this.#request.home.log.warn("the terminal could not be reset", error);
    }
  }

  #reclaim(): void {
    this.#tui.start();
    this.#tui.requestRender(true);
  }

  #prompt(): string {
    const { profile } = this.#request.home.paths;
    const symbol = this.#input?.draft.startsWith("!") ? "!" : this.#turns.busy ? "⚕" : this.#theme.look.promptSymbol;
    return profile === "default" ? symbol : `${profile} ${symbol}`;
  }

  #queueLines(width: number): string[] {
    const { held, waiting } = this.#turns;
    const texts = [...this.#typedEarly.map(queuedText), ...(held === null ? [] : [held]), ...waiting];
    return [...(this.#questions.open ? [] : queueLines(texts, width, this.#theme)), ...this.#shell.lines(width)];
  }

  #ready(): OpenAgent {
    if (this.#conversation === null) throw new Error("The conversation is still opening; try again in a moment.");
    return this.#conversation;
  }

  #warn(text: string): void {
    this.#transcript.warn(text);
    this.#refresh();
  }

  #refresh(): void {
    this.#tui.requestRender();
  }
}
