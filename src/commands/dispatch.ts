// Typed text -> a command, or not. The same on every surface.
import { stat } from "node:fs/promises";
import { didYouMean } from "../kit/did-you-mean.ts";
import type { CommandContext } from "./context.ts";
import { pluginCommands } from "./plugins.ts";
import { quickCommands } from "./quick.ts";
import { type CommandRegistry, parseTyped } from "./registry.ts";
import { invokeSkills, withSkillCommands } from "./skills.ts";

export interface DispatchSurface {
  readonly kind: "terminal" | "gateway";
  /** Stops the running turn and waits for its end. */
  interrupt(): Promise<void>;
}

/** Runs the command that the text names. False = it is no command and belongs to the model. Never throws for what a command did. */
export async function dispatchTyped(
  text: string,
  registry: CommandRegistry,
  ctx: CommandContext,
  surface: DispatchSurface,
  visited: ReadonlySet<string> = new Set(),
): Promise<boolean> {
  const typed = parseTyped(text);
  if (typed === null) return false;
  const known = commandsOf(registry, ctx, surface, visited);
  // A whole name comes before every beginning of one, be it a command's or a skill's.
  const exact = known.get(typed.name);
  if (!exact && (await invokeSkills(text, ctx, known))) return true;
  const all = exact ? known : await withSkillCommands(ctx, known);
  const match = all.find(typed.name);
  if (match.type === "unknown") {
    // A file that was dropped into the terminal is something to talk about.
    if (await isFile(`/${typed.name}`)) return false;
    const near = didYouMean(
      typed.name,
      all.all().map((command) => command.name),
    );
    const hint = near.length > 0 ? ` Did you mean ${near.map((name) => `/${name}`).join(", ")}?` : "";
    ctx.warn(`Unknown command /${typed.name}.${hint} /help lists the commands. Nothing was sent to the model.`);
    return true;
  }
  if (match.type === "ambiguous") {
    ctx.warn(`/${typed.name} could be ${match.names.map((name) => `/${name}`).join(", ")}.`);
    return true;
  }
  const { command } = match;
  const policy = command.busyPolicy ?? "reject";
  const hasToWait = () => {
    if (!ctx.busy || policy !== "reject") return false;
    ctx.warn(`/${command.name} has to wait until the running turn is over. Stop it with Ctrl+C or /stop first.`);
    return true;
  };
  if (hasToWait()) return true;
  try {
    if (command.mayRun && !(await command.mayRun(typed.args, ctx))) return true;
    // While a question was open a turn may have begun, or come to its end.
    if (hasToWait()) return true;
    if (ctx.busy && policy === "interrupt_then_dispatch") await surface.interrupt();
    await command.run(typed.args, ctx);
  } catch (error) {
    ctx.warn(`/${command.name}: ${error instanceof Error ? error.message : error}`);
  }
  return true;
}

/** What can be typed here: the surface's commands and the user's own. A name that is taken keeps its meaning. */
export function commandsOf(
  registry: CommandRegistry,
  ctx: Pick<CommandContext, "home">,
  surface: DispatchSurface,
  visited: ReadonlySet<string> = new Set(),
): CommandRegistry {
  const quick = quickCommands(
    ctx.home.config().quick_commands,
    async (text, inner, path) => {
      if (!(await dispatchTyped(text, registry, inner, surface, path))) inner.submit(text);
    },
    visited,
  );
  const own = registry.in(surface.kind).with(quick);
  return own.with(pluginCommands(ctx.home, (name) => own.get(name) !== null));
}

async function isFile(path: string): Promise<boolean> {
  const facts = await stat(path).catch(() => null); // not there, or not ours to see
  return facts?.isFile() === true;
}
