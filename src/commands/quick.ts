// Slash commands of the user's own, from `quick_commands` in config.yaml.
import type { CommandContext } from "./context.ts";
import type { CommandDefinition } from "./definition.ts";
import { runLine } from "./run-line.ts";

/** Starts another typed command; the names that led here are refused, so that aliases cannot go in circles. */
export type RunTyped = (text: string, ctx: CommandContext, visited: ReadonlySet<string>) => Promise<void>;

/** Each entry is a command, a bad one too: it says what is wrong with it. */
export function quickCommands(
  entries: Readonly<Record<string, unknown>>,
  runTyped: RunTyped,
  visited: ReadonlySet<string> = new Set(),
): CommandDefinition[] {
  return Object.entries(entries).map(([key, entry]) => {
    const name = key.replace(/^\/+/, "").toLowerCase();
    const quick = parse(entry);
    const common = { name, category: "Tools & Skills" as const };
    if (quick === null) {
      const problem = `quick_commands.${key} in config.yaml needs {type: exec, command: ...} or {type: alias, target: /...}.`;
      return { ...common, description: "(broken entry)", run: async (_args, ctx) => ctx.warn(problem) };
    }
    if (quick.type === "exec") {
      const run = (_args: string, ctx: CommandContext) => execute(name, quick.command, ctx);
      return { ...common, description: quick.command, busyPolicy: "dispatch" as const, run };
    }
    return {
      ...common,
      description: `→ ${quick.target}`,
      // The command it stands for decides for itself.
      busyPolicy: "dispatch" as const,
      run: async (args: string, ctx: CommandContext) => {
        if (visited.has(name)) return ctx.warn(`quick_commands.${key} leads back to itself through its target.`);
        await runTyped(`${quick.target} ${args}`.trim(), ctx, new Set([...visited, name]));
      },
    };
  });
}

async function execute(name: string, command: string, ctx: CommandContext): Promise<void> {
  const { output, errors, code } = await runLine(command, ctx);
  if (code === null) return ctx.warn(`/${name} was stopped after 30 seconds.`);
  const text = (output.trim() === "" ? errors : output).trimEnd();
  ctx.say(text === "" ? `(no output, exit code ${code})` : text);
}

type Quick = { readonly type: "exec"; readonly command: string } | { readonly type: "alias"; readonly target: string };

function parse(entry: unknown): Quick | null {
  if (typeof entry !== "object" || entry === null) return null;
  const { type, command, target } = entry as Readonly<Record<string, unknown>>; // looked at below
  if (type === "exec" && typeof command === "string" && command.trim() !== "") return { type, command };
  if (type === "alias" && typeof target === "string" && target.startsWith("/")) return { type, target };
  return null;
}
