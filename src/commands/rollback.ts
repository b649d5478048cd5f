// /rollback: files as they were before the agent changed them.
import type { Rollback } from "../checkpoints/rollback.ts";
import { UserError } from "../kit/errors.ts";
import { relativeTime } from "../kit/formats.ts";
import type { CommandContext, CommandDefinition } from "./context.ts";

const MAX_NAMED = 20;
const REMOVE = "--remove-new";

const rollback: CommandDefinition = {
  name: "rollback",
  description: "list, compare and restore file checkpoints",
  category: "Session",
  argsHint: "[N [file]] | diff N [file]",
  subcommands: ["diff"],
  async run(args, ctx) {
    try {
      await act(args.trim(), await ctx.conversation.rollback(), ctx);
    } catch (error) {
      if (!(error instanceof UserError)) throw error;
      ctx.warn(error.message);
    }
  },
};

async function act(args: string, files: Rollback, ctx: CommandContext): Promise<void> {
  if (args === "" || args === "list") return list(files, ctx);
  const words = args.split(/\s+/);
  const removeNew = words.at(-1) === REMOVE;
  const rest = removeNew ? args.slice(0, -REMOVE.length).trim() : args;
  const [, diff, name = "", file] = /^(diff\s+)?(\S+)(?:\s+([\s\S]+))?$/.exec(rest) ?? [];
  if (name === "" || rest === "diff")
    return ctx.warn(`Which one? /rollback lists the checkpoints; /rollback diff 1 shows the newest.`);
  const checkpoint = await files.find(name);
  if (diff !== undefined) return show(files, checkpoint, file, ctx);
  const report = await files.restore(checkpoint, { file, removeNew });
  const { restored, removed, created, kept } = report;
  // The checkpoint just made of the present state moved the numbers, and at the limit removed the oldest.
  const isIt = ({ at, tree }: typeof checkpoint) => at === checkpoint.at && tree === checkpoint.tree;
  const again = (await files.list()).findIndex(isIt) + 1;
  const lines = [
    restored.length + removed.length === 0
      ? `Nothing to restore${file === undefined ? "" : ` in ${file}`}.`
      : `Restored checkpoint ${checkpoint.id.slice(0, 7)} (${checkpoint.why}).`,
    ...section("Restored", restored),
    ...section("Removed", removed),
    ...section("Created since then (kept)", created),
    ...(created.length > 0 && again > 0
      ? [`To remove them too: /rollback ${again}${file ? ` ${file}` : ""} ${REMOVE}`]
      : []),
    ...section(
      "Not restored",
      kept.map(({ path, why }) => `${path}: ${why}`),
    ),
    ...(report.before !== null && restored.length + removed.length > 0
      ? [`To undo this: /rollback ${report.before.slice(0, 7)}`]
      : []),
  ];
  ctx.say(lines.join("\n"));
}

async function list(files: Rollback, ctx: CommandContext): Promise<void> {
  const root = ctx.home.display(files.root);
  const off = "Checkpoints are off. Turn them on with: hermes config set checkpoints.enabled true";
  const all = await files.list();
  if (all.length === 0) return ctx.say(files.on ? `No checkpoints of ${root} yet.` : off);
  const rows = all.map(({ id, at, why }, index) => {
    const age = relativeTime(at, ctx.now());
    return `${String(index + 1).padStart(3)}  ${id.slice(0, 7)}  ${age.padEnd(10)}  ${why}`;
  });
  ctx.say(
    [
      `Checkpoints of ${root}, newest first:`,
      ...rows,
      "/rollback diff N shows what changed since, /rollback N [file] restores.",
      ...(files.on ? [] : [off]),
    ].join("\n"),
  );
}

async function show(
  files: Rollback,
  checkpoint: Awaited<ReturnType<Rollback["find"]>>,
  file: string | undefined,
  ctx: CommandContext,
): Promise<void> {
  const { summary, patch, cut } = await files.diff(checkpoint, file);
  if (summary === "") return ctx.say(`No changes since checkpoint ${checkpoint.id.slice(0, 7)}.`);
  ctx.say(ctx.home.redact([summary, "", patch, ...(cut ? ["... (truncated)"] : [])].join("\n")));
}

function section(title: string, lines: readonly string[]): string[] {
  if (lines.length === 0) return [];
  const more = lines.length - MAX_NAMED;
  return [
    `${title}:`,
    ...lines.slice(0, MAX_NAMED).map((line) => `  ${line}`),
    ...(more > 0 ? [`  and ${more} more`] : []),
  ];
}

export const ROLLBACK_COMMANDS: readonly CommandDefinition[] = [rollback];
