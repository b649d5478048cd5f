// A slash command behind `-z` or `-q`: the registry answers it, no model is asked. What belongs to a screen says so.
import { stat } from "node:fs/promises";
import type { OpenAgent } from "../../agent/opened.ts";
import { builtinCommands } from "../../commands/builtin.ts";
import type { CommandContext } from "../../commands/context.ts";
import { commandsOf, type DispatchSurface, dispatchTyped } from "../../commands/dispatch.ts";
import { helpText, parseTyped } from "../../commands/registry.ts";
import { menuSkills } from "../../commands/skills.ts";
import type { UserInput } from "../../llm/messages.ts";
import type { ChatRequest } from "../typed-input.ts";

/** What became of the text. */
type OnceOutcome =
  /** It is for the model, as typed or as a skill made it. */
  | { readonly type: "message"; readonly input: Pick<UserInput, "text" | "persistText"> }
  | { readonly type: "answered"; readonly said: readonly string[]; readonly warnings: readonly string[] }
  | { readonly type: "needs_screen"; readonly command: string };

const SURFACE: DispatchSurface = { kind: "terminal", interrupt: async () => undefined };

export async function runSlashOnce(text: string, request: ChatRequest, conversation: OpenAgent): Promise<OnceOutcome> {
  const typed = parseTyped(text);
  const asTyped: OnceOutcome = { type: "message", input: { text } };
  // `/tmp is full, why?` speaks of a folder.
  if (typed === null || (await stat(`/${typed.name}`).catch(() => null))) return asTyped;
  const said: string[] = [];
  const warnings: string[] = [];
  const messages: Pick<UserInput, "text" | "persistText">[] = [];
  let needsScreen = false;
  const screen = (): never => {
    needsScreen = true;
    throw new Error("needs a screen");
  };
  const registry = builtinCommands();
  const ctx: CommandContext = {
    home: request.home,
    store: conversation.store,
    clock: request.clock,
    cwd: request.cwd,
    platform: request.platform,
    conversation,
    busy: false,
    waiting: [],
    lastListed: [],
    now: () => request.clock.now() / 1000,
    say: (line) => void said.push(line),
    warn: (line) => void warnings.push(line),
    submit: (next) => void messages.push({ text: next }),
    queue: (next, { shownAs } = {}) =>
      void messages.push(shownAs === undefined ? { text: next } : { text: next, persistText: shownAs }),
    offerInput: screen,
    async pick(title, items) {
      said.push([title, ...items.map(({ label }) => `  ${label.trim()}`)].join("\n"));
      return null;
    },
    async confirm(title) {
      warnings.push(`${title} Not a terminal; add "now" after the command to confirm.`);
      return "cancel";
    },
    startSession: async () => screen(),
    resumeSession: async () => screen(),
    commands: () => helpText(commandsOf(registry, request, SURFACE).all()),
    skillCommands: () => menuSkills(ctx, commandsOf(registry, request, SURFACE)),
    quit: screen,
    // Whatever else a command wants of a terminal, there is none.
    terminal: new Proxy<object>(
      { keys: () => "", pictures: 0, takenBack: () => undefined, skins: undefined },
      { get: (known, name) => (Reflect.has(known, name) ? Reflect.get(known, name) : screen) },
    ) as NonNullable<CommandContext["terminal"]>, // each of its members is a function, but for the number and the skins
  };
  const known = await dispatchTyped(text, registry, ctx, SURFACE).catch((error: unknown) => {
    if (!needsScreen) throw error;
    return true;
  });
  if (!known) return asTyped;
  if (needsScreen || (said.length > 0 && said.every((line) => line === "")))
    return { type: "needs_screen", command: `/${typed.name}` };
  const [message] = messages;
  return message ? { type: "message", input: message } : { type: "answered", said, warnings };
}
