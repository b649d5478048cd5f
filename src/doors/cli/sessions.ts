// `hermes sessions`: list, browse, read, search, move and tidy up past conversations.
import { type Command, Option } from "commander";
import { localMinute, relativeTime } from "../../kit/relative-time.ts";
import { type SessionListItem, type SessionStore, StoreError } from "../../sessions/store.ts";
import { type CliContext, ExitError } from "./context.ts";
import { notFound, positiveNumber, print, printJson, resolveSession } from "./session-command.ts";
import { briefly, oneLine, sessionJson, sessionTable } from "./session-table.ts";
import { EXPORT_FORMATS, type ExportFlags, exportTo, importFrom } from "./session-transfer.ts";
import {
  deleteOne,
  optimize,
  type PruneFlags,
  prune,
  renameTo,
  repair,
  stats,
  unarchive,
  withFilters,
} from "./session-upkeep.ts";
import { transcriptText } from "./transcript.ts";

const HIDDEN_SOURCES = ["tool", "subagent", "kanban"];

export function define(command: Command, ctx: CliContext): void {
  command.description("list, search, export and tidy up past conversations");
  const sub = (usage: string, description: string) => command.command(usage).description(description);
  /** Whatever the store refuses is told in its own words, without a stack. */
  const act =
    <Args extends unknown[]>(run: (...args: Args) => Promise<void>) =>
    async (...args: Args) => {
      try {
        await run(...args);
      } catch (error) {
        if (error instanceof StoreError) throw new ExitError(1, error.message);
        throw error;
      }
    };

  sub("list", "show recent sessions, newest first")
    .option("--source <SOURCE>", "only this source")
    .addOption(new Option("--limit <N>", "how many").argParser(positiveNumber).default(20))
    .option("--archived", "archived ones too")
    .option("--json", "machine-readable")
    .action(act((flags: ListFlags) => list(ctx, flags)));
  sub("browse", "pick a session and resume it")
    .option("--source <SOURCE>", "only this source")
    .addOption(new Option("--limit <N>", "how many").argParser(positiveNumber).default(500))
    .action(act((flags: ListFlags) => browse(ctx, flags)));
  sub("show <session>", "show one session (id, title or beginning of an id)")
    .option("--full", "tool results whole")
    .option("--json", "machine-readable")
    .action(act((session: string, flags: ShowFlags) => show(ctx, session, flags)));
  sub("search <query...>", "search everything said and heard")
    .option("--source <SOURCE>", "only this source")
    .option("--role <ROLE>", "only this role")
    .addOption(new Option("--limit <N>", "how many").argParser(positiveNumber).default(20))
    .addOption(new Option("--sort <ORDER>", "by time instead of by match").choices(["newest", "oldest"]))
    .option("--json", "machine-readable")
    .action(act((words: string[], flags: SearchFlags) => search(ctx, words.join(" "), flags)));
  sub("export <file>", "write sessions to a file (- = stdout)")
    .option("--session-id <ID>", "only this session")
    .option("--source <SOURCE>", "only this source")
    .addOption(new Option("--format <FORMAT>", "file format").choices(EXPORT_FORMATS).default("jsonl"))
    .action(act((file: string, flags: ExportFlags) => exportTo(ctx, file, flags)));
  sub("import <file>", "read sessions from an exported file (- = stdin)").action(
    act((file: string) => importFrom(ctx, file)),
  );
  sub("rename <session> <title...>", "give a session a title").action(
    act((session: string, words: string[]) => renameTo(ctx, session, words.join(" "))),
  );
  sub("delete <session>", "delete a session and its messages")
    .option("-y, --yes", "do not ask")
    .action(act((session: string, flags: { yes?: true }) => deleteOne(ctx, session, flags)));
  withFilters(sub("prune", "delete old sessions that have ended")).action(
    act((flags: PruneFlags) => prune(ctx, flags, "delete")),
  );
  withFilters(sub("archive", "hide old sessions that have ended, and keep them")).action(
    act((flags: PruneFlags) => prune(ctx, flags, "archive")),
  );
  sub("unarchive <session>", "show an archived session again").action(
    act((session: string) => unarchive(ctx, session)),
  );
  sub("stats", "count sessions and messages")
    .option("--json", "machine-readable")
    .action(act((flags: { json?: true }) => stats(ctx, flags)));
  sub("optimize", "tidy up the search index and compact the file").action(act(() => optimize(ctx)));
  sub("repair", "check the database and mend or rescue it")
    .option("--check-only", "look, change nothing")
    .action(act((flags: { checkOnly?: true }) => repair(ctx, flags)));
}

interface ListFlags {
  readonly source?: string;
  readonly limit: number;
  readonly archived?: true;
  readonly json?: true;
}

function recent(store: SessionStore, flags: ListFlags): Promise<readonly SessionListItem[]> {
  return store.list({
    limit: flags.limit,
    orderByLastActive: true,
    includeArchived: flags.archived ?? false,
    ...(flags.source === undefined ? { excludeSources: HIDDEN_SOURCES } : { source: flags.source }),
  });
}

