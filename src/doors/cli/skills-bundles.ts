// `hermes bundles`: several skills under one command.
import { rm, stat } from "node:fs/promises";
import { join } from "node:path";
import type { Command } from "commander";
import type { Bundle } from "../../skills/bundles.ts";
import { type CliContext, ExitError } from "./context.ts";
import { placeOf } from "./skills-place.ts";

interface Flags {
  readonly json?: true;
  readonly skill?: readonly string[];
  readonly description?: string;
  readonly instruction?: string;
  readonly force?: true;
}

export function define(command: Command, ctx: CliContext): void {
  command.description("several skills under one command: /name loads them all");
  command
    .command("list", { isDefault: true })
    .alias("reload")
    .description("the bundles there are")
    .option("--json", "machine-readable")
    .action((flags: Flags) => list(flags, ctx));
  command
    .command("show")
    .description("one bundle and whether its skills are there")
    .argument("<name>")
    .option("--json", "machine-readable")
    .action((name: string, flags: Flags) => show(name, flags, ctx));
  command
    .command("create")
    .description("make a bundle")
    .argument("<name>")
    .option("--skill <skill>", "a skill in it (repeatable)", (value: string, earlier: readonly string[] = []) => [
      ...earlier,
      value,
    ])
    .option("-d, --description <text>", "what it is for")
    .option("--instruction <text>", "what the agent is told along with the skills")
    .option("--force", "replace a bundle of that name")
    .action((name: string, flags: Flags) => create(name, flags, ctx));
  command
    .command("delete")
    .description("remove a bundle; its skills stay")
    .argument("<name>")
    .action((name: string) => remove(name, ctx));
}

async function load(ctx: CliContext) {
  const { loadBundles } = await import("../../skills/bundles.ts");
  const found = await loadBundles(await placeOf(ctx));
  for (const warning of found.warnings) ctx.io.err(`⚠ ${warning}\n`);
  return found.bundles;
}

async function find(name: string, ctx: CliContext): Promise<Bundle> {
  const { slugOf } = await import("../../skills/slug.ts");
  const bundle = (await load(ctx)).get(slugOf(name));
  if (bundle) return bundle;
  throw new ExitError(1, `There is no bundle "${name}". "hermes bundles list" shows the bundles there are.`);
}

async function list({ json }: Flags, ctx: CliContext): Promise<void> {
  const bundles = [...(await load(ctx)).values()];
  if (json) return ctx.io.out(`${JSON.stringify({ bundles }, null, 2)}\n`);
  if (bundles.length === 0)
    ctx.io.out("There are no bundles. hermes bundles create NAME --skill A --skill B makes one.\n");
  const width = Math.max(0, ...bundles.map(({ slug }) => slug.length));
  for (const { slug, skills, description } of bundles) {
    ctx.io.out(`/${slug.padEnd(width)}  ${skills.join(", ")}${description === "" ? "" : `  — ${description}`}\n`);
  }
}

async function unknownSkills(names: readonly string[], ctx: CliContext): Promise<readonly string[]> {
  const { loadCatalogue } = await import("../../skills/catalogue.ts");
  const { resolveSkill } = await import("../../skills/resolve.ts");
  const place = await placeOf(ctx);
  const catalogue = await loadCatalogue(place);
  const found = await Promise.all(names.map((name) => resolveSkill(name, catalogue, place)));
  return names.filter((_, index) => found[index]?.type !== "found");
}

async function show(name: string, { json }: Flags, ctx: CliContext): Promise<void> {
  const bundle = await find(name, ctx);
  const missing = await unknownSkills(bundle.skills, ctx);
  if (json) return ctx.io.out(`${JSON.stringify({ ...bundle, missing }, null, 2)}\n`);
  ctx.io.out(`/${bundle.slug}${bundle.description === "" ? "" : `  ${bundle.description}`}\n`);
  for (const skill of bundle.skills) ctx.io.out(`  ${missing.includes(skill) ? "✗" : "✓"} ${skill}\n`);
  if (bundle.instruction !== "") ctx.io.out(`Instruction: ${bundle.instruction}\n`);
  ctx.io.out(`${ctx.home.display(bundle.file)}\n`);
}

async function create(name: string, flags: Flags, ctx: CliContext): Promise<void> {
  const { bundlesDir, writeBundle } = await import("../../skills/bundles.ts");
  const { slugOf } = await import("../../skills/slug.ts");
  const place = await placeOf(ctx);
  const slug = slugOf(name);
  const skills = [...new Set(flags.skill ?? [])];
  if (slug === "") throw new ExitError(1, `"${name}" has no letters for a command. Nothing was written.`);
  if (skills.length === 0) throw new ExitError(1, "A bundle needs skills: --skill A --skill B. Nothing was written.");
  const missing = await unknownSkills(skills, ctx);
  if (missing.length > 0)
    throw new ExitError(
      1,
      `There is no skill ${missing.join(", ")}. Nothing was written. "hermes skills list" shows the names.`,
    );
  const taken = (await load(ctx)).get(slug)?.file ?? join(bundlesDir(place), `${slug}.yaml`);
  const isThere = await stat(taken).then(
    () => true,
    () => false,
  );
  if (isThere && !flags.force)
    throw new ExitError(1, `There is a bundle "${slug}" already (${ctx.home.display(taken)}). --force replaces it.`);
  if (isThere) await rm(taken);
  const { description = "", instruction = "" } = flags;
  const file = await writeBundle(place, { name, description, skills, instruction });
  ctx.io.out(`/${slug} loads ${skills.join(", ")}. Written to ${ctx.home.display(file)}.\n`);
}

async function remove(name: string, ctx: CliContext): Promise<void> {
  const { file, slug } = await find(name, ctx);
  await rm(file);
  ctx.io.out(`Bundle ${slug} is gone. Its skills stay.\n`);
}
