// Slash commands in editors: those of the one registry that are marked for them. Everything else that begins with a slash is the model's.
import { randomUUID } from "node:crypto";
import type { AvailableCommand, ContentBlock } from "@agentclientprotocol/sdk";
import type { OpenAgent } from "../../agent/opened.ts";
import { builtinCommands } from "../../commands/builtin.ts";
import type { CommandContext, CommandDefinition } from "../../commands/context.ts";
import { type DispatchSurface, dispatchTyped } from "../../commands/dispatch.ts";
import { type CommandRegistry, helpText, parseTyped } from "../../commands/registry.ts";
import type { Goals } from "../../goals/keeper.ts";
import { said } from "../../home/language/words.ts";
import type { OpenHome } from "../../home/open.ts";
import type { Clock } from "../../kit/clock.ts";
import type { Permissions } from "./permissions.ts";

/** What commands may do to the session they are typed in. */
interface CommandPorts {
  readonly world: CommandWorld;
  conversation(): OpenAgent;
  goals(): Goals;
  /** A prompt runs or waits. */
  isBusy(): boolean;
  readonly permissions: Permissions;
  say(text: string): Promise<void>;
  replace(how: { readonly type: "new" | "resume"; readonly id: string }): Promise<void>;
  /** Stops the running turn and waits for its end. */
  stop(): Promise<void>;
}

/** What a command has to know of the program. */
export interface CommandWorld {
  readonly home: OpenHome;
  readonly clock: Clock;
  readonly platform: string;
}

export interface CommandRun {
  /** What the command says to the model, if it does. */
  readonly becomes: { readonly text: string; readonly persistText?: string } | null;
}

const REGISTRY: CommandRegistry = builtinCommands();

export class EditorCommands {
  readonly #ports: CommandPorts;

  constructor(ports: CommandPorts) {
    this.#ports = ports;
  }

  /** The typed text when it is a command of an editor; null when it is a prompt. */
  find(blocks: readonly ContentBlock[]): string | null {
    const text = blocks
      .flatMap((block) => (block.type === "text" ? [block.text] : []))
      .join("\n")
      .trim();
    const typed = parseTyped(text);
    const command = typed && REGISTRY.get(typed.name);
    return command?.editor ? text : null;
  }

  async run(text: string, signal: AbortSignal): Promise<CommandRun> {
    const { permissions } = this.#ports;
    const messages: NonNullable<CommandRun["becomes"]>[] = [];
    const saying: Promise<void>[] = [];
    const say = (line: string) => void saying.push(this.#ports.say(`${said(line)}\n`));
    const ctx = this.#context(
      say,
      (message) => messages.push(message),
      (title, detail) => permissions.confirm(title, detail, true, signal),
    );
    const surface: DispatchSurface = { kind: "editor", interrupt: () => this.#ports.stop() };
    await dispatchTyped(text, REGISTRY, ctx, surface);
    await Promise.all(saying);
    return { becomes: messages[0] ?? null };
  }

  #context(
    say: (text: string) => void,
    submit: (message: NonNullable<CommandRun["becomes"]>) => void,
    confirm: CommandContext["confirm"],
  ): CommandContext {
    const ports = this.#ports;
    const { home, clock, platform } = ports.world;
    const conversation = () => ports.conversation();
    return {
      ...{ home, clock, platform, confirm, say },
      get conversation() {
        return conversation();
      },
      get goals() {
        return ports.goals();
      },
      get store() {
        return conversation().store;
      },
      get cwd() {
        return conversation().cwd;
      },
      get busy() {
        return ports.isBusy() || conversation().agent.busy;
      },
      keptHint: "This one is saved; the list of the editor offers it.",
      waiting: [],
      lastListed: [],
      now: () => clock.now() / 1000,
      warn: (text) => say(`⚠ ${said(text)}`),
      submit: (text) => submit({ text }),
      queue: (text, { shownAs } = {}) => submit(shownAs === undefined ? { text } : { text, persistText: shownAs }),
      offerInput: say,
      async pick(title, items) {
        const rows = items.slice(0, MOST_LISTED).map(({ label, current }) => `${current ? "•" : "-"} ${label.trim()}`);
        const more = items.length - MOST_LISTED;
        say([said(title), ...rows, ...(more > 0 ? [`… ${more}`] : [])].join("\n"));
        return null;
      },
      startSession: async ({ title }) => {
        const id = randomUUID();
        await ports.replace({ type: "new", id });
        if (title !== undefined) await conversation().setTitle(title);
        say("New conversation. What can I do for you?");
      },
      resumeSession: (id) => ports.replace({ type: "resume", id }),
      commands: () => helpText(editorCommands()),
      skillCommands: async () => [],
      quit: () => say("Close the conversation in the editor."),
    };
  }
}

const MOST_LISTED = 40;

const editorCommands = (): readonly CommandDefinition[] => REGISTRY.availableIn("editor");

/** What an editor completes behind a slash. */
export function offeredCommands(): AvailableCommand[] {
  return editorCommands().map(({ name, description, argsHint }) => ({
    name,
    description: said(description),
    ...(argsHint === undefined ? {} : { input: { hint: argsHint } }),
  }));
}
