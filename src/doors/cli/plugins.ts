// `hermes plugins`: list, enable, disable, install, update and remove plugins.

import type { Command } from "commander";
import { builtinCommands } from "../../commands/builtin.ts";
import { CodePins } from "../../home/code-pins.ts";
import { isSafeMode } from "../../home/paths.ts";
import { messageOf } from "../../kit/errors.ts";
import { didYouMean } from "../../kit/similarity.ts";
import { namesOf } from "../../plugins/find.ts";
import type { PluginRow } from "../../plugins/inspect.ts";
import { describePlugin, inspectPlugins, missingPlugins } from "../../plugins/inspect.ts";
import { installPlugin, originOf, removePlugin } from "../../plugins/install.ts";
import { sharedPlugins } from "../../plugins/shared.ts";
import { loadTools } from "../../tools/toolset/discover.ts";
import { type CliContext, ExitError } from "../cli-context.ts";
import { confirm, printJson } from "./present.ts";

export function define(command: Command, ctx: CliContext): void {
  command.description("install and manage plugins: tools, hooks, commands, memory providers, skills");
  command
    .command("list", { isDefault: true })
    .description("list plugins with version, location and state; runs none of them")
    .option("--json", "machine-readable")
    .action((flags: { json?: true }) => list(flags, ctx));
  command
    .command("enable")
    .description("enable plugins and check that they load")
    .argument("<names...>")
    .action((names: string[]) => enable(names, ctx));
  command
    .command("disable")
    .description("disable plugins")
    .argument("<names...>")
    .action((names: string[]) => disable(names, ctx));
  command
    .command("install")
    .description("install a plugin from a folder or git repository; it stays disabled")
    .argument("<source>", "folder, git URL, or github:owner/name")
    .option("--force", "replace an installed one")
    .option("--enable", "also enable it")
    .action((source: string, flags: { force?: true; enable?: true }) => install(source, flags, ctx));
  command
    .command("update")
    .description("update plugins from their source (default: all)")
    .argument("[names...]")
    .action((names: string[]) => update(names, ctx));
  command
    .command("remove")
    .description("delete a plugin from the home")
    .argument("<name>")
    .option("-y, --yes", "do not ask for confirmation")
    .action((name: string, flags: { yes?: true }) => remove(name, flags, ctx));
}

async function list({ json }: { json?: true }, ctx: CliContext): Promise<void> {
  const rows = await inspect(ctx);
  if (json) return printJson(ctx, rows.map(asJson));
  for (const name of missingPlugins(rows, ctx.home.config()))
    ctx.io.err(`⚠ plugins.enabled names "${name}", which is not installed.\n`);
  if (rows.length === 0) {
    return ctx.io.out(
      `No plugins installed.\nInstall one with: hermes plugins install FOLDER (copies it to ${ctx.home.display(ctx.home.paths.at("plugins"))})\n`,
    );
  }
  for (const row of rows) ctx.io.out(`${describePlugin(row)}\n`);
  ctx.io.out("\nhermes plugins enable|disable NAME changes one. Running conversations are not affected.\n");
}

function asJson({ plugin, state, note, missingEnv, outline }: PluginRow) {
  const { key, source, folder, manifest } = plugin;
  const { version, description, author, kind, requiresEnv } = manifest;
  return {
    ...{ key, name: manifest.name, version, description, author, kind, source, folder, state, note },
    requires_env: requiresEnv,
    missing_env: missingEnv,
    tools: outline?.tools.map(({ name }) => name) ?? manifest.providesTools,
    hooks: outline?.hooks ?? manifest.providesHooks,
    commands: outline?.commands.map(({ name }) => name) ?? [],
  };
}

async function enable(names: readonly string[], ctx: CliContext): Promise<void> {
  const rows = await pick(names, ctx);
  for (const { plugin, standing } of rows) {
    if (standing.type === "unusable") throw new ExitError(1, `${plugin.key} cannot be enabled: ${standing.why}.`);
    if (standing.type === "single" && (await pinsOf(ctx).isChanged(plugin.folder))) {
      await pinsOf(ctx).pin(plugin.folder);
      return ctx.io.out(`${plugin.key} approved in its current version. The change applies to new conversations.\n`);
    }
    if (standing.type === "single") {
      const name = plugin.key.split("/").at(-1);
      throw new ExitError(
        1,
        `${plugin.key} is used when selected in the settings: hermes config set ${standing.setting} ${name}`,
      );
    }
  }
  for (const { plugin } of rows) await pinsOf(ctx).pin(plugin.folder);
  await writeLists(ctx, { on: rows });
  await showLoaded(rows, ctx);
}

