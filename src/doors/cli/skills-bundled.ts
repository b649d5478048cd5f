// The skills that came with the program: what the user changed, and whether they come at all.

import { rm, stat } from "node:fs/promises";
import { join } from "node:path";
import type { Command } from "commander";
import {
  acceptBundled,
  diffBundled,
  findBundled,
  optOut as leaveShipped,
  modifiedSkills,
  restoreBundled,
  syncBundledSkills,
  optIn as takeShipped,
} from "../../skills/bundled.ts";
import type { Bundle } from "../../skills/bundles.ts";
import { bundlesDir, loadBundles, slugOf, writeBundle } from "../../skills/bundles.ts";
import { loadCatalogue } from "../../skills/catalogue.ts";
import { skillsContext } from "../../skills/open.ts";
import { resolveSkill } from "../../skills/resolve.ts";
import { exists } from "../../skills/skill-copy.ts";
import { type CliContext, ExitError } from "../cli-context.ts";
import { confirm, printJson } from "./present.ts";

export function defineBundled(command: Command, ctx: CliContext): void {
  command
    .command("list-modified")
    .description("list bundled skills you changed; updates do not overwrite them")
    .option("--json", "machine-readable")
    .action(({ json }: { json?: true }) => listModified(json === true, ctx));
  command
    .command("diff")
    .description("show your changes to a bundled skill")
    .argument("<name>")
    .action((name: string) => diff(name, ctx));
  command
    .command("reset")
    .description("keep your version of a bundled skill until the next update, or restore the bundled one")
    .argument("<name>")
    .option("--restore", "restore the bundled version; yours is archived")
    .option("-y, --yes", "do not ask for confirmation")
    .action((name: string, flags: { restore?: true; yes?: true }) => reset(name, flags, ctx));
  command
    .command("opt-out")
    .description("stop adding bundled skills to this home")
    .option("--remove", "also remove bundled skills you did not change")
    .action(({ remove }: { remove?: true }) => optOut(remove === true, ctx));
  command
    .command("opt-in")
    .description("add bundled skills again on the next start")
    .option("--sync", "add them now")
    .action(({ sync }: { sync?: true }) => optIn(sync === true, ctx));
}

async function listModified(json: boolean, ctx: CliContext): Promise<void> {
  const names = (await modifiedSkills(skillsContext(ctx))).map(({ name }) => name);
  if (json) printJson(ctx, { modified: names });
  else
    ctx.io.out(
      names.length > 0 ? names.map((name) => `${name}\n`).join("") : "You have not changed any bundled skills.\n",
    );
}

async function shipped(name: string, ctx: CliContext) {
  const context = skillsContext(ctx);
  const skill = await findBundled(name, context);
  if (!skill) throw new ExitError(1, `There is no bundled skill "${name}".`);
  return { context, skill };
}

async function diff(name: string, ctx: CliContext): Promise<void> {
  const { context, skill } = await shipped(name, ctx);
  ctx.io.out((await diffBundled(skill, context)) || `Your copy of ${skill.name} is the bundled version.\n`);
}

async function reset(name: string, flags: { restore?: true; yes?: true }, ctx: CliContext): Promise<void> {
  const { context, skill } = await shipped(name, ctx);
  if (!flags.restore) {
    if (!(await exists(`${context.paths.skillsDir}/${skill.path}`)))
      throw new ExitError(1, `You have no copy of ${skill.name}. "hermes skills reset ${name} --restore" restores it.`);
    await acceptBundled(skill, context);
    ctx.io.out(
      `Your version of ${skill.name} is kept until an update changes the bundled one, which then replaces it.\n`,
    );
    return;
  }
  await confirm(ctx, `Restore the bundled ${skill.name}? Your version is archived.`, flags);
  const archived = await restoreBundled(skill, context);
  const where = archived === null ? "" : ` Your version is in ${ctx.home.display(archived)}.`;
  ctx.io.out(`Restored the bundled ${skill.name}.${where}\n`);
}

async function optOut(remove: boolean, ctx: CliContext): Promise<void> {
  const removed = await leaveShipped(skillsContext(ctx), { remove });
  ctx.io.out("Bundled skills are no longer added to this home. Undo with: hermes skills opt-in\n");
  if (removed.length > 0) ctx.io.out(`Removed: ${removed.join(", ")}\n`);
}

async function optIn(sync: boolean, ctx: CliContext): Promise<void> {
  const context = skillsContext(ctx);
  await takeShipped(context);
  if (!sync) {
    ctx.io.out("Bundled skills will be added on the next start.\n");
    return;
  }
  const { total_bundled, ...lists } = await syncBundledSkills(context);
  for (const [what, names] of Object.entries(lists)) {
    if (names.length > 0 && what !== "skipped") ctx.io.out(`${what.replace("_", " ")}: ${names.join(", ")}\n`);
  }
  ctx.io.out(`${total_bundled} bundled skills.\n`);
  if (lists.failed.length > 0) throw new ExitError(1, "Not all of them could be copied.");
}

