// What slash commands may do, as the screen does it.
import type { BackgroundTasks } from "../../agent/background.ts";
import type { OpenAgent } from "../../agent/opened.ts";
import type { CommandContext } from "../../commands/context.ts";
import type { MenuSkill } from "../../commands/skills.ts";
import { t } from "../../home/language/words.ts";
import type { UserInput } from "../../llm/messages.ts";
import type { SessionListItem } from "../../sessions/store.ts";
import type { Theme } from "../terminal-text.ts";
import type { ChatRequest, ResumeRequest } from "../typed-input.ts";
import type { Attachments } from "./attachments.ts";
import type { TerminalGoals } from "./goals.ts";
import type { InputLine } from "./input-line.ts";
import { keyHelp } from "./keys.ts";
import type { Questions } from "./questions.ts";
import { QueuePanel } from "./queue-panel.ts";
import type { Transcript } from "./transcript.ts";
import { shownText, type Turns } from "./turns.ts";

export interface SurfaceParts {
  readonly theme: Theme;
  readonly request: ChatRequest;
  readonly transcript: Transcript;
  readonly questions: Questions;
  readonly input: InputLine;
  readonly attachments: Attachments;
  readonly turns: Turns;
  conversation(): OpenAgent;
  readonly background: BackgroundTasks;
  readonly goals: TerminalGoals;
  /** The list that numbers of `/resume N` refer to. */
  lastListed: readonly SessionListItem[];
  warn(text: string): void;
  switchTo(resume: ResumeRequest | undefined, title?: string): Promise<void>;
  help(): string;
  skillCommands(): Promise<readonly MenuSkill[]>;
  quit(options: { readonly deleteSession: boolean }): Promise<void>;
  redraw(): void;
  compose(): Promise<void>;
  /** Straight to the terminal. */
  write(data: string): void;
  paste(): Promise<void>;
  toggleStatusLine(): boolean;
  toggleTodos(): string;
  takenBack(turns: number): void;
  readonly skins: NonNullable<CommandContext["terminal"]>["skins"];
}

const CONFIRM_MS = 120_000;

export function commandContext(parts: SurfaceParts): CommandContext {
  const { request, transcript, questions, input, attachments, turns } = parts;
  return {
    home: request.home,
    store: parts.conversation().store,
    clock: request.clock,
    cwd: request.cwd,
    platform: request.platform,
    get conversation() {
      return parts.conversation();
    },
    get busy() {
      return turns.busy || parts.conversation().agent.busy;
    },
    get waiting() {
      return turns.waiting;
    },
    get lastListed() {
      return parts.lastListed;
    },
    set lastListed(listed) {
      parts.lastListed = listed;
    },
    now: () => request.clock.now() / 1000,
    columns: () => process.stdout.columns ?? 80,
    say: (text) => transcript.info(text),
    warn: (text) => parts.warn(text),
    submit: (text, { parts } = {}) =>
      void turns.say(parts ? attachments.carrying({ text, parts }) : attachments.takeOnto({ text })),
    queue: (text, { shownAs } = {}) =>
      turns.queue(attachments.takeOnto(shownAs === undefined ? { text } : { text, persistText: shownAs })),
    offerInput: (text, { parts = [] } = {}) => {
      attachments.putBack({ text, parts });
      input.draft = text;
    },
    pick: (title, items, options = {}) =>
      questions.pick(title, items, options.menu ? options : { filter: true, numbers: "shown", ...options }),
    confirm: async (title, detail) =>
      (await questions.pick<"once" | "always" | "cancel">(
        `${title}\n${detail}`,
        [
          { label: t("Yes"), value: "once" },
          { label: t("Yes, and don't ask again"), value: "always" },
          { label: t("No"), value: "cancel" },
        ],
        { selected: 2, timeoutMs: CONFIRM_MS },
      )) ?? "cancel",
    startSession: ({ title }) => parts.switchTo(undefined, title),
    resumeSession: (id) => parts.switchTo({ name: id }),
    commands: () => parts.help(),
    skillCommands: () => parts.skillCommands(),
    get goals() {
      return parts.goals.present;
    },
    background: {
      get running() {
        return parts.background.running;
      },
      start: (prompt) => parts.background.start(prompt, request, parts.conversation()),
      stop: (id) => parts.background.stop(id),
    },
    quit: (options) => void parts.quit(options),
    terminal: {
      clearScreen: () => {
        transcript.clear();
        parts.redraw();
      },
      redraw: () => parts.redraw(),
      copy: async (text) =>
        (await import("./clipboard.ts")).copyText(text, {
          remote: request.home.env("SSH_CONNECTION") !== undefined,
          write: (data) => parts.write(data),
        }),
      compose: () => parts.compose(),
      attach: (line) => attachments.attachLine(line),
      paste: () => parts.paste(),
      get pictures() {
        return attachments.count;
      },
      keys: keyHelp,
      openQueue: async () => {
        const edit = (message: UserInput) => {
          // The draft comes back with Ctrl+S.
          if (input.draft !== "") {
            attachments.stash({ restore: false });
            input.stash();
          }
          attachments.putBack(message);
          input.putBack(shownText(message));
        };
        await questions.panel((close) => new QueuePanel({ turns, theme: parts.theme, edit, close }));
      },
      setup: async (section) => (await import("./setup-screen.ts")).setUpOnScreen(section, parts),
      toggleStatusLine: () => parts.toggleStatusLine(),
      toggleTodos: () => parts.toggleTodos(),
      takenBack: (turns) => parts.takenBack(turns),
      skins: parts.skins,
    },
  };
}
