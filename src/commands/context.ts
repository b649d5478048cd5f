import type { BackgroundTask } from "../agent/background.ts";
import type { OpenAgent } from "../agent/opened.ts";
import type { Goals } from "../goals/keeper.ts";
import type { OpenHome } from "../home/open.ts";
import type { Clock } from "../kit/clock.ts";
import type { ContentPart } from "../llm/messages.ts";
import type { SessionListItem, SessionStore } from "../sessions/store.ts";
import type { MenuSkill } from "./skills.ts";

/**
 * What a slash command may do to its surface. Each door satisfies it once; commands never know which door they serve.
 *
 * - `say` and `warn` show text to the user only; nothing of it reaches the model.
 * - `submit` sends a text as the user's next message, `queue` after everything that waits already.
 */
export interface CommandContext {
  readonly home: OpenHome;
  readonly store: SessionStore;
  readonly clock: Clock;
  /** The working directory. */
  readonly cwd: string;
  /** The platform whose tools are in force, such as `cli`. */
  readonly platform: string;
  /** The conversation right now; another one after `startSession` or `resumeSession`. */
  readonly conversation: OpenAgent;
  readonly busy: boolean;
  /** How a conversation is found again that `startSession` leaves, where it is not by `/resume`. */
  readonly keptHint?: string;
  /** What waits to be said after the running turn. */
  readonly waiting: readonly string[];
  /** Unix seconds. */
  now(): number;
  /** Cells of a line; absent where lines have no width. */
  columns?(): number;
  say(text: string): void;
  warn(text: string): void;
  /** `parts`: the pictures of the message, in place of those that are attached. */
  submit(text: string, options?: Carried): void;
  /** `shownAs` is what is stored and shown when the model gets something longer. */
  queue(text: string, options?: { readonly shownAs?: string }): void;
  /** Puts a text where the user can change and send it; surfaces without an input line show it. */
  offerInput(text: string, options?: Carried): void;
  /** Asks for one of several things; null = cancelled. Surfaces without a picker list them and return null. */
  pick<T>(title: string, items: readonly PickItem<T>[], options?: PickOptions<T>): Promise<T | null>;
  confirm(title: string, detail: string): Promise<"once" | "always" | "cancel">;
  /** Leaves the current conversation and starts another. */
  startSession(options: { readonly title?: string }): Promise<void>;
  resumeSession(id: string): Promise<void>;
  /** The list that numbers of `/resume N` refer to. */
  lastListed: readonly SessionListItem[];
  commands(): string;
  /** Skills and bundles that can be typed as commands here. */
  skillCommands(): Promise<readonly MenuSkill[]>;
  /** The standing goal of the conversation. Absent where one turn is all there is. */
  readonly goals?: Goals;
  /** Background prompts. Absent where their answers could not be shown. */
  readonly background?: BackgroundPort;
  quit(options: { readonly deleteSession: boolean }): void;
  /** Absent where there is none: commands that need it are offered in the terminal alone. */
  readonly terminal?: TerminalSurface;
  /** Absent in a terminal. */
  readonly chat?: ChatSurface;
}

/** A chat as its own commands see it. Each answer is a text for the person. */
export interface ChatSurface {
  /** Answers what waits for an approval here, the oldest or all; resolves to how many that were. */
  answer(
    choice: "once" | "session" | "always" | "deny",
    options: { readonly all: boolean; readonly reason?: string },
  ): Promise<number>;
  /** Stops the running turn and drops plain messages that wait. */
  stop(): Promise<string>;
  /** For the turn that another process runs on this conversation. Resolves to what came of it; null when none does. */
  steerElsewhere(text: string): Promise<string | null>;
  whoami(): string;
  /** Who typed the command, as far as the platform says. */
  readonly person: { readonly id?: string; readonly name?: string; readonly chatType: string };
  /** Where this is, for what answers here later. */
  readonly place: {
    readonly platform: string;
    readonly chat_id: string;
    readonly chat_name?: string;
    readonly thread_id?: string;
  };
  /** This chat is where messages without one of their own go. */
  setHome(): Promise<string>;
  /** Finishes what runs, then starts the gateway again. */
  restart(): Promise<string>;
  readonly platforms: readonly { readonly name: string; readonly state: string; readonly account: string }[];
  /** Resolves to what came of it. */
  setPlatform(name: string, state: "pause" | "resume"): Promise<string>;
  /** Chooses which answers are read aloud, or says it; null: that is no choice. */
  voice(word: string): Promise<string | null>;
  /** How a command is typed here. */
  word(name: string): string;
  /** What this person may run here. */
  allowed(): readonly CommandDefinition[];
}

/** What a message carries besides its text. */
interface Carried {
  readonly parts?: readonly ContentPart[];
}

interface BackgroundPort {
  readonly running: readonly BackgroundTask[];
  start(prompt: string): BackgroundTask;
  /** False when no such task runs. */
  stop(id: string): boolean;
}

