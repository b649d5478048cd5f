// `hermes memory`: what the agent remembers, who wrote it, and changes by hand that are logged and can be taken back.
import { type Command, Option } from "commander";
import type { MemoryResult } from "../../memory/entries.ts";
import type { MemoryTarget } from "../../memory/format.ts";
import type { Memory } from "../../memory/open.ts";
import { type CliContext, ExitError } from "./context.ts";
import { confirm, printJson, wholeNumber } from "./session-command.ts";

export interface MemoryFlags {
  readonly target: MemoryTarget;
  readonly json?: true;
}

export function define(command: Command, ctx: CliContext): void {
  // `--json` may stand before or behind the sub-command; the flags an action gets hold both.
  const act =
    <Rest extends unknown[]>(run: (memory: Memory, ...rest: Rest) => Promise<void>) =>
    async (...given: unknown[]) => {
      const self = given.at(-1) as Command; // commander's last argument
      const rest = [...given.slice(0, -2), self.optsWithGlobals()] as Rest; // the arguments as declared, then the flags
      return run(await open(ctx), ...rest);
    };
  const target = () =>
    new Option("--target <T>", "memory (the agent's notes) or user (who you are)")
      .choices(["memory", "user"])
      .default("memory");
  const json = () => new Option("--json", "machine-readable");
  const sub = (usage: string, about: string) => command.command(usage).description(about).addOption(json());

  command
    .description("what the agent remembers: look, change, take back")
    .addOption(json())
    .action(act(async (memory, flags: MemoryFlags) => (await views()).status(memory, ctx, flags)));
  sub("show", "the entries, with age and origin")
    .alias("list")
    .addOption(target())
    .action(act(async (memory, flags: MemoryFlags) => (await views()).show(memory, ctx, flags)));
  sub("status", "how full it is, and what is switched on").action(
    act(async (memory, flags: MemoryFlags) => (await views()).status(memory, ctx, flags)),
  );
  sub("add", "add an entry")
    .argument("<text...>")
    .addOption(target())
    .action(act((memory, words: string[], flags: MemoryFlags) => add(memory, ctx, words.join(" "), flags)));
  sub("edit", "change an entry; without the new text, in your editor")
    .argument("<entry>", "its number, or a part of it")
    .argument("[text...]", "the new text")
    .addOption(target())
    .action(
      act(async (memory, which: string, words: string[], flags: MemoryFlags) => {
        const entry = await (await views()).chooseEntry(memory, flags.target, which);
        const content = words.length > 0 ? words.join(" ") : await editInEditor(ctx, entry);
        await report(
          ctx,
          await memory.write({ action: "replace", target: flags.target, old_text: entry, content }, USER),
          flags,
        );
      }),
    );
  sub("remove", "remove an entry")
    .argument("<entry>", "its number, or a part of it")
    .addOption(target())
    .action(
      act(async (memory, which: string, flags: MemoryFlags) => {
        const entry = await (await views()).chooseEntry(memory, flags.target, which);
        await report(ctx, await memory.write({ action: "remove", target: flags.target, old_text: entry }, USER), flags);
      }),
    );
  sub("history", "the last changes, newest first")
    .option("-n, --limit <N>", "how many", wholeNumber, 20)
    .action(act(async (memory, flags: { limit: number; json?: true }) => (await views()).history(memory, ctx, flags)));
  sub("undo", "take a change back: the last one, or one by its number in the history")
    .argument("[n]", "number in the history", wholeNumber)
    .action(act((memory, n: number | undefined, flags: MemoryFlags) => undo(memory, ctx, n, flags)));
  sub("why", "when an entry was written, and by whom")
    .argument("<entry>", "its number, or a part of it")
    .addOption(target())
    .action(act(async (memory, which: string, flags: MemoryFlags) => (await views()).why(memory, ctx, which, flags)));
  sub("reset", "remove everything; a copy of the file is kept")
    .addOption(new Option("--target <T>", "what to empty").choices(["all", "memory", "user"]).default("all"))
    .option("-y, --yes", "do not ask")
    .action(act((memory, flags: ResetFlags) => reset(memory, ctx, flags)));
  sub("setup", "choose and configure an external memory provider")
    .argument("[provider]", "its name, e.g. local")
    .action(
      act(async (_memory, name: string | undefined, flags: MemoryFlags) =>
        (await import("./memory-provider.ts")).setUpProvider(ctx, name, flags),
      ),
    );
  sub("off", "use no external memory provider").action(act((_memory, flags: MemoryFlags) => providerOff(ctx, flags)));
}

const USER = { origin: "user", platform: "cli" } as const;
const views = () => import("./memory-views.ts");

