// `hermes sessions export` and `import`.
import { createReadStream } from "node:fs";
import { resolve } from "node:path";
import { createInterface } from "node:readline";
import { writeFileAtomic } from "../../kit/files.ts";
import { StoreError } from "../../sessions/store.ts";
import { type CliContext, ExitError } from "./context.ts";
import { print, reasonOf, resolveSession } from "./session-command.ts";
import { transcriptHtml, transcriptMarkdown } from "./transcript.ts";

export const EXPORT_FORMATS = ["jsonl", "md", "html"] as const;

export interface ExportFlags {
  readonly sessionId?: string;
  readonly source?: string;
  readonly format: (typeof EXPORT_FORMATS)[number];
}

export async function exportTo(ctx: CliContext, file: string, flags: ExportFlags): Promise<void> {
  const store = await ctx.store();
  const sessionId = flags.sessionId === undefined ? undefined : await resolveSession(store, flags.sessionId);
  const sessions = store.export({
    ...(sessionId === undefined ? {} : { sessionId }),
    ...(flags.source === undefined ? {} : { source: flags.source }),
  });
  let count = 0;
  const counted = async function* () {
    for await (const session of sessions) {
      count++;
      yield session;
    }
  };
  const text = renderExport(counted(), flags.format);
  if (file === "-") {
    for await (const piece of text) ctx.io.out(piece);
    return;
  }
  const target = resolve(ctx.cwd, file);
  await writeFileAtomic(target, text, { newMode: 0o600 }).catch((error: unknown) => {
    // What the store could not read is no fault of the target.
    if (error instanceof Error && error.cause instanceof StoreError) throw error.cause;
    throw new ExitError(1, reasonOf(error));
  });
  ctx.io.err(`Exported ${count} ${count === 1 ? "session" : "sessions"} to ${target}\n`);
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

export async function importFrom(ctx: CliContext, file: string): Promise<void> {
  const store = await ctx.store();
  const path = resolve(ctx.cwd, file);
  const input = file === "-" ? ctx.io.stdin : createReadStream(path, "utf8");
  const failed = new Promise<never>((_, reject) => {
    input.once("error", (error) => reject(new ExitError(1, `Cannot read ${path}: ${reasonOf(error)}`)));
  });
  const report = await Promise.race([
    store.import(createInterface({ input, crlfDelay: Number.POSITIVE_INFINITY })),
    failed,
  ]);
  print(ctx, `Imported ${report.imported.length}, skipped ${report.skipped.length} that exist already.`);
  for (const { id, from, to } of report.renamed) print(ctx, `${id}: title "${from}" is taken, now "${to}"`);
  for (const id of report.detached) print(ctx, `${id}: its parent is not here, stands alone`);
}
