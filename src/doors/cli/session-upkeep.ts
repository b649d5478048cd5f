// The sub-commands of `hermes sessions` that change or look after what is stored.

import { stat } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import { type Command, Option } from "commander";
import { t } from "../../home/language/words.ts";
import { runningGateway } from "../../home/profiles.ts";
import { exists, FileWriteError } from "../../kit/files.ts";
import { plural } from "../../kit/formats.ts";
import { askHolder, heardInWords } from "../../sessions/controls.ts";
import { countSessions, repairDatabase, restoreDatabase } from "../../sessions/repair.ts";
import { type PruneFilter, StoreError } from "../../sessions/store.ts";
import type { Control } from "../../sessions/work.ts";
import { type CliContext, ExitError } from "../cli-context.ts";
import { confirm, dateSeconds, oneLine, print, printJson, wholeNumber } from "./present.ts";
import { megabytes, notFound, resolveSession } from "./session-command.ts";

export async function renameTo(ctx: CliContext, text: string, title: string): Promise<void> {
  const store = await ctx.store();
  const id = await resolveSession(store, text);
  await store.setTitle(id, title);
  print(ctx, `${id} is now "${(await store.get(id))?.title ?? "—"}"`);
}

/** Something for whoever works on a conversation now. */
export async function ask(ctx: CliContext, text: string, request: Pick<Control, "kind" | "says">): Promise<void> {
  const store = await ctx.store();
  const id = await resolveSession(store, text);
  const heard = await askHolder(await store.work(), id, request, ctx);
  if (heard === null) throw new ExitError(1, t("No process is working on {id}.", { id }));
  if (heard.state === "taken") return print(ctx, heardInWords(heard));
  throw new ExitError(1, heardInWords(heard));
}

export async function deleteOne(ctx: CliContext, text: string, flags: { yes?: true }): Promise<void> {
  const store = await ctx.store();
  const id = await store.resolveId(text);
  const session = id === null ? null : await store.get(id);
  if (!session) throw notFound(text);
  const name = session.title === null ? session.id : `${session.id} "${session.title}"`;
  await confirm(ctx, `Delete ${name} with ${session.messageCount} messages?`, flags);
  if (!(await store.delete(session.id))) throw notFound(text);
  print(ctx, `Deleted ${session.id}.`);
}

export async function unarchive(ctx: CliContext, text: string): Promise<void> {
  const store = await ctx.store();
  const id = await resolveSession(store, text);
  if (!(await store.get(id))?.archived) return print(ctx, `${id} is not archived.`);
  await store.update(id, { archived: false });
  print(ctx, `${id} is no longer archived.`);
}

export interface PruneFlags extends PruneFilter {
  readonly olderThan?: number;
  readonly newerThan?: number;
  readonly dryRun?: true;
  readonly yes?: true;
}

export function withFilters(command: Command): Command {
  return command
    .addOption(
      new Option(
        "--older-than <DAYS>",
        "started more than N days ago (default: 90, unless another time filter is given)",
      ).argParser(wholeNumber),
    )
    .addOption(new Option("--newer-than <DAYS>", "started less than N days ago").argParser(wholeNumber))
    .addOption(new Option("--before <DATE>", "started before this day").argParser(dateSeconds))
    .addOption(new Option("--after <DATE>", "started on or after this day").argParser(dateSeconds))
    .option("--source <SOURCE>", "only this source")
    .option("--title <TEXT>", "title contains")
    .option("--end-reason <REASON>", "ended for this reason")
    .option("--cwd <FOLDER>", "worked in this folder")
    .addOption(new Option("--min-messages <N>", "at least N messages").argParser(wholeNumber))
    .addOption(new Option("--max-messages <N>", "at most N messages").argParser(wholeNumber))
    .option("--model <TEXT>", "model contains")
    .option("--provider <NAME>", "billed to this provider")
    .option("--dry-run", "only show what would be done")
    .option("-y, --yes", "do not ask for confirmation");
}

export async function prune(ctx: CliContext, flags: PruneFlags, what: "delete" | "archive"): Promise<void> {
  const store = await ctx.store();
  const { olderThan, newerThan, dryRun, yes, ...rest } = flags;
  const timed = [olderThan, newerThan, rest.before, rest.after].some((time) => time !== undefined);
  const filter: PruneFilter = {
    ...rest,
    olderThanDays: timed ? olderThan : 90,
    newerThanDays: newerThan,
  };
  const archiveOnly = what === "archive";
  const found = await store.prune(filter, { dryRun: true, archiveOnly });
  if (found.length === 0) return print(ctx, "No sessions match.");
  const count = plural(found.length, "session");
  if (dryRun) {
    print(ctx, `Would ${what} ${count}:`);
    for (const id of found) print(ctx, id);
    return;
  }
  await confirm(ctx, `${archiveOnly ? "Archive" : "Delete"} ${count}?`, yes ? { yes } : {});
  const done = await store.prune(filter, { archiveOnly, vacuum: ctx.home.config().sessions.vacuum_after_prune });
  print(ctx, `${archiveOnly ? "Archived" : "Deleted"} ${plural(done.length, "session")}.`);
}

