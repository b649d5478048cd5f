// hermes profile: several homes side by side.
import { resolve } from "node:path";
import type { Command } from "commander";
import { exportProfile, importProfile } from "../../home/profile-archive.ts";
import {
  createProfile,
  deleteProfile,
  describedProfiles,
  describeProfile,
  existingProfile,
  listProfileNames,
  type ProfileFacts,
  profileFacts,
  removeWrapper,
  renameProfile,
  useProfile,
  type WrapperContext,
  wrapperDir,
  wrapperDirOnPath,
  wrappersOf,
  writeWrapper,
} from "../../home/profile-manage.ts";
import { ProfileError, profileName, stickyProfile } from "../../home/profiles.ts";
import { type CliContext, ExitError } from "../cli-context.ts";
import { cut, padCells } from "../terminal-text.ts";
import { printJson } from "./present.ts";

interface CreateFlags {
  readonly clone?: true;
  readonly cloneAll?: true;
  readonly cloneFrom?: string;
  readonly alias: boolean;
  readonly skills: boolean;
  readonly description?: string;
}

export function define(command: Command, ctx: CliContext): void {
  const act =
    <Args extends unknown[]>(action: (...args: Args) => Promise<void>) =>
    async (...args: Args) => {
      try {
        await action(...args);
      } catch (error) {
        if (error instanceof ProfileError) throw new ExitError(1, error.message);
        throw error;
      }
    };

  command.description("Manage profiles: separate homes, each with its own settings, memory and sessions");
  command.action(act(() => summary(ctx)));
  command
    .command("list")
    .description("list profiles; ◆ marks the active one")
    .option("--json", "machine-readable")
    .action(act((flags: { json?: true }) => list(ctx, flags)));
  command
    .command("use <name>")
    .description("make this the default profile")
    .action(act((name: string) => use(ctx, name)));
  command
    .command("create <name>")
    .description("create a profile")
    .option("--clone", "with settings, secrets, identity, skills and memory of the active one")
    .option("--clone-all", "with everything of the active one except history")
    .option("--clone-from <profile>", "clone this profile instead of the active one")
    .option("--no-alias", "do not create a command for it")
    .option("--no-skills", "without the bundled skills")
    .option("--description <text>", "what it is for")
    .action(act((name: string, flags: CreateFlags) => create(ctx, name, flags)));
  command
    .command("show <name>")
    .description("show one profile")
    .option("--json", "machine-readable")
    .action(act((name: string, flags: { json?: true }) => show(ctx, name, flags)));
  command
    .command("describe <name> [text...]")
    .description("set or show what a profile is for; boards assign work by it")
    .action(act((name: string, words: readonly string[]) => describe(ctx, name, words)));
  command
    .command("rename <old> <new>")
    .description("rename a profile and its command")
    .action(act((from: string, to: string) => renameOne(ctx, from, to)));
  command
    .command("alias <name>")
    .description("create or remove a command that starts this profile")
    .option("--remove", "remove the command")
    .option("--name <command>", "use another name")
    .action(act((name: string, flags: { remove?: true; name?: string }) => alias(ctx, name, flags)));
  command
    .command("export <name>")
    .description("export a profile, without secrets, to a .tar.gz file")
    .option("-o, --output <file>", "output file (default: NAME.tar.gz)")
    .action(act((name: string, flags: { output?: string }) => exportOne(ctx, name, flags)));
  command
    .command("import <file>")
    .description("create a profile from a .tar.gz file")
    .option("--name <name>", "use another name")
    .action(act((file: string, flags: { name?: string }) => importOne(ctx, file, flags)));
  command
    .command("delete <name>")
    .description("delete a profile with everything in it")
    .option("-y, --yes", "do not ask for confirmation")
    .action(act((name: string, flags: { yes?: true }) => deleteOne(ctx, name, flags)));
}

const wrapperContext = ({ home }: CliContext): WrapperContext => ({
  osHome: home.osHome,
  path: home.env("PATH") ?? "",
});
const rootOf = ({ home }: CliContext) => home.paths.root;

