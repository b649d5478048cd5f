// `hermes trust`: folders whose plugins, servers and programs may load and run without a command of yours.

import { resolve } from "node:path";
import type { Command } from "commander";
import type { FolderStanding } from "../../home/folder-trust.ts";
import { isDirectory } from "../../kit/files.ts";
import { type CliContext, ExitError } from "../cli-context.ts";
import { print, printJson, table } from "./present.ts";

const STANDINGS = { never: "too broad to be trusted", unknown: "not decided yet" };

interface Flags {
  readonly json?: true;
}

export function define(command: Command, ctx: CliContext): void {
  command.description("manage trusted folders; nothing in any other folder loads or runs on its own");
  command
    .command("list", { isDefault: true })
    .description("list folders and your decision about each")
    .option("--json", "as JSON")
    .action((flags: Flags) => list(flags, ctx));
  command
    .command("add")
    .description("trust a folder and all its subfolders")
    .argument("[PATH]", "default: the current folder or its repository")
    .option("--json", "as JSON")
    .action((path: string | undefined, flags: Flags) => add(path, flags, ctx));
  command
    .command("remove")
    .description("forget the decision about a folder")
    .argument("[PATH]", "default: the current folder or its repository")
    .option("--json", "as JSON")
    .action((path: string | undefined, flags: Flags) => remove(path, flags, ctx));
}

function list({ json }: Flags, ctx: CliContext): void {
  const { home, cwd } = ctx;
  const entries = home.folders.list();
  const here = home.folders.standing(cwd);
  if (json) {
    const folders = entries.map(({ lookOnly, ...entry }) => ({ ...entry, look_only: lookOnly }));
    return printJson(ctx, { folders, here: { path: here.folder, standing: here.standing } });
  }
  const rows = entries.map(({ path, at, lookOnly }) => [
    lookOnly ? "look only" : "trusted",
    at.slice(0, 10),
    home.display(path),
  ]);
  print(ctx, rows.length === 0 ? "No trusted folders yet." : table(rows));
  const standing = { ...STANDINGS, trusted: through(here), "look only": through(here) };
  print(ctx, `This folder (${home.display(here.folder)}): ${standing[here.standing]}.`);

  function through({ folder, standing, decidedAt }: FolderStanding): string {
    return decidedAt === null || decidedAt === folder ? standing : `${standing}, through ${home.display(decidedAt)}`;
  }
}

async function add(path: string | undefined, { json }: Flags, ctx: CliContext): Promise<void> {
  const { home, clock } = ctx;
  const wanted = chosen(path, ctx);
  if (!(await isDirectory(wanted))) throw new ExitError(1, `${wanted} is not a folder.`);
  const folder = await home.folders.decide(wanted, { by: "command", lookOnly: false, at: new Date(clock.now()) });
  if (json) return printJson(ctx, { path: folder, standing: "trusted" });
  print(ctx, `${home.display(folder)} and all its subfolders are trusted.`);
}

async function remove(path: string | undefined, { json }: Flags, ctx: CliContext): Promise<void> {
  const { home } = ctx;
  const wanted = chosen(path, ctx);
  const folder = await home.folders.remove(wanted);
  if (folder === null) {
    const { standing, decidedAt } = home.folders.standing(wanted);
    const through =
      decidedAt === null
        ? '"hermes trust list" shows your decisions.'
        : `It is ${standing} through ${home.display(decidedAt)}: hermes trust remove ${home.display(decidedAt)}`;
    throw new ExitError(1, `No decision on record for ${home.display(wanted)}. ${through}`);
  }
  const { standing, decidedAt } = home.folders.standing(folder);
  if (json) return printJson(ctx, { path: folder, standing });
  const now =
    decidedAt === null
      ? "Hermes will ask again."
      : `it is ${standing} through ${home.display(decidedAt)}. To change that: hermes trust remove ${home.display(decidedAt)}`;
  print(ctx, `${home.display(folder)}: decision removed; ${now}`);
}

function chosen(path: string | undefined, { home, cwd }: CliContext): string {
  if (path?.trim() === "") throw new ExitError(2, "The path is empty. Name a folder, or omit it for the current one.");
  return path === undefined ? home.folders.standing(cwd).folder : resolve(cwd, path);
}