interface TerminalSurface {
  clearScreen(): void;
  redraw(): void;
  /** Resolves to how it was done. */
  copy(text: string): Promise<string>;
  /** The next message in the user's editor. */
  compose(): Promise<void>;
  /** The messages that wait, to be edited, deleted, moved or sent now. */
  openQueue(): Promise<void>;
  /** Attaches the pictures that the line begins with. Resolves to the rest of it; null when none could be, as was shown. */
  attach(line: string): Promise<string | null>;
  /** Attaches the picture on the clipboard; a text goes into the input. */
  paste(): Promise<void>;
  /** Attached to the next message. */
  readonly pictures: number;
  /** The keys and what they do, by task. */
  keys(): string;
  /** Connects a model and the like, step by step. Empty = ask what. */
  setup(section: string): Promise<void>;
  /** Returns whether the status line is shown now. */
  toggleStatusLine(): boolean;
  /** Shows or hides the task list; returns what to say about it. */
  toggleTodos(): string;
  /** The last turns no longer count: what is still on the screen of them is shown so. */
  takenBack(turns: number): void;
  /** Absent on a screen without colours. */
  readonly skins?: SkinPort | undefined;
}

export interface SkinPort {
  /** The name of the one in use. */
  readonly present: string;
  all(): Promise<readonly { readonly name: string; readonly description: string }[]>;
  /** Switches at once and saves it. Resolves to what is wrong with it, or null. */
  wear(name: string): Promise<string | null>;
}

export interface PickItem<T> {
  readonly label: string;
  /** One text, or several that stand in columns; where there is no room for all of them the last ones are left out. */
  readonly hint?: string | readonly string[];
  /** What typing looks at in place of label and hint. */
  readonly search?: string;
  /** It is the one in force: it gets a mark. */
  readonly current?: boolean;
  readonly value: T;
}

/** What a picker may do beyond its rows. Surfaces without a picker ignore it. */
export interface PickOptions<T> {
  /** A few things to do: a number takes its row at once, nothing is searched. */
  readonly menu?: boolean;
  readonly selected?: number;
  /** More about the row under the cursor. */
  preview?(value: T): Promise<string>;
  /** What else there is for what was typed, behind the rows that match by themselves. */
  find?(typed: string): Promise<readonly PickItem<T>[]>;
}

// One slash command. A single ordered list of these feeds dispatch, help, completion and platform menus on every surface.

export const CATEGORIES = ["Session", "Configuration", "Tools & Skills", "Info", "Exit"] as const;
export type Category = (typeof CATEGORIES)[number];

export interface CommandDefinition {
  /** Canonical, lower-case, without the slash. */
  readonly name: string;
  readonly description: string;
  readonly category: Category;
  readonly aliases?: readonly string[];
  /** e.g. `[name]`; plain words joined by `|` become subcommands for completion. */
  readonly argsHint?: string;
  readonly subcommands?: readonly string[];
  readonly availability?: "everywhere" | "cli" | "gateway";
  /** Dotted config key that, when truthy, opens a cli-only command to gateways. */
  readonly gatewayConfigGate?: string;
  /** Editors offer it; all others they leave to the model. */
  readonly editor?: true;
  readonly destructive?: boolean;
  readonly permission?: "user" | "admin";
  /** What is typed behind it only looks: everybody who may write here may do that, whatever the lists of commands say. */
  onlyLooks?(args: string): boolean;
  /** What is typed behind it is stored or sent by another way than a message: keys in it are masked before it runs. */
  readonly keepsText?: true;
  /** What happens when a turn is running. Default `reject`. */
  readonly busyPolicy?: "dispatch" | "reject" | "interrupt_then_dispatch";
  /**
   * What may stand at the end of what is typed behind the name; null = any words. Without it, the subcommands come first and then any words.
   */
  values?(typed: string, ctx: ValueContext): Promise<CommandValues | null>;
  /**
   * The question before a destructive command, and what has to be refused as it was typed. False = the command does not run.
   * Asked before a running turn is interrupted, so that a no loses nothing.
   */
  mayRun?(args: string, ctx: CommandContext): Promise<boolean>;
  run(args: string, ctx: CommandContext): Promise<void>;
}

/** All that completing a command may look at. */
type ValueContext = Pick<CommandContext, "home" | "store" | "conversation" | "platform" | "skillCommands" | "now"> & {
  readonly skins?: SkinPort | undefined;
};

export interface CommandValues {
  /** The end of what was typed that a value takes the place of. */
  readonly replaces: string;
  readonly values: readonly { readonly value: string; readonly about?: string }[];
}

/** What is typed behind a command: the finished words, and the one at its end, which may be empty. */
export function typedWords(typed: string): { readonly words: readonly string[]; readonly last: string } {
  const words = typed.split(/[\s,]+/);
  const last = words.pop() ?? "";
  return { words: words.filter((word) => word !== ""), last };
}

interface DestructiveQuestion {
  readonly what: string;
  readonly detail: string;
  /** The command was typed with a word that skips the question. */
  readonly skip: boolean;
}

/** Destructive commands ask first, unless asking is switched off or nothing would be lost. True = go on. */
export async function confirmDestructive(
  ctx: CommandContext,
  { what, detail, skip }: DestructiveQuestion,
): Promise<boolean> {
  const session = await ctx.store.get(ctx.conversation.agent.sessionId);
  const nothingToLose = !ctx.busy && (session?.messageCount ?? 0) === 0;
  if (skip || nothingToLose || !ctx.home.config().approvals.destructive_slash_confirm) return true;
  const choice = await ctx.confirm(what, detail);
  if (choice === "always") await ctx.home.setConfigKey("approvals.destructive_slash_confirm", false);
  if (choice === "cancel") ctx.say("Nothing changed.");
  return choice !== "cancel";
}