async function summary(ctx: CliContext): Promise<void> {
  const { home, io } = ctx;
  const { profile } = home.paths;
  const sticky = stickyProfile(rootOf(ctx)) === profile ? " (default)" : "";
  io.out(`Active profile: ${profile}${sticky}\n`);
  if (profile === "custom") io.out(`Path: ${home.display(home.paths.dir)}\n`);
  else io.out(factLines(ctx, await profileFacts(rootOf(ctx), profile, wrapperContext(ctx))));
}

async function list(ctx: CliContext, { json }: { json?: true }): Promise<void> {
  const names = await listProfileNames(rootOf(ctx));
  const all = await Promise.all(names.map((name) => profileFacts(rootOf(ctx), name, wrapperContext(ctx))));
  const active = ctx.home.paths.profile;
  if (json) {
    const rows = all.map((facts) => ({ ...factsJson(facts), active: facts.name === active }));
    printJson(ctx, rows);
    return;
  }
  const row = (mark: string, cells: readonly string[]) => {
    const [name = "", model = "", ...rest] = cells;
    const fixed = [fit(name, 16), fit(model, 28), ...rest.map((cell) => padCells(cell, 14))];
    return `${mark} ${fixed.join(" ")}`.trimEnd().concat("\n");
  };
  ctx.io.out(row(" ", ["Profile", "Model", "Gateway", "Alias", "Distribution"]));
  for (const facts of all) {
    const gateway = facts.gatewayPid === null ? "stopped" : "running";
    const cells = [facts.name, facts.model || "—", gateway, facts.aliases.join(",") || "—", facts.distribution || "—"];
    ctx.io.out(row(facts.name === active ? "◆" : " ", cells));
  }
}

const fit = (text: string, cells: number) => padCells(cut(text, cells, "…"), cells);

async function use(ctx: CliContext, given: string): Promise<void> {
  const name = existingProfile(rootOf(ctx), given);
  await useProfile(rootOf(ctx), name);
  ctx.io.out(`✓ hermes now uses profile ${name}\n`);
}

async function create(ctx: CliContext, given: string, flags: CreateFlags): Promise<void> {
  const { home, io } = ctx;
  const from = flags.cloneFrom === undefined ? home.paths.profile : existingProfile(rootOf(ctx), flags.cloneFrom);
  const copy = flags.cloneAll ? "everything" : flags.clone || flags.cloneFrom !== undefined ? "settings" : "nothing";
  if (copy !== "nothing" && from === "custom") {
    throw new ExitError(1, `${home.paths.dir} is not a profile; select one with --clone-from.`);
  }
  const dir = await createProfile({
    root: rootOf(ctx),
    name: given,
    copy,
    from,
    withSkills: flags.skills,
    description: flags.description,
  });
  const name = profileName(given) ?? given;
  io.out(`✓ Created profile ${name} in ${home.display(dir)}${copy === "nothing" ? "" : `, cloned from ${from}`}\n`);
  if (flags.alias) await makeAlias(ctx, name, name);
  io.out(`Start it with: hermes -p ${name}\n`);
}

async function makeAlias(ctx: CliContext, name: string, command: string): Promise<boolean> {
  const { home, io } = ctx;
  const made = await writeWrapper(name, command, wrapperContext(ctx));
  if ("refused" in made) {
    io.err(`No command "${command}" was created: ${made.refused}.\n`);
    return false;
  }
  io.out(`✓ Command ${command} starts it (${home.display(made.path)})\n`);
  if (!wrapperDirOnPath(wrapperContext(ctx)))
    io.err(`${home.display(wrapperDir(wrapperContext(ctx)))} is not on your PATH; add it to use the command.\n`);
  return true;
}

async function show(ctx: CliContext, given: string, { json }: { json?: true }): Promise<void> {
  const facts = await profileFacts(rootOf(ctx), existingProfile(rootOf(ctx), given), wrapperContext(ctx));
  ctx.io.out(
    json ? `${JSON.stringify(factsJson(facts), null, 2)}\n` : `Profile: ${facts.name}\n${factLines(ctx, facts)}`,
  );
}

function factLines({ home }: CliContext, facts: ProfileFacts): string {
  const rows = [
    ["Path", home.display(facts.path)],
    ["Model", facts.model || "(not set)"],
    ["Provider", facts.provider || "auto"],
    ["Gateway", facts.gatewayPid === null ? "stopped" : `running (process ${facts.gatewayPid})`],
    ["Skills", String(facts.skills)],
    [".env", facts.hasEnv ? "there" : "missing"],
    ["SOUL.md", facts.hasSoul ? "there" : "missing"],
    ["Alias", facts.aliases.join(", ") || "none"],
  ];
  return rows.map(([label = "", value = ""]) => `  ${label.padEnd(10)}${value}\n`).join("");
}