async function open({ home, clock }: CliContext): Promise<Memory> {
  const { openMemory } = await import("../../memory/open.ts");
  return openMemory({ paths: home.paths, config: () => home.config(), clock, log: home.log });
}

async function add(memory: Memory, ctx: CliContext, content: string, flags: MemoryFlags): Promise<void> {
  await report(ctx, await memory.write({ action: "add", target: flags.target, content }, USER), flags);
}

async function report(
  { io }: CliContext,
  result: MemoryResult,
  { json, target = "memory" }: { readonly json?: true; readonly target?: MemoryTarget },
): Promise<void> {
  if (json) io.out(`${JSON.stringify(result, null, 2)}\n`);
  if (!result.success) {
    const { tellUser } = await import("../../memory/user-words.ts");
    const show = target === "memory" ? "hermes memory show" : `hermes memory show --target ${target}`;
    throw new ExitError(1, json ? "" : tellUser(result, { target, show }));
  }
  if (!json) io.out(`${result.message}${"usage" in result ? ` ${result.target}: ${result.usage}` : ""}\n`);
}

/** An undo speaks of the change, not of an entry: its own words fit. */
async function reportUndo(ctx: CliContext, result: MemoryResult, flags: MemoryFlags): Promise<void> {
  if (result.success || flags.json || !["no_match", "over_limit"].includes(result.code))
    return report(ctx, result, flags);
  throw new ExitError(1, result.error);
}

async function editInEditor({ home }: CliContext, entry: string): Promise<string> {
  const { mkdtemp, readFile, rm, writeFile } = await import("node:fs/promises");
  const { tmpdir } = await import("node:os");
  const { join } = await import("node:path");
  const { findEditor, runEditor } = await import("./editor.ts");
  const editor = await findEditor(home);
  if (!editor) throw new ExitError(1, "No editor found. Set EDITOR, or give the new text as an argument.");
  const folder = await mkdtemp(join(tmpdir(), "hermes-memory-"));
  try {
    const file = join(folder, "entry.md");
    await writeFile(file, `${entry}\n`, { mode: 0o600 });
    const code = await runEditor(editor, file, home.environment());
    if (code !== 0) throw new ExitError(1, `${editor} ended with code ${code}. Nothing was changed.`);
    return await readFile(file, "utf8");
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function undo(memory: Memory, ctx: CliContext, n: number | undefined, flags: MemoryFlags): Promise<void> {
  const { newestToUndo } = await import("../../memory/undo.ts");
  const records = await memory.history();
  const record = n === undefined ? newestToUndo(records) : (records.toReversed()[n - 1] ?? null);
  if (!record) {
    throw new ExitError(
      1,
      n === undefined
        ? "There is no change to take back."
        : `There is no change number ${n}; \`hermes memory history\` shows them.`,
    );
  }
  await reportUndo(ctx, await memory.undo(record, USER), { ...flags, target: record.target });
}

interface ResetFlags {
  readonly target: MemoryTarget | "all";
  readonly yes?: true;
  readonly json?: true;
}

async function reset(memory: Memory, ctx: CliContext, flags: ResetFlags): Promise<void> {
  const targets: readonly MemoryTarget[] = flags.target === "all" ? ["memory", "user"] : [flags.target];
  const names = targets.map((target) => ctx.home.display(memory.fileOf(target))).join(" and ");
  await confirm(ctx, `Remove every entry of ${names}?`, flags);
  const results: Record<string, unknown>[] = [];
  for (const target of targets) {
    const { result, backup } = await memory.clear(target, USER);
    const isEmpty = !result.success && result.code === "no_match";
    if (!result.success && !isEmpty) throw new ExitError(1, result.error);
    results.push({ target, entries_removed: !isEmpty, backup });
    if (flags.json) continue;
    const file = ctx.home.display(memory.fileOf(target));
    const outcome = backup ? `emptied; a copy is at ${ctx.home.display(backup)}` : "empty already";
    ctx.io.out(`${file}: ${outcome}\n`);
  }
  if (flags.json) printJson(ctx, { success: true, stores: results });
}

async function providerOff(ctx: CliContext, flags: { readonly json?: true }): Promise<void> {
  const before = ctx.home.config().memory.provider;
  if (before !== "") await ctx.home.setConfigKey("memory.provider", "");
  if (flags.json) return printJson(ctx, { success: true, provider: "", was: before });
  ctx.io.out(
    before === ""
      ? "No external memory provider is set. The built-in memory goes on.\n"
      : `External memory provider ${before} switched off. The built-in memory goes on.\n`,
  );
}
