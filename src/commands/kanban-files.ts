// The commands of `hermes kanban` about what comes of a card: its completion, its files, what the next worker reads of it.
import { hostname } from "node:os";
import { resolve } from "node:path";
import type { Command } from "commander";
import { attach, attachmentsOf, keepCopy, removeAttachment } from "../kanban/attachments.ts";
import { BoardError, cardOf, edit } from "../kanban/cards.ts";
import { cleanUp, completeCard, maskedReport, type Report } from "../kanban/completion.ts";
import { contextText } from "../kanban/context-text.ts";
import { type Running, workerNow } from "../kanban/runs.ts";
import type { BoardFile } from "../kanban/schema.ts";
import { messageOf } from "../kit/errors.ts";
import { isRecord, parseJson } from "../kit/json.ts";
import type { KanbanWorld } from "./kanban.ts";

/** The board that is meant, and where its files lie. */
export interface OpenBoard {
  readonly board: BoardFile;
  readonly place: { readonly workspaces: string; readonly attachments: string };
}

interface Files {
  onPlace<T>(work: (open: OpenBoard) => Promise<T> | T): Promise<T>;
  author(): string;
  readonly world: KanbanWorld;
  /** The attempt that whoever types works in; undefined: a person types. */
  runOf(id: string): number | undefined;
  /** False: whoever worked on the card is still there. */
  stopFormer(board: BoardFile, id: string, worker: Running): Promise<boolean>;
}

interface ReportFlags {
  readonly result?: string;
  readonly summary?: string;
  readonly metadata?: string;
}

export function defineFiles(command: Command, { onPlace, author, world, runOf, stopFormer }: Files): void {
  const out: KanbanWorld["out"] = (...said) => world.out(...said);
  const redact = (text: string) => world.home.redact(text);
  command
    .command("complete")
    .description("mark cards as done")
    .argument("<id...>", "the cards")
    .option("--result <TEXT>", "the full result")
    .option("--summary <TEXT>", "the same in a sentence or two; with one card only")
    .option("--metadata <JSON>", "facts for programs; with one card only")
    .action(async (ids: readonly string[], flags: ReportFlags) => {
      if (ids.length > 1 && (flags.summary !== undefined || flags.metadata !== undefined))
        throw new BoardError("--summary and --metadata go with one card only.");
      const report = reportOf(flags);
      await onPlace(async ({ board, place }) => {
        for (const id of ids)
          try {
            const worker = workerNow(board.db, id, hostname());
            await completeCard(board, id, { ...report, run: runOf(id) }, { place, by: author(), redact });
            out(`✓ ${id} is done\n`);
            if (worker === null || (await stopFormer(board, id, worker))) await cleanUp(board, place, id);
          } catch (error) {
            if (!(error instanceof BoardError)) throw error;
            world.err(`✗ ${messageOf(error)}\n`);
            world.failed();
          }
      });
    });
  command
    .command("edit")
    .description("correct the result of a finished card")
    .argument("<id>", "the card")
    .option("--result <TEXT>", "the new result")
    .option("--summary <TEXT>", "the new summary")
    .option("--metadata <JSON>", "the new facts")
    .action(async (id: string, flags: ReportFlags) => {
      if (Object.keys(flags).length === 0)
        throw new BoardError("name what to change: --result, --summary or --metadata.");
      const { result, summary, metadata } = maskedReport(reportOf(flags), redact);
      const facts = isRecord(metadata) ? { metadata } : {};
      await onPlace(({ board }) => board.change((change) => edit(change, id, { result, summary, ...facts })));
      out(`✓ ${id} was changed\n`);
    });
  command
    .command("attach")
    .description("attach a file to a card, at most 25 MB")
    .argument("<id>", "the card")
    .argument("<file>", "the file; it is copied")
    .action((id: string, file: string) =>
      onPlace(async ({ board, place }) => {
        const put = () => keepCopy(place, id, resolve(file));
        const kept = await attach(board, id, { keep: put, type: null, by: author() });
        out(`✓ ${id} has attachment ${kept.id}: ${kept.filename}\n`);
      }),
    );
  command
    .command("attachments")
    .description("list the files of a card")
    .argument("<id>", "the card")
    .option("--json", "machine-readable")
    .action((id: string, { json }: { readonly json?: true }) =>
      onPlace(({ board }) => {
        cardOf(board.db, id);
        const rows = attachmentsOf(board.db, id);
        if (json) return out(`${JSON.stringify(rows, null, 2)}\n`, { asIs: true });
        if (rows.length === 0) return out("No attachments. Add one: hermes kanban attach ID FILE\n");
        for (const { id: number, filename, size, stored_path } of rows)
          out(`${number}  ${filename}  ${size ?? "?"} bytes  ${world.home.display(stored_path)}\n`, { asIs: true });
      }),
    );
  command
    .command("attach-rm")
    .description("remove a file from its card")
    .argument("<number>", "the number that attachments shows")
    .action((number: string) =>
      onPlace(async ({ board, place }) => {
        if (!/^\d{1,15}$/.test(number))
          throw new BoardError(
            `"${number}" is not the number of an attachment. "hermes kanban attachments ID" shows them.`,
          );
        const gone = await removeAttachment(board, place, Number(number));
        out(`✓ ${gone.task_id} no longer has ${gone.filename}\n`);
      }),
    );
  command
    .command("context")
    .description("show what the worker of a card is given to read")
    .argument("<id>", "the card")
    .action((id: string) =>
      onPlace(({ board }) => out(`${world.home.redact(contextText(board.db, id, board.now).text)}\n`, { asIs: true })),
    );
}

function reportOf({ result, summary, metadata }: ReportFlags): Report {
  const facts = metadata === undefined ? undefined : parseJson(metadata);
  if (metadata !== undefined && !isRecord(facts)) throw new BoardError("--metadata: this is not a JSON object.");
  return { result, summary, metadata: facts };
}
