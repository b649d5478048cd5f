// `hermes memory`: what the agent remembers, who wrote it, and changes by hand that are logged and can be taken back.

import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Command, Option } from "commander";
import { localMinute, relativeTime } from "../../kit/formats.ts";
import { lengthOf, longUsage, type MemoryResult, type MemoryTarget, TARGETS } from "../../memory/entries.ts";
import { type HistoryRecord, newestToUndo, recordThatWrote, undoneIds } from "../../memory/history.ts";
import type { Memory } from "../../memory/open.ts";
import { openMemory } from "../../memory/open.ts";
import { explainFailure, findEntry } from "../../memory/request.ts";
import { scanForThreats } from "../../safety/threats/scan.ts";
import { type CliContext, ExitError } from "../cli-context.ts";
import { findEditor, runEditor } from "./config.ts";
import { printProvider, reportProvider, setUpProvider } from "./memory-provider.ts";
import { briefly, confirm, oneLine, printJson, wholeNumber } from "./present.ts";

interface MemoryFlags {
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
    .description("show, edit and undo what the agent remembers")
    .addOption(json())
    .action(act(async (memory, flags: MemoryFlags) => status(memory, ctx, flags)));
  sub("show", "list entries with age and origin")
    .alias("list")
    .addOption(target().default(undefined))
    .action(act(async (memory, flags: Partial<MemoryFlags>) => show(memory, ctx, flags)));
  sub("status", "show memory usage and settings").action(
    act(async (memory, flags: MemoryFlags) => status(memory, ctx, flags)),
  );
  sub("add", "add an entry")
    .argument("<text...>")
    .addOption(target())
    .action(act((memory, words: string[], flags: MemoryFlags) => add(memory, ctx, words.join(" "), flags)));
  sub("edit", "edit an entry; without new text, opens your editor")
    .argument("<entry>", "its number or part of its text")
    .argument("[text...]", "the new text")
    .addOption(target())
    .action(
      act(async (memory, which: string, words: string[], flags: MemoryFlags) => {
        const entry = await chooseEntry(memory, flags.target, which);
        const content = words.length > 0 ? words.join(" ") : await editInEditor(ctx, entry);
        await report(
          ctx,
          await memory.write({ action: "replace", target: flags.target, old_text: entry, content }, USER),
          flags,
        );
      }),
    );
  sub("remove", "remove an entry")
    .argument("<entry>", "its number or part of its text")
    .addOption(target())
    .action(
      act(async (memory, which: string, flags: MemoryFlags) => {
        const entry = await chooseEntry(memory, flags.target, which);
        await report(ctx, await memory.write({ action: "remove", target: flags.target, old_text: entry }, USER), flags);
      }),
    );
  sub("history", "list recent changes, newest first")
    .option("-n, --limit <N>", "maximum number", wholeNumber, 20)
    .action(act(async (memory, flags: { limit: number; json?: true }) => history(memory, ctx, flags)));
  sub("undo", "undo a change: the latest, or by its number in the history")
    .argument("[n]", "number in the history", wholeNumber)
    .action(act((memory, n: number | undefined, flags: MemoryFlags) => undo(memory, ctx, n, flags)));
  sub("why", "show when and by whom an entry was written")
    .argument("<entry>", "its number or part of its text")
    .addOption(target())
    .action(act(async (memory, which: string, flags: MemoryFlags) => why(memory, ctx, which, flags)));
  sub("reset", "delete all entries; keeps a copy of the file")
    .addOption(new Option("--target <T>", "which store to clear").choices(["all", "memory", "user"]).default("all"))
    .option("-y, --yes", "do not ask for confirmation")
    .action(act((memory, flags: ResetFlags) => reset(memory, ctx, flags)));
  sub("setup", "choose and configure an external memory provider")
    .argument("[provider]", "its name, e.g. local")
    .action(act((_memory, name: string | undefined, flags: MemoryFlags) => setUpProvider(ctx, name, flags)));
  sub("off", "disable the external memory provider").action(
    act((_memory, flags: MemoryFlags) => providerOff(ctx, flags)),
  );
}

const USER = { origin: "user", platform: "cli" } as const;

async function open({ home, clock }: CliContext): Promise<Memory> {
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
  if (json) printJson({ io }, result);
  if (!result.success) {
    const show = target === "memory" ? "hermes memory show" : `hermes memory show --target ${target}`;
    throw new ExitError(1, json ? "" : explainFailure(result, { target, show }));
  }
  if (!json) io.out(`${result.message}${"usage" in result ? ` ${result.target}: ${result.usage}` : ""}\n`);
}

