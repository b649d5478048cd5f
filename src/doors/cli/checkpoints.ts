// `hermes checkpoints`: the store behind /rollback. Going back itself is done in a conversation.

import { rm } from "node:fs/promises";
import type { Command } from "commander";
import { prune, readProjects, storedBytes } from "../../checkpoints/prune.ts";
import { type CheckpointStore, openCheckpoints } from "../../checkpoints/store.ts";
import { messageOf } from "../../kit/errors.ts";
import { plural, relativeTime } from "../../kit/formats.ts";
import { type CliContext, ExitError } from "../cli-context.ts";
import { confirm } from "./present.ts";

export function define(command: Command, ctx: CliContext): void {
  command.description(
    "manage file checkpoints, saved before the agent changes files; /rollback in a conversation restores one",
  );
  command
    .command("status", { isDefault: true })
    .description("show checkpoints and disk usage")
    .action(() => status(ctx));
  command
    .command("prune")
    .description("delete checkpoints that are too old, too large, or whose folder is gone")
    .action(() => pruneNow(ctx));
  command
    .command("clear")
    .description("delete all checkpoints")
    .option("-y, --yes", "do not ask for confirmation")
    .action((flags: { readonly yes?: true }) => clear(flags, ctx));
}

async function status(ctx: CliContext): Promise<void> {
  const { home, io } = ctx;
  const store = openCheckpoints(home, ctx.clock);
  const { enabled, retention_days, max_snapshots, max_total_size_mb } = home.config().checkpoints;
  io.out(`Checkpoints: ${enabled ? "on" : "off (hermes config set checkpoints.enabled true)"}\n`);
  if (!(await store.exists())) return io.out("No checkpoints yet.\n");
  const projects = await readable(() => readProjects(store));
  const bytes = await readable(() => storedBytes(store));
  io.out(`Store:       ${home.display(store.git.store)}, ${megabytes(bytes)} of at most ${max_total_size_mb} MB\n`);
  io.out(`Kept:        ${retention_days} days, ${max_snapshots} per folder\n`);
  const now = ctx.clock.now() / 1000;
  for (const { workdir, checkpoints } of projects) {
    const newest = relativeTime(checkpoints[0]?.at, now);
    const count = String(Math.min(checkpoints.length, max_snapshots)).padStart(4);
    io.out(`${count}  ${newest.padEnd(10)}  ${workdir === null ? "(unknown folder)" : home.display(workdir)}\n`);
  }
}

async function pruneNow(ctx: CliContext): Promise<void> {
  const store = openCheckpoints(ctx.home, ctx.clock);
  if (!(await store.exists())) return ctx.io.out("No checkpoints yet.\n");
  const { checkpoints, projects, bytesBefore, bytesAfter } = await readable(() => prune(store));
  ctx.io.out(
    `Removed ${plural(checkpoints, "checkpoint")} and ${plural(projects, "folder")}; ${megabytes(bytesBefore)} before, ${megabytes(bytesAfter)} now.\n`,
  );
}

async function clear(flags: { readonly yes?: true }, ctx: CliContext): Promise<void> {
  const store = openCheckpoints(ctx.home, ctx.clock);
  if (!(await store.exists())) return ctx.io.out("No checkpoints yet.\n");
  await confirm(ctx, "Delete all checkpoints of all folders?", flags);
  await removeAll(store);
  ctx.io.out("Deleted all checkpoints.\n");
}

/** Removes a damaged store too. */
async function removeAll(store: CheckpointStore): Promise<void> {
  await store.exclusively(() => rm(store.git.store, { recursive: true, force: true }), { patient: true });
}

async function readable<T>(work: () => Promise<T>): Promise<T> {
  return work().catch((error: unknown) => {
    const what = messageOf(error);
    throw new ExitError(1, `the checkpoints cannot be read: ${what}\n"hermes checkpoints clear" starts over.`);
  });
}

const megabytes = (bytes: number) => `${(bytes / 1024 / 1024).toFixed(1)} MB`;
