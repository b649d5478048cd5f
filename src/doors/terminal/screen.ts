// The interactive screen: transcript above, input below, everything driven by events.
import {
  type Component,
  Container,
  Loader,
  matchesKey,
  ProcessTerminal,
  type TUI,
  TuiMainScreen,
} from "@earendil-works/pi-tui";
import type { AgentEvent, SessionTotals } from "../../agent/events.ts";
import type { OpenAgent } from "../../agent/open.ts";
import { openAgent } from "../../agent/open.ts";
import { builtinCommands } from "../../commands/builtin.ts";
import type { CommandContext } from "../../commands/context.ts";
import { dispatchTyped } from "../../commands/dispatch.ts";
import { helpText } from "../../commands/registry.ts";
import type { EndReason, SessionListItem } from "../../sessions/store.ts";
import type { ChatRequest, ResumeWish } from "../chat-request.ts";
import { recap } from "../recap.ts";
import { banner } from "./banner.ts";
import { completions } from "./completion.ts";
import { CtrlC } from "./ctrl-c.ts";
import { exitSummary } from "./exit-summary.ts";
import { InputLine } from "./input-line.ts";
import { Questions } from "./questions.ts";
import { statusLine } from "./status-line.ts";
import { resetTerminal } from "./terminal-reset.ts";
import { makeTheme, type Theme } from "./theme.ts";
import { runningText, Transcript } from "./transcript.ts";
import { Turns } from "./turns.ts";

/** Opens the screen and stays until the user leaves; resolves to the exit code. */
export async function runScreen(request: ChatRequest): Promise<number> {
  const screen = new Screen(request);
  return screen.run();
}

class Screen {
  readonly #request: ChatRequest;
  readonly #theme: Theme;
  readonly #tui: TUI;
  readonly #transcript: Transcript;
  readonly #questions: Questions;
  readonly #input: InputLine;
  readonly #turns: Turns;
  readonly #ctrlC = new CtrlC();
  readonly #commands = builtinCommands();
  readonly #activity = new Container();
  readonly #left = Promise.withResolvers<number>();
  readonly #startedAt: number;
  readonly #header: Component;
  #conversation: OpenAgent | null = null;
  #spinner: Loader | null = null;
  #turnStarted: number | null = null;
  #turnSeconds: number | null = null;
  #totals: SessionTotals | null = null;
  #contextUsed: number | null = null;
  #compressions = 0;
  #typedEarly: string[] = [];
  #leaving = false;
  #lastListed: readonly SessionListItem[] = [];

