// `hermes setup` and `hermes model`: the steps of setup at a terminal.
import type { Command } from "commander";
import { said } from "../../home/language/words.ts";
import { hermesCommand } from "../../home/paths.ts";
import { systemClock } from "../../kit/clock.ts";
import { refreshFacts } from "../../llm/catalogue/published-facts.ts";
import { type CliContext, ExitError } from "../cli-context.ts";
import { resetSettings, runSetup, SECTIONS, type Section, type Setup, workingModel } from "../setup.ts";
import { SetupCancelled, type SetupQuestion, SetupSkipped, type SetupSurface } from "../setup-model.ts";
import { wrapLines } from "../terminal-text.ts";
import { confirm, factLines, wrapPrompt } from "./present.ts";

interface SetupOptions {
  readonly quick?: true;
  readonly reset?: true;
  readonly nonInteractive?: true;
  readonly yes?: true;
}

export function define(command: Command, ctx: CliContext): void {
  command
    .description("Connect a model; configure speech, terminal, chats, tools and agent.")
    .argument("[section]", SECTIONS.join(", "))
    .option("--quick", "ask only for what is missing")
    .option("--reset", "restore the default settings first; keys are kept")
    .option("-y, --yes", "with --reset: do not ask for confirmation")
    .option("--non-interactive", "only print the commands to run")
    .action((section: string | undefined, options: SetupOptions) => setUp(ctx, sectionOf(section), options));
}

export function defineModel(command: Command, ctx: CliContext): void {
  command
    .description("Choose provider and model and save them in config.yaml.")
    .option("--refresh", "refresh the published model list first")
    .action(async (options: { refresh?: boolean }) => {
      if (options.refresh) {
        const trouble = await refreshFacts(ctx.home, { fetch, now: () => systemClock.now() }, { force: true });
        if (trouble !== null) throw new ExitError(1, `${trouble}`);
        ctx.io.out("✓ Model list updated.\n");
        if (!isInteractive(ctx)) return;
      }
      if (!isInteractive(ctx)) throw new ExitError(1, `hermes model needs a terminal. Without one:\n${byHand()}`);
      await setUp(ctx, "model", {});
    });
}

function sectionOf(word: string | undefined): Section | undefined {
  const section = SECTIONS.find((name) => name === word);
  if (word !== undefined && !section)
    throw new ExitError(2, `hermes setup: there is no section "${word}". Sections: ${SECTIONS.join(", ")}.`);
  return section;
}

const isInteractive = ({ io }: CliContext) => io.stdinIsTerminal && io.stdoutIsTerminal;

export async function setUp(ctx: CliContext, section: Section | undefined, options: SetupOptions): Promise<void> {
  const { home, io } = ctx;
  if (home.configProblem)
    throw new ExitError(1, `${home.warnings.join("\n")}\nFix it with: ${hermesCommand("config edit")}`);
  const surface = new CommandLine(ctx);
  try {
    if (options.reset) await reset(ctx, options);
    if (options.nonInteractive || !isInteractive(ctx)) {
      if (options.reset) return;
      io.out(`${byHand()}\n`);
      if (section !== undefined && (await workingModel(home)) === null) throw new ExitError(1);
      return;
    }
    const setup: Setup = {
      home,
      surface,
      fetch,
      tools: () => chooseTools(ctx, surface),
      gateway: () => connectChat(ctx, surface),
    };
    const { saved, cancelled } = await runSetup(setup, { section, quick: options.quick });
    const all = options.reset ? ["default settings", ...saved] : saved;
    if (cancelled) throw new ExitError(1, `Setup cancelled; ${savedWords(all)}.`);
    io.out(`\n${await nextSteps(ctx)}\n`);
  } finally {
    surface.close();
  }
}

async function chooseTools(ctx: CliContext, surface: CommandLine): Promise<void> {
  const { tickToolsets } = await import("./tools.ts");
  const outcome = await tickToolsets("cli", ctx, { onInterrupt: () => surface.leave() });
  if (outcome === "left") throw surface.left();
  if (outcome === "unchanged") surface.say("Toolsets unchanged.");
}

async function connectChat(ctx: CliContext, surface: CommandLine): Promise<void> {
  const { setUpPlatform } = await import("../gateway/setup.ts");
  try {
    await setUpPlatform(undefined, ctx);
  } catch (error) {
    if (error instanceof ExitError) throw surface.left();
    throw error;
  }
}

async function reset(ctx: CliContext, { yes }: SetupOptions): Promise<void> {
  const { home, io } = ctx;
  const file = home.display(home.paths.configFile);
  await confirm(ctx, `Restore the default settings in ${file}? Keys, conversations and memory are kept.`, { yes });
  await resetSettings(home);
  io.out(`✓ ${file} restored to defaults; the old one is saved next to it as config.yaml.bak.*\n`);
}

const savedWords = (saved: readonly string[]) =>
  saved.length === 0 ? "nothing was saved" : `saved: ${[...new Set(saved)].join(", ")}`;