/** Loads the enabled plugins once, to show whether they work. */
async function showLoaded(rows: readonly PluginRow[], ctx: CliContext): Promise<void> {
  await loadTools(ctx.home.log);
  const { host } = sharedPlugins(ctx);
  await host.refresh();
  host.takeLines();
  let failed = 0;
  for (const { plugin } of rows) {
    const status = host.statuses().find((one) => one.plugin.key === plugin.key);
    const problems = status?.problems ?? [];
    if (status?.outline) ctx.io.out(`${plugin.key} enabled. ${offers(status.outline)}\n`);
    const taken = status?.outline ? await takenCommands(status.outline, ctx.commands) : [];
    for (const problem of [...problems, ...taken]) ctx.io.err(`⚠ ${plugin.key}: ${problem}\n`);
    if (!status?.outline) failed++;
    for (const name of plugin.manifest.requiresEnv.filter((one) => !ctx.home.env(one)))
      ctx.io.err(`⚠ ${plugin.key} needs ${name}; add it to ${ctx.home.display(ctx.home.paths.envFile)}\n`);
  }
  if (failed > 0) throw new ExitError(1, "plugins that failed to load are enabled but skipped until they load.");
  ctx.io.out("The change applies to new conversations.\n");
}

/** Names that built-in commands have already. */
async function takenCommands(
  { commands, cliCommands }: NonNullable<PluginRow["outline"]>,
  ours: ReadonlySet<string>,
): Promise<readonly string[]> {
  const registry = builtinCommands();
  return [
    ...commands.filter(({ name }) => registry.get(name) !== null).map(({ name }) => `/${name}`),
    ...cliCommands.filter(({ name }) => ours.has(name)).map(({ name }) => `hermes ${name}`),
  ].map((name) => `the command ${name} was rejected: Hermes already has a command with that name`);
}

function offers(outline: NonNullable<PluginRow["outline"]>): string {
  const parts = [
    ["tools", outline.tools.map(({ name }) => name)],
    ["hooks", outline.hooks],
    ["commands", outline.commands.map(({ name }) => `/${name}`)],
    ["hermes commands", outline.cliCommands.map(({ name }) => name)],
    ["memories", outline.memories],
    ["context engines", outline.engines],
    ["providers", outline.providers.map(({ kind, name }) => `${kind}/${name}`)],
    ["platforms", outline.platforms],
    ["skills", outline.skills.map((path) => path.split("/").at(-1) ?? path)],
  ] as const;
  const given = parts.filter(([, names]) => names.length > 0).map(([what, names]) => `${what}: ${names.join(", ")}`);
  return given.length === 0 ? "It provides nothing." : `It provides ${given.join("; ")}.`;
}

async function disable(names: readonly string[], ctx: CliContext): Promise<void> {
  const rows = await pick(names, ctx);
  await writeLists(ctx, { off: rows });
  for (const { plugin } of rows) ctx.io.out(`${plugin.key} disabled. The change applies to new conversations.\n`);
}

async function install(source: string, flags: { force?: true; enable?: true }, ctx: CliContext): Promise<void> {
  const { plugin, replaced } = await installPlugin(source, { replace: flags.force === true }, installPorts(ctx));
  const { name, version } = plugin.manifest;
  const before = replaced === null ? "" : `, replacing ${replaced === "" ? "the previous version" : replaced}`;
  const title = version === "" ? name : `${name} ${version}`;
  ctx.io.out(`Installed ${title}${before} in ${ctx.home.display(plugin.folder)}.\n`);
  if (flags.enable) return enable([plugin.key], ctx);
  const [row] = await pick([plugin.key], ctx);
  if (row?.standing.type === "on") {
    await pinsOf(ctx).pin(plugin.folder);
    return showLoaded([row], ctx);
  }
  ctx.io.out(`Plugins run with your permissions. Review it, then run: hermes plugins enable ${name}\n`);
}

