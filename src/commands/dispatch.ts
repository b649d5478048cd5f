// Typed text -> a command, or not. The same on every surface.
import { didYouMean } from "../kit/did-you-mean.ts";
import type { CommandContext } from "./context.ts";
import { type CommandRegistry, parseTyped } from "./registry.ts";

/** Runs the command that the text names. False = it is no command and belongs to the model. Never throws for what a command did. */
export async function dispatchTyped(
  text: string,
  registry: CommandRegistry,
  ctx: CommandContext,
  surface: { interrupt(): Promise<void> },
): Promise<boolean> {
  const typed = parseTyped(text);
  if (typed === null) return false;
  const match = registry.find(typed.name);
  if (match.type === "unknown") {
    const near = didYouMean(
      typed.name,
      registry.all().map((command) => command.name),
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
  if (ctx.busy && policy === "reject") {
    ctx.warn(`/${command.name} has to wait until the running turn is over. Stop it with Ctrl+C or /stop first.`);
    return true;
  }
  if (ctx.busy && policy === "interrupt_then_dispatch") await surface.interrupt();
  try {
    await command.run(typed.args, ctx);
  } catch (error) {
    ctx.warn(`/${command.name}: ${error instanceof Error ? error.message : error}`);
  }
  return true;
}