function factsJson(facts: ProfileFacts): Record<string, unknown> {
  const { gatewayPid, hasEnv, hasSoul, ...rest } = facts;
  return {
    ...rest,
    gateway: gatewayPid === null ? "stopped" : "running",
    gateway_pid: gatewayPid,
    env: hasEnv,
    soul: hasSoul,
  };
}

async function describe(ctx: CliContext, given: string, words: readonly string[]): Promise<void> {
  const name = existingProfile(rootOf(ctx), given);
  if (words.length > 0) {
    await describeProfile(rootOf(ctx), name, ctx.home.redact(words.join(" ")));
    return ctx.io.out(`✓ Saved what ${name} is for.\n`);
  }
  const { description } = (await describedProfiles(rootOf(ctx))).find((one) => one.name === name) ?? {};
  ctx.io.out(
    description ? `${description}\n` : `Nobody has said what ${name} is for: hermes profile describe ${name} TEXT\n`,
  );
}

async function renameOne(ctx: CliContext, given: string, to: string): Promise<void> {
  const from = existingProfile(rootOf(ctx), given);
  await ctx.home.log.flush();
  const name = await renameProfile(rootOf(ctx), from, to, wrapperContext(ctx));
  ctx.io.out(`✓ Renamed profile ${from} to ${name}\n`);
}

async function alias(ctx: CliContext, given: string, flags: { remove?: true; name?: string }): Promise<void> {
  const name = existingProfile(rootOf(ctx), given);
  if (!flags.remove) {
    const command = profileName(flags.name ?? name);
    if (command === null) throw new ExitError(1, `"${flags.name}" is not a valid command name.`);
    if (!(await makeAlias(ctx, name, command))) throw new ExitError(1);
    return;
  }
  const present = flags.name === undefined ? await wrappersOf(name, wrapperContext(ctx)) : [flags.name];
  let removed = 0;
  for (const command of present) if (await removeWrapper(name, command, wrapperContext(ctx))) removed++;
  if (removed === 0) throw new ExitError(1, `Profile ${name} has no such command.`);
  ctx.io.out(`✓ Removed ${present.join(", ")}\n`);
}

async function exportOne(ctx: CliContext, given: string, { output }: { output?: string }): Promise<void> {
  const name = existingProfile(rootOf(ctx), given);
  const file = resolve(ctx.cwd, output ?? `${name}.tar.gz`);
  const settings = await exportProfile(rootOf(ctx), name, file);
  const also = settings.length > 0 ? ` (also ${settings.join(", ")})` : "";
  ctx.io.out(`✓ Exported ${name} to ${ctx.home.display(file)}; secrets were not included${also}\n`);
}

async function importOne(ctx: CliContext, file: string, { name }: { name?: string }): Promise<void> {
  const made = await importProfile(rootOf(ctx), resolve(ctx.cwd, file), name);
  ctx.io.out(`✓ Imported profile ${made}\nStart it with: hermes -p ${made}\n`);
}

async function deleteOne(ctx: CliContext, given: string, { yes }: { yes?: true }): Promise<void> {
  const { io } = ctx;
  const name = existingProfile(rootOf(ctx), given);
  if (name === "default") throw new ExitError(1, "The default profile cannot be deleted.");
  const facts = await profileFacts(rootOf(ctx), name, wrapperContext(ctx));
  io.err(`This deletes profile ${name} with its settings, memory, skills and conversations:\n${factLines(ctx, facts)}`);
  if (!yes) {
    const answer = await io.question(`Type ${name} to delete it: `);
    if (answer === null) throw new ExitError(1, "Not a terminal; pass -y to confirm.");
    if (answer.trim() !== name) throw new ExitError(1, "Nothing was deleted.");
  }
  await ctx.home.log.flush();
  await deleteProfile(rootOf(ctx), name, wrapperContext(ctx));
  io.out(`✓ Deleted profile ${name}\n`);
}