export async function stats(ctx: CliContext, flags: { json?: true }): Promise<void> {
  const found = await (await ctx.store()).stats();
  if (flags.json) {
    return printJson(ctx, {
      sessions: found.sessions,
      messages: found.messages,
      by_source: found.bySource,
      size_bytes: found.sizeBytes,
    });
  }
  print(ctx, `Total sessions: ${found.sessions}`);
  print(ctx, `Total messages: ${found.messages}`);
  for (const [source, count] of Object.entries(found.bySource)) print(ctx, `  ${source}: ${count}`);
  print(ctx, `Database size: ${megabytes(found.sizeBytes)} MB`);
}

export async function optimize(ctx: CliContext): Promise<void> {
  const pid = await runningGateway(ctx.home.paths.dir);
  if (pid !== null) {
    throw new ExitError(1, `A gateway is running (pid ${pid}) and would be blocked. Stop it first.`);
  }
  const store = await ctx.store();
  const { bytesBefore, bytesAfter } = await store.optimize((text) => ctx.io.err(`${text}\n`));
  print(ctx, `${megabytes(bytesBefore)} MB before, ${megabytes(bytesAfter)} MB now.`);
}

export async function repair(ctx: CliContext, flags: { checkOnly?: true }): Promise<void> {
  const report = await repairDatabase({
    path: ctx.home.paths.stateDb,
    log: ctx.home.log,
    clock: ctx.clock,
    checkOnly: flags.checkOnly ?? false,
    onProgress: (text) => ctx.io.err(`${text}\n`),
  });
  if (report.outcome === "sound") return print(ctx, "The database is intact.");
  for (const line of report.damage.slice(0, 10)) print(ctx, `damage: ${oneLine(line)}`);
  switch (report.outcome) {
    case "index_rebuilt":
      return print(ctx, "Rebuilt the search index from the messages; nothing was lost.");
    case "damaged":
      throw new ExitError(
        1,
        "The database is damaged. `hermes sessions repair` fixes the search index, or rescues the rest into a new file.",
      );
    case "rescued":
      for (const { table, rows, gaps } of report.rescued) {
        if (rows > 0 || gaps > 0)
          print(ctx, `${table}: ${rows} rows${gaps > 0 ? `, ${gaps} unreadable stretches` : ""}`);
      }
      print(ctx, `Rescued into ${report.file}. ${ctx.home.paths.stateDb} was not changed.`);
      print(ctx, `To use it: hermes sessions restore ${report.file}`);
      throw new ExitError(1);
  }
}

export async function backUp(ctx: CliContext, file: string | undefined): Promise<void> {
  const path = file === undefined ? await newBackup(ctx) : await namedCopy(resolve(ctx.cwd, file));
  const store = await ctx.store();
  await store.backup(path);
  const { sessions, messages } = await store.stats();
  print(ctx, `${counted({ sessions, messages })} copied to ${ctx.home.display(path)}.`);
  print(ctx, `To restore them: hermes sessions restore ${path}`);
}

/** As for an export: a folder that is not there is more likely mistyped than wanted. */
async function namedCopy(path: string): Promise<string> {
  await stat(dirname(path)).catch((error: unknown) => {
    throw new ExitError(1, new FileWriteError(path, error).message);
  });
  return path;
}

export async function restore(ctx: CliContext, file: string, flags: { yes?: true }): Promise<void> {
  const { home } = ctx;
  const pid = await runningGateway(ctx.home.paths.dir);
  if (pid !== null)
    throw new ExitError(1, `A gateway is running (pid ${pid}) and is using the database. Stop it first.`);
  const from = resolve(ctx.cwd, file);
  const to = home.paths.stateDb;
  const keepAs = await newBackup(ctx);
  const saved = counted(countSessions(from));
  await confirm(
    ctx,
    `Put ${saved} from ${home.display(from)} in place of ${present(() => countSessions(to))}? The current one is kept as ${home.display(keepAs)}.`,
    flags,
  );
  const kept = await restoreDatabase({ from, to, keepAs, log: home.log.child("sessions"), clock: ctx.clock });
  const { sessions, messages } = await (await ctx.store()).stats();
  print(ctx, `Restored ${counted({ sessions, messages })}.`);
  if (kept) print(ctx, `Previous content: ${home.display(keepAs)}`);
}

function present(count: () => { readonly sessions: number; readonly messages: number }): string {
  try {
    return `the ${counted(count())} of this home`;
  } catch (error) {
    if (!(error instanceof StoreError)) throw error;
    return error.code === "unavailable" ? "nothing" : "what cannot be read";
  }
}

function counted({ sessions, messages }: { readonly sessions: number; readonly messages: number }): string {
  return `${plural(sessions, "session")} with ${plural(messages, "message")}`;
}

async function newBackup({ home, clock }: CliContext): Promise<string> {
  const stamp = new Date(clock.now()).toISOString().slice(0, 19).replace(/[-:]/g, "").replace("T", "-");
  const name = (count: number) => home.paths.at("backups", `state-${stamp}${count === 1 ? "" : `-${count}`}.db`);
  let count = 1;
  while (await exists(name(count))) count += 1;
  return name(count);
}
