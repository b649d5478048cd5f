// What `hermes memory` shows.
import { localMinute, relativeTime } from "../../kit/relative-time.ts";
import { findEntry } from "../../memory/apply.ts";
import { lengthOf, type MemoryTarget, TARGETS } from "../../memory/format.ts";
import { type HistoryRecord, recordThatWrote } from "../../memory/history.ts";
import type { Memory } from "../../memory/open.ts";
import { undoneIds } from "../../memory/undo.ts";
import { longUsage } from "../../memory/usage.ts";
import { scanForThreats } from "../../safety/threats/scan.ts";
import { type CliContext, ExitError } from "./context.ts";
import type { MemoryFlags } from "./memory.ts";
import { printJson } from "./session-command.ts";
import { briefly, oneLine } from "./session-table.ts";

export async function show(memory: Memory, ctx: CliContext, { target, json }: MemoryFlags): Promise<void> {
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
  ctx.io.out(
    `${ctx.home.display(memory.fileOf(target))}  ${usage}${memory.isEnabled(target) ? "" : "  (switched off)"}\n`,
  );
  const width = String(rows.length).length;
  for (const { n, text, written, threats } of rows) {
    const lines = text.split("\n").map((line) => " ".repeat(width + 4) + oneLine(line));
    ctx.io.out(`\n  ${String(n).padStart(width)}  ${lines.join("\n").trimStart()}\n`);
    ctx.io.out(
      `${" ".repeat(width + 4)}— ${age(written, ctx)}${threats.length > 0 ? `, kept out of prompts: ${threats.join(", ")}` : ""}\n`,
    );
  }
  if (rows.length === 0) ctx.io.out("\n  nothing yet\n");
  const other = target === "memory" ? "user" : "memory";
  const reading = await memory.read(other);
  if (reading.type === "read" && reading.entries.length > 0) {
    ctx.io.out(`\n${reading.entries.length} more in the other store: hermes memory show --target ${other}\n`);
  }
}

export async function status(memory: Memory, ctx: CliContext, { json }: { readonly json?: true }): Promise<void> {
  const { provider, write_approval } = ctx.home.config().memory;
  const { printProvider, reportProvider } = await import("./memory-provider.ts");
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
  if (json) {
    printJson(ctx, { stores, provider, external, write_approval, pending });
    return;
  }
  for (const { file, enabled, chars, limit, entries, problem } of stores) {
    const fill =
      chars === null
        ? `cannot be read: ${problem}`
        : `${longUsage(chars, limit)}, ${entries === 1 ? "1 entry" : `${entries} entries`}`;
    ctx.io.out(`${enabled ? "✓" : "✗"} ${ctx.home.display(file)}  ${fill}${enabled ? "" : "  (switched off)"}\n`);
  }
  printProvider(ctx, external);
  ctx.io.out(`Approval of writes: ${write_approval ? "on" : "off"}${pending > 0 ? `, ${pending} waiting` : ""}\n`);
}

export async function history(
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
  if (json) {
    printJson(ctx, { records: newest });
    return;
  }
  if (newest.length === 0) ctx.io.out("No changes on record.\n");
  for (const record of newest) {
    const mark = record.undone ? "  (taken back)" : "";
    ctx.io.out(
      `${String(record.n).padStart(3)}  ${localMinute(record.ts)}  ${record.target}  ${record.op}  ${describeOrigin(record)}${mark}\n`,
    );
    for (const line of differences(record)) ctx.io.out(`       ${line}\n`);
  }
}

export async function why(
  memory: Memory,
  ctx: CliContext,
  which: string,
  { target, json }: MemoryFlags,
): Promise<void> {
  const text = await chooseEntry(memory, target, which);
  const written = recordThatWrote(await memory.history(), target, text);
  if (json) {
    printJson(ctx, { target, text, ...provenance(written), record: written });
    return;
  }
  ctx.io.out(`${oneLine(text)}\n`);
  if (!written) {
    ctx.io.out("No record tells who wrote it: it was put into the file by hand or by another program.\n");
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
export async function chooseEntry(memory: Memory, target: MemoryTarget, which: string): Promise<string> {
  const entries = await entriesOf(memory, target);
  const numbered = /^\d+$/.test(which) ? entries[Number(which) - 1] : undefined;
  if (numbered !== undefined) return numbered;
  const found = findEntry(entries, which.trim());
  if (typeof found === "string") return found;
  if (found.code === "ambiguous") {
    const list = (found.matches ?? []).map((match) => `\n  ${oneLine(match)}`).join("");
    throw new ExitError(1, `Several entries contain "${briefly(which)}"; give more of one, or its number:${list}`);
  }
  throw new ExitError(1, `No entry has the number or the text "${briefly(which)}". \`hermes memory show\` lists them.`);
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