/** An undo reports the change, not an entry. */
async function reportUndo(ctx: CliContext, result: MemoryResult, flags: MemoryFlags): Promise<void> {
  if (result.success || flags.json || !["no_match", "over_limit"].includes(result.code))
    return report(ctx, result, flags);
  throw new ExitError(1, result.error);
}

async function editInEditor(ctx: CliContext, entry: string): Promise<string> {
  const { home } = ctx;
  const editor = await findEditor(ctx, "give the new text as an argument.");
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
  const records = await memory.history();
  const record = n === undefined ? newestToUndo(records) : (records.toReversed()[n - 1] ?? null);
  if (!record) {
    throw new ExitError(
      1,
      n === undefined ? "Nothing to undo." : `There is no change number ${n}; \`hermes memory history\` shows them.`,
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
  await confirm(ctx, `Delete all entries of ${names}?`, flags);
  const results: Record<string, unknown>[] = [];
  for (const target of targets) {
    const { result, backup } = await memory.clear(target, USER);
    const isEmpty = !result.success && result.code === "no_match";
    if (!result.success && !isEmpty) throw new ExitError(1, result.error);
    results.push({ target, entries_removed: !isEmpty, backup });
    if (flags.json) continue;
    const file = ctx.home.display(memory.fileOf(target));
    const outcome = backup ? `cleared; a copy is at ${ctx.home.display(backup)}` : "already empty";
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
      ? "No external memory provider is set. The built-in memory stays on.\n"
      : `External memory provider ${before} disabled. The built-in memory stays on.\n`,
  );
}

// What `hermes memory` shows.

async function show(memory: Memory, ctx: CliContext, { target, json }: Partial<MemoryFlags>): Promise<void> {
  if (target || json) return showStore(memory, ctx, { target: target ?? "memory", json });
  for (const [index, each] of TARGETS.entries()) {
    if (index > 0) ctx.io.out("\n");
    await showStore(memory, ctx, { target: each });
  }
}

async function showStore(memory: Memory, ctx: CliContext, { target, json }: MemoryFlags): Promise<void> {
  const entries = await entriesOf(memory, target);
  const records = await memory.history();
  const rows = entries.map((text, index) => ({
    n: index + 1,
    text,
    written: recordThatWrote(records, target, text),
    threats: scanForThreats(text, "strict").map(({ id }) => id),
  }));
  const usage = longUsage(lengthOf(entries), memory.limitOf(target));
  if (json) {
    printJson(ctx, {
      target,
      file: memory.fileOf(target),
      enabled: memory.isEnabled(target),
      chars: lengthOf(entries),
      limit: memory.limitOf(target),
      usage,
      entries: rows.map(({ n, text, written, threats }) => ({ n, text, threats, ...provenance(written) })),
    });
    return;
  }
  ctx.io.out(`${ctx.home.display(memory.fileOf(target))}  ${usage}${memory.isEnabled(target) ? "" : "  (disabled)"}\n`);
  const width = String(rows.length).length;
  for (const { n, text, written, threats } of rows) {
    const lines = text.split("\n").map((line) => " ".repeat(width + 4) + oneLine(line));
    ctx.io.out(`\n  ${String(n).padStart(width)}  ${lines.join("\n").trimStart()}\n`, { asIs: true });
    ctx.io.out(
      `${" ".repeat(width + 4)}— ${age(written, ctx)}${threats.length > 0 ? `, excluded from prompts: ${threats.join(", ")}` : ""}\n`,
    );
  }
  if (rows.length === 0) ctx.io.out("\n  nothing yet\n");
}

const otherThan = (target: MemoryTarget): MemoryTarget => (target === "memory" ? "user" : "memory");

export async function status(memory: Memory, ctx: CliContext, { json }: { readonly json?: true }): Promise<void> {
  const { provider, write_approval } = ctx.home.config().memory;
  const external = await reportProvider(ctx);
  const stores = [];
  for (const target of TARGETS) {
    const reading = await memory.read(target);
    const chars = reading.type === "read" ? lengthOf(reading.entries) : null;
    stores.push({
      target,
      file: memory.fileOf(target),
      enabled: memory.isEnabled(target),
      chars,
      limit: memory.limitOf(target),
      entries: reading.type === "read" ? reading.entries.length : null,
      problem: reading.type === "read" ? null : reading.reason,
    });
  }
  const pending = (await memory.pending()).length;
  if (json) return printJson(ctx, { stores, provider, external, write_approval, pending });
  for (const { file, enabled, chars, limit, entries, problem } of stores) {
    const fill =
      chars === null
        ? `cannot be read: ${problem}`
        : `${longUsage(chars, limit)}, ${entries === 1 ? "1 entry" : `${entries} entries`}`;
    ctx.io.out(`${enabled ? "✓" : "✗"} ${ctx.home.display(file)}  ${fill}${enabled ? "" : "  (disabled)"}\n`);
  }
  printProvider(ctx, external);
  ctx.io.out(`Write approval: ${write_approval ? "on" : "off"}${pending > 0 ? `, ${pending} waiting` : ""}\n`);
}

async function history(
  memory: Memory,
  ctx: CliContext,
  { limit, json }: { readonly limit: number; readonly json?: true },
): Promise<void> {
  const records = await memory.history();
  const undone = undoneIds(records);
  const newest = records
    .toReversed()
    .slice(0, limit)
    .map((record, index) => ({ n: index + 1, undone: undone.has(record.id), ...record }));
  if (json) return printJson(ctx, { records: newest });
  if (newest.length === 0) ctx.io.out("No changes recorded.\n");
  for (const record of newest) {
    const mark = record.undone ? "  (undone)" : "";
    ctx.io.out(
      `${String(record.n).padStart(3)}  ${localMinute(record.ts)}  ${record.target}  ${record.op}  ${describeOrigin(record)}${mark}\n`,
    );
    for (const line of differences(record)) ctx.io.out(`       ${line}\n`);
  }
}

async function why(memory: Memory, ctx: CliContext, which: string, { target, json }: MemoryFlags): Promise<void> {
  const text = await chooseEntry(memory, target, which);
  const written = recordThatWrote(await memory.history(), target, text);
  if (json) return printJson(ctx, { target, text, ...provenance(written), record: written });
  ctx.io.out(`${oneLine(text)}\n`);
  if (!written) {
    ctx.io.out("No record of who wrote it: it was added by hand or by another program.\n");
    return;
  }
  ctx.io.out(`Written ${localMinute(written.ts)} by ${describeOrigin(written)} (${written.op}).\n`);
  if (written.session_id !== null) {
    ctx.io.out(
      `Session ${written.session_id}, turn ${written.turn ?? "?"}: hermes sessions show ${written.session_id}\n`,
    );
  }
  for (const line of differences(written)) ctx.io.out(`  ${line}\n`);
}

/** An entry by its number, else by a part of it. */
async function chooseEntry(memory: Memory, target: MemoryTarget, which: string): Promise<string> {
  const entries = await entriesOf(memory, target);
  const numbered = /^\d+$/.test(which) ? entries[Number(which) - 1] : undefined;
  if (numbered !== undefined) return numbered;
  const found = findEntry(entries, which.trim());
  if (typeof found === "string") return found;
  if (found.code === "ambiguous") {
    const list = (found.matches ?? []).map((match) => `\n  ${oneLine(match)}`).join("");
    throw new ExitError(1, `Several entries contain "${briefly(which)}"; be more specific, or give its number:${list}`);
  }
  throw new ExitError(
    1,
    `No entry of ${target} has the number or the text "${briefly(which)}". \`hermes memory show\` lists them; --target ${otherThan(target)} selects the other store.`,
  );
}

async function entriesOf(memory: Memory, target: MemoryTarget): Promise<readonly string[]> {
  const reading = await memory.read(target);
  if (reading.type === "read") return reading.entries;
  throw new ExitError(1, `${memory.fileOf(target)} cannot be read: ${reading.reason}`);
}

function provenance(written: HistoryRecord | null) {
  return {
    written_at: written?.ts ?? null,
    origin: written?.origin ?? null,
    session_id: written?.session_id ?? null,
    turn: written?.turn ?? null,
    platform: written?.platform ?? null,
  };
}

function age(written: HistoryRecord | null, { clock }: CliContext): string {
  if (!written) return "age unknown, written by hand or another program";
  return `${relativeTime(written.ts, clock.now() / 1000)}, ${describeOrigin(written)}`;
}

const ORIGINS: Readonly<Record<string, string>> = {
  foreground: "the agent",
  background_review: "the agent's review",
  flush: "the agent, before a session ended",
  approval: "the agent, with your approval",
  user: "you",
  external: "a hand edit or another program",
};

function describeOrigin({ origin, platform }: HistoryRecord): string {
  const who = ORIGINS[origin] ?? origin;
  return platform === null || origin === "user" ? who : `${who} (${platform})`;
}

function differences({ before, after }: HistoryRecord): readonly string[] {
  const line = (sign: string) => (entry: string) => `${sign} ${oneLine(entry)}`;
  return [
    ...before.filter((entry) => !after.includes(entry)).map(line("-")),
    ...after.filter((entry) => !before.includes(entry)).map(line("+")),
  ];
}