async function list(ctx: CliContext, flags: ListFlags): Promise<void> {
  const items = await recent(await ctx.store(), flags);
  if (flags.json) return printJson(ctx, items.map(sessionJson));
  if (items.length === 0) return print(ctx, "No sessions found.");
  for (const line of sessionTable(items, ctx.clock.now() / 1000)) print(ctx, line);
}

async function browse(ctx: CliContext, flags: ListFlags): Promise<void> {
  const items = await recent(await ctx.store(), flags);
  if (items.length === 0) return print(ctx, "No sessions found.");
  const now = () => ctx.clock.now() / 1000;
  if (!ctx.io.stdinIsTerminal || !ctx.io.stdoutIsTerminal) {
    for (const [index, item] of items.entries()) {
      print(
        ctx,
        `${String(index + 1).padStart(3)}. ${oneLine(item.title ?? (item.preview || "—"))} (${relativeTime(item.lastActive, now())}) ${item.id}`,
      );
    }
    return;
  }
  const { pickSession } = await import("./session-picker.ts");
  const chosen = await pickSession(items, {
    input: ctx.io.stdin,
    write: (text) => ctx.io.out(text),
    size: () => ({ columns: process.stdout.columns ?? ctx.io.columns, rows: process.stdout.rows ?? 24 }),
    now,
  });
  if (!chosen) return;
  const code = await ctx.rerun(["--resume", chosen.id]);
  if (code !== 0) throw new ExitError(code);
}

interface ShowFlags {
  readonly full?: true;
  readonly json?: true;
}

async function show(ctx: CliContext, text: string, flags: ShowFlags): Promise<void> {
  const store = await ctx.store();
  const id = await resolveSession(store, text);
  const session = await store.get(id);
  const [exported] = await Array.fromAsync(store.export({ sessionId: id }));
  if (!session || !exported) throw notFound(text);
  if (flags.json) return printJson(ctx, exported);
  const tip = await store.tip(id);
  const cost =
    session.costStatus === "unknown"
      ? "unknown"
      : `$${((session.estimatedCostUsd ?? 0) + (session.actualCostUsd ?? 0)).toFixed(4)}`;
  const facts: readonly (readonly [string, string | null])[] = [
    ["Session", id],
    ["Title", session.title],
    ["Source", session.source],
    ["Model", session.model],
    ["Folder", session.cwd],
    ["Started", localMinute(session.startedAt)],
    ["Ended", session.endedAt === null ? null : `${localMinute(session.endedAt)} (${session.endReason ?? "?"})`],
    ["Messages", `${session.messageCount} (${session.toolCallCount} tool calls)`],
    [
      "Tokens",
      session.apiCallCount === 0
        ? null
        : `${session.inputTokens} in, ${session.outputTokens} out, ${session.cacheReadTokens} cached; ${cost}`,
    ],
    ["Continues", session.parentSessionId],
    ["Goes on as", tip === id ? null : tip],
  ];
  for (const [name, value] of facts) if (value !== null) print(ctx, `${`${name}:`.padEnd(12)}${oneLine(value)}`);
  print(ctx, `\n${transcriptText(exported, { full: flags.full ?? false, columns: ctx.io.columns })}`);
}

interface SearchFlags {
  readonly source?: string;
  readonly role?: string;
  readonly limit: number;
  readonly sort?: "newest" | "oldest";
  readonly json?: true;
}

async function search(ctx: CliContext, query: string, flags: SearchFlags): Promise<void> {
  const store = await ctx.store();
  const result = await store.search(query, {
    limit: flags.limit,
    sort: flags.sort ?? null,
    ...(flags.source === undefined ? {} : { sourceFilter: [flags.source] }),
    ...(flags.role === undefined ? {} : { roleFilter: [flags.role] }),
  });
  if (result.unavailable !== undefined) throw new ExitError(1, result.unavailable);
  if (result.indexRebuild) ctx.io.err(`${result.indexRebuild.note}\n`);
  if (flags.json) return printJson(ctx, result.hits.map(hitJson));
  if (result.hits.length === 0) return ctx.io.err(`Nothing found for "${briefly(query)}".\n`);
  for (const hit of result.hits) {
    print(
      ctx,
      `${hit.sessionId}  ${localMinute(hit.timestamp)}  ${hit.role}${hit.toolName === null ? "" : ` (${oneLine(hit.toolName)})`}`,
    );
    print(ctx, `  ${oneLine(hit.snippet)}`);
  }
}

type Hit = Awaited<ReturnType<SessionStore["search"]>>["hits"][number];

const hitJson = (hit: Hit) => ({
  id: hit.id,
  session_id: hit.sessionId,
  role: hit.role,
  snippet: hit.snippet,
  timestamp: hit.timestamp,
  tool_name: hit.toolName,
  source: hit.source,
  model: hit.model,
  session_started: hit.sessionStarted,
  context: hit.context,
});