/** What works, what is missing, and what to type now. */
async function nextSteps(ctx: CliContext): Promise<string> {
  const works = await workingModel(ctx.home);
  const first = works ? `Ready: ${works}.` : "No model connected: the built-in demo answers (it is not an AI).";
  const steps = works ? [["", "start a conversation"]] : [["setup model", "connect a model"]];
  const rows = [...steps, ["doctor", "check everything"]].map(
    ([args = "", what = ""]) => [hermesCommand(args), what] as const,
  );
  const width = Math.max(...rows.map(([typed]) => typed.length)) + 2;
  return [first, "Next:", ...factLines(ctx, rows, width).map((line) => `  ${line}`)].join("\n");
}

const byHand = () =>
  [
    "Set the key of a provider and a model:",
    `  ${hermesCommand("config set OPENROUTER_API_KEY sk-or-...")}`,
    `  ${hermesCommand("config set model.default anthropic/claude-sonnet-4.6")}`,
    "or a server on this machine:",
    `  ${hermesCommand("config set model.provider ollama")}`,
    `  ${hermesCommand("config set model.default qwen3:8b")}`,
    "docs/reference/providers.md lists all providers and the names of their keys.",
  ].join("\n");

/** Questions at a terminal: lists take the whole screen and give it back, typed lines are read in place. */
class CommandLine implements SetupSurface {
  readonly #ctx: CliContext;
  readonly #left = new AbortController();
  readonly #onSignal = () => this.leave();
  #asking = false;

  constructor(ctx: CliContext) {
    this.#ctx = ctx;
    // Without a listener the signal would end the program before it has said what was saved.
    process.on("SIGINT", this.#onSignal);
  }

  close(): void {
    process.off("SIGINT", this.#onSignal);
  }

  /** Ctrl+C. */
  leave(): void {
    // The terminal shows the key where something is waited for; what is said about it begins on a line of its own.
    if (!this.#asking && !this.#left.signal.aborted) this.#ctx.io.err("\n");
    this.#left.abort(new SetupCancelled());
  }

  /** Why a question has no answer. */
  left(): SetupCancelled {
    return this.#left.signal.aborted ? new SetupCancelled() : new SetupSkipped();
  }

  get signal(): AbortSignal {
    return this.#left.signal;
  }

  say(text: string): void {
    this.#ctx.io.out(`${text}\n`);
  }

  warn(text: string): void {
    this.#ctx.io.err(`⚠ ${text}\n`);
  }

  async pick<T>({ title, choices, selected }: SetupQuestion<T>): Promise<T> {
    this.#left.signal.throwIfAborted();
    const { home, io } = this.#ctx;
    if (home.env("TERM") === "dumb") return this.#pickByNumber({ title, choices });
    const hint = "↑↓ move · type to filter · Enter choose · Esc skip · Ctrl+C quit";
    const taken = await this.#open(() =>
      io.choose({
        title,
        hint,
        choices: choices.map((choice) => ({ ...choice, label: said(choice.label) })),
        numbers: false,
        quitKey: false,
        selected: selected ?? 0,
        onInterrupt: () => this.leave(),
      }),
    );
    const [value] = taken ?? [];
    if (taken === null || value === undefined) throw this.left();
    const label = choices.find((choice) => choice.value === value)?.label ?? "";
    io.out(`${wrapLines(said(title), io.columns).join("\n")}\n  ${label}\n`);
    return value;
  }

  async ask(prompt: string, { hidden = false } = {}): Promise<string> {
    this.#left.signal.throwIfAborted();
    const { io } = this.#ctx;
    const shown = wrapPrompt(prompt, io.columns);
    const typed = await this.#open(() => (hidden ? io.secret(shown) : io.question(shown)));
    if (typed === null) throw new SetupCancelled();
    return typed;
  }

  async #open<T>(ask: () => Promise<T>): Promise<T> {
    this.#asking = true;
    try {
      return await ask();
    } finally {
      this.#asking = false;
    }
  }

  /** A terminal that cannot move its cursor: by number, or by a part of the name. */
  async #pickByNumber<T>({ title, choices }: SetupQuestion<T>): Promise<T> {
    const { io } = this.#ctx;
    for (let shown = choices; ; ) {
      const rows = shown
        .slice(0, MOST_ROWS)
        .map(
          ({ label, hint }, at) => `${String(at + 1).padStart(3)}. ${[label, hint].flat().filter(Boolean).join("  ")}`,
        );
      const more = shown.length > MOST_ROWS ? [`     ${shown.length - MOST_ROWS} more: type part of the name`] : [];
      io.out(`\n${[title, ...rows, ...more].join("\n")}\n`);
      const typed = (await this.ask("Number or name: ")).trim();
      const chosen = /^\d+$/.test(typed) ? shown[Number(typed) - 1] : undefined;
      if (chosen) return chosen.value;
      const matching = choices.filter(({ label }) => label.toLowerCase().includes(typed.toLowerCase()));
      if (matching.length === 1 && matching[0]) return matching[0].value;
      if (matching.length === 0) io.err(`There is no ${typed}.\n`);
      shown = matching.length > 0 ? matching : choices;
    }
  }
}

const MOST_ROWS = 18;