async function update(names: readonly string[], ctx: CliContext): Promise<void> {
  const rows =
    names.length > 0 ? await pick(names, ctx) : (await inspect(ctx)).filter(({ plugin }) => plugin.source === "home");
  let failed = 0;
  let done = 0;
  for (const { plugin } of rows) {
    const source = await originOf(plugin.folder);
    if (source === null) {
      if (names.length > 0) ctx.io.err(`${plugin.key} was added by hand; its source is unknown.\n`);
      failed += names.length > 0 ? 1 : 0;
      continue;
    }
    try {
      const updated = await installPlugin(source, { replace: true }, installPorts(ctx));
      await pinsOf(ctx).pin(updated.plugin.folder);
      const { version } = updated.plugin.manifest;
      const same = version === plugin.manifest.version;
      ctx.io.out(
        `${plugin.key}: ${same ? `${version}, copied again` : `${plugin.manifest.version} -> ${version}`} from ${source}\n`,
      );
      done++;
    } catch (error) {
      failed++;
      ctx.io.err(`${plugin.key}: ${messageOf(error)}\n`);
    }
  }
  if (failed > 0) throw new ExitError(1);
  if (done === 0) ctx.io.out("Nothing to update.\n");
}

async function remove(name: string, flags: { yes?: true }, ctx: CliContext): Promise<void> {
  const [row] = await pick([name], ctx);
  if (!row) return;
  const { plugin } = row;
  if (plugin.source !== "home") {
    throw new ExitError(
      1,
      `${plugin.key} is not in the home (${plugin.source}: ${plugin.folder}); hermes plugins disable ${plugin.key} disables it.`,
    );
  }
  await confirm(ctx, `Delete ${ctx.home.display(plugin.folder)}?`, flags);
  await removePlugin(plugin);
  await pinsOf(ctx).forget(plugin.folder);
  await writeLists(ctx, { gone: [row] });
  ctx.io.out(`Removed ${plugin.key}.\n`);
}

async function writeLists(
  ctx: CliContext,
  change: {
    readonly on?: readonly PluginRow[];
    readonly off?: readonly PluginRow[];
    readonly gone?: readonly PluginRow[];
  },
): Promise<void> {
  const { enabled = [], disabled } = ctx.home.config().plugins;
  const { on = [], off = [], gone = [] } = change;
  const touched = new Set([...on, ...off, ...gone].flatMap(({ plugin }) => namesOf(plugin)));
  const rest = (list: readonly unknown[]) => list.map(String).filter((name) => !touched.has(name));
  await ctx.home.setConfigKeys({
    "plugins.enabled": [...rest(enabled), ...on.map(({ plugin }) => plugin.key)],
    "plugins.disabled": [...rest(disabled), ...off.map(({ plugin }) => plugin.key)],
  });
}

async function pick(names: readonly string[], ctx: CliContext): Promise<readonly PluginRow[]> {
  const rows = await inspect(ctx);
  return names.map((name) => {
    const row = rows.find(({ plugin }) => namesOf(plugin).includes(name));
    if (row) return row;
    const near = didYouMean(
      name,
      rows.flatMap(({ plugin }) => namesOf(plugin)),
    );
    const hint = near.length > 0 ? ` Did you mean ${near.map((one) => `"${one}"`).join(" or ")}?` : "";
    throw new ExitError(1, `there is no plugin "${name}".${hint} "hermes plugins list" shows them.`);
  });
}

/** What the user switches on or brings in is meant as it is then. */
const pinsOf = ({ home }: CliContext) => new CodePins(home.paths);

async function inspect(ctx: CliContext): Promise<readonly PluginRow[]> {
  return inspectPlugins(ctx);
}

function installPorts({ home, cwd, clock }: CliContext) {
  return {
    folder: home.paths.at("plugins"),
    cwd,
    osHome: home.osHome,
    env: home.environment(),
    now: () => clock.now(),
  };
}

// `hermes WORD ...` where WORD is a command provided by a plugin.

/** The exit code; null when no plugin that is on has a command of this name. */
export async function runPluginCommand(
  name: string,
  args: readonly string[],
  { home, io, clock, cwd }: Pick<CliContext, "home" | "io" | "clock" | "cwd">,
): Promise<number | null> {
  if (isSafeMode(home) || (home.config().plugins.enabled ?? []).length === 0) return null;
  await loadTools(home.log);
  const { host } = sharedPlugins({ home, clock, cwd });
  await host.refresh();
  for (const line of host.takeLines()) io.err(`⚠ ${line}\n`);
  const command = host.cliCommands().find((one) => one.name === name);
  if (!command) return null;
  const code = await command.run(args, { out: io.out, err: io.err });
  return typeof code === "number" ? code : 0;
}