  constructor(request: ChatRequest) {
    this.#request = request;
    this.#startedAt = request.clock.now();
    this.#theme = makeTheme(request.color);
    this.#tui = new TuiMainScreen(new ProcessTerminal());
    const config = () => request.home.config();
    this.#transcript = new Transcript(this.#theme, () => ({
      answerStyle: config().display.final_response_markdown,
      toolProgress: config().display.tool_progress,
      showReasoning: config().display.show_reasoning,
      interimText: config().display.interim_assistant_messages,
      inlineDiffs: config().display.inline_diffs,
      streaming: config().display.streaming,
    }));
    this.#input = new InputLine(this.#tui, this.#theme, {
      historyFile: request.home.paths.historyFile,
      pastesDir: request.home.paths.pastesDir,
      pasteLimits: () => ({ lines: config().paste_collapse_threshold, chars: config().paste_collapse_char_threshold }),
      now: () => new Date(request.clock.now()),
      onSubmit: (text) => void this.#submit(text),
      onWarning: (text) => this.#warn(text),
    });
    this.#questions = new Questions(this.#tui, this.#theme, () => this.#tui.setFocus(this.#input.editor));
    this.#turns = new Turns({
      speaker: () => this.#ready().agent,
      busyMode: () => config().display.busy_input_mode,
      onEvent: (event) => this.#onEvent(event),
      onChange: () => this.#refresh(),
      onError: (error) => this.#warn(error instanceof Error ? error.message : String(error)),
    });
    this.#header = {
      render: (width) => [...this.#bannerLines(width), ""],
      invalidate: () => undefined,
    };
  }

  async run(): Promise<number> {
    await this.#input.loadHistory();
    this.#layOut();
    this.#listenToKeys();
    this.#tui.start();
    this.#tui.setFocus(this.#input.editor);
    const clock = setInterval(() => this.#tui.requestRender(), 1000);
    const signals = this.#listenToSignals();
    try {
      for (const warning of this.#request.home.warnings) this.#transcript.warn(warning);
      await this.#open(this.#request.resume);
      for (const text of this.#typedEarly.splice(0)) await this.#submit(text);
      return await this.#left.promise;
    } finally {
      clearInterval(clock);
      signals();
      this.#spinner?.stop();
      this.#tui.stop();
      resetTerminal(process.stdout);
      await this.#farewell();
    }
  }

  #layOut(): void {
    const status: Component = { render: (width) => [this.#statusText(width)], invalidate: () => undefined };
    const queue: Component = { render: () => this.#queueLines(), invalidate: () => undefined };
    for (const part of [
      this.#header,
      this.#transcript.view,
      this.#activity,
      this.#questions.area,
      queue,
      this.#input.editor,
      status,
    ]) {
      this.#tui.addChild(part);
    }
  }

  /** Opens a new conversation, or an earlier one, in place of the present one. */
  async #open(resume: ResumeWish | undefined): Promise<void> {
    try {
      const conversation = await openAgent({ ...this.#request, resume });
      this.#conversation = conversation;
      this.#totals = null;
      this.#contextUsed = null;
      for (const note of conversation.notes) this.#transcript.dim(note);
      if (conversation.resumed) this.#showRecap(conversation);
      this.#input.editor.setAutocompleteProvider(
        completions(this.#commands.availableIn("terminal"), this.#request.cwd, {
          titles: async () =>
            (await conversation.store.list({ limit: 50 })).flatMap((session) => (session.title ? [session.title] : [])),
          models: async () => (await conversation.knownModels()).map((row) => row.model),
        }),
      );
      void this.#readNotices(conversation);
    } catch (error) {
      this.#leave(1);
      this.#transcript.warn(error instanceof Error ? error.message : String(error));
    }
    this.#refresh();
  }

  async #readNotices(conversation: OpenAgent): Promise<void> {
    for await (const event of conversation.agent.notices) {
      if (event.type === "notice" && event.kind === "process")
        this.#turns.queue({ text: event.text, from: "synthetic" });
      this.#transcript.show(event);
      this.#refresh();
    }
  }

  #showRecap(conversation: OpenAgent): void {
    const { display } = this.#request.home.config();
    const name = conversation.resumed?.title ?? conversation.resumed?.id ?? "";
    const origin = conversation.resumed?.continuationOf;
    this.#transcript.dim(
      `resumed ${name}${origin ? ` (continuation of ${origin})` : ""}, ${conversation.history.length} messages`,
    );
    if (display.resume_display === "minimal") return;
    const { entries, olderExchanges } = recap(conversation.history, {
      exchanges: display.resume_exchanges,
      userChars: display.resume_max_user_chars,
      assistantChars: display.resume_max_assistant_chars,
      assistantLines: display.resume_max_assistant_lines,
      skipToolOnly: display.resume_skip_tool_only,
    });
    if (olderExchanges > 0) this.#transcript.dim(`... ${olderExchanges} earlier exchanges`);
    for (const entry of entries) {
      if (entry.who === "user") this.#transcript.user(entry.text);
      else if (entry.who === "tools") this.#transcript.dim(`┊ ${entry.text}`);
      else this.#transcript.answer(entry.text);
    }
  }

  async #submit(text: string): Promise<void> {
    if (text.trim() === "") return;
    if (this.#conversation === null) {
      this.#typedEarly.push(text);
      return;
    }
    const handled = await dispatchTyped(text, this.#commands, this.#commandContext(), {
      interrupt: async () => {
        this.#ready().agent.interrupt("a command was typed");
        this.#turns.dropQueue();
        await this.#turns.idle();
      },
    });
    this.#refresh();
    if (handled) return;
    const became = this.#turns.say(text);
    if (became === "steered") this.#transcript.dim(`↪ ${text}`);
    this.#refresh();
  }

  #onEvent(event: AgentEvent): void {
    switch (event.type) {
      case "turn_start":
        this.#turnStarted = this.#request.clock.now();
        if (event.input.from !== "synthetic") this.#transcript.user(event.input.persistText ?? event.input.text);
        this.#spin("thinking");
        break;
      case "tool_start":
        this.#spin(runningText(event.call));
        break;
      case "tool_progress":
        this.#spin(`${runningText(event.call)} (${Math.round(event.seconds)}s)`);
        break;
      case "tool_end":
      case "step":
        this.#spin("thinking");
        break;
      case "status":
        if (event.kind === "waiting" || event.kind === "lifecycle") this.#spin(event.message);
        break;
      case "text":
        this.#spin("writing");
        break;
      case "ask":
        this.#questions.ask(event.request);
        break;
      case "usage":
        this.#totals = event.totals;
        if (event.contextUsed !== null) this.#contextUsed = event.contextUsed;
        break;
      case "compressed":
        this.#compressions++;
        break;
      case "done":
        this.#endTurn();
        break;
    }
    this.#transcript.show(event);
    this.#refresh();
  }

  #endTurn(): void {
    if (this.#turnStarted !== null) this.#turnSeconds = (this.#request.clock.now() - this.#turnStarted) / 1000;
    this.#turnStarted = null;
    this.#spinner?.stop();
    this.#spinner = null;
    this.#activity.clear();
    if (this.#request.home.config().display.bell_on_complete) process.stdout.write("\u0007");
  }

  #spin(message: string): void {
    const line = message.replace(/\s+/g, " ").slice(0, 200);
    if (this.#spinner) return this.#spinner.setMessage(line);
    this.#spinner = new Loader(this.#tui, this.#theme.accent, this.#theme.dim, line);
    this.#activity.addChild(this.#spinner);
  }

  #listenToKeys(): void {
    this.#tui.addInputListener((data) => {
      if (matchesKey(data, "ctrl+c")) {
        this.#onCtrlC();
        return { consume: true };
      }
      if (matchesKey(data, "ctrl+d") && this.#input.editor.getText() === "" && !this.#questions.open) {
        this.#leave(0);
        return { consume: true };
      }
      if (matchesKey(data, "ctrl+l")) {
        this.#tui.requestRender(true);
        return { consume: true };
      }
      if (this.#questions.open) return undefined;
      return this.#input.intercept(data);
    });
  }

  #onCtrlC(): void {
    const action = this.#ctrlC.press(
      {
        questionOpen: this.#questions.open,
        busy: this.#turns.busy,
        menuOpen: this.#input.editor.isShowingAutocomplete(),
        draft: this.#input.editor.getText(),
      },
      this.#request.clock.now(),
    );
    switch (action) {
      case "cancel_question":
        return this.#questions.cancel();
      case "interrupt":
        this.#conversation?.agent.interrupt("stopped by the user");
        return;
      case "close_menu":
        return this.#input.editor.handleInput("\u001b");
      case "clear_draft":
        return this.#input.clear();
      case "arm_exit":
        this.#transcript.dim("press Ctrl+C again to leave");
        return this.#refresh();
      case "force_exit":
      case "exit":
        return this.#leave(action === "exit" ? 0 : 130);
    }
  }

  /** SIGTERM and SIGHUP: stop the turn, give it a moment, leave. A second one leaves at once. */
  #listenToSignals(): () => void {
    const codes = { SIGTERM: 143, SIGHUP: 129 } as const;
    const onSignal = (signal: keyof typeof codes) => {
      if (this.#leaving) process.exit(codes[signal]);
      this.#leave(codes[signal]);
    };
    const names = Object.keys(codes) as (keyof typeof codes)[];
    for (const name of names) process.on(name, onSignal);
    return () => {
      for (const name of names) process.off(name, onSignal);
    };
  }

  #commandContext(): CommandContext {
    const screen = this;
    const conversation = this.#ready();
    return {
      home: this.#request.home,
      store: conversation.store,
      get conversation() {
        return screen.#ready();
      },
      get busy() {
        return screen.#turns.busy;
      },
      get lastListed() {
        return screen.#lastListed;
      },
      set lastListed(listed) {
        screen.#lastListed = listed;
      },
      now: () => this.#request.clock.now() / 1000,
      say: (text) => this.#transcript.info(text),
      warn: (text) => this.#warn(text),
      submit: (text) => void this.#turns.say(text),
      queue: (text) => this.#turns.queue({ text }),
      pick: (title, items) => this.#questions.pick(title, items),
      confirm: async (title, detail) =>
        (await this.#questions.pick<"once" | "always" | "cancel">(
          `${title}\n${detail}`,
          [
            { label: "Yes", value: "once" },
            { label: "Yes, and do not ask again", value: "always" },
            { label: "No", value: "cancel" },
          ],
          2,
        )) ?? "cancel",
      startSession: ({ title }) => this.#switchTo(undefined, "new_session", title),
      resumeSession: (id) => this.#switchTo({ name: id }, "resumed_other"),
      commands: () => helpText(this.#commands.availableIn("terminal")),
      clearScreen: () => {
        this.#transcript.clear();
        this.#tui.requestRender(true);
      },
      quit: ({ deleteSession }) => void this.#quit(deleteSession),
    };
  }

  async #switchTo(resume: ResumeWish | undefined, reason: EndReason, title?: string): Promise<void> {
    await this.#conversation?.close(reason);
    this.#conversation = null;
    this.#transcript.dim("─".repeat(20));
    await this.#open(resume);
    if (title) await this.#ready().setTitle(title);
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
    this.#leaving = true;
    this.#conversation?.agent.interrupt("the screen was closed");
    this.#left.resolve(code);
  }

  /** Ends the session and says how to come back. */
  async #farewell(): Promise<void> {
    const conversation = this.#conversation;
    if (!conversation) return;
    const grace = Promise.withResolvers<void>();
    const timer = setTimeout(grace.resolve, 1500);
    await Promise.race([this.#turns.idle(), grace.promise]);
    clearTimeout(timer);
    const session = await conversation.store.get(conversation.agent.sessionId);
    await conversation.close("cli_close");
    if (!session || session.messageCount === 0) {
      process.stdout.write("Goodbye.\n");
      return;
    }
    const messages = await conversation.store.load(session.id);
    const summary = exitSummary({
      sessionId: session.id,
      title: session.title,
      profile: this.#request.home.paths.profile,
      seconds: (this.#request.clock.now() - this.#startedAt) / 1000,
      messages: messages.length,
      userMessages: messages.filter((message) => message.role === "user").length,
      toolCalls: session.toolCallCount,
    });
    process.stdout.write(`\n${summary}\n`);
  }

  #bannerLines(width: number): string[] {
    const conversation = this.#conversation;
    return banner(
      {
        profile: this.#request.home.paths.profile,
        cwd: this.#request.cwd,
        target: conversation?.target ?? null,
        toolCount: conversation?.toolNames.length ?? null,
      },
      width,
      this.#theme,
    );
  }

  #statusText(width: number): string {
    const now = this.#request.clock.now();
    const target = this.#conversation?.target;
    if (!target) return this.#theme.dim("connecting ...");
    const running = this.#turnStarted === null ? this.#turnSeconds : (now - this.#turnStarted) / 1000;
    return statusLine(
      {
        model: target.model,
        contextUsed: this.#contextUsed,
        contextLength: target.contextLength,
        totals: this.#totals,
        showCost: this.#request.home.config().display.show_cost,
        sessionSeconds: (now - this.#startedAt) / 1000,
        turnSeconds: running,
        busy: this.#turns.busy,
        compressions: this.#compressions,
        background: 0,
        queued: this.#turns.waiting.length,
        yolo: this.#conversation?.yolo ?? false,
      },
      width,
      this.#theme,
    );
  }

  #queueLines(): string[] {
    return this.#turns.waiting.map((text) => this.#theme.dim(`▶ next: ${text.split("\n")[0]?.slice(0, 60)}`));
  }

  #ready(): OpenAgent {
    if (this.#conversation === null) throw new Error("The conversation is not open yet; try again in a moment.");
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
