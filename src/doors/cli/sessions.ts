// `hermes sessions`: list, browse, read, search, move and tidy up past conversations.

import { createReadStream } from "node:fs";
import { resolve } from "node:path";
import { createInterface } from "node:readline";
import { type Command, Option } from "commander";
import { asTree, HIDDEN_SOURCES, sessionPicking, sessionRow } from "../../commands/session-picker.ts";
import { messageOf } from "../../kit/errors.ts";
import { writeFileAtomic } from "../../kit/files.ts";
import { localMinute, plural, relativeTime } from "../../kit/formats.ts";
import { withoutControls } from "../../kit/strip-ansi.ts";
import { type ContentPart, textOf } from "../../llm/messages.ts";
import { type SessionListItem, type SessionStore, StoreError } from "../../sessions/store.ts";
import type { ScreenQuestion } from "../choice-list.ts";
import { type CliContext, ExitError } from "../cli-context.ts";
import { cut, wrapColumns } from "../terminal-text.ts";
import { briefly, factLines, oneLine, positiveNumber, print, printJson } from "./present.ts";
import { notFound, resolveSession, sessionJson, sessionTable } from "./session-command.ts";
import {
  ask,
  backUp,
  deleteOne,
  optimize,
  type PruneFlags,
  prune,
  renameTo,
  repair,
  restore,
  stats,
  unarchive,
  withFilters,
} from "./session-upkeep.ts";

export function define(command: Command, ctx: CliContext): void {
  command.description("list, show, search, export and clean up conversations");
  const sub = (usage: string, description: string) => command.command(usage).description(description);
  /** Whatever the store refuses is reported in its own words, without a stack. */
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
    .addOption(new Option("--limit <N>", "maximum number").argParser(positiveNumber).default(20))
    .option("--archived", "include archived sessions")
    .option("--json", "machine-readable")
    .action(act((flags: ListFlags) => list(ctx, flags)));
  sub("browse", "pick a session and resume it")
    .option("--source <SOURCE>", "only this source")
    .addOption(new Option("--limit <N>", "maximum number").argParser(positiveNumber).default(500))
    .action(act((flags: ListFlags) => browse(ctx, flags)));
  sub("show <session>", "show one session (id, id prefix or title)")
    .option("--full", "show full tool results")
    .option("--json", "machine-readable")
    .action(act((session: string, flags: ShowFlags) => show(ctx, session, flags)));
  sub("search <query...>", "find conversations by a question or by words")
    .option("--source <SOURCE>", "only this source")
    .option("--role <ROLE>", "only this role")
    .addOption(
      new Option("--limit <N>", "maximum number of sessions (with --json: hits)").argParser(positiveNumber).default(20),
    )
    .addOption(new Option("--sort <ORDER>", "sort by time instead of relevance").choices(["newest", "oldest"]))
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
  sub("stop <session>", "stop the turn that another process is running").action(
    act((session: string) => ask(ctx, session, { kind: "interrupt", says: {} })),
  );
  sub("steer <session> <text...>", "send a message into the turn that another process is running").action(
    act((session: string, words: string[]) => ask(ctx, session, { kind: "steer", says: { text: words.join(" ") } })),
  );
  sub("delete <session>", "delete a session and its messages")
    .option("-y, --yes", "do not ask for confirmation")
    .action(act((session: string, flags: { yes?: true }) => deleteOne(ctx, session, flags)));
  withFilters(sub("prune", "delete old sessions that have ended")).action(
    act((flags: PruneFlags) => prune(ctx, flags, "delete")),
  );
  withFilters(sub("archive", "archive old ended sessions: hidden, not deleted")).action(
    act((flags: PruneFlags) => prune(ctx, flags, "archive")),
  );
  sub("unarchive <session>", "unarchive a session").action(act((session: string) => unarchive(ctx, session)));
  sub("stats", "count sessions and messages")
    .option("--json", "machine-readable")
    .action(act((flags: { json?: true }) => stats(ctx, flags)));
  sub("optimize", "optimize the search index and compact the database").action(act(() => optimize(ctx)));
  sub("backup [file]", "back up the database (default: backups/ in the home)").action(
    act((file: string | undefined) => backUp(ctx, file)),
  );
  sub("restore <file>", "replace the database with a copy; the current one is kept")
    .option("-y, --yes", "do not ask for confirmation")
    .action(act((file: string, flags: { yes?: true }) => restore(ctx, file, flags)));
  sub("repair", "check the database; repair it or rescue its data")
    .option("--check-only", "only check, change nothing")
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
  const room = ctx.io.stdoutIsTerminal ? ctx.io.columns : undefined;
  for (const line of sessionTable(items, ctx.clock.now() / 1000, { room, isRead: ctx.io.stdoutIsTerminal }))
    print(ctx, line, { asIs: true });
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
  const [chosen] = (await ctx.io.choose(sessionQuestion(items, await ctx.store(), now()))) ?? [];
  if (chosen === undefined) return;
  const code = await ctx.rerun(["--resume", chosen]);
  if (code !== 0) throw new ExitError(code);
}