// `hermes bundles`: several skills under one command.

interface Flags {
  readonly json?: true;
  readonly skill?: readonly string[];
  readonly description?: string;
  readonly instruction?: string;
  readonly force?: true;
}

export function define(command: Command, ctx: CliContext): void {
  command.description("manage skill bundles: /name loads several skills at once");
  command
    .command("list", { isDefault: true })
    .alias("reload")
    .description("list bundles")
    .option("--json", "machine-readable")
    .action((flags: Flags) => list(flags, ctx));
  command
    .command("show")
    .description("show a bundle and whether its skills exist")
    .argument("<name>")
    .option("--json", "machine-readable")
    .action((name: string, flags: Flags) => show(name, flags, ctx));
  command
    .command("create")
    .description("create a bundle")
    .argument("<name>")
    .option("--skill <skill>", "a skill in it (repeatable)", (value: string, earlier: readonly string[] = []) => [
      ...earlier,
      value,
    ])
    .option("-d, --description <text>", "what it is for")
    .option("--instruction <text>", "instructions for the agent, added to the skills")
    .option("--force", "replace an existing bundle")
    .action((name: string, flags: Flags) => create(name, flags, ctx));
  command
    .command("delete")
    .description("remove a bundle; its skills are kept")
    .argument("<name>")
    .action((name: string) => remove(name, ctx));
}

async function load(ctx: CliContext) {
  const found = await loadBundles(skillsContext(ctx));
  for (const warning of found.warnings) ctx.io.err(`⚠ ${warning}\n`);
  return found.bundles;
}

async function find(name: string, ctx: CliContext): Promise<Bundle> {
  const bundle = (await load(ctx)).get(slugOf(name));
  if (bundle) return bundle;
  throw new ExitError(1, `There is no bundle "${name}". "hermes bundles list" shows the bundles.`);
}

async function list({ json }: Flags, ctx: CliContext): Promise<void> {
  const bundles = [...(await load(ctx)).values()];
  if (json) return printJson(ctx, { bundles });
  if (bundles.length === 0) ctx.io.out("No bundles yet. Create one: hermes bundles create NAME --skill A --skill B\n");
  const width = Math.max(0, ...bundles.map(({ slug }) => slug.length));
  for (const { slug, skills, description } of bundles) {
    ctx.io.out(`/${slug.padEnd(width)}  ${skills.join(", ")}${description === "" ? "" : `  — ${description}`}\n`);
  }
}

async function unknownSkills(names: readonly string[], ctx: CliContext): Promise<readonly string[]> {
  const context = skillsContext(ctx);
  const catalogue = await loadCatalogue(context);
  const found = await Promise.all(names.map((name) => resolveSkill(name, catalogue, context)));
  return names.filter((_, index) => found[index]?.type !== "found");
}

async function show(name: string, { json }: Flags, ctx: CliContext): Promise<void> {
  const bundle = await find(name, ctx);
  const missing = await unknownSkills(bundle.skills, ctx);
  if (json) return printJson(ctx, { ...bundle, missing });
  ctx.io.out(`/${bundle.slug}${bundle.description === "" ? "" : `  ${bundle.description}`}\n`);
  for (const skill of bundle.skills) ctx.io.out(`  ${missing.includes(skill) ? "✗" : "✓"} ${skill}\n`);
  if (bundle.instruction !== "") ctx.io.out(`Instruction: ${bundle.instruction}\n`);
  ctx.io.out(`${ctx.home.display(bundle.file)}\n`);
}

async function create(name: string, flags: Flags, ctx: CliContext): Promise<void> {
  const context = skillsContext(ctx);
  const slug = slugOf(name);
  const skills = [...new Set(flags.skill ?? [])];
  if (slug === "") throw new ExitError(1, `"${name}" is not usable as a command name. Nothing was saved.`);
  if (skills.length === 0) throw new ExitError(1, "A bundle needs skills: --skill A --skill B. Nothing was saved.");
  const missing = await unknownSkills(skills, ctx);
  if (missing.length > 0)
    throw new ExitError(
      1,
      `There is no skill ${missing.join(", ")}. Nothing was written. "hermes skills list" shows the names.`,
    );
  const taken = (await load(ctx)).get(slug)?.file ?? join(bundlesDir(context), `${slug}.yaml`);
  const isThere = await stat(taken).then(
    () => true,
    () => false,
  );
  if (isThere && !flags.force)
    throw new ExitError(1, `Bundle "${slug}" already exists (${ctx.home.display(taken)}). --force replaces it.`);
  if (isThere) await rm(taken);
  const { description = "", instruction = "" } = flags;
  const file = await writeBundle(context, { name, description, skills, instruction });
  ctx.io.out(`/${slug} loads ${skills.join(", ")}. Written to ${ctx.home.display(file)}.\n`);
}

async function remove(name: string, ctx: CliContext): Promise<void> {
  const { file, slug } = await find(name, ctx);
  await rm(file);
  ctx.io.out(`Bundle ${slug} removed. Its skills are kept.\n`);
}
