// Typed text -> a command, or not. The same on every surface.

import { spawn } from "node:child_process";
import { stat } from "node:fs/promises";
import { maskedLine } from "../agent/pasted-keys.ts";
import type { OpenHome } from "../home/open.ts";
import { messageOf } from "../kit/errors.ts";
import { didYouMean } from "../kit/similarity.ts";
import type { CommandContext, CommandDefinition } from "./context.ts";
import { otherName } from "./other-names.ts";
import { type CommandRegistry, type CommandSurface, parseTyped } from "./registry.ts";
import { invokeSkills, withSkillCommands } from "./skills.ts";
import { pluginCommands } from "./tools.ts";

export interface DispatchSurface {
  readonly kind: CommandSurface;
  /** Stops the running turn and waits for its end. */
  interrupt(): Promise<void>;
  /** A command was typed and is about to answer; what becomes a message is not one. */
  echo?(text: string): void;
  /** Why the command that was found does not run here, however it was typed: shortened, or by an alias. Null: it does. */
  refusal?(command: CommandDefinition, args: string): string | null;
}

/** Runs the command that the text names. False = it is not a command and belongs to the model. Never throws for what a command did. */
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
  // An exact name of a command or skill wins over an abbreviation.
  const exact = known.get(typed.name);
  if (!exact && (await invokeSkills(text, ctx, known))) return true;
  const all = exact ? known : await withSkillCommands(ctx, known);
  const other = all.get(typed.name) ? null : otherName(typed, ctx, (name) => all.get(name) !== null);
  if (other === "answered") return true;
  const match = all.find(other?.runs ?? typed.name);
  if (match.type === "unknown") {
    // A path of a file dropped into the terminal goes to the model.
    if (await isFile(`/${typed.name}`)) return false;
    const near = didYouMean(
      typed.name,
      all.all().map((command) => command.name),
    );
    surface.echo?.(text);
    const hint = near.length > 0 ? ` Did you mean ${near.map((name) => `/${name}`).join(", ")}?` : "";
    ctx.warn(`Unknown command /${typed.name}.${hint} /help lists the commands. Nothing was sent to the model.`);
    return true;
  }
  const isSkill = match.type === "found" && known.get(match.command.name) === null;
  if (!isSkill) surface.echo?.(text);
  if (match.type === "ambiguous") {
    ctx.warn(`/${typed.name} could be ${match.names.map((name) => `/${name}`).join(", ")}.`);
    return true;
  }
  const { command } = match;
  const refusal = isSkill ? null : (surface.refusal?.(command, typed.args) ?? null);
  if (refusal !== null) {
    ctx.warn(refusal);
    return true;
  }
  const policy = command.busyPolicy ?? "reject";
  const hasToWait = () => {
    if (!ctx.busy || policy !== "reject") return false;
    ctx.warn(`/${command.name} cannot run during a turn. Stop the turn first with Ctrl+C or /stop.`);
    return true;
  };
  if (hasToWait()) return true;
  const args = command.keepsText ? withoutKeys(typed.args, ctx) : typed.args;
  try {
    if (command.mayRun && !(await command.mayRun(args, ctx))) return true;
    // A turn may have begun or ended while the question was open.
    if (hasToWait()) return true;
    if (ctx.busy && policy === "interrupt_then_dispatch") await surface.interrupt();
    await command.run(args, ctx);
  } catch (error) {
    ctx.warn(`/${command.name}: ${messageOf(error)}`);
  }
  return true;
}

function withoutKeys(args: string, { home, warn }: CommandContext): string {
  const { text, keys } = home.redact.fromUser(args);
  if (keys.length > 0) warn(maskedLine(keys));
  return text;
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
  const facts = await stat(path).catch(() => null); // missing or unreadable
  return facts?.isFile() === true;
}

// Slash commands of the user's own, from `quick_commands` in config.yaml.

/** Starts another typed command; the names that led here are refused, so that aliases cannot go in circles. */
type RunTyped = (text: string, ctx: CommandContext, visited: ReadonlySet<string>) => Promise<void>;

/** Each entry is a command, a bad one too: it says what is wrong with it. */
function quickCommands(
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
        if (visited.has(name)) return ctx.warn(`quick_commands.${key} is an alias of itself.`);
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

const LIMIT_MS = 30_000;
const MAX_CHARS = 200_000;

interface LineResult {
  readonly output: string;
  readonly errors: string;
  /** Null when it had to be stopped. */
  readonly code: number | null;
}

/** Runs a shell line of the user's own, for at most 30 seconds. */
export function runLine(
  line: string,
  { home, cwd }: { readonly home: Pick<OpenHome, "environment">; readonly cwd: string },
): Promise<LineResult> {
  const shell = process.platform === "win32" ? { shell: true } : { shell: "/bin/sh" };
  return new Promise((resolve, reject) => {
    const child = spawn(line, {
      ...shell,
      cwd,
      env: { ...home.environment() },
      stdio: ["ignore", "pipe", "pipe"],
      detached: process.platform !== "win32",
    });
    const stop = () => {
      // Kills the whole process group, the shell's children included.
      if (child.pid !== undefined && process.platform !== "win32") process.kill(-child.pid, "SIGKILL");
      else child.kill("SIGKILL");
    };
    const timer = setTimeout(stop, LIMIT_MS);
    let output = "";
    let errors = "";
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      if (output.length < MAX_CHARS) output += text;
    });
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      if (errors.length < MAX_CHARS) errors += text;
    });
    child.on("error", reject);
    child.on("close", (code) => {
      clearTimeout(timer);
      resolve({ output, errors, code });
    });
  });
}