function sessionQuestion(items: readonly SessionListItem[], store: SessionStore, now: number): ScreenQuestion<string> {
  return {
    title: `Sessions (${items.length})`,
    hint: "type to search · ↑↓ move · Enter resume · Esc clear/quit · q quit",
    numbers: false,
    choices: asTree(items).map((branch) => sessionRow(branch, now)),
    ...sessionPicking(items, store, now),
  };
}

interface ShowFlags {
  readonly full?: true;
  readonly json?: true;
}

async function show(ctx: CliContext, wanted: string, flags: ShowFlags): Promise<void> {
  const store = await ctx.store();
  const id = await resolveSession(store, wanted);
  const session = await store.get(id);
  const [exported] = await Array.fromAsync(store.export({ sessionId: id }));
  if (!session || !exported) throw notFound(wanted);
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
    ["Continued as", tip === id ? null : tip],
  ];
  const known = facts.flatMap(([name, value]) => (value === null ? [] : [[`${name}:`, oneLine(value)] as const]));
  for (const line of factLines(ctx, known, 12)) print(ctx, line, { asIs: true });
  const text = transcriptText(exported, { full: flags.full ?? false, columns: ctx.io.columns });
  print(ctx, `\n${text}`, { asIs: true });
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
  const result = await store.recall(query, {
    limit: flags.limit,
    sort: flags.sort ?? null,
    sourceFilter: flags.source === undefined ? undefined : [flags.source],
    roleFilter: flags.role === undefined ? undefined : [flags.role],
    withContext: flags.json === true,
    onIndexing: indexingLines(ctx),
  });
  if (result.unavailable !== undefined) throw new ExitError(1, result.unavailable);
  if (result.indexRebuild) ctx.io.err(`${result.indexRebuild.note}\n`);
  for (const { typed, read } of result.readAs ?? []) ctx.io.err(`Reading "${briefly(typed)}" as "${read}".\n`);
  if (result.time) ctx.io.err(`Time: ${timeLine(result.time)}\n`);
  if (result.time?.empty && result.conversations.length > 0)
    ctx.io.err("Nothing that matches was said in that time. These are from other times:\n");
  if (flags.json) return printJson(ctx, result.conversations.flatMap(hitsJson).slice(0, flags.limit));
  if (result.conversations.length === 0) throw new ExitError(1, `Nothing found for "${briefly(query)}".`);
  for (const { hits, rows, missing } of result.conversations) {
    const id = hits[0]?.sessionId ?? "";
    const title = (await store.get(id))?.title;
    print(ctx, `${id}${title ? `  ${oneLine(title)}` : ""}`, { asIs: true });
    for (const hit of hits.slice(0, SHOWN_HITS)) {
      const who = `${hit.role}${hit.toolName === null ? "" : ` (${oneLine(hit.toolName)})`}`;
      const line = `  ${localMinute(hit.timestamp)}  ${who}: ${oneLine(hit.snippet)}`;
      print(ctx, ctx.io.stdoutIsTerminal ? wrapColumns(line, ctx.io.columns).join("\n") : line, { asIs: true });
    }
    if (rows > SHOWN_HITS) print(ctx, `  ... ${rows - SHOWN_HITS} more in this session`);
    if (missing.length > 0) print(ctx, `  without: ${missing.map(oneLine).join(", ")}`);
  }
}

const INDEXING_TOLD_MS = 1000;

/** A large store takes seconds the first time. */
function indexingLines(ctx: CliContext): (done: number, total: number) => void {
  let told = ctx.clock.now();
  return (done, total) => {
    if (ctx.clock.now() - told < INDEXING_TOLD_MS || done >= total) return;
    told = ctx.clock.now();
    ctx.io.err(`Indexing messages for search: ${Math.floor((100 * done) / total)} %\n`);
  };
}

function timeLine({ phrase, from, to }: NonNullable<Recalled["time"]>): string {
  const dayOf = (seconds: number) => localMinute(seconds).slice(0, 10);
  const span = [...(from === null ? [] : [`from ${dayOf(from)}`]), ...(to === null ? [] : [`before ${dayOf(to)}`])];
  return `${oneLine(phrase)} (${span.join(", ")})`;
}

const SHOWN_HITS = 3;

type Recalled = Awaited<ReturnType<SessionStore["recall"]>>;
type Conversation = Recalled["conversations"][number];

const hitsJson = ({ hits, relaxed, matched, missing }: Conversation) =>
  hits.map((hit) => (relaxed ? { ...hitJson(hit), relaxed, matched, missing } : hitJson(hit)));

const hitJson = (hit: Conversation["hits"][number]) => ({
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

// `hermes sessions export` and `import`.

const EXPORT_FORMATS = ["jsonl", "md", "html"] as const;

interface ExportFlags {
  readonly sessionId?: string;
  readonly source?: string;
  readonly format: (typeof EXPORT_FORMATS)[number];
}

async function exportTo(ctx: CliContext, file: string, flags: ExportFlags): Promise<void> {
  const store = await ctx.store();
  const sessionId = flags.sessionId === undefined ? undefined : await resolveSession(store, flags.sessionId);
  const sessions = store.export({
    sessionId,
    source: flags.source,
  });
  let count = 0;
  const counted = async function* () {
    for await (const session of sessions) {
      count++;
      // What was stored before it was masked leaves the house masked all the same.
      yield masked(session, ctx.home.redact) as typeof session;
    }
  };
  const text = renderExport(counted(), flags.format);
  if (file === "-") {
    for await (const piece of text) ctx.io.out(piece, { asIs: true });
    return;
  }
  const target = resolve(ctx.cwd, file);
  await writeFileAtomic(target, text, { newMode: 0o600 }).catch((error: unknown) => {
    // A failed read of the store is not the fault of the target file.
    if (error instanceof Error && error.cause instanceof StoreError) throw error.cause;
    throw new ExitError(1, messageOf(error));
  });
  ctx.io.err(`Exported ${plural(count, "session")} to ${target}\n`);
}

/** The same tree with every text in it masked. */
function masked(node: unknown, redact: (text: string) => string): unknown {
  if (typeof node === "string") return redact(node);
  if (Array.isArray(node)) return node.map((item) => masked(item, redact));
  if (typeof node !== "object" || node === null) return node;
  return Object.fromEntries(Object.entries(node).map(([key, inner]) => [key, masked(inner, redact)]));
}

function renderExport(
  sessions: AsyncIterable<Readonly<Record<string, unknown>>>,
  format: ExportFlags["format"],
): AsyncIterable<string> {
  if (format === "html") {
    return (async function* () {
      yield transcriptHtml(await Array.fromAsync(sessions));
    })();
  }
  return (async function* () {
    for await (const session of sessions) {
      yield format === "jsonl" ? `${JSON.stringify(session)}\n` : `${transcriptMarkdown(session)}\n`;
    }
  })();
}

async function importFrom(ctx: CliContext, file: string): Promise<void> {
  const store = await ctx.store();
  const path = resolve(ctx.cwd, file);
  const input = file === "-" ? ctx.io.stdin : createReadStream(path, "utf8");
  const failed = new Promise<never>((_, reject) => {
    input.once("error", (error) => reject(new ExitError(1, `Cannot read ${path}: ${messageOf(error)}`)));
  });
  const report = await Promise.race([
    store.import(createInterface({ input, crlfDelay: Number.POSITIVE_INFINITY })),
    failed,
  ]);
  print(ctx, `Imported ${report.imported.length}, skipped ${report.skipped.length} that already exist.`);
  for (const { id, from, to } of report.renamed) print(ctx, `${id}: title "${from}" is taken, now "${to}"`);
  for (const id of report.detached) print(ctx, `${id}: its parent is missing, imported on its own`);
}

// One session as text, Markdown or HTML, from its exported form.

type ExportedSession = Readonly<Record<string, unknown>>;

interface Spoken {
  readonly role: string;
  readonly at: number;
  readonly text: string;
  readonly calls: readonly string[];
  readonly tool: string | null;
}

function transcriptText(session: ExportedSession, options: { full: boolean; columns: number }): string {
  return messagesOf(session)
    .map((message) => {
      const head = `${label(message)} · ${localMinute(message.at)}`;
      if (message.role === "tool" && !options.full) {
        return cut(`  ↳ ${message.tool ?? "tool"}: ${oneLine(message.text)}`, options.columns, "…");
      }
      const calls = message.calls.map((call) =>
        cut(`  → ${call}`, options.full ? Number.MAX_SAFE_INTEGER : options.columns, "…"),
      );
      return [head, ...(message.text === "" ? [] : [indent(message.text)]), ...calls].join("\n");
    })
    .join("\n\n");
}

function transcriptMarkdown(session: ExportedSession): string {
  const body = messagesOf(session).map((message) => {
    const head = `## ${label(message)} · ${localMinute(message.at)}`;
    const text = message.role === "tool" ? fenced(message.text) : message.text;
    return [head, text, ...message.calls.map((call) => fenced(call))].filter((part) => part !== "").join("\n\n");
  });
  return `${[`# ${headline(session)}`, factLine(session), ...body].join("\n\n")}\n`;
}

function transcriptHtml(sessions: readonly ExportedSession[]): string {
  const body = sessions.map((session) => {
    const messages = messagesOf(session).map(
      (message) =>
        `<section class="${escapeHtml(message.role)}"><h3>${escapeHtml(label(message))} · ${localMinute(message.at)}</h3>` +
        `<pre>${escapeHtml([message.text, ...message.calls].filter(Boolean).join("\n"))}</pre></section>`,
    );
    return `<article><h2>${escapeHtml(headline(session))}</h2><p>${escapeHtml(factLine(session))}</p>${messages.join("\n")}</article>`;
  });
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Hermes sessions</title><style>
body{font-family:system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;line-height:1.5}
pre{white-space:pre-wrap;overflow-wrap:anywhere;font:inherit;margin:0}
section{border-left:3px solid #bbb;padding:.2rem 1rem;margin:1rem 0}section.user{border-color:#46c}section.tool{opacity:.75;font-size:.9em}
h3{font-size:.85rem;color:#666;margin:0}@media(prefers-color-scheme:dark){body{background:#111;color:#ddd}}
</style></head><body>
${body.join("\n")}
</body></html>
`;
}

function messagesOf(session: ExportedSession): readonly Spoken[] {
  const rows = Array.isArray(session.messages) ? session.messages : [];
  return rows.flatMap((row: Readonly<Record<string, unknown>>) =>
    row.active === 0
      ? []
      : [
          {
            role: String(row.role),
            at: Number(row.timestamp),
            text: withoutControls(textOf(row.content as string | readonly ContentPart[] | null)), // decoded by the store
            calls: callsOf(row.tool_calls),
            tool: typeof row.tool_name === "string" ? row.tool_name : null,
          },
        ],
  );
}

function callsOf(calls: unknown): readonly string[] {
  if (!Array.isArray(calls)) return [];
  return calls.map((call: { function?: { name?: unknown; arguments?: unknown } }) =>
    withoutControls(`${String(call?.function?.name ?? "?")} ${String(call?.function?.arguments ?? "")}`),
  );
}

const label = (message: Spoken) => (message.role === "tool" ? `tool ${message.tool ?? ""}`.trim() : message.role);
const indent = (text: string) => text.replace(/^/gm, "  ");
const headline = (session: ExportedSession) => String(session.title ?? session.id);

function factLine(session: ExportedSession): string {
  const started = typeof session.started_at === "number" ? localMinute(session.started_at) : "?";
  return [session.id, session.source, session.model, started]
    .filter((fact) => fact !== null && fact !== undefined)
    .join(" · ");
}

/** A fence longer than any inside. */
function fenced(text: string): string {
  const longest = Math.max(2, ...[...text.matchAll(/`+/g)].map((run) => run[0].length));
  const fence = "`".repeat(longest + 1);
  return `${fence}\n${text}\n${fence}`;
}

const escapeHtml = (text: string) =>
  text.replace(/[&<>"]/g, (char) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[char] ?? char);
